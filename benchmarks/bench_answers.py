"""How well the embedded reasoner answers from quarterly reports: python benchmarks/bench_answers.py [EVERY]

Data: sec-10q (12 filings, 116 questions with answers) from `OPENASSAY_EVAL_DATA`, by default ../shared/data. Every
fifth
question unless told otherwise. Measures: the share of an answer's figures (13 and above, years aside) found in our
cited spans, and the share of our cited documents that the question is about.
"""

import asyncio
import sys
from statistics import fmean, median

from benchmarks.evaluation.measure import require_data_folder
from benchmarks.evaluation.reports import score_questions


def main(every: int = 5) -> None:
    results = asyncio.run(score_questions(require_data_folder(), every))
    shares = [one.found for one in results if one.found is not None]
    print(
        f"{len(results)} questions: figures found {fmean(shares):.2f} ({len(shares)} have any), right documents "
        f"{fmean(one.right for one in results):.2f}, {median(one.seconds for one in results):.1f} s a question (median)"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
