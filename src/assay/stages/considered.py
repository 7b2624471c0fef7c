"""What a person said, now or once, that shaped a report: it is told in the report, so that nobody has to guess."""

from assay.deps import Deps
from assay.model.plan import Plan
from assay.state import State

CONSIDERED = "Taken into account:"  # such a notice is of the person's own saying


def considered(state: State, plan: Plan | None, deps: Deps) -> list[str]:
    """One notice, or none."""
    said = [*_of_plan(plan), *_remembered(plan, deps), *_of_report(state)]
    return [f"{CONSIDERED} {'; '.join(dict.fromkeys(said))}."] if said else []


def _of_plan(plan: Plan | None) -> list[str]:
    """Answers to planning questions, what was clarified, and the changes a person made."""
    if plan is None:
        return []
    edits = [line.rstrip(".") for line in plan.reasoning if plan.edited and line.startswith("You ")]
    return [*(line.rstrip(".") for line in plan.constraints), *edits]


def _remembered(plan: Plan | None, deps: Deps) -> list[str]:
    """Preferences that decided where nothing else did; the others stand in the plan."""
    if plan is None:
        return []
    known, options = deps.options.preferences, deps.options
    style = f"remembered: {known.style} style" if known.style and not (options.style or plan.style) else ""
    words = f"remembered: {known.words} words" if known.words and not (options.words or plan.words) else ""
    avoid = f"remembered: avoid {', '.join(known.avoid)}" if known.avoid else ""
    prefer = f"remembered: prefer {', '.join(known.prefer)}" if known.prefer else ""
    return [line for line in (style, words, avoid, prefer) if line]


def _of_report(state: State) -> list[str]:
    edits = state.get("edits") or {}
    dropped = [f"you left out the section “{title}”" for title in edits.get("drop", ())]
    vetoed = [f"you vetoed “{source['title'] or source['url']}”" for source in state.get("vetoed") or ()]
    return [*dropped, *(["you gave it another title"] if edits.get("title") else []), *vetoed]
