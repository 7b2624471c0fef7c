"""How well the documents source finds: two-hop questions and related work, against plain BM25, by halves and timed.

Data: HotpotQA (100 questions, 994 passages) and DeepScholar (20 tasks, 1,546 abstracts) from `ASSAY_EVAL_DATA`, by
default ../shared/data.
"""

import time
from statistics import fmean

from assay.evaluation.data import folder
from assay.evaluation.retrieval import all_found, deepscholar, finders, hotpotqa, precision_and_recall


def main() -> None:
    texts, asked = hotpotqa(folder())
    with finders(texts) as ways:
        for name, find in ways.items():
            began = time.perf_counter()
            found = all_found(asked, find)
            each = (time.perf_counter() - began) / len(asked) * 1000
            halves = " and ".join(f"{fmean(half):.2f}" for half in (found[::2], found[1::2]))
            print(
                f"hotpotqa     {name:10} all gold in top 5: {fmean(found):.2f} (halves {halves})   {each:6.0f} ms each"
            )
    texts, asked = deepscholar(folder())
    with finders(texts) as ways:
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
