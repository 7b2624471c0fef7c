"""End a question: the report, and the answer as the thread's next message."""

import asyncio
from collections.abc import Iterator, Sequence

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.evidence import Claim, Verdict
from openassay.models.report import Basis, ReportData, ReportStatus, Section, Sentence, SourceCard
from openassay.nodes.harvest import load_read_documents
from openassay.nodes.report import build_card, build_sections, compose_report, list_open_questions
from openassay.nodes.review import reader_notes
from openassay.nodes.write import needs_more_research
from openassay.reasoning.base import Draft, DraftSection, DraftSentence
from openassay.state import (
    Plain,
    ReportEdits,
    State,
    load_claims,
    load_critique,
    load_draft,
    load_edits,
    load_findings,
    load_messages,
    load_plan,
    load_question,
    load_searches,
    load_sources,
)
from openassay.text.frames import frame
from openassay.text.small_talk import choose_reply
from openassay.text.words import fold
from openassay.verification.sources import group_documents, rate_sources

MAX_MESSAGES, KEPT_MESSAGES = 10, 4
MAX_ERRORS = 5
MAX_ANSWER_LENGTH = 2000  # characters of a message
MAX_STATEMENTS, MAX_RESULTS = 24, 10
MAX_QUOTE_LENGTH = 300  # characters of what a source that was found says
_NUMBER_WORDS = {1: "One", 2: "Two", 3: "Three", 4: "Four", 5: "Five"}

ThreadHistory = tuple[list[Plain], str]  # the messages of a thread, and the summary of those before


async def publish(state: State, runtime: Runtime[ResearchContext]) -> State:
    context = runtime.context
    intent = (state["understanding"] or {}).get("intent", "")
    if intent == "cancel":
        # Nothing is spent on a question that was called off, so its thread is condensed another time.
        history: ThreadHistory = (state["messages"], state.get("conversation_summary", ""))
        spend = await context.account.get_spend()
        free = "" if spend.usd > 0 or spend.tokens > 0 else " and nothing was spent"
        reply = f"All right, nothing was researched{free}. Ask whenever you like."
    else:
        history = await condense_history(state, context)
        reply = choose_reply(state["original_query"]) if intent == "small_talk" else ""
    if reply:
        report = await compose_report(state, context, [build_notice("", reply)], ReportStatus.CANCELLED)
        return await finish_run(state, context, report, history)
    draft = apply_edits(Draft.model_validate(state["draft"]), load_edits(state))
    sections = build_sections(draft, load_claims(state), load_sources(state))
    if notes := reader_notes(state, draft, context):
        sections = (*sections, build_notice("Please note", *notes))
    # A report that answers none of what was asked is not complete, however well its statements hold.
    questions = load_plan(state).questions
    unanswered = questions and len(list_open_questions(state)) == len(questions)
    status = ReportStatus.PARTIAL if unanswered else ReportStatus.COMPLETE
    return await finish_run(state, context, await compose_report(state, context, sections, status), history)


def apply_edits(draft: Draft, edits: ReportEdits) -> Draft:
    """Remove the sections a person left out, and set the title they chose. A version that has none but those is left as
    it is: it goes back to the person, or out as the best there is."""
    dropped = {fold(title) for title in edits.get("drop", ())}
    kept = tuple(section for section in draft.sections if fold(section.title) not in dropped)
    has_facts = any(sentence.claims for section in kept for sentence in section.sentences)
    title = edits.get("title") or draft.title
    return draft.model_copy(update={"sections": kept if has_facts else draft.sections, "title": title})


