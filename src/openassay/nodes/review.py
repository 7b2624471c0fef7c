"""Review the draft: the reviewer's scores, the standards it must meet, and which version of the report goes on."""

import asyncio
import hashlib
import json

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.report import Critique
from openassay.nodes.read import load_documents
from openassay.nodes.report import build_card, list_open_questions
from openassay.nodes.standards import apply_standards, check_standards
from openassay.reasoning.base import CritiqueRequest, Draft, recommend
from openassay.state import (
    Plain,
    State,
    load_claims,
    load_disagreements,
    load_edits,
    load_plan,
    load_question,
    load_sources,
)
from openassay.verification.sources import group_documents


async def review(state: State, runtime: Runtime[ResearchContext]) -> State:
    context, draft = runtime.context, Draft.model_validate(state["draft"])
    digest = hashlib.sha256(json.dumps((state["draft"] or {})["sections"], sort_keys=True).encode()).hexdigest()[:16]
    best = state.get("best")
    # Once a person has sent a report back, no version that they have seen comes again.
    turn = str(load_edits(state).get("back") or "").rpartition(":")[2]
    if best and turn.isdecimal() and best["iteration"] < int(turn):
        best = None
    seen: list[str] = best["seen"] if best else []
    # A revision that goes back to a version reviewed before would go round in circles.
    stuck = state["stuck"] or digest in seen
    revisions = 0 if stuck else count_revisions(state, context)
    critique = await context.reasoner.critique(await build_review_request(state, draft, revisions, context))
    failures = check_standards(state, draft, context)
    critique = apply_standards(critique, failures, revisions)
    for failure in failures:
        await context.emit("notice", "review", text=f"standards: {failure.issue.description}")
    text = f"review: {critique.score:.1f} of 10, {critique.recommendation}"
    await context.emit("notice", "review", text=text, score=critique.score)
    # This version goes on, unless the loop ends here and an earlier one was better.
    version: Plain = {
        "draft": state["draft"],
        "statements": state["statements"],
        "critique": critique.plain(),
        "iteration": state["iteration"],
    }
    earlier = Critique.model_validate(best["critique"]) if best else None
    if best is None or earlier is None or _critique_rank(earlier) <= _critique_rank(critique):
        best = version
    elif critique.recommendation != "revise" or not revisions:
        await context.emit("notice", "review", text=f"version {best['iteration']} was reviewed better and is used")
        # It was reviewed while revisions were left; now there are none.
        recommendation = recommend(earlier.score, earlier.issues)
        critique = earlier.model_copy(update={"recommendation": recommendation})
        version = {**best, "critique": critique.plain()}
    return {
        "draft": version["draft"],
        "statements": version["statements"],
        "critique": version["critique"],
        "issues": version["critique"]["issues"],
        "best": {**best, "seen": [*seen, digest]},
        "status": Status.REVISING if critique.recommendation == "revise" else Status.REVIEWING,
        "current_agent": "review",
        "stuck": stuck,
    }


def count_revisions(state: State, context: ResearchContext) -> int:
    """Count the revisions left. One that changed nothing was the last."""
    return 0 if state["stuck"] else max(0, context.settings.max_iterations - state["iteration"])


async def build_review_request(state: State, draft: Draft, revisions: int, context: ResearchContext) -> CritiqueRequest:
    plan, sources = load_plan(state), load_sources(state)
    documents = await load_documents((source["document"] for source in sources), context)
    groups = await asyncio.to_thread(group_documents, documents.values())
    return CritiqueRequest(
        plan=plan,
        draft=draft,
        claims=tuple(load_claims(state)),
        unanswered=list_open_questions(state),
        dropped=state["statements"]["dropped"],
        banned=context.settings.banned_words,
        words=context.max_words(plan),
        question=load_question(state),
        subjects=tuple((state["understanding"] or {}).get("subjects") or ()),
        sources=tuple(build_card(source, documents[source["document"]], groups) for source in sources),
        disagreements=tuple(load_disagreements(state)),
        confidence=state["confidence"],
        today=context.now().date(),
        revisions=revisions,
    )


def _critique_rank(critique: Critique) -> tuple[bool, bool, float]:
    critical = any(issue.severity == "critical" for issue in critique.issues)
    return critique.recommendation == "approve", not critical, critique.score
