"""A report held against its snapshots by rules alone: no model, no network, nothing but the report and the texts.

The rules are those a stranger can follow with any program (docs/reference/bundle.md): they do not ask whether a passage
supports a statement, which a reader does, but whether everything stands where the report says.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from assay.errors import EvidenceError
from assay.model.claim import Mark, Verdict
from assay.model.report import Answer, KeyFigure, ReportClaim, ReportData, ReportSpan, ReportStatus, Sentence
from assay.trust.figures import printed
from assay.trust.wording import LEAST, share

MOST_TIES = 1_000_000  # of statements to spans: real reports have some hundreds
COUNTS = 100  # whole numbers up to here may count sources, rounds or statements in what is said of the research
# Words with a capital that do not begin a sentence.
_NAME = re.compile(r"(?<=[\w,;:)\]'’] )[A-Z][\w’'-]{2,}")
_SHOWN = 80  # characters of what is quoted in a problem


class Check(NamedTuple):
    """One rule: how many things it was held against, and what is wrong with them."""

    name: str
    checked: int
    problems: tuple[str, ...] = ()


def recheck(report: ReportData, text_of: Callable[[str], str]) -> list[Check]:
    """`text_of` gives the text of a snapshot by its hash, or raises EvidenceError; each is asked for once."""
    checking = _Recheck(report)
    if checking.ties() > MOST_TIES:
        return [Check("claims", len(report.claims), (f"statements are tied to spans more than {MOST_TIES:,} times",))]
    return checking.checks(text_of)


class _Recheck:
    def __init__(self, report: ReportData) -> None:
        self._report = report
        self._claims = {claim.id: claim for claim in report.claims}
        self._numbers = {
            id: printed("\n".join(span.quote for span in claim.spans), worded=True)
            for id, claim in self._claims.items()
        }
        self._cards = {card.id: card for card in report.sources}
        sentences = [sentence for section in report.sections for sentence in section.sentences]
        self._facts = [sentence for sentence in sentences if sentence.kind == "fact"]
        self._frames = [sentence for sentence in sentences if sentence.kind == "frame"]
        self._stated: list[Sentence | Answer | KeyFigure] = [*self._facts, *report.answers, *report.figures]

    def ties(self) -> int:
        return sum(len(claim.spans) + 1 for stated in self._stated for claim in self._bound(stated))

    def checks(self, text_of: Callable[[str], str]) -> list[Check]:
        report, headings = self._report, [section.title for section in self._report.sections if section.title]
        spans = sum(len(claim.spans) + len(claim.against) for claim in report.claims)
        return [
            Check("spans", spans, tuple(self._spans(text_of))),
            Check("claims", len(report.claims), tuple(self._bare_claims())),
            Check("statements", len(self._facts), tuple(self._statements())),
            Check("figures", len(self._stated), tuple(self._figures())),
            Check("citations", len(self._stated), tuple(self._citations())),
            Check("marks", len(self._stated), tuple(self._marks())),
            Check("frames", len(self._frames) + len(headings), tuple(self._framing(headings))),
            Check("totals", 2, tuple(self._totals())),
        ]

    # -- claims and their spans ---------------------------------------------------------------------------

    def _spans(self, text_of: Callable[[str], str]) -> Iterator[str]:
        """Verbatim, where they say, in the document of the source they name."""
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
                    yield f"{claim.id}: {_shown(span.quote)} does not stand at {span.start} of {document[:12]}"
        for claim, span in (pair for pairs in by_document.values() for pair in pairs):
            card = self._cards.get(span.source)
            if card is None or card.document != span.document:
                yield f"{claim.id} names {span.source[:_SHOWN]} for a passage of another document"

    def _bare_claims(self) -> Iterator[str]:
        for kind, ids in (("claim", [one.id for one in self._report.claims]), ("source", [*self._source_ids()])):
            yield from (f"two {kind}s are called {id[:_SHOWN]}" for id, count in Counter(ids).items() if count > 1)
        for claim in self._report.claims:
            if not claim.spans and claim.verdict is not Verdict.NOT_FOUND:
                yield f"{claim.id} is called {claim.verdict}, and has no passage"

    def _source_ids(self) -> Iterator[str]:
        return (card.id for card in self._report.sources)

    # -- what is stated -----------------------------------------------------------------------------------

    def _statements(self) -> Iterator[str]:
        for sentence in self._facts:
            known = self._bound(sentence)
            if not known or len(known) != len(sentence.claims):
                yield f"no claim stands behind {_shown(sentence.text)}"
                continue
            for claim in known:
                if claim.verdict is not Verdict.SUPPORTED:
                    yield f"{claim.id} is {claim.verdict}, and {_shown(sentence.text)} rests on it"
            if share(sentence.text, [span.quote for claim in known for span in claim.spans]) < LEAST:
                yield f"its passages have hardly a word of {_shown(sentence.text)}"

    def _figures(self) -> Iterator[str]:
        """Every number written in digits stands in a passage, in digits or as a word."""
        for stated in self._stated:
            there = (self._numbers[claim.id] for claim in self._bound(stated))
            if strange := printed(_said(stated), worded=False).difference(*there):
                numbers = ", ".join(f"{number:.15g}" for number in sorted(strange))
                yield f"{numbers} is in no passage of {_shown(_said(stated))}"

    def _citations(self) -> Iterator[str]:
        for stated in self._stated:
            found = {span.source for claim in self._bound(stated) for span in claim.spans}
            if not stated.citations:
                yield f"{_shown(_said(stated))} cites nothing"
            elif strange := [source for source in stated.citations if source not in found]:
                yield f"{_shown(_said(stated))} cites {strange[0][:_SHOWN]}, and rests on no passage of it"

    def _marks(self) -> Iterator[str]:
        """✓✓ wants two sources that do not count as one."""
        for stated in self._stated:
            if stated.mark is None:
                yield f"{_shown(_said(stated))} has no mark"
            elif stated.mark is Mark.CORROBORATED:
                found = {span.source for claim in self._bound(stated) for span in claim.spans}
                if len({self._cards[id].group for id in found if id in self._cards}) < 2:
                    yield f"{stated.mark} on one independent source: {_shown(_said(stated))}"

    def _bound(self, stated: Sentence | Answer | KeyFigure) -> list[ReportClaim]:
        return [self._claims[name] for name in stated.claims if name in self._claims]

    # -- what is said of the research ---------------------------------------------------------------------

    def _framing(self, headings: Iterable[str]) -> Iterator[str]:
        """No figure and no name of their own: those of the question, the plan, the sources' titles, and counts."""
        report = self._report
        asked = [report.question, report.provenance.question, *_texts(report.plan.plain() if report.plan else None)]
        titles = [card.title for card in report.sources]
        quotes = [span.quote for claim in report.claims for span in claim.spans]
        counts = {*map(float, range(COUNTS + 1)), float(len(report.sources)), float(len(report.claims))}
        counts |= {float(report.coverage.checked), float(report.coverage.total)}
        of_heading = _Told([*asked, *titles, *quotes], counts)
        of_frame = _Told([*asked, *headings, *titles], counts)
        for heading in headings:
            yield from of_heading.strange(heading)
        for sentence in self._frames:
            yield from of_frame.strange(sentence.text)

    def _totals(self) -> Iterator[str]:
        report, covered = self._report, self._report.coverage
        if report.status is ReportStatus.COMPLETE and not self._facts:
            yield "the report is called complete, and states nothing"
        supported = sum(claim.verdict is Verdict.SUPPORTED for claim in report.claims)
        if not supported <= covered.checked <= covered.total or covered.total < len(report.claims):
            counts = f"{covered.checked} of {covered.total} statements checked"
            yield f"{counts} does not fit {len(report.claims)} claims, {supported} of them supported"


class _Told:
    """What may be said without a source."""

    def __init__(self, texts: Iterable[str], counts: set[float]) -> None:
        known = "\n".join(texts)
        self._numbers = printed(known, worded=True) | counts
        self._text = known.lower()

    def strange(self, text: str) -> Iterator[str]:
        numbers = printed(text, worded=False) - self._numbers
        names = {name for name in _NAME.findall(text) if name.lower() not in self._text}
        if numbers or names:
            listed = ", ".join([*(f"{number:.15g}" for number in sorted(numbers)), *sorted(names)])
            yield f"{listed[:_SHOWN]} comes from no source: {_shown(text)}"


def _texts(value: object) -> Iterator[str]:
    """Every text and number in plain data."""
    if isinstance(value, dict):
        for name, held in value.items():
            yield from (str(name), *_texts(held))
    elif isinstance(value, list | tuple):
        for held in value:
            yield from _texts(held)
    elif value is not None:
        yield str(value)


def _said(stated: Sentence | Answer | KeyFigure) -> str:
    return f"{stated.value} {stated.when}".rstrip() if isinstance(stated, KeyFigure) else stated.text


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")
