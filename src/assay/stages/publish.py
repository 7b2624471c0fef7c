"""The end of a question: the report, and the answer as the thread's next message."""

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.claim import Claim
from assay.model.event import Status
from assay.model.question import Turn
from assay.model.report import ReportData, ReportStatus, Section, Sentence
from assay.reasoning.protocol import Draft
from assay.stages.composing import compose, published
from assay.state import Plain, State

MOST_MESSAGES, KEPT_MESSAGES = 10, 4

_FAREWELL = {
    "cancel": "All right, nothing was researched and nothing was spent. Ask whenever you like.",
    "small_talk": "Hello! Ask a question and every sentence of the answer will open the passage behind it.",
}


async def publish(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    intent = (state["understanding"] or {}).get("intent", "")
    if intent in _FAREWELL:
        sections: tuple[Section, ...] = (notice("", _FAREWELL[intent]),)
        report = await compose(state, deps, sections, ReportStatus.CANCELLED)
    else:
        claims = [Claim.model_validate(item) for item in state["claims"]]
        sections = published(Draft.model_validate(state["draft"]), claims, state["sources"])
        report = await compose(state, deps, sections, ReportStatus.COMPLETE)
    return await finish(state, deps, report, Status.COMPLETED)


async def finish(state: State, deps: Deps, report: ReportData, status: Status) -> State:
    """What both endings share: cited sources announced, the answer said, the thread kept short."""
    for card in report.sources:
        await deps.emit("citation", "publish", id=card.id, title=card.title, url=card.url)
    await deps.emit("done", "publish", status=report.status, confidence=report.confidence, sources=len(report.sources),
                    checked=report.coverage.checked, total=report.coverage.total)  # fmt: skip
    answer = spoken(report)
    messages, summary = await _condensed([*state["messages"], {"role": "assistant", "content": answer}], state, deps)
    return {
        "messages": {"replace": messages},  # type: ignore[typeddict-item]  # the reducer's way to shorten
        "conversation_summary": summary,
        "report": report.plain(),
        "final_summary": answer,
        "status": status,
        "current_agent": "synthesis",
    }


def notice(title: str, *lines: str) -> Section:
    return Section(title=title, role="notice", sentences=tuple(Sentence(text=line, kind="frame") for line in lines))


def spoken(report: ReportData) -> str:
    """The answer as one message of the conversation: the summary if there is one, else the first section."""
    section = next((s for s in report.sections if s.role == "abstract"), None) or next(iter(report.sections), None)
    return " ".join(sentence.text for sentence in section.sentences) if section else ""


async def _condensed(messages: list[Plain], state: State, deps: Deps) -> tuple[list[Plain], str]:
    summary = state.get("conversation_summary", "")
    if len(messages) <= MOST_MESSAGES:
        return messages, summary
    older = [Turn.model_validate(message) for message in messages[:-KEPT_MESSAGES]]
    return messages[-KEPT_MESSAGES:], await deps.reasoner.condense(older, summary)
