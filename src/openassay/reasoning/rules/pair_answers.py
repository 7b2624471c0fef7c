"""Answers to questions about two things: the reader is asked once for each, and the rest is arithmetic.

Nothing is told where one side is not found with confidence, or where what is found does not decide.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from openassay.models.evidence import Claim, Verdict
from openassay.models.plan import Plan
from openassay.models.report import DerivedFigure
from openassay.reasoning.base import DraftAnswer, DraftSentence
from openassay.reasoning.rules.short_answers.options import exclude_other, find_options
from openassay.reasoning.rules.short_answers.question import AnswerSpec
from openassay.reasoning.rules.tables.cells import write_number
from openassay.text.answer_reader import AnswerReader
from openassay.text.days import DayRange, find_days
from openassay.text.pairs import PairQuestion, parse_pair
from openassay.text.quantities import find_quantities
from openassay.text.questions import distinctive_stems, has_name
from openassay.text.words import content_words, find_names, fold, stem, stems

SURE = 0.5  # the chance from which what is read of a side is taken: of what the reader marks so surely .82 is right
# A document that tells no day of what it reports is taken to report what was in the days before it. Between two things
# of which one is dated so there has to lie more than that.
BEFORE_REPORT = timedelta(days=7)


class Side(NamedTuple):
    """What is read of one side: `value` is when it was, or how much of something it has."""

    value: DayRange | float
    unit: str
    chance: float
    claim: str
    document: str
    text: str  # the words that tell it; empty where only the document's own date does
    start: int


class PairAnswer(NamedTuple):
    answer: DraftAnswer
    told: tuple[str, str]  # the claims of both sides
    note: DraftSentence


def find_pair(plan: Plan) -> PairQuestion | None:
    """The question about two things that a plan was made for."""
    pair = parse_pair(plan.goal)
    return pair if pair and tuple(question.text for question in plan.questions[:2]) == pair.asked else None


def find_pair_answer(
    plan: Plan,
    claims: Sequence[Claim],
    reader: AnswerReader,
    titles: Mapping[str, str],
    dates: Mapping[str, str],
    passages: Mapping[str, str],
) -> PairAnswer | None:
    """`titles`, `dates` and `passages` are those of the claims' documents."""
    pair = find_pair(plan)
    if pair is None:
        return None
    published = {name: date.fromisoformat(day[:10]) for name, day in dates.items() if len(day) >= 10}
    usable = [one for one in claims if one.verdict is Verdict.SUPPORTED and not one.superseded_by]
    read = [
        _read_side(pair, asked, name, usable, reader, titles, published, passages)
        for asked, name in zip(pair.asked, pair.names, strict=True)
    ]
    first, second = (_choose_side(own, other) for own, other in (read, read[::-1]))
    if pair.kind == "order":
        first = first or _date_by_document(pair.names[0], usable, titles, published)
        second = second or _date_by_document(pair.names[1], usable, titles, published)
    if first is None or second is None:
        return None
    answer = _compare_amounts(pair, first, second) if pair.kind == "more" else _compare_days(pair, first, second)
    if answer is None:
        return None
    told = (first.claim, second.claim)
    answer = answer.model_copy(
        update={
            "claims": tuple(dict.fromkeys(told)),
            "documents": tuple(dict.fromkeys((first.document, second.document))),
        }
    )
    return PairAnswer(answer, told, _tell_sides(pair, first, second))


def _read_side(
    pair: PairQuestion,
    asked: str,
    name: str,
    claims: Sequence[Claim],
    reader: AnswerReader,
    titles: Mapping[str, str],
    published: Mapping[str, date],
    passages: Mapping[str, str],
) -> list[Side]:
    """All that may tell it, where the passage or its title speaks of the side."""
    spec = AnswerSpec("number" if pair.kind == "more" else "date", "", "", (), fold(asked), asked=asked)
    places = [
        (claim, span) for claim in claims for span in claim.spans if _speaks_of(name, span.quote, titles, span.document)
    ]
    pieces = [(span.document, span.quote) for _, span in places]
    sides = []
    for options in find_options(spec, pieces, titles, passages, reader, lambda _text, _title, found: found):
        for option in options:
            claim, span = places[option.place]
            value, unit = _find_value(pair, option.text, published.get(span.document))
            if value is not None:
                start = span.start + option.stretch.start
                sides.append(Side(value, unit, option.stretch.score, claim.id, span.document, option.text, start))
    return sides


