"""Time travel: the moments of a thread, branches that begin at one, and what two reports tell differently."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import AfterValidator, ConfigDict, Field

from assay.errors import NotFoundError, UsageError
from assay.model.branch import LONGEST_DELIVERABLE, Changes, Tree
from assay.model.edit import parse
from assay.model.event import RunStatus
from assay.model.plan import Style
from assay.model.question import Depth
from assay.model.thread import is_id
from assay.server import asking
from assay.server.access import ChangedThread, OwnThread, Principal, Reader, Writer
from assay.server.bodies import Body, Id, Text, Truth, refusals, shallow
from assay.server.idempotency import OnceOnly
from assay.server.paths import hidden
from assay.server.routes.state import no_checkpoint
from assay.server.runs import Started, started
from assay.server.service import Service, Serving
from assay.server.wishes import Documents, Name, Usd, Words, given
from assay.storage.threads import no_thread
from assay.view.diff import ReportDiff

router = APIRouter(tags=["history"])
PAGE, MOST = 30, 500
MOST_WITHOUT = 100


class MomentBody(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "checkpoint": "1f0a5b1e-0000-6000-8000-000000000000", "short": "1f0a5b1e", "number": 3,
                    "time": "2026-01-01T12:00:08Z", "run": "a1b2c3d4e5f6", "after": ["plan"], "next": ["dispatch"],
                    "begins": False, "planned": True, "round": 0, "iteration": 0, "summary": "3 sub-questions",
                    "usd": 0.04,
                }
            ]
        }
    )  # fmt: skip

    checkpoint: str
    short: str
    number: int
    time: datetime
    run: str
    after: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    begins: bool = False
    planned: bool = False
    round: int = 0
    iteration: int = 0
    summary: str = ""
    usd: float = Field(default=0.0, description="Spent by its run until then.")


class History(Body):
    moments: tuple[MomentBody, ...]


@router.get(
    "/api/threads/{threadId}/history", summary="The moments of a thread", operation_id="get_history",
    responses=refusals(404),
)  # fmt: skip
async def get_history(
    thread: OwnThread, service: Serving,
    limit: Annotated[int, Query(ge=1, le=MOST)] = PAGE,
    run: Annotated[Id | None, Query(description="Of this run alone.")] = None,
) -> History:  # fmt: skip
    """The newest comes last; `limit` counts from there."""
    try:
        found = await service.engine.history(thread.id, limit=limit, run=run)
    except UsageError as error:
        if isinstance(error, NotFoundError):
            raise
        found = []  # nothing was asked, or done, on it yet
    return History(moments=tuple(MomentBody(**dict(moment)) for moment in found))


class BranchBody(Body):
    """A thread with the branches that began on it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "thread": "4f1c2a9b7d3e", "title": "How did Tesla's deliveries change over 2023?", "status": "done",
                    "usd": 0.31, "parent": None, "ofDeleted": False, "changed": "", "moment": "",
                    "checkpoint": None, "branches": [],
                }
            ]
        }
    )  # fmt: skip

    thread: str
    title: str
    status: RunStatus | None = None
    usd: float = 0.0
    parent: str | None = None
    of_deleted: bool = False
    changed: str = ""
    moment: str = Field(default="", description="Of the parent, at which it began, in words.")
    checkpoint: str | None = Field(default=None, description="Of that moment: one of the parent's history.")
    branches: tuple["BranchBody", ...] = ()


@router.get(
    "/api/threads/{threadId}/branches", summary="The tree a thread is part of", operation_id="get_branches",
    responses=refusals(404),
)  # fmt: skip
async def get_branches(thread: OwnThread, service: Serving) -> BranchBody:
    """From its root on. A branch belongs to whom its parent belongs to."""
    return _grown(await service.engine.tree(thread.id))


def _grown(tree: Tree) -> BranchBody:
    own = tree.model_dump(exclude={"branches"})
    return BranchBody(**hidden(own), branches=tuple(map(_grown, tree.branches)))


