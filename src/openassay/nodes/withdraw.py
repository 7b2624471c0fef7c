"""A source is taken out of a finished report: what rested on it is derived again, everything else stays as it was.

Claims that never touched it keep their verdict, sentences bound to such claims keep their words, and nothing is asked
of a model but to judge what is left of the others (X-09).
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import cast

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.evidence import Claim, Disagreement, Verdict
from openassay.models.report import Critique
from openassay.nodes.consolidate import consolidate
from openassay.nodes.report import select_answers
from openassay.nodes.review import build_review_request
from openassay.nodes.verify import (
    ClaimWording,
    add_disputes,
    decide_claims,
    judge_statements,
    lower_credibility,
    select_wordings,
)
from openassay.nodes.write import build_write_request, collect_terms, recheck_draft
from openassay.reasoning.base import Draft, DraftClaim, DraftSection, DraftSentence, SourceRating
from openassay.state import State
from openassay.verification.sources import assess_credibility

# Told in the words of claims and frames alone, whoever writes: derived afresh, at no cost.
_FREE = ("disagreements", "not_found")


async def withdraw(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    out = frozenset(state["withdrawn"])
    left = cast("State", {**state, **_remove_sources(state, out)})
    left.update(await consolidate(left, runtime))
    before = [Claim.model_validate(item) for item in state["claims"]]
    touched = [claim for claim in before if _rests_on(claim, out)]
    again = await _rejudge_claims(touched, out, left, deps)
    kept = [again.get(claim.id, claim) for claim in before if claim.id in again or claim not in touched]
    matters = _filter_disagreements(state, kept)
    left["claims"] = [add_disputes(claim, matters).plain() for claim in kept]
    left["disagreements"] = [matter.plain() for matter in matters]
    left["draft"] = (await _revise_draft(left, {claim.id for claim in touched}, deps)).plain()
    reviewed = await _review_again(left, deps)
    told = _describe_withdrawal(state, touched, kept)
    await deps.emit("notice", "withdraw", text=told, claims=[claim.id for claim in touched])
    return {
        "sources": left["sources"],
        "findings": left["findings"],
        "selected": left["selected"],
        "coverage": left["coverage"],
        "claims": left["claims"],
        "disagreements": left["disagreements"],
        "read": left["read"],
        "confidence": min(state["confidence"], left["confidence"]),
        "credibility": {name: opinion for name, opinion in state["credibility"].items() if name not in out},
        "draft": left["draft"],
        "critique": reviewed.plain(),
        "issues": [issue.plain() for issue in reviewed.issues],
        "messages": {"replace": _drop_last_answer(state)},  # type: ignore[typeddict-item]  # the reducer's way to shorten
        "notices": {**state["notices"], "veto": told},
        "best": None,
        "status": Status.REVIEWING,
        "current_agent": "withdraw",
    }  # fmt: skip


def _remove_sources(state: State, out: Collection[str]) -> State:
    """What research has brought, less what the sources gave."""
    return {
        "sources": [source for source in state["sources"] if source["document"] not in out],
        "findings": [item for item in state["findings"] if item["span"]["document"] not in out],
        "read": {key: [item for item in items if item["span"]["document"] not in out]
                 for key, items in state["read"].items()},
        "selected": {question: [place for place in places if place["document"] not in out]
                     for question, places in state["selected"].items()},
    }  # fmt: skip


def _rests_on(claim: Claim, out: Collection[str]) -> bool:
    return any(span.document in out for span in (*claim.spans, *claim.against))


async def _rejudge_claims(
    touched: Sequence[Claim], out: Collection[str], left: State, deps: ResearchContext
) -> dict[str, Claim]:
    """Those that have a passage left, judged by it: in the words they had, or in that passage's own."""
    variants = [
        ClaimWording(claim.id, DraftClaim(wordings=(text,), findings=(), questions=claim.questions,
                                     relevance=claim.relevance), text, spans)
        for claim in touched
        if (spans := [span for span in (*claim.spans, *claim.against) if span.document not in out])
        for text in dict.fromkeys((claim.text, *(" ".join(span.quote.split()) for span in spans)))
    ]  # fmt: skip
    documents = {source["document"]: await deps.documents.get(source["document"]) for source in left["sources"]}
    judged = await judge_statements(
        [(variant.text, [span.quote]) for variant in variants for span in variant.spans], deps
    )
    known = {name: assess_credibility(document) for name, document in documents.items()}
    opinions = {name: SourceRating.model_validate(opinion) for name, opinion in left["credibility"].items()}
    decided = await asyncio.to_thread(
        decide_claims, variants, judged.judgements, documents, lower_credibility(known, opinions), deps.support
    )
    return {claim.id: claim for claim in select_wordings(decided)}


