"""How well the embedded reasoner answers from quarterly reports: python benchmarks/bench_answers.py [EVERY]

Data: sec-10q (12 filings, 116 questions with answers) from `ASSAY_EVAL_DATA`, by default ../shared/data. Every fifth
question unless told otherwise. Measures: the share of an answer's figures (13 and above, years aside) found in our
cited spans, and the share of our cited documents that the question is about.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

from assay.bootstrap import open_engine
from assay.export.report import Report
from assay.model.thread import Options
from assay.settings import load
from assay.text.quantities import quantities

DATA = Path(os.environ.get("ASSAY_EVAL_DATA", "../shared/data")) / "sec-10q"
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


async def measure(every: int) -> None:
    questions = [json.loads(line) for line in (DATA / "questions.jsonl").read_text().splitlines()][::every]
    shares: list[float] = []
    right: list[float] = []
    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        async with open_engine(load(data_dir=folder)) as engine:
            for item in questions:
                run = await engine.start(item["Question"], Options(docs=(str(DATA / "docs"),)))
                report = (await engine.wait(run.id)).report
                assert report is not None, item["Question"]
                right.append(right_share(item["Source Docs"], report))
                seconds.append(report.metadata.seconds)
                if (share := found_share(item["Answer"], report)) is not None:
                    shares.append(share)
    print(
        f"{len(questions)} questions: figures found {sum(shares) / len(shares):.2f} ({len(shares)} have any), right "
        f"documents {sum(right) / len(right):.2f}, {sorted(seconds)[len(seconds) // 2]:.1f} s a question (median)"
    )


if __name__ == "__main__":
    if DATA.is_dir():
        asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
    else:
        print(f"no data at {DATA}; set ASSAY_EVAL_DATA")
