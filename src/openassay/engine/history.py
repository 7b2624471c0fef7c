"""The history of a thread: each of its checkpoints, what the run had reached by then, and what it had cost."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from openassay.engine.checkpoints import CheckpointOutline, effective_state
from openassay.engine.diff import ReportDiff, ReportEdition, compare_editions, from_report, from_state
from openassay.engine.runner import Runner
from openassay.engine.state_view import StateView, build_view
from openassay.errors import NotFoundError, UsageError, no_run
from openassay.export import Report
from openassay.models.event import RunStatus
from openassay.models.report import ReportData
from openassay.models.thread import CheckpointInfo
from openassay.state import StateCompactor
from openassay.text.words import pluralize

PAGE = 30  # checkpoints shown unless more are asked for
MIN_ID_CHARS = 8  # of the beginning of a checkpoint's id
ID_CHARS = 36  # of a whole one
MAX_SUMMARY_CHARS = 100  # of what others have written


def summarize_state(values: Mapping[str, Any], after: Sequence[str]) -> str:
    """Summarize in one line what a run had reached: by the node that was just finished, or by what there is."""
    for node in reversed(after or ("",)):
        try:
            if summary := _summarize_node(node, values):
                return summary
        except (AttributeError, LookupError, TypeError, ValueError):
            continue  # a state of another shape: written by another version, or by hand
    return ""


def _summarize_node(node: str, values: Mapping[str, Any]) -> str:
    match node:
        case "understand" | "clarify":
            if values.get("clarification_question"):
                return f"asks back: {_clip(values['clarification_question'])}"
            return f"understood: {_clip(values['understanding']['question'])}"
        case "gate" | "question":
            due = len(values["planner_questions"]) - len(values["planner_answers"])
            return f"{pluralize(due, 'question')} before planning" if due > 0 else _clip(values["gate"]["reason"])
        case "plan" | "approve_plan":
            plan = values["plan"]
            edited = ", changed by you" if plan.get("edited") else ""
            questions = pluralize(len(plan["questions"]), "sub-question")
            return f"{questions} planned, {pluralize(len(plan['queries']), 'query', 'queries')}{edited}"
        case "dispatch":
            count = pluralize(len(values["tasks"]), "sub-question")
            return f"round {values['round']}: {count} to search" if values["tasks"] else "nothing left to search for"
        case "search":
            searches = values["searched"].values()
            hits, queries = (sum(len(search[key]) for search in searches) for key in ("hits", "queries"))
            return f"{pluralize(hits, 'hit')} for {pluralize(queries, 'query', 'queries')}"
        case "fuse" | "approve_harvest" | "select":
            passages = [passage for chosen in values["selected"].values() for passage in chosen]
            documents = len({passage["document"] for passage in passages})
            pages = sum(len(wanted) for wanted in (values.get("pages") or {}).values())
            selected = f"{pluralize(len(passages), 'passage')} of {pluralize(documents, 'document')} selected"
            return f"{selected}, {pluralize(pages, 'page')} to fetch" if pages else selected
        case "harvest":
            pages = values["harvested"].values()
            return f"{sum(bool(page['document']) for page in pages)} of {pluralize(len(pages), 'page')} fetched"
        case "read":
            findings = [finding for found in values["read"].values() for finding in found]
            documents = len({finding["span"]["document"] for finding in findings})
            return f"{pluralize(len(findings), 'quote')} from {pluralize(documents, 'document')}"
        case "consolidate":
            counts = pluralize(len(values["findings"]), "finding"), pluralize(len(values["sources"]), "source")
            return f"{counts[0]} of {counts[1]}, confidence {values['confidence'] / 10:.2f}"
        case "analyse":
            gaps = len(values["analysis"]["refinements"])
            return f"round {values['round']} analysed, {pluralize(gaps, 'gap') if gaps else 'no gaps'}"
        case "verify" | "approve_claims" | "withdraw":
            supported = sum(claim["verdict"] == "supported" for claim in values["claims"])
            return f"{supported} of {pluralize(len(values['claims']), 'statement')} supported"
        case "write" | "review" | "approve_review" | "approve_output":
            sections = values["draft"]["sections"]
            words = sum(len(one["text"].split()) for section in sections for one in section["sentences"])
            draft = f"draft {values['iteration']} of {pluralize(words, 'word')}"
            if node == "write":
                return draft
            critique = values["critique"]
            return f"{draft}, score {critique['score']:.1f}, {critique['recommendation']}"
        case "publish" | "fallback":
            report = values["report"]
            facts = sum(one["kind"] != "frame" for section in report["sections"] for one in section["sentences"])
            sources = pluralize(len(report["sources"]), "source")
            return f"report {report['status']}: {pluralize(facts, 'statement')}, {sources}"
    if values.get("withdrawn"):
        return f"{pluralize(len(values['withdrawn']), 'source')} to remove"
    return f"asked: {_clip(values['original_query'])}"


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_SUMMARY_CHARS else f"{line[: MAX_SUMMARY_CHARS - 1]}…"


class ThreadHistory:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.checkpoints = runner.checkpointer

    async def list_page(self, thread: str, *, limit: int | None = PAGE, run: str | None = None) -> list[CheckpointInfo]:
        """List checkpoints, the newest last, with their summaries. Only those that are listed are opened."""
        found = [one for one in await self.require_checkpoints(thread) if run in (None, one.run)]
        shown = found[-limit:] if limit else found
        compactor = StateCompactor(self._runner.notes, thread)
        spent = {name: await self.list_spend(name) for name in dict.fromkeys(one.run for one in shown)}
        page = []
        for one in shown:
            summary = summarize_state(await self.values(thread, one, compactor), one.after)
            page.append(one.model_copy(update={"summary": summary, "usd": _usd_until(one, spent[one.run])}))
        return page

    async def list_checkpoints(self, thread: str) -> list[CheckpointInfo]:
        """List all checkpoints, unopened: without a summary and what they had cost."""
        await self._runner.threads.get(thread)
        outlines = await self.checkpoints.outline(thread)
        ids = [outline.id for outline in outlines]
        by_id = {outline.id: outline for outline in outlines}
        checkpoints = []
        for number, (before, outline, following) in enumerate(
            zip(["", *ids][:-1], outlines, [*ids, ""][1:], strict=True), 1
        ):
            # As much of the id as tells it from all others: they are in order, so from its neighbours.
            shared = max(_common_prefix_length(outline.id, before), _common_prefix_length(outline.id, following))
            checkpoints.append(
                CheckpointInfo(
                    checkpoint=outline.id,
                    short=outline.id[: max(MIN_ID_CHARS, shared + 1)],
                    number=number,
                    time=outline.time,
                    run=outline.run,
                    after=_previous_nodes(outline, by_id),
                    **outline.standing.model_dump(exclude={"after"}),
                )
            )
        return checkpoints

    async def require_checkpoints(self, thread: str) -> list[CheckpointInfo]:
        """List all checkpoints; raises UsageError where there are none."""
        if found := await self.list_checkpoints(thread):
            return found
        if await self._runner.threads.runs(thread):
            raise UsageError(f"nothing has been done on thread {thread} yet", help=f"Begin: openassay resume {thread}")
        ask = f'Ask on it: openassay ask "..." --thread {thread}'
        raise UsageError(f"nothing was asked on thread {thread} yet", help=ask)

    async def find_checkpoint(self, thread: str, name: str, checkpoints: Sequence[CheckpointInfo]) -> CheckpointInfo:
        """Find a checkpoint by its number, its id or the beginning of that."""
        name = name.strip().lower()
        if name.isdecimal() and len(name) < MIN_ID_CHARS:
            found = [one for one in checkpoints if one.number == int(name)]
        else:
            found = [one for one in checkpoints if len(name) >= MIN_ID_CHARS and one.checkpoint.startswith(name)]
        if len(found) == 1:
            return found[0]
        help = f"See them with: openassay threads history {thread}"
        if found:
            raise NotFoundError(f"{len(found)} checkpoints of thread {thread} begin with {name}", help=help)
        if len(name) == ID_CHARS and (holder := await self.checkpoints.find_thread(name)):
            raise NotFoundError(f"checkpoint {name} is of thread {holder}, not of {thread}", help=help)
        short = f": the start of an id has at least {MIN_ID_CHARS} characters" if 0 < len(name) < MIN_ID_CHARS else ""
        raise NotFoundError(f"thread {thread} has no checkpoint {name[:ID_CHARS]!r}{short}", help=help)

    async def state(self, thread: str, name: str) -> dict[str, Any]:
        return await self.values(thread, await self._get_checkpoint(thread, name))

    async def view(self, thread: str, name: str) -> StateView:
        checkpoint = await self._get_checkpoint(thread, name)
        return await build_view(
            await self.values(thread, checkpoint),
            self._runner.documents,
            thread=thread,
            next=checkpoint.next,
            checkpoint=checkpoint.checkpoint,
            mode=(await self._runner.threads.get(thread)).mode,
        )

    async def values(
        self, thread: str, checkpoint: CheckpointInfo, compactor: StateCompactor | None = None
    ) -> dict[str, Any]:
        """Return the state at a checkpoint, with everything it refers to."""
        place = {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint.checkpoint}
        saved = await self.checkpoints.aget_tuple({"configurable": place})
        if saved is None:
            raise NotFoundError(
                f"thread {thread} has no checkpoint {checkpoint.checkpoint}", help="It was pruned just now."
            )
        compactor = compactor or StateCompactor(self._runner.notes, thread)
        return await compactor.expand(effective_state(saved.checkpoint["channel_values"]))

    async def report(self, thread: str, run: str | None = None) -> Report:
        """Return the latest report that is finished, or that of one run of the thread."""
        if run is not None:
            if data := await self._run_report(thread, run):
                return Report.model_validate(data)
            raise NotFoundError(f"run {run} has no report", help="The runs of its thread that are done have one.")
        data = (await self._runner.state(thread)).values.get("report")
        if not data:  # a run is under way, or was stopped: the report of one before it
            done = [run.id for run in await self._runner.threads.runs(thread) if run.status is RunStatus.DONE]
            data = await self._run_report(thread, done[-1]) if done else None
        if data:
            return Report.model_validate(data)
        raise NotFoundError(f"thread {thread} has no finished report", help=f"Resume it: openassay resume {thread}")

    async def _run_report(self, thread: str, name: str) -> Any:
        run = await self._runner.threads.run(name)
        if run.thread != thread:
            raise no_run(name)  # as of one that never was
        if run.status is not RunStatus.DONE:  # its state may hold the report of the one before
            return None
        state = (await self._runner.state(thread)).values
        if state.get("run") == name:
            return state.get("report")
        checkpoints = [one for one in await self.list_checkpoints(thread) if one.run == name]
        return (await self.values(thread, checkpoints[-1])).get("report") if checkpoints else None

    async def _get_checkpoint(self, thread: str, name: str) -> CheckpointInfo:
        return await self.find_checkpoint(thread, name, await self.require_checkpoints(thread))

    async def list_spend(self, run: str) -> list[tuple[datetime, float]]:
        """Return when a run had spent how much."""
        events = await self._runner.log.since(run, 0)
        return [(event.time, float(str(event.data["total_usd"]))) for event in events if event.kind == "spend"]

    async def diff(self, a: str, b: str) -> ReportDiff:
        """Compare two threads, or THREAD@CHECKPOINT: the draft there was at that checkpoint."""
        first, second = await self._load_edition(a), await self._load_edition(b)
        return await asyncio.to_thread(compare_editions, first, second)

    async def _load_edition(self, name: str) -> ReportEdition:
        thread, then, at = name.partition("@")
        if then and not at:
            raise UsageError(f"no checkpoint follows the @ of {name}", help=f"See: openassay threads history {thread}")
        checkpoints = await self.require_checkpoints(thread)
        checkpoint = await self.find_checkpoint(thread, at, checkpoints) if at else checkpoints[-1]
        values = await self.values(thread, checkpoint)
        if values.get("report"):
            return from_report(name, ReportData.model_validate(values["report"]))
        return await from_state(
            name, values, self._runner.documents, _usd_until(checkpoint, await self.list_spend(checkpoint.run))
        )


def _usd_until(checkpoint: CheckpointInfo, spent: Iterable[tuple[datetime, float]]) -> float:
    return max((usd for time, usd in spent if time <= checkpoint.time), default=0.0)


def _previous_nodes(outline: CheckpointOutline, by_id: Mapping[str, CheckpointOutline]) -> tuple[str, ...]:
    """Return the nodes that ran since the checkpoint before: those that were due there. At the first of all a question
    was only asked; where the one before was pruned, the last of a run is still known to be its end."""
    if outline.standing.begins or outline.parent is None:
        return outline.standing.after
    before = by_id.get(outline.parent)
    if before is None:
        return () if outline.standing.next else ("publish",)
    return () if before.standing.begins else before.standing.next


def _common_prefix_length(one: str, other: str) -> int:
    return next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), 0)
