"""Documents are stored once, by what they say: knowing the hash of another's is no way to it."""

import io
import zipfile

import httpx2
import pytest

from tests.scenario.server.asking import QUESTION, asked, researched, standing
from tests.scenario.server.conftest import Http, Open, token_of
from tests.scenario.server.test_mcp import connected, refused

SECRET = "The merger is called Project Heron"
TEXT = f"The kiln of the Harrow works was heated to 1240 degrees in March. {SECRET}. " * 3


async def of_ada(client: httpx2.AsyncClient) -> str:
    """The hash of a document of hers that she has asked about."""
    files = {"file": ("kiln.txt", TEXT.encode(), "text/plain")}
    document = (await client.post("/api/documents", files=files)).json()["documents"][0]["id"]
    goal = "How hot was the kiln of the Harrow works heated in March?"
    thread = await researched(client, goal, documents=[document])
    report = (await client.get(f"/api/threads/{thread}/report")).json()
    hash = str(report["sources"][0]["document"])
    assert (await client.get(f"/api/threads/{thread}/documents/{hash}")).status_code == 200
    return hash


async def said_everywhere(client: httpx2.AsyncClient, hash: str) -> set[str]:
    """Threads on which somebody has said it, in every way there is."""
    as_goal = str((await asked(client, hash))["threadId"])
    await client.post("/api/memory/facts", json={"text": hash})
    as_context = await researched(client, context=hash)
    as_answer = str((await asked(client, modeOverride="plan", depth="standard"))["threadId"])
    for value in ({"document": hash}, hash):
        if (await standing(client, as_answer))["status"] == "waiting":
            [question, *_] = (await client.get(f"/api/threads/{as_answer}/reviews")).json()["reviews"]
            await client.post(f"/api/threads/{as_answer}/resume", json={"interruptId": question["id"], "value": value})
    threads = {as_goal, as_context, as_answer}
    plan = (await client.get(f"/api/threads/{as_context}/state")).json()["values"].get("plan") or {}
    for changes in (
        {"question": f"{QUESTION} {hash}"},
        {"deliverable": hash},
        {"without": [hash]},
        {"plan": {**plan, "document": hash}},
        {"edits": [{"op": "add_question", "text": hash, "document": hash}]},
        {"edits": [{"op": "add_question", "text": hash}]},
    ):
        made = await client.post(f"/api/threads/{as_context}/fork", json={"changes": changes})
        threads |= {made.json()["threadId"]} if made.status_code < 300 else set()
    await client.put(f"/api/threads/{as_context}/sources/{hash}/pin")
    for thread in threads:
        await standing(client, thread)
    assert len(threads) >= 5
    return threads


@pytest.mark.slow
@pytest.mark.requirement("W-12")
async def test_whoever_names_anothers_document_does_not_get_it(serve: Open, http: Http) -> None:
    server = await serve(server={"requests_per_minute": 100_000})
    hash = await of_ada(http(server, await token_of(server, "ada")))
    token = await token_of(server, "bob")
    bob = http(server, token)
    for thread in await said_everywhere(bob, hash):
        answer = await bob.get(f"/api/threads/{thread}/documents/{hash}")
        assert (answer.status_code, SECRET in answer.text) == (404, False), thread
        assert (await bob.put(f"/api/threads/{thread}/sources/{hash}/pin")).status_code == 404
        zipped = await bob.get(f"/api/threads/{thread}/export", params={"format": "zip"})
        with zipfile.ZipFile(io.BytesIO(zipped.content)) as bundle:
            assert not [name for name in bundle.namelist() if SECRET.encode() in bundle.read(name)], thread
    async with connected(server, token) as client:
        assert "nothing with this id" in await refused(client, "fetch", id=hash)
