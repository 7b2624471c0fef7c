"""MCP over HTTP: a real client (the `mcp` package) at a real server."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from openassay.engine.checks import StatementJudgement
from openassay.engine.engine import Engine
from openassay.mcp_server import tools
from openassay.models.evidence import Judgement, Verdict
from openassay.models.user import Scope
from openassay.reasoning.base import JudgementBatch
from openassay.server.app import RunningServer
from openassay.server.runs import wait_for_run
from tests.scenario.server.conftest import Http, Open, token_of

APPLE = "What's happening with Apple?"
TESLA = "What's happening with Tesla?"


@asynccontextmanager
async def connected(server: RunningServer, token: str = "", mode: str = "auto") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def ears() -> tuple[list[tuple[float, str | None]], Any]:
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    return heard, hear


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.requirement("L-01", "X-10")
async def test_a_client_finishes_a_run_and_hears_how_it_goes(serve: Open) -> None:
    server = await serve()
    heard, hear = ears()
    async with connected(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"research", "search", "fetch", "verify", "threads"}
        assert all(tool.output_schema and tool.description and tool.annotations for tool in tools.values())
        assert tools["verify"].annotations.read_only_hint  # type: ignore[union-attr]
        result = await client.call_tool("research", {"question": APPLE, "depth": "quick"}, progress_callback=hear)
        answer: Any = result.structured_content
        assert (answer["status"], answer["usd"]) == ("complete", 0)
        assert "[S1]" in answer["answer"]
        assert answer["sources"][0]["quotes"]
        assert heard[0][1] == "Understanding the question"
        assert [steps for steps, _ in heard] == sorted({steps for steps, _ in heard})

        listed = await called(client, "threads")
        assert [one["thread"] for one in listed["threads"]] == [answer["thread"]]
        shown = await called(client, "threads", thread=answer["thread"])
        assert shown["thread"]["report"]["answer"] == answer["answer"]
        read = await client.read_resource(f"openassay://threads/{answer['thread']}/report")
        assert read.contents[0].text == answer["answer"]  # type: ignore[union-attr]


@pytest.mark.slow
async def test_a_client_of_the_older_protocol_is_served_too(serve: Open) -> None:
    heard, hear = ears()
    async with connected(await serve(), mode="legacy") as client:
        result = await client.call_tool("research", {"question": APPLE, "depth": "quick"}, progress_callback=hear)
        assert not result.is_error
    assert heard


@pytest.mark.slow
async def test_who_does_not_wait_finds_the_answer_later(serve: Open) -> None:
    server = await serve()
    async with connected(server) as client:
        begun = await called(client, "research", question=APPLE, depth="quick", wait_seconds=0.001)
        assert begun["status"] == "running"
    async with connected(server) as client:  # which gives up while it waits
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await client.call_tool("research", {"question": TESLA, "depth": "quick"})
    for thread in await server.service.engine.overview(5):
        [run] = await server.service.engine.threads.runs(thread.id)
        assert (await wait_for_run(server.service, run.id, 60)).status == "done"
    async with connected(server) as client:
        shown = await called(client, "threads", thread=begun["thread"])
        assert shown["thread"]["report"]["status"] == "complete"
        assert len((await called(client, "threads"))["threads"]) == 2


@pytest.mark.slow
@pytest.mark.requirement("W-17")
async def test_only_what_a_search_has_given_is_fetched(serve: Open) -> None:
    server = await serve()
    ann, bob = await token_of(server, "ann"), await token_of(server, "bob")
    async with connected(server, ann) as client:
        found = await called(client, "search", query="Apple stock", limit=2)
        assert len(found["results"]) == 2
        first = found["results"][0]
        assert set(first) == {"id", "title", "url", "snippet", "source"}
        text = await called(client, "fetch", id=first["id"])
        assert text["url"] == first["url"]
        assert first["snippet"][:20] in text["text"]
        for made_up in ("https://example.com/", "http://127.0.0.1/", first["id"][:40], "../x", ""):
            assert "returned to you" in await refused(client, "fetch", id=made_up)
    async with connected(server, bob) as client:
        assert "returned to you" in await refused(client, "fetch", id=first["id"])
        await called(client, "research", question=APPLE, depth="quick")
        assert (await called(client, "fetch", id=first["id"]))["text"] == text["text"], "his own thread rests on it now"


SOURCE = {"text": "In 2023 the company sold 4,200 boats, a third more than the year before.", "source": "Annual report"}


VERDICTS = {
    "In 2023 the company sold 4,200 boats.": ("supported", ""),
    "In 2023 the company sold 5,100 boats.": ("contradicted", "5,100"),
    "In 2023 the company sold 4,200 boats to Norway.": ("not_found", "Norway"),
    "The company did not sell 4,200 boats in 2023.": ("contradicted", ""),
    "The moon is made of green cheese.": ("not_found", ""),
}


@pytest.mark.slow
@pytest.mark.requirement("X-02", "X-03")
async def test_a_statement_is_held_against_passages(serve: Open) -> None:
    async with connected(await serve()) as client:
        judged = {said: await called(client, "verify", statement=said, passages=[SOURCE]) for said in VERDICTS}
    assert {said: one["verdict"] for said, one in judged.items()} == {said: one[0] for said, one in VERDICTS.items()}
    for said, (_, disagreement) in VERDICTS.items():
        assert disagreement in " ".join(line for one in judged[said]["evidence"] for line in one["disagreements"])
        for one in judged[said]["evidence"]:
            assert SOURCE["text"][one["start"] : one["end"]] == one["quote"]


@pytest.mark.slow
@pytest.mark.requirement("X-02")
async def test_a_statement_is_held_against_what_a_thread_has_read(serve: Open) -> None:
    async with connected(await serve()) as client:
        answer = await called(client, "research", question=APPLE, depth="quick")
        quote = answer["sources"][0]["quotes"][0]
        judged = await called(client, "verify", statement=quote, thread=answer["thread"])
        assert judged["verdict"] == "supported"
        assert "give a thread or passages to check it against" in await refused(client, "verify", statement=quote)


class Doubter:
    """A model that finds nothing anywhere."""

    async def judge(self, statements: Sequence[tuple[str, Sequence[str]]]) -> JudgementBatch:
        found = [Judgement(verdict=Verdict.NOT_FOUND, score=0.9) for _ in statements]
        return JudgementBatch(judgements=tuple(found))


@pytest.mark.slow
@pytest.mark.requirement("X-02", "W-12")
async def test_a_statement_is_judged_by_the_model_where_it_is_asked_for(
    serve: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"statement": "In 2023 the company sold 4,200 boats.", "passages": [SOURCE]}
    server = await serve()
    ann, reader = await token_of(server, "ann"), await token_of(server, "ann", Scope.READ)
    async with connected(server, ann) as client:
        plain = await called(client, "verify", **given)
        without = await called(client, "verify", **given, model=True)
        monkeypatch.setattr(Engine, "open_model", lambda self, user: Doubter())
        asked = await called(client, "verify", **given, model=True)
    async with connected(server, reader) as client:
        assert "may not write" in await refused(client, "verify", **given, model=True)
    assert (plain["verdict"], plain["notices"]) == ("supported", [])
    assert without["verdict"] == "supported"
    assert without["notices"] == [tools.NO_MODEL]
    assert (asked["verdict"], asked["judged_by"]) == ("not_found", tools.JUDGED_BY_MODEL)


@pytest.mark.slow
async def test_only_so_much_is_verified_at_once(serve: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at_work, most, two_refused = 0, 0, asyncio.Event()

    async def judge(*_: object) -> StatementJudgement:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.wait_for(two_refused.wait(), 30)
        at_work -= 1
        return StatementJudgement(Verdict.NOT_FOUND, confidence=0.0, reasons=[], evidence=[])

    monkeypatch.setattr(tools, "judge_statement", judge)
    server = await serve()
    ann, bob = await token_of(server, "ann"), await token_of(server, "bob")
    async with connected(server, ann) as hers, connected(server, bob) as his:
        refusals = 0

        async def verify(client: Client) -> bool:
            nonlocal refusals
            given = {"statement": "The kiln is hot.", "passages": [SOURCE]}
            failed = (await client.call_tool("verify", given)).is_error or False
            refusals += failed
            if refusals == 2:
                two_refused.set()
            return failed

        failed = await asyncio.gather(*(verify(hers) for _ in range(12)), verify(his))
        assert (sum(failed), failed[-1]) == (2, False)
        assert most == tools.MAX_CHECKS
        too_much = [{**SOURCE, "text": "x" * 90_000}] * 5
        assert "400,000" in await refused(hers, "verify", statement="The kiln is hot.", passages=too_much)


@pytest.mark.slow
@pytest.mark.requirement("W-12")
async def test_a_token_says_who_acts_and_what_they_may_do(serve: Open, http: Http) -> None:
    server = await serve()
    ann, bob = await token_of(server, "ann"), await token_of(server, "bob")
    reader = await token_of(server, "ann", Scope.READ)
    async with connected(server, ann) as client:
        answer = await called(client, "research", question=APPLE, depth="quick")
    async with connected(server, bob) as client:
        assert (await called(client, "threads"))["threads"] == []
        assert "no thread" in await refused(client, "threads", thread=answer["thread"])
        assert "no thread" in await refused(client, "research", question=APPLE, thread=answer["thread"])
        assert "no thread" in await refused(client, "verify", statement="x is y", thread=answer["thread"])
        with pytest.raises(MCPError, match="no thread"):
            await client.read_resource(f"openassay://threads/{answer['thread']}/report")
    async with connected(server, reader) as client:
        assert (await called(client, "threads"))["threads"]
        assert "may not write" in await refused(client, "research", question=APPLE)
        assert "may not write" in await refused(client, "search", query="Apple")
    nobody = await http(server).post("/mcp", json={})
    assert nobody.status_code == 401
    assert nobody.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.slow
async def test_files_of_the_server_cannot_be_named(serve: Open) -> None:
    async with connected(await serve()) as client:
        assert "no document" in await refused(client, "research", question=APPLE, documents=["/etc/passwd"])


@pytest.mark.slow
async def test_a_page_led_here_under_another_name_is_turned_away(serve: Open, http: Http) -> None:
    client = http(await serve())
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accepts = {"Accept": "application/json, text/event-stream"}
    for headers, status in (({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403), ({}, 200)):
        answer = await client.post("/mcp", json=asked, headers={**accepts, **headers})
        assert answer.status_code == status, headers


MALFORMED = (b"", b"{", b"[]", b"nul\x00l", b'{"jsonrpc":"2.0","id":"\\ud800","method":"x"}', b"[" * 5000)


@pytest.mark.slow
async def test_what_is_no_request_is_refused(serve: Open, http: Http) -> None:
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    client = http(await serve())
    versions: tuple[dict[str, str], ...] = ({}, {"MCP-Protocol-Version": "2026-07-28"})
    for body in MALFORMED:
        for version in versions:
            answer = await client.post("/mcp", content=body, headers={**headers, **version})
            assert 400 <= answer.status_code < 500, (body[:50], answer.text)
