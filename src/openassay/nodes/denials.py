"""What sentences elsewhere deny a claim that its own passage bears out: a myth that a list of myths copies, a report
that another calls false."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from openassay.models.evidence import Claim, Document, QuoteSpan, Verdict
from openassay.reasoning.base import Reasoner
from openassay.verification.corroboration import CorroborationIndex
from openassay.verification.denials import can_deny, can_retract

MOST_EACH = 3  # sentences for a claim
MOST_PAIRS = 120  # of a run; one takes a tenth of a second on two cores


class Denial(NamedTuple):
    claim: Claim
    span: QuoteSpan

    @property
    def is_own(self) -> bool:
        """Whether a document that bears the claim out denies it."""
        return any(span.document == self.span.document for span in self.claim.spans)


async def find_denials(
    claims: Sequence[Claim], index: CorroborationIndex, documents: Mapping[str, Document], reasoner: Reasoner
) -> list[Denial]:
    """Find what denies the supported claims in all that was read, at most one sentence of a document for each."""
    suspects = await asyncio.to_thread(_list_suspects, claims, index, documents)
    pairs = {(one.claim.text, one.span.quote): one for one in suspects}
    denied = await reasoner.find_denials(list(pairs)) if pairs else ()
    found: dict[tuple[str, str], Denial] = {}
    for pair, one in pairs.items():
        if pair in denied:
            found.setdefault((one.claim.id, one.span.document), one)
    return list(found.values())


def _list_suspects(
    claims: Sequence[Claim], index: CorroborationIndex, documents: Mapping[str, Document]
) -> list[Denial]:
    """Those that come first for a claim before those that come second for any."""
    ranked = [_list_own_suspects(claim, index, documents) for claim in claims if claim.verdict is Verdict.SUPPORTED]
    return [one for level in zip_longest(*ranked) for one in level if one][:MOST_PAIRS]


def _list_own_suspects(claim: Claim, index: CorroborationIndex, documents: Mapping[str, Document]) -> list[Denial]:
    found = []
    for near in index.find_nearby(claim.text):
        one = Denial(claim, near.span)
        if one.is_own and not can_retract(claim.text, near.span.quote, near.added):
            continue
        if can_deny(claim.text, near.span.quote, near.added, documents[near.span.document].title):
            found.append(one)
    return found[:MOST_EACH]
