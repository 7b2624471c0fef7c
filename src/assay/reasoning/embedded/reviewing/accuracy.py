"""Accuracy: statements are borne out, figures stand in the passages, nothing is concluded that no source concludes."""

import re
from collections.abc import Iterator

from assay.reasoning.embedded.reviewing.case import Case, Fact, Fault, fault, short

_FIGURE = re.compile(r"(?<![\w.])\d[\d,\u00a0\u202f]*(?:\.\d+)?")
_CONCLUDES = re.compile(r"\b(?:therefore|thus|hence|consequently|proves?|proven|it follows)\b", re.I)


def accuracy(case: Case) -> Iterator[Fault]:
    for fact in case.facts:
        yield from _of(fact)
    if dropped := case.request.dropped:
        yield fault("accuracy", "minor", "whole report",
                    f"{dropped} drafted sentences did not hold against their passages",
                    "they were replaced by the claim's own words or left out")  # fmt: skip


def _of(fact: Fact) -> Iterator[Fault]:
    if not fact.holds:
        yield fault("accuracy", "critical", fact.place, f"not supported: {short(fact.text)}", "drop the sentence")
        return
    if strange := _figures(fact.text) - _figures(" ".join(fact.quotes)):
        yield fault("accuracy", "critical", fact.place,
                    f"no passage behind it has {', '.join(sorted(strange))}: {short(fact.text)}",
                    "give the figure as the passage has it")  # fmt: skip
    said = _CONCLUDES.search(fact.text)
    if said and not _CONCLUDES.search(" ".join(fact.quotes)):
        yield fault("accuracy", "major", fact.place,
                    f"concludes (“{said.group().lower()}”) what no passage concludes: {short(fact.text)}",
                    "say what the source says and leave the conclusion out")  # fmt: skip


def _figures(text: str) -> set[str]:
    """In one spelling, without separators."""
    found = {re.sub(r"[,\u00a0\u202f]", "", match).rstrip(".") for match in _FIGURE.findall(text)}
    return {figure.rstrip("0").rstrip(".") if "." in figure else figure for figure in found}
