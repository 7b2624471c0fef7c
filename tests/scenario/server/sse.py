"""Server-sent events, read as a browser reads them."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple

import httpx2


class Heard(NamedTuple):
    """`name` is empty for a comment or a pause, whose words are the data."""

    id: str
    name: str
    data: str

    def json(self) -> Any:
        import json

        return json.loads(self.data)


@asynccontextmanager
async def listening(
    client: httpx2.AsyncClient, thread: str, after: str = "", **params: str
) -> AsyncIterator[AsyncIterator[Heard]]:
    headers = {"Last-Event-ID": after} if after else {}
    async with client.stream("GET", f"/api/stream/{thread}", headers=headers, params=params) as answer:
        if answer.status_code != 204:
            assert answer.status_code == 200, (await answer.aread()).decode()
            assert answer.headers["Content-Type"].startswith("text/event-stream")
        async with aclosing(_heard(answer)) as events:
            yield events


async def _heard(answer: httpx2.Response) -> Any:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line.startswith(":"):
            yield Heard("", "", line)
        elif line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield Heard(fields.get("id", ""), fields.get("event", ""), fields.get("data", ""))
            fields = {}


async def transcript(client: httpx2.AsyncClient, thread: str, after: str = "", **params: str) -> list[Heard]:
    """Everything that has an id, until the stream ends."""
    async with listening(client, thread, after, **params) as events:
        return [heard async for heard in events if heard.id]


async def until(client: httpx2.AsyncClient, thread: str, count: int, after: str = "") -> list[Heard]:
    """So many events; then the connection is cut."""
    heard: list[Heard] = []
    async with listening(client, thread, after) as events:
        async for event in events:
            heard += [event] if event.id else []
            if len(heard) >= count:
                break
    return heard
