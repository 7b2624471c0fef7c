"""`assay mcp`: over stdin and stdout for one program, or over HTTP as a part of the server."""

import asyncio
from typing import Any

from assay.cli.ending import heeded
from assay.cli.screen import tell
from assay.settings import Settings, load


def over_stdio() -> None:
    from assay.mcp_server.stdio import serve

    asyncio.run(serve(load(), heeded))


def over_http(host: str | None, port: int | None) -> None:
    given: dict[str, Any] = {"host": host, "port": port}
    said = {name: value for name, value in given.items() if value is not None}
    asyncio.run(_served(load(server=said or None)))


async def _served(settings: Settings) -> None:
    from assay.server.mcp_door import PATH
    from assay.server.serving import open_server

    ended = asyncio.Event()
    async with open_server(settings) as served:
        tell(f"MCP clients may connect to {served.url}{PATH} (Ctrl-C ends it).")
        with heeded(ended.set, ended.set):
            await ended.wait()
        tell("Stopping after the steps under way ...")
