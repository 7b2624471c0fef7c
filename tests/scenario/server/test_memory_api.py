"""What is remembered of whoever calls."""

from typing import Any

import pytest

from tests.scenario.server.conftest import Http, Open, token_of

JSON = {"Content-Type": "application/json"}
NOTHING: dict[str, Any] = {"style": None, "words": None, "prefer": [], "avoid": [], "region": None, "language": None}


@pytest.mark.slow
@pytest.mark.requirement("W-19")
async def test_preferences_and_facts_are_kept_changed_and_forgotten(serve: Open, http: Http) -> None:
    client = http(await serve())
    assert (await client.get("/api/memory")).json() == {"preferences": NOTHING, "facts": []}
    wished: dict[str, Any] = {
        "style": "executive",
        "prefer": ["https://www.NASA.gov/x", "arxiv"],
        "language": "Klingon",
    }
    kept = (await client.put("/api/memory/preferences", json=wished)).json()
    assert (kept["prefer"], kept["style"], kept["words"]) == (["nasa.gov", "arxiv"], "executive", None)
    assert "cannot be searched" in kept["notices"][0]

    added = await client.post("/api/memory/facts", json={"text": " We report  in euros "})
    assert (added.status_code, added.json()["text"]) == (201, "We report in euros")
    assert (await client.post("/api/memory/facts", json={"text": "we report in EUROS."})).json() == added.json()
    path = f"/api/memory/facts/{added.json()['id']}"
    assert (await client.patch(path, json={"text": "We report in francs"})).json()["text"] == "We report in francs"
    other = (await client.post("/api/memory/facts", json={"text": "We like kilns"})).json()
    assert (await client.patch(path, json={"text": other["text"]})).status_code == 409
    assert (await client.delete(path)).status_code == 204
    assert (await client.delete(path)).status_code == 404
    assert (await client.patch(path, json={"text": "x"})).status_code == 404
    assert [one["id"] for one in (await client.get("/api/memory")).json()["facts"]] == [other["id"]]

    assert (await client.delete("/api/memory")).status_code == 204
    assert (await client.get("/api/memory")).json() == {"preferences": NOTHING, "facts": []}


@pytest.mark.slow
async def test_what_cannot_be_is_refused(serve: Open, http: Http) -> None:
    client = http(await serve())
    wrong: Any
    for wrong in (
        {"style": "loud"}, {"words": 3}, {"prefer": ["nonsense"]}, {"prefer": [""]}, {"prefer": ["arxiv"] * 51},
        {"prefer": ["arxiv"], "avoid": ["arxiv"]}, {"region": "\x07"}, {"region": " "}, {"language": "x" * 41},
        {"colour": "red"}, {"prefer": ["\u0000"]}, {"prefer": ["a" * 300]}, [], 3,
    ):  # fmt: skip
        assert (await client.put("/api/memory/preferences", json=wrong)).status_code == 422, wrong
    for body in (b'{"prefer": ["\\ud800"]}', b'{"region": "\\ud800a"}', b'{"words": 1e999}'):
        kept = await client.put("/api/memory/preferences", content=body, headers=JSON)
        assert kept.status_code == 422, body
    bodies = [
        b'{"text": ""}',
        b'{"text": "\\u0000"}',
        b'{"text": "\\ud800 a"}',
        b'{"text": "..."}',
        b'{"text": 3}',
        b"{",
        b"",
    ]
    for body in (*bodies, b'{"text": "%s"}' % (b"x" * 501)):
        answer = await client.post("/api/memory/facts", content=body, headers=JSON)
        assert answer.status_code == 422, body


@pytest.mark.slow
async def test_others_do_not_see_it(serve: Open, http: Http) -> None:
    server = await serve()
    ann, bob = http(server, await token_of(server, "ann")), http(server, await token_of(server, "bob"))
    fact = (await ann.post("/api/memory/facts", json={"text": "We report in euros"})).json()
    assert (await bob.get("/api/memory")).json()["facts"] == []
    assert (await bob.delete(f"/api/memory/facts/{fact['id']}")).status_code == 404
    assert (await bob.delete("/api/memory")).status_code == 204
    assert len((await ann.get("/api/memory")).json()["facts"]) == 1
    assert (await http(server).get("/api/memory")).status_code == 401


@pytest.mark.slow
@pytest.mark.requirement("W-19")
async def test_a_source_that_only_the_settings_name_can_be_preferred(serve: Open, http: Http) -> None:
    client = http(await serve(search={"mcp": {"our-wiki": {"url": "http://127.0.0.1:9/mcp"}}}))
    kept = await client.put("/api/memory/preferences", json={"prefer": ["our-wiki"], "region": "Īrān\u200cshahr"})
    assert (kept.status_code, kept.json()["prefer"]) == (200, ["our-wiki"])
