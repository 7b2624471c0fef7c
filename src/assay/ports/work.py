"""Who works on which run."""

from typing import NamedTuple, Protocol


class Lease(NamedTuple):
    """A thread that was taken. `token` is another each time; 0 where a holder cannot lose its thread while it lives.
    `falls` says how many in a row died, or were lost, while they held it."""

    thread: str
    token: int = 0
    falls: int = 0


class RunLocks(Protocol):
    """One worker at a time on a thread; what a dead one held is free, at once or in a moment."""

    def take(self, thread: str, *, forgive: bool = True) -> Lease:
        """Raises ThreadBusyError. `forgive`: falls are counted from here on, since a person wants it tried."""
        ...

    def release(self, thread: str) -> None:
        """In good order: its falls are forgotten. What is not held here, or no longer, is left as it is."""
        ...

    def holds(self, thread: str) -> bool:
        """Whether it still does: another worker may have it by now."""
        ...

    def is_free(self, thread: str) -> bool:
        """Whether it could be taken; looking is in nobody's way."""
        ...

    def falls(self, thread: str) -> int:
        """How many in a row have died while they held it; whoever holds it now counts as if it did."""
        ...

    def progressed(self, thread: str) -> None:
        """Whoever holds it here has got further than those before: falls are counted from here on."""
        ...


class Dispatch(Protocol):
    """Runs that are in line, and whoever takes them up: people take turns, and what a process that died has left is
    gone on with."""

    def nudge(self, run: str) -> None:
        """It was put in line just now."""
        ...

    def position(self, run: str) -> int | None:
        """Its place in line, from 1, as it was a moment ago; None where it is not in line."""
        ...

    @property
    def waiting(self) -> int: ...

    @property
    def working(self) -> int: ...

    def is_alive(self) -> bool:
        """Whether anybody takes up runs."""
        ...

    async def run(self) -> None:
        """Until it is cancelled."""
        ...
