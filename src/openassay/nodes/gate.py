"""Whether to go on at once or to ask first. The decision and its signals are recorded."""

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import combinations
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from openassay.context import ResearchContext
from openassay.errors import SourceError
from openassay.models.evidence import Hit
from openassay.models.plan import Gate, Mode, Understanding
from openassay.models.thread import ALL_OPTIONS, CUSTOM_OPTION, OnTimeout
from openassay.nodes.dispatch import FAST_RATE
from openassay.nodes.failures import is_transient
from openassay.nodes.preferences import select_sources, source_preferences
from openassay.protocols import RemoteSource
from openassay.reasoning.rules.small_talk import is_cancellation
from openassay.state import Plain, State
from openassay.text.words import fold, stems

# Stopping for a person. When it was asked goes into the checkpoint with the question, so that a deadline outlives
# whoever asked.


def ask_person(
    kind: str,
    question: str,
    asked: datetime,
    *,
    seconds: int | None,
    on_timeout: OnTimeout,
    options: list[str],
    **shown: Any,
) -> Plain:
    """What was answered, in the form `admission.validated` or `questions.timed` gave it. A node that asks has done
    nothing before: it is run again from its beginning."""
    answer: Plain = interrupt(
        {"kind": kind, "question": question, "options": options, "asked": asked.isoformat(), "seconds": seconds,
         "on_timeout": on_timeout, **shown}
    )  # fmt: skip
    return answer


UNCLEAR, EXPENSIVE = 0.4, 0.5  # clarity below which, and share of the cap above which, auto turns into plan
# Finds that have so little in common are about different things (the planet, the metal, the car); only a question of
# few words leaves that open.
SCATTERED, FEW_WORDS, ENOUGH_HITS = 0.08, 3, 4
PREVIEWED = 5
NOBODY = "Plan mode was asked for, but nobody could answer: the plan was made with defaults."


