"""With nothing but Python: no key, no account, no network."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from openassay.export import Report
from openassay.python_api import research
from tests.conftest import CalledOutError
from tests.scenario.checking import check_report, stored_texts
from tests.scenario.material import LAKE, QUESTION


def test_the_guard_of_these_tests_would_notice_a_call() -> None:
    with socket.socket() as one, pytest.raises(CalledOutError):
        one.connect(("192.0.2.1", 80))
    with pytest.raises(CalledOutError):
        socket.getaddrinfo("example.org", 443)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number, document in enumerate(LAKE):
        (docs / f"page{number}.md").write_text(f"# {document.title}\n\n{document.text}\n", encoding="utf-8")
    return docs


@pytest.mark.slow
@pytest.mark.requirement("X-10")
@pytest.mark.parametrize("depth", ["quick", "standard", "comprehensive"])
def test_ones_own_documents_are_researched_without_key_or_network(
    researched: Callable[..., Report], folder: Path, depth: str
) -> None:
    report = researched(QUESTION, docs=[folder], depth=depth)

    assert report.status == "complete"
    assert any("412 square kilometres" in s.text for section in report.sections for s in section.sentences)
    assert (report.spend.usd, report.spend.tokens, report.spend.requests) == (0, 0, 0)


@pytest.mark.requirement("X-10")
def test_the_synchronous_call_returns_a_report(tmp_path: Path, folder: Path) -> None:
    report = research(QUESTION, docs=[str(folder)], depth="quick")

    assert isinstance(report, Report)
    assert report.markdown.startswith("# How large is Lake Marrow")
    assert report.claims
    assert report.sources
    check_report(report, stored_texts(tmp_path / "data"))


@pytest.mark.slow
@pytest.mark.requirement("X-10")
def test_a_second_run_on_the_same_documents_says_the_same(researched: Callable[..., Report], folder: Path) -> None:
    first, second = (researched(QUESTION, docs=[folder], depth="quick") for _ in range(2))

    assert [claim.text for claim in first.claims] == [claim.text for claim in second.claims]
    assert first.sections == second.sections
    assert [card.document for card in first.sources] == [card.document for card in second.sources]


@pytest.mark.requirement("X-10")
def test_a_file_that_cannot_be_read_is_skipped_and_said_to_be_in_every_run(
    researched: Callable[..., Report], tmp_path: Path
) -> None:
    docs = tmp_path / "broken"
    docs.mkdir()
    (docs / "broken.txt").write_bytes(b"\x00\x01\x02" * 100)

    for _ in range(2):
        with pytest.raises(Exception, match="no document could be read") as caught:
            researched(QUESTION, docs=[docs], depth="quick")
        assert "broken.txt" in str(caught.value)


def bare(tmp_path: Path, code: str) -> str:
    """What a process of its own prints: nothing of ours was imported before, and no setting is there."""
    environment = {"PATH": "/usr/bin:/bin", "OPENASSAY_DATA_DIR": str(tmp_path / "data"), "HOME": str(tmp_path)}
    environment["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip() or done.stderr


@pytest.mark.slow
@pytest.mark.requirement("X-10", "C-07")
def test_on_ones_own_documents_no_name_is_looked_up_and_no_socket_opened(tmp_path: Path, folder: Path) -> None:
    code = (
        "import socket, sys\n"
        "def refuse(*args, **kwargs): sys.exit('called out')\n"
        "socket.socket.connect = socket.socket.sendto = socket.getaddrinfo = refuse\n"
        "from openassay import research\n"
        f"print(research({QUESTION!r}, docs=[{str(folder)!r}], depth='quick').status)\n"
    )
    assert bare(tmp_path, code) == "complete"


@pytest.mark.slow
@pytest.mark.requirement("X-10", "C-07")
def test_without_any_network_it_is_the_demo_data_and_a_plain_notice(tmp_path: Path) -> None:
    code = (
        "import socket\n"
        "def dead(*args, **kwargs): raise OSError('no network')\n"
        "socket.socket.connect = socket.socket.sendto = socket.getaddrinfo = dead\n"
        "from openassay import research\n"
        "report = research(\"What's happening with Apple?\", depth='quick')\n"
        "print(report.status, *report.notices)\n"
    )
    told = bare(tmp_path, code)
    assert told.startswith("complete")
    assert "no web source could be reached" in told
    assert "demo data" in told
