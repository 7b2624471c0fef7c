"""Which sentences of a cited article bear on a claim: ours and BM25's five against those that people chose.

python benchmarks/bench_evidence.py

`one` looks in the article cited, `many` in it and 19 others at once; by halves, with the time a claim takes.
"""

import time
from statistics import fmean

from benchmarks.evaluation.measure import require_data_folder
from benchmarks.evaluation.retrieval import (
    ARTICLES_AT_ONCE,
    build_bm25_finder,
    build_our_finder,
    load_claims,
    measure_recalls,
)


def main() -> None:
    asked = load_claims(require_data_folder())
    for place, at_once in (("one", 1), ("many", ARTICLES_AT_ONCE)):
        for name, build in (("bm25", build_bm25_finder), ("ours", build_our_finder)):
            began = time.perf_counter()
            found = measure_recalls(asked, at_once, build)
            each = (time.perf_counter() - began) / len(asked) * 1000
            halves = " and ".join(f"{fmean(half):.3f}" for half in (found[::2], found[1::2]))
            print(f"{place} {name:6} recall@5 {fmean(found):.3f} (halves {halves})   {each:5.1f} ms a claim")


if __name__ == "__main__":
    main()
