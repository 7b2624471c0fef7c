"""What becomes of a node that failed (requirement F-11), once the client, router or reasoner has given up retrying.

    category          retried by                                          then, in a fan-out        elsewhere
    rate_limit        the router: 10, 20, 40 s, or as Retry-After says    the embedded reasoner does the step
    timeout           the router and the client, twice                    the same
    api               the router and the client, by their own pauses      the same; a source or page is skipped
    context_overflow  the reasoner: fewer sources, then shorter ones      the embedded reasoner does the step
    parsing           the reasoner, once, with what was wrong             the same; a page is skipped
    validation        nobody                                              its sub-question is lost  the run fails
    internal          nobody, but for storage that was busy: the graph    its sub-question is lost  the run fails

A failed run continues from its last checkpoint when it is resumed. A handler has no edge of its own: when every task
fails, its destination is all that keeps the run going.
"""

from typing import Literal, cast

from langgraph.errors import NodeError
from langgraph.runtime import Runtime
from langgraph.types import Command, RetryPolicy

from openassay.context import ResearchContext
from openassay.errors import OpenAssayError, StorageError
from openassay.state import SearchTask, State, Task


def is_transient(error: Exception) -> bool:
    """Tell whether the graph should retry: a database that another process keeps busy, or whose server restarts, is
    back in a moment. Everything else is retried where it is asked, and would be multiplied here."""
    return isinstance(error, StorageError) and error.retryable


RETRY = RetryPolicy(
    initial_interval=0.5, backoff_factor=2.0, max_interval=4.0, max_attempts=4, jitter=False, retry_on=is_transient
)


async def handle_search_failure(
    task: SearchTask, error: NodeError, runtime: Runtime[ResearchContext]
) -> Command[Literal["fuse"]]:
    return Command(update=await _record_failure("search", task, error, runtime.context), goto="fuse")


async def handle_harvest_failure(
    task: Task, error: NodeError, runtime: Runtime[ResearchContext]
) -> Command[Literal["select"]]:
    return Command(update=await _record_failure("harvest", task, error, runtime.context), goto="select")


async def handle_read_failure(
    task: Task, error: NodeError, runtime: Runtime[ResearchContext]
) -> Command[Literal["consolidate"]]:
    return Command(update=await _record_failure("read", task, error, runtime.context), goto="consolidate")


async def _record_failure(node: str, task: Task, error: NodeError, context: ResearchContext) -> State:
    task = cast("Task", await context.notes.expand(task))
    cause = error.error
    reason = cause.message if isinstance(cause, OpenAssayError) else f"{type(cause).__name__}: {cause}"
    await context.emit("error", node, question=task["question"]["id"], message=reason)
    return {"failures": {f"{node} {task['key']}": reason}}
