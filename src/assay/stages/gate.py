"""Whether to go on at once or to ask first. The decision and its signals are recorded."""

from collections.abc import Sequence

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.errors import SourceError
from assay.model.question import Gate, Mode, Understanding
from assay.ports import Remote
from assay.stages.dispatch import BRISK
from assay.state import State

UNCLEAR, EXPENSIVE = 0.4, 0.5  # clarity below which, and share of the cap above which, auto turns into plan


async def gate(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    understanding = Understanding.model_validate(state["understanding"])
    preview = await _preview(understanding.question, deps)
    decision = decide(understanding, preview, deps, guessed="understand" in state["notices"])
    await deps.emit("notice" if decision.flipped else "leave", "gate", **decision.plain())
    return {"gate": decision.plain(), "current_agent": "gate", **await _questions(decision, understanding, deps)}


async def _preview(question: str, deps: Deps) -> Sequence[str]:
    """One cheap search: do the sources know anything, and do the first hits agree on what it is about? A provider that
    is paid, or allows for few requests, is not asked for that."""
    titles: list[str] = []
    for source in deps.sources:
        if isinstance(source, Remote) and (
            source.terms.usd or source.terms.per_minute < BRISK or "web" not in source.types
        ):
            continue
        try:
            titles += [hit.title for hit in await source.search(question, limit=5)]
        except SourceError as error:
            await deps.emit("error", "gate", source=source.name, message=error.message, retryable=error.retryable)
    return titles


def decide(understanding: Understanding, titles: Sequence[str], deps: Deps, *, guessed: bool) -> Gate:
    """A question that was `guessed` has been asked about as often as it may be."""
    clarity = 1 - understanding.ambiguity_level
    coherence = 1 - (len(set(titles)) - 1) / len(titles) if titles else 0.0
    usd = deps.quote.usd if deps.quote else 0.0
    cap = deps.settings.budget.usd if deps.options.usd is None else deps.options.usd
    wanted = deps.options.mode
    ambiguous = clarity < UNCLEAR or usd > EXPENSIVE * cap > 0
    may_ask = deps.settings.auto_gate and deps.options.interactive and not guessed
    flips = wanted is Mode.AUTO and ambiguous and may_ask
    mode = Mode.PLAN if flips else wanted
    reason = "asked for" if not flips else "the question is ambiguous or expensive, so it is worth asking first"
    return Gate(
        mode=mode, flipped=flips, clarity=round(clarity, 2), coherence=round(coherence, 2), estimated_usd=usd,
        preview_hits=len(titles), reason=reason,
    )  # fmt: skip


async def _questions(decision: Gate, understanding: Understanding, deps: Deps) -> State:
    if decision.mode is Mode.AUTO:
        return {}
    questions = await deps.reasoner.questions(understanding)
    return {"planner_questions": [question.plain() for question in questions]}
