"""Sentences that follow from several claims: what they compute is computed again, and every other figure has to stand
in what they rest on. Whether a sentence follows is a judge's to say; what is wrong here no judge can mend."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date

from openassay.models.evidence import Claim
from openassay.models.report import DerivedFigure
from openassay.text.words import fold
from openassay.verification.figures import find_numbers_by_day
from openassay.verification.polarity import StatementProblem
from openassay.verification.statement_check import extract_numbers

# Of a figure that was computed: what rounding to a tenth or to three digits may leave.
ROUNDED, SHARE_ROUNDED = 0.051, 0.006
_VERSION = re.compile(r"(?<!\w)v(\d+(?:\.\d+)+)\b")
_SHORT, _LETTERS = re.compile(r"(?<![\w.,])(\d{1,3}(?:\.\d)?)([kKmM])\b"), {"k": 1e3, "m": 1e6}
_SPAN, YEARS = re.compile(r"(?<![\w.,])(\d{1,3})[ -]years?\b"), range(1000, 2101)
_DIGITS = re.compile(r"\d{1,9}")
MOST_STEPS = 3  # of a calculation whose operands are computed themselves
PER_CENT = 100.0  # the whole that what is left of a share is computed from


def compute_figure(figure: DerivedFigure) -> float | None:
    """What a figure must be by its operation and operands; None where they make none."""
    of = figure.operands
    if figure.operation == "count":
        return float(len(set(of)))
    if figure.operation == "days":
        days = [_read_day(one) for one in of]
        return float((days[1] - days[0]).days) if len(days) == 2 and days[0] and days[1] else None
    values = [float(one) for one in of if isinstance(one, int | float)]
    if len(values) != len(of) or len(values) < 2:
        return None
    first, second = values[0], values[1]
    match figure.operation:
        case "sum":
            return sum(values)
        case "average":
            return sum(values) / len(values)
        case "difference":
            return first - second
        case "ratio":
            return first / second if second else None
        case "share":
            return 100 * first / second if second else None
        case "percent_change":
            return 100 * (second - first) / first if first else None


def tell_figure(figure: DerivedFigure) -> str:
    """Say how a figure comes about, as it is shown to a judge."""
    operands = ", ".join(f"{one:g}" if isinstance(one, int | float) else one for one in figure.operands)
    name = figure.operation.replace("_", " ")
    return f"{figure.value:g} is the {name} of {operands}."


def shorten_claim(text: str, head: str) -> str:
    """A claim and where it is from, without its quotes; `head` is a document's title, publisher and date."""
    return f"{text} ({head})" if head else text


def is_same_figure(told: float, value: float) -> bool:
    """Whether a figure is what it was computed to be, as it may be rounded."""
    return abs(abs(value) - abs(told)) <= max(ROUNDED, SHARE_ROUNDED * abs(value))


SCALES = (1, 1e3, 1e6, 1e9)


def settle_figure(figure: DerivedFigure, claims: Sequence[Claim]) -> DerivedFigure:
    """Return a figure as it can be computed again: exact where it was told rounded, and its operands as the passages
    spell them, which have "1.2 million" where a writer computes a share with 1200000."""
    value = compute_figure(figure)
    if value is not None and abs(figure.value) in list_roundings(abs(value)):
        figure = figure.model_copy(update={"value": round(value, 4)})
    numbers = [one for one in figure.operands if isinstance(one, int | float)]
    if figure.operation in ("ratio", "share", "percent_change") and len(numbers) == len(figure.operands):
        given = {
            number for claim in claims for span in claim.spans for number in extract_numbers(span.quote, worded=True)
        }
        for scale in SCALES:
            spelled = tuple(round(number / scale, 9) for number in numbers)
            if {abs(number) for number in spelled} <= given:
                return figure.model_copy(update={"operands": spelled})
    return figure


def settle_figures(text: str, derived: Sequence[DerivedFigure], claims: Sequence[Claim]) -> tuple[DerivedFigure, ...]:
    """Settle the figures of a sentence. One that is told in words ("half of it", "eight releases later") and computed
    from another of them, from the whole of 100 per cent or from a part of a number ("v1.34") is computed again here and
    not told: a reader could find no such operand in the passages. It stays where it is wrong, or its operands come from
    nowhere, and is refused for that."""
    told = extract_numbers(text, worded=False)
    derived = (*derived, *derive_years(text, derived, claims))
    plain = find_given_numbers(text, claims, {})
    settled = [flatten_figure(settle_figure(figure, claims), derived, plain) for figure in derived]
    known = plain | {PER_CENT} | _find_digits(claims)
    known |= {value for figure in settled if is_right(figure) for value in list_roundings(abs(figure.value))}

    def is_step(figure: DerivedFigure) -> bool:
        numbers = {abs(one) for one in figure.operands if isinstance(one, int | float)}
        in_words = not told & set(list_roundings(abs(figure.value)))
        return in_words and not numbers <= plain and numbers <= known and is_right(figure)

    return tuple(figure for figure in settled if not is_step(figure))


