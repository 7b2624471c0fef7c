"""Check a report against its snapshots by rules alone: no model, no network, nothing but the report and the texts.

The rules are those a stranger can follow with any program (docs/reference/bundle.md): they do not ask whether a passage
supports a statement, which a reader does, but whether everything stands where the report says.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import NamedTuple

from openassay.errors import EvidenceError
from openassay.models.evidence import Mark, Verdict
from openassay.models.report import KeyFigure, ReportClaim, ReportData, ReportSpan, ReportStatus, Sentence, ShortAnswer
from openassay.verification.figures import find_numbers_by_day
from openassay.verification.statement_check import extract_numbers
from openassay.verification.synthesis import compute_figure, is_same_figure, list_roundings
from openassay.verification.wording import LEAST_CONTENT_SHARE, content_share

MAX_TIES = 1_000_000  # of statements to spans: real reports have some hundreds
LARGEST_COUNT = 100  # whole numbers up to here may count sources, rounds or statements in what is said of the research
# Words with a capital that do not begin a sentence.
_NAME = re.compile(r"(?<=[\w,;:)\]'’] )[A-Z][\w’'-]{2,}")
_MAX_EXCERPT = 80  # characters of what is quoted in a problem


class ReportCheck(NamedTuple):
    """One rule: how many things it was held against, and what is wrong with them."""

    name: str
    checked: int
    problems: tuple[str, ...] = ()


def recheck_report(report: ReportData, text_of: Callable[[str], str]) -> list[ReportCheck]:
    """Run all checks. `text_of` returns the text of a snapshot by its hash, or raises EvidenceError; it is called once
    for each."""
    checker = _ReportChecker(report)
    if checker.count_ties() > MAX_TIES:
        problem = f"statements are tied to spans more than {MAX_TIES:,} times"
        return [ReportCheck("claims", len(report.claims), (problem,))]
    headings = [section.title for section in report.sections if section.title]
    spans = sum(len(claim.spans) + len(claim.against) for claim in report.claims)
    return [
        ReportCheck("spans", spans, tuple(checker.check_spans(text_of))),
        ReportCheck("claims", len(report.claims), tuple(checker.check_claims())),
        ReportCheck("statements", len(checker.facts), tuple(checker.check_statements())),
        ReportCheck("figures", len(checker.stated), tuple(checker.check_figures())),
        ReportCheck("citations", len(checker.stated), tuple(checker.check_citations())),
        ReportCheck("marks", len(checker.stated), tuple(checker.check_marks())),
        ReportCheck("frames", len(checker.frames) + len(headings), tuple(checker.check_frames(headings))),
        ReportCheck("totals", 2, tuple(checker.check_totals())),
    ]


class _ReportChecker:
    def __init__(self, report: ReportData) -> None:
        self._report = report
        self._claims = {claim.id: claim for claim in report.claims}
        self._numbers = {
            id: extract_numbers("\n".join(_list_texts(claim)), worded=True) for id, claim in self._claims.items()
        }
        self._cards = {card.id: card for card in report.sources}
        sentences = [sentence for section in report.sections for sentence in section.sentences]
        self.facts = [sentence for sentence in sentences if sentence.kind != "frame"]
        self.frames = [sentence for sentence in sentences if sentence.kind == "frame"]
        self.stated: list[Sentence | ShortAnswer | KeyFigure] = [*self.facts, *report.answers, *report.figures]

    def count_ties(self) -> int:
        return sum(len(claim.spans) + 1 for stated in self.stated for claim in self._claims_of(stated))

    def check_spans(self, text_of: Callable[[str], str]) -> Iterator[str]:
        """Spans stand verbatim where they say, in the document of the source they name."""
        by_document: dict[str, list[tuple[ReportClaim, ReportSpan]]] = defaultdict(list)
        for claim in self._report.claims:
            for span in (*claim.spans, *claim.against):
                by_document[span.document].append((claim, span))
        for document, spans in by_document.items():
            try:
                text = text_of(document)
            except EvidenceError as error:
                yield error.message
                continue
            for claim, span in spans:
                if not 0 <= span.start < span.end or text[span.start : span.end] != span.quote:
                    yield f"{claim.id}: {_shorten_text(span.quote)} does not stand at {span.start} of {document[:12]}"
        for claim, span in (pair for pairs in by_document.values() for pair in pairs):
            card = self._cards.get(span.source)
            if card is None or card.document != span.document:
                yield f"{claim.id} names {span.source[:_MAX_EXCERPT]} for a passage of another document"

    def check_claims(self) -> Iterator[str]:
        for kind, items in (("claim", self._report.claims), ("source", self._report.sources)):
            counts = Counter(item.id for item in items)
            yield from (f"two {kind}s are called {id[:_MAX_EXCERPT]}" for id, count in counts.items() if count > 1)
        for claim in self._report.claims:
            if not claim.spans and claim.verdict is not Verdict.NOT_FOUND:
                yield f"{claim.id} is called {claim.verdict}, and has no passage"

    def check_statements(self) -> Iterator[str]:
        for sentence in self.facts:
            known = self._claims_of(sentence)
            if not known or len(known) != len(sentence.claims):
                yield f"no claim stands behind {_shorten_text(sentence.text)}"
                continue
            for claim in known:
                if claim.verdict is not Verdict.SUPPORTED:
                    yield f"{claim.id} is {claim.verdict}, and {_shorten_text(sentence.text)} rests on it"
            quotes = [span.quote for claim in known for span in claim.spans]
            least = LEAST_CONTENT_SHARE / 2 if sentence.kind == "synthesis" else LEAST_CONTENT_SHARE
            if sentence.kind == "synthesis" and len(known) < 2:
                yield f"{_shorten_text(sentence.text)} is to follow from several claims, and has one"
            if content_share(sentence.text, quotes) < least:
                yield f"its passages have hardly a word of {_shorten_text(sentence.text)}"

    def check_figures(self) -> Iterator[str]:
        """Every number written in digits stands in a passage, in digits or as a word, is a day that its source tells by
        its own date, or comes about as the sentence says."""
        for stated in self.stated:
            derived = () if isinstance(stated, KeyFigure) else stated.derived
            there = [self._numbers[claim.id] for claim in self._claims_of(stated)]
            there += [_find_dates(_statement_text(stated), claim) for claim in self._claims_of(stated)]
            for figure in derived:
                value = compute_figure(figure)
                if value is None or not is_same_figure(figure.value, value):
                    yield f"{figure.value:g} is not the {figure.operation} it is called"
                operands = {abs(float(one)) for one in figure.operands if isinstance(one, int | float)}
                if figure.operation != "count" and operands.difference(*there):
                    yield f"{figure.value:g} is computed from figures that are in no passage"
            there += [frozenset(list_roundings(abs(figure.value))) for figure in derived]
            if strange := extract_numbers(_statement_text(stated), worded=False).difference(*there):
                numbers = ", ".join(f"{number:.15g}" for number in sorted(strange))
                yield f"{numbers} is in no passage of {_shorten_text(_statement_text(stated))}"

    def check_citations(self) -> Iterator[str]:
        for stated in self.stated:
            found = {span.source for claim in self._claims_of(stated) for span in claim.spans}
            if not stated.citations:
                yield f"{_shorten_text(_statement_text(stated))} cites nothing"
            elif strange := [source for source in stated.citations if source not in found]:
                yield (
                    f"{_shorten_text(_statement_text(stated))} cites "
                    f"{strange[0][:_MAX_EXCERPT]}, and rests on no passage of it"
                )

    def check_marks(self) -> Iterator[str]:
        """✓✓ wants two sources that do not count as one."""
        for stated in self.stated:
            if stated.mark is None:
                yield f"{_shorten_text(_statement_text(stated))} has no mark"
            elif stated.mark is Mark.CORROBORATED:
                found = {span.source for claim in self._claims_of(stated) for span in claim.spans}
                if len({self._cards[id].group for id in found if id in self._cards}) < 2:
                    yield f"{stated.mark} on one independent source: {_shorten_text(_statement_text(stated))}"

    def _claims_of(self, stated: Sentence | ShortAnswer | KeyFigure) -> list[ReportClaim]:
        return [self._claims[name] for name in stated.claims if name in self._claims]

    def check_frames(self, headings: Iterable[str]) -> Iterator[str]:
        """No figure and no name of their own: those of the question, the plan, the sources' titles, and counts."""
        report = self._report
        plan = report.plan.plain() if report.plan else None
        asked = [report.question, report.provenance.question, *_iter_texts(plan)]
        titles = [card.title for card in report.sources]
        quotes = [span.quote for claim in report.claims for span in claim.spans]
        counts = {*map(float, range(LARGEST_COUNT + 1)), float(len(report.sources)), float(len(report.claims))}
        counts |= {float(report.coverage.checked), float(report.coverage.total)}
        of_heading = _KnownText([*asked, *titles, *quotes], counts)
        of_frame = _KnownText([*asked, *headings, *titles], counts)
        for heading in headings:
            yield from of_heading.find_unknown(heading)
        for sentence in self.frames:
            yield from of_frame.find_unknown(sentence.text)

    def check_totals(self) -> Iterator[str]:
        report, covered = self._report, self._report.coverage
        if report.status is ReportStatus.COMPLETE and not self.facts:
            yield "the report is called complete, and states nothing"
        supported = sum(claim.verdict is Verdict.SUPPORTED for claim in report.claims)
        if not supported <= covered.checked <= covered.total or covered.total < len(report.claims):
            counts = f"{covered.checked} of {covered.total} statements checked"
            yield f"{counts} does not fit {len(report.claims)} claims, {supported} of them supported"


