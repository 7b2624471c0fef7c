"""What a thread has made: edited, kept in versions, and never overwritten by a new report."""

from typing import Any

import pytest

from tests.scenario.server.conftest import Http, Open, token_of
from tests.scenario.server.finished import finished

JSON = {"Content-Type": "application/json"}


@pytest.mark.slow
async def test_a_report_offers_texts_and_tables(serve: Open, http: Http) -> None:
    server = await serve()
    client = http(server)
    outcome = await finished(server)
    report = outcome.report
    assert report is not None
    path = f"/api/threads/{outcome.run.thread}/artifacts"
    listed = {one["name"]: one for one in (await client.get(path)).json()["artifacts"]}

    assert {"report", "claims", "sources", "findings"} <= listed.keys()
    assert all(one["version"] == 1 and not one["edited"] and not one["own"] for one in listed.values())
    text = (await client.get(f"{path}/report")).json()
    assert (text["kind"], text["content"]) == ("markdown", report.markdown)
    claims = (await client.get(f"{path}/claims")).json()["content"]
    keys = [column["key"] for column in claims["columns"]]
    for row, claim in zip(claims["rows"], report.claims, strict=True):
        told = dict(zip(keys, row, strict=True))
        assert (told["statement"], told["verdict"], told["mark"]) == (claim.text, claim.verdict, claim.mark)
        assert {card.id for card in report.sources if told[card.id] == "for"} >= {
            span.source for span in claim.spans if span.source not in {other.source for other in claim.against}
        }
    sources = await client.get(f"{path}/sources", params={"format": "csv"})
    assert sources.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert len(sources.text.splitlines()) >= 1 + len(report.sources)
    assert (await client.get(f"{path}/sources", params={"format": "md"})).text.startswith("| Id | Title |")
    assert (await client.get(f"{path}/report", params={"format": "csv"})).status_code == 422
    again = await client.get(f"{path}/report", headers={"If-None-Match": text_tag(await client.get(f"{path}/report"))})
    assert again.status_code == 304


def text_tag(answer: Any) -> str:
    return str(answer.headers["ETag"])


@pytest.mark.slow
async def test_what_a_person_makes_is_a_version_of_its_own(serve: Open, http: Http) -> None:
    server = await serve()
    client = http(server)
    run = (await finished(server)).run
    path = f"/api/threads/{run.thread}/artifacts/report"
    made = await client.get(path)

    assert (await client.put(path, json={"content": "mine"})).status_code == 428
    assert (await client.put(path, json={"content": "mine"}, headers={"If-Match": '"other"'})).status_code == 412
    edited = await client.put(path, json={"content": "mine"}, headers={"If-Match": text_tag(made)})
    assert edited.status_code == 200, edited.text
    assert {name: edited.json()[name] for name in ("version", "edited", "outdated", "own", "content")} == {
        "version": 2, "edited": True, "outdated": False, "own": False, "content": "mine",
    }  # fmt: skip
    assert text_tag(edited) == text_tag(await client.get(path))
    late = await client.put(path, json={"content": "too late"}, headers={"If-Match": text_tag(made)})
    assert late.status_code == 412

    await finished(server, question="And what about its revenue?", thread=run.thread)
    now = await client.get(path)
    assert (now.json()["content"], now.json()["outdated"], now.json()["version"]) == ("mine", True, 2)
    listed = (await client.get(f"{path}/versions")).json()["versions"]
    assert [(one["version"], one["by"]) for one in listed] == [(1, "openassay"), (2, "person"), (3, "openassay")]
    first, third = [(await client.get(path, params={"version": n})).json() for n in (1, 3)]
    assert first["content"] == made.json()["content"] != third["content"]
    assert (await client.get(path, params={"version": 9})).status_code == 404

    again = await client.put(
        path, json={"title": "Ours", "content": third["content"] + "\nand mine"}, headers={"If-Match": text_tag(now)}
    )
    assert (again.json()["version"], again.json()["title"], again.json()["outdated"]) == (4, "Ours", False)
    assert (await client.delete(path)).status_code == 204
    assert (await client.delete(path)).status_code == 404  # it is as it was made
    back = (await client.get(path)).json()
    assert (back["version"], back["content"], back["edited"]) == (1, third["content"], False)


