"""What happens on a thread, as it happens (server-sent events).

The id of an event is RUN.SEQ, its number in the log of its run: it is the same in every reading, before and after a
restart. A stream begins somewhere in the log, goes on through the later runs of the thread, and ends when the last of
them has.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.responses import StreamingResponse

from openassay.errors import NotFoundError, OpenAssayError
from openassay.models.event import ENDED, Event
from openassay.models.thread import Run
from openassay.server.auth import Caller, VisibleThread
from openassay.server.bodies import refusals
from openassay.server.problems import Refusal
from openassay.server.redact import redact_event
from openassay.server.service import Service, ServiceDep
from openassay.storage.database import EVENTS

_log = logging.getLogger("openassay")
router = APIRouter(tags=["stream"])
RETRY = 1000  # milliseconds after which a browser that was cut off comes back
_ID = re.compile(r"([0-9a-z]{1,32})\.([0-9]{1,9})")
_STATUS = ("run", "enter", "leave")  # which agent is at work, and how the run stands
_LINK_FIELDS: dict[str, tuple[str, ...]] = {  # what of which event somebody with a link is told
    **dict.fromkeys(_STATUS, ("status",)),
    "section": ("title",),
    "citation": ("id", "title", "url"),
    "done": ("status", "confidence", "sources", "checked", "total"),
}
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
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
    204: {"description": "Everything was told, and nothing more will come: do not reconnect."},
    **refusals(404),
}


class EventStream(StreamingResponse):
    """FastAPI's own takes one event at a time, and says that it lives every 15 s whatever is set."""

    media_type = "text/event-stream"


class EventIdError(Refusal):
    """Going on from an event that is not there would leave some out, or tell some twice."""

    status = 422

    def __init__(self) -> None:
        super().__init__("no event of this thread has that id", help="Leave the id out to read from the beginning.")


class StreamPosition(NamedTuple):
    """Where a reader is: every event up to this one was told."""

    run: Run
    seq: int = 0


async def reserve_stream(caller: Caller, service: ServiceDep) -> AsyncIterator[None]:
    with service.feeds.reserve(caller.name, service.settings.server.streams_per_user):
        yield


@router.get(
    "/api/stream/{threadId}",
    summary="Follow a thread",
    operation_id="stream",
    response_class=EventStream,
    responses=_RESPONSES,
    dependencies=[Depends(reserve_stream)],
)
async def stream_thread(
    thread: VisibleThread,
    caller: Caller,
    service: ServiceDep,
    last: Annotated[
        str | None, Header(alias="Last-Event-ID", description="Go on after this event.", examples=["9b1deb4d3b7d.3"])
    ] = None,
    after: Annotated[
        str | None,
        Query(description="As Last-Event-ID, which counts where both are given.", examples=["9b1deb4d3b7d.3"]),
    ] = None,
    run: Annotated[
        str | None, Query(description="Begin with this run; else with the latest.", examples=["9b1deb4d3b7d"])
    ] = None,
) -> Response:
    """Server-sent events, from the beginning of the thread's latest run or after the event named, then live.

    `status` says which agent is at work and how the run stands; `token`, `section` and `citation` bring the answer;
    `interrupt` is a question to a person; `spend`, `error` and `done` are what they say; other events have the name of
    their kind. Each is one JSON object. The stream stays open while a run is in line, at work, or waits for a person,
    and ends when it has ended; coming back after that is answered with 204. When the connection ends before, come back
    with the last id: no event is lost or told twice.

    Somebody with a link follows the latest run: `status`, `section`, `citation` and `done`, with what belongs to the
    report."""
    runs = await service.engine.threads.runs(thread.id)
    is_link = caller.share is not None
    place = await (_find_link_start if is_link else _find_start)(service, runs, last or after, run)
    if place is None or await _is_over(service, place, runs):
        return Response(status_code=204)
    return EventStream(_stream_events(service, place, is_link), headers=_HEADERS)


