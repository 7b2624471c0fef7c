"""Synthesis: the report's sentences, each checked again against the spans of the claims it is bound to."""

import json
from collections.abc import Mapping, Sequence

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.claim import Claim, Verdict
from assay.model.event import Status
from assay.model.evidence import Disagreement
from assay.model.plan import Plan
from assay.model.report import Issue
from assay.reasoning.protocol import Draft, DraftSection, DraftSentence, WriteRequest
from assay.state import State
from assay.trust.figures import check
from assay.trust.frames import Told


async def write(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    claims = {item["id"]: Claim.model_validate(item) for item in state["claims"]}
    draft = await deps.reasoner.write(_request(state, claims, deps))
    own_words = {claim.text for claim in claims.values()}
    told = Told(_told(state, draft))
    sections, retold, failed, dropped = [], 0, 0, 0
    for section in draft.sections:
        kept = [await _checked(sentence, claims, told, deps) for sentence in section.sentences]
        for old, new in zip(section.sentences, kept, strict=True):
            lost = new is None or new.text != old.text
            in_other_words = bool(old.claims) and old.text not in own_words
            retold, failed, dropped = retold + in_other_words, failed + (lost and in_other_words), dropped + lost
        sections.append(section.model_copy(update={"sentences": tuple(s for s in kept if s is not None)}))
        await deps.emit("section", "write", title=section.title, sentences=len(section.sentences))
    draft = draft.model_copy(update={"sections": tuple(_worth_reading(sections)), "version": state["iteration"] + 1})
    return {
        "draft": draft.plain(),
        "stuck": _same(draft, state),
        "statements": {"retold": retold, "failed": failed, "dropped": dropped},
        "iteration": state["iteration"] + 1,
        "status": Status.REVIEWING,
        "current_agent": "synthesis",
    }


def _same(draft: Draft, state: State) -> bool:
    """Whether a revision changed nothing; another one would not either."""
    return state["draft"] is not None and Draft.model_validate(state["draft"]).sections == draft.sections


def _request(state: State, claims: Mapping[str, Claim], deps: Deps) -> WriteRequest:
    return WriteRequest(
        plan=Plan.model_validate(state["plan"]),
        claims=tuple(claims.values()),
        disagreements=tuple(Disagreement.model_validate(item) for item in state["disagreements"]),
        unanswered=unanswered(state),
        style=deps.options.style,
        words=deps.options.words,
        banned=deps.settings.banned_words,
        fixes=_fixes(state),
    )


def _fixes(state: State) -> tuple[str, ...]:
    """What a writer can act on; a suggestion is no reason to rewrite."""
    issues = map(Issue.model_validate, state["issues"])
    return tuple(dict.fromkeys(issue.fix for issue in issues if issue.fix and issue.severity != "suggestion"))


def unanswered(state: State) -> tuple[str, ...]:
    """Sub-questions no supported claim speaks to, or that the analysis found wanting."""
    plan = Plan.model_validate(state["plan"])
    spoken = {q for claim in state["claims"] if claim["verdict"] == Verdict.SUPPORTED for q in claim["questions"]}
    wanting = set((state["analysis"] or {}).get("unanswered", ()))
    return tuple(question.text for question in plan.questions if question.id not in spoken or question.text in wanting)


def _told(state: State, draft: Draft) -> list[str]:
    """What a sentence about the research may name: the question, the plan, and titles."""
    titles = [section.title for section in draft.sections] + [source["title"] for source in state["sources"]]
    return [state["original_query"], json.dumps(state["plan"], ensure_ascii=False), *titles]


async def _checked(
    sentence: DraftSentence, claims: Mapping[str, Claim], told: Told, deps: Deps
) -> DraftSentence | None:
    """The sentence as it is, in its claim's own words, or not at all."""
    if not sentence.claims:
        return sentence if told.covers(sentence.text) else None
    bound = [claims[name] for name in sentence.claims if name in claims]
    if len(bound) != len(sentence.claims) or any(claim.verdict is not Verdict.SUPPORTED for claim in bound):
        return None
    if await _holds(sentence, bound, deps):
        return sentence
    own = DraftSentence(text=bound[0].text, claims=(bound[0].id,))
    return own if sentence.text != own.text and await _holds(own, bound[:1], deps) else None


async def _holds(sentence: DraftSentence, bound: Sequence[Claim], deps: Deps) -> bool:
    quotes = [span.quote for claim in bound for span in claim.spans]
    if not quotes or not check(sentence.text, quotes).agrees:
        return False
    if any(sentence.text == claim.text for claim in bound):
        return True
    [judgement] = await deps.reasoner.judge([(sentence.text, quotes)])
    return judgement.verdict is Verdict.SUPPORTED


def _worth_reading(sections: Sequence[DraftSection]) -> list[DraftSection]:
    """A disagreement needs a statement on each side; a section that lost all its sentences is gone."""
    kept = []
    for section in sections:
        facts = sum(bool(sentence.claims) for sentence in section.sentences)
        if section.sentences and (section.role in ("not_found", "conclusion", "notice") or facts):
            kept.append(section)
    return kept
