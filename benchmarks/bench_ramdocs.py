"""Short answers where sources disagree: python benchmarks/bench_ramdocs.py [EVERY] [FIRST]

Data: ramdocs (250 questions, each with documents that answer it rightly, wrongly or not at all) from
`OPENASSAY_EVAL_DATA`,
by default ../shared/data. All questions are answered directly: of each document the sentence that answers is a claim,
and claims are compared and told as in a report. Then every EVERYth (10) from FIRST on is asked through the engine, its
documents being the person's own files; EVERY 0 leaves that out. An answer is right if it contains a gold one, wrong if
it contains a false one (case, articles and punctuation aside).

    strict      every gold answer is asserted, and nothing false is
    shown       every gold answer is asserted or shown as disputed, and nothing false is asserted
    found       every gold answer is told, whatever else is
    disputed    of the false answers that are told, those shown as disputed

Rules were written looking at the even lines, and at those that leave 1 divided by 4; those that leave 3 were hardly
looked at, so that they tell best what new questions get. Measured: even lines .384 strict, .608 shown, .878 disputed;
1 of 4 .317, .460, .778; 3 of 4 .258, .435, .714; all .336, .528, .805.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.evaluation.measure import load_rows, require_data_folder
from benchmarks.evaluation.ramdocs import FILE, PARTS, answer_item, count_answers, dispute_rate, question_share
from openassay.bootstrap import open_engine
from openassay.models.thread import ResearchOptions
from openassay.settings import load


def summary(counts: Counter[str]) -> str:
    shares = "  ".join(f"{name} {question_share(counts, name):.3f}" for name in ("strict", "shown", "found"))
    right = counts["asserted_right"] / max(1, counts["asserted"])
    return (
        f"{counts['questions']} questions: {shares}  disputed {dispute_rate(counts):.2f} of {counts['wrong']} false  "
        f"right {right:.2f} of {counts['asserted']} asserted"
    )


def directly(items: Sequence[dict[str, Any]]) -> None:
    counts = [count_answers(item, answer_item(item)) for item in items]
    for name, part in PARTS.items():
        print(f"directly, {name:7}", summary(sum(counts[part], Counter())))


async def through_the_engine(items: Sequence[dict[str, Any]]) -> None:
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as home:
        async with open_engine(load(data_dir=Path(home) / "data")) as engine:
            for number, item in enumerate(items):
                shelf = Path(home) / f"question-{number}"
                shelf.mkdir()
                for at, one in enumerate(item["documents"], 1):
                    (shelf / f"document-{at}.txt").write_text(one["text"], encoding="utf-8")
                run = await engine.start(item["question"], ResearchOptions(docs=(str(shelf),)))
                report = (await engine.wait(run.id)).report
                counts += count_answers(item, report.answers if report else ())
    print("through the engine", summary(counts))


def main(every: int = 10, first: int = 0) -> None:
    items = load_rows(require_data_folder() / FILE)
    directly(items)
    if every:
        asyncio.run(through_the_engine(items[first::every]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
