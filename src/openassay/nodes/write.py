"""Write the report: its sentences, each checked again against the spans of the claims it is bound to."""

import asyncio
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.evidence import Claim, Document, QuoteSpan, Verdict
from openassay.models.plan import Depth, Plan
from openassay.nodes.analyse import SURE
from openassay.nodes.binding import PASSAGE_WORDS
from openassay.nodes.report import build_sections, list_open_questions, select_answers
from openassay.nodes.settle import UNTITLED, SentencesBySection, settle_draft, settle_titles
from openassay.nodes.verify import judge_statements, read_contexts
from openassay.reasoning.base import Draft, DraftAnswer, DraftSection, DraftSentence, WriteRequest
from openassay.state import (
    NumberedSource,
    State,
    load_analysis,
    load_claims,
    load_disagreements,
    load_draft,
    load_issues,
    load_plan,
    load_sources,
)
from openassay.text.frames import frame
from openassay.text.other_languages import find_other_language
from openassay.text.words import fold
from openassay.verification.context import describe_document, read_context
from openassay.verification.synthesis import check_calculation
from openassay.verification.terms import KnownTerms, collect_words, mask_unverified_terms
from openassay.verification.verdict import ClaimMatcher

MOST_WORDS, LEAST_WORDS = 38_000, 120  # of all passages that a writer is shown, and of each
NEWEST, NEWER = 8, 1.6  # one document of so many is among the newest, and is shown at so much greater length
LONGEST_SUBJECT = 6  # words of what an opening names
CONFIDENT, PLAIN = 8.0, 6.0  # confidence from which on nothing need be said of it, and from which on no doubt


class SentenceCheck(NamedTuple):
    """A sentence of the draft after the checks that need no judge: bound to the claims that support it, or, where none
    does, to those it names."""

    sentence: DraftSentence
    bound: tuple[Claim, ...] = ()
    standing: Literal["holds", "fails", "gone", "unsure"] = "gone"


async def write(state: State, runtime: Runtime[ResearchContext]) -> State:
    context, previous = runtime.context, load_draft(state)
    claims = {claim.id: claim for claim in load_claims(state)}
    request = build_write_request(state, claims, context)
    documents = await context.load_documents(request.titles)
    heads = {name: describe_document(one) for name, one in documents.items()}
    passages = await asyncio.to_thread(collect_passages, claims.values(), documents)
    texts = {name: one.text for name, one in documents.items()}
    request = request.model_copy(update={"heads": heads, "passages": passages, "texts": texts})
    draft = await context.reasoner.write(request)
    # A long draft has hundreds of sentences and titles, each compared with all that is known: work for a thread.
    terms = await asyncio.to_thread(collect_terms, state)
    titles = request.titles
    if draft.composed:
        settled, titled = await asyncio.gather(
            settle_draft(draft, request, terms, context), settle_titles(draft, request, terms, context)
        )
        checked, claims = settled.sentences, {**claims, **settled.claims}
        named = zip(draft.sections, titled.sections, strict=True)
        sections_named = tuple(section.model_copy(update={"title": title}) for section, title in named)
        draft = draft.model_copy(update={"title": titled.report, "sections": sections_named})
    else:
        draft = await asyncio.to_thread(replace_titles, draft, terms, load_plan(state), claims, load_sources(state))
        rechecked = await recheck_draft(draft, claims, titles, terms, context)
        checked = [[one for kept in section for one in kept] for section in rechecked]
    # A composed report says in its own words how much is behind it; what was asked and not found has its section.
    opening = () if draft.composed else build_opening(state, context.options.depth, terms)
    sections = assemble_sections(draft, checked, opening)
    answers = check_answers(draft, claims, titles, terms)
    statements = count_statements(draft, checked, claims)
    draft = draft.model_copy(
        update={
            "sections": tuple(sections),
            "answers": tuple(answers),
            "version": state["iteration"] + 1,
            "notes": (*(previous.notes if previous else ()), *draft.notes),
        }
    )
    # Each section as it would be published, were this draft the last.
    for published in build_sections(draft, claims.values(), load_sources(state)):
        lines = [sentence.model_dump(mode="json", exclude={"kind"}) for sentence in published.sentences]
        await context.emit(
            "section",
            "write",
            title=published.title,
            role=published.role,
            draft=draft.version,
            sentences=len(lines),
            lines=lines,
        )
    return {
        "draft": draft.plain(),
        **({"claims": [claim.plain() for claim in claims.values()]} if draft.composed else {}),
        # A revision that changed nothing is the last: another one would not either.
        "stuck": previous is not None and previous.sections == draft.sections,
        "statements": statements,
        "edits": {**state["edits"], "rewrite": False},
        "iteration": state["iteration"] + 1,
        "status": Status.REVIEWING,
        "current_agent": "synthesis",
    }


