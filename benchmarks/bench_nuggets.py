"""What a report on related work says of what it should, in a thousand words, and whom it cites, task by task.

    python benchmarks/bench_nuggets.py [EVERY]

Data: deepscholar (20 tasks over 1,546 abstracts) from `OPENASSAY_EVAL_DATA`, by default ../shared/data. How it is
measured:
src/openassay/evaluation/nuggets.py.
"""

import asyncio
import sys

from benchmarks.evaluation.measure import require_data_folder
from benchmarks.evaluation.reports import NuggetScores, average_scores, score_tasks


def told(scores: NuggetScores) -> str:
    return (f"nuggets: vital {scores.vital:.2f}, all {scores.all:.2f};  citations: precision {scores.precision:.2f}, "
            f"recall {scores.recall:.2f} of {scores.cited:.0f};  {scores.words:.0f} words")  # fmt: skip


async def main(every: int = 1) -> None:
    found = []
    async for one in score_tasks(require_data_folder(), every):
        found.append(one)
        print(f"{one.seconds:5.0f} s  {told(one.report)}   {one.title[:60]}", flush=True)
    print(f"report     {told(average_scores([one.report for one in found]))}")
    print(f"abstracts  {told(average_scores([one.abstracts for one in found]))}")


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:2])))
