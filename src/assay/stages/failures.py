"""What becomes of a task that failed: its sub-question is lost, the others go on.

A handler has no edge of its own: when every task fails, its destination is all that keeps the run going."""

from typing import Literal

from langgraph.errors import NodeError
from langgraph.runtime import Runtime
from langgraph.types import Command

from assay.deps import Deps
from assay.errors import AssayError
from assay.state import Search, State, Task


async def search_failed(task: Search, error: NodeError, runtime: Runtime[Deps]) -> Command[Literal["fuse"]]:
    return Command(update=await _lost("search", task, error, runtime.context), goto="fuse")


async def harvest_failed(task: Task, error: NodeError, runtime: Runtime[Deps]) -> Command[Literal["select"]]:
    return Command(update=await _lost("harvest", task, error, runtime.context), goto="select")


async def read_failed(task: Task, error: NodeError, runtime: Runtime[Deps]) -> Command[Literal["consolidate"]]:
    return Command(update=await _lost("read", task, error, runtime.context), goto="consolidate")


async def _lost(stage: str, task: Task, error: NodeError, deps: Deps) -> State:
    cause = error.error
    reason = cause.message if isinstance(cause, AssayError) else f"{type(cause).__name__}: {cause}"
    await deps.emit("error", stage, question=task["question"]["id"], message=reason)
    return {"failures": {f"{stage} {task['key']}": reason}}
