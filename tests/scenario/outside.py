"""A model, a search provider and a site, as real ones on this machine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from openassay.models.evidence import ProviderResult
from tests.fakes.llm_server import FakeLlmServer, FaultSequence
from tests.fakes.model import FakeModel
from tests.fakes.search_api import FakeSearchProvider
from tests.fakes.search_web_formats import SEARXNG
from tests.fakes.web import FakeWeb

GPT = "openai:gpt-4o"
GOAL = "How large is Lake Marrow and why did it shrink?"
PAGE = """<html lang=en><head><title>Survey of Lake Marrow</title></head><body><article><h1>Survey of Lake Marrow</h1>
<p>The survey office has published its report on the lake.</p><p>Lake Marrow covered 412 square kilometres in 2019.</p>
<p>Lake Marrow shrank because a long drought dried up the river Tamsel, which carries most of its water.</p>
<p>The survey office did not detect any leak in the bed of Lake Marrow, although divers looked for one all summer.</p>
</article></body></html>"""
SLOW = 0.1  # seconds each answer of the search takes


@asynccontextmanager
async def outside() -> AsyncIterator[dict[str, Any]]:
    """The settings of whoever is to ask them. The model's first answer is an error; of two pages one is gone. It wants
    OPENAI_API_KEY in the environment."""
    async with (
        FakeWeb() as web,
        FakeSearchProvider(SEARXNG) as search,
        FakeLlmServer(FakeModel(), faults=FaultSequence(["server-error"])) as models,
    ):
        web.add_page("http://*/survey", PAGE)
        at = f"http://127.0.0.1:{web.port}"
        search.found = tuple(ProviderResult(url=f"{at}/{path}", title="Lake Marrow") for path in ("survey", "gone"))
        search.delay = SLOW
        yield {
            "source": "searxng",
            "offline": False,
            "search": {"searxng_url": search.url, "requests_per_minute": {"searxng": 3000}},
            "max_gap_searches": 0,
            "harvest": {"allow_addresses": ["127.0.0.1/32"], "host_pause": 0, "browser": "off"},
            "llm": {"model": GPT, "endpoints": {"openai": f"{models.url}/v1"}},
            "log_level": "info",
        }