def _list_texts(claim: ReportClaim) -> list[str]:
    return [*(span.quote for span in claim.spans), *(item.value for item in claim.context)]


def _find_dates(text: str, claim: ReportClaim) -> frozenset[float]:
    """Years and days of a statement that a claim's source tells by the day it was published."""
    quotes = "\n".join(span.quote for span in claim.spans)
    found = set[float]()
    for item in claim.context:
        if item.field == "published":
            found |= find_numbers_by_day(text, quotes, date.fromisoformat(item.value[:10]))
    return frozenset(found)


class _KnownText:
    """What may be said without a source."""

    def __init__(self, texts: Iterable[str], counts: set[float]) -> None:
        known = "\n".join(texts)
        self._numbers = extract_numbers(known, worded=True) | counts
        self._text = known.lower()

    def find_unknown(self, text: str) -> Iterator[str]:
        numbers = extract_numbers(text, worded=False) - self._numbers
        names = {name for name in _NAME.findall(text) if name.lower() not in self._text}
        if numbers or names:
            listed = ", ".join([*(f"{number:.15g}" for number in sorted(numbers)), *sorted(names)])
            yield f"{listed[:_MAX_EXCERPT]} comes from no source: {_shorten_text(text)}"


def _iter_texts(value: object) -> Iterator[str]:
    """Every text and number in plain data."""
    if isinstance(value, dict):
        for name, held in value.items():
            yield from (str(name), *_iter_texts(held))
    elif isinstance(value, list | tuple):
        for held in value:
            yield from _iter_texts(held)
    elif value is not None:
        yield str(value)


def _statement_text(stated: Sentence | ShortAnswer | KeyFigure) -> str:
    return f"{stated.value} {stated.when}".rstrip() if isinstance(stated, KeyFigure) else stated.text


def _shorten_text(text: str) -> str:
    return repr(text if len(text) <= _MAX_EXCERPT else f"{text[: _MAX_EXCERPT - 1]}…")
