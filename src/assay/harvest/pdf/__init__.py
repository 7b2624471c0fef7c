"""PDF files, read by a subprocess with limits on time and memory; safe to call from many threads."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from threading import BoundedSemaphore

from assay.errors import ReadError
from assay.harvest.extracted import Extracted
from assay.harvest.pdf.lines import Run, lay_out
from assay.harvest.pdf.pages import Sheet, flow
from assay.text.clean import clean

_CHILD = Path(__file__).with_name("child.py")
_CHILDREN = BoundedSemaphore(os.cpu_count() or 2)  # more would only make each other's time run out
_NO_MEMORY = (-signal.SIGABRT, -getattr(signal, "SIGTRAP", 5), -signal.SIGILL)  # how PDFium ends when none is left
_LEAST_TEXT = 5  # visible characters a page on average; a scan has none, or a stray page number

_POOR_TITLE = re.compile(
    r"microsoft (?:word|powerpoint|excel)|untitled|(?:document|slide|presentation|book|layout)\s*\d*$|"
    r"[\w.-]*[\d_.][\w.-]*$|"
    r".*\.(?:docx?|pptx?|xlsx?|pdf|indd|tex|qxd|rtf|html?)$|\W*$",
    re.IGNORECASE,
)


def extract(source: Path | bytes, *, seconds: int = 60, megabytes: int = 1500) -> Extracted:
    """Raises ReadError when the file is corrupt, encrypted, scanned, or needs more than its limits."""
    with _CHILDREN:
        answer = _run(source, seconds, megabytes)
    if answer.get("error") == "encrypted":
        raise ReadError("encrypted, it needs a password", help="Save a copy without the password.")
    if "error" in answer:
        raise _corrupt(str(answer.get("detail", "")))
    pages = _pages(answer.get("pages"))
    if not pages:
        raise _corrupt("it holds no pages")
    text = clean(flow(pages))
    if len("".join(text.split())) < _LEAST_TEXT * len(pages):
        raise ReadError("scanned, no text layer", help="Run text recognition (OCR) on it first.")
    return Extracted(
        text=text,
        title=_title(answer),
        author=_line(answer, "author") or None,
        published=_day(_line(answer, "created")),
    )


def _corrupt(detail: str) -> ReadError:
    reason = f": {detail}" if detail else ""
    return ReadError(f"not a readable PDF{reason}", help="Open it in a viewer and save or print it to PDF again.")


def _run(source: Path | bytes, seconds: int, megabytes: int) -> Mapping[str, object]:
    path, content = ("-", source) if isinstance(source, bytes) else (str(source), b"")
    # By path and with -P: `-m` would import the packages above it, and files beside the child could hide other modules.
    command = [sys.executable, "-P", str(_CHILD), path, str(seconds), str(megabytes)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=3 * seconds, input=content, check=False)
    except subprocess.TimeoutExpired as error:
        raise _too_slow(seconds) from error
    if done.returncode != 0:
        raise _died(done.returncode, done.stderr.decode("utf-8", "replace"), seconds, megabytes)
    answer = json.loads(done.stdout)
    if not isinstance(answer, dict):
        raise _corrupt("")
    return answer


def _too_slow(seconds: int) -> ReadError:
    return ReadError(f"took more than {seconds} s to read", help="Split the file, or print it to PDF again.")


def _died(code: int, errors: str, seconds: int, megabytes: int) -> ReadError:
    if code in (-signal.SIGTERM, -getattr(signal, "SIGXCPU", 24), -getattr(signal, "SIGKILL", 9)):
        return _too_slow(seconds)
    if code in _NO_MEMORY:
        return _too_big(megabytes)
    last = errors.strip().rsplit("\n", 1)[-1]
    if "MemoryError" in last or "memory" in last.lower():
        return _too_big(megabytes)
    return _corrupt(" ".join(clean(last).split())[:200])


def _too_big(megabytes: int) -> ReadError:
    return ReadError(f"needs more than {megabytes} MB of memory", help="Split the file into smaller ones.")


def _pages(answer: object) -> list[Sheet]:
    return [_sheet(page) for page in answer] if isinstance(answer, list) else []


def _sheet(page: Sequence[tuple[int, float, float, float, float, str]]) -> Sheet:
    """Text that stands upright, then what is turned: a stamp in the margin, or a whole table set sideways."""
    by_turn: dict[int, list[Run]] = {}
    for turns, left, right, bottom, top, text in page:
        by_turn.setdefault(turns, []).append(Run(left, right, bottom, top, text))
    often = sorted(by_turn.values(), key=len, reverse=True)
    return [line for runs in often for line in [*lay_out(runs), []]]


def _line(answer: Mapping[str, object], key: str) -> str:
    return " ".join(clean(str(answer.get(key) or "")).split())


def _title(answer: Mapping[str, object]) -> str:
    """Many titles are accession numbers or what a printer driver wrote: worse than the name of the file."""
    title = _line(answer, "title")
    letters = sum(map(str.isalpha, title))
    return "" if _POOR_TITLE.match(title) or letters < len(title) / 2 else title


def _day(stamp: str) -> date | None:
    """`D:20230804060209-04'00'` as a day."""
    try:
        return date.fromisoformat(stamp.removeprefix("D:")[:8])
    except ValueError:
        return None
