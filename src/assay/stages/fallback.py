"""The best there is when a report could not be finished: draft, else claims, else an honest nothing."""

from collections.abc import Sequence

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.claim import Claim, Verdict
from assay.model.report import ReportStatus, Section
from assay.reasoning.protocol import Draft, DraftSection, DraftSentence
from assay.stages.composing import compose, published
from assay.stages.publish import condensed, edited, finish, notice
from assay.state import State


async def fallback(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    claims = [Claim.model_validate(item) for item in state["claims"]]
    supported = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED]
    sections = _best(state, claims, supported)
    status = ReportStatus.PARTIAL if supported else ReportStatus.NO_DATA
    kept = await condensed(state, deps)
    report = await compose(state, deps, sections, status)
    return await finish(state, deps, report, kept)


def _best(state: State, claims: Sequence[Claim], supported: Sequence[Claim]) -> tuple[Section, ...]:
    caveat = notice("Please note", *_caveats(state))
    if state["draft"] and supported:
        return (*published(edited(state), claims, state["sources"]), caveat)
    if supported:
        found = DraftSection(
            title="What was found",
            sentences=tuple(DraftSentence(text=claim.text, claims=(claim.id,)) for claim in supported[:10]),
        )
        return (*published(Draft(title="", sections=(found,)), claims, state["sources"]), caveat)
    return (notice("No answer found", *_apology(state)),)


def _caveats(state: State) -> list[str]:
    lines = ["This report was not finished; it holds the best there is."]
    if state["rejected"]:
        lines.append(f"{_ended(state)}.")
    if state["critique"] and state["critique"]["recommendation"] != "approve":
        lines.append("The last review did not approve it.")
    return [
        *lines,
        *(f"Something failed on the way: {_lower(reason)}" for reason in list(state["failures"].values())[-2:]),
    ]


def _ended(state: State) -> str:
    last = next(reversed(state["approvals"].values()), {})
    return "Nobody answered a review in time" if last.get("decision") == "timeout" else "It was rejected at a review"


def _apology(state: State) -> list[str]:
    if state["rejected"]:
        return [f"{_ended(state)}, so the research ended here.", "Ask again to start over."]
    question = (state["understanding"] or {}).get("question") or state["original_query"]
    lines = [f"Sorry, no source had an answer to “{question}”."]
    if state["failures"]:
        lines.append("Some sources could not be searched; the run log says which and why.")
    if state["research_attempts"] > 1:
        lines.append(f"It was looked for in {state['research_attempts']} attempts, each with other words.")
    lines.append("You could check the spelling, name the subject in full, or add documents that speak of it.")
    return lines


def _lower(reason: str) -> str:
    """A frame sentence names nothing the sources did not, so an error is quoted without capitals or figures."""
    return "".join(character for character in reason.lower() if not character.isdigit())
