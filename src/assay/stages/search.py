"""One sub-question's search: every query at every source, in parallel. A failing source stops nobody else."""

import asyncio
from typing import Literal

from langgraph.errors import NodeError
from langgraph.runtime import Runtime
from langgraph.types import Command

from assay.deps import Deps
from assay.errors import AssayError, SourceError
from assay.model.source import Hit
from assay.ports import Source
from assay.search.fuse import fuse
from assay.state import State, Task

MOST_HITS = 80  # per sub-question and round: what is kept in the state


async def search(task: Task, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    jobs = [(query, source) for query in task["queries"] for source in deps.sources]
    results = await asyncio.gather(*(_ask(query, source, task, deps) for query, source in jobs))
    failed = [error for result in results if isinstance(error := result, SourceError)]
    lists = [result for result in results if not isinstance(result, SourceError)]
    if failed and not lists:
        raise SourceError(
            f"no source could be searched: {failed[0].message}", help=failed[0].help, retryable=failed[0].retryable
        )
    answered = {query for (query, _), result in zip(jobs, results, strict=True) if not isinstance(result, SourceError)}
    return {"searched": {task["key"]: _summary(task, lists, failed, answered)}}


async def _ask(query: str, source: Source, task: Task, deps: Deps) -> list[Hit] | SourceError:
    try:
        hits = await source.search(query, limit=deps.settings.results_per_query)
    except SourceError as error:
        await deps.emit(
            "error", "search", source=source.name, query=query, message=error.message, retryable=error.retryable
        )
        return error
    await deps.emit(
        "search", "search", question=task["question"]["id"], query=query, source=source.name, hits=len(hits)
    )
    return hits


def _summary(task: Task, lists: list[list[Hit]], failed: list[SourceError], answered: set[str]) -> dict[str, object]:
    return {
        "question": task["question"]["id"],
        "queries": [
            {"text": query, "status": "completed" if query in answered else "failed"} for query in task["queries"]
        ],
        "hits": [hit.model_dump(mode="json", exclude={"snippet"}) for hit in fuse(lists)[:MOST_HITS]],
        "completed": len(lists),
        "failed": len(failed),
    }


async def search_failed(task: Task, error: NodeError, runtime: Runtime[Deps]) -> Command[Literal["fuse"]]:
    """The sub-question is lost, the others go on. A handler has no edge of its own: when every task fails, its
    destination is all that keeps the run going."""
    return Command(update=await _lost("search", task, error, runtime.context), goto="fuse")


async def read_failed(task: Task, error: NodeError, runtime: Runtime[Deps]) -> Command[Literal["consolidate"]]:
    return Command(update=await _lost("read", task, error, runtime.context), goto="consolidate")


async def _lost(stage: str, task: Task, error: NodeError, deps: Deps) -> State:
    cause = error.error
    reason = cause.message if isinstance(cause, AssayError) else f"{type(cause).__name__}: {cause}"
    await deps.emit("error", stage, question=task["question"]["id"], message=reason)
    return {"failures": {f"{stage} {task['key']}": reason}}
