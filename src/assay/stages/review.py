"""The reviewer's scores, the gate's standards, and which version of the report goes on."""

import asyncio
import hashlib
import json
from typing import Any

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.claim import Claim
from assay.model.event import Status
from assay.model.evidence import Disagreement
from assay.model.plan import Plan
from assay.model.report import Critique, SourceCard
from assay.reasoning.embedded.critique import recommend
from assay.reasoning.protocol import CritiqueRequest, Draft
from assay.stages.standards import asked, gated, unmet
from assay.stages.unanswered import unanswered
from assay.state import Plain, State
from assay.trust.credibility import assess
from assay.trust.independence import groups


async def review(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    draft, stuck = Draft.model_validate(state["draft"]), state["stuck"] or _seen(state)
    revisions = 0 if stuck else revisions_left(state, deps)
    critique = await deps.reasoner.critique(await review_request(state, draft, revisions, deps))
    failed = unmet(state, draft, deps)
    critique = gated(critique, failed, revisions)
    for one in failed:
        await deps.emit("notice", "review", text=f"standards: {one.issue.description}")
    await deps.emit(
        "notice", "review", text=f"review: {critique.score:.1f} of 10, {critique.recommendation}", score=critique.score
    )
    return {**await _kept(state, critique, revisions, deps), "stuck": stuck}


def revisions_left(state: State, deps: Deps) -> int:
    """A revision that changed nothing was the last one."""
    return 0 if state["stuck"] else max(0, deps.settings.max_iterations - state["iteration"])


async def review_request(state: State, draft: Draft, revisions: int, deps: Deps) -> CritiqueRequest:
    plan = Plan.model_validate(state["plan"])
    return CritiqueRequest(
        plan=plan,
        draft=draft,
        claims=tuple(Claim.model_validate(item) for item in state["claims"]),
        unanswered=unanswered(state),
        dropped=state["statements"]["dropped"],
        banned=deps.settings.banned_words,
        words=deps.words(plan),
        question=asked(state),
        subjects=tuple((state["understanding"] or {}).get("subjects") or ()),
        sources=await _sources(state, deps),
        disagreements=tuple(Disagreement.model_validate(item) for item in state["disagreements"]),
        confidence=state["confidence"],
        today=deps.now().date(),
        revisions=revisions,
    )


async def _sources(state: State, deps: Deps) -> tuple[SourceCard, ...]:
    documents = [await deps.documents.get(source["document"]) for source in state["sources"]]
    together = await asyncio.to_thread(groups, documents)
    return tuple(
        SourceCard(
            id=source["id"], title=document.title, url=document.url, document=document.hash, host=document.host,
            group=together[document.hash], why_used="", kind=document.kind, published=source["published"],
            primary=assess(document).primary, credibility=assess(document).score,
        )
        for source, document in zip(state["sources"], documents, strict=True)
    )  # fmt: skip


async def _kept(state: State, critique: Critique, revisions: int, deps: Deps) -> State:
    """This version, unless the loop ends here and an earlier one was better."""
    best = _earlier(state)
    version: Plain = {
        "draft": state["draft"],
        "statements": state["statements"],
        "critique": critique.plain(),
        "iteration": state["iteration"],
    }
    seen = [*(best["seen"] if best else ()), _digest(state)]
    if best is None or _rank(best["critique"]) <= _rank(version["critique"]):
        best = version
    elif critique.recommendation != "revise" or not revisions:
        await deps.emit("notice", "review", text=f"version {best['iteration']} was reviewed better and is taken")
        version = {**best, "critique": _settled(best["critique"])}
    return {
        "draft": version["draft"],
        "statements": version["statements"],
        "critique": version["critique"],
        "issues": version["critique"]["issues"],
        "best": {**best, "seen": seen},
        "status": Status.REVISING if version["critique"]["recommendation"] == "revise" else Status.REVIEWING,
        "current_agent": "review",
    }


def _earlier(state: State) -> Plain | None:
    """The best version so far. Once a person has sent a report back, none that they have seen comes again."""
    best, back = state.get("best"), str(state["edits"].get("back") or "")
    turn = back.rpartition(":")[2]
    return None if best is None or (turn.isdecimal() and best["iteration"] < int(turn)) else best


def _seen(state: State) -> bool:
    """Whether a revision has gone back to a version that was reviewed before: the next would go round in circles."""
    best = _earlier(state)
    return best is not None and _digest(state) in best["seen"]


def _digest(state: State) -> str:
    told = json.dumps((state["draft"] or {})["sections"], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _rank(critique: Any) -> tuple[bool, bool, float]:
    critical = any(issue["severity"] == "critical" for issue in critique["issues"])
    return critique["recommendation"] == "approve", not critical, critique["score"]


def _settled(critique: Plain) -> Plain:
    """A review made while revisions were left, now that there are none."""
    judged = Critique.model_validate(critique)
    return judged.model_copy(update={"recommendation": recommend(judged.score, judged.issues)}).plain()
