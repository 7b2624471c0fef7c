"""What reports without a language model say first to questions with known answers, and whether they know what is not
there.

Three sets: questions of HotpotQA, each over its own ten paragraphs; English questions of XQuAD over 240 paragraphs, of
which those that answer half of the questions are gone; and questions on news over 743 articles of Wikinews.
The first thing shown is the answer line or else the first statement; a wrong value is an answer line without an
accepted answer. Each set stands in halves. What is told is of the half that nobody looked at while anything was made:
the odd questions of HotpotQA, the paragraphs of XQuAD in half 1 (`languages`), and the file `aside` on news; beside it
stands the other half.
"""

import asyncio
import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.evaluation.confidence import contains_answer
from benchmarks.evaluation.languages import AskedQuestion as XquadQuestion
from benchmarks.evaluation.languages import load_xquad
from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure, load_rows
from benchmarks.evaluation.reports import open_offline_engine
from benchmarks.evaluation.retrieval import build_bm25_finder
from openassay.engine.engine import Engine
from openassay.errors import ReasoningError
from openassay.export import Report
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions

SEEN = "half looked at"
LINE_RIGHT, ANSWERED, FIRST = "right of the answer lines", "has an answer line", "first thing shown is right"
WRONG, TOLD_SO, LOST = "tells a wrong value", "told to be unanswerable", "answerable, told to be unanswerable"


class AnswerScore(NamedTuple):
    """`open`: the report says that what was asked could not be answered."""

    has_line: bool
    line_right: bool
    first_right: bool
    open: bool


async def ask_report(engine: Engine, question: str, folder: Path) -> Report:
    run = await engine.start(question, ResearchOptions(docs=(str(folder),), depth=Depth.STANDARD))
    report = (await engine.wait(run.id)).report
    if report is None:
        raise ReasoningError(f"no report on {question!r}", help="This is a fault in OpenAssay.")
    return report


def is_right(text: str, answers: Sequence[str]) -> bool:
    """Of a question for yes or no, that it begins so."""
    if set(answers) & {"yes", "no"}:
        return text.lower().startswith(tuple(answers))
    return contains_answer(text, answers)


def score_answer(report: Report, answers: Sequence[str]) -> AnswerScore:
    lines = [one.text for one in report.answers]
    stated = (one.text for section in report.sections for one in section.sentences if one.claims)
    first = lines[0] if lines else next(stated, "")
    asked = len(report.plan.questions) if report.plan else 0
    return AnswerScore(
        has_line=bool(lines),
        line_right=bool(lines) and is_right(lines[0], answers),
        first_right=is_right(first, answers),
        open=not lines and (not first or len(report.not_found) >= asked),
    )


def summarize_scores(scores: Sequence[AnswerScore]) -> dict[str, float]:
    lines = [one for one in scores if one.has_line]
    return {
        LINE_RIGHT: fmean(one.line_right for one in lines) if lines else 1.0,
        ANSWERED: len(lines) / len(scores),
        FIRST: fmean(one.first_right for one in scores),
        WRONG: fmean(one.has_line and not one.line_right for one in scores),
        LOST: fmean(one.open for one in scores),
    }


# HotpotQA: each question over its own paragraphs.

HOTPOT, HOTPOT_QUICK = 12, 3  # questions of a half, and in a quick run


def load_half(data: Path, half: int, most: int) -> list[dict[str, Any]]:
    """The odd questions (0) or the even ones (1), by a hash's order."""
    rows = json.loads((data / "hotpotqa/questions.json").read_text(encoding="utf-8"))[1 - half :: 2]
    return sorted(rows, key=lambda row: hashlib.sha256(row["question"].encode()).hexdigest())[:most]


def write_paragraphs(row: dict[str, Any], folder: Path) -> Path:
    folder.mkdir()
    for number, (title, sentences) in enumerate(row["context"]):
        (folder / f"{number}.md").write_text(f"# {title}\n\n{''.join(sentences)}\n", encoding="utf-8")
    return folder


def find_first_sentence(row: dict[str, Any]) -> str:
    articles = [[sentence.strip() for sentence in sentences] for _, sentences in row["context"]]
    found = build_bm25_finder(articles, most=1)(row["question"])
    return next((articles[article][sentence] for article, sentence in found), "")


async def score_hotpot(rows: Sequence[dict[str, Any]]) -> list[AnswerScore]:
    scores = []
    with tempfile.TemporaryDirectory() as home:
        async with open_offline_engine(Path(home) / "data") as engine:
            for number, row in enumerate(rows):
                folder = write_paragraphs(row, Path(home) / f"documents-{number}")
                scores.append(score_answer(await ask_report(engine, row["question"], folder), (row["answer"],)))
    return scores


def measure_hotpot(data: Path, quick: bool) -> EvalValues:
    halves = [load_half(data, half, HOTPOT_QUICK if quick else HOTPOT) for half in (0, 1)]
    found, known = (summarize_scores(asyncio.run(score_hotpot(rows))) for rows in halves)
    plain = fmean(is_right(find_first_sentence(row), (row["answer"],)) for row in halves[0])
    values = {name: EvalValue(found[name], {SEEN: known[name]}) for name in (LINE_RIGHT, ANSWERED)}
    values[FIRST] = EvalValue(found[FIRST], {"BM25's first sentence": plain, SEEN: known[FIRST]})
    return values


