"""Every payload of the lists of hostile text, as a page and as a report: read or refused, and never alive."""

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from benchmarks.evaluation.hostile import (
    build_pages,
    extract_text,
    find_active_content,
    load_addresses,
    load_payloads,
    probe_addresses,
)
from openassay.fetch.extractor import score
from openassay.models.evidence import Document
from openassay.settings import HarvestSettings
from openassay.text.injection import find_instructions
from openassay.text.sentences import split_passages
from openassay.text.urls import canonicalize_url


@pytest.fixture(scope="module")
def hostile(eval_data: Path) -> list[str]:
    return load_payloads(eval_data)


@pytest.mark.slow
@pytest.mark.requirement("W-17")
def test_pages_made_of_hostile_text_are_read_or_refused(hostile: list[str]) -> None:
    assert len(hostile) > 500
    for payload in hostile:
        for page in build_pages(payload):
            text = extract_text(page)
            name = sha256(text.encode()).hexdigest()
            Document(hash=name, text=text, url="https://port.example/", title="x", fetched=datetime.now(UTC))
            assert all(text[p.start : p.end] == p.text for p in split_passages(name, text))
            assert 0 <= score(text) <= 1
            find_instructions(text)
        assert isinstance(canonicalize_url(payload), str)


@pytest.mark.requirement("W-17")
def test_no_script_is_alive_in_a_report_made_of_hostile_text(hostile: list[str]) -> None:
    assert [payload for payload in hostile if find_active_content(payload)] == []


@pytest.mark.requirement("W-08")
async def test_no_address_of_the_lists_is_called(eval_data: Path) -> None:
    """And if one were, it would be noticed; `tests/system/test_ssrf.py` goes through every other door."""
    listed = load_addresses(eval_data)
    assert len(listed) > 100
    assert await probe_addresses(listed) == []
    assert "127.0.0.1" in await probe_addresses(
        ["http://127.0.0.1/"], HarvestSettings(allow_addresses=("127.0.0.1/32",))
    )
