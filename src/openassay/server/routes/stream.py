"""The events of a thread as they happen (server-sent events).

The id of an event is RUN.SEQ, its number in the log of its run, and stays the same after a restart. A stream begins
anywhere in the log, continues through the later runs of the thread, and ends when the last of them has.
"""

import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.responses import StreamingResponse

from openassay.errors import NotFoundError, OpenAssayError
from openassay.models.event import ENDED, Event
from openassay.models.thread import Run
from openassay.server.auth import Caller, VisibleThread
from openassay.server.bodies import redact_event, refusals
from openassay.server.responses import Refusal, respond_with_events
from openassay.server.service import Service, ServiceDep

_log = logging.getLogger("openassay")
router = APIRouter(tags=["stream"])
RETRY_MS = 1000  # after which a browser reconnects
_ID = re.compile(r"([0-9a-z]{1,32})\.([0-9]{1,9})")
_STATUS = ("run", "enter", "leave")  # kinds of events that are sent as `status`
_LINK_FIELDS: dict[str, tuple[str, ...]] = {  # the data of events that a link shows
    **dict.fromkeys(_STATUS, ("status",)),
    "section": ("title",),
    "citation": ("id", "title", "url"),
    "done": ("status", "confidence", "sources", "checked", "total"),
}
_EXAMPLE = """\
retry: 1000

id: 9b1deb4d3b7d.3
event: status
data: {"seq":3,"run":"9b1deb4d3b7d","time":"2026-01-05T09:30:00Z","kind":"enter","stage":"understand","parent":1,\
"data":{"status":"planning"}}

: still here

"""
_SCHEMA = {  # of one event
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "RUN.SEQ"},
        "event": {"type": "string"},
        "data": {"type": "string", "contentMediaType": "application/json"},
        "retry": {"type": "integer"},
    },
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The events.", "content": {"text/event-stream": {"schema": _SCHEMA, "example": _EXAMPLE}}},
    204: {"description": "All events were sent, and no more will come: do not reconnect."},
    **refusals(404),
}


async def reserve_stream(caller: Caller, service: ServiceDep) -> AsyncIterator[None]:
    with service.feeds.reserve(caller.name, service.settings.server.streams_per_user):
        yield


@router.get(
    "/api/stream/{threadId}",
    summary="Follow a thread",
    operation_id="stream",
    response_class=StreamingResponse,
    responses=_RESPONSES,
    dependencies=[Depends(reserve_stream)],
)
async def stream_thread(
    thread: VisibleThread,
    caller: Caller,
    service: ServiceDep,
    last: Annotated[
        str | None, Header(alias="Last-Event-ID", description="Continue after this event.", examples=["9b1deb4d3b7d.3"])
    ] = None,
    after: Annotated[
        str | None, Query(description="As Last-Event-ID, which is used if both are given.", examples=["9b1deb4d3b7d.3"])
    ] = None,
    run: Annotated[
        str | None, Query(description="Begin with this run instead of the latest.", examples=["9b1deb4d3b7d"])
    ] = None,
) -> Response:
    """Server-sent events, from the beginning of the thread's latest run or after the given event, then live.

    `status` says which agent is at work and the status of the run; `token`, `section` and `citation` bring the answer;
    `interrupt` is a question to a person; `spend`, `error` and `done` are what they say; other events have the name of
    their kind. Each is one JSON object. The stream stays open while a run is queued, active or waiting for a person,
    and ends when it has ended; reconnecting after that is answered with 204. If the connection is lost before,
    reconnect with the last id: no event is lost or sent twice.

    A link follows the latest run: `status`, `section`, `citation` and `done`, with what belongs to the report."""
    runs = await service.engine.threads.runs(thread.id)
    is_link, id, visible = caller.share is not None, last or after, runs
    if is_link:  # it shows the latest run alone; a reader who knows an earlier one continues with this
        visible = runs[-1:]
        is_old = id is not None and any(id.startswith(f"{one.id}.") for one in runs[:-1])
        id = None if is_old else id
    position = await _find_start(service, visible, id, run)
    if position is None:
        return Response(status_code=204)
    first, seq = position
    has_ended = first.id == runs[-1].id and first.status in ENDED
    if has_ended and not await service.engine.has_event(first.id, seq + 1):
        return Response(status_code=204)
    return respond_with_events(_stream_events(service, first, seq, is_link))


async def _find_start(service: Service, runs: list[Run], id: str | None, name: str | None) -> tuple[Run, int] | None:
    """Return the run to begin with, and the last event of it that the reader has."""
    if id:
        parts = _ID.fullmatch(id)
        run = next((run for run in runs if parts and run.id == parts[1]), None)
        seq = int(parts[2]) if parts else 0
        if run is None or (seq and not await service.engine.has_event(run.id, seq)):
            # To continue from an event that does not exist would skip some, or send some twice.
            help = "Leave the id out to read from the beginning."
            raise Refusal("no event of this thread has that id", help=help, status=422, kind="event-id")
        return run, seq
    if name is None:
        return (runs[-1], 0) if runs else None
    found = next((run for run in runs if run.id == name), None)
    if found is None:
        raise NotFoundError("no such run on this thread", help="Look at the thread for its runs.")
    return found, 0


async def _stream_events(service: Service, run: Run, seq: int, is_link: bool) -> AsyncIterator[bytes]:
    """Yield the events of a run after that one, and of the later runs of its thread."""
    to_frame = _link_frame if is_link else _event_frame
    yield f"retry: {RETRY_MS}\n\n".encode()
    try:
        while not service.feeds.closed:
            if queued := b"" if is_link else _queue_frame(service, run):
                yield queued
            async with aclosing(service.feeds.read_batches(run.id, seq, service.settings.server.heartbeat)) as batches:
                async for events in batches:
                    queued = b"" if is_link else _queue_frame(service, run)
                    yield b"".join(map(to_frame, events)) or queued or b": still here\n\n"
            runs = await service.engine.threads.runs(run.thread)
            later = [one for one, before in zip(runs[1:], runs, strict=False) if before.id == run.id]
            if not later:
                return
            run, seq = later[0], 0
    except NotFoundError:  # it was deleted meanwhile
        return
    except OpenAssayError as error:
        _log.warning("a stream of thread %s was cut: %s", run.thread, error.message)
        yield _format_frame("error", {"message": "the events of this run cannot be read any more"})


def _queue_frame(service: Service, run: Run) -> bytes:
    """Return the run's position in the queue. It is no event of the log, so it has no id."""
    position = service.dispatcher.position(run.id)
    return _format_frame("queue", {"run": run.id, "position": position}) if position else b""


def _event_frame(event: Event) -> bytes:
    name, data = "status" if event.kind in _STATUS else event.kind, redact_event(event).model_dump_json()
    return f"id: {event.run}.{event.seq}\nevent: {name}\ndata: {data}\n\n".encode()


def _link_frame(event: Event) -> bytes:
    """Return an event without what is no part of the report: how it was researched, what it cost, drafts."""
    data = {name: event.data[name] for name in _LINK_FIELDS.get(event.kind, ()) if name in event.data}
    return _event_frame(event.model_copy(update={"data": data})) if data else b""


def _format_frame(name: str, data: dict[str, object]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
