"""Trouble below something that one can do without: told when it begins, then silent until it is over."""

from collections.abc import Callable
from time import monotonic


class Outage:
    """Meanwhile nobody waits for it."""

    def __init__(
        self, on_notice: Callable[[str], None], *, rest: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._on_notice = on_notice
        self._rest = rest
        self._clock = clock
        self._lasts = False
        self._until = 0.0

    @property
    def resting(self) -> bool:
        return self._lasts and self._clock() < self._until

    def begins(self, notice: str) -> None:
        self._until = self._clock() + self._rest
        if not self._lasts:
            self._lasts = True
            self._on_notice(notice)

    def is_over(self) -> None:
        self._lasts = False