# Branching -----------------------------------------------------------------------------------------------


Data = Annotated[dict[str, Any], AfterValidator(shallow)]


class ChangesBody(Body):
    """What is different on the branch; what is left out stays as it was."""

    question: Text | None = None
    plan: Data | None = Field(default=None, description="A whole one.")
    edits: tuple[Data, ...] = Field(default=(), description="Of the plan.")
    deliverable: Annotated[Text, Field(min_length=1, max_length=LONGEST_DELIVERABLE)] | None = None
    style: Style | None = None
    words: Words | None = None
    source: Name | None = None
    documents: Documents | None = None
    web: Truth | None = None
    without: Annotated[tuple[Name, ...], Field(max_length=MOST_WITHOUT)] = Field(
        default=(), description="Sources: an id of the report, an address, or a host."
    )
    depth: Depth | None = None
    model: Name | None = None
    usd: Usd | None = None

    async def changes(self, service: Service, caller: Principal) -> Changes:
        """AnswerError for edits that are none, NotFoundError for another's documents."""
        if self.edits:
            parse(list(self.edits))
        own = {name: value for name, value in self if name != "documents"}
        docs = None if self.documents is None else await given(service, caller, self.documents)
        return Changes(**own, docs=docs)


class Forking(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"checkpoint": "3", "changes": {"deliverable": "a memo of one page"}},
                {"changes": {"without": ["S2"]}},
            ]
        }
    )

    checkpoint: Annotated[Text, Field(min_length=1, max_length=36, pattern="^[0-9a-fA-F-]+$")] | None = Field(
        default=None, description="A moment: its checkpoint, the beginning of that, or its number; none: the last."
    )
    changes: ChangesBody = ChangesBody()
    interactive: Truth | None = Field(default=None, description="Whether somebody can answer; none: as it was.")


@router.post(
    "/api/threads/{threadId}/fork", summary="Go on from a moment with something changed", operation_id="fork_thread",
    response_model=Started,
    responses={**refusals(402, 404, 409), 202: {"model": Started, "description": "It waits for an answer."}},
)  # fmt: skip
async def fork_thread(
    body: Forking, thread: ChangedThread, caller: Writer, service: Serving, once: OnceOnly
) -> Response:
    """A new thread; this one stays as it is. The branch begins at the last moment at which the changes can take
    effect."""

    async def work() -> Response:
        run = await once.made()
        if run is None:
            await _check(service, thread.id, body.checkpoint)
            changes = await body.changes.changes(service, caller)
            run = await asking.fork(
                service, caller, thread.id, body.checkpoint, changes, interactive=body.interactive, id=once.name
            )
        return await started(service, run)

    return await once(work)


async def _check(service: Service, thread: str, checkpoint: str | None) -> None:
    """Another thread's is as unknown as one that never was."""
    if checkpoint is not None:
        try:
            await service.engine.state_at(thread, checkpoint)
        except NotFoundError as error:
            raise no_checkpoint() from error


# Comparing -----------------------------------------------------------------------------------------------

Side = Annotated[
    str,
    Query(
        pattern="^[0-9a-z]{1,32}(@[0-9a-fA-F-]{1,36})?$",
        description="A thread, or THREAD@CHECKPOINT for the draft there was at that moment.",
        examples=["4f1c2a9b7d3e", "4f1c2a9b7d3e@3"],
    ),
]


@router.get(
    "/api/diff", summary="What two reports tell differently", operation_id="get_diff", response_model=ReportDiff,
    responses=refusals(404, 409),
)  # fmt: skip
async def get_diff(a: Side, b: Side, caller: Reader, service: Serving) -> Any:
    for side in (a, b):
        thread, _, checkpoint = side.partition("@")
        if not is_id(thread):
            raise no_thread(thread)
        await service.engine.threads.get(thread, owner=caller.user)
        await _check(service, thread, checkpoint or None)
    return hidden((await service.engine.diff(a, b)).plain())