async def _find_link_start(
    service: Service, runs: list[Run], id: str | None, named: str | None
) -> StreamPosition | None:
    """Runs before the latest are not shown; whoever has heard of one goes on with this."""
    is_old = id is not None and any(id.startswith(f"{run.id}.") for run in runs[:-1])
    return await _find_start(service, runs[-1:], None if is_old else id, named)


async def _find_start(service: Service, runs: list[Run], id: str | None, named: str | None) -> StreamPosition | None:
    if id:
        return await _find_position(service, runs, id)
    if named is None:
        return StreamPosition(runs[-1]) if runs else None
    found = next((run for run in runs if run.id == named), None)
    if found is None:
        raise NotFoundError("no such run on this thread", help="Look at the thread for its runs.")
    return StreamPosition(found)


async def _find_position(service: Service, runs: list[Run], id: str) -> StreamPosition:
    parts = _ID.fullmatch(id)
    run = next((run for run in runs if parts and run.id == parts[1]), None)
    if parts is None or run is None:
        raise EventIdError
    place = StreamPosition(run, int(parts[2]))
    if place.seq and not await _has_event(service, run.id, place.seq):
        raise EventIdError
    return place


async def _is_over(service: Service, place: StreamPosition, runs: list[Run]) -> bool:
    """Whether all was told that ever will be."""
    if place.run.id != runs[-1].id or place.run.status not in ENDED:
        return False
    return not await _has_event(service, place.run.id, place.seq + 1)


async def _has_event(service: Service, run: str, seq: int) -> bool:
    return await asyncio.to_thread(service.resources.rows.find, EVENTS, run, seq) is not None


async def _stream_events(service: Service, place: StreamPosition | None, is_link: bool) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY}\n\n".encode()
    try:
        while place is not None and not service.feeds.closed:
            async with aclosing(_stream_run(service, place, is_link)) as pieces:
                async for piece in pieces:
                    yield piece
            place = await _next_run(service, place.run)
    except NotFoundError:  # it was deleted meanwhile
        return
    except OpenAssayError as error:
        _log.warning("a stream of thread %s was cut: %s", place and place.run.thread, error.message)
        yield _format_frame("error", {"message": "the events of this run cannot be read any more"})


async def _stream_run(service: Service, place: StreamPosition, is_link: bool) -> AsyncGenerator[bytes]:
    run, seq = place
    silence = service.settings.server.heartbeat
    frame, in_line = (_link_frame, b"") if is_link else (_event_frame, _queue_frame(service, run))
    if in_line:
        yield in_line
    async with aclosing(service.feeds.read_batches(run.id, seq, silence)) as batches:
        async for events in batches:
            waits = b"" if is_link else _queue_frame(service, run)
            yield b"".join(map(frame, events)) or waits or b": still here\n\n"


def _queue_frame(service: Service, run: Run) -> bytes:
    """No event of the log, so it has no id: how many runs are taken up before this one, itself included."""
    position = service.dispatcher.position(run.id)
    return _format_frame("queue", {"run": run.id, "position": position}) if position else b""


async def _next_run(service: Service, told: Run) -> StreamPosition | None:
    runs = await service.engine.threads.runs(told.thread)
    later = [run for run, before in zip(runs[1:], runs, strict=False) if before.id == told.id]
    return StreamPosition(later[0]) if later else None


def _event_frame(event: Event) -> bytes:
    name, data = "status" if event.kind in _STATUS else event.kind, redact_event(event).model_dump_json()
    return f"id: {event.run}.{event.seq}\nevent: {name}\ndata: {data}\n\n".encode()


def _link_frame(event: Event) -> bytes:
    """Without whatever is no part of the report: how it was asked and looked for, what it cost, drafts."""
    data = {name: event.data[name] for name in _LINK_FIELDS.get(event.kind, ()) if name in event.data}
    return _event_frame(event.model_copy(update={"data": data})) if data else b""


def _format_frame(name: str, data: dict[str, object]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
