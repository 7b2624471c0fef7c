"""Sentences that nobody here wrote, by document: news, an encyclopaedia, web pages cited by one, quarterly reports.

The two halves share no document: rules were tuned on the first, figures are reported on the second.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.evaluation.measure import resolve_data_folder
from openassay.fetch import pdf

DATA = resolve_data_folder()
SHORTEST, LONGEST = 8, 45  # words
MOST_EACH = 12  # sentences of a document
_END = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=[\"“‘(]?[A-Z])")
_ABBREVIATED = re.compile(
    r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|St|Jr|Sr|Inc|Corp|Co|Ltd|No|vs|Gov|Sen|Rep|Gen|Lt|Col|Prof|etc|[ap]\.m|U\.S|Jan|Feb|"
    r"Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec|Vol|pp|ft))\.$"
)


class Source(NamedTuple):
    title: str
    kind: str
    sentences: tuple[str, ...]


def sources(folder: Path = DATA, *, half: int | None = None, filings: bool = True) -> list[Source]:
    found = [*_news(folder), *_encyclopaedia(folder), *_cited(folder), *(_filings(folder) if filings else ())]
    kept = [source for source in found if half is None or _half(source.title) == half]
    return [source for source in kept if len(source.sentences) >= 3]


def _half(title: str) -> int:
    return hashlib.sha256(title.encode()).digest()[0] % 2


def _news(folder: Path) -> Iterator[Source]:
    for item in json.loads((folder / "extraction/ground-truth.json").read_text("utf-8")).values():
        yield Source(item["url"].rstrip("/").rpartition("/")[2], "news", _usable(_split(item["articleBody"])))


def _encyclopaedia(folder: Path) -> Iterator[Source]:
    for title, text in json.loads((folder / "hotpotqa/corpus.json").read_text("utf-8")).items():
        yield Source(title, "encyclopaedia", _usable(line.strip() for line in text))


def _cited(folder: Path) -> Iterator[Source]:
    seen: set[str] = set()
    for line in (folder / "wice/dev.jsonl").read_text("utf-8").splitlines():
        title, *text = json.loads(line)["evidence"]
        if title not in seen:
            seen.add(title)
            yield Source(title.partition("TITLE: ")[2], "cited", _usable(text))


def _filings(folder: Path) -> Iterator[Source]:
    for path in sorted((folder / "sec-10q/docs").glob("*.pdf"))[::3]:
        text = pdf.extract(path).text
        discussion = text[int(len(text) * 0.55) :]  # management's discussion stands about there
        lines = " ".join(discussion.split())
        yield Source(path.stem, "filing", _usable(_split(lines)))


def _split(text: str) -> Iterator[str]:
    for paragraph in text.splitlines():
        held = ""
        for piece in _END.split(paragraph.strip()):
            held = f"{held} {piece}".strip()
            if not _ABBREVIATED.search(held):
                yield held
                held = ""


def _usable(sentences: Iterator[str] | list[str]) -> tuple[str, ...]:
    """Statements: no questions, headings, speech without an end, or lists."""
    kept = [
        line
        for line in (" ".join(sentence.split()) for sentence in sentences)
        if SHORTEST <= len(line.split()) <= LONGEST
        and re.match(r"[A-Z]", line)
        and line.endswith(".")
        and line.count('"') % 2 == 0
        and line.count("“") == line.count("”")
        and line.count("(") == line.count(")")
        and not re.search(r"[|#*\[\]{}<>]|https?:|\.\.\.|\bI\b|\byou\b", line)
    ]
    return tuple(dict.fromkeys(kept))[:MOST_EACH]
