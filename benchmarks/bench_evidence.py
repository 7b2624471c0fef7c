"""Which sentences of a cited article bear on a claim: ours and BM25's five against those that people chose.

python benchmarks/bench_evidence.py

`one` looks in the article cited, `many` in it and 19 others at once; by halves, with the time a claim takes.
"""

import time
from statistics import fmean

from assay.evaluation.data import folder
from assay.evaluation.evidence import MANY, bm25, claims, ours, recalls


def main() -> None:
    asked = claims(folder())
    for place, at_once in (("one", 1), ("many", MANY)):
        for name, build in (("bm25", bm25), ("ours", ours)):
            began = time.perf_counter()
            found = recalls(asked, at_once, build)
            each = (time.perf_counter() - began) / len(asked) * 1000
            halves = " and ".join(f"{fmean(half):.3f}" for half in (found[::2], found[1::2]))
            print(f"{place} {name:6} recall@5 {fmean(found):.3f} (halves {halves})   {each:5.1f} ms a claim")


if __name__ == "__main__":
    main()