@pytest.mark.slow
async def test_artifacts_of_ones_own(serve: Open, http: Http) -> None:
    server = await serve()
    client = http(server)
    path = f"/api/threads/{(await server.service.engine.create_thread('Kilns')).id}/artifacts"
    assert (await client.get(path)).json() == {"artifacts": []}
    table = {
        "columns": [{"key": "a", "title": "=A|"}, {"key": "b", "title": "B"}],
        "rows": [["=HYPERLINK(1)", -3.5], ["-2+3", None], ["@x", True], ["-12.5%", 2**70], ["+cmd|' /C", 'a,"b"\nc']],
    }
    added = await client.post(path, json={"title": "Heat & Größe!", "content": table})
    assert added.status_code == 201, added.text
    assert (added.json()["name"], added.json()["kind"], added.json()["own"]) == ("heat-gr-e", "table", True)
    assert added.json()["content"] == table
    assert (await client.post(path, json={"title": "Heat & Größe!", "content": "x"})).json()["name"] == "heat-gr-e-2"
    text = (await client.get(f"{path}/heat-gr-e", params={"format": "csv"})).text
    assert text.splitlines()[:5] == ["'=A|,B", "'=HYPERLINK(1),-3.5", "'-2+3,", "'@x,yes", f"-12.5%,{2**70}"]
    assert (await client.get(f"{path}/heat-gr-e", params={"format": "md"})).text.startswith(
        "| =A\\| | B |\n|---|---|\n"
    )

    assert (await client.put(f"{path}/notes", json={"content": "a"}, headers={"If-Match": "*"})).status_code == 412
    assert (await client.put(f"{path}/notes", json={"content": "a"})).status_code == 201
    assert (await client.post(path, json={"name": "notes", "title": "N", "content": ""})).status_code == 409
    tag = {"If-Match": text_tag(await client.get(f"{path}/notes"))}
    assert (await client.put(f"{path}/notes", json={"content": table}, headers=tag)).status_code == 422
    assert (await client.delete(f"{path}/notes", headers={"If-Match": '"x"'})).status_code == 412
    assert (await client.delete(f"{path}/notes", headers=tag)).status_code == 204
    assert [one["name"] for one in (await client.get(path)).json()["artifacts"]] == ["heat-gr-e", "heat-gr-e-2"]


async def test_what_cannot_be_is_refused(serve: Open, http: Http) -> None:
    server = await serve(server={"body_mb": 5})
    client = http(server)
    path = f"/api/threads/{(await server.service.engine.create_thread('Kilns')).id}/artifacts"
    columns = [{"key": "a", "title": "A"}]
    content: Any
    for content in (
        None, 3, [], {}, {"columns": columns, "rows": [[1, 2]]}, {"columns": columns * 2, "rows": []},
        {"columns": columns, "rows": [[{"deep": []}]]}, {"columns": columns, "rows": [["x"]], "more": 1},
    ):  # fmt: skip
        assert (await client.post(path, json={"title": "T", "content": content})).status_code == 422, content
    for body in (
        b'{"title": "", "content": ""}', b'{"title": "\\u0000", "content": ""}',
        b'{"title": "T", "content": "\\ud800"}',
        b'{"title": "T", "content": {"columns": [{"key": "a", "title": "A"}], "rows": [["\\udfff"]]}}',
        b'{"title": "T", "content": {"columns": [{"key": "a", "title": "A"}], "rows": [[NaN]]}}',
        b'{"title": "T", "content": {"columns": [{"key": "a", "title": "A"}], "rows": [[1e999]]}}',
        b'{"title": "T", "name": "../x", "content": ""}',
    ):  # fmt: skip
        assert (await client.post(path, content=body, headers=JSON)).status_code == 422, body
    assert (await client.post(path, json={"title": "T", "content": "x" * 1_000_001})).status_code == 413
    assert (await client.put(f"{path}/NO%00", json={"content": "x"})).status_code == 422
    for missing in ("none", "%00", "..%2f..", "%ed%a0%80"):
        for method in ("GET", "DELETE"):
            assert (await client.request(method, f"{path}/{missing}")).status_code == 404
    assert (await client.get(f"{path}/none/versions")).status_code == 404


@pytest.mark.slow
async def test_others_do_not_see_them(serve: Open, http: Http) -> None:
    server = await serve()
    ann, bob = http(server, await token_of(server, "ann")), http(server, await token_of(server, "bob"))
    path = f"/api/threads/{(await server.service.engine.create_thread('Kilns', owner='ann')).id}/artifacts"
    assert (await ann.post(path, json={"name": "notes", "title": "N", "content": "hers"})).status_code == 201
    for method, where in (
        ("GET", ""), ("POST", ""), ("GET", "/notes"), ("PUT", "/notes"), ("DELETE", "/notes"),
        ("GET", "/notes/versions"),
    ):  # fmt: skip
        body = {"title": "N", "content": "his"} if method in ("POST", "PUT") else None
        assert (await bob.request(method, path + where, json=body)).status_code == 404
    assert (await ann.get(f"{path}/notes")).json()["content"] == "hers"
