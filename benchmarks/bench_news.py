"""What reports without a language model say first to questions on the news, and whether they know what is not there.

    python benchmarks/bench_news.py NEWS [--show]

NEWS is the folder of articles that `python -m benchmarks.corpora CLONES DATA wikinews` writes. The questions of
benchmarks/data/news stand in halves: `looked` may be shown, `aside` is only counted. Each is asked twice: over all
articles, and over those without the ones that answer it, where a report should have no answer line.

The first thing shown is the answer line, or else the first statement; it is right where it has an accepted answer. A
wrong value is an answer line without one.
"""

import argparse
import asyncio
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.evaluation.measure import load_rows
from benchmarks.evaluation.reports import open_offline_engine
from openassay.engine.engine import Engine
from openassay.export import Report
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions

FOLDER = Path(__file__).parent / "data/news"
HALVES = ("looked", "aside")
SIDES = ("compare", "before_after", "yes_no")


class Score(NamedTuple):
    kind: str
    headline: bool
    line: bool  # whether there is an answer line
    line_right: bool
    cited: bool  # an article that answers it
    told_when_gone: bool  # an answer line, though no article answers it


def fold(text: str) -> str:
    plain = re.sub(r"[\W_]", " ", text.lower())  # a pound sign is no punctuation to Python
    return f" {' '.join(plain.split())} "


def has_any(text: str, answers: Iterable[str]) -> bool:
    """Whether a text has an accepted answer; of one that says yes or no, that it begins with it."""
    said = fold(text)
    return any(said.startswith(fold(one)) if one in ("yes", "no") else fold(one) in said for one in answers)


async def ask(engine: Engine, question: str, docs: Path) -> Report | None:
    run = await engine.start(question, ResearchOptions(docs=(str(docs),), depth=Depth.STANDARD))
    return (await engine.wait(run.id)).report


def find_first(report: Report | None) -> str:
    if report is None:
        return ""
    if report.answers:
        return report.answers[0].text
    stated = (one.text for section in report.sections for one in section.sentences if one.claims)
    return next(stated, "")


async def score_half(rows: Sequence[dict[str, Any]], articles: Path, *, show: bool) -> list[Score]:
    scores = []
    gone = {name for row in rows for name in row["documents"]}
    with tempfile.TemporaryDirectory() as home:
        without = Path(home) / "without"
        shutil.copytree(articles, without, ignore=lambda _, names: gone & set(names))
        async with open_offline_engine(Path(home) / "data") as engine:
            for row in rows:
                report = await ask(engine, row["question"], articles)
                other = await ask(engine, row["question"], without)
                first, lines = find_first(report), [one.text for one in report.answers] if report else []
                cited = {Path(one.url).name for one in report.sources} if report else set()
                score = Score(
                    kind=row["kind"],
                    headline=has_any(first, row["answers"]),
                    line=bool(lines),
                    line_right=bool(lines) and has_any(lines[0], row["answers"]),
                    cited=bool(cited & set(row["documents"])),
                    told_when_gone=bool(other and other.answers),
                )
                scores.append(score)
                if show:
                    told = [one.text for one in other.answers] if other else []
                    print(row["question"], "|", row["answers"][0], "|", first, "|", lines, "|", told, flush=True)
    return scores


def print_scores(name: str, scores: Sequence[Score]) -> None:
    lines = [one for one in scores if one.line]
    print(
        f"{name}: {len(scores)} questions, first thing shown is right {fmean(one.headline for one in scores):.3f}, "
        f"an answer line {len(lines) / len(scores):.3f}, right of these "
        f"{fmean(one.line_right for one in lines) if lines else 1:.3f}, a wrong value "
        f"{fmean(one.line and not one.line_right for one in scores):.3f}, the article is cited "
        f"{fmean(one.cited for one in scores):.3f}; with the article gone an answer line "
        f"{fmean(one.told_when_gone for one in scores):.3f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("news", type=Path)
    parser.add_argument("--show", action="store_true", help="print what was said in the half that may be looked at")
    options = parser.parse_args()
    for half in HALVES:
        rows = load_rows(FOLDER / f"{half}.jsonl")
        scores = asyncio.run(score_half(rows, options.news, show=options.show and half == "looked"))
        print_scores(half, scores)
        print_scores(f"{half}, of which name one thing", [one for one in scores if one.kind not in SIDES])


if __name__ == "__main__":
    main()
