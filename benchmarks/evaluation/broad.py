"""How much of a report on a broad question is on the question, without a language model, and what it takes.

The questions are ours (benchmarks/data/broad_questions.json), half of them never looked at while anything was changed;
the documents are not kept here: a corpus is a folder `NAME/docs` of the data folder. What is published is judged by a
person, sentence by sentence and without knowing by which version it was written: on the question, beside the point, or
not understandable alone. Judgements are kept by question and by the hash of a sentence, so that no text of others is.
"""

import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from benchmarks.evaluation.reports import open_offline_engine, research_question
from benchmarks.evaluation.speed import read_clock
from openassay.export import Report
from openassay.text.words import jaccard

QUESTIONS = Path(__file__).parents[1] / "data" / "broad_questions.json"
JUDGED = Path(__file__).parents[1] / "data" / "broad_judged.json"
REPEATED = 0.8  # of two sentences' stems, from which on the second says the first again

Label = Literal["relevant", "beside", "unclear"]


class BroadQuestion(NamedTuple):
    corpus: str
    id: str
    half: str
    text: str


class BroadScore(NamedTuple):
    """The counts of one report; `judged` of its sentences somebody has judged."""

    sentences: int
    judged: int
    relevant: int
    beside: int
    unclear: int
    repeats: int
    words: int


def load_questions() -> Iterator[BroadQuestion]:
    for corpus, questions in json.loads(QUESTIONS.read_text(encoding="utf-8")).items():
        for one in questions:
            yield BroadQuestion(corpus, one["id"], one["half"], one["question"])


def load_judgements() -> dict[str, dict[str, Label]]:
    judged: dict[str, dict[str, Label]] = json.loads(JUDGED.read_text(encoding="utf-8")) if JUDGED.is_file() else {}
    return judged


def hash_sentence(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:12]


def list_sentences(report: Report) -> list[str]:
    """The sentences that say something of the world, in the order they are read."""
    return [sentence.text for section in report.sections for sentence in section.sentences if sentence.kind != "frame"]


def count_repeats(sentences: Iterable[str]) -> int:
    told: list[str] = []
    repeats = 0
    for sentence in sentences:
        repeats += any(jaccard(sentence, other) >= REPEATED for other in told)
        told.append(sentence)
    return repeats


def score_sentences(sentences: list[str], judged: Mapping[str, Label]) -> BroadScore:
    labels = Counter(judged.get(hash_sentence(text)) for text in sentences)
    return BroadScore(
        sentences=len(sentences),
        judged=len(sentences) - labels[None],
        relevant=labels["relevant"],
        beside=labels["beside"],
        unclear=labels["unclear"],
        repeats=count_repeats(sentences),
        words=sum(len(text.split()) for text in sentences),
    )


class BroadReport(NamedTuple):
    question: BroadQuestion
    report: Report
    seconds: float  # of the processor


async def write_reports(data: Path, storage: Path, only: str = "") -> AsyncIterator[BroadReport]:
    """Ask the questions whose id begins with `only`, of those corpora that are there. Before anything is timed, one
    is indexed and the models are loaded."""
    known = set[str]()
    async with open_offline_engine(storage) as engine:
        for question in load_questions():
            docs = data / question.corpus / "docs"
            if not docs.is_dir() or not question.id.startswith(only):
                continue
            if question.corpus not in known:
                known.add(question.corpus)
                await research_question(engine, "What is described in these documents?", docs)
            before = read_clock()
            report = await research_question(engine, question.text, docs)
            yield BroadReport(question, report, read_clock() - before)
