"""The table of key figures: one row a fact, every value spelled as in the passage it comes from."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from assay.model.claim import Claim, Mark, Verdict
from assay.model.report import KeyFigure
from assay.reasoning.protocol import Draft
from assay.text.overlap import jaccard
from assay.text.quantities import Quantity, quantities
from assay.text.relations import Measure, measure
from assay.text.sentences import is_row, sentences
from assay.text.words import content_words

MOST, FEWEST = 12, 2
MOST_CITED = 4
MOST_WORDS = 4  # of a value in a table
LONGEST = 12  # words that say what a figure is of
ONE_FACT = 0.5  # rows with one value whose words are more alike than this
SURER = 0.1  # of relevance

_CLAUSE = re.compile(r"[;:]\s|,?\s(?:while|whereas|but|although)\s|\.\s")
_OPENING = re.compile(
    r"^(?:(?:in|during|by|since|as of|for)\s(?:(?:the\s)?(?:fiscal\s)?(?:year\s)?(?:early\s|late\s|mid-)?"
    r"(?:[A-Z][a-z]+\s(?:\d{1,2},?\s)?)?\d{4}),?\s|(?:and|but|also|however|today|overall),?\s)",
    re.I,
)
_TRAILING = re.compile(
    r"[\s,(]+(?:of|at|to|by|was|is|were|are|be|been|about|around|approximately|nearly|almost|over|under|more|less|than|some|"
    r"roughly|an?|the|with|for|from|in|on|as|up|just|only|estimated|and|or|between|that|which|its|their|equal|equals)$",
    re.I,
)
_AFTER = re.compile(r"^\s*(?:of|in|on|for)?\s*((?:[^\s,;.]+\s?){1,10})")
_COMPOUND = re.compile(r"(?:[-/][^\W\d_][\w-]*)+")  # the rest of "megawatt-hour"
_COUNTED = re.compile(r"\s(?:standard\s)?(?![A-Z])[^\W\d_][\w'’-]*")  # "people", and not the "Type" of "42 Type Ia"


class Row(NamedTuple):
    claim: Claim
    what: str
    value: str
    when: str


def key_figures(draft: Draft, claims: Mapping[str, Claim], ids: Mapping[str, str]) -> tuple[KeyFigure, ...]:
    """From what the draft tells, in its order; `ids` are the sources' by document. One figure alone makes no table."""
    told = dict.fromkeys(id for section in draft.sections for sentence in section.sentences for id in sentence.claims)
    bound = [claims[id] for id in told if id in claims]
    rows = list(_rows([claim for claim in bound if claim.verdict is Verdict.SUPPORTED and not claim.superseded_by]))
    best = sorted(rows, key=lambda row: (-_worth(row.claim), row.claim.id))
    chosen = _distinct(best)[:MOST]
    if len(chosen) < FEWEST:
        return ()
    return tuple(_figure(row, ids) for row in rows if row in chosen)


def _worth(claim: Claim) -> float:
    return claim.relevance + SURER * (claim.mark is Mark.CORROBORATED)


def _distinct(rows: Sequence[Row]) -> list[Row]:
    kept: list[Row] = []
    for row in rows:
        if not any(row.value == other.value and jaccard(row.what, other.what) >= ONE_FACT for other in kept):
            kept.append(row)
    return kept


def _rows(claims: Sequence[Claim]) -> Iterator[Row]:
    for claim in claims:
        row = _cell(claim) if is_row(claim.text) else _stated(claim)
        if row and row.what and any(letter.isdigit() for letter in row.value) and _stands(row.value, claim):
            yield row


def _stated(claim: Claim) -> Row | None:
    found = measure(claim.text)
    return Row(claim, _what(claim.text, found), _value(claim.text, found), _when(claim, found)) if found else None


def _cell(claim: Claim) -> Row | None:
    """The first figure of a row of a table, under its heading."""
    head, dash, cells = claim.text.partition(" — ")
    label, colon, rest = (cells if dash else claim.text).partition(": ")
    value = rest.partition(";")[0].rstrip(".").strip()
    if not colon or len(head.split()) > LONGEST or len(value.split()) > MOST_WORDS:
        return None
    dated = any(quantity.kind in ("year", "date") for quantity in quantities(label))
    if dash:
        return Row(claim, head.strip(), value, label if dated and _stands(label, claim) else "")
    return Row(claim, label.strip(), value, "")


def _value(text: str, found: Measure) -> str:
    """With the whole of its unit, or with what it counts where it has none."""
    more = (_COUNTED if found.counts else _COMPOUND).match(text, found.end)
    return text[found.start : more.end() if more else found.end].strip()


def _stands(value: str, claim: Claim) -> bool:
    return any(value in " ".join(span.quote.split()) for span in claim.spans)


def _what(text: str, found: Measure) -> str:
    """The words that lead up to a figure, else those that follow it."""
    before = _CLAUSE.split(text[: found.start])[-1].strip()
    before = _trimmed(_OPENING.sub("", before))
    if len(content_words(before)) >= 2:
        words = before.split()
        return before if len(words) <= LONGEST else f"… {' '.join(words[-LONGEST:])}"
    after = _AFTER.match(text[found.end :])
    return _trimmed(f"{before} {after[1]}".strip()) if after else ""


def _trimmed(text: str) -> str:
    while (shorter := _TRAILING.sub("", text)) != text:
        text = shorter
    return text.strip(" ,(")


def _when(claim: Claim, found: Measure) -> str:
    """The date nearest to the figure in its own sentence, as it is spelled."""
    own = next((p for p in sentences(claim.text) if p.start <= found.start < p.end), None)
    start, end = (own.start, own.end) if own else (0, len(claim.text))
    dated = [q for q in quantities(claim.text) if q.kind in ("year", "date", "decade")]
    dates = [q for q in dated if start <= q.start < end]

    def apart(date: Quantity) -> int:
        return min(abs(date.start - found.end), abs(found.start - date.end))

    nearest = min(dates, key=apart, default=None)
    spelled = claim.text[nearest.start : nearest.end].strip() if nearest else ""
    return spelled if spelled and _stands(spelled, claim) else ""


def _figure(row: Row, ids: Mapping[str, str]) -> KeyFigure:
    claim = row.claim
    spelled = [span for span in claim.spans if row.value in " ".join(span.quote.split())]
    return KeyFigure(
        what=row.what,
        value=row.value,
        when=row.when,
        claims=(claim.id,),
        citations=tuple(dict.fromkeys(ids[span.document] for span in spelled if span.document in ids))[:MOST_CITED],
        mark=claim.mark,
        disputed=bool(claim.disputed_by),
    )
