"""Plan the research: decide whether to go on at once or to ask first, ask the planning questions, and make the plan."""

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import combinations
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from openassay.context import ResearchContext
from openassay.errors import SourceError, StorageError
from openassay.models.event import Status
from openassay.models.evidence import Hit
from openassay.models.plan import Gate, Mode, Understanding
from openassay.models.thread import ALL_OPTIONS, CUSTOM_OPTION, OnTimeout
from openassay.nodes.dispatch import FAST_RATE
from openassay.nodes.failures import is_transient
from openassay.nodes.preferences import select_sources, source_preferences
from openassay.protocols import RemoteSource
from openassay.reasoning.base import PlanRequest
from openassay.state import Plain, State, load_understanding
from openassay.text.small_talk import is_cancellation
from openassay.text.words import fold, stems

MAX_FACTS = 5  # of what is remembered of the person
UNCLEAR, EXPENSIVE = 0.4, 0.5  # clarity below which, and share of the cap above which, auto turns into plan
# Finds that have so little in common are about different things (the planet, the metal, the car); only a question of
# few words leaves that open.
SCATTERED, FEW_WORDS, ENOUGH_HITS = 0.08, 3, 4
PREVIEW_HITS = 5  # of each source
NOBODY = "Plan mode was asked for, but nobody could answer: the plan was made with defaults."


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
    """Interrupt the run for a person and return the validated answer. A node that asks has done nothing before: it is
    run again from its beginning. The time goes into the checkpoint, so that a deadline outlives the process."""
    answer: Plain = interrupt(
        {
            "kind": kind,
            "question": question,
            "options": options,
            "asked": asked.isoformat(),
            "seconds": seconds,
            "on_timeout": on_timeout,
            **shown,
        }
    )
    return answer


async def gate(state: State, runtime: Runtime[ResearchContext]) -> State:
    context, understanding, notices = runtime.context, load_understanding(state), dict(state["notices"])
    mode = await context.mode()
    if mode is Mode.PLAN and not can_wait(context):
        mode, notices["mode"] = Mode.AUTO, NOBODY
        await context.emit("notice", "gate", text=NOBODY)
    # One cheap search: do the sources know anything, and do the first hits agree on what it is about? Providers that
    # are paid, or slow, are not asked for that.
    hits: list[Hit] = []
    preferences = source_preferences(understanding.question, context.options)
    for source in select_sources(context.sources, (), preferences):
        if isinstance(source, RemoteSource) and (
            source.terms.usd or source.terms.per_minute < FAST_RATE or "web" not in source.types
        ):
            continue
        try:
            hits += await source.search(understanding.question, limit=PREVIEW_HITS)
        except SourceError as error:
            await context.emit("error", "gate", source=source.name, message=error.message, retryable=error.retryable)
        except Exception as error:
            if is_transient(error):
                raise
            message = f"{source.name} failed: {type(error).__name__}"
            await context.emit("error", "gate", source=source.name, message=message, retryable=False)
    decision = decide_mode(understanding, hits, context, wanted=mode, guessed="understand" in state["notices"])
    await context.emit("notice" if decision.flipped else "leave", "gate", **decision.plain())
    update: State = {"gate": decision.plain(), "notices": notices, "current_agent": "gate"}
    if decision.mode is not Mode.AUTO:
        # What was said on the command line, or once and for all, need not be asked.
        options = context.options
        known = {
            "depth": f"{options.words} words" if options.words else "",
            "use": options.style or "",
            "context": options.context,
        }
        questions = await context.reasoner.propose_questions(
            understanding, {about: text for about, text in known.items() if text}
        )
        update["planner_questions"] = [question.plain() for question in questions]
    return update


def can_wait(context: ResearchContext) -> bool:
    """Tell whether somebody will answer: a person is there, or has asked for plan mode with this very question."""
    return context.options.interactive or context.options.mode is Mode.PLAN


def hit_coherence(hits: Sequence[Hit], question: str) -> float:
    """Compute how much the first hits have in common beside the question's own words: the mean overlap of their words.
    Titles alone say too little to tell them apart."""
    asked = set(stems(question))
    bags = [words for hit in hits if hit.snippet and (words := set(stems(f"{hit.title} {hit.snippet}")) - asked)]
    overlaps = [len(one & other) / min(len(one), len(other)) for one, other in combinations(bags, 2)]
    return sum(overlaps) / len(overlaps) if overlaps else float(bool(hits))


