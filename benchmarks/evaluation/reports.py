"""What a report on related work says of what it should, in a thousand words, and whom it cites.

The embedded reasoner writes the related-work section of each paper from the abstracts as its documents. A nugget counts
as said when three fifths of the stems of its content words stand in one sentence of the report or in two neighbours;
only the first thousand words are looked at, since a longer text says more by length alone. Beside it stand the same
thousand words taken from the first abstracts that the search finds, without any reading or writing.
"""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure, load_rows
from benchmarks.evaluation.retrieval import open_finders
from openassay.bootstrap import open_engine
from openassay.engine.engine import Engine
from openassay.errors import ReasoningError
from openassay.export import Report
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from openassay.text.quantities import find_quantities
from openassay.text.sentences import split_sentences
from openassay.text.words import stems

# Questions asked of an engine of its own: the embedded reasoner, no network, nothing of the person's storage.


@asynccontextmanager
async def open_offline_engine(folder: Path) -> AsyncIterator[Engine]:
    """Whatever keys and databases the person has: figures are of what everybody has, and cost nothing."""
    settings = load(data_dir=folder, offline=True, llm={"model": "embedded"}, persistence={"backend": "sqlite"})
    async with open_engine(settings) as engine:
        yield engine


async def research_question(engine: Engine, question: str, docs: Path, words: int | None = None) -> Report:
    run = await engine.start(question, ResearchOptions(docs=(str(docs),), words=words))
    outcome = await engine.wait(run.id)
    if outcome.report is None:
        raise ReasoningError(f"no report on {question!r}: {outcome.run.error}", help="This is a fault in OpenAssay.")
    return outcome.report


# How well the embedded reasoner answers from quarterly reports.
#
# Measured are the share of an answer's figures (13 and above, years aside) found in our cited spans, and the share of
# our
# cited documents that the question is about.

EVERY, QUICK = 15, 60  # of 116 questions: 8 and 2
MIN_FIGURE = 13  # smaller figures stand in any span by chance


def extract_figures(text: str) -> set[float]:
    found = {float(q.value) for q in find_quantities(text) if q.kind in ("number", "money", "percent")}
    return {value for value in found if abs(value) >= MIN_FIGURE}


def figure_recall(answer: str, report: Report) -> float | None:
    wanted = extract_figures(re.sub(r"SOURCE.*", "", answer, flags=re.S))
    cited = set().union(*(extract_figures(span.quote) for claim in report.claims for span in claim.spans), set())
    # Tables state millions: 81,797 in a row is $81.8 billion in an answer's sentence.
    offered = cited | {value * 1_000_000 for value in cited}
    return len(wanted & offered) / len(wanted) if wanted else None


def document_precision(patterns: str, report: Report) -> float:
    wanted = [pattern.strip().removesuffix(".pdf") for pattern in patterns.split(",")]
    right = [any(fnmatch(card.title, f"*{p.strip('*')}*") for p in wanted) for card in report.sources]
    return sum(right) / len(right) if right else 0.0


class FilingScore(NamedTuple):
    found: float | None  # of the answer's figures; None where it has none
    right: float  # of the documents cited
    seconds: float


async def score_questions(data: Path, every: int) -> list[FilingScore]:
    questions = load_rows(data / "sec-10q/questions.jsonl")[::every]
    results = []
    with tempfile.TemporaryDirectory() as home:
        async with open_offline_engine(Path(home)) as engine:
            for item in questions:
                report = await research_question(engine, item["Question"], data / "sec-10q/docs")
                right = document_precision(item["Source Docs"], report)
                results.append(FilingScore(figure_recall(item["Answer"], report), right, report.metadata.seconds))
    return results


def measure_filings(data: Path, quick: bool) -> EvalValues:
    results = asyncio.run(score_questions(data, QUICK if quick else EVERY))
    return {
        "figures of the answer in cited spans": EvalValue(fmean(one.found for one in results if one.found is not None)),
        "cited documents that are right": EvalValue(fmean(one.right for one in results)),
        "seconds a question, median": EvalValue(median(one.seconds for one in results)),
    }


