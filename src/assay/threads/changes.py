"""Where a branch begins and what is different there: the choice of a moment, the options, the plan."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from assay.errors import AnswerError, NotFoundError, UsageError
from assay.llm.lineup import is_private
from assay.model.branch import Changes, Moment, Place
from assay.model.edit import apply, noted, parse
from assay.model.own_plan import replaced
from assay.model.plan import Plan
from assay.model.question import Mode
from assay.model.thread import Options, Run
from assay.model.veto import Vetoed
from assay.reasoning.embedded.length import length_of
from assay.reasoning.embedded.use import use_of
from assay.text.hosts import registered, within
from assay.text.urls import canonical, host_of
from assay.text.urls import parse as address
from assay.view.diff import SourceRef

_HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+")
_PLANNED = ("approve_plan", "dispatch")
_PRUNED = "Ask the question anew. How many moments of a finished run are kept: persistence.keep_checkpoints."


# Where ------------------------------------------------------------------------------------------------


class Origin(NamedTuple):
    """`wanted` is the moment that was asked for, and where none was, the last: not always the one a change takes effect
    at. `again`: the run took sources out of a report, which its branch does without from the search on."""

    moment: Moment
    wanted: Moment
    named: bool
    again: bool = False


def origin(moments: Sequence[Moment], runs: Mapping[str, Run], wanted: Moment | None, changes: Changes) -> Origin:
    """The last moment of the run at which the changes can still take effect."""
    last = wanted or moments[-1]
    place, again = changes.place, False
    if wanted is None and place is Place.ANYWHERE and changes.given:
        place = Place.ASKED  # who thinks, or for how much, is of use from the beginning on
    reach = [moment for moment in moments if moment.number <= last.number]
    for run in dict.fromkeys(moment.run for moment in reversed(reach)):
        of_run = [moment for moment in reach if moment.run == run]
        fitting = [moment for moment in of_run if _fits(moment, changes, place)]
        if fitting and not _in_vain([moment for moment in moments if moment.run == run], place):
            return Origin(fitting[-1], last, wanted is not None, again)
        if run not in runs or not runs[run].options.get("veto"):
            break
        place, again = min(place, Place.SEARCHING), True  # a veto rests on the question before it
    raise _unfitting(last, [moment for moment in moments if moment.run == last.run], changes)


def _fits(moment: Moment, changes: Changes, place: Place) -> bool:
    if changes.needs_plan and not moment.planned and place is not Place.ASKED:
        return False
    match place:
        case Place.ASKED:
            return moment.begins
        case Place.SEARCHING:
            at_plan = not changes.needs_plan or set(moment.next) <= set(_PLANNED)
            return moment.round == 0 and bool(moment.next) and at_plan and moment.next != ("publish",)
        case Place.WRITING:
            return moment.iteration == 0 and bool(moment.next) and moment.next != ("publish",)
    return bool(moment.next) or not changes.given


def _in_vain(of_run: Sequence[Moment], place: Place) -> bool:
    """Small talk, or a question that was called off: nothing was searched or written that could be changed."""
    ended = not of_run[-1].next and not any(moment.planned for moment in of_run)
    return ended and place in (Place.SEARCHING, Place.WRITING)


def _unfitting(last: Moment, of_run: Sequence[Moment], changes: Changes) -> UsageError:
    later = [moment for moment in of_run if moment.number > last.number and _fits(moment, changes, changes.place)]
    if later:
        return UsageError(f"no plan had been made at {last.told}", help=f"Fork at moment {later[0].number} or later.")
    if changes.place is Place.ASKED or any(moment.planned for moment in of_run):
        return UsageError("the moment at which that takes effect is not kept any more", help=_PRUNED)
    what = "plan was made" if changes.needs_plan else "research was done"
    return UsageError(
        f"no {what} for this question, so that cannot be changed", help="Ask the question anew, or fork elsewhere."
    )


def merged(before: Changes, changes: Changes) -> Changes:
    """What a branch had changed, and what is changed now."""
    edits = changes.edits if changes.plan is not None else (*before.edits, *changes.edits)
    without = tuple(dict.fromkeys((*before.without, *changes.without)))
    return Changes.model_validate({**before.given, **changes.given, "edits": edits, "without": without})


def told(thread: str, begin: Origin, changes: Changes) -> str:
    """What whoever reads the branch must know of where it comes from."""
    line = f"This is a branch of thread {thread} from {begin.moment.told}: {changes.told}."
    if begin.named and begin.moment != begin.wanted:
        return f"{line} It does not begin at {begin.wanted.told}: what was changed takes effect earlier."
    return line


# The plan ---------------------------------------------------------------------------------------------


def implied(changes: Changes) -> Changes:
    """With the style and the length that a deliverable asks for, where they are not said."""
    if changes.deliverable is None:
        return changes
    use, length = use_of(changes.deliverable), length_of(changes.deliverable)
    style, words = use.style if use else None, length or (use.words if use else None)
    return changes.model_copy(update={"style": changes.style or style, "words": changes.words or words})


def planned(plan: Plan, changes: Changes) -> Plan:
    """Raises UsageError where an edit cannot be made."""
    try:
        if changes.plan is not None:
            plan = replaced(plan, changes.plan)
        if changes.edits:
            plan = apply(plan, parse(list(changes.edits)))
    except AnswerError as error:
        raise UsageError(error.message, help=error.help) from error
    if changes.deliverable is not None:
        line = " ".join(changes.deliverable.split())
        plan = noted(plan.model_copy(update={"deliverable": line}), f"You asked for: {line}")
    own = {"words": changes.words, "usd": changes.usd}
    return plan.model_copy(update={name: value for name, value in own.items() if value is not None})


# The options ------------------------------------------------------------------------------------------


def chosen(before: Options, run: str, changes: Changes, interactive: bool | None) -> Options:
    """What the branch's run goes by; sources that were changed are chosen anew."""
    update: dict[str, object] = {
        name: value
        for name in ("depth", "model", "usd", "style", "words", "source", "docs", "web")
        if (value := getattr(changes, name)) is not None
    }
    if {"source", "docs", "web"} & set(update):
        update["sources"] = ()
    if interactive is not None:
        update["interactive"] = interactive
        if not interactive:
            update["mode"] = Mode.AUTO
    update["lineage"] = (run, *before.lineage)
    options = before.model_copy(update=update)
    return options.model_copy(update={"private": before.private or is_private(options)})