async def finish_run(state: State, context: ResearchContext, report: ReportData, history: ThreadHistory) -> State:
    """Do what all endings share: announce cited sources, add the answer to the thread, keep the thread short."""
    # The last errors, each once: searches that providers refused, then tasks that were lost.
    refused = [
        f"{source}: {message}"
        for _, result in sorted(load_searches(state).items())
        for source, (message, _) in result.get("errors", {}).items()
    ]
    errors = tuple(dict.fromkeys([*refused, *state["failures"].values()]))[-MAX_ERRORS:]
    report = report.model_copy(update={"errors": errors})
    for card in report.sources:
        await context.emit("citation", "publish", id=card.id, title=card.title, url=card.url)
    await context.emit(
        "done",
        "publish",
        status=report.status,
        confidence=report.confidence,
        sources=len(report.sources),
        checked=report.coverage.checked,
        total=report.coverage.total,
        usd=report.spend.usd,
    )
    messages, summary = history
    answer = to_message(report)
    return {
        "messages": {"replace": [*messages, {"role": "assistant", "content": answer}]},  # type: ignore[typeddict-item]  # the reducer's way to shorten
        "conversation_summary": summary,
        "report": report.plain(),
        "final_summary": answer,
        "best": None,
        "status": Status.COMPLETED,
        "current_agent": "synthesis",
    }


def build_notice(title: str, *lines: str) -> Section:
    return Section(title=title, role="notice", sentences=tuple(Sentence(text=line, kind="frame") for line in lines))


def to_message(report: ReportData) -> str:
    """Write the answer as one message: the summary if there is one, else what the sections say first."""
    summary = [section for section in report.sections if section.role == "abstract"]
    body = [
        section
        for section in report.sections
        if section.role in ("body", "disagreements") and any(sentence.claims for sentence in section.sentences)
    ]
    texts = [sentence.text for section in summary or body or report.sections[:1] for sentence in section.sentences]
    while len(texts) > 1 and len(" ".join(texts)) > MAX_ANSWER_LENGTH:
        texts.pop()
    return " ".join(texts)


async def condense_history(state: State, context: ResearchContext) -> ThreadHistory:
    """Return the messages that stay beside the answer to come, and the others as a summary. This is done before the
    report is made, so that the report includes its cost."""
    messages, summary = list(state["messages"]), state.get("conversation_summary", "")
    if len(messages) + 1 <= MAX_MESSAGES:
        return messages, summary
    kept = KEPT_MESSAGES - 1
    return messages[-kept:], await context.reasoner.condense(load_messages(state)[:-kept], summary)


async def fallback(state: State, runtime: Runtime[ResearchContext]) -> State:
    """Publish the best there is when a report could not be finished (F-12): the draft, else the analysis, else the
    results, else an honest nothing; with caveats, the score of the last review and the last errors."""
    context, claims, draft = runtime.context, load_claims(state), load_draft(state)
    supported = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED]
    history = await condense_history(state, context)
    cards: list[SourceCard] = []
    basis: Basis
    if supported:
        basis, status = "draft" if draft else "analysis", ReportStatus.PARTIAL
        draft = apply_edits(draft, load_edits(state)) if draft else _draft_from_claims(state, supported)
        caveats, notes = [*_list_caveats(state, basis, context)], reader_notes(state, draft, context)
        sections = build_sections(draft, claims, load_sources(state))
        if basis == "analysis" or state["rejected"]:
            sections = (*sections, build_notice("Please note", *caveats, *notes))
        else:  # a report that only its review did not approve says so where it tells what it lacks
            sections = (
                *sections,
                build_notice("What this report lacks", *caveats).model_copy(update={"role": "not_found"}),
            )
            sections = (*sections, build_notice("Please note", *notes)) if notes else sections
    else:
        basis, status = "nothing", ReportStatus.NO_DATA
        if state["rejected"]:
            lines = [f"{_end_reason(state)}, so the research ended here.", "Ask again to start over."]
        else:
            asked = load_question(state)
            told = frame("Sorry, no source had an answer to “{question}”.", asked)
            lines = [told.replace("{question}", asked)]
            if state["failures"]:
                lines.append("Some sources could not be searched; the run log says which and why.")
            if state["research_attempts"] > 1:
                lines.append(f"It was searched in {state['research_attempts']} attempts, each with other words.")
            hint = "You could check the spelling, name the subject in full, or add documents that cover it."
            lines.append(frame(hint, asked))
        sections = (build_notice(frame("No answer found", load_question(state)), *lines),)
        if state["sources"] and not state["rejected"]:
            # The sources that were read, those with something on the matter first, each with what it says.
            basis, sources, quotes = "results", load_sources(state), dict[str, str]()
            for finding in load_findings(state):  # best first
                quotes.setdefault(finding.span.document, finding.span.quote[:MAX_QUOTE_LENGTH])
            documents = await load_read_documents(state, context, (source["document"] for source in sources))
            groups = await asyncio.to_thread(group_documents, documents.values())
            rated = await asyncio.to_thread(rate_sources, documents, load_question(state))
            for source in sorted(sources, key=lambda source: source["document"] not in quotes)[:MAX_RESULTS]:
                quote = quotes.get(source["document"], "")
                why = f"found, not verified: “{quote}”" if quote else "found, and nothing in it on the question"
                cards.append(build_card(source, documents[source["document"]], groups, why, rated[source["document"]]))
            # Nothing of what they say is asserted, not even their titles: those stand in the list of sources.
            listed = ", ".join(f"[{card.id}]" for card in cards)
            lines = [
                "These sources were found and read: {listed}.",
                "Nothing in them could be verified as an answer; what they are is listed with the sources.",
            ]
            lines = [frame(line, load_question(state)).replace("{listed}", listed) for line in lines]
            sections = (*sections, build_notice(frame("Found but not verified", load_question(state)), *lines))
    report = await compose_report(state, context, sections, status)
    # What was found is listed, though nothing rests on it; what is cited keeps its own card.
    cited = {card.id for card in report.sources}
    listed_cards = (*report.sources, *(card for card in cards if card.id not in cited))
    metadata = report.metadata.model_copy(update={"sources": len(listed_cards)})
    report = report.model_copy(update={"basis": basis, "sources": listed_cards, "metadata": metadata})
    return await finish_run(state, context, report, history)


