"""Makes two reports alike and puts them in an order that only the key tells, so that readers compare what they say."""

import random
import re
from typing import NamedTuple

OURS, BASELINE = "ours", "baseline"
# What follows the report proper: lists of sources and what a program adds about its own work.
_APPENDIX = re.compile(
    r"^#+\s*(References|Sources|Works cited|Evidence|Key figures|What this rests on)\s*$.*", re.M | re.S | re.I
)
_LINKED_CITATION = re.compile(r"\[\[S?(\d+)\]\]\([^)\s]*\)")
_LEGEND = re.compile(r"^.*[∴✓⚠][^·\n]*·[^·\n]*[∴✓⚠].*$", re.M)  # what the marks mean
_MARK = re.compile(r"[ \t]*[∴✓⚠]+")
_TAG = re.compile(r"</?[a-zA-Z][^>\n]*>")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|~<>-])")  # which no reader of the page would see
_NUMBERS = r"\[\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\]"  # a year in brackets is no citation
_CITATIONS = re.compile(rf"([.!?;:,]?)((?:[ \t]*{_NUMBERS})+)")


class Pair(NamedTuple):
    a: str
    b: str
    key: dict[str, str]  # which is which


def normalise(report: str) -> str:
    """Without marks, tags and appendices; citations in one form, before the stop, numbered as they first come."""
    text = _LEGEND.sub("", _APPENDIX.sub("", report))
    text = _TAG.sub("", _MARK.sub("", _LINKED_CITATION.sub(r"[\1]", text)))
    numbers: dict[int, int] = {}

    def rewrite(found: re.Match[str]) -> str:
        told = [numbers.setdefault(number, len(numbers) + 1) for number in list_numbers(found[2])]
        return f" [{', '.join(map(str, dict.fromkeys(told)))}]{found[1]}"

    return _ESCAPE.sub(r"\1", _CITATIONS.sub(rewrite, text)).strip() + "\n"


def list_numbers(citations: str) -> list[int]:
    numbers: list[int] = []
    for first, last in re.findall(r"(\d+)(?:\s*[–-]\s*(\d+))?", citations):
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def pair_reports(ours: str, baseline: str, seed: int) -> Pair:
    reports = [(OURS, normalise(ours)), (BASELINE, normalise(baseline))]
    random.Random(seed).shuffle(reports)
    (first, a), (second, b) = reports
    return Pair(a, b, {"A": first, "B": second})
