"""How well the embedded reasoner answers from quarterly reports.

Measured are the share of an answer's figures (13 and above, years aside) found in our cited spans, and the share of our
cited documents that the question is about.
"""

import asyncio
import re
import tempfile
from fnmatch import fnmatch
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from assay.evaluation.asking import engine_apart, reported
from assay.evaluation.data import rows
from assay.evaluation.measure import Figure, Measure, Measured, Values
from assay.export.report import Report
from assay.text.quantities import quantities

EVERY, QUICK = 15, 60  # of 116 questions: 8 and 2
SMALL = 13  # smaller figures stand in any span by chance


def figures(text: str) -> set[float]:
    found = {float(q.value) for q in quantities(text) if q.kind in ("number", "money", "percent")}
    return {value for value in found if abs(value) >= SMALL}


def found_share(answer: str, report: Report) -> float | None:
    wanted = figures(re.sub(r"SOURCE.*", "", answer, flags=re.S))
    cited = set().union(*(figures(span.quote) for claim in report.claims for span in claim.spans), set())
    # Tables state millions: 81,797 in a row is $81.8 billion in an answer's sentence.
    offered = cited | {value * 1_000_000 for value in cited}
    return len(wanted & offered) / len(wanted) if wanted else None


def right_share(patterns: str, report: Report) -> float:
    wanted = [pattern.strip().removesuffix(".pdf") for pattern in patterns.split(",")]
    right = [any(fnmatch(card.title, f"*{p.strip('*')}*") for p in wanted) for card in report.sources]
    return sum(right) / len(right) if right else 0.0


class Answered(NamedTuple):
    found: float | None  # of the answer's figures; None where it has none
    right: float  # of the documents cited
    seconds: float


async def answered(data: Path, every: int) -> list[Answered]:
    questions = rows(data / "sec-10q/questions.jsonl")[::every]
    results = []
    with tempfile.TemporaryDirectory() as home:
        async with engine_apart(Path(home)) as engine:
            for item in questions:
                report = await reported(engine, item["Question"], data / "sec-10q/docs")
                right = right_share(item["Source Docs"], report)
                results.append(Answered(found_share(item["Answer"], report), right, report.metadata.seconds))
    return results


def measured(data: Path, quick: bool) -> Values:
    results = asyncio.run(answered(data, QUICK if quick else EVERY))
    return {
        "figures of the answer in cited spans": Measured(fmean(one.found for one in results if one.found is not None)),
        "cited documents that are right": Measured(fmean(one.right for one in results)),
        "seconds a question, median": Measured(median(one.seconds for one in results)),
    }


MEASURES = {
    "sec10q": Measure(
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
        run=measured,
        notes="Few figures are found: many answers compute across quarters, which extraction does not. There is "
        "nothing published to compare with, and eight questions are few.",
        command="benchmarks/bench_answers.py",
    )
}
