"""Every payload of the lists of hostile text, as a page and as a report: read or refused, and never alive."""

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from assay.evaluation.hostile import alive, dialled, pages, payloads, text_of, vectors
from assay.harvest.quality import score
from assay.model.source import Document
from assay.settings import Harvesting
from assay.text.instructions import instructions
from assay.text.passages import passages
from assay.text.urls import canonical


@pytest.fixture(scope="module")
def hostile(eval_data: Path) -> list[str]:
    return payloads(eval_data)


@pytest.mark.requirement("W-17")
def test_pages_made_of_hostile_text_are_read_or_refused(hostile: list[str]) -> None:
    assert len(hostile) > 500
    for payload in hostile:
        for page in pages(payload):
            text = text_of(page)
            name = sha256(text.encode()).hexdigest()
            Document(hash=name, text=text, url="https://port.example/", title="x", fetched=datetime.now(UTC))
            assert all(text[p.start : p.end] == p.text for p in passages(name, text))
            assert 0 <= score(text) <= 1
            instructions(text)
        assert isinstance(canonical(payload), str)


@pytest.mark.requirement("W-17")
def test_no_script_is_alive_in_a_report_made_of_hostile_text(hostile: list[str]) -> None:
    assert [payload for payload in hostile if alive(payload)] == []


@pytest.mark.requirement("W-08")
async def test_no_address_of_the_lists_is_called(eval_data: Path) -> None:
    """And if one were, it would be noticed; `tests/system/test_ssrf.py` goes through every other door."""
    listed = vectors(eval_data)
    assert len(listed) > 100
    assert await dialled(listed) == []
    assert "127.0.0.1" in await dialled(["http://127.0.0.1/"], Harvesting(allow_addresses=("127.0.0.1/32",)))
