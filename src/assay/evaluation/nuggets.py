"""What a report on related work says of what it should, in a thousand words, and whom it cites.

The embedded reasoner writes the related-work section of each paper from the abstracts as its documents. A nugget counts
as said when three fifths of the stems of its content words stand in one sentence of the report or in two neighbours;
only the first thousand words are looked at, since a longer text says more by length alone. Beside it stand the same
thousand words taken from the first abstracts that the search finds, without any reading or writing.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from assay.evaluation.asking import engine_apart, reported
from assay.evaluation.data import rows
from assay.evaluation.measure import Figure, Measure, Measured, Values
from assay.evaluation.retrieval import finders
from assay.export.report import Report
from assay.text.sentences import sentences
from assay.text.words import stems

QUICK = 10  # every tenth task of 20
WORDS = 1000
SAID = 0.6
ASKED = "Write the related-work section for a paper with this title and abstract. Title: {title}. Abstract: {abstract}"
LONGEST = 2000  # characters a question may have


class Scores(NamedTuple):
    vital: float
    all: float
    precision: float
    recall: float
    cited: float
    words: float


def question(task: dict[str, Any]) -> str:
    return ASKED.format(title=task["title"], abstract=" ".join(task["abstract"].split()))[:LONGEST]


def within(told: Iterable[str], budget: int = WORDS) -> list[str]:
    """The sentences up to the budget of words."""
    kept: list[str] = []
    for sentence in told:
        budget -= len(sentence.split())
        if budget < 0:
            break
        kept.append(sentence)
    return kept


def said(nugget: str, told: Sequence[frozenset[str]]) -> bool:
    wanted = set(stems(nugget))
    return bool(wanted) and any(len(wanted & have) >= SAID * len(wanted) for have in told)


def nugget_recall(task: dict[str, Any], told: Sequence[str]) -> tuple[float, float]:
    """Of the vital ones and of all."""
    alone = [frozenset(stems(sentence)) for sentence in told]
    heard = [*alone, *(first | second for first, second in pairwise(alone))]
    found = [(nugget["importance"] == "vital", said(nugget["text"], heard)) for nugget in task["nuggets"]["nuggets"]]
    vital = [is_said for is_vital, is_said in found if is_vital]
    return mean(vital), mean([is_said for _, is_said in found])


def scored(task: dict[str, Any], told: Sequence[str], cited: set[str]) -> Scores:
    gold = set(task["gold_citations"])
    right = len(cited & gold)
    return Scores(*nugget_recall(task, told), right / len(cited) if cited else 0.0, right / len(gold), len(cited),
                  sum(len(sentence.split()) for sentence in told))  # fmt: skip


def of_report(task: dict[str, Any], report: Report, papers: dict[str, dict[str, Any]]) -> Scores:
    """Citations are those of the sentences that are looked at, not all sources read. Sentences about the research do
    not count: where nothing was found they repeat the request, which has the paper's own abstract in it."""
    facts = [sentence for section in report.sections for sentence in section.sentences if sentence.kind == "fact"]
    told = within(sentence.text for sentence in facts)
    titles = {card.id: card.title for card in report.sources}
    cited = {titles[name] for sentence in facts[: len(told)] for name in sentence.citations}
    return scored(task, told, {papers[title]["id"] for title in cited if title in papers})


def of_abstracts(task: dict[str, Any], found: Sequence[dict[str, Any]]) -> Scores:
    """Abstracts one after another, as they were found."""
    told: list[str] = []
    cited: set[str] = set()
    for paper in found:
        more = within([*told, *(piece.text for piece in sentences(paper["abstract"] or paper["title"]))])
        if len(more) == len(told):
            break
        told, cited = more, {*cited, paper["id"]}
    return scored(task, told, cited)


def library(data: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """A file for each paper; the papers by title."""
    folder.mkdir()
    papers = {}
    for paper in rows(data / "deepscholar/corpus.jsonl"):
        title = " ".join(paper["title"].split())
        text = " ".join((paper["abstract"] or paper["title"]).split())
        (folder / f"{paper['id']}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
        papers[title] = paper
    return papers


class Written(NamedTuple):
    title: str
    seconds: float
    report: Scores
    abstracts: Scores  # of the first abstracts found


async def written(data: Path, every: int) -> AsyncIterator[Written]:
    with tempfile.TemporaryDirectory() as home:
        papers = library(data, Path(home) / "papers")
        with finders({title: paper["abstract"] or title for title, paper in papers.items()}) as ways:
            async with engine_apart(Path(home) / "data") as engine:
                for task in rows(data / "deepscholar/tasks.jsonl")[::every]:
                    report = await reported(engine, question(task), Path(home) / "papers", WORDS)
                    titles = ways["ours"](f"{task['title']} {task['abstract']}", 20)
                    yield Written(
                        task["title"],
                        report.metadata.seconds,
                        of_report(task, report, papers),
                        of_abstracts(task, [papers[title] for title in titles]),
                    )


def averaged(scores: Sequence[Scores]) -> Scores:
    return Scores(*(mean(column) for column in zip(*scores, strict=True)))


def measured(data: Path, quick: bool) -> Values:
    async def all_of_them() -> list[Written]:
        return [one async for one in written(data, QUICK if quick else 1)]

    found = asyncio.run(all_of_them())
    ours, pasted = averaged([one.report for one in found]), averaged([one.abstracts for one in found])
    beside = "first abstracts pasted"
    return {
        "vital nuggets said": Measured(ours.vital, {beside: pasted.vital}),
        "nuggets said": Measured(ours.all, {beside: pasted.all}),
        "vital nuggets said, per 1,000 words": Measured(
            1000 * ours.vital / max(1.0, ours.words), {beside: 1000 * pasted.vital / max(1.0, pasted.words)}
        ),
        "citation precision": Measured(ours.precision, {beside: pasted.precision}),
        "citation recall": Measured(ours.recall, {beside: pasted.recall}),
        "words": Measured(ours.words, {beside: pasted.words}),
    }


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


MEASURES = {
    "nuggets": Measure(
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
        run=measured,
        notes="A nugget counts when 60% of its stems stand in one sentence or two neighbours. A pasted abstract is "
        "still planned as if it were a question, which loses most of what retrieval finds.",
        command="benchmarks/bench_nuggets.py",
    )
}
