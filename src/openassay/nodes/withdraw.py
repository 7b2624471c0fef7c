"""Take sources out of a finished report: what rested on them is derived again, everything else stays as it was.

Claims that never touched them keep their verdict, sentences bound to such claims keep their words, and a model is asked
for nothing but to judge what remains of the others (X-09).
"""

import asyncio
from collections.abc import Collection, Sequence

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.evidence import Claim, Verdict
from openassay.nodes import verify
from openassay.nodes.analyse import consolidate
from openassay.nodes.harvest import load_read_documents
from openassay.nodes.report import select_answers
from openassay.nodes.review import build_review_request
from openassay.nodes.write import build_write_request, collect_terms, recheck_draft, source_titles
from openassay.reasoning.base import Draft, DraftClaim, DraftSentence, SourceRating
from openassay.state import Plain, State, load_claims, load_critique, load_disagreements, load_question, load_sources
from openassay.verification.sources import find_copies, rate_sources

# Written in the words of claims and frames alone, whoever writes: derived afresh, at no cost.
_FREE = ("disagreements", "not_found")


async def withdraw(state: State, runtime: Runtime[ResearchContext]) -> State:
    context = runtime.context
    documents = frozenset(state["withdrawn"])
    update = _drop_documents(state, documents)
    update.update(await consolidate({**state, **update}, runtime))
    left: State = {**state, **update}
    before = load_claims(state)
    touched = [claim for claim in before if any(span.document in documents for span in (*claim.spans, *claim.against))]
    rejudged = await _rejudge_claims(touched, documents, left, context)
    claims = [rejudged.get(claim.id, claim) for claim in before if claim.id in rejudged or claim not in touched]
    supported = {claim.id for claim in claims if claim.verdict is Verdict.SUPPORTED}
    # A disagreement stays while both sides still have a claim that holds.
    disagreements = []
    for matter in load_disagreements(state):
        sides = tuple(tuple(id for id in side if id in supported) for side in matter.sides)
        if all(sides):
            disagreements.append(matter.model_copy(update={"sides": sides}))
    left["claims"] = [verify.add_disputes(claim, disagreements).plain() for claim in claims]
    left["disagreements"] = [matter.plain() for matter in disagreements]
    draft = await _revise_draft(left, {claim.id for claim in touched}, context)
    left["draft"] = draft.plain()
    # What can be counted is counted again. A model's opinion of the report is not asked anew: the lower score holds.
    critique = await context.reasoner.score_draft(await build_review_request(left, draft, 0, context))
    if earlier := load_critique(left):
        scores = {name: min(score, earlier.scores.get(name, score)) for name, score in critique.scores.items()}
        critique = critique.model_copy(update={"scores": scores, "score": min(critique.score, earlier.score)})
    titles = source_titles(state)
    names = "; ".join(f"“{titles.get(document, document[:12])}”" for document in state["withdrawn"])
    held = [claim.id for claim in touched if claim.verdict is Verdict.SUPPORTED]
    lost = sum(id not in supported for id in held)
    note = (
        f"Taken out: {names}. {lost} of {len(held)} statements that rested on it are gone, the others rest on the "
        "remaining sources; nothing else was derived again."
    )
    out = await context.load_documents(documents)
    rest = await context.load_documents(source["document"] for source in load_sources(left))
    if copies := await asyncio.to_thread(find_copies, out.values(), rest.values()):
        shown = "; ".join(f"“{document.title}”" for document in copies)
        note += f" Much of the same text stays in {shown}: take that out, too, if the text is what is wrong."
    await context.emit("notice", "withdraw", text=note, claims=[claim.id for claim in touched])
    messages = list(state["messages"])
    if messages and messages[-1]["role"] == "assistant":  # the answer that is withdrawn; a new one takes its place
        messages.pop()
    return {
        **update,
        "claims": left["claims"],
        "disagreements": left["disagreements"],
        "confidence": min(state["confidence"], left["confidence"]),
        "credibility": {name: rating for name, rating in state["credibility"].items() if name not in documents},
        "draft": left["draft"],
        "critique": critique.plain(),
        "issues": [issue.plain() for issue in critique.issues],
        "messages": {"replace": messages},  # type: ignore[typeddict-item]  # the reducer's way to shorten
        "notices": {**state["notices"], "veto": note},
        "best": None,
        "status": Status.REVIEWING,
        "current_agent": "withdraw",
    }


