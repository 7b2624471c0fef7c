"""How well the rows and columns of a table fit a question: by the words of the label, of the heads over it, and by
the periods that both name."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from openassay.reasoning.rules.tables.grid import Row, Table
from openassay.reasoning.rules.tables.periods import Period, find_periods, find_years
from openassay.text.words import STOP_WORDS, fold, stem

_TOKEN = re.compile(r"[^\W_]+(?:['’.&][^\W_]+)*|%")
_NUMBER = re.compile(
    r"[$€£]?\s?(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)\s*(%|percent|thousands?|millions?|billions?)?", re.I
)
_UNIT_WORDS = re.compile(r"\((?:dollars? |amounts? |[$€£] ?)?in (?:thousands|millions|billions)[^()]*\)", re.I)
# Words that tell one row or column from another, though other texts would be the same without them.
_KEPT = frozenset("other less more below above after before between over under most within per".split())
_SKIPPED = STOP_WORDS - _KEPT
_ACRONYM, _LETTERS = re.compile(r"\b[A-Z](?:&?[A-Z]){1,4}\b"), re.compile(r"[^A-Za-z]")
Weigh = Callable[[str], float]


class Token(NamedTuple):
    stem: str
    start: int


def tokenize(text: str) -> list[Token]:
    """Words that carry meaning, with their places; years and other figures are periods and limits, not words."""
    found = []
    for match in _TOKEN.finditer(fold(text)):
        word = match[0]
        if word not in _SKIPPED and not word[0].isdigit() and len(word) > 1:
            found.append(Token(stem(word), match.start()))
    return found


@dataclass(frozen=True)
class Question:
    """A question as tables are asked: its words, periods, and the figures it compares with."""

    text: str
    tokens: tuple[Token, ...] = ()
    stems: frozenset[str] = frozenset()
    periods: tuple[Period, ...] = ()
    years: tuple[int, ...] = ()
    limits: tuple[float, ...] = ()
    same: Mapping[str, str] = field(default_factory=dict)  # words that stand for one of its own
    acronyms: Mapping[str, str] = field(default_factory=dict)  # letters, and the stem they are among its words

    @classmethod
    def parse(cls, text: str, find_synonyms: Callable[[str], frozenset[str]] = lambda word: frozenset()) -> "Question":
        tokens = tuple(tokenize(text))
        limits = [
            float(match[1].replace(",", ""))
            for match in _NUMBER.finditer(text)
            if not re.fullmatch(r"(?:19|20)\d\d", match[1])
        ]
        stems = frozenset(token.stem for token in tokens)
        same = {other: token.stem for token in tokens for other in find_synonyms(token.stem) if other not in stems}
        acronyms = {_LETTERS.sub("", found).lower(): stem(fold(found)) for found in _ACRONYM.findall(text)}
        return cls(text, tokens, stems, find_periods(text), tuple(find_years(text)), tuple(limits), same, acronyms)


class LineMatch(NamedTuple):
    """How a row or a column fits: `covered` is the share of its own words that the question has, `covers` the share of
    the question's words that it has, `phrase` the share of its words in the longest run that stands in both."""

    covered: float
    covers: float
    phrase: float
    group: float  # the share of the question's words that its groups have
    is_whole: bool  # every word of the label stands in the question, in one run
    start: int  # where in the question it begins; -1 nowhere
    stems: frozenset[str]  # of the question, that the label, the group and the heads have

    @property
    def score(self) -> float:
        mean = 2 * self.covered * self.covers / (self.covered + self.covers) if self.covers else 0.0
        return 0.45 * mean + 0.35 * self.covered + 0.15 * self.phrase + 0.15 * self.group


