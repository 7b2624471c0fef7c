"""Synthesis: the report's sentences, each checked again against the spans of the claims it is bound to."""

import asyncio
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.claim import Claim, Verdict
from assay.model.event import Status
from assay.model.evidence import Disagreement
from assay.model.plan import Plan
from assay.model.report import Issue
from assay.reasoning.protocol import Draft, DraftAnswer, DraftSection, DraftSentence, WriteRequest
from assay.stages import composing
from assay.stages.answers import checked
from assay.stages.opening import opened, opening
from assay.stages.unanswered import unanswered
from assay.stages.verify import judge
from assay.state import State
from assay.text.words import fold
from assay.trust.binding import Binding
from assay.trust.frames import Told

UNTITLED = "Findings"  # heads a section whose own title states more than was asked

Kept = Sequence[Sequence[tuple[DraftSentence, ...]]]


class Sifted(NamedTuple):
    """A sentence of the draft after the checks that need no judge: bound to the claims that bear it out, or, where
    none does, to those it names."""

    sentence: DraftSentence
    bound: tuple[Claim, ...] = ()
    standing: Literal["holds", "fails", "gone", "unsure"] = "gone"


async def write(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    claims = {item["id"]: Claim.model_validate(item) for item in state["claims"]}
    draft = await deps.reasoner.write(write_request(state, claims, deps))
    # A long draft has hundreds of sentences and titles, each held against all that is known: work for a thread.
    told = await asyncio.to_thread(known_to, state)
    draft = await asyncio.to_thread(entitled, draft, told, state)
    titles = _titles(state)
    kept = await rechecked(draft, claims, titles, told, deps)
    sections = []
    for section, sentences in zip(draft.sections, kept, strict=True):
        # Two sentences that failed may both have become the claim they were bound to.
        once = {sentence.text: sentence for kept_as in sentences for sentence in kept_as}
        sections.append(section.model_copy(update={"sentences": tuple(once.values())}))
    statements = _counted(draft, kept, claims)
    earlier = Draft.model_validate(state["draft"]).notes if state["draft"] else ()
    draft = draft.model_copy(
        update={
            "sections": tuple(opened(_worth_reading(sections), opening(state, deps.options.depth, told))),
            "answers": tuple(_plainly_about(answer, claims, titles, told) for answer in checked(draft.answers, claims)),
            "version": state["iteration"] + 1,
            "notes": (*earlier, *draft.notes),
        }
    )
    await _tell(draft, claims, state, deps)
    return {
        "draft": draft.plain(),
        "stuck": _same(draft, state),
        "statements": statements,
        "edits": {**state["edits"], "rewrite": False},
        "iteration": state["iteration"] + 1,
        "status": Status.REVIEWING,
        "current_agent": "synthesis",
    }


async def _tell(draft: Draft, claims: Mapping[str, Claim], state: State, deps: Deps) -> None:
    """Each section as it would be published, were this draft the last."""
    for section in composing.published(draft, claims.values(), state["sources"]):
        lines = [sentence.model_dump(mode="json", exclude={"kind"}) for sentence in section.sentences]
        await deps.emit("section", "write", title=section.title, role=section.role, draft=draft.version,
                        sentences=len(lines), lines=lines)  # fmt: skip


async def rechecked(
    draft: Draft, claims: Mapping[str, Claim], titles: Mapping[str, str], told: Told, deps: Deps
) -> Kept:
    """What may be published of each sentence: itself, its claims' own words, or nothing."""
    sifted = await asyncio.to_thread(sift, draft, Binding(claims.values(), titles), told)
    believed = await _believed(sifted, deps)
    return [[published(item, believed) for item in section] for section in sifted]


def _titles(state: State) -> dict[str, str]:
    return {source["document"]: source["title"] for source in state["sources"]}


def _counted(draft: Draft, kept: Kept, claims: Mapping[str, Claim]) -> dict[str, int]:
    """How many sentences say a claim in other words, how many of those failed, and how many are not as drafted."""
    retold = failed = dropped = 0
    for section, sentences in zip(draft.sections, kept, strict=True):
        for old, new in zip(section.sentences, sentences, strict=True):
            lost = old.text not in [sentence.text for sentence in new]
            bound = [claims[name] for name in old.claims if name in claims]
            in_other_words = bool(old.claims) and not verbatim(old.text, bound)
            retold, failed, dropped = retold + in_other_words, failed + (lost and in_other_words), dropped + lost
    return {"retold": retold, "failed": failed, "dropped": dropped}


# What joins a sentence to the one before it says nothing of the world.
_JOINT = re.compile(
    r"^(?:however|moreover|furthermore|in addition|additionally|meanwhile|nevertheless|nonetheless|by contrast|"
    r"in contrast|similarly|likewise|later|also),?\s+"
)


def verbatim(text: str, bound: Sequence[Claim]) -> bool:
    """Whether a sentence is a claim's words or those of its passage, perhaps behind a joint: then it is nobody's
    retelling, and there is nothing to judge."""
    plain = _JOINT.sub("", fold(text))
    return any(
        plain == _JOINT.sub("", fold(claim.text)) or any(plain in fold(span.quote) for span in claim.spans)
        for claim in bound
    )


def _same(draft: Draft, state: State) -> bool:
    """Whether a revision changed nothing; another one would not either."""
    return state["draft"] is not None and Draft.model_validate(state["draft"]).sections == draft.sections


def write_request(state: State, claims: Mapping[str, Claim], deps: Deps) -> WriteRequest:
    plan = Plan.model_validate(state["plan"])
    return WriteRequest(
        plan=plan,
        claims=tuple(claims.values()),
        disagreements=tuple(Disagreement.model_validate(item) for item in state["disagreements"]),
        unanswered=unanswered(state),
        style=deps.style(plan),
        words=deps.words(plan),
        language=deps.options.preferences.language,
        titles=_titles(state),
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


def known_to(state: State) -> Told:
    """What a sentence about the research may name: the question, the plan, titles, how disputes were settled, and how
    many sources and claims there are, however many."""
    plan = json.dumps(state["plan"], ensure_ascii=False)
    counts = f"{len(state['sources'])} {len(state['claims'])}"
    texts = [state["original_query"], plan, counts, *_titles(state).values()]
    return Told(texts, [item["resolution"] for item in state["disagreements"]])


def entitled(draft: Draft, told: Told, state: State) -> Draft:
    """Titles are bound to no claim, so they state nothing that the question and the plan do not: others are replaced
    by the plan's."""
    plan = Plan.model_validate(state["plan"])
    title = draft.title if told.heads(draft.title) else plan.goal.rstrip("?!. ")
    spare = [name for name in plan.sections if name not in {section.title for section in draft.sections}]
    sections = tuple(
        section
        if told.heads(section.title)
        else section.model_copy(update={"title": spare.pop(0) if spare else UNTITLED})
        for section in draft.sections
    )
    return draft.model_copy(update={"title": title, "sections": sections})


def _plainly_about(
    answer: DraftAnswer, claims: Mapping[str, Claim], titles: Mapping[str, str], told: Told
) -> DraftAnswer:
    """Whom an answer is about is in words of the question, or of what was read for it; else it is left unsaid."""
    bound = [claims[name] for name in answer.claims]
    read = [*_quotes(bound), *(titles.get(span.document, "") for claim in bound for span in claim.spans)]
    if not answer.about or told.heads(answer.about) or Told(read).heads(answer.about):
        return answer
    return answer.model_copy(update={"about": ""})


def sift(draft: Draft, binding: Binding, told: Told) -> list[list[Sifted]]:
    return [[_sifted(sentence, binding, told) for sentence in section.sentences] for section in draft.sections]


def _sifted(sentence: DraftSentence, binding: Binding, told: Told) -> Sifted:
    if not sentence.claims:
        return Sifted(sentence, standing="holds" if told.covers(sentence.text) else "gone")
    bound = binding.found(sentence.text, sentence.claims)
    if not bound:
        named = binding.named(sentence.claims)
        return Sifted(sentence, named, "fails" if named else "gone")
    rebound = sentence.model_copy(update={"claims": tuple(claim.id for claim in bound)})
    return Sifted(rebound, bound, "holds" if verbatim(sentence.text, bound) else "unsure")


def _quotes(bound: Sequence[Claim]) -> list[str]:
    return [span.quote for claim in bound for span in claim.spans]


async def _believed(sifted: Sequence[Sequence[Sifted]], deps: Deps) -> set[DraftSentence]:
    """Of the sentences in words of their own, those their quotes bear out: all judged in one call."""
    unsure = {item.sentence: item.bound for section in sifted for item in section if item.standing == "unsure"}
    judged = await judge([(sentence.text, _quotes(bound)) for sentence, bound in unsure.items()], deps)
    verdicts = zip(unsure, judged.judgements, strict=True)
    return {sentence for sentence, judgement in verdicts if judgement.verdict is Verdict.SUPPORTED}


def published(item: Sifted, believed: Collection[DraftSentence]) -> tuple[DraftSentence, ...]:
    """The sentence as it is, in its claims' own words, or not at all."""
    if item.standing == "holds" or item.sentence in believed:
        return (item.sentence,)
    if item.standing == "gone":
        return ()
    first, *others = item.bound
    return (
        DraftSentence(text=first.text, claims=(first.id,), opens=item.sentence.opens),
        *(DraftSentence(text=claim.text, claims=(claim.id,)) for claim in others),
    )


def _worth_reading(sections: Sequence[DraftSection]) -> list[DraftSection]:
    """A disagreement needs a statement on each side; a section that lost all its sentences is gone."""
    kept = []
    for section in sections:
        facts = sum(bool(sentence.claims) for sentence in section.sentences)
        if section.sentences and (section.role in ("not_found", "conclusion", "notice") or facts):
            kept.append(section)
    return kept
