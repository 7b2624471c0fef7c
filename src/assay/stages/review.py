"""The reviewer's scores and what follows from them."""

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.claim import Claim
from assay.model.event import Status
from assay.model.plan import Plan
from assay.reasoning.protocol import CritiqueRequest, Draft
from assay.stages.write import unanswered
from assay.state import State


async def review(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    plan = Plan.model_validate(state["plan"])
    critique = await deps.reasoner.critique(
        CritiqueRequest(
            plan=plan,
            draft=Draft.model_validate(state["draft"]),
            claims=tuple(Claim.model_validate(item) for item in state["claims"]),
            unanswered=unanswered(state),
            dropped=state["statements"]["dropped"],
            banned=deps.settings.banned_words,
            words=deps.words(plan),
        )
    )
    await deps.emit(
        "notice", "review", text=f"review: {critique.score:.1f} of 10, {critique.recommendation}", score=critique.score
    )
    return {
        "critique": critique.plain(),
        "issues": [issue.plain() for issue in critique.issues],
        "status": Status.REVISING if critique.recommendation == "revise" else Status.REVIEWING,
        "current_agent": "review",
    }
