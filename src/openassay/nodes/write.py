"""Synthesis: the report's sentences, each checked again against the spans of the claims it is bound to."""

import asyncio
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.evidence import Claim, Disagreement, Verdict
from openassay.models.plan import Depth, Plan
from openassay.models.report import Issue
from openassay.nodes import report
from openassay.nodes.analyse import SURE
from openassay.nodes.report import list_open_questions, select_answers
from openassay.nodes.verify import judge_statements
from openassay.reasoning.base import Draft, DraftAnswer, DraftSection, DraftSentence, WriteRequest
from openassay.state import State
from openassay.text.words import fold
from openassay.verification.terms import KnownTerms
from openassay.verification.verdict import ClaimMatcher

# How an answer begins: the less there is behind it, the plainer that is said (C-10).

SAYS_ITSELF, PLAIN = 8.0, 6.0  # confidence from which on nothing need be said, and from which on no doubt


def build_opening(state: State, depth: Depth, told: KnownTerms) -> tuple[DraftSentence, ...]:
    """Whatever the writer wrote: how sure the research is, is counted and not the writer's to say."""
    confidence = state["confidence"]
    about = _about_phrase(state, told)
    lines = []
    if confidence < PLAIN:
        lines.append(f"This is based on limited information{about}.")
    elif confidence < SAYS_ITSELF:
        lines.append(f"Here is what was found{about}.")
    if needs_more_research(state, depth):
        lines.append(f"After {state['research_attempts']} attempts {_shortfall(state)}.")
    return tuple(DraftSentence(text=line) for line in lines)


def _shortfall(state: State) -> str:
    """What a report says of itself elsewhere it does not contradict here."""
    if state["confidence"] < PLAIN or (state["analysis"] or {}).get("unanswered"):
        return "not everything that was asked could be verified"
    return "the evidence for part of what was asked is still thin"


def needs_more_research(state: State, depth: Depth) -> bool:
    """Whether research ended although the validator wanted more. Its word is old where the last round was sure."""
    again = state["research_attempts"] > 1
    return again and state["validation_result"] == "insufficient" and state["confidence"] < SURE[depth] * 10


def prepend_opening(sections: Sequence[DraftSection], lines: Sequence[DraftSentence]) -> list[DraftSection]:
    """The sections, of which the first begins with these lines."""
    if not sections or not lines:
        return list(sections)
    first, *others = sections
    return [first.model_copy(update={"sentences": (*lines, *first.sentences)}), *others]


def _about_phrase(state: State, told: KnownTerms) -> str:
    subjects = (state["understanding"] or {}).get("subjects") or [state.get("subject")]
    named = [_add_article(subject, state["original_query"]) for subject in subjects[:2] if subject]
    about = f" about {' and '.join(named)}" if named else ""
    return about if told.covers(f"This is based on limited information{about}.") else ""


def _add_article(subject: str, question: str) -> str:
    """With the article that the question gave it."""
    return f"the {subject}" if f"the {subject.lower()}" in question.lower() else subject


UNTITLED = "Findings"  # heads a section whose own title states more than was asked

SentencesBySection = Sequence[Sequence[tuple[DraftSentence, ...]]]


class SentenceCheck(NamedTuple):
    """A sentence of the draft after the checks that need no judge: bound to the claims that bear it out, or, where
    none does, to those it names."""

    sentence: DraftSentence
    bound: tuple[Claim, ...] = ()
    standing: Literal["holds", "fails", "gone", "unsure"] = "gone"


