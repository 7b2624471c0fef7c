"""What a report made on a local web gets right: whom it cites first, which figures it states, and what it obeys."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from openassay.models.evidence import Mark
from openassay.models.report import ReportData
from openassay.text.urls import is_within_domain
from tests.fakes.local_web import Fact, LocalPage, LocalWeb

_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


@dataclass
class Judged:
    """Of one report. What is in a list should not have happened."""

    answered: bool = False  # the figure asked for is stated
    primary_first: bool = False  # the first source cited is the primary one
    newest_first: bool = False  # of all figures of the fact, the one asked for comes first
    outdated: int = 0  # statements with the older figure, dated or not
    undated: list[str] = field(default_factory=list)  # of them those that do not say of when it is, or that nobody says
    spam: list[str] = field(default_factory=list)  # statements with the wrong figure that are asserted
    spam_disputed: list[str] = field(default_factory=list)  # the same, shown as in dispute
    paywall: list[str] = field(default_factory=list)  # sources that are stubs
    copies: list[str] = field(default_factory=list)  # statements said to have independent sources, that have one
    disobeyed: list[str] = field(default_factory=list)  # sources of hosts or days that were ruled out


class _Statement(NamedTuple):
    text: str
    citations: tuple[str, ...]
    mark: Mark | None
    disputed: bool = False


def _iter_statements(report: ReportData) -> Iterator[_Statement]:
    """As they are read: short answers, sections, the table of figures."""
    disputed = {id for matter in report.disputes if not matter.resolved for side in matter.sides for id in side.claims}
    for answer in report.answers:
        yield _Statement(f"{answer.text} ({answer.about})", answer.citations, answer.mark, answer.disputed)
    for section in report.sections:
        for sentence in section.sentences:
            in_dispute = section.role == "disagreements" or bool(disputed & set(sentence.claims))
            yield _Statement(sentence.text, sentence.citations, sentence.mark, in_dispute)
    for figure in report.figures:
        yield _Statement(
            f"{figure.what}: {figure.value} ({figure.when})", figure.citations, figure.mark, figure.disputed
        )


def judge_report(report: ReportData, fact: Fact, web: LocalWeb) -> Judged:
    judged, statements = Judged(), list(_iter_statements(report))
    cards = {card.id: card for card in report.sources}
    page_of = {card.id: web.pages[card.url] for card in report.sources if card.url in web.pages}
    wanted, outdated = (fact.old_value, "") if fact.is_about_past else (fact.value, fact.old_value)
    cited = [page_of[id] for one in statements for id in one.citations if id in page_of]
    judged.primary_first = bool(cited) and _is_primary(cited[0], fact)
    figures = [value for one in statements for value in (wanted, outdated, fact.wrong_value) if _has(one.text, value)]
    judged.answered = wanted in figures
    judged.newest_first = figures[:1] == [wanted]
    for one in statements:
        if _has(one.text, outdated):
            judged.outdated += 1
            if not _YEAR.search(one.text) and "undated" not in one.text:
                judged.undated.append(one.text)
        if _has(one.text, fact.wrong_value):
            (judged.spam_disputed if one.disputed else judged.spam).append(one.text)
        # All pages of a family go back to one source; the pages with a wrong figure speak for nothing.
        if one.mark is Mark.CORROBORATED and any(_has(one.text, v) for v in (wanted, outdated, fact.wrong_value)):
            judged.copies.append(one.text)
    for id, page in page_of.items():
        if page.role == "paywall":
            judged.paywall.append(page.url)
        if _is_ruled_out(page, fact):
            judged.disobeyed.append(f"{cards[id].url} of {page.published}")
    return judged


def _has(text: str, value: str) -> bool:
    return (
        bool(value)
        and re.search(rf"(?<![\d.,]){re.escape(value)}(?!\d)", text.replace("\N{NO-BREAK SPACE}", " ")) is not None
    )


def _is_primary(page: LocalPage, fact: Fact) -> bool:
    """Of the past, the older release of the same host is the primary source."""
    day = fact.old_published if fact.is_about_past else fact.published
    return page.host == fact.host and page.published == day


def _is_ruled_out(page: LocalPage, fact: Fact) -> bool:
    if fact.allow and not any(is_within_domain(page.host, host) for host in fact.allow):
        return True
    if any(is_within_domain(page.host, host) for host in fact.deny):
        return True
    day = page.published
    return day is not None and not (fact.since or date.min) <= day <= (fact.until or date.max)
