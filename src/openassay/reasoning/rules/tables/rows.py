"""Which rows of reports a question asks for, by their words and their meaning, and their figures over the quarters."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from openassay.reasoning.rules.tables.answering import Series, SeriesPoint, bind_cell
from openassay.reasoning.rules.tables.composing import Place
from openassay.reasoning.rules.tables.features import Floats
from openassay.reasoning.rules.tables.grid import Table
from openassay.reasoning.rules.tables.matching import Question, fit_table, tokenize
from openassay.reasoning.rules.tables.model import load_model
from openassay.reasoning.rules.tables.periods import Period
from openassay.text.questions import ASKING
from openassay.text.words import stem, words

_CLAUSE, _CLAUSE_WORDS = re.compile(r"[,;?]\s+(?:and\s+)?"), 3  # each may ask for a row of its own
_MOST_EMBEDDED = 80  # rows, those with most words of the question
_SMALL_WORDS = frozenset(
    stem(word)
    for word in "q1 q2 q3 q4 quarter quarterly period filing 10-q 10-k level first second third fourth month months "
    "three six nine ended ending fiscal january february march april may june july august september october november "
    "december".split()
)
_ASKING = (ASKING | _SMALL_WORDS) - {stem("expensive")}  # the stem of expenses
_WHOLE = frozenset(map(stem, ("total", "net")))  # an unqualified question is about the whole
_COVERED, _NEAR = 0.75, 0.75  # of a row that is named besides: the share of its words, and of the score of the first
_MOST_ROWS = 3  # that are told
# How sharply the score tells rows apart, how far behind the best one a row is told that is a third as likely, and how
# likely the best is right: a constant, by its wording, by its chance among all. Learned from 966 questions of TAT-QA
# (benchmarks/train_row_weights.py).
_SHARPNESS, _AS_GOOD, _CONFIDENCE = 5.5, 0.22, (-3.07, 1.0, 4.46)
Embed = Callable[[Sequence[str]], Floats]
RowName = tuple[str, str]  # group and label


class Report(Protocol):
    """What is asked for its rows."""

    @property
    def name(self) -> str: ...
    @property
    def company(self) -> str: ...
    @property
    def tables(self) -> tuple[Table, ...]: ...
    @property
    def period(self) -> Period: ...
    @property
    def paragraphs(self) -> tuple[str, ...]: ...


class RowSigns(NamedTuple):
    """What speaks for a row, each from 0 to 1."""

    words: float  # how its words fit those of the question
    covers: float  # the share of the question's words that it has, or what it stands under
    covered: float  # the share of its words that the question has
    likeness: float  # in meaning
    group: float  # the share of the words it stands under that the question has not
    quarterly: float  # told of the quarter itself, or of the day it ended
    scaled: float  # an amount, and no share or count
    early: float  # how far ahead in the report: the statements come first
    everywhere: float  # the share of the reports that have it
    whole: float  # a total, where no part is asked for


WEIGHTS = RowSigns(
    words=1.0,
    covers=0.6,
    covered=0.2,
    likeness=0.8,
    group=-0.1,
    quarterly=0.3,
    scaled=0.05,
    early=0.1,
    everywhere=0.3,
    whole=0.05,
)


def rate_row(signs: RowSigns) -> float:
    return sum(weight * sign for weight, sign in zip(WEIGHTS, signs, strict=True))


class RatedRow(NamedTuple):
    name: RowName
    signs: RowSigns
    stems: frozenset[str]  # of the question, that it has
    points: tuple[SeriesPoint, ...]

    @property
    def score(self) -> float:
        return rate_row(self.signs)


class _FoundRow(NamedTuple):
    name: RowName
    signs: RowSigns
    stems: frozenset[str]
    score: float
    point: SeriesPoint


def read_rows(question: Question, reports: Sequence[Report], embed: Embed | None) -> list[Series]:
    """The row that is asked about, from each report for its own quarter; then one that is named besides, and those that
    fit about as well; nothing where no report has rows."""
    rated = _drop_copies(rate_rows(question, reports, embed))
    confidence = rate_choice(rated)
    return [Series(": ".join(part for part in one.name if part), one.points, confidence) for one in _choose_rows(rated)]


def _drop_copies(rated: Sequence[RatedRow]) -> list[RatedRow]:
    """Without rows whose figures a better one has: several tables of a report tell the same."""
    kept = dict[tuple[float, ...], RatedRow]()
    for one in rated:
        kept.setdefault(tuple(abs(point.value) for point in one.points), one)
    return list(kept.values())


def _choose_rows(rated: Sequence[RatedRow]) -> list[RatedRow]:
    if not rated:
        return []
    best, *others = rated
    near = [one for one in others if one.score >= best.score - _AS_GOOD]
    named = [one for one in others if one.signs.covered >= _COVERED and one.score >= _NEAR * best.score]
    fresh = [one for one in named if one.stems - best.stems and one.name[1] != best.name[1]]
    # What is named besides is told in words that the first row has not: "revenue" is no second word for costs.
    fresh.sort(key=lambda one: -len(one.stems - best.stems) / len(one.stems))
    return list(dict.fromkeys([best, *fresh[:1], *near]))[:_MOST_ROWS]


def rate_choice(rated: Sequence[RatedRow]) -> float:
    """How likely the first row is the one that is asked for: by its words, and how far the others are behind. One that
    has no word of the question is not: it may be the nearest in meaning of very few."""
    if not rated or not rated[0].stems:
        return 0.0
    best = rated[0]
    chance = 1 / sum(math.exp(_SHARPNESS * (one.score - best.score)) for one in rated)
    bias, by_wording, by_chance = _CONFIDENCE
    return 1 / (1 + math.exp(-(bias + by_wording * rate_wording(best.signs) + by_chance * chance)))


def rate_wording(signs: RowSigns) -> float:
    """What the words and the meaning of a row speak for it, wherever it stands."""
    return rate_row(signs._replace(quarterly=0.0, scaled=0.0, early=0.0, everywhere=0.0))


def rate_rows(question: Question, reports: Sequence[Report], embed: Embed | None) -> list[RatedRow]:
    """The rows of all reports, best first. A row is one over all reports where it has one name in them, so that a
    balance is not followed by a flow of the same label."""
    plain = _drop_asking(question)
    by_report = [_find_rows(_ask_period(plain, one.period), one) for one in reports]
    names = dict[RowName, list[_FoundRow]]()
    for found in by_report:
        for one in _take_best(found):
            names.setdefault(one.name, []).append(one)
    ranked = sorted(names, key=lambda name: -max(one.score for one in names[name]))[:_MOST_EMBEDDED]
    likeness = _compare_meaning(question, plain, ranked, embed) if embed else {}
    rated = list[RatedRow]()
    for name in ranked:
        rows = names[name]
        best = max(rows, key=lambda one: one.score).signs
        near = max(likeness.get(name, 0.0), min(best.covers, best.covered))  # "revenue" is what "net sales" says
        signs = best._replace(likeness=near, everywhere=len(rows) / len(reports))
        rated.append(RatedRow(name, signs, rows[0].stems, tuple(one.point for one in rows)))
    return sorted(rated, key=lambda one: -one.score)


def _take_best(found: Sequence[_FoundRow]) -> list[_FoundRow]:
    best = dict[RowName, _FoundRow]()
    for one in found:
        if one.name not in best or one.score > best[one.name].score:
            best[one.name] = one
    return list(best.values())


def _drop_asking(question: Question) -> Question:
    """Without words of asking, which say nothing of the row."""
    tokens = tuple(token for token in question.tokens if token.stem not in _ASKING)
    if not tokens:
        return question
    return replace(question, tokens=tokens, stems=frozenset(token.stem for token in tokens))


def _ask_period(question: Question, period: Period) -> Question:
    """The question asked of a report's own period, or of the months up to its end that the question names."""
    if length := next((one.months for one in question.periods if one.months), 0):
        period = period._replace(months=length)
    return replace(question, periods=(period,), years=(period.year,))