async def gate(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    understanding = Understanding.model_validate(state["understanding"])
    notices = dict(state["notices"])
    wanted = await deps.mode()
    if wanted is Mode.PLAN and not can_wait(deps):
        wanted, notices["mode"] = Mode.AUTO, NOBODY
        await deps.emit("notice", "gate", text=NOBODY)
    hits = await _search_preview(understanding.question, deps)
    decision = decide_mode(understanding, hits, deps, wanted=wanted, guessed="understand" in state["notices"])
    await deps.emit("notice" if decision.flipped else "leave", "gate", **decision.plain())
    asked = await _prepare_questions(decision, understanding, state, deps)
    return {"gate": decision.plain(), "notices": notices, "current_agent": "gate", **asked}


def can_wait(deps: ResearchContext) -> bool:
    """Where nobody is there, only who has asked for plan mode with this very question will come and answer."""
    return deps.options.interactive or deps.options.mode is Mode.PLAN


async def _search_preview(question: str, deps: ResearchContext) -> list[Hit]:
    """One cheap search: do the sources know anything, and do the first hits agree on what it is about? A provider that
    is paid, or allows for few requests, is not asked for that."""
    found: list[Hit] = []
    for source in select_sources(deps.sources, (), source_preferences(question, deps.options)):
        if isinstance(source, RemoteSource) and (
            source.terms.usd or source.terms.per_minute < FAST_RATE or "web" not in source.types
        ):
            continue
        try:
            found += await source.search(question, limit=PREVIEWED)
        except SourceError as error:
            await deps.emit("error", "gate", source=source.name, message=error.message, retryable=error.retryable)
        except Exception as error:
            if is_transient(error):
                raise
            message = f"{source.name} failed: {type(error).__name__}"
            await deps.emit("error", "gate", source=source.name, message=message, retryable=False)
    return found


def hit_coherence(hits: Sequence[Hit], question: str) -> float:
    """How much the first hits have in common beside the question's own words: the mean overlap of their words. Titles
    alone say too little to tell them apart."""
    asked = set(stems(question))
    bags = [words for hit in hits if hit.snippet and (words := set(stems(f"{hit.title} {hit.snippet}")) - asked)]
    overlaps = [len(one & other) / min(len(one), len(other)) for one, other in combinations(bags, 2)]
    return sum(overlaps) / len(overlaps) if overlaps else float(bool(hits))


def decide_mode(
    understanding: Understanding, hits: Sequence[Hit], deps: ResearchContext, *, wanted: Mode, guessed: bool
) -> Gate:
    """A question that was `guessed` has been asked about as often as it may be."""
    agree = hit_coherence(hits, understanding.question)
    usd = deps.quote.usd if deps.quote else 0.0
    reasons = _list_doubts(understanding, hits, agree, usd, deps)
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


def _list_doubts(
    understanding: Understanding, hits: Sequence[Hit], agree: float, usd: float, deps: ResearchContext
) -> list[str]:
    cap = deps.options.max_usd(deps.settings.budget.usd)
    few = len(set(stems(understanding.question))) <= FEW_WORDS
    doubts = {
        "the question can be understood in several ways": 1 - understanding.ambiguity_level < UNCLEAR,
        "what a first search found is about different things": few and len(hits) >= ENOUGH_HITS and agree < SCATTERED,
        f"it may cost ${usd:.2f} of ${cap:.2f}": usd > EXPENSIVE * cap > 0,
    }
    return [doubt for doubt, holds in doubts.items() if holds]


async def _prepare_questions(
    decision: Gate, understanding: Understanding, state: State, deps: ResearchContext
) -> State:
    if decision.mode is Mode.AUTO:
        return {}
    questions = await deps.reasoner.propose_questions(understanding, collect_answers(state, deps))
    return {"planner_questions": [question.plain() for question in questions]}


def collect_answers(state: State, deps: ResearchContext) -> dict[str, str]:
    """What need not be asked, since it was said: on the command line, or once and for all."""
    said = {"depth": f"{deps.options.words} words" if deps.options.words else "", "use": deps.options.style or ""}
    said["context"] = deps.options.context
    return {about: text for about, text in said.items() if text}


# One planning question at a time, until all are answered or nobody wants to be asked any more.
#
# What calls off a whole question elsewhere ("it doesn't matter", "none of the above") may mean this one alone here:
# only
# plain words end everything, and the rest leaves the matter to defaults.

ALL, CUSTOM = ALL_OPTIONS, CUSTOM_OPTION
_UNASKED = {
    "mode": "The mode was changed to auto: what had not been asked yet was left to defaults.",
    "nobody": "Nobody could be asked: planning questions that were open were left to defaults.",
    "timer": "Nobody answered a planning question in time: what was still open was left to defaults.",
}
_ENDS = re.compile(r"\b(?:never ?mind|cancel|abort|stop|quit|exit|forget|call (?:it|this|that|everything) off)\b")
_ANY = re.compile(
    r"(?:(?:it|that|this) )?(?:really )?(?:doesn'?t|does not) (?:really )?matter|no matter|any(?:thing|one|way)?"
    r"|any of (?:them|these|those|the above)|either|whatever|whichever|all the same|(?:it'?s )?up to you"
    r"|you (?:choose|decide|pick)|i (?:really )?(?:don'?t|do not) (?:care|mind|know)|don'?t (?:care|mind|know)|not sure"
    r"|no (?:idea|opinion|preferences?|thanks?|thank you)|no|nope|none|nothing(?: special| in particular)?"
    r"|none of (?:them|these|those|the above)|skip(?: (?:it|this|that|this one|this question))?|pass|next|default"
    r"|(?:the )?defaults|not (?:needed|necessary|important|relevant)|n/a"
)
_TRIMMING = re.compile(
    r"^(?:ok|okay|oh|well|no|honestly|actually|just|please)[,.!]* (?=\S)|(?:,? (?:to me|please|thanks))$"
)


async def question(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps, given, all_of_them = runtime.context, state["planner_answers"], state["planner_questions"]
    asked = pending_questions(state)[0]
    answer = {"skipped": "nobody"} if not can_wait(deps) else ask_person(
        "planning", asked["text"], deps.now(), seconds=deps.settings.breakpoints.question_timeout, on_timeout="guess",
        options=[*asked["options"], *([ALL] if asked["all_of_the_above"] else []), CUSTOM],
        id=asked["id"], number=all_of_them.index(asked) + 1, of=len(all_of_them),
    )  # fmt: skip
    if "skipped" in answer:
        note = _UNASKED[answer["skipped"]]
        await deps.emit("notice", "question", text=note)
        return {
            "planner_questions": [one for one in all_of_them if one not in pending_questions(state)],
            "notices": {**state["notices"], "planning": note},
            "current_agent": "question",
        }
    if cancels_research(answer["text"]):
        understanding = {**(state["understanding"] or {}), "intent": "cancel"}
        return {"understanding": understanding, "planner_questions": [], "current_agent": "question"}
    if leaves_open(answer["text"]):
        await deps.emit("notice", "question", text=f"No preference: {asked['about']} is left to defaults.")
        left = [{**one, "left_open": True} if one == asked else one for one in all_of_them]
        return {"planner_questions": left, "current_agent": "question"}
    return {"planner_answers": {**given, asked["id"]: answer["text"]}, "current_agent": "question"}


def is_cut_short(state: State) -> bool:
    """Whether the person has turned to auto rather than answer: they want no more questions about the plan."""
    return state["notices"].get("planning") == _UNASKED["mode"]


def pending_questions(state: State) -> list[Plain]:
    """Planning questions that were neither answered nor left open."""
    given = state["planner_answers"]
    return [one for one in state["planner_questions"] if one["id"] not in given and not one.get("left_open")]


def cancels_research(text: str) -> bool:
    return is_cancellation(text) and bool(_ENDS.search(_normalize_answer(text)))


def leaves_open(text: str) -> bool:
    """Whether no preference was said: nothing is to follow from it."""
    said = _normalize_answer(text)
    return is_cancellation(text) or bool(_ANY.fullmatch(said) or _ANY.fullmatch(_TRIMMING.sub("", said)))


def _normalize_answer(text: str) -> str:
    return " ".join(fold(text).replace("’", "'").split()).rstrip(" .!?")
