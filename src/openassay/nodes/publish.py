"""The end of a question: the report, and the answer as the thread's next message."""

import asyncio
from collections.abc import Iterator, Sequence

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.evidence import Claim, Document, Verdict
from openassay.models.plan import Plan, ThreadMessage
from openassay.models.report import Basis, ReportData, ReportStatus, Section, Sentence, SourceCard
from openassay.nodes.report import build_sections, compose_report, list_open_questions
from openassay.nodes.standards import reader_notes
from openassay.nodes.write import needs_more_research
from openassay.reasoning.base import Draft, DraftSection, DraftSentence
from openassay.state import Plain, State
from openassay.text.small_talk import choose_reply
from openassay.text.words import fold
from openassay.verification.sources import assess_credibility, group_documents

MOST_MESSAGES, KEPT_MESSAGES = 10, 4
MOST_ERRORS = 5
LONGEST_ANSWER = 2000  # characters of a message
ThreadHistory = tuple[list[Plain], str]  # the messages of a thread, and the summary of those before

_CALLED_OFF = "All right, nothing was researched and nothing was spent. Ask whenever you like."
_CALLED_OFF_LATE = "All right, nothing was researched. Ask whenever you like."


async def publish(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    intent = (state["understanding"] or {}).get("intent", "")
    # Nothing is spent on a question that was called off, so its thread is condensed another time.
    called_off = intent == "cancel"
    kept = (
        (state["messages"], state.get("conversation_summary", ""))
        if called_off
        else await condense_history(state, deps)
    )
    if intent in ("cancel", "small_talk"):
        farewell = (_CALLED_OFF_LATE if await _has_cost(deps) else _CALLED_OFF) if called_off else ""
        sections: tuple[Section, ...] = (build_notice("", farewell or choose_reply(state["original_query"])),)
        report = await compose_report(state, deps, sections, ReportStatus.CANCELLED)
        return await finish_run(state, deps, report, kept)
    claims, draft = [Claim.model_validate(item) for item in state["claims"]], apply_edits(state)
    told = reader_notes(state, draft, deps)
    sections = build_sections(draft, claims, state["sources"])
    report = await compose_report(state, deps, (*sections, *([build_notice("Please note", *told)] if told else [])),
                           _reach_status(state))  # fmt: skip
    return await finish_run(state, deps, report, kept)


def _reach_status(state: State) -> ReportStatus:
    """A report that answers none of what was asked is not complete, however well its statements hold."""
    questions = Plan.model_validate(state["plan"]).questions
    none = questions and len(list_open_questions(state)) == len(questions)
    return ReportStatus.PARTIAL if none else ReportStatus.COMPLETE


def apply_edits(state: State) -> Draft:
    """The draft without the sections a person struck out, under the title they gave it. A version that has none but
    those is left as it is: it goes back to the person, or out as the best there is."""
    draft = Draft.model_validate(state["draft"])
    out = {fold(title) for title in state["edits"].get("drop", ())}
    kept = tuple(section for section in draft.sections if fold(section.title) not in out)
    told = any(sentence.claims for section in kept for sentence in section.sentences)
    title = state["edits"].get("title") or draft.title
    return draft.model_copy(update={"sections": kept if told else draft.sections, "title": title})


async def _has_cost(deps: ResearchContext) -> bool:
    spend = await deps.account.get_spend()
    return spend.usd > 0 or spend.tokens > 0


async def finish_run(state: State, deps: ResearchContext, report: ReportData, kept: ThreadHistory) -> State:
    """What all endings share: cited sources announced, the answer said, the thread kept short."""
    messages, summary = kept
    report = report.model_copy(update={"errors": list_errors(state)})
    for card in report.sources:
        await deps.emit("citation", "publish", id=card.id, title=card.title, url=card.url)
    await deps.emit("done", "publish", status=report.status, confidence=report.confidence, sources=len(report.sources),
                    checked=report.coverage.checked, total=report.coverage.total, usd=report.spend.usd)  # fmt: skip
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


def list_errors(state: State) -> tuple[str, ...]:
    """The last ones, each once: searches that providers refused, then tasks that were lost."""
    refused = [
        f"{source}: {message}"
        for key in sorted(state["searched"])
        for source, (message, _) in state["searched"][key].get("errors", {}).items()
    ]
    return tuple(dict.fromkeys([*refused, *state["failures"].values()]))[-MOST_ERRORS:]


def build_notice(title: str, *lines: str) -> Section:
    return Section(title=title, role="notice", sentences=tuple(Sentence(text=line, kind="frame") for line in lines))


def to_message(report: ReportData) -> str:
    """The answer as one message of the conversation: the summary if there is one, else what the sections say first."""
    summary = [section for section in report.sections if section.role == "abstract"]
    body = [section for section in report.sections if section.role in ("body", "disagreements") and _has_facts(section)]
    told = [sentence.text for section in summary or body or report.sections[:1] for sentence in section.sentences]
    while len(told) > 1 and len(" ".join(told)) > LONGEST_ANSWER:
        told.pop()
    return " ".join(told)


def _has_facts(section: Section) -> bool:
    return any(sentence.kind == "fact" for sentence in section.sentences)


async def condense_history(state: State, deps: ResearchContext) -> ThreadHistory:
    """The messages that stay beside the answer to come, and the others as a summary. Before the report is made, so that
    it tells what this has cost too."""
    messages, summary = list(state["messages"]), state.get("conversation_summary", "")
    if len(messages) + 1 <= MOST_MESSAGES:
        return messages, summary
    kept = KEPT_MESSAGES - 1
    older = [ThreadMessage.model_validate(message) for message in messages[:-kept]]
    return messages[-kept:], await deps.reasoner.condense(older, summary)


# The best there is when a report could not be finished (F-12): the draft, else the analysis, else the results, else
# an honest nothing; with caveats, the score of the last review and the last errors.

MOST_STATEMENTS, MOST_RESULTS = 24, 10
LONGEST_QUOTE = 300  # characters of what a source that was found says
_NUMBER_WORDS = {1: "One", 2: "Two", 3: "Three", 4: "Four", 5: "Five"}


async def fallback(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    claims = [Claim.model_validate(item) for item in state["claims"]]
    supported = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED]
    basis = choose_basis(state, supported)
    status = ReportStatus.PARTIAL if supported else ReportStatus.NO_DATA
    kept = await condense_history(state, deps)
    found = await _build_cards(state, deps) if basis == "results" else ()
    sections = _fallback_sections(state, basis, claims, supported, found, deps)
    report = await compose_report(state, deps, sections, status)
    # What was found is listed, though nothing rests on it; what is cited keeps its own card.
    cards = (*report.sources, *(card for card in found if card.id not in {known.id for known in report.sources}))
    data = report.metadata.model_copy(update={"sources": len(cards)})
    report = report.model_copy(update={"basis": basis, "sources": cards, "metadata": data})
    return await finish_run(state, deps, report, kept)


def choose_basis(state: State, supported: Sequence[Claim]) -> Basis:
    if supported:
        return "draft" if state["draft"] else "analysis"
    return "results" if state["sources"] and not state["rejected"] else "nothing"


def _fallback_sections(
    state: State, basis: Basis, claims: Sequence[Claim], supported: Sequence[Claim], found: Sequence[SourceCard],
    deps: ResearchContext,
) -> tuple[Section, ...]:  # fmt: skip
    if basis in ("results", "nothing"):
        return (build_notice("No answer found", *_write_apology(state)), *_list_sources(found))
    draft = apply_edits(state) if basis == "draft" else _draft_from_claims(state, supported)
    caveats = build_notice("Please note", *_list_caveats(state, basis, deps), *reader_notes(state, draft, deps))
    return (*build_sections(draft, claims, state["sources"]), caveats)


def _draft_from_claims(state: State, supported: Sequence[Claim]) -> Draft:
    """What was verified, by the section it answers, best first; superseded statements are left out."""
    plan = Plan.model_validate(state["plan"])
    section_of = {question.id: question.section for question in reversed(plan.questions)}
    placed: dict[str, list[DraftSentence]] = {title: [] for title in (*plan.sections, "What was found")}
    current = [claim for claim in supported if not claim.superseded_by] or supported
    for claim in sorted(current, key=lambda claim: (-claim.relevance, claim.id))[:MOST_STATEMENTS]:
        title = next((section_of[id] for id in claim.questions if id in section_of), "What was found")
        placed[title].append(DraftSentence(text=claim.text, claims=(claim.id,)))
    sections = [DraftSection(title=title, sentences=tuple(told)) for title, told in placed.items() if told]
    return Draft(title="", sections=tuple(sections))


def _list_caveats(state: State, basis: Basis, deps: ResearchContext) -> Iterator[str]:
    yield "This report was not finished; it holds the best there is."
    if basis == "analysis":
        yield "It was not written out: these are the statements that could be verified, in the words of their sources."
    if state["rejected"]:
        yield f"{_end_reason(state)}."
    critique = state["critique"]
    if critique and critique["recommendation"] != "approve":
        yield "The last review did not approve it."
        drafts = state["iteration"]
        if drafts > 1:
            yield f"{_NUMBER_WORDS.get(drafts, 'Many')} versions were written, and the one reviewed best is given."
        yield f"It was given about {int(critique['score'])} of 10 points."
        critical = sum(issue["severity"] == "critical" for issue in critique["issues"])
        if critical:
            yield f"{critical} critical fault{'s' * (critical != 1)} could not be mended."
    if basis == "analysis" and needs_more_research(state, deps.options.depth):
        yield f"After {state['research_attempts']} attempts not everything that was asked could be verified."
    yield from (
        f"Something failed on the way: {_sanitize_error(reason)}" for reason in list(state["failures"].values())[-2:]
    )


def _end_reason(state: State) -> str:
    last = next(reversed(state["approvals"].values()), {})
    return "Nobody answered a review in time" if last.get("decision") == "timeout" else "It was rejected at a review"


def _write_apology(state: State) -> list[str]:
    if state["rejected"]:
        return [f"{_end_reason(state)}, so the research ended here.", "Ask again to start over."]
    question = (state["understanding"] or {}).get("question") or state["original_query"]
    lines = [f"Sorry, no source had an answer to “{question}”."]
    if state["failures"]:
        lines.append("Some sources could not be searched; the run log says which and why.")
    if state["research_attempts"] > 1:
        lines.append(f"It was looked for in {state['research_attempts']} attempts, each with other words.")
    lines.append("You could check the spelling, name the subject in full, or add documents that speak of it.")
    return lines


def _list_sources(found: Sequence[SourceCard]) -> tuple[Section, ...]:
    """Nothing of what they say is asserted, not even their titles: those stand in the list of sources."""
    if not found:
        return ()
    cited = ", ".join(f"[{card.id}]" for card in found)
    return (
        build_notice("Found but not verified", f"These sources were found and read: {cited}.",
               "Nothing in them could be verified as an answer; what they are is listed with the sources."),
    )  # fmt: skip


async def _build_cards(state: State, deps: ResearchContext) -> tuple[SourceCard, ...]:
    """The sources that were read, those with something on the matter first, each with what it says."""
    quotes: dict[str, str] = {}
    for finding in state["findings"]:  # best first
        quotes.setdefault(finding["span"]["document"], finding["span"]["quote"])
    documents = {source["document"]: await deps.documents.get(source["document"]) for source in state["sources"]}
    together = await asyncio.to_thread(group_documents, documents.values())
    ranked = sorted(state["sources"], key=lambda source: source["document"] not in quotes)[:MOST_RESULTS]
    return tuple(_build_card(source, documents[source["document"]], together, quotes) for source in ranked)


def _build_card(source: Plain, document: Document, together: dict[str, str], quotes: dict[str, str]) -> SourceCard:
    credibility, quote = assess_credibility(document), quotes.get(document.hash, "")[:LONGEST_QUOTE]
    return SourceCard(
        id=source["id"], title=document.title, url=document.url, document=document.hash, group=together[document.hash],
        why_used=f"found, not verified: “{quote}”" if quote else "found, and nothing in it on the question",
        host=document.host, kind=document.kind, author=document.author, published=source["published"],
        primary=credibility.primary, credibility=credibility.score, credibility_reasons=credibility.reasons,
    )  # fmt: skip


def _sanitize_error(reason: str) -> str:
    """A frame sentence names nothing the sources did not, so an error is quoted without capitals or figures."""
    return "".join(character for character in reason.lower() if not character.isdigit())
