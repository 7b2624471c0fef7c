"""Whether all is there that a process needs, looked at whenever somebody asks and not more often than is good."""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from assay.errors import AssayError

_log = logging.getLogger("assay")
PATIENCE = 5.0  # seconds after which something that does not answer is taken for broken
FRESH = 1.0  # seconds for which what was found is told again
# What can be done without is not waited for: whoever asks whether a process can work may give up after a second.
SOFT_PATIENCE, SOFT_FRESH = 0.5, 15.0


class Check(NamedTuple):
    """`look` says what is there, or raises AssayError or OSError; it blocks, and is called in a thread. `problem` is
    what everybody is told: no path and no address. `is_soft`: Assay works without, only not as well."""

    name: str
    problem: str
    look: Callable[[], str]
    is_soft: bool = False


class Finding(NamedTuple):
    name: str
    good: bool
    detail: str
    help: str = ""
    soft: bool = False
    problem: str = ""


class Ready(NamedTuple):
    """What keeps a process from working, and what it has to do without."""

    problems: list[str]
    degraded: list[str]


class Readiness:
    """However many ask: each check has one thread at the most, and one that hangs is not begun again before it has
    ended."""

    def __init__(self, checks: Iterable[Check]) -> None:
        self._looks = [_Look(check) for check in checks]

    async def findings(self) -> list[Finding]:
        """All of them, waited for."""
        return list(await asyncio.gather(*(look.found(PATIENCE) for look in self._looks)))

    async def ready(self) -> Ready:
        found = await asyncio.gather(*(look.found() for look in self._looks))
        bad = [finding for finding in found if not finding.good]
        return Ready(
            [finding.problem for finding in bad if not finding.soft],
            [finding.problem for finding in bad if finding.soft],
        )


class _Look:
    """At one thing, with what was found there last."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._task: asyncio.Task[str] | None = None
        self._last = Finding(check.name, True, "not looked at yet")
        self._at = -math.inf

    async def found(self, patience: float | None = None) -> Finding:
        is_soft = self._check.is_soft
        if _now() - self._at < (SOFT_FRESH if is_soft else FRESH):
            return self._last
        task = self._task  # which somebody else may begin anew meanwhile
        if task is None or task.done():
            task = self._task = asyncio.create_task(asyncio.to_thread(self._check.look))
        patience = patience or (SOFT_PATIENCE if is_soft else PATIENCE)
        done, _ = await asyncio.wait([task], timeout=patience)
        if done or not is_soft or patience >= PATIENCE:
            self._at = _now()
            self._tell(self._seen(task) if done else self._bad(f"no answer within {patience:g} s"))
        return self._last

    def _seen(self, task: asyncio.Task[str]) -> Finding:
        try:
            return Finding(self._check.name, True, task.result(), soft=self._check.is_soft)
        except AssayError as error:
            return self._bad(error.message, error.help)
        except OSError as error:
            return self._bad(error.strerror or str(error))

    def _bad(self, detail: str, help: str = "") -> Finding:
        return Finding(self._check.name, False, detail, help, self._check.is_soft, self._check.problem)

    def _tell(self, found: Finding) -> None:
        """In the log once, not whenever somebody asks."""
        if found.good and not self._last.good:
            _log.warning("it is over: %s", self._last.problem)
        elif not found.good and (self._last.good or self._last.detail != found.detail):
            _log.warning("%s: %s (%s)", "degraded" if found.soft else "not ready", found.problem, found.detail)
        self._last = found


def _now() -> float:
    return asyncio.get_running_loop().time()
