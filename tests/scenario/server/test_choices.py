"""What can be chosen when asking, and the graph that does the work."""

import json
import socket
from pathlib import Path
from typing import Any, get_args

import pytest

from openassay import graph
from openassay.errors import ConfigurationError
from openassay.models.spend import ModelRole
from openassay.server.runs import refuse_local_model
from openassay.settings import load
from tests.scenario.server.conftest import Http, Open

KEY = "tvly-not-a-key-of-anybody"


@pytest.mark.requirement("W-11", "W-12")
async def test_choices_are_those_of_the_settings_and_nothing_secret_is_told(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = socket.getaddrinfo

    def nobody(host: Any, *args: Any, **more: Any) -> Any:
        assert host in ("127.0.0.1", b"127.0.0.1", None), "nobody is asked"
        return real(host, *args, **more)

    monkeypatch.setenv("TAVILY_API_KEY", KEY)
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    search = {"without": ["wikipedia"]}
    given = {"max_gap_searches": 0, "target_length": 900, "budget": {"usd": 0.5}, "search": search, "offline": False}
    client = http(await serve(depth="quick", server={"upload_mb": 3, "uploads": 7, "share_days": 2}, **given))
    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    answer = await client.get("/api/choices")
    told = answer.json()
    about = {one["name"]: one["about"] for one in told["depths"]}
    assert list(about) == ["quick", "standard", "comprehensive"]
    assert about["quick"] == "An answer of up to 220 words: one sub-question, one round of searching the web."
    assert about["comprehensive"].startswith("A report of up to 900 words: up to 7 sub-questions, one round")
    assert (told["styles"], told["modes"]) == (["academic", "technical", "executive"], ["auto", "plan"])
    assert told["defaults"] == {
        "depth": "quick", "mode": "auto", "source": "demo", "style": "academic", "words": 900, "usd": 0.5,
        "model": "embedded",
    }  # fmt: skip
    sources = {one["name"]: one for one in told["sources"]}
    assert (sources["tavily"]["available"], sources["demo"]["kind"]) == (True, "own")
    assert sources["brave"]["reason"] == "needs BRAVE_API_KEY"
    assert sources["wikipedia"]["reason"] == "left out by the settings"
    assert all(bool(one["reason"]) is not one["available"] for one in sources.values())
    assert (told["files"]["maxMb"], told["files"]["most"], ".pdf" in told["files"]["suffixes"]) == (3, 7, True)
    assert (told["words"], told["longestQuestion"], told["shareDays"]) == ([50, 20_000], 2000, 2)
    assert KEY not in answer.text
    assert str(tmp_path) not in answer.text


async def test_of_a_model_that_is_a_file_only_the_name_is_told(serve: Open, http: Http, tmp_path: Path) -> None:
    model = tmp_path / "private place" / "small.gguf"
    model.parent.mkdir()
    model.write_bytes(b"GGUF")
    client = http(await serve(llm={"model": f"local:{model}"}, offline=True))
    answer = await client.get("/api/choices")
    assert answer.json()["defaults"]["model"] in ("local:small.gguf", None), "none where nothing can run it"
    assert "private" not in answer.text
    remote = [one for one in answer.json()["sources"] if one["kind"] != "own"]
    assert {(one["available"], one["reason"]) for one in remote} == {(False, "offline is set")}


@pytest.mark.requirement("W-11")
async def test_the_graph_that_is_shown_is_the_one_that_works(serve: Open, http: Http) -> None:
    client = http(await serve())
    told = (await client.get("/api/graph")).json()
    status = {node["name"]: node["status"] for node in told["nodes"]}
    assert status == {**{name: one.value for name, one in graph.STATUS.items()}, "__start__": None, "__end__": None}
    assert {"from": "write", "to": "review", "conditional": False} in told["edges"]
    assert {"from": "review", "to": "write", "conditional": True} in told["edges"]
    assert {end for edge in told["edges"] for end in (edge["from"], edge["to"])} == set(status)
    assert len({json.dumps(edge) for edge in told["edges"]}) == len(told["edges"])


@pytest.mark.parametrize("role", get_args(ModelRole))
def test_a_model_in_a_file_is_offered_where_any_role_has_it(role: str) -> None:
    refuse_local_model("local:small.gguf", load(**{f"{role}_model": "local:small.gguf"}))
    with pytest.raises(ConfigurationError):
        refuse_local_model("local:other.gguf", load(**{f"{role}_model": "local:small.gguf"}))