def assemble_sections(
    draft: Draft, checked: SentencesBySection, opening: tuple[DraftSentence, ...]
) -> list[DraftSection]:
    """Make the sections of what may be published of each; `opening` is what has to be said of how much is behind it."""
    sections = list[DraftSection]()
    for section, sentences in zip(draft.sections, checked, strict=True):
        # Two sentences that failed may both have become the claim they were bound to.
        once = {sentence.text: sentence for sentence in sentences}
        # A disagreement needs a statement on each side; a section that lost all its sentences is gone.
        has_facts = any(sentence.claims for sentence in once.values())
        if once and (has_facts or section.role in ("not_found", "conclusion", "notice")):
            sections.append(section.model_copy(update={"sentences": (*opening, *once.values())}))
            opening = ()
    return sections


def check_answers(
    draft: Draft, claims: Mapping[str, Claim], titles: Mapping[str, str], terms: KnownTerms
) -> list[DraftAnswer]:
    answers = []
    for answer in select_answers(draft.answers, claims):
        # Whom it is about is dropped, unless in words of the question or of what was read for it.
        spans = [span for name in answer.claims for span in claims[name].spans]
        texts = [*(span.quote for span in spans), *(titles.get(span.document, "") for span in spans)]
        if answer.about and not terms.covers_title(answer.about) and not KnownTerms(texts).covers_title(answer.about):
            answer = answer.model_copy(update={"about": ""})
        answers.append(answer)
    return answers


def count_statements(draft: Draft, checked: SentencesBySection, claims: Mapping[str, Claim]) -> dict[str, int]:
    """Count the sentences that say a claim in other words, those of them that failed, and those not as drafted."""
    counts = {"retold": 0, "failed": 0, "dropped": 0}
    for section, sentences in zip(draft.sections, checked, strict=True):
        kept = {sentence.text for sentence in sentences}
        for old in section.sentences:
            lost = old.text not in kept
            retold = bool(old.claims) and not is_verbatim(
                old.text, [claims[name] for name in old.claims if name in claims]
            )
            counts["retold"] += retold
            counts["failed"] += lost and retold
            counts["dropped"] += lost
    return counts


def build_opening(state: State, depth: Depth, terms: KnownTerms) -> tuple[DraftSentence, ...]:
    """Write how a report begins: the less there is behind it, the plainer that is said (C-10). How sure the research is
    is counted, and not the writer's to say."""
    confidence, analysis, question = state["confidence"], load_analysis(state), state["original_query"].lower()
    subjects = (state["understanding"] or {}).get("subjects") or [state.get("subject")]
    # With the article that the question gave it.
    short = [name for name in subjects[:2] if name and len(name.split()) <= LONGEST_SUBJECT]  # a question is no subject
    named = [f"the {name}" if f"the {name.lower()}" in question else name for name in short]
    about = f" about {' and '.join(named)}" if named else ""
    if not terms.covers(f"This is based on limited information{about}."):
        about = ""
    lines = []
    if find_other_language(state["original_query"]):
        about = ""
    if confidence < PLAIN:
        lines.append(f"This is based on limited information{about}.")
    elif confidence < CONFIDENT:
        lines.append(f"Here is what was found{about}.")
    if needs_more_research(state, depth):
        shortfall = "the evidence for part of what was asked is still thin"
        if confidence < PLAIN or (analysis and analysis.unanswered):  # as the report says elsewhere
            shortfall = "not everything that was asked could be verified"
        lines.append(f"After {state['research_attempts']} attempts {shortfall}.")
    return tuple(DraftSentence(text=frame(line, state["original_query"])) for line in lines)


