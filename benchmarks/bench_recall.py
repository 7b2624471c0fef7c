"""Which share of the documents that bear on a broad question is shown to the model that reads.

Three corpora, each a folder of the data folder (OPENASSAY_EVAL_DATA): fedspeeches, digitalgov and peps, whose origin
benchmarks/data/ORIGIN.md tells; their texts are not kept here. One that is not there is left out, and nothing is
written to a page.
"""

from statistics import fmean

from benchmarks.evaluation.measure import require_data_folder
from benchmarks.evaluation.recall import CORPORA, run_corpus
from benchmarks.figures import keep

COLUMNS = ("question", "bear on it", "of these shown", "share", "shown in all")


def main() -> None:
    data, rows = require_data_folder(), []
    missing = [name for name in CORPORA if not (data / name).is_dir()]
    for name in missing:
        print(f"{name}: skipped, {data} has no such folder")
    shares: list[float] = []
    for name in (name for name in CORPORA if name not in missing):
        found = list(run_corpus(data / name, name))
        shares += [one.share for one in found]
        for one in found:
            row = one.question.question, len(one.question.documents), one.relevant, f"{one.share:.2f}", one.shown
            print(*row)
            rows.append(row)
        print(f"{name}: {fmean(one.share for one in found):.3f}")
    if shares:
        print(f"all: {fmean(shares):.3f}, at least {min(shares):.2f}")
    if not missing:
        keep("recall", COLUMNS, [*rows, ("mean", "", "", f"{fmean(shares):.2f}", "")])


if __name__ == "__main__":
    main()