def _filter_disagreements(state: State, claims: Sequence[Claim]) -> list[Disagreement]:
    """Disagreements of which both sides still have a claim that holds."""
    supported = {claim.id for claim in claims if claim.verdict is Verdict.SUPPORTED}
    found = []
    for matter in map(Disagreement.model_validate, state["disagreements"]):
        sides = tuple(tuple(id for id in side if id in supported) for side in matter.sides)
        if all(sides):
            found.append(matter.model_copy(update={"sides": sides}))
    return found


async def _revise_draft(left: State, touched: Collection[str], deps: ResearchContext) -> Draft:
    """The draft with the sentences that rest on touched claims checked again; the others as they were."""
    draft = Draft.model_validate(left["draft"])
    claims = {item["id"]: Claim.model_validate(item) for item in left["claims"]}
    affected = tuple(_keep_sentences(section, touched) for section in draft.sections)
    titles = {source["document"]: source["title"] for source in left["sources"]}
    known = await asyncio.to_thread(collect_terms, left)
    kept = await recheck_draft(draft.model_copy(update={"sections": affected}), claims, titles, known, deps)
    before = [sentence.text for section in affected for sentence in section.sentences]
    replaced = dict(zip(before, [now for section in kept for now in section], strict=True))
    floor = await deps.reasoner.write_verbatim(build_write_request(left, claims, deps))
    own = [section for section in draft.sections if section.role not in _FREE]
    fresh = [section for section in floor.sections if section.role in _FREE]
    frames = {s.text for section in floor.sections for s in section.sentences if not s.claims}
    patched = [_patch_section(section, replaced, frames) for section in own]
    body = [section for section in patched if section.role not in ("conclusion", "notice")]
    after = [section for section in patched if section.role in ("conclusion", "notice")]
    told = tuple(section for section in (*body, *fresh, *after) if section.sentences)
    return draft.model_copy(update={"sections": told, "answers": select_answers(draft.answers, claims)})


def _keep_sentences(section: DraftSection, touched: Collection[str]) -> DraftSection:
    return section.model_copy(update={"sentences": tuple(s for s in section.sentences if set(s.claims) & set(touched))})


def _patch_section(
    section: DraftSection, replaced: Mapping[str, Sequence[DraftSentence]], frames: Collection[str]
) -> DraftSection:
    """A conclusion's counts are only repeated where they would be told again."""
    sentences: list[DraftSentence] = []
    for sentence in section.sentences:
        if sentence.text in replaced:
            sentences += replaced[sentence.text]
        elif sentence.claims or section.role != "conclusion" or sentence.text in frames:
            sentences.append(sentence)
    return section.model_copy(update={"sentences": tuple({s.text: s for s in sentences}.values())})


async def _review_again(left: State, deps: ResearchContext) -> Critique:
    """What can be counted is counted again; what a model has thought of the report before is not asked anew, and the
    lower score holds."""
    request = await build_review_request(left, Draft.model_validate(left["draft"]), 0, deps)
    critique = await deps.reasoner.score_draft(request)
    earlier = Critique.model_validate(left["critique"]) if left["critique"] else critique
    lower = {name: min(score, earlier.scores.get(name, score)) for name, score in critique.scores.items()}
    return critique.model_copy(update={"scores": lower, "score": min(critique.score, earlier.score)})


def _drop_last_answer(state: State) -> list[dict[str, str]]:
    """The conversation without the answer that is withdrawn; the new one takes its place."""
    messages = list(state["messages"])
    return messages[:-1] if messages and messages[-1]["role"] == "assistant" else messages


def _describe_withdrawal(state: State, touched: Sequence[Claim], kept: Sequence[Claim]) -> str:
    titles = {source["document"]: source["title"] for source in state["sources"]}
    named = "; ".join(f"“{titles.get(document, document[:12])}”" for document in state["withdrawn"])
    holds = {claim.id for claim in kept if claim.verdict is Verdict.SUPPORTED}
    were = [claim for claim in touched if claim.verdict is Verdict.SUPPORTED]
    lost = sum(claim.id not in holds for claim in were)
    return (
        f"Taken out: {named}. {lost} of {len(were)} statements that rested on it are gone, the others rest on what is "
        "left; nothing else was derived again."
    )