def _speaks_of(name: str, quote: str, titles: Mapping[str, str], document: str) -> bool:
    """By one of its names, or by half of its words where it has none."""
    there = set(stems(f"{titles.get(document, '')} {quote}"))
    if names := [distinctive_stems(one) for one in find_names(name)]:
        return any(has_name(one, there) for one in names)
    wanted = {stem(word) for word in content_words(name)}
    return 2 * len(wanted & there) >= len(wanted)


def _find_value(pair: PairQuestion, text: str, published: date | None) -> tuple[DayRange | float | None, str]:
    if pair.kind != "more":
        return find_days(text, published), ""
    found = [one for one in find_quantities(text) if one.kind in ("number", "money", "percent") and not one.ranged]
    return (float(found[0].value), found[0].unit) if len(found) == 1 else (None, "")


def _choose_side(own: Sequence[Side], other: Sequence[Side]) -> Side | None:
    """The likeliest value of a side, if it is likely enough beside the next. What tells the other side more surely is
    not this one's: one stretch tells one of two events."""
    taken = {(one.document, one.start): one.chance for one in other}
    free = [one for one in own if one.chance > taken.get((one.document, one.start), 0.0)]
    best = max(free, key=lambda one: one.chance, default=None)
    if best is None:
        return None
    rival = max((one.chance for one in free if not _agree(one.value, best.value)), default=0.0)
    return best if exclude_other(best.chance, rival) >= SURE else None


def _agree(one: DayRange | float, other: DayRange | float) -> bool:
    """Whether two values can both be right: a month and a day of it."""
    if isinstance(one, DayRange) and isinstance(other, DayRange):
        return one.first <= other.last and other.first <= one.last
    return one == other


def _date_by_document(
    name: str, claims: Iterable[Claim], titles: Mapping[str, str], published: Mapping[str, date]
) -> Side | None:
    """When the first document was published whose title names it."""
    told = [
        (published[span.document], claim.id, span)
        for claim in claims
        for span in claim.spans
        if span.document in published and _speaks_of(name, "", titles, span.document)
    ]
    if not told:
        return None
    day, claim, span = min(told, key=lambda one: one[0])
    return Side(DayRange(day - BEFORE_REPORT, day), "", SURE, claim, span.document, "", span.start)


def _compare_days(pair: PairQuestion, first: Side, second: Side) -> DraftAnswer | None:
    one, other = first.value, second.value
    if not isinstance(one, DayRange) or not isinstance(other, DayRange) or _agree(one, other):
        return None
    is_first = one.last < other.first
    early, late = (one, other) if is_first else (other, one)
    exact = one.is_one_day and other.is_one_day
    days = (late.first - early.first).days
    figures = (
        (DerivedFigure(value=days, operation="days", operands=(f"{early.first}", f"{late.first}")),) if exact else ()
    )
    if pair.kind == "span":
        return DraftAnswer(text=f"{days} day{'s' * (days != 1)}", claims=(), derived=figures) if exact else None
    besides = f", by {days} day{'s' * (days != 1)}" if pair.difference and exact else ""
    return DraftAnswer(text=_choose(pair, is_first == pair.rises) + besides, claims=(), derived=figures, chosen=True)


def _compare_amounts(pair: PairQuestion, first: Side, second: Side) -> DraftAnswer | None:
    one, other = first.value, second.value
    if (
        isinstance(one, DayRange)
        or isinstance(other, DayRange)
        or (first.unit != second.unit and first.unit and second.unit)
    ):
        return None
    more, less = (one, other) if pair.rises else (other, one)
    figure = DerivedFigure(value=more - less, operation="difference", operands=(more, less))
    if pair.difference == "alone":
        return DraftAnswer(text=write_number(more - less), claims=(), derived=(figure,)) if more > less else None
    if one == other and not pair.by_yes:
        return None
    besides = f", by {write_number(abs(more - less))}" if pair.difference else ""
    return DraftAnswer(text=_choose(pair, more > less) + besides, claims=(), derived=(figure,), chosen=True)


def _choose(pair: PairQuestion, holds: bool) -> str:
    if pair.by_yes:
        return "Yes" if holds else "No"
    return pair.names[0 if holds else 1]


def _tell_sides(pair: PairQuestion, first: Side, second: Side) -> DraftSentence:
    """Where each value comes from; a date that no passage tells is said to be the document's."""
    return DraftSentence(text=f"This was worked out from {_tell_side(first)} and {_tell_side(second)}.", opens=True)


def _tell_side(side: Side) -> str:
    if not isinstance(side.value, DayRange):
        return f"“{side.text}”"
    if not side.text:
        return f"the day on which a document was published, {side.value.last}"
    exact = (
        f", that is {side.value.first}" if side.value.is_one_day and f"{side.value.first.day}" not in side.text else ""
    )
    return f"“{side.text}”{exact}"
