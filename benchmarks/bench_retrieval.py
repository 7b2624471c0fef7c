"""How well the documents source finds: two-hop questions and related work, against plain BM25, by halves and timed.

Data: HotpotQA (100 questions, 994 passages) and DeepScholar (20 tasks, 1,546 abstracts) from `OPENASSAY_EVAL_DATA`, by
default ../shared/data.
"""

import time
from statistics import fmean

from benchmarks.evaluation.measure import require_data_folder
from benchmarks.evaluation.retrieval import (
    check_all_gold,
    load_deepscholar,
    load_hotpotqa,
    open_finders,
    precision_and_recall,
)


def main() -> None:
    texts, asked = load_hotpotqa(require_data_folder())
    with open_finders(texts) as ways:
        for name, find in ways.items():
            began = time.perf_counter()
            found = check_all_gold(asked, find)
            each = (time.perf_counter() - began) / len(asked) * 1000
            halves = " and ".join(f"{fmean(half):.2f}" for half in (found[::2], found[1::2]))
            print(
                f"hotpotqa     {name:10} all gold in top 5: {fmean(found):.2f} (halves {halves})   {each:6.0f} ms each"
            )
    texts, asked = load_deepscholar(require_data_folder())
    with open_finders(texts) as ways:
        for name, find in ways.items():
            began = time.perf_counter()
            scores = list(zip(*precision_and_recall(asked, find), strict=True))
            each = (time.perf_counter() - began) / len(asked) * 1000
            shown = "  ".join(
                f"{what} {fmean(of):.3f} (halves {fmean(of[::2]):.3f} and {fmean(of[1::2]):.3f})"
                for what, of in zip(("precision@20", "recall@20"), scores, strict=True)
            )
            print(f"deepscholar  {name:10} {shown}   {each:6.0f} ms each")


if __name__ == "__main__":
    main()
