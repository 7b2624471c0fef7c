"""Questions for people over HTTP: listed, shown, answered once, and settled by the clock."""

from datetime import timedelta
from typing import Any

import pytest

from tests.scenario.server.asking import asked, standing
from tests.scenario.server.conftest import Http, Open, token_of

pytestmark = pytest.mark.requirement("F-09")


@pytest.mark.slow
async def test_a_plan_is_listed_shown_changed_and_then_gone_by(serve: Open, http: Http) -> None:
    server = await serve(hitl_after_planning=True, server={"start_seconds": 60})
    ann, bob = http(server, await token_of(server, "ann")), http(server, await token_of(server, "bob"))
    started = await asked(ann, depth="standard")
    assert (started["status"], started["interrupt"]["kind"]) == ("waiting", "approve_plan")
    [listed] = (await ann.get("/api/reviews")).json()["reviews"]
    assert (listed["id"], listed["threadId"]) == (started["interrupt"]["id"], started["threadId"])
    assert listed["due"] > listed["opened"]
    assert listed["overdue"] is False
    [of_thread] = (await ann.get(f"/api/threads/{started['threadId']}/reviews")).json()["reviews"]
    address = f"/api/reviews/{listed['id']}"
    one = (await ann.get(address)).json()
    assert one == of_thread
    assert one["interrupt"]["shown"]["plan"]["questions"]
    assert "decision" in one["interrupt"]["form"]["properties"]

    assert (await bob.get("/api/reviews")).json()["reviews"] == []
    for theirs, nobodys in (
        (await bob.get(address), await bob.get("/api/reviews/nobodys")),
        (await bob.post(f"{address}/answer", json={"value": "approve"}), await bob.post("/api/reviews/nobodys/answer",
            json={"value": "approve"})),
    ):  # fmt: skip
        assert (theirs.status_code, nobodys.status_code) == (404, 404)
        assert theirs.json()["detail"] == nobodys.json()["detail"].replace("nobodys", listed["id"])

    malformed: tuple[Any, ...] = (
        "perhaps", None, 7, [], {"decision": "modify"}, {"decision": "modify", "edits": [{"op": "remove"}]},
        {"decision": "approve", "drop": []}, {"decision": "modify", "edits": [{"op": "sources", "names": ["nowhere"]}]},
    )  # fmt: skip
    for value in malformed:
        assert (await ann.post(f"{address}/answer", json={"value": value})).status_code == 422, value
    assert (await ann.post(f"{address}/answer", json={})).status_code == 422

    edits = [{"op": "words", "words": 333}]
    taken = await ann.post(f"{address}/answer", json={"value": {"decision": "modify", "edits": edits}})
    assert (taken.status_code, taken.json()["ok"]) == (200, True)
    assert taken.json()["threadId"] == started["threadId"]
    assert taken.json()["checkpointId"]
    late = await ann.post(f"{address}/answer", json={"value": "approve"})
    assert (late.status_code, late.json()["type"]) == (409, "urn:openassay:problem:late-answer")
    assert "answered already" in late.json()["detail"]
    assert (await standing(ann, started["threadId"]))["status"] == "done"
    report = (await ann.get(f"/api/threads/{started['threadId']}/report")).json()
    assert report["plan"]["words"] == 333
    after = (await ann.get(address)).json()
    assert (after["by"], after["interrupt"], after["answer"]["decision"]) == ("person", None, "modify")


@pytest.mark.slow
async def test_time_ends_what_nobody_answers(serve: Open, http: Http) -> None:
    server = await serve(hitl_after_planning=True, breakpoints={"plan_timeout": 60}, server={"start_seconds": 60})
    client = http(server)
    started = await asked(client)
    due = server.service.now() + timedelta(seconds=61)
    server.service.engine._runner.now = lambda: due
    late = await client.post(f"/api/reviews/{started['interrupt']['id']}/answer", json={"value": "approve"})
    assert late.status_code == 409
    await server.service.engine.interrupts.answer_overdue()
    assert (await standing(client, started["threadId"]))["status"] == "done"
    report = (await client.get(f"/api/threads/{started['threadId']}/report")).json()
    assert report["status"] != "complete"
    assert (await client.get(f"/api/reviews/{started['interrupt']['id']}")).json()["by"] == "timer"
