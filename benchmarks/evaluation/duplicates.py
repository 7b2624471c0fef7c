"""How well copies are told from other pages: a page's readings are copies of each other, two pages never are."""

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from lxml.html import HTMLParser, fromstring
from trafilatura import extract

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure
from benchmarks.evaluation.web_pages import load_truths, read_html
from openassay.search.ranking import find_duplicates
from openassay.text.sentences import containment, shingles

SAMPLE = 5  # every fifth page in a quick run


def extract_readings(page: bytes, truth: str) -> Iterator[str]:
    """The ways to read a page that gave any text: the true body, three settings of trafilatura, what the page says of
    itself in JSON-LD, and all text with its menus."""
    yield truth
    for precise, generous in ((False, False), (True, False), (False, True)):
        if text := extract(page, favor_precision=precise, favor_recall=generous):
            yield text
    tree: Any = fromstring(page, parser=HTMLParser(encoding="utf-8"))
    if body := max(
        map(_find_article_body, tree.xpath("//script[@type='application/ld+json']/text()")), key=len, default=""
    ):
        yield body
    for hidden in tree.xpath("//script|//style|//noscript|//template"):
        hidden.drop_tree()
    yield " ".join(tree.itertext())


def _find_article_body(text: str) -> str:
    """The longest `articleBody` anywhere in a piece of JSON-LD."""
    try:
        waiting = [json.loads(text, strict=False)]
    except ValueError:
        return ""
    found = [""]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            found.append(item["articleBody"] if isinstance(item.get("articleBody"), str) else "")
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return max(found, key=len)


def load_copies(folder: Path, step: int = 1) -> Iterator[tuple[str, str]]:
    """Two readings of one page."""
    for name, one in list(load_truths(folder).items())[::step]:
        yield from combinations(extract_readings(read_html(folder, name), one["articleBody"]), 2)


def load_bodies(folder: Path) -> list[tuple[str, str]]:
    return [(name, one["articleBody"]) for name, one in load_truths(folder).items()]


def text_overlap(one: str, other: str) -> float:
    """How much of the smaller text stands in the other."""
    return containment(shingles(one), shingles(other))


def measure_duplicates(data: Path, quick: bool) -> EvalValues:
    folder = data / "extraction"
    found = [
        bool(find_duplicates([("one", one), ("other", other)]))
        for one, other in load_copies(folder, SAMPLE if quick else 1)
    ]
    return {
        "copies found": EvalValue(sum(found) / len(found)),
        "pages taken for copies": EvalValue(len(find_duplicates(load_bodies(folder)))),
    }


MEASURES = {
    "duplicates": EvalMeasure(
        name="duplicates",
        about="How well copies are told from other pages: readings of one page are copies, two pages are not.",
        needs=("extraction",),
        licence="MIT",
        whole="181 pages, 1,890 pairs of copies, 16,290 of others",
        quick="every fifth page for copies, all for others",
        figures=(
            Figure("copies found", floor=0.99, quick=0.99, published={"Jaccard from .8 on": 0.25}),
            Figure("pages taken for copies", floor=0, quick=0, less_is_better=True, form=".0f"),
        ),
        run=measure_duplicates,
        notes="No labelled set of near-duplicates exists, so this one was made from the pages. Of the smaller text .80 "
        "must stand in the other, and not .75, because of what this set lacks: quarterly reports of one company share "
        "up to .71 with the one before.",
        command="benchmarks/bench_duplicates.py",
    )
}