# XQuAD: over all paragraphs but those that every other question needs.

XQUAD, XQUAD_QUICK = 12, 4  # questions of a half


async def score_xquad(asked: Sequence[XquadQuestion], texts: dict[str, str]) -> list[AnswerScore]:
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "documents"
        folder.mkdir()
        gone = {one.document for one in asked[::2]}
        for name, text in texts.items():
            if name not in gone:
                (folder / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
        async with open_offline_engine(Path(home) / "data") as engine:
            return [score_answer(await ask_report(engine, one.text, folder), one.answers) for one in asked]


def choose_asked(asked: Sequence[XquadQuestion], most: int) -> list[XquadQuestion]:
    """Those that stay have their paragraph left: none that goes is theirs."""
    ordered = sorted(asked, key=lambda one: hashlib.sha256(one.text.encode()).hexdigest())
    gone = ordered[: most // 2]
    lost = {one.document for one in gone}
    there = [one for one in ordered[most // 2 :] if one.document not in lost][: most // 2]
    return [one for pair in zip(gone, there, strict=True) for one in pair]


def measure_unanswerable(data: Path, quick: bool) -> EvalValues:
    told: dict[str, list[float]] = {TOLD_SO: [], LOST: []}
    for half in (1, 0):
        texts, asked = load_xquad(data, "en", half)
        scores = asyncio.run(score_xquad(choose_asked(asked, XQUAD_QUICK if quick else XQUAD), texts))
        told[TOLD_SO].append(fmean(one.open for one in scores[::2]))
        told[LOST].append(fmean(one.open for one in scores[1::2]))
    return {name: EvalValue(values[0], {SEEN: values[1]}) for name, values in told.items()}


# News.

NEWS = Path(__file__).parents[1] / "data" / "news"
ASIDE, LOOKED, NEWS_QUICK = 34, 26, 3  # questions of each half, those of the second hand, and of each in a quick run


async def score_news(rows: Sequence[dict[str, Any]], articles: Path) -> list[AnswerScore]:
    with tempfile.TemporaryDirectory() as home:
        async with open_offline_engine(Path(home)) as engine:
            return [score_answer(await ask_report(engine, row["question"], articles), row["answers"]) for row in rows]


def measure_news(data: Path, quick: bool) -> EvalValues:
    found, known = (
        summarize_scores(asyncio.run(score_news(load_rows(NEWS / f"{name}.jsonl")[-most:], data / "wikinews/docs")))
        for name, most in (("aside", NEWS_QUICK if quick else ASIDE), ("looked", NEWS_QUICK if quick else LOOKED))
    )
    return {name: EvalValue(found[name], {SEEN: known[name]}) for name in (FIRST, WRONG, LINE_RIGHT, ANSWERED)}


MEASURES = {
    "hotpot-answers": EvalMeasure(
        name="hotpot-answers",
        about="Questions of two hops, each over its own ten paragraphs: what the report says first.",
        needs=("hotpotqa",),
        licence="MIT, CC BY-SA",
        whole=f"{HOTPOT} questions of each half",
        quick=f"{HOTPOT_QUICK} questions of each half",
        figures=(
            Figure(LINE_RIGHT, floor=0.5, quick=0.0),
            Figure(ANSWERED, floor=0.3, quick=0.0),  # .67 when .375 of the lines were right
            Figure(FIRST, floor=0.25, quick=0.0),
        ),
        run=measure_hotpot,
        notes="The reader reads one passage at a time: where a second hop is needed it marks what the first names. "
        "The sample is small, as a question takes a run.",
    ),
    "unanswerable": EvalMeasure(
        name="unanswerable",
        about="English questions over 240 paragraphs, half of them without the paragraph that answers them: which are "
        "told to have no answer.",
        needs=("train",),
        licence="CC BY-SA 4.0",
        whole=f"{XQUAD} questions of each half",
        quick=f"{XQUAD_QUICK} questions of each half",
        figures=(
            Figure(TOLD_SO, floor=0.5, quick=0.0),
            Figure(LOST, floor=0.34, quick=1.0, less_is_better=True),
        ),
        run=measure_unanswerable,
        notes="The goals were .85 and .15. The reader tells them apart (of 173 questions it finds nothing for all 86 "
        "without their paragraph, and for 10 of the others), but a report asks it of questions for one thing alone, "
        "and many of these are not seen to be such.",
    ),
    "news-answers": EvalMeasure(
        name="news-answers",
        about="Questions on the news over 743 articles, a third of them on two things: what the report says first.",
        needs=("wikinews",),
        licence="CC BY 2.5",
        whole="34 questions of the half that nobody looked at, 26 of the other",
        quick=f"{NEWS_QUICK} questions of each half",
        figures=(
            Figure(FIRST, floor=0.55, quick=0.0),
            Figure(WRONG, floor=0.06, quick=1.0, less_is_better=True),
            Figure(LINE_RIGHT, floor=0.85, quick=0.0),
            Figure(ANSWERED, floor=0.4, quick=0.0),
        ),
        run=measure_news,
        notes="The goals were .60 and .05. `python -m benchmarks.corpora` writes the articles.",
        command="benchmarks/bench_news.py",
    ),
}
