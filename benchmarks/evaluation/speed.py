"""How much of a processor a question takes without a language model, and how fast folders are indexed.

The documents are made here: sentences of invented words, spread as those of a language are, and a fact in each. Times
are of the processor, children included, so that they mean the same on a busy machine.
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure
from benchmarks.evaluation.reports import open_offline_engine, research_question
from openassay.engine.maintenance import open_folder_indexes, scan_folder
from openassay.settings import load

DOCUMENT_LENGTH = 5_000  # characters
WORDS, RARITY = 8_000, 1.05  # of the invented language: how often its n-th word is said falls with n to this power
FEW, MANY = 1_400, 10_000  # documents
QUESTIONS = 5  # the first loads the models; of the others the median is taken
_ONSETS = "b br c cl d dr f g gl h k l m n p pl r s st t th tr v w".split()
_VOWELS = "a e i o u ai ea ou".split()
_CODAS = ["", "n", "r", "l", "s", "m", "t", "nd", "rk"]


class Fact(NamedTuple):
    place: str
    year: int
    person: str

    @property
    def sentence(self) -> str:
        return f"In {self.year} {self.person} was the ambassador to {self.place}, and stayed for three years."

    @property
    def question(self) -> str:
        return f"Who was the ambassador to {self.place} in {self.year}?"


class Language:
    """Invented words, each with how often it is said."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._words = sorted({self._make_word(chance.randint(1, 3)) for _ in range(2 * WORDS)})[:WORDS]
        chance.shuffle(self._words)
        self._weights = list(accumulate((at + 1) ** -RARITY for at in range(WORDS)))

    def _make_word(self, syllables: int) -> str:
        choose = self._chance.choice
        return "".join(choose(_ONSETS) + choose(_VOWELS) + choose(_CODAS) for _ in range(syllables))

    def make_name(self, words: int) -> str:
        """Longer words than any others, so that nothing else is called so."""
        return " ".join(self._make_word(4).capitalize() for _ in range(words))

    def make_sentence(self) -> str:
        small = ("the", "of", "and", "was", "in", "a", "to", "had", "with", "by")
        words = self._chance.choices(self._words, cum_weights=self._weights, k=self._chance.randint(7, 16))
        said = " ".join(f"{self._chance.choice(small)} {word}" if at % 2 else word for at, word in enumerate(words))
        return f"{said.capitalize()}."

    def make_paragraph(self) -> str:
        return " ".join(self.make_sentence() for _ in range(self._chance.randint(3, 7)))


def make_documents(seed: int = 46) -> Iterator[tuple[Fact, str]]:
    """Documents without end, always the same ones, each with its fact in the middle of it."""
    chance = Random(seed)
    language = Language(chance)
    while True:
        fact = Fact(language.make_name(1), chance.randint(1950, 2019), language.make_name(2))
        paragraphs = [language.make_name(3)]
        while sum(map(len, paragraphs)) < DOCUMENT_LENGTH - len(fact.sentence):
            paragraphs.append(language.make_paragraph())
        paragraphs.insert(len(paragraphs) // 2, f"{language.make_sentence()} {fact.sentence}")
        yield fact, "\n\n".join(paragraphs)


def write_documents(folder: Path, count: int) -> list[Fact]:
    folder.mkdir(parents=True)
    facts = []
    for number, (fact, text) in enumerate(islice(make_documents(), count)):
        (folder / f"{number:05}.txt").write_text(text, encoding="utf-8")
        facts.append(fact)
    return facts


def read_clock() -> float:
    """Seconds of the processor so far, in this process and in those it has waited for."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in spent)


def index_documents(docs: Path, storage: Path) -> float:
    """Index a folder without vectors, one file after another; return the seconds it takes."""
    before = read_clock()
    with open_folder_indexes(load(data_dir=storage)) as indexes:
        indexes.update(scan_folder(docs), jobs=1, watch=lambda _: None)
    return read_clock() - before


class AnswerTimes(NamedTuple):
    """Seconds of the processor: the first question loads the models, and the others tell what a question takes."""

    first: float
    others: list[float]
    named: float  # share of the reports that name the person asked for


async def ask_questions(docs: Path, storage: Path, facts: Sequence[Fact]) -> AnswerTimes:
    spent, named = [], 0
    async with open_offline_engine(storage) as engine:
        for fact in facts[:: len(facts) // QUESTIONS]:
            before = read_clock()
            report = await research_question(engine, fact.question, docs)
            spent.append(read_clock() - before)
            named += fact.person in report.markdown
    return AnswerTimes(spent[0], spent[1:], named / len(spent))


def ask_in_process(docs: Path, folder: Path, fact: Fact) -> float:
    """Ask in a process of its own, without keys, which keeps its storage in a folder; return the seconds it takes."""
    command = [sys.executable, "-m", "openassay", "research", fact.question, "--docs", str(docs), "-y", "-q"]
    own = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPYCACHEPREFIX") if name in os.environ}
    paths = os.pathsep.join(filter(None, sys.path))
    before = read_clock()
    subprocess.run(command, cwd=folder, env={**own, "PYTHONPATH": paths}, capture_output=True, check=True)
    return read_clock() - before


def measure_speed(data: Path, quick: bool) -> EvalValues:
    values: dict[str, EvalValue] = {}
    with tempfile.TemporaryDirectory() as name:
        for count in (FEW,) if quick else (FEW, MANY):
            docs, folder = Path(name) / f"{count}", Path(name) / f"of {count}"
            facts = write_documents(docs, count)
            storage = folder / "data"
            values["documents indexed a second"] = EvalValue(count / index_documents(docs, storage))
            asked = asyncio.run(ask_questions(docs, storage, facts))
            values[f"seconds a question, {count:,} documents"] = EvalValue(median(asked.others))
            values[f"the first question, {count:,} documents"] = EvalValue(asked.first)
            values[f"a process for one question, {count:,} documents"] = EvalValue(
                ask_in_process(docs, folder, facts[0])
            )
            values[f"reports that name who it was, {count:,} documents"] = EvalValue(asked.named)
    return values


def _list_figures(count: int, seconds: float, quick: bool) -> tuple[Figure, ...]:
    """Seconds are ceilings at about twice what they are."""

    def limit(name: str, bound: float, *, less: bool) -> Figure:
        return Figure(
            f"{name}, {count:,} documents", floor=bound, quick=bound if quick else None, less_is_better=less, form=".2f"
        )

    return (
        limit("seconds a question", seconds, less=True),
        limit("the first question", seconds + 3, less=True),
        limit("a process for one question", seconds + 8, less=True),
        limit("reports that name who it was", 0.8, less=False),
    )


MEASURES = {
    "speed": EvalMeasure(
        name="speed",
        about="Processor seconds of a pointed question without a language model, and documents indexed a second.",
        needs=(),
        licence="ours",
        whole=f"{QUESTIONS} questions each to {FEW:,} and {MANY:,} documents of 5 kB",
        quick=f"{QUESTIONS} questions to {FEW:,} documents of 5 kB",
        figures=(
            *_list_figures(FEW, 4, quick=True),
            *_list_figures(MANY, 6, quick=False),
            Figure("documents indexed a second", floor=150, quick=150, form=".0f"),
        ),
        run=measure_speed,
        notes="Of one core. The first question loads the models; a process for one question starts besides.",
    )
}
