"""What most tests of the API begin with."""

import asyncio
from typing import Any

import httpx2

QUESTION = "What's happening with Tesla and its stock?"
STILL = ("waiting", "done", "failed", "cancelled")


async def asked(client: httpx2.AsyncClient, goal: str = QUESTION, **body: Any) -> dict[str, Any]:
    """What a start is answered."""
    answer = await client.post("/api/threads/start", json={"goal": goal, "depth": "quick", **body})
    assert answer.status_code in (200, 202), answer.text
    told: dict[str, Any] = answer.json()
    return told


async def standing(client: httpx2.AsyncClient, thread: str) -> dict[str, Any]:
    """The thread's last run, once it does not move by itself."""
    async with asyncio.timeout(60):
        while True:
            run: dict[str, Any] = (await client.get(f"/api/threads/{thread}/runs")).json()["runs"][-1]
            if run["status"] in STILL:
                return run
            await asyncio.sleep(0.05)


async def researched(client: httpx2.AsyncClient, goal: str = QUESTION, **body: Any) -> str:
    """A thread with a report."""
    thread = str((await asked(client, goal, **body))["threadId"])
    run = await standing(client, thread)
    assert run["status"] == "done", run
    return thread
