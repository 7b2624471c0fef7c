"""Several groups served in turn, so that whatever room there is, none is left out."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")


def in_turn(items: Iterable[T], group: Callable[[T], Hashable]) -> list[T]:
    """The first of every group, then the second of each, and so on; else in the order they came."""
    seen: Counter[Hashable] = Counter()
    ranked = []
    for item in items:
        seen[group(item)] += 1
        ranked.append((seen[group(item)], item))
    return [item for _, item in sorted(ranked, key=lambda pair: pair[0])]
