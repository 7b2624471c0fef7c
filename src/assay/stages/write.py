"""Synthesis: the report's sentences, each checked again against the spans of the claims it is bound to."""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.claim import Claim, Verdict
from assay.model.event import Status
from assay.model.evidence import Disagreement
from assay.model.plan import Plan
from assay.model.report import Issue
from assay.reasoning.protocol import Draft, DraftSection, DraftSentence, WriteRequest
from assay.stages.opening import opened, opening
from assay.stages.verify import judge
from assay.state import State
from assay.trust.figures import check
from assay.trust.frames import Told

Kept = Sequence[Sequence[DraftSentence | None]]


class Sifted(NamedTuple):
    """A sentence of the draft after the checks that need no judge."""

    sentence: DraftSentence
    bound: tuple[Claim, ...] = ()
    standing: Literal["holds", "fails", "gone", "unsure"] = "gone"


async def write(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    claims = {item["id"]: Claim.model_validate(item) for item in state["claims"]}
    draft = await deps.reasoner.write(_request(state, claims, deps))
    # A long draft has hundreds of sentences and each is held against all its quotes: work for a thread.
    told = Told(_told(state, draft))
    sifted = await asyncio.to_thread(_sift, draft, claims, told)
    believed = await _believed(sifted, deps)
    kept = await asyncio.to_thread(lambda: [[_kept(item, believed) for item in section] for section in sifted])
    sections = []
    for section, sentences in zip(draft.sections, kept, strict=True):
        # Two sentences that failed may both have become the claim they were bound to.
        once = {sentence.text: sentence for sentence in sentences if sentence is not None}
        sections.append(section.model_copy(update={"sentences": tuple(once.values())}))
        await deps.emit("section", "write", title=section.title, sentences=len(section.sentences))
    statements = _counted(draft, kept, {claim.text for claim in claims.values()})
    earlier = Draft.model_validate(state["draft"]).notes if state["draft"] else ()
    draft = draft.model_copy(
        update={
            "sections": tuple(opened(_worth_reading(sections), opening(state, deps.options.depth, told))),
            "version": state["iteration"] + 1,
            "notes": (*earlier, *draft.notes),
        }
    )
    return {
        "draft": draft.plain(),
        "stuck": _same(draft, state),
        "statements": statements,
        "edits": {**state["edits"], "rewrite": False},
        "iteration": state["iteration"] + 1,
        "status": Status.REVIEWING,
        "current_agent": "synthesis",
    }


def _counted(draft: Draft, kept: Kept, own_words: Collection[str]) -> dict[str, int]:
    """How many sentences say a claim in other words, how many of those failed, and how many are not as drafted."""
    retold = failed = dropped = 0
    for section, sentences in zip(draft.sections, kept, strict=True):
        for old, new in zip(section.sentences, sentences, strict=True):
            lost = new is None or new.text != old.text
            in_other_words = bool(old.claims) and old.text not in own_words
            retold, failed, dropped = retold + in_other_words, failed + (lost and in_other_words), dropped + lost
    return {"retold": retold, "failed": failed, "dropped": dropped}


def _same(draft: Draft, state: State) -> bool:
    """Whether a revision changed nothing; another one would not either."""
    return state["draft"] is not None and Draft.model_validate(state["draft"]).sections == draft.sections


def _request(state: State, claims: Mapping[str, Claim], deps: Deps) -> WriteRequest:
    plan = Plan.model_validate(state["plan"])
    return WriteRequest(
        plan=plan,
        claims=tuple(claims.values()),
        disagreements=tuple(Disagreement.model_validate(item) for item in state["disagreements"]),
        unanswered=unanswered(state),
        style=deps.style(plan),
        words=deps.words(plan),
        language=deps.options.preferences.language,
        banned=deps.settings.banned_words,
        fixes=_fixes(state),
        issues=tuple(issue for issue in _issues(state) if issue.severity != "suggestion"),
        previous=Draft.model_validate(state["draft"]) if state["draft"] else None,
    )


def _fixes(state: State) -> tuple[str, ...]:
    """What a writer can act on; a suggestion is no reason to rewrite."""
    return tuple(dict.fromkeys(issue.fix for issue in _issues(state) if issue.fix and issue.severity != "suggestion"))


def _issues(state: State) -> list[Issue]:
    return [Issue.model_validate(issue) for issue in state["issues"]]


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


def _sift(draft: Draft, claims: Mapping[str, Claim], told: Told) -> list[list[Sifted]]:
    return [[_sifted(sentence, claims, told) for sentence in section.sentences] for section in draft.sections]


def _sifted(sentence: DraftSentence, claims: Mapping[str, Claim], told: Told) -> Sifted:
    if not sentence.claims:
        return Sifted(sentence, standing="holds" if told.covers(sentence.text) else "gone")
    bound = tuple(claims[name] for name in sentence.claims if name in claims)
    if len(bound) != len(sentence.claims) or any(claim.verdict is not Verdict.SUPPORTED for claim in bound):
        return Sifted(sentence)
    if not _agrees(sentence.text, bound):
        return Sifted(sentence, bound, "fails")
    return Sifted(sentence, bound, "holds" if any(sentence.text == claim.text for claim in bound) else "unsure")


def _agrees(text: str, bound: Sequence[Claim]) -> bool:
    quotes = _quotes(bound)
    return bool(quotes) and check(text, quotes).agrees


def _quotes(bound: Sequence[Claim]) -> list[str]:
    return [span.quote for claim in bound for span in claim.spans]


async def _believed(sifted: Sequence[Sequence[Sifted]], deps: Deps) -> set[DraftSentence]:
    """Of the sentences in words of their own, those their quotes bear out: all judged in one call."""
    unsure = {item.sentence: item.bound for section in sifted for item in section if item.standing == "unsure"}
    judged = await judge([(sentence.text, _quotes(bound)) for sentence, bound in unsure.items()], deps)
    verdicts = zip(unsure, judged.judgements, strict=True)
    return {sentence for sentence, judgement in verdicts if judgement.verdict is Verdict.SUPPORTED}


def _kept(item: Sifted, believed: Collection[DraftSentence]) -> DraftSentence | None:
    """The sentence as it is, in its claim's own words, or not at all."""
    if item.standing == "holds" or item.sentence in believed:
        return item.sentence
    if item.standing == "gone":
        return None
    first = item.bound[0]
    own = DraftSentence(text=first.text, claims=(first.id,))
    return own if item.sentence.text != own.text and _agrees(own.text, [first]) else None


def _worth_reading(sections: Sequence[DraftSection]) -> list[DraftSection]:
    """A disagreement needs a statement on each side; a section that lost all its sentences is gone."""
    kept = []
    for section in sections:
        facts = sum(bool(sentence.claims) for sentence in section.sentences)
        if section.sentences and (section.role in ("not_found", "conclusion", "notice") or facts):
            kept.append(section)
    return kept