def derive_years(text: str, derived: Sequence[DerivedFigure], claims: Sequence[Claim]) -> Iterator[DerivedFigure]:
    """Work out the spans of years that a sentence tells, that no passage has and that its writer did not explain, where
    two years of its passages lie so far apart. Whether it is these that are meant is a judge's to say."""
    quoted = {number for claim in claims for one in claim.spans for number in extract_numbers(one.quote, worded=True)}
    years = sorted(number for number in quoted if number.is_integer() and number in YEARS)
    known = quoted | {abs(figure.value) for figure in derived}
    for span in dict.fromkeys(float(found) for found in _SPAN.findall(text)):
        apart = next(((last, first) for first in years for last in years if last - first == span), None)
        if apart and span not in known:
            yield DerivedFigure(value=span, operation="difference", operands=apart)


def flatten_figure(figure: DerivedFigure, others: Sequence[DerivedFigure], given: Collection[float]) -> DerivedFigure:
    """A sum or difference of what was itself summed up, as one sum of numbers that stand in passages."""
    parts = {abs(one.value): one for one in others if one.operation in ("sum", "difference") and is_right(one)}

    def expand(one: DerivedFigure, sign: float, depth: int) -> Iterator[float]:
        for position, operand in enumerate(one.operands):
            value = float(operand)
            own = -sign if one.operation == "difference" and position else sign
            part = parts.get(abs(value))
            if abs(value) in given or part is None or part is one or not depth:
                yield own * value
            else:
                yield from expand(part, own if part.value == value else -own, depth - 1)

    numbers = all(isinstance(one, int | float) for one in figure.operands)
    if figure.operation not in ("sum", "difference") or not numbers or not is_right(figure):
        return figure
    flat = tuple(expand(figure, 1, MOST_STEPS))
    if len(flat) <= len(figure.operands) or not {abs(one) for one in flat} <= set(given):
        return figure
    return figure.model_copy(update={"operation": "sum", "operands": flat})


def spell_numbers(text: str, claims: Sequence[Claim]) -> str:
    """A sentence with versions and thousands as its passages spell them: "v1.36" for "1.36" and "370k" for "370,000",
    which a reader would not find there."""
    quotes = " ".join(
        [*(span.quote for claim in claims for span in claim.spans), *(i.value for c in claims for i in c.context)]
    )
    versions = set(_VERSION.findall(quotes))
    plain = {number for number in versions if re.search(rf"(?<![\w.]){re.escape(number)}(?![\d.]*\d)", quotes)}
    for number in sorted(versions - plain, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.$€£]){re.escape(number)}(?![\d.]*\d|%)", f"v{number}", text)
    for number, letter in dict.fromkeys(_SHORT.findall(quotes)):
        whole = f"{float(number) * _LETTERS[letter.lower()]:,.0f}"
        if not re.search(rf"(?<![\d,.]){whole}(?![\d,.]*\d)", quotes):
            text = re.sub(rf"(?<![\d,.]){whole}(?![\d,.]*\d)", number + letter, text)
    return text


def _find_digits(claims: Sequence[Claim]) -> set[float]:
    """Digits that stand together in passages, be it as a part of a number or a name."""
    return {float(run) for claim in claims for span in claim.spans for run in _DIGITS.findall(span.quote)}


def is_right(figure: DerivedFigure) -> bool:
    value = compute_figure(figure)
    return value is not None and is_same_figure(figure.value, value)


def list_roundings(value: float) -> tuple[float, ...]:
    """A figure as it may be told: a half goes up or down."""
    return value, round(value, 1), float(round(value)), float(math.floor(value + 0.5))


def _read_day(text: float | str) -> date | None:
    try:
        return date.fromisoformat(str(text)[:10])
    except ValueError:
        return None


def check_synthesis(
    text: str,
    claims: Sequence[Claim],
    derived: Sequence[DerivedFigure],
    published: Mapping[str, date],
    known: Collection[float] = (),
) -> Iterator[StatementProblem]:
    """Find what keeps a sentence that draws claims together from being published. `published`: when the documents
    were, by hash; `known`: numbers that stand elsewhere in these."""
    if len({claim.id for claim in claims}) < 2:
        yield StatementProblem("scope", "it rests on fewer than two claims")
    yield from check_numbers(text, claims, derived, published, known)


