"""Whether to go on at once or to ask first. The decision and its signals are recorded."""

from collections.abc import Sequence
from itertools import combinations

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.errors import SourceError
from assay.model.question import Gate, Mode, Understanding
from assay.model.source import Hit
from assay.ports import Remote
from assay.stages.dispatch import BRISK
from assay.stages.failures import is_passing
from assay.stages.taste import eligible, taste
from assay.state import State
from assay.text.words import stems

UNCLEAR, EXPENSIVE = 0.4, 0.5  # clarity below which, and share of the cap above which, auto turns into plan
# Finds that have so little in common are about different things (the planet, the metal, the car); only a question of
# few words leaves that open.
SCATTERED, FEW_WORDS, ENOUGH_HITS = 0.08, 3, 4
PREVIEWED = 5
NOBODY = "Plan mode was asked for, but nobody could answer: the plan was made with defaults."


async def gate(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    understanding = Understanding.model_validate(state["understanding"])
    notices = dict(state["notices"])
    wanted = await deps.mode()
    if wanted is Mode.PLAN and not may_wait(deps):
        wanted, notices["mode"] = Mode.AUTO, NOBODY
        await deps.emit("notice", "gate", text=NOBODY)
    hits = await _preview(understanding.question, deps)
    decision = decide(understanding, hits, deps, wanted=wanted, guessed="understand" in state["notices"])
    await deps.emit("notice" if decision.flipped else "leave", "gate", **decision.plain())
    asked = await _questions(decision, understanding, state, deps)
    return {"gate": decision.plain(), "notices": notices, "current_agent": "gate", **asked}


def may_wait(deps: Deps) -> bool:
    """Where nobody is there, only who has asked for plan mode with this very question will come and answer."""
    return deps.options.interactive or deps.options.mode is Mode.PLAN


async def _preview(question: str, deps: Deps) -> list[Hit]:
    """One cheap search: do the sources know anything, and do the first hits agree on what it is about? A provider that
    is paid, or allows for few requests, is not asked for that."""
    found: list[Hit] = []
    for source in eligible(deps.sources, (), taste(question, deps.options)):
        if isinstance(source, Remote) and (
            source.terms.usd or source.terms.per_minute < BRISK or "web" not in source.types
        ):
            continue
        try:
            found += await source.search(question, limit=PREVIEWED)
        except SourceError as error:
            await deps.emit("error", "gate", source=source.name, message=error.message, retryable=error.retryable)
        except Exception as error:
            if is_passing(error):
                raise
            message = f"{source.name} failed: {type(error).__name__}"
            await deps.emit("error", "gate", source=source.name, message=message, retryable=False)
    return found


def coherence(hits: Sequence[Hit], question: str) -> float:
    """How much the first hits have in common beside the question's own words: the mean overlap of their words. Titles
    alone say too little to tell them apart."""
    asked = set(stems(question))
    bags = [words for hit in hits if hit.snippet and (words := set(stems(f"{hit.title} {hit.snippet}")) - asked)]
    overlaps = [len(one & other) / min(len(one), len(other)) for one, other in combinations(bags, 2)]
    return sum(overlaps) / len(overlaps) if overlaps else float(bool(hits))


def decide(understanding: Understanding, hits: Sequence[Hit], deps: Deps, *, wanted: Mode, guessed: bool) -> Gate:
    """A question that was `guessed` has been asked about as often as it may be."""
    agree = coherence(hits, understanding.question)
    usd = deps.quote.usd if deps.quote else 0.0
    reasons = _doubts(understanding, hits, agree, usd, deps)
    may_ask = deps.settings.auto_gate and deps.options.interactive and not guessed
    flips = wanted is Mode.AUTO and bool(reasons) and may_ask
    return Gate(
        mode=Mode.PLAN if flips else wanted,
        flipped=flips,
        clarity=round(1 - understanding.ambiguity_level, 2),
        coherence=round(agree, 2),
        estimated_usd=usd,
        preview_hits=len(hits),
        reason=f"It is worth asking first: {' and '.join(reasons)}." if flips else f"{wanted.value} was asked for",
    )


def _doubts(understanding: Understanding, hits: Sequence[Hit], agree: float, usd: float, deps: Deps) -> list[str]:
    cap = deps.options.cap(deps.settings.budget.usd)
    few = len(set(stems(understanding.question))) <= FEW_WORDS
    doubts = {
        "the question can be understood in several ways": 1 - understanding.ambiguity_level < UNCLEAR,
        "what a first search found is about different things": few and len(hits) >= ENOUGH_HITS and agree < SCATTERED,
        f"it may cost ${usd:.2f} of ${cap:.2f}": usd > EXPENSIVE * cap > 0,
    }
    return [doubt for doubt, holds in doubts.items() if holds]


async def _questions(decision: Gate, understanding: Understanding, state: State, deps: Deps) -> State:
    if decision.mode is Mode.AUTO:
        return {}
    questions = await deps.reasoner.questions(understanding, known(state, deps))
    return {"planner_questions": [question.plain() for question in questions]}


def known(state: State, deps: Deps) -> dict[str, str]:
    """What need not be asked, since it was said: on the command line, or once and for all."""
    said = {"depth": f"{deps.options.words} words" if deps.options.words else "", "use": deps.options.style or ""}
    said["context"] = deps.options.context
    return {about: text for about, text in said.items() if text}
