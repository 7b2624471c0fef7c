"""The end of a question: the report, and the answer as the thread's next message."""

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.claim import Claim
from assay.model.event import Status
from assay.model.plan import Plan
from assay.model.question import Turn
from assay.model.report import ReportData, ReportStatus, Section, Sentence
from assay.reasoning.embedded.small_talk import reply
from assay.reasoning.protocol import Draft
from assay.stages.composing import compose, published
from assay.stages.standards import notes
from assay.stages.unanswered import unanswered
from assay.state import Plain, State
from assay.text.words import fold

MOST_MESSAGES, KEPT_MESSAGES = 10, 4
MOST_ERRORS = 5
LONGEST_ANSWER = 2000  # characters of a message
Kept = tuple[list[Plain], str]  # the messages of a thread, and the summary of those before

_CALLED_OFF = "All right, nothing was researched and nothing was spent. Ask whenever you like."
_CALLED_OFF_LATE = "All right, nothing was researched. Ask whenever you like."


async def publish(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    intent = (state["understanding"] or {}).get("intent", "")
    # Nothing is spent on a question that was called off, so its thread is condensed another time.
    called_off = intent == "cancel"
    kept = (state["messages"], state.get("conversation_summary", "")) if called_off else await condensed(state, deps)
    if intent in ("cancel", "small_talk"):
        farewell = (_CALLED_OFF_LATE if await _has_spent(deps) else _CALLED_OFF) if called_off else ""
        sections: tuple[Section, ...] = (notice("", farewell or reply(state["original_query"])),)
        report = await compose(state, deps, sections, ReportStatus.CANCELLED)
        return await finish(state, deps, report, kept)
    claims, draft = [Claim.model_validate(item) for item in state["claims"]], edited(state)
    told = notes(state, draft, deps)
    sections = published(draft, claims, state["sources"])
    report = await compose(state, deps, (*sections, *([notice("Please note", *told)] if told else [])),
                           _reached(state))  # fmt: skip
    return await finish(state, deps, report, kept)


def _reached(state: State) -> ReportStatus:
    """A report that answers none of what was asked is not complete, however well its statements hold."""
    questions = Plan.model_validate(state["plan"]).questions
    none = questions and len(unanswered(state)) == len(questions)
    return ReportStatus.PARTIAL if none else ReportStatus.COMPLETE


def edited(state: State) -> Draft:
    """The draft without the sections a person struck out, under the title they gave it. A version that has none but
    those is left as it is: it goes back to the person, or out as the best there is."""
    draft = Draft.model_validate(state["draft"])
    out = {fold(title) for title in state["edits"].get("drop", ())}
    kept = tuple(section for section in draft.sections if fold(section.title) not in out)
    told = any(sentence.claims for section in kept for sentence in section.sentences)
    title = state["edits"].get("title") or draft.title
    return draft.model_copy(update={"sections": kept if told else draft.sections, "title": title})


async def _has_spent(deps: Deps) -> bool:
    spend = await deps.account.spent()
    return spend.usd > 0 or spend.tokens > 0


async def finish(state: State, deps: Deps, report: ReportData, kept: Kept) -> State:
    """What all endings share: cited sources announced, the answer said, the thread kept short."""
    messages, summary = kept
    report = report.model_copy(update={"errors": errors(state)})
    for card in report.sources:
        await deps.emit("citation", "publish", id=card.id, title=card.title, url=card.url)
    await deps.emit("done", "publish", status=report.status, confidence=report.confidence, sources=len(report.sources),
                    checked=report.coverage.checked, total=report.coverage.total, usd=report.spend.usd)  # fmt: skip
    answer = spoken(report)
    return {
        "messages": {"replace": [*messages, {"role": "assistant", "content": answer}]},  # type: ignore[typeddict-item]  # the reducer's way to shorten
        "conversation_summary": summary,
        "report": report.plain(),
        "final_summary": answer,
        "best": None,
        "status": Status.COMPLETED,
        "current_agent": "synthesis",
    }


def errors(state: State) -> tuple[str, ...]:
    """The last ones, each once: searches that providers refused, then tasks that were lost."""
    refused = [
        f"{source}: {message}"
        for key in sorted(state["searched"])
        for source, (message, _) in state["searched"][key].get("errors", {}).items()
    ]
    return tuple(dict.fromkeys([*refused, *state["failures"].values()]))[-MOST_ERRORS:]


def notice(title: str, *lines: str) -> Section:
    return Section(title=title, role="notice", sentences=tuple(Sentence(text=line, kind="frame") for line in lines))


def spoken(report: ReportData) -> str:
    """The answer as one message of the conversation: the summary if there is one, else what the sections say first."""
    summary = [section for section in report.sections if section.role == "abstract"]
    body = [section for section in report.sections if section.role in ("body", "disagreements") and _states(section)]
    told = [sentence.text for section in summary or body or report.sections[:1] for sentence in section.sentences]
    while len(told) > 1 and len(" ".join(told)) > LONGEST_ANSWER:
        told.pop()
    return " ".join(told)


def _states(section: Section) -> bool:
    return any(sentence.kind == "fact" for sentence in section.sentences)


async def condensed(state: State, deps: Deps) -> Kept:
    """The messages that stay beside the answer to come, and the others as a summary. Before the report is made, so that
    it tells what this has cost too."""
    messages, summary = list(state["messages"]), state.get("conversation_summary", "")
    if len(messages) + 1 <= MOST_MESSAGES:
        return messages, summary
    kept = KEPT_MESSAGES - 1
    older = [Turn.model_validate(message) for message in messages[:-kept]]
    return messages[-kept:], await deps.reasoner.condense(older, summary)