def needs_more_research(state: State, depth: Depth) -> bool:
    """Tell whether research ended although the validator wanted more. Its word is old where the last round was sure."""
    again = state["research_attempts"] > 1
    return again and state["validation_result"] == "insufficient" and state["confidence"] < SURE[depth] * 10


async def recheck_draft(
    draft: Draft, claims: Mapping[str, Claim], titles: Mapping[str, str], terms: KnownTerms, context: ResearchContext
) -> Sequence[Sequence[tuple[DraftSentence, ...]]]:
    """Return what may be published of each sentence: itself, its claims' own words, or nothing."""
    checks = await asyncio.to_thread(check_sentences, draft, ClaimMatcher(claims.values(), titles), terms)
    # Sentences in words of their own are judged by their quotes, all in one call.
    unsure = {check.sentence: check.bound for section in checks for check in section if check.standing == "unsure"}
    spans = {sentence: [span for claim in bound for span in claim.spans] for sentence, bound in unsure.items()}
    documents = await context.load_documents({span.document for found in spans.values() for span in found})
    pairs = [(one.text, [found.render() for found in read_contexts(own, documents)]) for one, own in spans.items()]
    judged = await judge_statements(pairs, context)
    verdicts = zip(unsure, judged.judgements, strict=True)
    believed = {sentence for sentence, judgement in verdicts if judgement.verdict is Verdict.SUPPORTED}
    return [[final_sentences(check, believed) for check in section] for section in checks]


def source_titles(state: State) -> dict[str, str]:
    return {source["document"]: source["title"] for source in load_sources(state)}


# What joins a sentence to the one before it says nothing of the world.
_JOINT = re.compile(
    r"^(?:however|moreover|furthermore|in addition|additionally|meanwhile|nevertheless|nonetheless|by contrast|"
    r"in contrast|similarly|likewise|later|also),?\s+"
)


def is_verbatim(text: str, bound: Sequence[Claim]) -> bool:
    """Tell whether a sentence is a claim's words or those of its passage, perhaps behind a joining word: then there is
    nothing to judge."""
    plain = _JOINT.sub("", fold(text))
    return any(
        plain == _JOINT.sub("", fold(claim.text)) or any(plain in fold(span.quote) for span in claim.spans)
        for claim in bound
    )


def build_write_request(state: State, claims: Mapping[str, Claim], context: ResearchContext) -> WriteRequest:
    plan = load_plan(state)
    issues = tuple(issue for issue in load_issues(state) if issue.severity != "suggestion")  # no reason to rewrite
    return WriteRequest(
        plan=plan,
        claims=tuple(claims.values()),
        disagreements=tuple(load_disagreements(state)),
        unanswered=list_open_questions(state),
        missing=list_missing(state, plan, claims),
        style=context.style(plan),
        words=context.max_words(plan),
        language=context.options.preferences.language,
        titles=source_titles(state),
        dates={one["document"]: one["published"] for one in load_sources(state) if one["published"]},
        banned=context.settings.banned_words,
        fixes=tuple(dict.fromkeys(issue.fix for issue in issues if issue.fix)),
        issues=issues,
        previous=load_draft(state),
    )


def list_missing(state: State, plan: Plan, claims: Mapping[str, Claim]) -> tuple[str, ...]:
    """What the last analysis did not find, without names and codes that neither the plan nor what was quoted has: a
    page may have dictated them."""
    analysis = load_analysis(state)
    quotes = (span.quote for claim in claims.values() for span in claim.spans)
    known = collect_words(plan.goal, *(question.text for question in plan.questions), *quotes)
    return tuple(mask_unverified_terms(text, known) for text in analysis.missing) if analysis else ()