def match_line(question: Question, label: str, group: str, weigh: Weigh) -> LineMatch:
    """Hold the label of a row, or the head of a column, against a question."""
    own = [question.same.get(token.stem, token.stem) for token in tokenize(_UNIT_WORDS.sub("", label))]
    for letters, short in question.acronyms.items():
        place = "".join(word[0] for word in own).find(letters)
        if place >= 0:  # "Research and development" is the R&D that is asked for
            own[place : place + len(letters)] = [short]
    around = {question.same.get(token.stem, token.stem) for token in tokenize(group)}
    asked = sum(map(weigh, question.stems)) or 1.0
    shared = question.stems & set(own)
    weight = sum(map(weigh, set(own)))
    length, start = _find_longest_run([token.stem for token in question.tokens], own)
    place = question.tokens[start].start if length else -1
    return LineMatch(
        covered=sum(map(weigh, shared)) / weight if weight else 0.0,
        covers=sum(map(weigh, shared)) / asked,
        phrase=length / len(own) if own else 0.0,
        group=sum(map(weigh, question.stems & (around - set(own)))) / asked,
        is_whole=bool(own) and length == len(own),
        start=place,
        stems=question.stems & (set(own) | around),
    )


def _find_longest_run(asked: Sequence[str], own: Sequence[str]) -> tuple[int, int]:
    """Length and place in the question of the longest run of words that both have."""
    best, place = 0, 0
    ends = [0] * (len(own) + 1)
    for at, word in enumerate(asked):
        fresh = [0] * (len(own) + 1)
        for number, other in enumerate(own):
            if word == other:
                fresh[number + 1] = ends[number] + 1
                if fresh[number + 1] > best:
                    best, place = fresh[number + 1], at + 1 - fresh[number + 1]
        ends = fresh
    return best, place


class ColumnMatch(NamedTuple):
    line: LineMatch
    periods: tuple[Period, ...]
    year: int  # the last year of its head; 0 for none
    asked: float  # 1: the question names this period; .5: its year, of another part; 0: it does not
    start: int  # where in the question it is named; -1 nowhere
    kind: str  # its head without the period


_PERIOD_WORDS = re.compile(
    r"(?:\b(?:19|20)\d\d\b|\b(?:fiscal|years?|months?|quarters?|weeks?|three|six|nine|twelve|ended|ending|as|of|at|for|the|"
    r"first|second|third|fourth|fy\d*|january|february|march|april|may|june|july|august|september|october|november|"
    r"december)\b|[\d,.():])+",
    re.I,
)


def match_column(question: Question, head: str, weigh: Weigh) -> ColumnMatch:
    """Hold the head of a column against a question."""
    periods = find_periods(head)
    years = find_years(head)
    year = years[-1] if years else 0
    kind = " ".join(_PERIOD_WORDS.sub(" ", _UNIT_WORDS.sub("", head)).split())
    line = match_line(question, kind, "", weigh)
    months = max((period.months for period in periods), default=0)
    kind = f"{kind} {months}" if months else kind
    asked, start = 0.0, line.start
    for wanted in question.periods:
        if any(own.holds(wanted) for own in periods):
            asked = max(asked, 1.0)
    if not asked and _is_start_of_next(periods) and year - 1 in question.years and year not in question.years:
        asked, year = 1.0, year - 1  # "January 3, 2020" ends the year 2019
    if not asked and year in question.years:
        of_year = [wanted for wanted in question.periods if wanted.year == year]
        asked = 0.5 if of_year else 0.7  # another part of a year that is named; a year within a range
    if asked and year:
        place = re.search(rf"{year}|\b(?:FY|['’]){year % 100:02}\b", question.text)
        start = place.start() if place else start
    return ColumnMatch(line, periods, year, asked, start, kind.lower())


def _is_start_of_next(periods: Sequence[Period]) -> bool:
    return any(period.month == 1 and period.day <= 10 for period in periods)


@dataclass(frozen=True)
class Fit:
    """A table held against a question."""

    question: Question
    table: Table
    rows: tuple[LineMatch, ...]
    columns: tuple[ColumnMatch, ...]
    order: tuple[int, ...] = field(default=())  # of rows, best first


def fit_table(question: Question, table: Table, weigh: Weigh) -> Fit:
    """Hold each row and column of a table against a question."""
    rows = tuple(match_row(question, row, weigh) for row in table.rows)
    columns = tuple(match_column(question, head, weigh) for head in table.heads)
    order = sorted(range(len(rows)), key=lambda number: (-rows[number].score, number))
    return Fit(question, table, rows, columns, tuple(order))


def match_row(question: Question, row: Row, weigh: Weigh) -> LineMatch:
    """Hold a row against a question; one without a label is the total of its group."""
    label = row.label or f"total {row.group}"
    return match_line(question, label, row.group, weigh)
