"""A whole run against a slow world: where its time, calls and tokens go.

The fake provider answers over real HTTP in 1.0 s, a search and a page take 0.3 s each; 3 sub-questions with 3 queries
each, 2 rounds. The chain is the longest row of model calls that waited for each other.

Other systems on the same breadth (LLM 1.0 s, search and page 0.3 s): gpt-researcher deep 3x2: 33 calls, 407k prompt
tokens, 22.9 s; open_deep_research: 115 calls, 324k prompt tokens, 19.1 s. Neither checks a claim against its source.
"""

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from assay.bootstrap import open_engine
from assay.export.report import Report
from assay.model.source import Document, Hit, Passage
from assay.model.thread import Options
from assay.ports import DocumentStore
from assay.settings import load
from assay.storage.documents import SqlDocuments
from assay.storage.rows import Rows
from assay.storage.sqlite import SqliteDatabase
from assay.testing import FakeProvider, ProviderCall, ScriptedModel, SeenPrompt, snapshot
from assay.text.passages import passages

LLM, SEARCH, PAGE = 1.0, 0.3, 0.3
CHAIN, CALLS, TOKENS = 10, 40, 160_000  # what must not be passed
QUESTION = "How did the harbour towns of Norland change their ferry traffic between 2010 and 2020, and why?"
HITS = 5
TOWNS = [
    f"{first}{last}"
    for first in "Ald Berg Cor Dal Eid Fjor Gran Hav Ils Jor".split()
    for last in "vik by sund nes".split()
]
TOPICS = ["passengers", "crossings", "electric ferries", "fares", "staff", "subsidies"]


def pages() -> list[Document]:
    """Pages of 6 KB with a few statements of fact each."""
    return [snapshot(_page(town, number), title=f"Ferry traffic of {town}") for number, town in enumerate(TOWNS)]


def _page(town: str, number: int) -> str:
    facts = [
        f"In {year} the ferry traffic of {town} in Norland counted {number * 37 + year + place * 11:,} {topic}. "
        f"The harbour office of {town} explained the change in {topic} by the new timetable and the bridge at {town}."
        for place, topic in enumerate(TOPICS)
        for year in (2010, 2014, 2017, 2020)
    ]
    return "\n\n".join(facts)[:6_000]


class SlowSource:
    """Five pages for every query, other ones for other words; their passages are known once they are fetched."""

    name = "slow"

    def __init__(self, store: DocumentStore, documents: list[Document]) -> None:
        self._store = store
        self._documents = documents
        self.searches = 0

    def is_available(self) -> bool:
        return True

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        self.searches += 1
        await asyncio.sleep(SEARCH)
        found = random.Random(query).sample(self._documents, HITS)
        await asyncio.sleep(PAGE)  # pages are fetched side by side
        for document in found:
            await self._store.put(document)
        places = [(document, passage) for document in found for passage in passages(document.hash, document.text)]
        return [self._hit(query, rank, *place) for rank, place in enumerate(places[:limit], 1)]

    def _hit(self, query: str, rank: int, document: Document, passage: Passage) -> Hit:
        return Hit(
            provider=self.name, query=query, rank=rank, url=document.url, title=document.title, host=document.host,
            document=document.hash, start=passage.start, end=passage.end,
        )  # fmt: skip


def retold(prompt: SeenPrompt) -> dict[str, Any]:
    """A draft in the writer's own words, so that every sentence has to be judged again."""
    draft: dict[str, Any] = json.loads(ScriptedModel()(prompt))
    for sentence in draft["sentences"]:
        sentence["text"] = sentence["text"].replace(" counted ", " had ").replace(" explained ", " put down ")
    return draft


def chain(calls: list[ProviderCall]) -> int:
    """The most calls of which each began after the one before had ended."""
    longest: list[int] = []
    ordered = sorted(calls, key=lambda call: call.started)
    for call in ordered:
        before = [longest[i] for i, other in enumerate(ordered[: len(longest)]) if (other.ended or 0) <= call.started]
        longest.append(1 + max(before, default=0))
    return max(longest, default=0)


async def run(folder: Path) -> tuple[Report, FakeProvider, float]:
    os.environ["OPENAI_API_KEY"] = "sk-arena-not-a-key"
    model = ScriptedModel({"Draft": retold}, questions=3, queries=3, rounds=2)
    async with FakeProvider(model, latency=LLM) as provider:
        settings = load(
            data_dir=folder, max_gap_searches=1, query_variations=3,
            llm={"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}},
        )  # fmt: skip
        with SqliteDatabase(folder / "assay.sqlite3") as database:
            source = SlowSource(SqlDocuments(Rows(database)), pages())
            async with open_engine(settings, sources=lambda options: ([source], {})) as engine:
                began = time.perf_counter()
                started = await engine.start(QUESTION, Options())
                outcome = await engine.wait(started.id)
                seconds = time.perf_counter() - began
        if outcome.report is None:
            sys.exit(f"no report: {outcome.run.error}")
        return outcome.report, provider, seconds


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report, provider, seconds = asyncio.run(run(Path(folder)))
    calls = provider.calls
    prompt = sum(call.prompt_tokens for call in calls)
    judged = [claim for claim in report.claims if claim.verdict and (claim.spans or claim.against or claim.reasons)]
    steps = {form: sum(call.form == form for call in calls) for form in dict.fromkeys(call.form for call in calls)}
    lines = [
        ("critical path", chain(calls), f"<= {CHAIN} latencies"),
        ("model calls", len(calls), f"<= {CALLS}"),
        ("prompt tokens", prompt, f"<= {TOKENS:,}"),
        ("most at once", provider.busiest, ""),
        ("rounds", report.metadata.rounds, "= 2"),
        ("claims verified", f"{len(judged)} of {len(report.claims)}", "all"),
        ("statements checked", f"{report.coverage.checked} of {report.coverage.total}", ""),
        ("spent", f"${report.spend.usd:.4f} (gpt-4o prices)", ""),
        ("seconds", round(seconds, 1), ""),
        ("calls by step", steps, ""),
        ("steps done by", report.metadata.reasoning, ""),
    ]
    for name, value, bound in lines:
        print(f"{name:20} {value!s:40} {bound}")
    held = chain(calls) <= CHAIN and len(calls) <= CALLS and prompt <= TOKENS and len(judged) == len(report.claims)
    if not held or report.metadata.rounds != 2 or not report.claims:
        sys.exit("the arena's bounds were passed")


if __name__ == "__main__":
    main()