FILINGS_MEASURES = {
    "sec10q": EvalMeasure(
        name="sec10q",
        about="Answers from quarterly reports of Apple, Amazon and NVIDIA, as PDF.",
        needs=("sec-10q",),
        licence="MIT; filings are public",
        whole="8 questions over 12 filings",
        quick="2 questions over 12 filings",
        figures=(
            Figure("figures of the answer in cited spans", floor=0.08, quick=0),
            Figure("cited documents that are right", floor=0.70, quick=0.40),
            Figure("seconds a question, median", floor=300, quick=300, less_is_better=True, form=".1f"),
        ),
        run=measure_filings,
        notes="Few figures are found: many answers compute across quarters, which extraction does not. There is "
        "nothing published to compare with, and eight questions are few.",
        command="benchmarks/bench_answers.py",
    )
}


NUGGETS_STEP = 10  # every tenth task of 20
MAX_WORDS = 1000
MIN_OVERLAP = 0.6
PROMPT = "Write the related-work section for a paper with this title and abstract. Title: {title}. Abstract: {abstract}"
MAX_QUESTION = 2000  # characters a question may have


class NuggetScores(NamedTuple):
    vital: float
    all: float
    precision: float
    recall: float
    cited: float
    words: float


def build_question(task: dict[str, Any]) -> str:
    return PROMPT.format(title=task["title"], abstract=" ".join(task["abstract"].split()))[:MAX_QUESTION]


def take_words(told: Iterable[str], budget: int = MAX_WORDS) -> list[str]:
    """The sentences up to the budget of words."""
    kept: list[str] = []
    for sentence in told:
        budget -= len(sentence.split())
        if budget < 0:
            break
        kept.append(sentence)
    return kept


def covers_nugget(nugget: str, told: Sequence[frozenset[str]]) -> bool:
    wanted = set(stems(nugget))
    return bool(wanted) and any(len(wanted & have) >= MIN_OVERLAP * len(wanted) for have in told)


def nugget_recall(task: dict[str, Any], told: Sequence[str]) -> tuple[float, float]:
    """Of the vital ones and of all."""
    alone = [frozenset(stems(sentence)) for sentence in told]
    heard = [*alone, *(first | second for first, second in pairwise(alone))]
    found = [
        (nugget["importance"] == "vital", covers_nugget(nugget["text"], heard)) for nugget in task["nuggets"]["nuggets"]
    ]
    vital = [is_said for is_vital, is_said in found if is_vital]
    return mean(vital), mean([is_said for _, is_said in found])


def score_sentences(task: dict[str, Any], told: Sequence[str], cited: set[str]) -> NuggetScores:
    gold = set(task["gold_citations"])
    right = len(cited & gold)
    return NuggetScores(*nugget_recall(task, told), right / len(cited) if cited else 0.0, right / len(gold), len(cited),
                  sum(len(sentence.split()) for sentence in told))  # fmt: skip


def score_report(task: dict[str, Any], report: Report, papers: dict[str, dict[str, Any]]) -> NuggetScores:
    """Citations are those of the sentences that are looked at, not all sources read. Sentences about the research do
    not count: where nothing was found they repeat the request, which has the paper's own abstract in it."""
    facts = [sentence for section in report.sections for sentence in section.sentences if sentence.kind == "fact"]
    told = take_words(sentence.text for sentence in facts)
    titles = {card.id: card.title for card in report.sources}
    cited = {titles[name] for sentence in facts[: len(told)] for name in sentence.citations}
    return score_sentences(task, told, {papers[title]["id"] for title in cited if title in papers})


def score_abstracts(task: dict[str, Any], found: Sequence[dict[str, Any]]) -> NuggetScores:
    """Abstracts one after another, as they were found."""
    told: list[str] = []
    cited: set[str] = set()
    for paper in found:
        more = take_words([*told, *(piece.text for piece in split_sentences(paper["abstract"] or paper["title"]))])
        if len(more) == len(told):
            break
        told, cited = more, {*cited, paper["id"]}
    return score_sentences(task, told, cited)


