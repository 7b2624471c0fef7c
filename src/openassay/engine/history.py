"""The moments of a thread: each of its checkpoints, what had come of the run by then, and what it had cost."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from openassay.engine.checkpoints import CheckpointOutline, SqlCheckpointSaver, effective_state
from openassay.engine.diff import ReportDiff, ReportEdition, compare_editions, from_report, from_state
from openassay.engine.runner import Runner
from openassay.engine.view import StateView, build_view
from openassay.errors import NotFoundError, UsageError
from openassay.export.report import Report
from openassay.models.event import RunStatus
from openassay.models.report import ReportData
from openassay.models.thread import CheckpointInfo
from openassay.state import StateCompactor
from openassay.storage.threads import no_run
from openassay.text.words import pluralize

# What had come of a run at a moment, in one line.

LONGEST = 100  # characters of what others have written
# What reading a state of another shape raises: written by another version, or by hand.
_ODD = (AttributeError, LookupError, TypeError, ValueError)

Values = Mapping[str, Any]


def summarize_state(values: Values, after: Sequence[str]) -> str:
    """By the stage that was just finished, or, where none was, by what there is."""
    for stage in reversed(after or ("",)):
        try:
            if told := _SUMMARIES.get(stage, _summarize_question)(values):
                return told
        except _ODD:
            continue
    return ""


def _summarize_question(values: Values) -> str:
    if values.get("withdrawn"):
        return f"{pluralize(len(values['withdrawn']), 'source')} to be taken out"
    return f"asked: {_clip(values['original_query'])}"


def _summarize_understanding(values: Values) -> str:
    if values.get("clarification_question"):
        return f"to be asked back: {_clip(values['clarification_question'])}"
    return f"understood: {_clip(values['understanding']['question'])}"


def _summarize_gate(values: Values) -> str:
    due = len(values["planner_questions"]) - len(values["planner_answers"])
    return f"{pluralize(due, 'question')} to be asked before planning" if due > 0 else _clip(values["gate"]["reason"])


def _summarize_plan(values: Values) -> str:
    plan = values["plan"]
    edited = ", changed by you" if plan.get("edited") else ""
    questions = pluralize(len(plan["questions"]), "sub-question")
    return f"{questions} planned, {pluralize(len(plan['queries']), 'query', 'queries')}{edited}"


def _summarize_dispatch(values: Values) -> str:
    if not values["tasks"]:
        return "nothing left to search for"
    return f"round {values['round']}: {pluralize(len(values['tasks']), 'sub-question')} to be searched"


def _summarize_search(values: Values) -> str:
    found = [hit for search in values["searched"].values() for hit in search["hits"]]
    asked = sum(len(search["queries"]) for search in values["searched"].values())
    return f"{pluralize(len(found), 'hit')} for {pluralize(asked, 'query', 'queries')}"


def _summarize_selection(values: Values) -> str:
    places = [place for chosen in values["selected"].values() for place in chosen]
    documents = len({place["document"] for place in places})
    pages = sum(len(wanted) for wanted in (values.get("pages") or {}).values())
    told = f"{pluralize(len(places), 'passage')} of {pluralize(documents, 'document')} chosen"
    return f"{told}, {pluralize(pages, 'page')} wanted" if pages else told


def _summarize_harvest(values: Values) -> str:
    pages = values["harvested"].values()
    return f"{sum(bool(page['document']) for page in pages)} of {pluralize(len(pages), 'page')} fetched"


def _summarize_findings(values: Values) -> str:
    quotes = [finding for found in values["read"].values() for finding in found]
    documents = len({finding["span"]["document"] for finding in quotes})
    return f"{pluralize(len(quotes), 'quote')} from {pluralize(documents, 'document')}"


def _summarize_evidence(values: Values) -> str:
    sources = pluralize(len(values["sources"]), "source")
    found = pluralize(len(values["findings"]), "finding")
    return f"{found} of {sources}, confidence {values['confidence'] / 10:.2f}"


def _summarize_analysis(values: Values) -> str:
    analysis = values["analysis"]
    wanting = len(analysis["refinements"])
    again = f"{pluralize(wanting, 'sub-question')} wanting" if wanting else "nothing wanting"
    return f"round {values['round']} analysed, {again}"


def _summarize_claims(values: Values) -> str:
    holding = sum(claim["verdict"] == "supported" for claim in values["claims"])
    return f"{holding} of {pluralize(len(values['claims']), 'statement')} hold"


def _summarize_draft(values: Values) -> str:
    draft = values["draft"]
    texts = [sentence["text"] for section in draft["sections"] for sentence in section["sentences"]]
    words = sum(len(text.split()) for text in texts)
    return f"draft {values['iteration']} of {pluralize(words, 'word')}"


def _summarize_review(values: Values) -> str:
    critique = values["critique"]
    return f"{_summarize_draft(values)}, score {critique['score']:.1f}, {critique['recommendation']}"


def _summarize_report(values: Values) -> str:
    report = values["report"]
    facts = sum(s["kind"] == "fact" for section in report["sections"] for s in section["sentences"])
    return f"report {report['status']}: {pluralize(facts, 'statement')}, {pluralize(len(report['sources']), 'source')}"


_SUMMARIES: dict[str, Callable[[Values], str]] = {
    "": _summarize_question,
    "__start__": _summarize_question,
    "understand": _summarize_understanding,
    "clarify": _summarize_understanding,
    "gate": _summarize_gate,
    "question": _summarize_gate,
    "plan": _summarize_plan,
    "approve_plan": _summarize_plan,
    "dispatch": _summarize_dispatch,
    "search": _summarize_search,
    "fuse": _summarize_selection,
    "approve_harvest": _summarize_selection,
    "harvest": _summarize_harvest,
    "select": _summarize_selection,
    "read": _summarize_findings,
    "consolidate": _summarize_evidence,
    "analyse": _summarize_analysis,
    "verify": _summarize_claims,
    "approve_claims": _summarize_claims,
    "withdraw": _summarize_claims,
    "write": _summarize_draft,
    "review": _summarize_review,
    "approve_review": _summarize_review,
    "approve_output": _summarize_review,
    "publish": _summarize_report,
    "fallback": _summarize_report,
}


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


PAGE = 30  # moments shown unless more are asked for
LEAST = 8  # characters of a checkpoint's id
FULL = 36  # characters of a whole one


class ThreadHistory:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.checkpoints = cast("SqlCheckpointSaver", runner.checkpointer)

    async def list_page(self, thread: str, *, limit: int | None = PAGE, run: str | None = None) -> list[CheckpointInfo]:
        """The newest last. Only those that are shown are opened."""
        found = [moment for moment in await self.require_checkpoints(thread) if run in (None, moment.run)]
        shown = found[-limit:] if limit else found
        notebook = StateCompactor(self._runner.notes, thread)
        spent = {name: await self.list_spend(name) for name in dict.fromkeys(moment.run for moment in shown)}
        told = []
        for moment in shown:
            values = await self._load_values(thread, moment, notebook)
            usd = _usd_until(moment, spent[moment.run])
            told.append(moment.model_copy(update={"summary": summarize_state(values, moment.after), "usd": usd}))
        return told

    async def list_checkpoints(self, thread: str) -> list[CheckpointInfo]:
        """All of them, unopened: without a summary and what they had cost."""
        await self._runner.threads.get(thread)
        outlines = await self.checkpoints.outline(thread)
        short = _shorten_ids([outline.id for outline in outlines])
        by_id = {outline.id: outline for outline in outlines}
        return [
            CheckpointInfo(
                checkpoint=outline.id, short=short[outline.id], number=number, time=outline.time, run=outline.run,
                after=_previous_nodes(outline, by_id), **outline.standing.model_dump(exclude={"after"}),
            )
            for number, outline in enumerate(outlines, 1)
        ]  # fmt: skip

    async def require_checkpoints(self, thread: str) -> list[CheckpointInfo]:
        """As `moments`, where there have to be some."""
        if found := await self.list_checkpoints(thread):
            return found
        if await self._runner.threads.runs(thread):
            raise UsageError(f"nothing has been done on thread {thread} yet", help=f"Begin: openassay resume {thread}")
        ask = f'Ask on it: openassay ask "..." --thread {thread}'
        raise UsageError(f"nothing was asked on thread {thread} yet", help=ask)

    async def find_checkpoint(self, thread: str, name: str, moments: Sequence[CheckpointInfo]) -> CheckpointInfo:
        """By its number, its checkpoint's id or the beginning of that."""
        name = name.strip().lower()
        if name.isdecimal() and len(name) < LEAST:
            found = [moment for moment in moments if moment.number == int(name)]
        else:
            found = [moment for moment in moments if len(name) >= LEAST and moment.checkpoint.startswith(name)]
        if len(found) == 1:
            return found[0]
        help = f"See them with: openassay threads history {thread}"
        if found:
            raise NotFoundError(f"{len(found)} checkpoints of thread {thread} begin with {name}", help=help)
        if len(name) == FULL and (holder := await self.checkpoints.find_thread(name)):
            raise NotFoundError(f"checkpoint {name} is of thread {holder}, not of {thread}", help=help)
        short = f": the start of an id has at least {LEAST} characters" if 0 < len(name) < LEAST else ""
        raise NotFoundError(f"thread {thread} has no checkpoint {name[:FULL]!r}{short}", help=help)

    # -- one of them --------------------------------------------------------------------------------------

    async def state(self, thread: str, name: str) -> dict[str, Any]:
        return await self.values(thread, await self._get_checkpoint(thread, name))

    async def view(self, thread: str, name: str) -> StateView:
        moment = await self._get_checkpoint(thread, name)
        kept = await self._runner.threads.get(thread)
        return await build_view(
            await self.values(thread, moment), self._runner.documents, thread=thread, next=moment.next,
            checkpoint=moment.checkpoint, mode=kept.mode,
        )  # fmt: skip

    async def values(self, thread: str, moment: CheckpointInfo) -> dict[str, Any]:
        """The state there was, with everything it refers to."""
        return await self._load_values(thread, moment, StateCompactor(self._runner.notes, thread))

    async def report(self, thread: str, run: str | None = None) -> Report:
        """The latest that is finished, or that of one run of the thread."""
        held = await (self._latest_report(thread) if run is None else self._run_report(thread, run))
        if held:
            return Report.model_validate(held)
        if run is None:
            raise NotFoundError(
                f"thread {thread} has no finished report", help=f"Go on with: openassay resume {thread}"
            )
        raise NotFoundError(f"run {run} has no report", help="The runs of its thread that are done have one.")

    async def _latest_report(self, thread: str) -> Any:
        """Where a run is under way, or was stopped, of one before it."""
        if held := (await self._runner.state(thread)).values.get("report"):
            return held
        done = [run.id for run in await self._runner.threads.runs(thread) if run.status is RunStatus.DONE]
        return await self._run_report(thread, done[-1]) if done else None

    async def _run_report(self, thread: str, name: str) -> Any:
        run = await self._runner.threads.run(name)
        if run.thread != thread:
            raise no_run(name)  # as of one that never was
        if run.status is not RunStatus.DONE:  # what stands in its state may be of the one before
            return None
        state = (await self._runner.state(thread)).values
        if state.get("run") == name:
            return state.get("report")
        if not isinstance(self._runner.checkpointer, SqlCheckpointSaver):
            return None
        moments = [moment for moment in await self.list_checkpoints(thread) if moment.run == name]
        return (await self.values(thread, moments[-1])).get("report") if moments else None

    async def _get_checkpoint(self, thread: str, name: str) -> CheckpointInfo:
        return await self.find_checkpoint(thread, name, await self.require_checkpoints(thread))

    async def _load_values(self, thread: str, moment: CheckpointInfo, notebook: StateCompactor) -> dict[str, Any]:
        place = {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": moment.checkpoint}
        kept = await self.checkpoints.aget_tuple({"configurable": place})
        if kept is None:
            raise NotFoundError(
                f"thread {thread} has no checkpoint {moment.checkpoint}", help="It was pruned just now."
            )
        return await notebook.expand(effective_state(kept.checkpoint["channel_values"]))

    async def list_spend(self, run: str) -> list[tuple[datetime, float]]:
        """When a run had spent how much."""
        events = await self._runner.log.since(run, 0)
        return [(event.time, float(str(event.data["total_usd"]))) for event in events if event.kind == "spend"]

    # -- two of them --------------------------------------------------------------------------------------

    async def diff(self, a: str, b: str) -> ReportDiff:
        """Of two threads, or of THREAD@CHECKPOINT: the draft there was at that moment."""
        first, second = await self._load_edition(a), await self._load_edition(b)
        return await asyncio.to_thread(compare_editions, first, second)

    async def _load_edition(self, name: str) -> ReportEdition:
        thread, then, at = name.partition("@")
        if then and not at:
            raise UsageError(f"no checkpoint follows the @ of {name}", help=f"See: openassay threads history {thread}")
        moments = await self.require_checkpoints(thread)
        moment = await self.find_checkpoint(thread, at, moments) if at else moments[-1]
        values = await self.values(thread, moment)
        if values.get("report"):
            return from_report(name, ReportData.model_validate(values["report"]))
        return await from_state(
            name, values, self._runner.documents, _usd_until(moment, await self.list_spend(moment.run))
        )


def _usd_until(moment: CheckpointInfo, spent: Iterable[tuple[datetime, float]]) -> float:
    return max((usd for time, usd in spent if time <= moment.time), default=0.0)


def _previous_nodes(outline: CheckpointOutline, by_id: Mapping[str, CheckpointOutline]) -> tuple[str, ...]:
    """What was due at the moment before is what was done since; at the first of all only a question was put. Where the
    moment before was pruned, the last of a run is still known to be its end."""
    if outline.standing.begins or outline.parent is None:
        return outline.standing.after
    before = by_id.get(outline.parent)
    if before is None:
        return () if outline.standing.next else ("publish",)
    return () if before.standing.begins else before.standing.next


def _shorten_ids(ids: Sequence[str]) -> dict[str, str]:
    """As much of each id as tells it from all others: they are in order, so from its neighbours."""
    short = {}
    for before, id, following in zip(["", *ids][:-1], ids, [*ids, ""][1:], strict=True):
        shared = max(_common_prefix_length(id, before), _common_prefix_length(id, following))
        short[id] = id[: max(LEAST, shared + 1)]
    return short


def _common_prefix_length(one: str, other: str) -> int:
    return next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), 0)
