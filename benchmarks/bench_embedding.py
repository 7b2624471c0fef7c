"""Passages a second of the embedded model and of its cache: `python benchmarks/bench_embedding.py`."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics
from typing import TYPE_CHECKING

from openassay.text.embeddings import EmbeddingCache, MiniLM

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 3  # the best one counts: other work on the machine only ever makes a round slower


def passages(words: int, count: int) -> list[str]:
    """Prose that every Python carries."""
    text = " ".join(topics.values()).split()
    return [" ".join(text[i * words : (i + 1) * words]) for i in range(count)]


def best_seconds(action: Callable[[], object]) -> float:
    def once() -> float:
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    return min(once() for _ in range(ROUNDS))


def row(what: str, count: int, seconds: float) -> str:
    return f"{what:34} {count / seconds:12,.0f} {1000 * seconds / count:12.3f}"


def main() -> None:
    model = MiniLM()
    start = time.perf_counter()
    model.embed(["load"])
    print(f"{model.name}, loaded in {time.perf_counter() - start:.2f} s\n")
    print(f"{'':34} {'passages/s':>12} {'ms each':>12}")
    for words, count in ((60, 128), (200, 64)):
        texts = passages(words, count)
        print(row(f"{words} words", count, best_seconds(partial(model.embed, texts))))
    one = passages(12, 1)
    print(row("one question of 12 words", 1, best_seconds(partial(model.embed, one))))
    with tempfile.TemporaryDirectory() as folder:
        cached = EmbeddingCache(model, Path(folder) / "vectors.sqlite")
        cached.embed(texts := passages(60, 256))
        print(row("60 words, from the cache", len(texts), best_seconds(partial(cached.embed, texts))))
        cached.close()


if __name__ == "__main__":
    main()