def write_papers(data: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """A file for each paper; the papers by title."""
    folder.mkdir()
    papers = {}
    for paper in load_rows(data / "deepscholar/corpus.jsonl"):
        title = " ".join(paper["title"].split())
        text = " ".join((paper["abstract"] or paper["title"]).split())
        (folder / f"{paper['id']}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
        papers[title] = paper
    return papers


class TaskScores(NamedTuple):
    title: str
    seconds: float
    report: NuggetScores
    abstracts: NuggetScores  # of the first abstracts found


async def score_tasks(data: Path, every: int) -> AsyncIterator[TaskScores]:
    with tempfile.TemporaryDirectory() as home:
        papers = write_papers(data, Path(home) / "papers")
        with open_finders({title: paper["abstract"] or title for title, paper in papers.items()}) as ways:
            async with open_offline_engine(Path(home) / "data") as engine:
                for task in load_rows(data / "deepscholar/tasks.jsonl")[::every]:
                    report = await research_question(engine, build_question(task), Path(home) / "papers", MAX_WORDS)
                    titles = ways["ours"](f"{task['title']} {task['abstract']}", 20)
                    yield TaskScores(
                        task["title"],
                        report.metadata.seconds,
                        score_report(task, report, papers),
                        score_abstracts(task, [papers[title] for title in titles]),
                    )


def average_scores(scores: Sequence[NuggetScores]) -> NuggetScores:
    return NuggetScores(*(mean(column) for column in zip(*scores, strict=True)))


def measure_nuggets(data: Path, quick: bool) -> EvalValues:
    async def all_of_them() -> list[TaskScores]:
        return [one async for one in score_tasks(data, NUGGETS_STEP if quick else 1)]

    found = asyncio.run(all_of_them())
    ours, pasted = average_scores([one.report for one in found]), average_scores([one.abstracts for one in found])
    beside = "first abstracts pasted"
    return {
        "vital nuggets said": EvalValue(ours.vital, {beside: pasted.vital}),
        "nuggets said": EvalValue(ours.all, {beside: pasted.all}),
        "vital nuggets said, per 1,000 words": EvalValue(
            1000 * ours.vital / max(1.0, ours.words), {beside: 1000 * pasted.vital / max(1.0, pasted.words)}
        ),
        "citation precision": EvalValue(ours.precision, {beside: pasted.precision}),
        "citation recall": EvalValue(ours.recall, {beside: pasted.recall}),
        "words": EvalValue(ours.words, {beside: pasted.words}),
    }


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


NUGGETS_MEASURES = {
    "nuggets": EvalMeasure(
        name="nuggets",
        about="Reports on related work: what they say of what they should within 1,000 words, and whom they cite.",
        needs=("deepscholar",),
        licence="MIT",
        whole="20 tasks over 1,546 abstracts",
        quick="2 tasks",
        figures=(
            Figure("vital nuggets said", floor=0.10, quick=0, form=".2f"),
            Figure("nuggets said", floor=0.08, quick=0, form=".2f"),
            Figure("vital nuggets said, per 1,000 words", floor=0.20, quick=0, form=".2f"),
            Figure("citation precision", floor=0.62, quick=0.1, form=".2f"),
            Figure("citation recall", floor=0.22, quick=0.05, form=".2f"),
            Figure("words", floor=1000, quick=1000, less_is_better=True, form=".0f"),
        ),
        run=measure_nuggets,
        notes="A nugget counts when 60% of its stems stand in one sentence or two neighbours. A pasted abstract is "
        "still planned as if it were a question, which loses most of what retrieval finds.",
        command="benchmarks/bench_nuggets.py",
    )
}

MEASURES = {**FILINGS_MEASURES, **NUGGETS_MEASURES}
