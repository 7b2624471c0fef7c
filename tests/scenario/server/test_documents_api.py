"""Files that people give: checked when they come, asked about by name, and gone when they are deleted."""

import asyncio
import gc
import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any

import httpx2
import pytest

from openassay.errors import NotFoundError
from openassay.models.event import RunStatus
from openassay.models.plan import Mode
from openassay.models.thread import ResearchOptions
from openassay.server.app import RunningServer
from tests.scenario.server.conftest import Http, Open, token_of

KILN = "The Alder kiln at Marsh reaches 1,280 degrees. It was built in 1911 by Ada Marsh. " * 3
BOUNDARY = {"Content-Type": "multipart/form-data; boundary=b"}


def part(name: str, content: bytes | str, field: str = "file") -> tuple[str, tuple[str, bytes]]:
    return field, (name, content.encode() if isinstance(content, str) else content)


async def give(client: httpx2.AsyncClient, *parts: tuple[str, tuple[str, bytes]]) -> httpx2.Response:
    return await client.post("/api/documents", files=list(parts))


def stored(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "uploads").rglob("*") if path.is_file())


async def test_files_are_kept_listed_looked_at_and_deleted(serve: Open, http: Http, tmp_path: Path) -> None:
    client = http(await serve())
    added = await give(client, part("kiln.txt", KILN), part("../../etc/Größe?.md", "# Size\n\nThe kiln is large."))
    assert added.status_code == 201, added.text
    first, second = added.json()["documents"]
    assert (first["name"], first["mediaType"], first["size"]) == ("kiln.txt", "text/plain", len(KILN))
    assert (second["name"], second["mediaType"]) == ("Größe.md", "text/markdown")
    assert stored(tmp_path) == ["Größe.md", "kiln.txt"]
    assert (await give(client, part("again.txt", KILN))).json()["documents"] == [first]

    pages = [(await client.get("/api/documents", params={"limit": 1})).json()]
    pages.append((await client.get("/api/documents", params={"limit": 1, "cursor": pages[0]["nextCursor"]})).json())
    assert sorted(page["documents"][0]["id"] for page in pages) == sorted([first["id"], second["id"]])
    assert pages[1]["nextCursor"] is None
    for wrong in ("", "bm90aGluZw", "x" * 500, b64encode(b'["0001-01-01T00:00:00+14:00", "a"]').decode()):
        assert (await client.get("/api/documents", params={"cursor": wrong})).status_code == 422
    assert (await client.get(f"/api/documents/{first['id']}")).json() == first

    assert (await client.delete(f"/api/documents/{first['id']}")).status_code == 204
    assert (await client.delete(f"/api/documents/{first['id']}")).status_code == 404
    assert (await client.get(f"/api/documents/{first['id']}")).status_code == 404
    assert stored(tmp_path) == ["Größe.md"]


@pytest.mark.slow
async def test_content_says_what_a_file_is(serve: Open, http: Http) -> None:
    client = http(await serve())
    added = await give(
        client, part("report", "<!doctype html><title>T</title><p>The kiln is hot and old.</p>"),
        part("table.csv", "what,value\nkiln,1280\n"),
    )  # fmt: skip
    assert [(one["name"], one["mediaType"]) for one in added.json()["documents"]] == [
        ("report.html", "text/html"), ("table.csv", "text/csv"),
    ]  # fmt: skip


UNREADABLE: list[tuple[str, bytes | str, str]] = [
    ("a.pdf", "no pdf at all", "has the suffix .pdf but is not a PDF"),
    ("a.pdf", b"%PDF-1.7 broken", "a.pdf"),
    ("a.png", b"\x89PNG\r\n\x1a\n", "not a kind of file"),
    ("a.txt", b"\x89PNG\r\n\x1a\n", "not a kind of file"),
    ("a.exe", "MZ", "not a kind of file"),
    ("a.txt", b"\x00\x01\x02" * 50, "binary"),
    ("a.txt", "", "no text"),
    ("a.docx", b"PK\x03\x04 nothing", "has the suffix .docx but is not a DOCX"),
]


@pytest.mark.slow
async def test_what_cannot_be_read_is_refused_with_the_reason(serve: Open, http: Http, tmp_path: Path) -> None:
    client = http(await serve())
    for name, content, reason in UNREADABLE:
        refused = await give(client, part("good.txt", KILN), part(name, content))
        assert refused.status_code == 415, name
        assert reason in refused.json()["detail"]
        assert refused.json()["help"]
        assert str(tmp_path) not in refused.text
    assert (await client.get("/api/documents")).json()["documents"] == []
    assert stored(tmp_path) == []


