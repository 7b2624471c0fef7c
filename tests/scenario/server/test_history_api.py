"""Time travel over HTTP."""

import pytest

from tests.scenario.server.asking import researched, standing
from tests.scenario.server.conftest import Http, Open, token_of


@pytest.mark.slow
@pytest.mark.requirement("W-18", "X-07")
async def test_a_branch_goes_on_from_a_moment_and_both_stay_readable(serve: Open, http: Http) -> None:
    client = http(await serve())
    thread = await researched(client, depth="standard")
    address = f"/api/threads/{thread}"
    before = (await client.get(f"{address}/report")).json()
    moments = (await client.get(f"{address}/history", params={"limit": 100})).json()["moments"]
    assert [moment["number"] for moment in moments] == list(range(1, len(moments) + 1))
    assert len((await client.get(f"{address}/history", params={"limit": 2})).json()["moments"]) == 2
    planned = next(moment for moment in moments if moment["planned"])

    forked = await client.post(
        f"{address}/fork", json={"checkpoint": planned["short"], "changes": {"deliverable": "a short memo"}}
    )
    assert forked.status_code == 200
    branch = forked.json()["threadId"]
    assert forked.headers["Location"] == f"/api/threads/{branch}"
    assert (await standing(client, branch))["status"] == "done"
    assert (await client.get(f"{address}/report")).json() == before
    after = (await client.get(f"/api/threads/{branch}/report")).json()
    assert after["plan"]["deliverable"] == "a short memo"

    tree = (await client.get(f"/api/threads/{branch}/branches")).json()
    assert (tree["thread"], [one["thread"] for one in tree["branches"]]) == (thread, [branch])
    began = [moment["checkpoint"] for moment in moments]
    assert (tree["checkpoint"], tree["branches"][0]["checkpoint"] in began) == (None, True)
    assert (await client.get(f"/api/threads/{branch}")).json()["parent"] == thread
    last = (await client.get(f"/api/threads/{branch}/history")).json()["moments"][-1]["number"]
    diff = (await client.get("/api/diff", params={"a": thread, "b": f"{branch}@{last}"})).json()
    assert {"added", "dropped", "changed", "same"} <= diff.keys(), diff

    for changes in (
        {"edits": [{"op": 5}]}, {"edits": ["x"]}, {"words": 5}, {"docs": ["/etc"]}, {"model": "local:/etc/passwd"},
        {"usd": -1}, {"source": "nowhere"}, {"plan": {"goal": 5}, "depth": "odd"},
    ):  # fmt: skip
        assert (await client.post(f"{address}/fork", json={"changes": changes})).status_code == 422, changes
    for changes in ({"documents": ["0" * 16]}, {"without": ["S999"]}):
        assert (await client.post(f"{address}/fork", json={"changes": changes})).status_code == 404, changes
    for levels in (40, 500):
        deep: object = "x"
        for _ in range(levels):
            deep = {"a": deep}
        changed: object
        for changed in ({"plan": deep}, {"edits": [deep]}):
            refused = await client.post(f"{address}/fork", json={"changes": changed})
            assert (refused.status_code, "levels deep" in refused.text) == (422, True), (levels, changed)
    assert (await client.post(f"{address}/fork", json={"checkpoint": "4444444"})).status_code == 404
    assert len((await client.get("/api/threads")).json()["threads"]) == 2


@pytest.mark.slow
async def test_a_branch_is_its_owners_and_another_cannot_make_one(serve: Open, http: Http) -> None:
    server = await serve()
    ann, bob = http(server, await token_of(server, "ann")), http(server, await token_of(server, "bob"))
    thread = await researched(ann)
    branch = (await ann.post(f"/api/threads/{thread}/fork", json={})).json()["threadId"]
    await standing(ann, branch)
    assert (await bob.get(f"/api/threads/{branch}/report")).status_code == 404
    assert (await ann.get(f"/api/threads/{branch}/report")).status_code == 200
    own = await researched(bob)
    assert (await bob.get("/api/diff", params={"a": own, "b": branch})).status_code == 404
    theirs = (await ann.get(f"/api/threads/{branch}/history")).json()["moments"][-1]["checkpoint"]
    for refused in (
        await bob.post(f"/api/threads/{own}/fork", json={"checkpoint": theirs}),
        await bob.get("/api/diff", params={"a": own, "b": f"{own}@{theirs}"}),
    ):
        assert refused.status_code == 404
        assert branch not in refused.text, "whose it is is not told"
    empty = (await ann.post("/api/threads", json={})).json()["id"]
    assert (await ann.get(f"/api/threads/{empty}/history")).json() == {"moments": []}
    assert (await ann.post(f"/api/threads/{empty}/fork", json={})).status_code == 409
    assert (await ann.get("/api/diff", params={"a": empty, "b": thread})).status_code == 409
