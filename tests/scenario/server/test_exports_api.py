"""A thread's report as a file."""

import asyncio
import csv
import io
import json
import os
import tempfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from openassay.export import FORMATS, pdf_docx
from tests import readers
from tests.scenario.server.conftest import Http, Open, token_of
from tests.scenario.server.finished import finished


@pytest.mark.slow
async def test_a_report_is_had_in_every_format(serve: Open, http: Http) -> None:
    server = await serve()
    client = http(server)
    outcome = await finished(server, question="What's happening with Tesla & “its” stöck/../share?")
    assert outcome.report is not None
    path = f"/api/threads/{outcome.run.thread}/export"
    had = {one: await client.get(path, params={"format": one}) for one in (*FORMATS, "zip")}

    assert {one.status_code for one in had.values()} == {200}
    assert (await client.get(path)).text == had["md"].text == outcome.report.markdown
    assert had["html"].text.startswith("<!doctype html>")
    assert had["html"].headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert json.loads(had["json"].text) == outcome.report.plain()
    rows = list(csv.reader(io.StringIO(had["csv"].text)))
    assert rows[0][:5] == ["Id", "Statement", "Verdict", "Mark", "Confidence"]
    assert [row[0] for row in rows[1:]] == [claim.id for claim in outcome.report.claims]
    with ZipFile(io.BytesIO(had["zip"].content)) as bundle:
        assert bundle.testzip() is None
        assert "thread.json" in bundle.namelist()

    assert readers.read_pdf(had["pdf"].content).title == outcome.report.title
    assert readers.read_docx(had["docx"].content).footnotes
    for one in ("md", "obsidian", "quarto", "bibtex", "ris", "csl"):
        assert had[one].content == FORMATS[one].write(outcome.report), one

    kinds = {one: answer.headers["Content-Type"] for one, answer in had.items()}
    assert kinds == {**{one: format.media for one, format in FORMATS.items()}, "zip": "application/zip"}
    endings = {**{one: format.ending for one, format in FORMATS.items()}, "zip": ".zip"}
    for one, answer in had.items():
        named = answer.headers["Content-Disposition"]
        assert named.startswith('attachment; filename="')
        assert f"{endings[one]}\"; filename*=UTF-8''" in named
        assert named.isascii()
        assert "/" not in named.replace("UTF-8''", "")


@pytest.mark.slow
async def test_many_who_want_a_pdf_at_once_all_get_the_same(serve: Open, http: Http) -> None:
    server = await serve()
    client = http(server)
    path = f"/api/threads/{(await finished(server)).run.thread}/export"
    had = await asyncio.gather(*(client.get(path, params={"format": "pdf"}) for _ in range(8)))
    assert {one.status_code for one in had} == {200}
    assert len({one.headers["ETag"] for one in had}) == len({one.content for one in had}) == 1


@pytest.mark.slow
async def test_what_is_not_installed_is_told(serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    server = await serve()
    path = f"/api/threads/{(await finished(server)).run.thread}/export"
    monkeypatch.setattr(pdf_docx, "find_spec", lambda name: None)
    missing = await http(server).get(path, params={"format": "pdf"})
    assert (missing.status_code, missing.headers["Content-Type"]) == (422, "application/problem+json")
    assert missing.json()["detail"] == "PDF needs the extra `export`"


@pytest.mark.slow
async def test_what_has_not_changed_is_not_sent_again(serve: Open, http: Http) -> None:
    server = await serve()
    client = http(server)
    path = f"/api/threads/{(await finished(server)).run.thread}/export"
    first = await client.get(path, params={"format": "json"})
    again = await client.get(path, params={"format": "json"}, headers={"If-None-Match": first.headers["ETag"]})
    other = await client.get(path, params={"format": "md"}, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content, other.status_code) == (304, b"", 200)


@pytest.mark.slow
async def test_what_cannot_be_had_is_told(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    server = await serve(tmp_path / "data")
    ann, bob = http(server, await token_of(server, "ann")), http(server, await token_of(server, "bob"))
    thread = (await server.service.engine.create_thread("Kilns", owner="ann")).id
    path = f"/api/threads/{thread}/export"

    missing = await ann.get(path)
    assert (missing.status_code, missing.json()["detail"]) == (404, f"thread {thread} has no finished report")
    assert "openassay resume" not in missing.text, "there is no command line here"
    assert (await ann.get(path, params={"format": "xlsx"})).status_code == 422
    for format in ("md", "zip"):
        assert (await bob.get(path, params={"format": format})).status_code == 404
    assert (await ann.get(path, params={"format": "zip"})).status_code == 200
    assert not [name for name in os.listdir(tmp_path) if name.startswith("openassay-export-")]