async def test_malformed_bodies_are_refused(serve: Open, http: Http, tmp_path: Path) -> None:
    client = http(await serve())

    async def post(content: bytes, headers: dict[str, str] = BOUNDARY) -> int:
        return (await client.post("/api/documents", content=content, headers=headers)).status_code

    file = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello there\r\n'
    assert await post(b"") == 422
    assert await post(b"nothing") == 422
    assert await post(b"--b--\r\n") == 422
    assert await post(file) == 422  # no end
    assert await post(file[:40]) == 422
    assert await post(b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n') == 422
    assert await post(b'--b\r\nContent-Disposition: form-data; filename=""; name="a"\r\n\r\n\r\n--b--\r\n') == 422
    assert await post(file * 10_000 + b"--b--\r\n") == 413
    assert await post(b"--b\r\nX: " + b"x" * 100_000 + b"\r\n\r\n\r\n--b--\r\n") == 422
    assert await post(file + b"--b--\r\n", {"Content-Type": "multipart/form-data"}) == 422
    assert await post(b"{}", {"Content-Type": "application/json"}) == 415
    assert await post(b"{}", {}) == 415
    assert await post(file + b"--b--\r\n") == 201
    assert stored(tmp_path) == ["a.txt"]


async def test_there_are_limits(serve: Open, http: Http, tmp_path: Path) -> None:
    client = http(await serve(server={"upload_mb": 0.01, "uploads_mb": 0.015, "uploads": 2}))
    assert (await give(client, part("a.txt", "a " * 6_000))).status_code == 413
    assert (await give(client, part("a.txt", "a " * 4_000))).status_code == 201
    full = await give(client, part("b.txt", "b " * 4_000))
    assert (full.status_code, "MB" in full.json()["detail"]) == (409, True)
    assert (await give(client, part("c.txt", "one"), part("d.txt", "two"))).status_code == 409
    assert (await give(client, part("c.txt", "one"))).status_code == 201
    assert stored(tmp_path) == ["a.txt", "c.txt"]
    assert not list((tmp_path / "uploads" / ".incoming").iterdir())


@pytest.mark.slow
async def test_a_connection_that_breaks_leaves_nothing(serve: Open, http: Http, tmp_path: Path) -> None:
    server = await serve()
    host, port = server.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    kind = BOUNDARY["Content-Type"]
    head = f"POST /api/documents HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9999\r\nContent-Type: {kind}"
    body = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhalf'
    writer.write(f"{head}\r\n\r\n{body}".encode())
    await writer.drain()
    async with asyncio.timeout(10):
        while not stored(tmp_path):  # noqa: ASYNC110  # a folder has nothing to wait on
            await asyncio.sleep(0.01)
        writer.close()
        while stored(tmp_path):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert (await http(server).get("/api/documents")).json()["documents"] == []


@pytest.mark.slow
async def test_others_do_not_see_them(serve: Open, http: Http) -> None:
    server = await serve()
    ann, bob = http(server, await token_of(server, "ann")), http(server, await token_of(server, "bob"))
    [hers] = (await give(ann, part("kiln.txt", KILN))).json()["documents"]
    assert (await bob.get(f"/api/documents/{hers['id']}")).status_code == 404
    assert (await bob.delete(f"/api/documents/{hers['id']}")).status_code == 404
    assert (await bob.get("/api/documents")).json()["documents"] == []
    [his] = (await give(bob, part("kiln.txt", KILN))).json()["documents"]
    assert his["id"] != hers["id"]
    assert (await http(server).get("/api/documents")).status_code == 401


async def ask(server: RunningServer, *ids: str, user: str = "local") -> Any:
    engine, docs = server.service.engine, await server.service.resources.uploads.paths(user, ids)
    run = await engine.start("When was the Alder kiln built?", ResearchOptions(docs=tuple(docs), user=user))
    return await engine.wait(run.id)


@pytest.mark.slow
async def test_what_another_calls_the_same_text_is_not_told(serve: Open, http: Http) -> None:
    """Documents are stored by what they say, once for everybody."""
    server = await serve(source="auto")
    ann, bob = http(server, await token_of(server, "ann")), http(server, await token_of(server, "bob"))
    [hers] = (await give(ann, part("Merger plan.txt", KILN))).json()["documents"]
    [his] = (await give(bob, part("kiln.txt", KILN))).json()["documents"]
    [first] = (await ask(server, hers["id"], user="ann")).report.sources
    outcome = await ask(server, his["id"], user="bob")
    [second] = outcome.report.sources
    assert (first.title, second.title) == ("Merger plan", "kiln")
    assert second.url == f"upload:{his['id']}/kiln.txt"

    engine = server.service.engine
    told = json.dumps((await engine.view(outcome.run.thread)).plain()) + (await engine.document(second.document)).url
    assert "Merger" not in told
    assert hers["id"] not in told


@pytest.mark.slow
async def test_no_place_on_the_servers_disk_is_told(serve: Open, http: Http, tmp_path: Path) -> None:
    """Neither in the report, nor the state, nor the events, nor the bundle."""
    server = await serve(tmp_path / "kept", source="auto")
    client = http(server)
    [given] = (await give(client, part("The kiln.txt", KILN))).json()["documents"]
    outcome = await ask(server, given["id"])
    assert outcome.report is not None
    assert [card.url for card in outcome.report.sources] == [f"upload:{given['id']}/The%20kiln.txt"]

    engine, thread = server.service.engine, outcome.run.thread
    events = [event.plain() async for event in engine.events(outcome.run.id)]
    bundle = tmp_path / "bundle.zip"
    await engine.archive.export(thread, bundle)
    view = (await engine.view(thread)).plain()
    for told in (json.dumps(events), json.dumps(view), outcome.report.model_dump_json(), *_unpacked(bundle)):
        assert str(tmp_path) not in told

    assert (await client.delete(f"/api/documents/{given['id']}")).status_code == 204
    assert not list((tmp_path / "kept" / "libraries").rglob("*.sqlite3*"))
    assert (await engine.history.report(thread)).claims
    assert (await engine.document(outcome.report.sources[0].document)).text.startswith("The Alder kiln")


def open_indexes() -> list[str]:
    """The files of indexes that this process has open."""
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    return [target for link in links if link.is_symlink() and "/libraries/" in (target := os.readlink(link))]


async def close_indexes() -> None:
    """Wait for what is made of them between runs."""
    for _ in range(600):
        gc.collect()
        if not open_indexes():
            return
        await asyncio.sleep(0.1)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted on Linux")
async def test_many_documents_hold_few_files_open(serve: Open, http: Http, tmp_path: Path) -> None:
    server = await serve(source="auto")
    client = http(server)
    kilns = [part(f"{n}.txt", f"The Alder kiln number {n} was built in {1800 + n}. " * 3) for n in range(30)]
    ids = [one["id"] for one in (await give(client, *kilns)).json()["documents"]]
    most: list[int] = []

    async def watch() -> None:
        while True:
            most.append(len(open_indexes()))
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(watch())
    outcomes = await asyncio.gather(ask(server, *ids), ask(server, *ids[:3]), ask(server, *ids))
    watching.cancel()
    assert [outcome.run.status for outcome in outcomes] == [RunStatus.DONE] * 3
    part_of = {f"upload:{id}" for id in ids[:3]}
    assert {card.url.partition("/")[0] for card in outcomes[1].report.sources} <= part_of, "each sees what it was given"
    threads = (os.cpu_count() or 1) + 4
    assert max(most) <= 2 * 3 * threads, "an index has three files for each thread that asks it"
    await close_indexes()
    assert open_indexes() == []

    libraries = tmp_path / "libraries"
    assert len(list(libraries.rglob("*.sqlite3"))) == 2
    assert (await client.delete(f"/api/documents/{ids[9]}")).status_code == 204
    assert len(list(libraries.rglob("*.sqlite3"))) == 1, "the one it was never in"
    assert (await client.delete(f"/api/documents/{ids[0]}")).status_code == 204
    assert not list(libraries.rglob("*.sqlite3*"))


@pytest.mark.slow
async def test_what_a_run_is_at_work_on_is_not_deleted(serve: Open, http: Http, tmp_path: Path) -> None:
    server = await serve(source="auto")
    client, engine = http(server), server.service.engine
    [given] = (await give(client, part("kiln.txt", KILN))).json()["documents"]
    docs = tuple(await server.service.resources.uploads.paths("local", [given["id"]]))
    run = await engine.start(
        "How did the Alder kiln change?", ResearchOptions(docs=docs, mode=Mode.PLAN, interactive=True)
    )
    assert (await engine.wait(run.id)).run.status is RunStatus.WAITING

    refused = await client.delete(f"/api/documents/{given['id']}")
    assert (refused.status_code, run.thread in refused.json()["detail"]) == (409, True)
    await engine.archive.delete(run.thread)
    assert (await client.delete(f"/api/documents/{given['id']}")).status_code == 204
    with pytest.raises(NotFoundError, match="was deleted") as caught:
        await engine.start("And now?", ResearchOptions(docs=docs))
    assert str(tmp_path) not in caught.value.message


def _unpacked(bundle: Path) -> list[str]:
    from zipfile import ZipFile

    with ZipFile(bundle) as files:
        return [files.read(name).decode(errors="replace") for name in files.namelist()]
