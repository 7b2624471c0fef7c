"""The sides of a company that somebody who asks about it expects, each a section of a quick answer (C-10)."""

import re
from collections.abc import Iterable

from assay.reasoning.embedded.planning import COMPANY_SECTIONS

OVERVIEW, NEWS, FINANCE = COMPANY_SECTIONS

# What a section that has nothing is said to lack, in words that can be searched for.
WANTED = {OVERVIEW: "key developments", NEWS: "recent news", FINANCE: "stock price and revenue"}

_FINANCE = re.compile(
    r"\b(?:stock|shares?|trad(?:ed|es at|ing)|market (?:cap\w*|value)|price-(?:to-)?earnings|P/E|dividends?|"
    r"year to date)\b",
    re.I,
)
_NEWS = re.compile(
    r"\b(?:launch\w*|announc\w*|report\w*|quarter\w*|deliver\w*|earnings|revenue|ruling|unveil\w*|exceed\w*)\b", re.I
)


def is_about_a_company(sections: Iterable[str]) -> bool:
    """Whether a plan has these sections; a model may have added others behind them."""
    return tuple(sections)[: len(COMPANY_SECTIONS)] == COMPANY_SECTIONS


def aspect(statement: str) -> str:
    """The section a statement about a company belongs to."""
    return FINANCE if _FINANCE.search(statement) else NEWS if _NEWS.search(statement) else OVERVIEW


def lacking(statements: Iterable[str]) -> list[str]:
    """The sections none of the statements belongs to, in their order."""
    there = {aspect(statement) for statement in statements}
    return [section for section in COMPANY_SECTIONS if section not in there]
