"""What reports in French, German, Spanish and Chinese say first, by halves; the questions are counted, never printed.

    python benchmarks/bench_languages.py FRENCH_NEWS

FRENCH_NEWS is a folder of articles as `python -m benchmarks.corpora CLONES DATA french_news` writes them, which the 24
questions of benchmarks/data/news/french.jsonl are on; nobody looked at these. The others are of XQuAD, of the half that
constants were chosen on.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.evaluation.languages import (
    ASKED,
    LANGUAGES,
    AskedQuestion,
    RunScore,
    ask_xquad,
    load_xquad,
    measure_found,
    score_runs,
)
from benchmarks.evaluation.measure import load_rows, require_data_folder

FRENCH = Path(__file__).parent / "data/news/french.jsonl"


def main() -> None:
    rows = load_rows(FRENCH)
    asked = [AskedQuestion(row["question"], tuple(row["answers"]), row["documents"][0]) for row in rows]
    print_scores("French news", asyncio.run(score_runs(Path(sys.argv[1]), asked)))
    data = require_data_folder()
    for code, name in LANGUAGES.items():
        print(f"{name}, looked at: paragraph found first {measure_found(*load_xquad(data, code, half=0)):.3f}")
        print_scores(f"{name}, looked at", ask_xquad(data, code, ASKED, half=0))


def print_scores(name: str, scores: Sequence[RunScore]) -> None:
    shares = ", ".join(f"{part} {fmean(getattr(one, part) for one in scores):.3f}" for part in RunScore._fields)
    print(f"{name}: {len(scores)} questions, {shares}", flush=True)


if __name__ == "__main__":
    main()
