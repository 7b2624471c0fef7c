"""What of a state is shown."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import FiniteFloat, TypeAdapter

T = TypeVar("T")

MOST = {
    "queries": 200, "search_results": 200, "evidence": 100, "chunks": 40, "claims": 500, "passages": 12,
    "messages": 100, "issues": 100,
}  # fmt: skip
# What reading something of another shape raises; a record that does not validate is a ValueError.
_ODD = (AttributeError, LookupError, TypeError, ValueError)

text = TypeAdapter(str).validate_python
optional_text = TypeAdapter(str | None).validate_python
whole = TypeAdapter(int).validate_python
number = TypeAdapter(FiniteFloat).validate_python


class Shown:
    """Reads the fields of a state, keeps lists and texts short, and counts what that leaves out.

    A checkpoint may be sound and yet hold what a field cannot: written by another version, or by hand."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self.left_out: Counter[str] = Counter()

    def one(self, name: str, read: Callable[[Any], T], default: T) -> T:
        """A whole field, or what stands for one that is empty or odd."""
        value = self._values.get(name)
        return next(iter(self.readable(name, [value] if value else [], read)), default)

    def many(self, name: str, read: Callable[[Any], T]) -> list[T]:
        """The items of a list that can be read."""
        return self.readable(name, self.one(name, items, []), read)

    def by_key(self, name: str, read: Callable[[Any], T]) -> dict[str, T]:
        """The entries of a mapping that can be read."""
        entries: list[tuple[Any, Any]] = self.one(name, _entries, [])
        return dict(self.readable(name, entries, lambda entry: (text(entry[0]), read(entry[1]))))

    def readable(self, name: str, found: Iterable[Any], read: Callable[[Any], T]) -> list[T]:
        good: list[T] = []
        odd = 0
        for item in found:
            try:
                good.append(read(item))
            except _ODD:
                odd += 1
        if odd:  # not added up: a field may be read twice
            told = f"unreadable in {name}"
            self.left_out[told] = max(odd, self.left_out[told])
        return good

    def first(self, name: str, items: Sequence[T]) -> tuple[T, ...]:
        return self._counted(name, items, items[: MOST[name]])

    def last(self, name: str, items: Sequence[T]) -> tuple[T, ...]:
        return self._counted(name, items, items[-MOST[name] :])

    def text(self, text: str, longest: int) -> str:
        if len(text) > longest:
            self.left_out["characters"] += len(text) - longest
        return text[:longest]

    def _counted(self, name: str, items: Sequence[T], kept: Sequence[T]) -> tuple[T, ...]:
        if len(kept) < len(items):
            self.left_out[name] += len(items) - len(kept)
        return tuple(kept)


def items(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError("not a list")
    return list(value)


def _entries(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items())