def check_numbers(
    text: str,
    claims: Sequence[Claim],
    derived: Sequence[DerivedFigure],
    published: Mapping[str, date],
    known: Collection[float] = (),
) -> Iterator[StatementProblem]:
    """Find the numbers of a sentence that neither stand in what it rests on nor come about as it says."""
    given = find_given_numbers(text, claims, published) | set(known)
    for figure in derived:
        yield from _check_figure(figure, claims, given)
    told = {value for figure in derived for value in list_roundings(abs(figure.value))}
    strange = sorted(extract_numbers(text, worded=False) - given - told)
    if strange:
        shown = ", ".join(f"{number:.15g}" for number in strange)
        yield StatementProblem("figure", f"{shown} stands in no passage, and `derived` does not say how it comes about")


# All that a sentence may say of a calculation besides what its claims say; a word by how it begins.
_CALCULATING = "change differ come went less share ratio together point average times percent"


def check_calculation(
    text: str, claims: Sequence[Claim], derived: Sequence[DerivedFigure]
) -> Iterator[StatementProblem]:
    """Find what keeps a sentence that does nothing but calculate from being published without a judge: figures that do
    not come about, and any word that neither its claims have nor tells of a calculation."""
    yield from check_synthesis(text, claims, derived, {})
    known = "\n".join((*(claim.text for claim in claims), *(s.quote for claim in claims for s in claim.spans)))
    strange = {word for word in list_content(text) - list_content(known) if not word.startswith(_STEMS_OF_CALCULATING)}
    if strange:
        yield StatementProblem("scope", f"it says more than its calculation: {', '.join(sorted(strange))}")


_STEMS_OF_CALCULATING = tuple(word[:6] for word in _CALCULATING.split())


# Of the words of a sentence that stand in its passages: less, and it speaks of something else. Of a fact more do.
LEAST_SHARED, LEAST_TOLD = 1 / 6, 1 / 3
_WORD = re.compile(r"[^\W\d_]{3,}")
_PLAIN = frozenset(
    "the and for with from that this was were are has have had its their his her into over under than then them they "
    "who whom which when where while also been being not nor but per about after before between during more most less "
    "least very such each".split()
)


def has_common_words(text: str, quotes: Sequence[str], least: float = LEAST_SHARED) -> bool:
    """Whether a sentence is about its passages at all; the words of a synthesis are free."""
    said = list_content(text)
    return not said or len(said & list_content(" ".join(quotes))) >= least * len(said)


def list_content(text: str) -> set[str]:
    """The words of a text that say something, by how they begin."""
    return {word[:6] for word in _WORD.findall(text.lower()) if word not in _PLAIN}


def find_given_numbers(text: str, claims: Sequence[Claim], published: Mapping[str, date]) -> set[float]:
    """The numbers that a sentence may use as they stand: of its passages, of what its sources say of themselves, and
    days that these tell by the day on which they were published."""
    given = set[float]()
    for claim in claims:
        quotes = "\n".join(span.quote for span in claim.spans)
        given |= extract_numbers(quotes, worded=True)
        for item in claim.context:
            given |= extract_numbers(item.value, worded=True)
        dated = {item.document for item in claim.context if item.field == "published"}
        for name in dated & published.keys():
            given |= find_numbers_by_day(text, quotes, published[name])
    return given


def _check_figure(
    figure: DerivedFigure, claims: Sequence[Claim], given: Collection[float]
) -> Iterator[StatementProblem]:
    value = compute_figure(figure)
    if value is None:
        yield StatementProblem("figure", f"{figure.value:g} cannot be computed as it says ({figure.operation})")
    elif not is_same_figure(figure.value, value):
        yield StatementProblem("figure", f"{figure.value:g} comes to {value:g} ({figure.operation})")
    if figure.operation == "count":
        known = {claim.id for claim in claims}
        texts = fold("\n".join((*(claim.text for claim in claims), *(s.quote for c in claims for s in c.spans))))
        strange = [one for one in figure.operands if one not in known and fold(str(one)) not in texts]
    else:
        strange = [one for one in figure.operands if isinstance(one, int | float) and abs(float(one)) not in given]
    if strange:
        shown = ", ".join(str(one) for one in strange)
        yield StatementProblem("figure", f"{shown}, from which {figure.value:g} is computed, stands in no passage")
