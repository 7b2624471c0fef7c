"""The arena: whoever asks its servers gets an answer, and citations are counted as they are written."""

import json
from typing import Any

import httpx2
import pytest

from benchmarks.arena import chain, cited
from benchmarks.slow_world import QUESTION, TURNS, World, slow_world

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": fields}}}
    for name, fields in (("search", {"query": {"type": "string"}}), ("think", {"thought": {"type": "string"}}))
]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Ferries grew by a third in 2020. ✓ [[S1]](#s1) Nobody knows why they did so.", (1, 2)),
        ("Ferries grew by a third in 2020 [1]. Fares fell by a third, too [2][3].", (2, 2)),
        ("Ferries grew by a third in 2020 (https://a.example/1). So it is said by many.", (1, 2)),
        ("# A heading of five words here\n\n| a | table of five words | here |\n\n- [1] a list of five words", (0, 0)),
        ("Ferries grew by a third in 2020 [1].\n\n## References\n\nA page of many words on ferries.", (1, 1)),
    ],
)
def test_citations_are_counted_by_sentence(said: str, found: tuple[int, int]) -> None:
    assert cited(said) == found


async def completed(world: World, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
        body = {"model": "gpt-4o", "messages": messages, **more}
        answer = await client.post(f"{world.addresses['OPENAI_BASE_URL']}/chat/completions", json=body)
        message: dict[str, Any] = json.loads(answer.text)["choices"][0]["message"]
        return message


@pytest.mark.slow
async def test_a_system_with_tools_of_its_own_is_led_to_an_answer() -> None:
    async with slow_world(pace=0) as world:
        messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
        called = []
        for _ in range(TURNS):
            message = await completed(world, messages, tools=TOOLS)
            (call,) = message["tool_calls"]
            called.append((call["function"]["name"], json.loads(call["function"]["arguments"])))
            messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "found"}]
        assert called == [
            ("search", {"query": QUESTION}),
            ("think", {"thought": QUESTION}),
            ("search", {"query": QUESTION}),
        ]
        assert "tool_calls" not in (last := await completed(world, messages, tools=TOOLS))
        assert last["content"]
        assert len(world.provider.calls) == chain(world.provider.calls) == TURNS + 1


async def test_search_and_pages_are_there_for_whoever_speaks_searxng_or_tavily() -> None:
    async with slow_world(pace=0) as world, httpx2.AsyncClient(trust_env=False, timeout=30) as client:
        found = json.loads((await client.get(f"{world.search.url}/search?q=ferries&format=json")).text)["results"]
        posted = await client.post(f"{world.search.url}/search", json={"query": "ferries"})
        assert [one["url"] for one in json.loads(posted.text)["results"]] == [one["url"] for one in found]
        assert (await client.get(f"{world.search.url}/search?q=ferries")).status_code == 400
        page = await client.get(found[0]["url"])
        assert "the ferry traffic of" in page.text
        assert world.pages_read == 1
        said = f"{page.text}\n{found[0]['url']}"
        answer = (await completed(world, [{"role": "user", "content": said}]))["content"]
        assert found[0]["url"] in answer
        assert cited(answer) == (1, 1)
