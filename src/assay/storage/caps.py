"""The rules of the ledger: what a run may still use, and what is booked for a call."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from assay.errors import BudgetError, StorageError
from assay.model.spend import MICRO, Caps, Charge, Reservation

# Why a call ended without an answer; a line without an error has one, or may still get one.
NEVER_SENT = "never sent: its caller died"
LOST = "no answer: its caller died"
BILLED = "billed without an answer"

_HELP = {
    "usd": "Raise budget.usd (ASSAY_BUDGET__USD or --budget), or choose a cheaper model.",
    "tokens": "Raise budget.tokens (ASSAY_BUDGET__TOKENS), or ask for less depth.",
    "requests": "Raise budget.requests (ASSAY_BUDGET__REQUESTS), or ask for less depth.",
}


class Amounts(NamedTuple):
    """Of each thing that has a cap."""

    micros: int
    tokens: int
    requests: int


class Account(NamedTuple):
    caps: Caps
    used: Amounts  # booked and reserved together
    refused: bool


class Booking(NamedTuple):
    micros: int
    tokens: int
    prompt_tokens: int
    completion_tokens: int
    confirmed: bool


def limits(caps: Caps, *, research: bool) -> Amounts:
    kept = caps.finish_share if research else 0.0
    return Amounts(*(_part(cap, 1 - _exact(kept)) for cap in (caps.micros, caps.tokens, caps.requests)))


def is_larger(caps: Caps, before: Caps) -> bool:
    """Whether research may use more of anything than it might before."""
    pairs = zip(limits(caps, research=True), limits(before, research=True), strict=True)
    return any(now > then for now, then in pairs)


def has_share(wanted: Reservation) -> bool:
    return wanted.research and wanted.share < 1 and bool(wanted.task)


def over_caps(wanted: Reservation, account: Account) -> BudgetError | None:
    """Why the call does not fit into what is left of the caps, or None."""
    purpose = " for research" if wanted.research else ""
    asked = Amounts(wanted.micros, wanted.tokens, 1)
    return _over(wanted, asked, account.used, limits(account.caps, research=wanted.research), purpose)


def over_share(wanted: Reservation, caps: Caps, used: Amounts) -> BudgetError | None:
    """Why this task may not make another research call: it has used its share. The worst case of the call does not
    count, since it may be more than a share of which the call needs a tenth; the caps hold all the same."""
    shares = (_part(limit, _exact(wanted.share)) for limit in limits(caps, research=True))
    for cap, ask, have, share in zip(_HELP, (wanted.micros, wanted.tokens), used, shares, strict=False):
        if ask and have >= share:
            message = f"task {wanted.task} has used its share of the {cap} for research"
            return BudgetError(message, help=_HELP[cap], cap=cap, run=wanted.run, provider=wanted.provider)
    return None


def stands_open(wanted: Reservation, account: Account, open: Amounts) -> bool:
    """Whether nothing but open reservations stands in the way of a call: once they are settled it may fit."""
    booked = Amounts(*(used - held for used, held in zip(account.used, open, strict=True)))
    return over_caps(wanted, account._replace(used=booked)) is None


def booked(charge: Charge, worst: Amounts) -> Booking:
    """Usage that is missing, or more than the worst case, is not believed: the worst case is booked."""
    tokens = charge.prompt_tokens + charge.completion_tokens
    if charge.micros is None or charge.micros > worst.micros or tokens > worst.tokens:
        return Booking(worst.micros, worst.tokens, 0, 0, confirmed=False)
    return Booking(charge.micros, tokens, charge.prompt_tokens, charge.completion_tokens, confirmed=True)


def dollars(micros: int) -> str:
    whole, rest = divmod(micros, MICRO)
    return f"${whole:,}.{f'{rest:06}'.rstrip('0').ljust(2, '0')}"


def no_account(run: str) -> StorageError:
    return StorageError(f"run {run} has no account", help="Open it with its caps before the first call.", run=run)


def no_row(missing: KeyError) -> StorageError:
    return StorageError(f"a row of the ledger lacks {missing}", help="Restore what was exported, as it is.")


def out_of_turn(key: str, verb: str, state: str | None) -> StorageError:
    """A caller that reserves what is in use or answered, or goes on with what is not its own any more."""
    held = f"it is {state}" if state else "there is none"
    return StorageError(
        f"call {key} cannot be {verb}: {held}",
        help="Ask for its answer first, then reserve it, and send it only once.",
        key=key,
    )


@lru_cache(maxsize=64)
def _exact(share: float) -> Fraction:
    """0.15 as it was written: a float would be off by a micro-dollar."""
    return Fraction(str(share))


def _part(amount: int, share: Fraction) -> int:
    return math.floor(amount * share)


def _over(wanted: Reservation, asked: Amounts, used: Amounts, most: Amounts, purpose: str) -> BudgetError | None:
    for cap, ask, have, limit in zip(_HELP, asked, used, most, strict=True):
        if ask and have + ask > limit:
            message = _message(cap, ask, max(limit - have, 0), limit, purpose)
            return BudgetError(message, help=_HELP[cap], cap=cap, run=wanted.run, provider=wanted.provider)
    return None


def _message(cap: str, ask: int, left: int, limit: int, purpose: str) -> str:
    if cap == "requests":
        return f"all of the {limit:,} requests{purpose} have been made"
    if cap == "tokens":
        return f"this call could use {ask:,} tokens and only {left:,} of the {limit:,}{purpose} are left"
    cost, rest, whole = dollars(ask), dollars(left), dollars(limit)
    return f"this call could cost {cost} and only {rest} of the {whole}{purpose} are left"
