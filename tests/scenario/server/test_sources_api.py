"""Sources over HTTP: kept in sight, and taken out."""

import pytest

from tests.scenario.server.asking import asked, researched, standing
from tests.scenario.server.conftest import Http, Open

ODD = ("x", "S0", "S99", "s", "12345678", "S" * 70, "%00", "..%2f..")


@pytest.mark.slow
@pytest.mark.requirement("X-09")
async def test_a_pin_survives_a_new_report_and_a_veto_takes_a_source_out_for_good(serve: Open, http: Http) -> None:
    client = http(await serve())
    empty = (await client.post("/api/threads", json={})).json()["id"]
    assert (await client.get(f"/api/threads/{empty}/sources")).json() == {"sources": [], "pinned": [], "vetoed": []}
    thread = await researched(client, depth="standard")
    address = f"/api/threads/{thread}/sources"
    cards = (await client.get(address)).json()["sources"]
    assert len(cards) >= 2
    first, second = cards[0], cards[1]
    assert first["excerpts"][0]["quote"]
    assert not first["pinned"]

    for _ in range(2):
        pinned = await client.put(f"{address}/{first['id']}/pin")
        assert (pinned.status_code, pinned.json()) == (200, {"document": first["document"], "pinned": True})
    await client.put(f"{address}/{second['document'][:12]}/pin")
    found = (await client.get(address)).json()
    assert found["pinned"] == [first["document"], second["document"]]
    assert [card["pinned"] for card in found["sources"][:2]] == [True, True]
    assert (await client.delete(f"{address}/{second['id']}/pin")).json()["pinned"] is False
    for odd in ODD:
        for method, rest in (("PUT", "pin"), ("DELETE", "pin"), ("POST", "veto"), ("GET", "consequences")):
            refused = await client.request(method, f"{address}/{odd}/{rest}")
            assert refused.status_code in (404, 422), (method, odd)

    losses = (await client.get(f"{address}/{first['id']}/consequences")).json()
    assert losses["lost"] or losses["weaker"]
    vetoed = await client.post(f"{address}/{first['id'].lower()}/veto")
    assert (vetoed.status_code, vetoed.json()["threadId"]) == (202, thread)
    assert (await client.post(f"{address}/{first['id']}/veto")).status_code in (404, 409)
    assert (await standing(client, thread))["status"] == "done"
    after = (await client.get(address)).json()
    assert first["document"] not in [card["document"] for card in after["sources"]]
    assert [one["document"] for one in after["vetoed"]] == [first["document"]]
    assert after["pinned"] == [first["document"]], "what is out of the report stays in sight"

    await asked(client, "What's happening with Apple and its stock?", threadId=thread)
    await standing(client, thread)
    assert (await client.get(address)).json()["pinned"] == [first["document"]]
    assert (await client.delete(f"{address}/{first['document']}/pin")).json()["pinned"] is False
    assert (await client.get(address)).json()["pinned"] == []
