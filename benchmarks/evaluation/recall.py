"""How many of the documents that bear on a broad question are shown to the model that reads.

A run goes as far as its first round of reading, with a model that gives the plan of the set and chooses nothing; what
it is shown is counted. `broad.jsonl` holds twelve broad questions over three corpora, each with its plan and the
documents that bear on it. For related work the plan is made of the paper: its title, then the first sentences of its
abstract.
"""

import asyncio
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure, load_rows
from benchmarks.evaluation.reports import write_papers
from openassay.bootstrap import open_engine
from openassay.engine.engine import Engine
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from openassay.text.sentences import split_sentences
from tests.fakes.llm_api import ModelPrompt
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel

BROAD = Path(__file__).resolve().parents[1] / "data/recall/broad.jsonl"
CORPORA = ("fedspeeches", "digitalgov", "peps")
MOST_PARTS = 5  # sub-questions of a plan at standard depth
MAX_QUERY = 180  # characters
SECONDS = 600.0  # for one run
QUICK_TASKS = 2
LOOKED_AT = "cited papers shown to the reader, tasks looked at"
_BLOCK = re.compile(r"<source>\n(.*?)\n</source>", re.DOTALL)
_SENTENCE = re.compile(r"^\[\d+\] (.+)$", re.M)


class BroadQuestion(NamedTuple):
    question: str
    subjects: Sequence[str]
    plan: Sequence[Mapping[str, Any]]  # text and queries of each sub-question
    documents: frozenset[str]  # that bear on it, by the names of their files


class ShownDocuments(NamedTuple):
    """What the reader saw of a question's documents, and how many others."""

    question: BroadQuestion
    relevant: int
    shown: int

    @property
    def share(self) -> float:
        return self.relevant / len(self.question.documents)


def load_broad(corpus: str) -> list[BroadQuestion]:
    return [
        BroadQuestion(row["question"], row["subjects"], row["plan"], frozenset(row["documents"]))
        for row in load_rows(BROAD)
        if row["corpus"] == corpus
    ]


def load_related(data: Path) -> list[BroadQuestion]:
    """Who is cited, for the papers of all tasks."""
    found = []
    for task in load_rows(data / "deepscholar/tasks.jsonl"):
        title, abstract = (" ".join(task[field].split()) for field in ("title", "abstract"))
        parts = [title, *(piece.text for piece in split_sentences(abstract))][:MOST_PARTS]
        plan = [{"text": f"What is known about this: {part}", "queries": [part[:MAX_QUERY]]} for part in parts]
        question = f"Which work is related to “{title}”?"
        found.append(BroadQuestion(question, [], plan, frozenset(task["gold_citations"])))
    return found


class PlanningModel:
    """Gives the plan of a question, and keeps what it is shown to read; `done` when all sub-questions were read for."""

    def __init__(self, question: BroadQuestion) -> None:
        self.prompts: list[str] = []
        self.done = asyncio.Event()
        self._question = question
        self._answer = FakeModel({"Understood": self._understand, "Plan": self._plan, "Picks": self._read})

    def __call__(self, prompt: ModelPrompt) -> str:
        return self._answer(prompt)

    def _understand(self, prompt: ModelPrompt) -> dict[str, object]:
        return {
            "intent": "research", "question": self._question.question, "subjects": list(self._question.subjects),
            "kind": "overview", "complexity": "complex",
        }  # fmt: skip

    def _plan(self, prompt: ModelPrompt) -> dict[str, object]:
        made = []
        for number, part in enumerate(self._question.plan, 1):
            queries = {f"query{place}": text for place, text in enumerate(part["queries"], 1)}
            made.append({"text": part["text"], "section": f"Part {number}", **queries})
        return {"reasoning": ["Sides of it"], "questions": made, "confidence": 8, "warnings": []}

    def _read(self, prompt: ModelPrompt) -> dict[str, object]:
        self.prompts.append(prompt.text)
        if len(self.prompts) == len(self._question.plan):
            self.done.set()
        return {"picks": []}


def find_shown(prompts: Iterable[str], texts: Mapping[str, str]) -> set[str]:
    """The documents of which a prompt shows a sentence, known by its letters: what is shown has no marks of markup."""
    found: set[str] = set()
    for block in (match[1] for prompt in prompts for match in _BLOCK.finditer(prompt)):
        longest = keep_letters(max(_SENTENCE.findall(block), key=len, default=block))
        found.update(name for name, text in texts.items() if longest in text)
    return found


def keep_letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


async def measure_question(
    engine: Engine, model: PlanningModel, question: BroadQuestion, folder: Path, texts: Mapping[str, str]
) -> ShownDocuments:
    run = await engine.start(question.question, ResearchOptions(docs=(str(folder),)))
    waiting = [asyncio.ensure_future(engine.wait(run.id)), asyncio.ensure_future(model.done.wait())]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=SECONDS)
    await engine.cancel(run.id)
    for one in waiting:
        one.cancel()
    shown = find_shown(model.prompts, texts)
    return ShownDocuments(question, len(shown & question.documents), len(shown))


def load_texts(folder: Path) -> dict[str, str]:
    """The letters of each file, by its name."""
    return {file.stem: keep_letters(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.md"))}


async def measure_corpus(folder: Path, questions: Iterable[BroadQuestion], home: Path) -> list[ShownDocuments]:
    texts = load_texts(folder)
    found = []
    for question in questions:
        model = PlanningModel(question)
        async with FakeLlmServer(model) as provider:
            settings = load(
                data_dir=home, offline=True, keys={"openai_api_key": "sk-eval-not-a-key"}, auto_gate=False,
                llm={"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}},
                persistence={"backend": "sqlite"}, max_gap_searches=0,
            )  # fmt: skip
            async with open_engine(settings) as engine:
                found.append(await measure_question(engine, model, question, folder, texts))
    return found


def run_corpus(folder: Path, corpus: str) -> Iterator[ShownDocuments]:
    with tempfile.TemporaryDirectory() as home:
        yield from asyncio.run(measure_corpus(folder, load_broad(corpus), Path(home)))


def run_related(data: Path, half: int, most: int | None = None) -> list[ShownDocuments]:
    """Of every second task, from this one on."""
    with tempfile.TemporaryDirectory() as home:
        write_papers(data, Path(home) / "papers")
        asked = load_related(data)[half::2][:most]
        return asyncio.run(measure_corpus(Path(home) / "papers", asked, Path(home) / "data"))


def measure_related(data: Path, quick: bool) -> EvalValues:
    if quick:
        return {LOOKED_AT: EvalValue(fmean(one.share for one in run_related(data, 0, QUICK_TASKS)))}
    shares = [fmean(one.share for one in run_related(data, half)) for half in (0, 1)]
    return {LOOKED_AT: EvalValue(shares[0]), "the same, tasks not looked at": EvalValue(shares[1])}


MEASURES = {
    "related": EvalMeasure(
        name="related",
        about="Of the papers that a paper cites, how many are shown to the model that reads for its related work?",
        needs=("deepscholar",),
        licence="MIT",
        whole="20 tasks over 1,546 abstracts",
        quick="2 tasks",
        figures=(
            Figure(LOOKED_AT, floor=0.59, quick=0.52),
            Figure("the same, tasks not looked at", floor=0.52),
        ),
        run=measure_related,
        notes="The plan is made of the title and the first sentences of the abstract, by no model. With 12 documents "
        "and 36 passages a sub-question, as it was before, the same runs gave .448 and .473.",
    )
}
