"""Links that show a report to whoever has them."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from openassay.models.thread import ResearchOptions
from openassay.models.user import Scope
from tests.scenario.server.asking import researched
from tests.scenario.server.conftest import Http, Open, token_of
from tests.scenario.server.finished import finished
from tests.scenario.server.sse import transcript
from tests.scenario.server.test_mcp import called, connected


async def share(client: httpx2.AsyncClient, thread: str, **body: object) -> dict[str, str]:
    made = await client.post(f"/api/threads/{thread}/shares", json=body)
    assert made.status_code == 201, made.text
    told: dict[str, str] = made.json()
    return told


@pytest.mark.slow
async def test_a_link_shows_the_report_and_nothing_else(serve: Open, http: Http) -> None:
    server = await serve()
    ann, anybody = http(server, await token_of(server, "ann")), http(server)
    outcome = await finished(server, "ann")
    assert outcome.report is not None
    link = await share(ann, outcome.run.thread, days=1)
    assert link["url"] == f"{server.url}/s/{link['secret']}"

    page = await anybody.get(f"/s/{link['secret']}")
    assert page.status_code == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert outcome.report.claims[0].text.split()[0] in page.text
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert len(re.findall("<style>", page.text)) == policy.count("sha256-")
    assert " style=" not in page.text
    assert "<script" not in page.text
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert "noindex" in page.headers["X-Robots-Tag"]
    assert "no-store" in page.headers["Cache-Control"]
    assert "Set-Cookie" not in page.headers

    with_link = {"share": link["secret"]}
    thread = f"/api/threads/{outcome.run.thread}"
    assert (await anybody.get(f"{thread}/export", params={**with_link, "format": "md"})).status_code == 200
    assert (await anybody.get(f"{thread}/export", params={**with_link, "format": "zip"})).status_code == 403
    for method, path in (
        ("GET", "shares"),
        ("POST", "shares"),
        ("GET", "artifacts"),
        ("DELETE", f"shares/{link['id']}"),
    ):
        assert (await anybody.request(method, f"{thread}/{path}", params=with_link)).status_code == 403
    other = await finished(server, "ann")
    assert (await anybody.get(f"/api/threads/{other.run.thread}/export", params=with_link)).status_code == 404


@pytest.mark.slow
@pytest.mark.requirement("W-12")
async def test_a_link_tells_nothing_of_how_the_report_was_asked_for(serve: Open, http: Http) -> None:
    server = await serve()
    ann = http(server, await token_of(server, "ann"))
    await ann.post("/api/memory/facts", json={"text": "I keep confidential notes on Apple."})
    thread = await researched(ann, "What's happening with Apple?", context="confidential words")
    await researched(ann, threadId=thread, context="confidential words")
    document = (await ann.get(f"/api/threads/{thread}/sources")).json()["sources"][0]["document"]
    assert (await ann.put(f"/api/threads/{thread}/sources/{document}/pin")).status_code == 200
    first, second = [run["id"] for run in (await ann.get(f"/api/threads/{thread}/runs")).json()["runs"]]
    link = await share(ann, thread)
    guest = http(server, link["secret"])
    assert "confidential" in (await ann.get(f"/api/threads/{thread}/report")).text, "their owner sees them"

    told = {path: await guest.get(f"/api/threads/{thread}{path}") for path in ("", "/report", "/sources")}
    told["json"] = await guest.get(f"/api/threads/{thread}/export", params={"format": "json"})
    heard = await transcript(guest, thread)

    assert set(told[""].json()) == {"id", "title", "status"}
    for path in ("/report", "json"):
        report = told[path].json()
        assert report["claims"]
        assert (report["plan"], report["provenance"]["queries"], report["provenance"]["checkpoints"]) == (None, [], [])
    assert told["/sources"].json()["sources"]
    assert not told["/sources"].json()["pinned"]
    assert not any(source["pinned"] for source in told["/sources"].json()["sources"])
    assert {one.name for one in heard} == {"status", "section", "citation", "done"}
    assert all(one.json()["data"].keys() == {"title"} for one in heard if one.name == "section")
    assert {one.json()["run"] for one in heard} == {second}
    pages = [await guest.get(f"/api/threads/{thread}/export", params={"format": format}) for format in ("md", "html")]
    shown = [*told.values(), *pages, await http(server).get(f"/s/{link['secret']}")]
    assert "confidential" not in str([[answer.text for answer in shown], heard])
    assert not any({"request", "constraints", "queries", "usd", "reason"} & set(one.json()["data"]) for one in heard)
    assert (await guest.get(f"/api/threads/{thread}/runs")).status_code == 403
    assert (await guest.get(f"/api/stream/{thread}", params={"run": first})).status_code == 404
    assert await transcript(guest, thread, after=f"{first}.2") == heard, "who has followed the run before goes on here"
    assert await transcript(guest, thread, after=heard[-1].id) == []


@pytest.mark.slow
async def test_a_link_that_is_not_good_any_more_is_as_unknown_as_none(serve: Open, http: Http) -> None:
    server = await serve()
    client = http(server)
    run = (await finished(server)).run
    revoked, expired = await share(client, run.thread), await share(client, run.thread, days=0.5)
    assert datetime.fromisoformat(expired["expires"]) < datetime.fromisoformat(revoked["expires"])
    assert (await client.delete(f"/api/threads/{run.thread}/shares/{revoked['id']}")).status_code == 204
    server.service.now = lambda: datetime.now(UTC) + timedelta(days=1)

    pages = [await client.get(f"/s/{one}") for one in (revoked["secret"], expired["secret"], "share_none", "%00%ff")]

    assert {page.status_code for page in pages} == {404}
    assert len({page.text for page in pages}) == 1
    assert "There is nothing here" in pages[0].text
    listed = (await client.get(f"/api/threads/{run.thread}/shares")).json()["shares"]
    assert [one["good"] for one in listed] == [False, False]
    assert "secret" not in str(listed)
    assert "hash" not in str(listed)


@pytest.mark.slow
async def test_only_the_owner_makes_links_and_only_with_the_scope_for_it(serve: Open, http: Http) -> None:
    server = await serve()
    ann, bob = http(server, await token_of(server, "ann")), http(server, await token_of(server, "bob"))
    reader = http(server, await token_of(server, "ann", Scope.READ, Scope.WRITE))
    thread = (await server.service.engine.create_thread("Kilns", owner="ann")).id
    link = await share(ann, thread)
    path = f"/api/threads/{thread}/shares"
    assert (await bob.post(path, json={})).status_code == 404
    assert (await bob.get(path)).status_code == 404
    assert (await bob.delete(f"{path}/{link['id']}")).status_code == 404
    assert (await reader.post(path, json={})).status_code == 403
    assert (await ann.delete(f"{path}/unknown")).status_code == 404
    assert (await ann.post(path)).status_code == 201  # nothing said: what the settings say
    wrong: Any
    for wrong in ({"days": 0}, {"days": -1}, {"days": 1e9}, {"days": "x"}, {"dayz": 1}, [], "x"):
        assert (await ann.post(path, json=wrong)).status_code == 422
    assert (
        await ann.post(path, content=b'{"days": NaN}', headers={"Content-Type": "application/json"})
    ).status_code == 422


@pytest.mark.slow
async def test_before_there_is_a_report_the_page_says_how_far_it_is(serve: Open, http: Http) -> None:
    server = await serve(known="ann", server={"public_url": "https://openassay.example/"})
    client = http(server, await token_of(server, "ann"))
    thread = (await server.service.engine.create_thread("Kilns", owner="ann")).id
    link = await share(client, thread)
    assert link["url"] == f"https://openassay.example/s/{link['secret']}"

    page = await client.get(f"/s/{link['secret']}")

    assert page.status_code == 200
    assert "Not finished yet" in page.text
    assert "Nothing was asked yet" in page.text


@pytest.mark.slow
async def test_paths_of_documents_are_not_shown(serve: Open, http: Http, tmp_path: Path) -> None:
    """Of a thread that was asked about a folder, at the terminal of the server's own machine."""
    docs = tmp_path / "private folder"
    docs.mkdir()
    (docs / "broken.pdf").write_text("no PDF", encoding="utf-8")
    (docs / "kiln.txt").write_text("The Alder kiln reaches 1,280 degrees. It was built in 1911. " * 3, encoding="utf-8")
    server = await serve(tmp_path / "kept", source="auto")
    client, engine = http(server), server.service.engine
    run = await engine.start("When was the Alder kiln built?", ResearchOptions(docs=(str(docs),)))
    outcome = await engine.wait(run.id)
    assert outcome.report is not None
    assert outcome.report.sources[0].url.startswith("file://")
    link = await share(client, run.thread)

    told = [(await client.get(f"/s/{link['secret']}")).text]
    for format in ("md", "html", "json", "csv"):
        told.append((await client.get(f"/api/threads/{run.thread}/export", params={"format": format})).text)
    for name in ("report", "sources"):
        told.append((await client.get(f"/api/threads/{run.thread}/artifacts/{name}")).text)

    told.append("".join(heard.data for heard in await transcript(client, run.thread)))
    assert '"path":"broken.pdf"' in told[-1]
    async with connected(server) as other:
        told.append(str(await called(other, "threads", thread=run.thread)))
        told.append(
            str(await called(other, "verify", statement="The Alder kiln was built in 1911.", thread=run.thread))
        )
        told.append(str((await other.read_resource(f"openassay://threads/{run.thread}/report")).contents))

    assert all("kiln" in text for text in told)
    assert not any("private" in text or str(tmp_path) in text for text in told)
