"""Seeing the plan before it is searched for, because one has asked to."""

import pytest

from tests.scenario.server.asking import standing
from tests.scenario.server.conftest import Http, Open

QUESTION = "What's happening with Tesla and its stock?"


@pytest.mark.slow
@pytest.mark.requirement("F-09", "W-02", "W-12")
async def test_whoever_asks_to_see_the_plan_is_shown_it(serve: Open, http: Http) -> None:
    client = http(await serve(server={"start_seconds": 20}))
    begun = (await client.post("/api/threads/start", json={"goal": QUESTION, "approvePlan": True})).json()
    assert begun["interrupt"]["kind"] == "approve_plan"
    answer = {"interruptId": begun["interrupt"]["id"], "value": {"decision": "approve"}}
    assert (await client.post(f"/api/threads/{begun['threadId']}/resume", json=answer)).json()["ok"]
    assert (await standing(client, begun["threadId"]))["status"] == "done"


@pytest.mark.slow
@pytest.mark.requirement("W-01", "F-09")
async def test_whoever_turns_to_auto_meanwhile_is_not_shown_it(serve: Open, http: Http) -> None:
    client = http(await serve(server={"start_seconds": 20}))
    wishes = {"goal": QUESTION, "approvePlan": True, "modeOverride": "plan"}
    begun = (await client.post("/api/threads/start", json=wishes)).json()
    assert begun["interrupt"]["kind"] == "planning"
    await client.patch(f"/api/threads/{begun['threadId']}/mode", json={"mode": "auto"})
    assert (await standing(client, begun["threadId"]))["status"] == "done"
