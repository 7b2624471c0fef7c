"""Which sentences of a cited article bear on a claim: ours and BM25's five against those that people chose.

python benchmarks/bench_evidence.py

Recall at five is, for each claim, the best share that is found of any set of sentences that people held sufficient.
`one` looks in the article cited, `many` in it and 19 others at once.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from math import log
from pathlib import Path
from typing import Any

from assay.text.words import stems
from assay.trust.evidence import Block, SentenceIndex

DATA = Path(os.environ.get("ASSAY_EVAL_DATA", "../shared/data"))
Found = set[tuple[int, int]]  # article and sentence
Find = Callable[[str], Found]
TITLE = "(meta data) TITLE: "


def bm25(articles: Sequence[Sequence[str]], k1: float = 1.2, b: float = 0.75) -> Find:
    places = [(a, s) for a, article in enumerate(articles) for s in range(len(article))]
    texts = [Counter(stems(text)) for article in articles for text in article]
    average = sum(text.total() for text in texts) / len(texts)
    having = Counter(word for text in texts for word in text)

    def score(asked: set[str], text: Counter[str]) -> float:
        norm = k1 * (1 - b + b * text.total() / average)
        return sum(
            log(1 + (len(texts) - having[word] + 0.5) / (having[word] + 0.5))
            * (text[word] * (k1 + 1) / (text[word] + norm))
            for word in asked & text.keys()
        )

    def find(claim: str) -> Found:
        asked = set(stems(claim))
        scores = [score(asked, text) for text in texts]
        return {places[n] for n in sorted(range(len(texts)), key=lambda n: -scores[n])[:5]}

    return find


def ours(articles: Sequence[Sequence[str]]) -> Find:
    index = SentenceIndex([Block(article, _title(article)) for article in articles])
    return lambda claim: {(found.block, found.sentence) for found in index.bearing(claim, 5)}


def _title(article: Sequence[str]) -> str:
    return article[0].removeprefix(TITLE) if article and article[0].startswith(TITLE) else ""


def recall(claim: dict[str, Any], article: int, found: Found) -> float:
    sets = [{(article, sentence) for sentence in chosen} for chosen in claim["supporting_sentences"] if chosen]
    return max(len(chosen & found) / len(chosen) for chosen in sets)


def measure(name: str, claims: Sequence[dict[str, Any]], at_once: int, build: Callable[..., Find]) -> None:
    began = time.perf_counter()
    recalls = []
    for start in range(0, len(claims), at_once):
        batch = claims[start : start + at_once]
        find = build([claim["evidence"] for claim in batch])
        recalls += [recall(claim, number, find(claim["claim"])) for number, claim in enumerate(batch)]
    milliseconds = (time.perf_counter() - began) / len(claims) * 1000
    halves = " and ".join(f"{sum(half) / len(half):.3f}" for half in (recalls[::2], recalls[1::2]))
    print(f"{name:12} recall@5 {sum(recalls) / len(recalls):.3f} (halves {halves})   {milliseconds:5.1f} ms a claim")


def main() -> None:
    if not DATA.is_dir():
        print(f"no data at {DATA}; set ASSAY_EVAL_DATA")
        return
    claims = [json.loads(line) for line in (DATA / "wice/dev.jsonl").read_text(encoding="utf-8").splitlines()]
    claims = [claim for claim in claims if any(claim["supporting_sentences"])]
    for place, at_once in (("one", 1), ("many", 20)):
        measure(f"{place} bm25", claims, at_once, bm25)
        measure(f"{place} ours", claims, at_once, ours)


if __name__ == "__main__":
    main()
