"""Runs that wait to be taken up, in an order that is fair to the people they are of."""

from collections import Counter, deque
from collections.abc import Iterable
from itertools import count

from assay.model.thread import Run


class Line:
    """People take turns: next is whoever has the fewest at work, of those whoever had their last turn longest ago, and
    of one person's runs the oldest. So one who has put in 200 holds up nobody who puts in one."""

    def __init__(self) -> None:
        self._of: dict[str, deque[Run]] = {}
        self._turns: dict[str, int] = {}  # when each person was served last
        self._number = count(1)

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def set(self, runs: Iterable[Run]) -> None:
        """All that wait, the oldest first."""
        self._of.clear()
        for run in runs:
            self._of.setdefault(owner(run), deque()).append(run)

    def next(self, busy: Counter[str]) -> Run | None:
        """Takes it out of the line. `busy` says how many each person has at work."""
        if not self._of:
            return None
        person = self._order(busy)[0]
        run = self._of[person].popleft()
        if not self._of[person]:
            del self._of[person]
        self._turns[person] = next(self._number)
        return run

    def position(self, run: str, busy: Counter[str]) -> int | None:
        """From 1, if those at work went on as they are; None where it does not wait."""
        order = self._order(busy)
        for turn, person in enumerate(order):
            ahead = next((n for n, one in enumerate(self._of[person]) if one.id == run), None)
            if ahead is not None:
                others = ((n, self._of[other]) for n, other in enumerate(order) if other != person)
                return ahead + 1 + sum(min(len(waiting), ahead + (n < turn)) for n, waiting in others)
        return None

    def _order(self, busy: Counter[str]) -> list[str]:
        return sorted(
            self._of, key=lambda person: (busy[person], self._turns.get(person, 0), self._of[person][0].started)
        )


def owner(run: Run) -> str:
    return str(run.options.get("user", ""))
