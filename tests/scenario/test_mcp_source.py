"""MCP servers as sources: real ones, as programs and over HTTP, asked in real runs."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ResourceLink, TextContent

from openassay.bootstrap import open_engine, open_resources
from openassay.cli.sources import describe_sources
from openassay.engine.engine import RunOutcome
from openassay.errors import ConfigurationError, SourceError, UsageError
from openassay.models.thread import ResearchOptions
from openassay.protocols import RemoteSource
from openassay.search.mcp import normalise_results, read_results, read_text
from openassay.settings import load

QUESTION = "How deep is Lake Marrow?"
DEEP = "Lake Marrow is 212 metres deep at its deepest point, which the survey of 2019 measured by sonar."
NOTES = f"""
import os, sys
from mcp.server import MCPServer
server = MCPServer("notes", log_level="ERROR")
open(sys.argv[1], "a").write(f"{{os.getpid()}} {{sorted(k for k in os.environ if 'KEY' in k)}}\\n")
@server.tool()
def search(query: str, limit: int = 10) -> dict[str, list[dict[str, str]]]:
    open(sys.argv[1] + ".asked", "a").write(f"{{limit}} {{query}}\\n")
    if "crash" in sys.argv: os._exit(3)
    return {{"results": [{{"id": "n 1", "title": "Lake Marrow"}}, {{"id": "n2", "title": "Nothing"}}]}}
@server.tool()
def fetch(id: str) -> dict[str, str]:
    return {{"id": id, "text": {DEEP!r} if id == "n 1" else ""}}
