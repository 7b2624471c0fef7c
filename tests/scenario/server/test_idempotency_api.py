"""Requests that are sent again with an Idempotency-Key are carried out once."""

import hashlib
from datetime import timedelta
from typing import Any

import pytest

from openassay.storage.users import REPLY_LEASE
from tests.scenario.server.asking import QUESTION, asked, standing
from tests.scenario.server.conftest import Http, Open, token_of

START: dict[str, Any] = {"goal": QUESTION, "depth": "quick"}


def keyed(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}


@pytest.mark.slow
async def test_the_same_request_is_carried_out_once_and_answered_alike_also_after_a_restart(
    serve: Open, http: Http
) -> None:
    server = await serve()
    client = http(server)
    first = await client.post("/api/threads/start", json=START, headers=keyed("k"))
    again = await client.post("/api/threads/start", json=START, headers=keyed("k"))
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["Location"] == first.headers["Location"]
    assert again.headers["Idempotency-Replayed"] == "true"

    later = await http(await serve()).post("/api/threads/start", json=START, headers=keyed("k"))
    assert later.content == first.content
    assert len((await client.get("/api/threads")).json()["threads"]) == 1

    other = await client.post("/api/threads/start", json={**START, "goal": "Another one?"}, headers=keyed("k"))
    assert (other.status_code, other.json()["type"]) == (422, "urn:openassay:problem:malformed")
    elsewhere = await client.post(f"{first.headers['Location']}/fork", json={}, headers=keyed("k"))
    assert elsewhere.status_code == 422, "another address is another request"
    for key in ("", "x" * 256, "a\tb"):
        assert (await client.post("/api/threads/start", json=START, headers=keyed(key))).status_code == 422, key


@pytest.mark.slow
async def test_who_comes_while_it_is_under_way_is_told_to_come_back(serve: Open, http: Http) -> None:
    server = await serve()
    ann, bob = http(server, await token_of(server, "ann")), http(server, await token_of(server, "bob"))
    replies = server.service.resources.replies
    started = (await ann.post("/api/threads/start", json=START, headers=keyed("k"))).json()
    with server.service.resources.rows.open_writer("") as writer:
        writer.connection.execute("DELETE FROM replies")
    sent = ann.build_request("POST", "/api/threads/start", json=START)
    request = hashlib.sha256(b"\n".join([b"POST", b"/api/threads/start", sent.content])).hexdigest()
    await replies.claim("ann", "k", request, "000000000000")

    early = await ann.post("/api/threads/start", json=START, headers=keyed("k"))
    assert (early.status_code, early.headers["Retry-After"]) == (409, "2")
    assert (await bob.post("/api/threads/start", json=START, headers=keyed("k"))).status_code == 200, (
        "keys are one's own"
    )

    await replies.claim("ann", "made", request, started["runId"])
    found = await ann.post("/api/threads/start", json=START, headers=keyed("made"))
    assert found.json()["runId"] == started["runId"], "what its maker has not told of yet is found at once"
    assert len((await ann.get("/api/threads")).json()["threads"]) == 1

    now = server.service.now()
    replies._now = lambda: now + REPLY_LEASE + timedelta(seconds=1)
    anew = await ann.post("/api/threads/start", json=START, headers=keyed("k"))
    assert anew.json()["runId"] == "000000000000", "nothing had come of it: it is done now"


@pytest.mark.slow
async def test_who_was_refused_may_correct_the_request_and_use_the_key_again(serve: Open, http: Http) -> None:
    client = http(await serve())
    refused = await client.post("/api/threads/start", json={**START, "source": "nowhere"}, headers=keyed("k"))
    assert refused.status_code == 422
    assert (await client.post("/api/threads/start", json=START, headers=keyed("k"))).status_code == 200


async def test_a_run_is_gone_on_with_once_also_if_the_server_dies_before_it_says_so(serve: Open, http: Http) -> None:
    server = await serve(server={"start_seconds": 0})
    client, replies = http(server), server.service.resources.replies
    address = f"/api/threads/{(await asked(client, depth='standard'))['threadId']}"
    assert (await client.post(f"{address}/cancel")).json()["status"] == "cancelled"
    sent = client.build_request("POST", f"{address}/resume", json={})
    request = hashlib.sha256(b"\n".join([b"POST", f"{address}/resume".encode(), sent.content])).hexdigest()
    await replies.claim(server.service.settings.user, "k", request, "0123456789ab")
    assert (await client.post(f"{address}/resume", json={})).status_code == 200  # which its maker could not tell

    now = server.service.now()
    replies._now = lambda: now + REPLY_LEASE + timedelta(seconds=1)
    again = await client.post(f"{address}/resume", json={}, headers=keyed("k"))

    assert (again.status_code, again.json()["ok"]) == (200, True)
    assert (await client.post(f"{address}/resume", json={}, headers=keyed("new"))).status_code == 409


@pytest.mark.slow
@pytest.mark.requirement("W-12")
async def test_an_answer_that_is_sent_again_is_taken_once(serve: Open, http: Http) -> None:
    client = http(await serve())
    started = await asked(client, modeOverride="plan")
    address = f"/api/threads/{started['threadId']}"
    body = {"interruptId": started["interrupt"]["id"], "value": "its stock"}
    first = await client.post(f"{address}/resume", json=body, headers=keyed("k"))
    again = await client.post(f"{address}/resume", json=body, headers=keyed("k"))
    assert (first.status_code, again.status_code, again.content) == (200, 200, first.content)
    assert (await client.post(f"{address}/resume", json=body)).status_code == 409
    await client.patch(f"{address}/mode", json={"mode": "auto"})
    assert (await standing(client, started["threadId"]))["status"] == "done"

    fork = {"changes": {"deliverable": "a short memo"}}
    one, two = [await client.post(f"{address}/fork", json=fork, headers=keyed("f")) for _ in range(2)]
    assert one.json()["threadId"] == two.json()["threadId"] != started["threadId"]
