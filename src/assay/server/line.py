"""Runs that wait to be taken up, in an order that is fair to the people they are of."""

from collections import Counter, deque
from collections.abc import Iterable
from itertools import count

from assay.model.thread import Run

Lane = tuple[bool, str]  # whether its runs can wait until nothing else does, and whose they are


class Line:
    """People take turns: next is whoever has the fewest at work, of those whoever had their last turn longest ago, and
    of one person's runs the oldest. So one who has put in 200 holds up nobody who puts in one."""

    def __init__(self) -> None:
        self._of: dict[Lane, deque[Run]] = {}
        self._turns: dict[str, int] = {}  # when each person was served last
        self._number = count(1)

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def set(self, runs: Iterable[Run]) -> None:
        """All that wait, the oldest first."""
        self._of.clear()
        for run in runs:
            self._of.setdefault((run.can_wait, run.user), deque()).append(run)

    def next(self, busy: Counter[str]) -> Run | None:
        """Takes it out of the line. `busy` says how many each person has at work."""
        if not self._of:
            return None
        lane = self._order(busy)[0]
        run = self._of[lane].popleft()
        if not self._of[lane]:
            del self._of[lane]
        self._turns[run.user] = next(self._number)
        return run

    def position(self, run: str, busy: Counter[str]) -> int | None:
        """From 1, if those at work went on as they are; None where it does not wait."""
        order = self._order(busy)
        for turn, lane in enumerate(order):
            ahead = next((n for n, one in enumerate(self._of[lane]) if one.id == run), None)
            if ahead is not None:
                others = ((other, ahead + (n < turn)) for n, other in enumerate(order) if other != lane)
                return ahead + 1 + sum(self._before(lane, other, turns) for other, turns in others)
        return None

    def _before(self, lane: Lane, other: Lane, turns: int) -> int:
        """How many of another lane are served before one whose turn comes after so many rounds."""
        if other[0] is lane[0]:
            return min(len(self._of[other]), turns)
        return len(self._of[other]) if lane[0] else 0

    def _order(self, busy: Counter[str]) -> list[Lane]:
        def key(lane: Lane) -> tuple[object, ...]:
            can_wait, person = lane
            return can_wait, busy[person], self._turns.get(person, 0), self._of[lane][0].started

        return sorted(self._of, key=key)