def collect_passages(claims: Iterable[Claim], documents: Mapping[str, Document]) -> dict[str, str]:
    """What documents say around the quotes of claims that may be written: a writer understands by it."""
    spans: dict[str, list[QuoteSpan]] = {}
    for claim in claims:
        if claim.verdict is Verdict.SUPPORTED:
            for span in claim.spans:
                spans.setdefault(span.document, []).append(span)
    # A document that more was drawn from is shown at greater length, and so are the newest: what they say of how things
    # stand may be what nobody asked for and no claim has.
    days = sorted((day for name in spans if name in documents and (day := documents[name].published)), reverse=True)
    newest = days[len(days) // NEWEST] if days else None
    shares = {
        name: len(set(own)) ** 0.5 * (NEWER if newest and (documents[name].published or newest) > newest else 1.0)
        for name, own in spans.items()
        if name in documents
    }
    room = MOST_WORDS / max(1.0, sum(shares.values()))
    return {
        name: read_context(
            documents[name],
            list(dict.fromkeys(spans[name])),
            min(PASSAGE_WORDS, max(LEAST_WORDS, int(room * share))),
        ).text
        for name, share in shares.items()
    }


def collect_terms(state: State) -> KnownTerms:
    """Collect what a sentence about the research may name: the question, the plan, titles, how disputes were settled,
    and how many sources and claims there are, however many."""
    plan = json.dumps(state["plan"], ensure_ascii=False)
    counts = f"{len(state['sources'])} {len(state['claims'])}"
    texts = [state["original_query"], plan, counts, *source_titles(state).values()]
    return KnownTerms(texts, [matter.resolution for matter in load_disagreements(state)])


_YEARS = re.compile(r" \((\d{4})(?:–(\d{4}))?\)$")


def replace_titles(
    draft: Draft, terms: KnownTerms, plan: Plan, claims: Mapping[str, Claim], sources: Sequence[NumberedSource]
) -> Draft:
    """Replace titles by the plan's where they state more than the question and the plan: they are bound to no claim.
    Words in a row of a quote in the section, or of its document's title, are the documents' own, and so are the years
    in which documents were published."""
    known = {source["document"]: source for source in sources}
    published = {(source["published"] or "")[:4] for source in sources}

    def is_quoted(section: DraftSection) -> bool:
        years = _YEARS.search(section.title)
        if years and not set(filter(None, years.groups())) <= published:
            return False
        spans = [span for one in section.sentences for name in one.claims for span in claims[name].spans]
        texts = [text for span in spans for text in (span.quote, known[span.document]["title"])]
        return any(fold(_YEARS.sub("", section.title)) in " ".join(fold(text).split()) for text in texts)

    title = draft.title if terms.covers_title(draft.title) else plan.goal.rstrip("?!. ")
    there = {section.title for section in draft.sections}
    spare = [] if plan.asks_for_themes else [name for name in plan.sections if name not in there]
    sections = tuple(
        section
        if terms.covers_title(section.title) or is_quoted(section)
        else section.model_copy(update={"title": spare.pop(0) if spare else UNTITLED})
        for section in draft.sections
    )
    return draft.model_copy(update={"title": title, "sections": sections})


def check_sentences(draft: Draft, matcher: ClaimMatcher, terms: KnownTerms) -> list[list[SentenceCheck]]:
    checks: list[list[SentenceCheck]] = []
    for section in draft.sections:
        checks.append([])
        for sentence in section.sentences:
            calculated = sentence.kind == "synthesis" and bool(sentence.derived)
            bound = matcher.find_claims(sentence.text, sentence.claims) if sentence.claims and not calculated else ()
            if calculated:
                named = matcher.get_claims(sentence.claims)
                whole = len(named) == len(sentence.claims)
                holds = whole and not any(check_calculation(sentence.text, named, sentence.derived))
                check = SentenceCheck(sentence, named, "holds" if holds else "fails" if named else "gone")
            elif not sentence.claims:
                check = SentenceCheck(sentence, standing="holds" if terms.covers(sentence.text) else "gone")
            elif bound:
                rebound = sentence.model_copy(update={"claims": tuple(claim.id for claim in bound)})
                check = SentenceCheck(rebound, bound, "holds" if is_verbatim(sentence.text, bound) else "unsure")
            else:
                named = matcher.get_claims(sentence.claims)
                check = SentenceCheck(sentence, named, "fails" if named else "gone")
            checks[-1].append(check)
    return checks


def final_sentences(check: SentenceCheck, believed: Collection[DraftSentence]) -> tuple[DraftSentence, ...]:
    """Return the sentence as it is, in its claims' own words, or not at all."""
    if check.standing == "holds" or check.sentence in believed:
        return (check.sentence,)
    if check.standing == "gone":
        return ()
    first, *others = check.bound
    return (
        DraftSentence(text=first.text, claims=(first.id,), opens=check.sentence.opens, item=check.sentence.item),
        *(DraftSentence(text=claim.text, claims=(claim.id,)) for claim in others),
    )
