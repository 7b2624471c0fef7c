"""A real server on a port of its own, in the test's own event loop, with real requests to it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from openassay.bootstrap import open_users
from openassay.models.user import USUAL, Scope, User
from openassay.server.app import RunningServer, open_server
from openassay.settings import load

Open = Callable[..., Awaitable[RunningServer]]
Http = Callable[..., httpx2.AsyncClient]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Open]:
    """`await serve(source="demo", server={...})`: a server on a data directory; the same one each time, unless another
    is named. `known` has a token before it starts. All are closed at the end."""
    async with AsyncExitStack() as stack:

        async def opened(folder: Path | None = None, *, known: str = "", **settings: Any) -> RunningServer:
            given = {"source": "demo", **settings}
            given["server"] = {"port": 0, **given.get("server", {})}
            loaded = load(data_dir=folder or tmp_path, **given)
            if known:
                async with open_users(loaded) as users:
                    await users.add(User(name=known, created=datetime.now(UTC)))
                    await users.issue(known)
            return await stack.enter_async_context(open_server(loaded))

        yield opened


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    """`http(server)` or `http(server, token)`: a client of a server."""
    async with AsyncExitStack() as stack:

        def client(server: RunningServer, token: str = "") -> httpx2.AsyncClient:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            one = httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=30, trust_env=False)
            stack.push_async_callback(one.aclose)
            return one

        yield client


async def token_of(server: RunningServer, name: str, *scopes: Scope, **more: Any) -> str:
    """The secret of a new token; the user is added if there is none. From then on tokens are asked for."""
    users = server.service.resources.users
    if name not in [user.name for user in await users.all()]:
        await users.add(User(name=name, created=server.service.now()))
    server.service.open_to_all = False
    return (await users.issue(name, scopes=scopes or USUAL, **more))[1]