async def write(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    claims = {item["id"]: Claim.model_validate(item) for item in state["claims"]}
    draft = await deps.reasoner.write(build_write_request(state, claims, deps))
    # A long draft has hundreds of sentences and titles, each held against all that is known: work for a thread.
    told = await asyncio.to_thread(collect_terms, state)
    draft = await asyncio.to_thread(replace_titles, draft, told, state)
    titles = _source_titles(state)
    kept = await recheck_draft(draft, claims, titles, told, deps)
    sections = []
    for section, sentences in zip(draft.sections, kept, strict=True):
        # Two sentences that failed may both have become the claim they were bound to.
        once = {sentence.text: sentence for kept_as in sentences for sentence in kept_as}
        sections.append(section.model_copy(update={"sentences": tuple(once.values())}))
    statements = _count_statements(draft, kept, claims)
    earlier = Draft.model_validate(state["draft"]).notes if state["draft"] else ()
    draft = draft.model_copy(
        update={
            "sections": tuple(
                prepend_opening(_drop_empty_sections(sections), build_opening(state, deps.options.depth, told))
            ),
            "answers": tuple(
                _check_about(answer, claims, titles, told) for answer in select_answers(draft.answers, claims)
            ),
            "version": state["iteration"] + 1,
            "notes": (*earlier, *draft.notes),
        }
    )
    await _emit_sections(draft, claims, state, deps)
    return {
        "draft": draft.plain(),
        "stuck": _is_same_draft(draft, state),
        "statements": statements,
        "edits": {**state["edits"], "rewrite": False},
        "iteration": state["iteration"] + 1,
        "status": Status.REVIEWING,
        "current_agent": "synthesis",
    }


async def _emit_sections(draft: Draft, claims: Mapping[str, Claim], state: State, deps: ResearchContext) -> None:
    """Each section as it would be published, were this draft the last."""
    for section in report.build_sections(draft, claims.values(), state["sources"]):
        lines = [sentence.model_dump(mode="json", exclude={"kind"}) for sentence in section.sentences]
        await deps.emit("section", "write", title=section.title, role=section.role, draft=draft.version,
                        sentences=len(lines), lines=lines)  # fmt: skip


async def recheck_draft(
    draft: Draft, claims: Mapping[str, Claim], titles: Mapping[str, str], told: KnownTerms, deps: ResearchContext
) -> SentencesBySection:
    """What may be published of each sentence: itself, its claims' own words, or nothing."""
    sifted = await asyncio.to_thread(check_sentences, draft, ClaimMatcher(claims.values(), titles), told)
    believed = await _judge_sentences(sifted, deps)
    return [[final_sentences(item, believed) for item in section] for section in sifted]


def _source_titles(state: State) -> dict[str, str]:
    return {source["document"]: source["title"] for source in state["sources"]}


def _count_statements(draft: Draft, kept: SentencesBySection, claims: Mapping[str, Claim]) -> dict[str, int]:
    """How many sentences say a claim in other words, how many of those failed, and how many are not as drafted."""
    retold = failed = dropped = 0
    for section, sentences in zip(draft.sections, kept, strict=True):
        for old, new in zip(section.sentences, sentences, strict=True):
            lost = old.text not in [sentence.text for sentence in new]
            bound = [claims[name] for name in old.claims if name in claims]
            in_other_words = bool(old.claims) and not is_verbatim(old.text, bound)
            retold, failed, dropped = retold + in_other_words, failed + (lost and in_other_words), dropped + lost
    return {"retold": retold, "failed": failed, "dropped": dropped}


# What joins a sentence to the one before it says nothing of the world.
_JOINT = re.compile(
    r"^(?:however|moreover|furthermore|in addition|additionally|meanwhile|nevertheless|nonetheless|by contrast|"
    r"in contrast|similarly|likewise|later|also),?\s+"
)


def is_verbatim(text: str, bound: Sequence[Claim]) -> bool:
    """Whether a sentence is a claim's words or those of its passage, perhaps behind a joint: then it is nobody's
    retelling, and there is nothing to judge."""
    plain = _JOINT.sub("", fold(text))
    return any(
        plain == _JOINT.sub("", fold(claim.text)) or any(plain in fold(span.quote) for span in claim.spans)
        for claim in bound
    )


def _is_same_draft(draft: Draft, state: State) -> bool:
    """Whether a revision changed nothing; another one would not either."""
    return state["draft"] is not None and Draft.model_validate(state["draft"]).sections == draft.sections


def build_write_request(state: State, claims: Mapping[str, Claim], deps: ResearchContext) -> WriteRequest:
    plan = Plan.model_validate(state["plan"])
    return WriteRequest(
        plan=plan,
        claims=tuple(claims.values()),
        disagreements=tuple(Disagreement.model_validate(item) for item in state["disagreements"]),
        unanswered=list_open_questions(state),
        style=deps.style(plan),
        words=deps.max_words(plan),
        language=deps.options.preferences.language,
        titles=_source_titles(state),
        banned=deps.settings.banned_words,
        fixes=_list_fixes(state),
        issues=tuple(issue for issue in _load_issues(state) if issue.severity != "suggestion"),
        previous=Draft.model_validate(state["draft"]) if state["draft"] else None,
    )


def _list_fixes(state: State) -> tuple[str, ...]:
    """What a writer can act on; a suggestion is no reason to rewrite."""
    return tuple(
        dict.fromkeys(issue.fix for issue in _load_issues(state) if issue.fix and issue.severity != "suggestion")
    )


def _load_issues(state: State) -> list[Issue]:
    return [Issue.model_validate(issue) for issue in state["issues"]]


def collect_terms(state: State) -> KnownTerms:
    """What a sentence about the research may name: the question, the plan, titles, how disputes were settled, and how
    many sources and claims there are, however many."""
    plan = json.dumps(state["plan"], ensure_ascii=False)
    counts = f"{len(state['sources'])} {len(state['claims'])}"
    texts = [state["original_query"], plan, counts, *_source_titles(state).values()]
    return KnownTerms(texts, [item["resolution"] for item in state["disagreements"]])


def replace_titles(draft: Draft, told: KnownTerms, state: State) -> Draft:
    """Titles are bound to no claim, so they state nothing that the question and the plan do not: others are replaced
    by the plan's."""
    plan = Plan.model_validate(state["plan"])
    title = draft.title if told.covers_title(draft.title) else plan.goal.rstrip("?!. ")
    spare = [name for name in plan.sections if name not in {section.title for section in draft.sections}]
    sections = tuple(
        section
        if told.covers_title(section.title)
        else section.model_copy(update={"title": spare.pop(0) if spare else UNTITLED})
        for section in draft.sections
    )
    return draft.model_copy(update={"title": title, "sections": sections})


def _check_about(
    answer: DraftAnswer, claims: Mapping[str, Claim], titles: Mapping[str, str], told: KnownTerms
) -> DraftAnswer:
    """Whom an answer is about is in words of the question, or of what was read for it; else it is left unsaid."""
    bound = [claims[name] for name in answer.claims]
    read = [*_quotes_of(bound), *(titles.get(span.document, "") for claim in bound for span in claim.spans)]
    if not answer.about or told.covers_title(answer.about) or KnownTerms(read).covers_title(answer.about):
        return answer
    return answer.model_copy(update={"about": ""})


def check_sentences(draft: Draft, binding: ClaimMatcher, told: KnownTerms) -> list[list[SentenceCheck]]:
    return [[_check_sentence(sentence, binding, told) for sentence in section.sentences] for section in draft.sections]


def _check_sentence(sentence: DraftSentence, binding: ClaimMatcher, told: KnownTerms) -> SentenceCheck:
    if not sentence.claims:
        return SentenceCheck(sentence, standing="holds" if told.covers(sentence.text) else "gone")
    bound = binding.find_claims(sentence.text, sentence.claims)
    if not bound:
        named = binding.get_claims(sentence.claims)
        return SentenceCheck(sentence, named, "fails" if named else "gone")
    rebound = sentence.model_copy(update={"claims": tuple(claim.id for claim in bound)})
    return SentenceCheck(rebound, bound, "holds" if is_verbatim(sentence.text, bound) else "unsure")


def _quotes_of(bound: Sequence[Claim]) -> list[str]:
    return [span.quote for claim in bound for span in claim.spans]


async def _judge_sentences(sifted: Sequence[Sequence[SentenceCheck]], deps: ResearchContext) -> set[DraftSentence]:
    """Of the sentences in words of their own, those their quotes bear out: all judged in one call."""
    unsure = {item.sentence: item.bound for section in sifted for item in section if item.standing == "unsure"}
    judged = await judge_statements([(sentence.text, _quotes_of(bound)) for sentence, bound in unsure.items()], deps)
    verdicts = zip(unsure, judged.judgements, strict=True)
    return {sentence for sentence, judgement in verdicts if judgement.verdict is Verdict.SUPPORTED}


def final_sentences(item: SentenceCheck, believed: Collection[DraftSentence]) -> tuple[DraftSentence, ...]:
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


def _drop_empty_sections(sections: Sequence[DraftSection]) -> list[DraftSection]:
    """A disagreement needs a statement on each side; a section that lost all its sentences is gone."""
    kept = []
    for section in sections:
        facts = sum(bool(sentence.claims) for sentence in section.sentences)
        if section.sentences and (section.role in ("not_found", "conclusion", "notice") or facts):
            kept.append(section)
    return kept
