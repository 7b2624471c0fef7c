"""A slow world for anybody's research system: models, a search engine and pages, as servers on this machine.

The model speaks OpenAI's chat completions and takes a second; the search engine speaks SearXNG and Tavily and takes
0.3 s, and so does each page. Whoever asks gets answers of the same kind: OpenAssay's own forms as its script has
them, any
other form filled in, a list of queries where JSON is asked for in words, and else prose that cites the pages in the
prompt. Tools that a model may choose are called in turn, three in a conversation; then it answers.
"""

import json
import random
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple

from openassay.models.evidence import ProviderResult
from tests.fakes.http_server import ServerConnection, ServerRequest
from tests.fakes.llm_api import LlmFormat, ModelPrompt
from tests.fakes.llm_server import FakeLlmServer, LlmServerCall
from tests.fakes.model import FakeModel
from tests.fakes.model_answers import build_instance
from tests.fakes.search_api import FakeSearchProvider
from tests.fakes.search_web_formats import SEARXNG, TAVILY
from tests.fakes.web import FakeWeb

LLM, SEARCH, PAGE = 1.0, 0.3, 0.3  # seconds
QUESTION = "How did the harbour towns of Norland change their ferry traffic between 2010 and 2020, and why?"
HITS, TURNS = 5, 3
CHOSEN = "chosen"  # a tool that the model might have left alone
TOWNS = [
    f"{first}{last}"
    for first in "Ald Berg Cor Dal Eid Fjor Gran Hav Ils Jor".split()
    for last in "vik by sund nes".split()
]
TOPICS = ["passengers", "crossings", "electric ferries", "fares", "staff", "subsidies"]


def texts() -> dict[str, str]:
    """Pages of 6 KB with a few statements of fact each, by title."""
    return {f"Ferry traffic of {town}": _text(town, number) for number, town in enumerate(TOWNS)}


def _text(town: str, number: int) -> str:
    facts = [
        f"In {year} the ferry traffic of {town} in Norland counted {number * 37 + year + place * 11:,} {topic}. "
        f"The harbour office of {town} explained the change in {topic} by the new timetable and the bridge at {town}."
        for place, topic in enumerate(TOPICS)
        for year in (2010, 2014, 2017, 2020)
    ]
    return "\n\n".join(facts)[:6_000]


def retold(prompt: ModelPrompt) -> dict[str, Any]:
    """A draft in the writer's own words, so that every sentence has to be judged again."""
    draft: dict[str, Any] = json.loads(FakeModel()(prompt))
    for sentence in draft["sentences"]:
        sentence["text"] = sentence["text"].replace(" counted ", " had ").replace(" explained ", " put down ")
    return draft


class AnyonesModel:
    def __init__(self) -> None:
        self._script = FakeModel({"Draft": retold}, questions=3, queries=3, rounds=2)

    def __call__(self, prompt: ModelPrompt) -> str:
        if prompt.method == CHOSEN and prompt.tool:
            return json.dumps(build_instance(dict(prompt.schema))).replace(': "text"', f": {json.dumps(QUESTION)}")
        if prompt.schema:
            return self._script(prompt)
        said = f"{prompt.system}\n{prompt.text}"
        if re.search(r"\bjson\b|list of strings", said, re.IGNORECASE):
            return json.dumps([f"Ferry traffic of {topic} in Norland" for topic in TOPICS[:3]])
        return prose(said)


def prose(said: str) -> str:
    """A fact for each of the first pages that the prompt names, with its address."""
    pages = list(dict.fromkeys(re.findall(r"https?://127\.0\.0\.1:\d+/\d+", said)))[:8]
    facts = re.findall(r"In \d{4} the ferry traffic of [^.]+\.", said)[: len(pages)]
    told = [f"{fact[:-1]} ({page})." for fact, page in zip(facts, pages, strict=False)]
    return " ".join(told) or "Ferry traffic grew in most towns."


class OpenProvider(FakeLlmServer):
    """Tools that may be chosen are chosen in turn, until it is time to answer."""

    def _record_call(self, format: LlmFormat, prompt: ModelPrompt, request: ServerRequest) -> LlmServerCall:
        call = super()._record_call(format, prompt, request)
        body = json.loads(request.body)
        tools = [tool["function"] for tool in body.get("tools", ()) if "function" in tool]
        if tools and body.get("tool_choice", "auto") == "auto":
            done = sum(message["role"] == "tool" for message in body["messages"])
            chosen: dict[str, Any] = tools[done % len(tools)] if done < TURNS else {}
            name, schema = chosen.get("name", ""), chosen.get("parameters", {})
            call.prompt = replace(prompt, tool=name, form=name, schema=schema, method=CHOSEN)
        return call


class SlowSearch(FakeSearchProvider):
    """Five pages for every query, other ones for other words."""

    async def _send_answer(self, wire: ServerConnection, request: ServerRequest) -> None:
        format = TAVILY if request.method == "POST" else SEARXNG
        try:
            query = format.parse_query(request).query
        except (KeyError, ValueError) as error:
            await wire.send(self.build_reply(f"not understood: {error}", status=400))
            return
        await wire.send(self.build_reply(format.build_answer(request, random.Random(query).sample(self.found, HITS))))


class World(NamedTuple):
    provider: FakeLlmServer
    search: SlowSearch
    web: FakeWeb

    @property
    def addresses(self) -> dict[str, str]:
        """In the variables that most systems read."""
        openai = f"{self.provider.url}/v1"
        return {
            "OPENAI_BASE_URL": openai, "OPENAI_API_BASE": openai, "OPENAI_API_KEY": "sk-arena-not-a-key",
            "SEARXNG_URL": self.search.url, "SEARX_URL": self.search.url, "TAVILY_BASE_URL": self.search.url,
            "TAVILY_API_KEY": "tvly-arena-not-a-key",
        }  # fmt: skip

    @property
    def pages_read(self) -> int:
        return sum(visit.path != "/robots.txt" for visit in self.web.requests)


@asynccontextmanager
async def slow_world(pace: float = 1.0) -> AsyncIterator[World]:
    """`pace` 2 is twice as slow."""
    provider_of_models = OpenProvider(AnyonesModel(), latency=LLM * pace)
    async with FakeWeb() as web, SlowSearch(SEARXNG) as search, provider_of_models as provider:
        search.delay = SEARCH * pace
        search.found = _served(web, PAGE * pace)
        yield World(provider, search, web)


def _served(web: FakeWeb, delay: float) -> Sequence[ProviderResult]:
    found = []
    for number, (title, text) in enumerate(texts().items()):
        parts = "".join(f"<p>{escape(part)}</p>" for part in text.split("\n\n"))
        body = f"<html lang=en><title>{title}</title><body><article><h1>{title}</h1>{parts}</article></body></html>"
        web.add_page(f"http://*/{number}", body, delay=delay)
        found.append(ProviderResult(url=f"http://127.0.0.1:{web.port}/{number}", title=title, snippet=text[:200]))
    return found
