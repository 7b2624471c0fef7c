"""The reviewer's scores, the gate's standards, and which version of the report goes on."""

import asyncio
import hashlib
import json
from typing import Any

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.evidence import Claim, Disagreement
from openassay.models.plan import Plan
from openassay.models.report import Critique, SourceCard
from openassay.nodes.report import list_open_questions
from openassay.nodes.standards import apply_standards, check_standards, question_text
from openassay.reasoning.base import CritiqueRequest, Draft, recommend
from openassay.state import Plain, State
from openassay.verification.sources import assess_credibility, group_documents


async def review(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    draft, stuck = Draft.model_validate(state["draft"]), state["stuck"] or _is_repeat(state)
    revisions = 0 if stuck else count_revisions(state, deps)
    critique = await deps.reasoner.critique(await build_review_request(state, draft, revisions, deps))
    failed = check_standards(state, draft, deps)
    critique = apply_standards(critique, failed, revisions)
    for one in failed:
        await deps.emit("notice", "review", text=f"standards: {one.issue.description}")
    await deps.emit(
        "notice", "review", text=f"review: {critique.score:.1f} of 10, {critique.recommendation}", score=critique.score
    )
    return {**await _choose_version(state, critique, revisions, deps), "stuck": stuck}


def count_revisions(state: State, deps: ResearchContext) -> int:
    """A revision that changed nothing was the last one."""
    return 0 if state["stuck"] else max(0, deps.settings.max_iterations - state["iteration"])


async def build_review_request(state: State, draft: Draft, revisions: int, deps: ResearchContext) -> CritiqueRequest:
    plan = Plan.model_validate(state["plan"])
    return CritiqueRequest(
        plan=plan,
        draft=draft,
        claims=tuple(Claim.model_validate(item) for item in state["claims"]),
        unanswered=list_open_questions(state),
        dropped=state["statements"]["dropped"],
        banned=deps.settings.banned_words,
        words=deps.max_words(plan),
        question=question_text(state),
        subjects=tuple((state["understanding"] or {}).get("subjects") or ()),
        sources=await _build_cards(state, deps),
        disagreements=tuple(Disagreement.model_validate(item) for item in state["disagreements"]),
        confidence=state["confidence"],
        today=deps.now().date(),
        revisions=revisions,
    )


async def _build_cards(state: State, deps: ResearchContext) -> tuple[SourceCard, ...]:
    documents = [await deps.documents.get(source["document"]) for source in state["sources"]]
    together = await asyncio.to_thread(group_documents, documents)
    return tuple(
        SourceCard(
            id=source["id"], title=document.title, url=document.url, document=document.hash, host=document.host,
            group=together[document.hash], why_used="", kind=document.kind, published=source["published"],
            primary=assess_credibility(document).primary, credibility=assess_credibility(document).score,
        )
        for source, document in zip(state["sources"], documents, strict=True)
    )  # fmt: skip


async def _choose_version(state: State, critique: Critique, revisions: int, deps: ResearchContext) -> State:
    """This version, unless the loop ends here and an earlier one was better."""
    best = _best_version(state)
    version: Plain = {
        "draft": state["draft"],
        "statements": state["statements"],
        "critique": critique.plain(),
        "iteration": state["iteration"],
    }
    seen = [*(best["seen"] if best else ()), _draft_digest(state)]
    if best is None or _critique_rank(best["critique"]) <= _critique_rank(version["critique"]):
        best = version
    elif critique.recommendation != "revise" or not revisions:
        await deps.emit("notice", "review", text=f"version {best['iteration']} was reviewed better and is taken")
        version = {**best, "critique": _finalize_critique(best["critique"])}
    return {
        "draft": version["draft"],
        "statements": version["statements"],
        "critique": version["critique"],
        "issues": version["critique"]["issues"],
        "best": {**best, "seen": seen},
        "status": Status.REVISING if version["critique"]["recommendation"] == "revise" else Status.REVIEWING,
        "current_agent": "review",
    }


def _best_version(state: State) -> Plain | None:
    """The best version so far. Once a person has sent a report back, none that they have seen comes again."""
    best, back = state.get("best"), str(state["edits"].get("back") or "")
    turn = back.rpartition(":")[2]
    return None if best is None or (turn.isdecimal() and best["iteration"] < int(turn)) else best


def _is_repeat(state: State) -> bool:
    """Whether a revision has gone back to a version that was reviewed before: the next would go round in circles."""
    best = _best_version(state)
    return best is not None and _draft_digest(state) in best["seen"]


def _draft_digest(state: State) -> str:
    told = json.dumps((state["draft"] or {})["sections"], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _critique_rank(critique: Any) -> tuple[bool, bool, float]:
    critical = any(issue["severity"] == "critical" for issue in critique["issues"])
    return critique["recommendation"] == "approve", not critical, critique["score"]


def _finalize_critique(critique: Plain) -> Plain:
    """A review made while revisions were left, now that there are none."""
    judged = Critique.model_validate(critique)
    return judged.model_copy(update={"recommendation": recommend(judged.score, judged.issues)}).plain()