def _compare_meaning(
    question: Question, plain: Question, names: Sequence[RowName], embed: Embed
) -> dict[RowName, float]:
    """How near each row is in meaning to a clause of the question, or to its words that tell."""
    if not names:
        return {}
    clauses = [part for part in _CLAUSE.split(question.text) if len(part.split()) >= _CLAUSE_WORDS] or [question.text]
    kept = plain.stems
    cores = [" ".join(word for word in words(clause) if stem(word) in kept) for clause in clauses]
    asked = embed([*clauses, *filter(None, cores)])
    near = (embed([" ".join(part for part in name if part) for name in names]) @ asked.T).max(axis=1)
    return dict(zip(names, near.tolist(), strict=True))


def _find_rows(question: Question, report: Report) -> list[_FoundRow]:
    """Rows that have a figure of the period that is asked for."""
    found, plain = list[_FoundRow](), load_model().weigh

    def weigh(word: str) -> float:
        return 0.0 if word in _WHOLE and word not in question.stems else plain(word)

    total = sum(map(plain, question.stems)) or 1.0
    for place, table in enumerate(report.tables):
        fit = fit_table(question, table, weigh)
        columns = [at for at, match in enumerate(fit.columns) if match.asked == 1.0]
        own_quarter = bool(columns)
        if not own_quarter:  # what is told of nine months alone, as flows of cash are
            ended = report.period[:3]
            columns = [at for at, match in enumerate(fit.columns) if any(one[:3] == ended for one in match.periods)]
        columns.sort(key=lambda at: -fit.columns[at].line.score)
        for number, (match, row) in enumerate(zip(fit.rows, table.rows, strict=True)):
            cells = [(at, cell.value) for at in columns if (cell := row.cells[at]) is not None and cell.value]
            if not cells:
                continue
            at, value = cells[0]
            around = {token.stem for token in tokenize(row.group)}
            strange = {question.same.get(one, one) for one in around} - question.stems
            signs = RowSigns(
                words=match.score,
                covers=sum(map(plain, match.stems)) / total,
                covered=match.covered,
                likeness=0.0,
                group=len(strange) / len(around) if around else 0.0,
                quarterly=float(own_quarter or not any(one.months for one in fit.columns[at].periods)),
                scaled=float(bool(row.unit)),
                early=1 / (1 + place / 4),
                everywhere=1.0,
                whole=float(row.is_total and not strange),
            )
            bound = bind_cell(table, Place(number, at), report.paragraphs, report.name)
            point = SeriesPoint(table.heads[at], value.number, bound)
            name = row.group.lower(), row.label.lower()
            found.append(_FoundRow(name, signs, match.stems, rate_row(signs), point))
    return found