# Sources ----------------------------------------------------------------------------------------------


class Without(NamedTuple):
    vetoed: tuple[Vetoed, ...] = ()
    hosts: tuple[str, ...] = ()


def without(names: Sequence[str], known: Sequence[SourceRef]) -> Without:
    """Sources to do without: by the number a report gives them, by address, or all of a host."""
    vetoed: list[Vetoed] = []
    hosts: list[str] = []
    for name in (name.strip() for name in names):
        meant = [ref for ref in known if _is_meant(ref, name)]
        host = name.lower().removeprefix("www.").rstrip(".")
        of_host = [ref for ref in known if within(host_of(ref.url), host)]
        # Where nothing was found yet, any host may turn up; later one that did not is a slip of the pen.
        if not meant and _HOST.fullmatch(host) and registered(host) and (of_host or not known):
            hosts.append(host)
            meant = of_host
        elif not meant and "://" in name and address(name):
            vetoed.append(Vetoed(document="", url=name))
        elif not meant:
            listed = ", ".join(ref.id for ref in known) or "none yet"
            raise NotFoundError(
                f"there is no source {name[:80]!r}", help=f"Sources are {listed}, an address or a host."
            )
        vetoed += [Vetoed(document=ref.document, url=ref.url, title=ref.title) for ref in meant]
    return Without(tuple(dict.fromkeys(vetoed)), tuple(dict.fromkeys(hosts)))


def _is_meant(ref: SourceRef, name: str) -> bool:
    return name.lower() in (ref.id.lower(), ref.id.lower().removeprefix("s")) or canonical(name) == canonical(ref.url)