def _draft_from_claims(state: State, supported: Sequence[Claim]) -> Draft:
    """Draft a report of what was verified, by section, best first; superseded statements are left out."""
    plan = load_plan(state)
    section_of = {question.id: question.section for question in reversed(plan.questions)}
    sections: dict[str, list[DraftSentence]] = {title: [] for title in (*plan.sections, "What was found")}
    current = [claim for claim in supported if not claim.superseded_by] or supported
    for claim in sorted(current, key=lambda claim: (-claim.relevance, claim.id))[:MAX_STATEMENTS]:
        title = next((section_of[id] for id in claim.questions if id in section_of), "What was found")
        sections[title].append(DraftSentence(text=claim.text, claims=(claim.id,)))
    return Draft(
        title="",
        sections=tuple(DraftSection(title=title, sentences=tuple(found)) for title, found in sections.items() if found),
    )


def _list_caveats(state: State, basis: Basis, context: ResearchContext) -> Iterator[str]:
    critique, drafts = load_critique(state), state["iteration"]
    yield "This report was not finished; it is the best there is."
    if basis == "analysis":
        yield "It was not written out: these are the statements that could be verified, in the words of their sources."
    if state["rejected"]:
        yield f"{_end_reason(state)}."
    if critique and critique.recommendation != "approve":
        yield "The last review did not approve it."
        if drafts > 1:
            yield f"{_NUMBER_WORDS.get(drafts, 'Many')} versions were written, and the one reviewed best is given."
        yield f"It was given about {int(critique.score)} of 10 points."
        if critical := sum(issue.severity == "critical" for issue in critique.issues):
            yield f"{critical} critical issue{'s' * (critical != 1)} could not be fixed."
    if basis == "analysis" and needs_more_research(state, context.options.depth):
        yield f"After {state['research_attempts']} attempts not everything that was asked could be verified."
    for reason in list(state["failures"].values())[-2:]:
        # A frame sentence names nothing the sources did not, so an error is quoted without capitals or figures.
        error = "".join(character for character in reason.lower() if not character.isdigit())
        yield f"Something failed on the way: {error}"


def _end_reason(state: State) -> str:
    last = next(reversed(state["approvals"].values()), {})
    return "Nobody answered a review in time" if last.get("decision") == "timeout" else "It was rejected at a review"
