"""Questions in other languages than English over documents in the same language, without a language model.

XQuAD has one set of questions on 240 paragraphs in parallel in many languages. Paragraphs are in halves by a hash of
the English one: constants were chosen on half 0, and what is told is of half 1.
French questions are asked by benchmarks/bench_languages.py.
"""

import asyncio
import hashlib
import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure
from benchmarks.evaluation.reports import open_offline_engine, research_question
from benchmarks.evaluation.retrieval import open_finders
from openassay.export import Report
from openassay.text.words import fold

LANGUAGES = {"de": "German", "es": "Spanish", "zh": "Chinese"}
ASKED, QUICK = 60, 6  # questions a language that go through a run


class AskedQuestion(NamedTuple):
    text: str
    answers: tuple[str, ...]
    document: str  # the name of the one that has the answer


class QuestionSet(NamedTuple):
    texts: dict[str, str]  # by name
    asked: list[AskedQuestion]


def load_xquad(data: Path, language: str, half: int = 1) -> QuestionSet:
    def load(code: str) -> list[dict[str, object]]:
        articles = json.loads((data / f"train/xquad/{code}.json").read_text(encoding="utf-8"))["data"]
        return [paragraph for article in articles for paragraph in article["paragraphs"]]

    texts, asked = dict[str, str](), list[AskedQuestion]()
    for number, (english, own) in enumerate(zip(load("en"), load(language), strict=True)):
        name = f"{number:03}"
        texts[name] = str(own["context"])
        if int(hashlib.sha256(str(english["context"]).encode()).hexdigest(), 16) % 2 == half:
            for item in own["qas"]:  # type: ignore[attr-defined]
                answers = tuple(answer["text"] for answer in item["answers"])
                asked.append(AskedQuestion(item["question"], answers, name))
    return QuestionSet(texts, asked)


def measure_found(texts: dict[str, str], asked: Sequence[AskedQuestion]) -> float:
    with open_finders(texts) as ways:
        return fmean(ways["ours"](one.text, 1) == [one.document] for one in asked)


class RunScore(NamedTuple):
    """What the first statement of a report is, and whether there is one."""

    answered: bool
    right: bool  # it is of the right document
    holds: bool  # and has the answer


async def score_runs(folder: Path, asked: Iterable[AskedQuestion]) -> list[RunScore]:
    with tempfile.TemporaryDirectory() as home:
        async with open_offline_engine(Path(home)) as engine:
            return [score_report(await research_question(engine, one.text, folder), one) for one in asked]


def score_report(report: Report, asked: AskedQuestion) -> RunScore:
    claims = {claim.id: claim for claim in report.claims}
    titles = {card.id: card.url for card in report.sources}
    told = (sentence for section in report.sections for sentence in section.sentences if sentence.claims)
    first = next(told, None)
    if first is None:
        return RunScore(False, False, False)
    span = claims[first.claims[0]].spans[0]
    right = Path(titles[span.source]).stem == Path(asked.document).stem
    said = fold(first.text)
    return RunScore(True, right, right and any(fold(answer) in said for answer in asked.answers))


def ask_xquad(data: Path, language: str, count: int, half: int = 1) -> list[RunScore]:
    texts, asked = load_xquad(data, language, half)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            Path(folder, f"{name}.txt").write_text(text + "\n", encoding="utf-8")
        return asyncio.run(score_runs(Path(folder), asked[:: len(asked) // count][:count]))


def measure_languages(data: Path, quick: bool) -> EvalValues:
    values = dict[str, EvalValue]()
    for code, name in LANGUAGES.items():
        texts, asked = load_xquad(data, code)
        values[f"{name}: paragraph found first"] = EvalValue(measure_found(texts, asked[::6] if quick else asked))
        scores = ask_xquad(data, code, QUICK if quick else ASKED)
        answered = fmean(one.answered for one in scores)
        values[f"{name}: first statement from it"] = EvalValue(fmean(s.right for s in scores), {"answered": answered})
        values[f"{name}: and has the answer"] = EvalValue(fmean(one.holds for one in scores))
    return values


MEASURES = {
    "languages": EvalMeasure(
        name="languages",
        about="German, Spanish and Chinese questions over paragraphs in the same language: what is found, and what "
        "the report says first.",
        needs=("train",),
        licence="CC BY-SA 4.0",
        whole=f"682 questions a language for the search and {ASKED} for the report, over 240 paragraphs",
        quick=f"114 questions a language for the search and {QUICK} for the report",
        figures=(
            Figure("German: paragraph found first", floor=0.86, quick=0.84),
            Figure("German: first statement from it", floor=0.75, quick=0.5),
            Figure("German: and has the answer", floor=0.52, quick=0.3),
            Figure("Spanish: paragraph found first", floor=0.89, quick=0.86),
            Figure("Spanish: first statement from it", floor=0.70, quick=0.5),
            Figure("Spanish: and has the answer", floor=0.58, quick=0.3),
            Figure("Chinese: paragraph found first", floor=0.90, quick=0.86),
            Figure("Chinese: first statement from it", floor=0.85, quick=0.5),
            Figure("Chinese: and has the answer", floor=0.60, quick=0.3),
        ),
        run=measure_languages,
        notes="Of the half of the paragraphs that no constant was chosen on.",
        command="benchmarks/bench_languages.py",
    ),
}
