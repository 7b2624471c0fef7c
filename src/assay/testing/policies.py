"""When a fault is played."""

import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assay.testing.faults import FAULTS, Fault

if TYPE_CHECKING:
    from assay.testing.provider import ProviderCall

Named = Fault | str


class Always:
    """At every call."""

    def __init__(self, fault: Named) -> None:
        self._fault = _fault(fault)

    def __call__(self, call: "ProviderCall") -> Fault | None:
        return self._fault


class Once:
    """The first time that a prompt is seen, so that every second attempt succeeds."""

    def __init__(self, fault: Named) -> None:
        self._fault = _fault(fault)
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, call: "ProviderCall") -> Fault | None:
        prompt = (call.form, call.prompt.text)
        if prompt in self._seen:
            return None
        self._seen.add(prompt)
        return self._fault


class Share:
    """At a share of the calls, chosen by their number: the same seed makes the same choice."""

    def __init__(self, share: float, seed: int, faults: Iterable[Named] | None = None) -> None:
        self._share = share
        self._seed = seed
        quick = [fault for fault in FAULTS.values() if not fault.slow]
        self._faults = quick if faults is None else [_fault(fault) for fault in faults]

    def __call__(self, call: "ProviderCall") -> Fault | None:
        chance = random.Random(f"{self._seed}:{call.number}")  # noqa: S311
        known = [fault for fault in self._faults if call.format in fault.formats]
        return chance.choice(known) if known and chance.random() < self._share else None


class Script:
    """One after the other, None for none; then no more."""

    def __init__(self, faults: Sequence[Named | None]) -> None:
        self._faults = [None if fault is None else _fault(fault) for fault in faults]

    def __call__(self, call: "ProviderCall") -> Fault | None:
        return self._faults[call.number - 1] if call.number <= len(self._faults) else None


def _fault(named: Named) -> Fault:
    return named if isinstance(named, Fault) else FAULTS[named]
