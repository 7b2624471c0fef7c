"""Which of several reports a question means, by company and quarter, and its answer from them: of one report a figure,
of all of them a row over the quarters."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from openassay.reasoning.rules.tables.answering import (
    Series,
    TableAnswer,
    answer_parsed,
)
from openassay.reasoning.rules.tables.grid import Table
from openassay.reasoning.rules.tables.matching import Question
from openassay.reasoning.rules.tables.periods import Period, find_periods
from openassay.reasoning.rules.tables.reading import read_tables
from openassay.reasoning.rules.tables.rows import Embed, read_rows
from openassay.text.words import find_names, fold, stem, words

_LATEST = re.compile(r"\b(?:latest|newest|most recent|last|current)\b", re.I)
_JOINTS = re.compile(r"\b(?:to|and|from|with|than|versus|vs)\b")
_QUARTER_MONTHS = 3
_COMPANY = re.compile(r"; Company: ([^;\n]+)")
_LEAD = 1_500  # characters that tell what a document is about
_MOST_AROUND = 60  # lines of a document that are all around its tables
_NAME_WORDS = 1  # of a company's name: "Apple Inc." is Apple


class Source(NamedTuple):
    """A report: its title may name the quarter, its tables say when that ended."""

    title: str
    company: str
    tables: tuple[Table, ...]
    period: Period
    name: str = ""
    about: str = ""  # how it begins
    paragraphs: tuple[str, ...] = ()

    @classmethod
    def make(cls, title: str, company: str, tables: Sequence[Table]) -> "Source":
        return cls(title, company, tuple(tables), find_current_period(tables))

    @classmethod
    def read(cls, name: str, title: str, text: str) -> "Source":
        """A document with its tables, and of whom or what it is."""
        lines = [line for line in text.split("\n") if line.strip()]
        prose = tuple(line for line in lines if " — " not in line or ": " not in line)
        companies = Counter(match[1] for match in _COMPANY.finditer(text))
        company = companies.most_common(1)[0][0] if companies else ""
        made = cls.make(title, company, read_tables(text))
        around = prose if len(prose) <= _MOST_AROUND else ()
        return made._replace(name=name, about="\n".join([title, *prose])[:_LEAD], paragraphs=around)


class SourcedAnswer(NamedTuple):
    """`rows` are the row that is asked about over the quarters of the reports, which of one report has one point, and
    perhaps a second."""

    answer: TableAnswer | None
    rows: tuple[Series, ...]
    sources: tuple[Source, ...]

    @property
    def series(self) -> Series | None:
        return self.rows[0] if self.rows else None


def find_current_period(tables: Sequence[Table]) -> Period:
    """The quarter that a report is on: the latest of the quarters that several of its columns are of."""
    counts = Counter(
        period
        for table in tables
        for head in table.heads
        for period in find_periods(head)
        if period.year and period.month
    )
    quarters = [one for one, count in counts.items() if one.months == _QUARTER_MONTHS and count > 1]
    dates = [one for one, count in counts.items() if count > 2]
    return max(quarters or dates or counts or [Period(0)], key=lambda one: one[:3])


def choose_sources(question: str, sources: Sequence[Source]) -> list[Source]:
    """The reports that a question means: those of the company and the quarter it names, or the latest; else all."""
    said = {word.removesuffix("'s").removesuffix("’s") for word in words(question)}
    named = [one for one in sources if _name_words(one.company) & said] or _find_about(question, sources)
    chosen = sorted(named or sources, key=lambda one: one.period[:3])
    asked = _find_asked(question)
    by_title = [one for one in chosen if any(_is_of(period, find_periods(one.title)) for period in asked)]
    by_date = [one for one in chosen if any(_ends_in(one.period, period) for period in asked)]
    if by_title or by_date:
        return by_title or by_date
    if any(period.quarter for period in asked):
        return [found for period in asked for one in chosen if (found := _look_back(one, period))]
    if by_year := [one for one in chosen if any(one.period.year == period.year for period in asked)]:
        return by_year
    if _LATEST.search(question) and chosen:
        last = chosen[-1].period[:3]
        return [one for one in chosen if one.period[:3] == last]
    return chosen


def _find_asked(question: str) -> list[Period]:
    """The years and quarters that a question names; "from Q1 to Q3 2023" names two."""
    found = [period for part in _JOINTS.split(question) for period in find_periods(part)]
    last = next((period.year for period in reversed(found) if period.year), 0)
    dated = [period if period.year else period._replace(year=last) for period in found]
    return [period for period in dated if period.year or period.quarter]


def _look_back(source: Source, asked: Period) -> Source | None:
    """A report on the same quarter of the next year, which tells this one beside its own."""
    next_year = asked._replace(year=asked.year + 1)
    if not (_is_of(next_year, find_periods(source.title)) or _ends_in(source.period, next_year)):
        return None
    return source._replace(period=Period(source.period.year - 1, months=source.period.months))


def asks_for_latest(question: str) -> bool:
    """Whether a question leaves it to the documents which period it means."""
    return bool(_LATEST.search(question)) and not any(period.year for period in find_periods(question))


def _find_about(question: str, sources: Sequence[Source]) -> list[Source]:
    """Those that begin with a name of the question, where others do not."""
    names = [set(words(name)) for name in find_names(question)]
    texts = [set(words(fold(one.about))) for one in sources]
    counts = [sum(name <= text for name in names) for text in texts]
    return [one for one, count in zip(sources, counts, strict=True) if count and count == max(counts)]


def _name_words(company: str) -> set[str]:
    """The first words of a name, without its legal form and its domain."""
    return {word.split(".")[0] for word in words(company)[:_NAME_WORDS]}


def _is_of(asked: Period, told: Sequence[Period]) -> bool:
    return any(one.holds(Period(asked.year, quarter=asked.quarter)) for one in told) if asked.quarter else False


def _ends_in(ended: Period, asked: Period) -> bool:
    if asked.month:
        return ended.year == asked.year and ended.month == asked.month
    return bool(asked.quarter) and ended.year == asked.year and -(-ended.month // 3) == asked.quarter


def answer_from_sources(
    question: str,
    sources: Sequence[Source],
    find_synonyms: Callable[[str], frozenset[str]] = lambda word: frozenset(),
    embed: Embed | None = None,
) -> SourcedAnswer:
    """The answer from the reports that are meant: of one its figures, of several a row over their quarters.

    `embed` gives unit vectors, by which a row is found that says in other words what is asked for."""
    chosen = choose_sources(question, sources)
    parsed = _drop_source_words(Question.parse(question, find_synonyms), chosen)
    quarterly = [one for one in chosen if one.period.months == _QUARTER_MONTHS]
    answers = [found for one in chosen for found in _answer_from_one(parsed, one, is_alone=len(chosen) == 1)]
    answer = max(answers, key=lambda found: found.confidence, default=None)
    rows = tuple(read_rows(parsed, quarterly, embed))
    return SourcedAnswer(answer, rows, tuple(chosen))


def _answer_from_one(question: Question, source: Source, *, is_alone: bool) -> Iterator[TableAnswer]:
    """What one report answers: for the periods that are asked for, or for its own quarter where it alone is meant. What
    several quarterly reports tell is a row over their quarters."""
    is_quarterly = source.period.months == _QUARTER_MONTHS
    asked = [] if is_quarterly else [question]
    if is_alone:
        before = Period(source.period.year - 1, months=source.period.months)  # what a change is told from
        asked += [_ask_periods(question, source.period), _ask_periods(question, source.period, before)]
    for variant in asked:
        if found := answer_parsed(variant, source.tables, source.paragraphs):
            operands = tuple(operand._replace(source=source.name) for operand in found.operands)
            yield found._replace(operands=operands)


def _drop_source_words(question: Question, sources: Sequence[Source]) -> Question:
    """Words that name the company tell no row from another."""
    names = {stem(part) for one in sources for part in (*_name_words(one.company), *words(one.company))}
    tokens = tuple(token for token in question.tokens if token.stem not in names)
    return replace(question, tokens=tokens, stems=frozenset(token.stem for token in tokens))


def _ask_periods(question: Question, *periods: Period) -> Question:
    """The question asked of certain periods, whatever it names."""
    return replace(question, periods=periods, years=tuple(period.year for period in periods))
