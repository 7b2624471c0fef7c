"""A server of OpenAssay in a thread of its own, which a test can stop and start again on the same port."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from openassay.models.user import USUAL, User
from openassay.server.app import RunningServer, open_server
from openassay.settings import Settings, load

LIBRARY = Path("examples/library")
PATIENCE = 600.0  # seconds, for a run on a busy machine


class Site:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._thread: threading.Thread | None = None
        self.url = ""
        self.served: RunningServer

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, **settings: Any) -> "Iterator[Site]":
        given = {"source": "demo", **settings}
        given["server"] = {"port": 0, "heartbeat": 1, "requests_per_minute": 100_000, **given.get("server", {})}
        site = cls(load(data_dir=folder, **given))
        site.start()
        try:
            yield site
        finally:
            site.stop()

    def start(self) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), name="site", daemon=True)
        self._thread.start()
        assert ready.wait(PATIENCE), "the server did not start"

    def stop(self) -> None:
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join(PATIENCE)
            self._thread = None

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        async with open_server(self._settings) as self.served:
            self.url = self.served.url
            port = int(self.url.rsplit(":", 1)[1])
            server = self._settings.server.model_copy(update={"port": port})  # the same one after a restart
            self._settings = self._settings.model_copy(update={"server": server})
            ready.set()
            await self._ended.wait()

    # -- what a person would have done before ---------------------------------------------------------

    def call(self, method: str, path: str, body: Any = None, *, token: str = "", **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = httpx2.request(
            method, self.url + path, json=body, headers=headers, timeout=PATIENCE, trust_env=False, **more
        )
        assert answer.status_code < 400, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def text(self, path: str) -> str:
        return httpx2.get(self.url + path, timeout=PATIENCE, trust_env=False).text

    def token(self, name: str) -> str:
        """The secret of a new person's token; from then on the server asks everybody for one."""

        async def issued() -> str:
            users = self.served.service.resources.users
            await users.add(User(name=name, created=self.served.service.now()))
            return (await users.issue(name, scopes=USUAL))[1]

        return asyncio.run_coroutine_threadsafe(issued(), self._loop).result(PATIENCE)

    def upload(self, *files: Path) -> list[str]:
        sent = [("file", (file.name, file.read_bytes())) for file in files]
        told = httpx2.post(f"{self.url}/api/documents", files=sent, timeout=PATIENCE, trust_env=False).json()
        return [one["id"] for one in told["documents"]]

    def ask(self, goal: str, **wishes: Any) -> str:
        return str(self.call("POST", "/api/threads/start", {"goal": goal, **wishes})["threadId"])

    def research(self, goal: str, **wishes: Any) -> str:
        """A thread whose report is ready."""
        thread = self.ask(goal, interactive=False, **wishes)
        self.settled(thread)
        return thread

    def settled(self, thread: str, *statuses: str) -> str:
        """How it stands, once it is at work no more."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            status = str(self.call("GET", f"/api/threads/{thread}")["status"])
            if status in (statuses or ("done", "failed", "cancelled", "waiting")):
                return status
            time.sleep(0.05)
        raise AssertionError(f"thread {thread} did not come to an end")
