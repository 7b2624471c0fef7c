"""What a report says of disagreements and of what was looked for in vain, as data."""

from collections.abc import Mapping, Sequence

from assay.model.claim import Claim
from assay.model.evidence import Disagreement
from assay.model.plan import Plan
from assay.model.report import Dispute, NotFound, Side, SourceCard
from assay.stages.dispatch import asked
from assay.stages.unanswered import unanswered
from assay.state import State


def disputes(state: State, claims: Mapping[str, Claim], cards: Sequence[SourceCard]) -> tuple[Dispute, ...]:
    by_document = {card.document: card for card in cards}
    matters = [Disagreement.model_validate(item) for item in state["disagreements"]]
    return tuple(
        Dispute(about=matter.about, resolved=matter.resolved, resolution=matter.resolution,
                sides=tuple(_side([claims[id] for id in side if id in claims], by_document) for side in matter.sides))
        for matter in matters
    )  # fmt: skip


def _side(claims: Sequence[Claim], cards: Mapping[str, SourceCard]) -> Side:
    behind = [cards[span.document] for claim in claims for span in claim.spans if span.document in cards]
    return Side(
        claims=tuple(claim.id for claim in claims),
        sources=tuple(dict.fromkeys(card.id for card in behind)),
        groups=tuple(dict.fromkeys(card.group for card in behind)),
    )


def not_found(state: State) -> tuple[NotFound, ...]:
    if not state["plan"]:
        return ()
    plan = Plan.model_validate(state["plan"])
    open_questions = set(unanswered(state))
    lines = [line.partition(" ") for line in asked(state)]
    return tuple(
        NotFound(
            question=question.text,
            queries=tuple(text for id, _, text in lines if id == question.id),
            documents=len(_read(state, question.id)),
            reason="nothing read speaks to it" if question.id not in _found(state) else "what was read is too weak",
        )
        for question in plan.questions
        if question.text in open_questions
    )


def _read(state: State, question: str) -> set[str]:
    return {
        document
        for key, places in state["perused"].items()
        if key.partition(":")[2] == question
        for document, _ in places
    }


def _found(state: State) -> set[str]:
    return {finding["question"] for finding in state["findings"]}
