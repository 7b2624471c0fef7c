"""What reports on broad questions are made of without a language model, question by question.

    python benchmarks/bench_broad.py STORAGE [OUT] [ONLY]

Data: the corpora of benchmarks/corpora.py in `OPENASSAY_EVAL_DATA`. Reports are written to OUT, as JSON and Markdown.
"""

import asyncio
import sys
from pathlib import Path
from statistics import fmean

from benchmarks.evaluation.broad import BroadReport, list_sentences, load_judgements, score_sentences, write_reports
from benchmarks.evaluation.measure import require_data_folder


def write_report(folder: Path, one: BroadReport) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{one.question.id}.json").write_text(one.report.model_dump_json(indent=1), encoding="utf-8")
    (folder / f"{one.question.id}.md").write_text(one.report.markdown, encoding="utf-8")


async def main(storage: str, out: str = "", only: str = "") -> None:
    judged, scores, seconds = load_judgements(), [], []
    async for one in write_reports(require_data_folder(), Path(storage), only):
        score = score_sentences(list_sentences(one.report), judged.get(one.question.id, {}))
        scores.append((one.question.half, score))
        seconds.append(one.seconds)
        print(f"{one.question.id:9} {one.question.half:6} {one.seconds:5.1f} s  {score}", flush=True)
        if out:
            write_report(Path(out), one)
    for half in ("seen", "unseen"):
        own = [score for name, score in scores if name == half]
        total = max(1, sum(score.judged for score in own))
        beside, unclear = (sum(getattr(score, name) for score in own) / total for name in ("beside", "unclear"))
        repeats, words = sum(score.repeats for score in own), sum(score.words for score in own)
        print(f"{half}: beside {beside:.2f}, unclear {unclear:.2f}, repeats {repeats}, words {words}")
    print(f"{fmean(seconds):.1f} s of a processor a question")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