server.run()
"""


def notes(folder: Path, *arguments: str) -> dict[str, Any]:
    """The settings of a server in a process of its own, which says in a file that it was there."""
    program = folder / "notes.py"
    program.write_text(NOTES, encoding="utf-8")
    return {"command": (sys.executable, str(program), str(folder / "log"), *arguments)}


def settings(folder: Path, **servers: Any) -> Any:
    return load(data_dir=folder / "data", depth="quick", offline=False, search={"mcp": servers})


async def outcome(folder: Path, options: ResearchOptions, **servers: Any) -> tuple[RunOutcome, list[str]]:
    async with open_engine(settings(folder, **servers)) as engine:
        run = await engine.start(QUESTION, options)
        done = await engine.wait(run.id)
        errors = [str(event.data["message"]) async for event in engine.events(run.id) if event.kind == "error"]
    return done, errors


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.requirement("C-07", "W-07")
async def test_a_program_is_asked_for_what_it_has_and_ended_with_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-secret")
    said = {**notes(tmp_path), "env": {"NOTES_API_KEY": "its-own"}}
    done, errors = await outcome(tmp_path, ResearchOptions(source="notes"), notes=said)

    assert done.report
    assert not errors
    [card] = done.report.sources
    assert (card.url, card.title, card.host, card.kind) == ("mcp://notes/n%201", "Lake Marrow", "notes", "web")
    assert "212 metres" in done.report.markdown
    started = (tmp_path / "log").read_text().splitlines()
    assert len(started) == 1, "one process for all queries"
    process, _, keys = started[0].partition(" ")
    assert keys == "['NOTES_API_KEY']", "a server is told no key of ours"
    assert not is_alive(int(process))


@pytest.mark.slow
@pytest.mark.requirement("C-07", "S-05")
async def test_a_server_that_dies_is_told_of_and_the_run_goes_on(tmp_path: Path) -> None:
    """Beside the demo data, which know of no lake: what was asked is answered with what there is."""
    options = ResearchOptions(source="notes,demo")
    done, errors = await outcome(tmp_path, options, notes=notes(tmp_path, "crash"))

    assert done.report
    assert done.report.status == "no_data"
    assert "notes could not be reached" in errors
    processes = [int(line.split()[0]) for line in (tmp_path / "log").read_text().splitlines()]
    assert len(processes) > 1, "it is started again for another try"
    assert not any(map(is_alive, processes))


async def test_a_program_that_is_not_there_is_not_reachable(tmp_path: Path) -> None:
    async with open_resources(settings(tmp_path, gone={"command": ("no-such-program",)})) as world:
        [source] = [one for one in world.sources.list_sources() if one.name == "gone"]
        assert isinstance(source, RemoteSource)
        assert source.is_available()
        assert not source.is_reachable()
        with pytest.raises(SourceError, match="gone could not be reached"):
            await source.search("anything", limit=3)


@pytest.mark.requirement("C-07")
async def test_it_is_listed_and_private_documents_keep_it_out(tmp_path: Path) -> None:
    known = settings(tmp_path, notes={**notes(tmp_path), "usd_per_request": 0.01})
    [listed] = [row for row in await describe_sources(known) if row["name"] == "notes"]
    assert (listed["available"], listed["remote"], listed["types"], listed["usd"]) == (True, True, ["web"], 0.01)

    (tmp_path / "own.txt").write_text("Lake Marrow is cold.", encoding="utf-8")
    with pytest.raises(UsageError, match="notes would receive queries about your documents"):
        await outcome(
            tmp_path, ResearchOptions(source="notes", docs=(str(tmp_path / "own.txt"),)), notes=notes(tmp_path)
        )
    done, _ = await outcome(tmp_path, ResearchOptions(docs=(str(tmp_path / "own.txt"),)), notes=notes(tmp_path))
    assert done.run.options.sources == ("documents",)
    assert not (tmp_path / "log").exists(), "it was not even started"


@pytest.mark.parametrize("name", ["tavily", "documents", "auto"])
async def test_a_server_does_not_take_the_name_of_another_source(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"search.mcp: {name}"):
        async with open_resources(settings(tmp_path, **{name: notes(tmp_path)})):
            pass


@asynccontextmanager
async def served(server: MCPServer) -> AsyncIterator[str]:
    app = server.streamable_http_app()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
        task = asyncio.create_task(running.serve([listening]))
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        running.should_exit = True
        await task


@pytest.mark.requirement("W-07", "W-15")
async def test_over_http_what_it_finds_is_kept_and_paid_for_once(tmp_path: Path) -> None:
    asked, tokens = [], set()
    server = MCPServer("wiki", log_level="ERROR")

    @server.tool()
    def look(query: str, max_results: int, context: Context) -> str:
        asked.append((query, max_results))
        tokens.add((context.headers or {}).get("authorization"))
        return json.dumps([{"title": "Marrow", "url": "https://wiki.example/marrow", "text": DEEP}])

    async with served(server) as url:
        said = {"wiki": {"url": url, "tool": "look", "fetch": None, "kind": "academic", "usd_per_request": 0.01,
                         "token": "wiki-token"}}  # fmt: skip
        async with open_resources(settings(tmp_path, **said)) as world:
            [source] = [one for one in world.sources.list_sources() if one.name == "wiki"]
            assert isinstance(source, RemoteSource)
            assert source.types == ("academic",)
            assert source.is_reachable()
            [hit] = await source.search(QUESTION, limit=7)
            assert (hit.url, hit.host, hit.kind, hit.provider) == (
                "https://wiki.example/marrow", "wiki.example", "academic", "wiki"
            )  # fmt: skip
            assert (hit.snippet, hit.document) == (DEEP, None), "a page like any other, to be fetched"
            await source.search(QUESTION, limit=7)
    assert asked == [(QUESTION, 7)]
    assert tokens == {"Bearer wiki-token"}


async def test_a_tool_it_does_not_have_is_named_with_those_it_has(tmp_path: Path) -> None:
    server = MCPServer("wiki", log_level="ERROR")
    server.add_tool(lambda topic: topic, name="lookup")
    async with served(server) as url, open_resources(settings(tmp_path, wiki={"url": url})) as world:
        [source] = [one for one in world.sources.list_sources() if one.name == "wiki"]
        with pytest.raises(SourceError, match="wiki has no tool called 'search'") as caught:
            await source.search("anything", limit=3)
    assert "lookup" in caught.value.help


# How servers answer


def answer(*blocks: Any, structured: Any = None) -> CallToolResult:
    return CallToolResult(content=list(blocks), structured_content=structured)


def text(said: str) -> TextContent:
    return TextContent(type="text", text=said)


def given(**structured: Any) -> CallToolResult:
    return answer(structured=structured)


@pytest.mark.requirement("W-17")
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (given(results=[{"id": 7, "title": "T", "text": "A fact."}]), [("mcp://wiki/7", "T", "A fact.")]),
        (given(result=[{"name": "T", "link": "https://a.example/x"}]), [("https://a.example/x", "T", "")]),
        (answer(text('[{"title": "T", "content": "A\\u200b fact."}]')), [("mcp://wiki/", "T", "A fact.")]),
        (answer(text("# Head\nA text."), text("Another.")),
         [("mcp://wiki/", "Head", "# Head\nA text."), ("mcp://wiki/", "Another.", "Another.")]),
        (answer(text('{"results": "no list"}')), [("mcp://wiki/", "no list", "no list")]),
        (answer(text('{"results": [1, null, "said", {"title": []}]}')), [("mcp://wiki/", "said", "said")]),
        (answer(ResourceLink(type="resource_link", name="N", uri="https://a.example/y")),
         [("https://a.example/y", "N", "")]),
        (given(results=[{"url": "file:///etc/passwd", "title": "T"}]), []),
        (given(results=[{"url": "https://a.example/\x00", "title": "T", "text": "x\ud800"}]),
         [("mcp://wiki/", "T", "x\ufffd")]),
        (given(results=[]), []),
        (answer(), []),
    ],
)  # fmt: skip
def test_answers_of_many_shapes_are_understood(said: CallToolResult, expected: list[tuple[str, str, str]]) -> None:
    read = list(normalise_results(read_results(said), "wiki"))
    assert [(one.title, one.text) for one in read] == [(title, text) for _, title, text in expected]
    assert all(one.url.startswith(url) for one, (url, _, _) in zip(read, expected, strict=True))


@pytest.mark.parametrize(
    "said",
    [
        given(id="1", text="Whole."),
        given(result={"id": "1", "text": "Whole."}),
        answer(text('{"id": "1", "text": "Whole."}')),
        answer(text("Whole.")),
    ],
)
def test_what_a_fetch_gives_is_its_text(said: CallToolResult) -> None:
    assert read_text(said) == "Whole."
