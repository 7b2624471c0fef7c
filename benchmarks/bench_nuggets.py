"""What a report on related work says of what it should, in a thousand words, and whom it cites.

    python benchmarks/bench_nuggets.py [EVERY]

Data: deepscholar (20 tasks over 1,546 abstracts) from `ASSAY_EVAL_DATA`, by default ../shared/data. The embedded
reasoner writes the related-work section of each paper from the abstracts as its documents. A nugget counts as said
when three fifths of the stems of its content words stand in one sentence of the report or in two neighbours; only the
first thousand words are looked at, since a longer text says more by length alone. Beside it stand the same thousand
words taken from the first abstracts that the search finds, without any reading or writing, as what to beat.
"""

import asyncio
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from assay.bootstrap import open_engine
from assay.embedding.minilm import MiniLM
from assay.embedding.vectors import CachedEmbedder
from assay.export.report import Report
from assay.model.source import Document, Passage
from assay.model.thread import Options
from assay.ports import FileStamp
from assay.search.ranking import rank
from assay.settings import load
from assay.storage.library import LibraryIndex
from assay.text.sentences import sentences
from assay.text.words import stems

DATA = Path(os.environ.get("ASSAY_EVAL_DATA", "../shared/data")) / "deepscholar"
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
    return _mean(vital), _mean([is_said for _, is_said in found])


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


def library(folder: Path) -> dict[str, dict[str, Any]]:
    """A file for each paper; the papers by title."""
    folder.mkdir()
    papers = {}
    for line in (DATA / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
        paper = json.loads(line)
        title = " ".join(paper["title"].split())
        text = " ".join((paper["abstract"] or paper["title"]).split())
        (folder / f"{paper['id']}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
        papers[title] = paper
    return papers


async def measure(every: int) -> None:
    tasks = [json.loads(line) for line in (DATA / "tasks.jsonl").read_text(encoding="utf-8").splitlines()][::every]
    results: dict[str, list[Scores]] = {"report": [], "abstracts": []}
    with tempfile.TemporaryDirectory() as folder:
        papers = library(Path(folder) / "papers")
        find = searched(papers, Path(folder))
        async with open_engine(load(data_dir=f"{folder}/data")) as engine:
            for task in tasks:
                run = await engine.start(question(task), Options(docs=(f"{folder}/papers",), words=WORDS))
                report = (await engine.wait(run.id)).report
                assert report is not None, task["title"]
                results["report"].append(of_report(task, report, papers))
                results["abstracts"].append(of_abstracts(task, [papers[title] for title in find(task)]))
                told = _told(results["report"][-1])
                print(f"{report.metadata.seconds:5.0f} s  {told}   {task['title'][:60]}", flush=True)
    for name, scores in results.items():
        print(f"{name:10} {_told(Scores(*(_mean(column) for column in zip(*scores, strict=True))))}")


def searched(papers: dict[str, dict[str, Any]], folder: Path) -> Callable[[dict[str, Any]], list[str]]:
    """Titles of the twenty papers that a search for a task's title and abstract finds first."""
    index = LibraryIndex(folder / "search.sqlite3")
    embedder = CachedEmbedder(MiniLM(), folder / "vectors.sqlite3", on_notice=print)
    with index.batch():
        for title, paper in papers.items():
            text = paper["abstract"] or title
            name = hashlib.sha256(text.encode()).hexdigest()
            made = Document(hash=name, text=text, url=f"x:{title}", title=title, fetched=datetime.now(UTC))
            index.replace(title, FileStamp(1, 1), made, [Passage(document=name, start=0, end=len(text), text=text)])
    return lambda task: [
        ranked.match.title for ranked in rank(f"{task['title']} {task['abstract']}", [index], embedder, 20)
    ]


def _told(scores: Scores) -> str:
    return (f"nuggets: vital {scores.vital:.2f}, all {scores.all:.2f};  citations: precision {scores.precision:.2f}, "
            f"recall {scores.recall:.2f} of {scores.cited:.0f};  {scores.words:.0f} words")  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


if __name__ == "__main__":
    if DATA.is_dir():
        asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
    else:
        print(f"no data at {DATA}; set ASSAY_EVAL_DATA")