def decide_mode(
    understanding: Understanding, hits: Sequence[Hit], context: ResearchContext, *, wanted: Mode, guessed: bool
) -> Gate:
    """Decide on the mode. A question that was `guessed` has been asked about as often as it may be."""
    coherence = hit_coherence(hits, understanding.question)
    usd = context.quote.usd if context.quote else 0.0
    cap = context.options.max_usd(context.settings.budget.usd)
    few_words = len(set(stems(understanding.question))) <= FEW_WORDS
    scattered = few_words and len(hits) >= ENOUGH_HITS and coherence < SCATTERED
    doubts = {
        "the question can be understood in several ways": 1 - understanding.ambiguity_level < UNCLEAR,
        "what a first search found is about different things": scattered,
        f"it may cost ${usd:.2f} of ${cap:.2f}": usd > EXPENSIVE * cap > 0,
    }
    reasons = [doubt for doubt, holds in doubts.items() if holds]
    may_ask = context.settings.auto_gate and context.options.interactive and not guessed
    flips = wanted is Mode.AUTO and bool(reasons) and may_ask
    return Gate(
        mode=Mode.PLAN if flips else wanted,
        flipped=flips,
        clarity=round(1 - understanding.ambiguity_level, 2),
        coherence=round(coherence, 2),
        estimated_usd=usd,
        preview_hits=len(hits),
        reason=f"It is worth asking first: {' and '.join(reasons)}." if flips else f"{wanted.value} was asked for",
    )


# Planning questions, one at a time. What calls off a whole question elsewhere ("it doesn't matter", "none of the
# above") may mean only this one here: plain words end everything, and the rest leaves the matter to defaults.

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
    """Ask one planning question, until all are answered or nobody wants to be asked any more."""
    context, questions, pending = runtime.context, state["planner_questions"], pending_questions(state)
    asked = pending[0]
    if not can_wait(context):
        answer = {"skipped": "nobody"}
    else:
        answer = ask_person(
            "planning",
            asked["text"],
            context.now(),
            seconds=context.settings.breakpoints.question_timeout,
            on_timeout="guess",
            options=[*asked["options"], *([ALL] if asked["all_of_the_above"] else []), CUSTOM],
            id=asked["id"],
            number=questions.index(asked) + 1,
            of=len(questions),
        )
    if "skipped" in answer:
        note = _UNASKED[answer["skipped"]]
        await context.emit("notice", "question", text=note)
        return {
            "planner_questions": [one for one in questions if one not in pending],
            "notices": {**state["notices"], "planning": note},
            "current_agent": "question",
        }
    if cancels_research(answer["text"]):
        understanding = {**(state["understanding"] or {}), "intent": "cancel"}
        return {"understanding": understanding, "planner_questions": [], "current_agent": "question"}
    if leaves_open(answer["text"]):
        await context.emit("notice", "question", text=f"No preference: {asked['about']} is left to defaults.")
        left = [{**one, "left_open": True} if one == asked else one for one in questions]
        return {"planner_questions": left, "current_agent": "question"}
    return {"planner_answers": {**state["planner_answers"], asked["id"]: answer["text"]}, "current_agent": "question"}


def is_cut_short(state: State) -> bool:
    """Tell whether the person has turned to auto rather than answer: they want no more questions about the plan."""
    return state["notices"].get("planning") == _UNASKED["mode"]


def pending_questions(state: State) -> list[Plain]:
    """List the planning questions that were neither answered nor left open."""
    answers = state["planner_answers"]
    return [one for one in state["planner_questions"] if one["id"] not in answers and not one.get("left_open")]


def cancels_research(text: str) -> bool:
    return is_cancellation(text) and bool(_ENDS.search(_normalize_answer(text)))


def leaves_open(text: str) -> bool:
    """Tell whether an answer states no preference, so that nothing follows from it."""
    answer = _normalize_answer(text)
    return is_cancellation(text) or bool(_ANY.fullmatch(answer) or _ANY.fullmatch(_TRIMMING.sub("", answer)))


def _normalize_answer(text: str) -> str:
    return " ".join(fold(text).replace("’", "'").split()).rstrip(" .!?")


async def plan(state: State, runtime: Runtime[ResearchContext]) -> State:
    context, options = runtime.context, runtime.context.options
    understanding = load_understanding(state)
    facts, notices = [], dict(state["notices"])
    try:
        facts = list(await context.memory.find_relevant(options.user, understanding.question, limit=MAX_FACTS))
    except StorageError as error:  # the question is researched all the same
        notices["facts"] = f"Planned without the facts you had remembered: {error.message}. {error.help}".rstrip()
        await context.emit("notice", "plan", text=notices["facts"])
    plan = await context.reasoner.plan(
        PlanRequest(
            understanding=understanding,
            depth=options.depth,
            answers=state["planner_answers"],
            context=state["enriched_context"],
            domains=options.domains,
            preferences=options.preferences,
            facts=tuple(fact.text for fact in facts),
        )
    )
    # What the run may ask and spend stands in the plan, so that a person can change it there.
    sources = select_sources(context.sources, (), source_preferences(understanding.question, options))
    usd = options.max_usd(context.settings.budget.usd)
    plan = plan.model_copy(update={"sources": tuple(source.name for source in sources), "usd": usd})
    for warning in plan.warnings:
        await context.emit("notice", "plan", text=warning)
    texts = [question.text for question in plan.questions]
    constraints = list(plan.constraints)
    await context.emit("section", "plan", questions=texts, queries=len(plan.queries), constraints=constraints)
    return {"plan": plan.plain(), "notices": notices, "status": Status.SEARCHING, "current_agent": "plan"}