def _drop_documents(state: State, documents: Collection[str]) -> State:
    """Return what research has brought, less what these documents gave."""

    def keep(items: Sequence[Plain]) -> list[Plain]:
        return [item for item in items if item.get("span", item)["document"] not in documents]

    return {
        "sources": keep(state["sources"]),
        "findings": keep(state["findings"]),
        "read": {key: keep(items) for key, items in state["read"].items()},
        "selected": {question: keep(places) for question, places in state["selected"].items()},
    }


async def _rejudge_claims(
    touched: Sequence[Claim], removed: Collection[str], left: State, context: ResearchContext
) -> dict[str, Claim]:
    """Judge the claims that have a passage left by that: in the words they had, or in the passage's own."""
    documents = await load_read_documents(left, context, (source["document"] for source in load_sources(left)))
    wordings = []
    for claim in touched:
        if spans := [span for span in (*claim.spans, *claim.against) if span.document not in removed]:
            for text in dict.fromkeys((claim.text, *(" ".join(span.quote.split()) for span in spans))):
                draft = DraftClaim(wordings=(text,), findings=(), questions=claim.questions, relevance=claim.relevance)
                contexts = [found.add_names(text) for found in verify.read_contexts(spans, documents)]
                wordings.append(verify.ClaimWording(claim.id, draft, text, contexts))
    judged = await verify.judge_statements(verify.list_pairs(wordings), context)
    known = await asyncio.to_thread(rate_sources, documents, load_question(left))
    ratings = {name: SourceRating.model_validate(rating) for name, rating in left["credibility"].items()}
    credibility = verify.lower_credibility(known, ratings)
    decided = await verify.decide_claims(wordings, judged.judgements, documents, credibility, context.reasoner)
    return {claim.id: claim for claim in verify.select_wordings(decided)}


async def _revise_draft(left: State, touched: Collection[str], context: ResearchContext) -> Draft:
    """Check the sentences of the draft that rest on touched claims again; keep the others as they were."""
    draft = Draft.model_validate(left["draft"])
    claims = {claim.id: claim for claim in load_claims(left)}
    affected = tuple(
        section.model_copy(update={"sentences": tuple(s for s in section.sentences if set(s.claims) & set(touched))})
        for section in draft.sections
    )
    terms = await asyncio.to_thread(collect_terms, left)
    checked = await recheck_draft(
        draft.model_copy(update={"sections": affected}), claims, source_titles(left), terms, context
    )
    before = [sentence.text for section in affected for sentence in section.sentences]
    replaced = dict(zip(before, [sentences for section in checked for sentences in section], strict=True))
    floor = await context.reasoner.write_verbatim(build_write_request(left, claims, context))
    frames = {s.text for section in floor.sections for s in section.sentences if not s.claims}
    patched = []
    for section in draft.sections:
        sentences: list[DraftSentence] = []
        for sentence in section.sentences:
            if sentence.text in replaced:
                sentences += replaced[sentence.text]
            # A conclusion repeats its counts only where they still hold.
            elif sentence.claims or section.role != "conclusion" or sentence.text in frames:
                sentences.append(sentence)
        once = {sentence.text: sentence for sentence in sentences}
        if section.role not in _FREE:
            patched.append(section.model_copy(update={"sentences": tuple(once.values())}))
    body = [section for section in patched if section.role not in ("conclusion", "notice")]
    fresh = [section for section in floor.sections if section.role in _FREE]
    end = [section for section in patched if section.role in ("conclusion", "notice")]
    sections = tuple(section for section in (*body, *fresh, *end) if section.sentences)
    return draft.model_copy(update={"sections": sections, "answers": select_answers(draft.answers, claims)})
