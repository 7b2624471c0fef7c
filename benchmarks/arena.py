"""A whole run against a slow world: where its time, calls and tokens go. For OpenAssay, and for anybody's system.

    python benchmarks/arena.py                              OpenAssay's engine, held to bounds
    python benchmarks/arena.py --openassay                      the command `openassay research`, as any other system
    python benchmarks/arena.py --command "CMD {question}"   a command of another system
    python benchmarks/arena.py --url http://HOST/v1         a server that answers OpenAI's chat completions

The provider of models answers over real HTTP in 1.0 s, a search and a page take 0.3 s each. Another system gets the
addresses in OPENAI_BASE_URL, SEARXNG_URL, TAVILY_BASE_URL and as {openai}, {search}; a server has to be started with
the addresses that are printed, and is asked as soon as it can be reached. What it says on stdout is looked through for
citations. The chain is the longest row of model calls that waited for each other.

OpenAssay alone is asked 3 sub-questions with 3 queries each, in 2 rounds. What other systems took on the same
breadth is
beside it in docs/quality.md; neither of them checks a claim against its source.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import httpx2

from benchmarks.figures import keep
from benchmarks.slow_world import HITS, LLM, PAGE, QUESTION, SEARCH, World, retold, slow_world, texts
from openassay.bootstrap import open_engine
from openassay.export import Report
from openassay.models.evidence import Document, Hit, Passage
from openassay.models.thread import ResearchOptions
from openassay.protocols import DocumentStore
from openassay.settings import load
from openassay.storage.documents import SqlDocuments
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from openassay.testing import make_document
from openassay.text.sentences import split_passages
from tests.fakes.llm_server import FakeLlmServer, LlmServerCall
from tests.fakes.model import FakeModel

CHAIN, CALLS, TOKENS = 10, 40, 160_000  # what must not be passed
PROMPT_USD, ANSWER_USD = 2.5, 10.0  # of gpt-4o, a million tokens
# Of gpt-researcher 0.16 and open_deep_research: calls, the most at once, prompt tokens, seconds, measured earlier.
OTHERS = {
    "gpt-researcher, deep 3x2": (33, 3, "407k", "22.9"),
    "open_deep_research, 3 researchers, 2 searches, 3 queries": (115, 45, "324k", "19.1"),
}
PATIENCE = 900.0  # seconds for a system to be reached, and to answer
OURS = (
    f"{shlex.quote(sys.executable)} -m openassay research {{question}} "
    "--source searxng --model openai:gpt-4o --yes --quiet"
)


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
        places = [(document, passage) for document in found for passage in split_passages(document.hash, document.text)]
        return [self._hit(query, rank, *place) for rank, place in enumerate(places[:limit], 1)]

    def _hit(self, query: str, rank: int, document: Document, passage: Passage) -> Hit:
        return Hit(
            provider=self.name, query=query, rank=rank, url=document.url, title=document.title, host=document.host,
            document=document.hash, start=passage.start, end=passage.end,
        )  # fmt: skip


def chain(calls: list[LlmServerCall]) -> int:
    """The most calls of which each began after the one before had ended."""
    longest: list[int] = []
    ordered = sorted(calls, key=lambda call: call.started)
    for call in ordered:
        before = [longest[i] for i, other in enumerate(ordered[: len(longest)]) if (other.ended or 0) <= call.started]
        longest.append(1 + max(before, default=0))
    return max(longest, default=0)


async def run(folder: Path) -> tuple[Report, FakeLlmServer, float]:
    os.environ["OPENAI_API_KEY"] = "sk-arena-not-a-key"
    model = FakeModel({"Draft": retold}, questions=3, queries=3, rounds=2)
    async with FakeLlmServer(model, latency=LLM) as provider:
        settings = load(
            data_dir=folder, max_gap_searches=1, query_variations=3,
            llm={"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}},
        )  # fmt: skip
        with SqliteDatabase(folder / "openassay.sqlite3") as database:
            documents = [make_document(text, title=title) for title, text in texts().items()]
            source = SlowSource(SqlDocuments(Rows(database)), documents)
            async with open_engine(settings, sources=lambda options: ([source], {})) as engine:
                began = time.perf_counter()
                started = await engine.start(QUESTION, ResearchOptions())
                outcome = await engine.wait(started.id)
                seconds = time.perf_counter() - began
        if outcome.report is None:
            sys.exit(f"no report: {outcome.run.error}")
        return outcome.report, provider, seconds


def held() -> None:
    """OpenAssay's engine alone, held to bounds."""
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
        ("most at once", provider.max_concurrency, ""),
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
    keep(
        "arena", ("system", "model calls", "most at once", "prompt tokens", "seconds"),
        [("**OpenAssay**", len(calls), provider.max_concurrency, f"{prompt / 1000:.0f}k", f"{seconds:.1f}"),
         *((name, *took) for name, took in OTHERS.items())],
        f"OpenAssay's longest row of calls that waited for each other was {chain(calls)}; {len(judged)} of "
        f"{len(report.claims)} claims were verified. The others were measured earlier in the same world.",
    )  # fmt: skip
    within = chain(calls) <= CHAIN and len(calls) <= CALLS and prompt <= TOKENS and len(judged) == len(report.claims)
    if not within or report.metadata.rounds != 2 or not report.claims:
        sys.exit("the arena's bounds were passed")


# Anybody's system ------------------------------------------------------------------------------------


class Result(NamedTuple):
    said: str
    seconds: float


async def commanded(world: World, command: str, extra: dict[str, str]) -> Result:
    words = [
        word.format(question=QUESTION, openai=world.addresses["OPENAI_BASE_URL"], search=world.search.url)
        for word in shlex.split(command)
    ]
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *words, env={**os.environ, **world.addresses, **extra}, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    seconds = time.perf_counter() - began
    if process.returncode:
        print(f"the command ended with {process.returncode}", file=sys.stderr)
    return Result(out.decode(errors="replace"), seconds)


async def asked(world: World, url: str) -> Result:
    print("Start the system with these addresses; it is asked as soon as it can be reached:")
    for name, value in world.addresses.items():
        print(f"  {name}={value}", flush=True)
    body = {"model": "arena", "messages": [{"role": "user", "content": QUESTION}]}
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
        await _reached(client, url)
        began = time.perf_counter()
        answer = await client.post(f"{url.rstrip('/')}/chat/completions", json=body)
        seconds = time.perf_counter() - began
    if answer.status_code != 200:
        sys.exit(f"{url} answered {answer.status_code}: {answer.text[:300]}")
    return Result(str(json.loads(answer.text)["choices"][0]["message"]["content"]), seconds)


async def _reached(client: httpx2.AsyncClient, url: str) -> None:
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            await client.get(url)
        except httpx2.ConnectError:
            if time.monotonic() > ends:
                sys.exit(f"nobody answers at {url}")
            await asyncio.sleep(1)
        else:
            return


_CITATION = r"(?:[✓⚠]+|\[+\^?S?\d+\]+(?:\([^)\s]*\))?|\(?https?://\S+)"
_AFTER = re.compile(rf"([.!?])((?:\s*{_CITATION})+)")


def cited(said: str) -> tuple[int, int]:
    """Sentences of the answer with a citation, as [1], [S1] or an address, and all of them: without headings, tables,
    lists and what follows the heading of the references. A citation behind a full stop belongs to what is before it."""
    body = re.split(r"(?mi)^#+ *(?:references|sources|bibliography|limitations)\b", said)[0]
    prose = "\n".join(line for line in body.splitlines() if not re.match(r"\s*[#|*-]", line))
    sentences = re.split(r"(?<=[.!?])\s+|\n\n", _AFTER.sub(r"\2\1", prose))
    sentences = [text for text in sentences if len(text.split()) >= 5]
    return sum(bool(re.search(r"\[\^?S?\d+\]|https?://", text)) for text in sentences), len(sentences)


def told(world: World, result: Result) -> None:
    calls = world.provider.calls
    prompt, answers = sum(call.prompt_tokens for call in calls), sum(call.completion_tokens for call in calls)
    with_citation, sentences = cited(result.said)
    lines = {
        "seconds": f"{result.seconds:.1f}",
        "model calls": f"{len(calls)}, {world.provider.max_concurrency} at once at the most",
        "critical path": f"{chain(calls)} latencies",
        "tokens": f"{prompt:,} in prompts, {answers:,} in answers",
        "at gpt-4o prices": f"${(prompt * PROMPT_USD + answers * ANSWER_USD) / 1e6:.4f}",
        "searches, pages": f"{len(world.search.seen)}, {world.pages_read}",
        "words": f"{len(result.said.split())}",
        "sentences cited": f"{with_citation} of {sentences}",
    }
    for name, value in lines.items():
        print(f"{name:20} {value}")
    if not calls:
        sys.exit("the system asked no model here: does it read OPENAI_BASE_URL?")


async def contest(command: str | None, url: str | None, *, ours: bool, pace: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with slow_world(pace) as world:
            extra = {
                "OPENASSAY_DATA_DIR": folder, "OPENASSAY_SEARCH__SEARXNG_URL": world.search.url,
                "OPENASSAY_HARVEST__ALLOW_ADDRESSES": '["127.0.0.1/32"]', "OPENASSAY_HARVEST__BROWSER": "off",
                "OPENASSAY_HARVEST__HOST_PAUSE": "0", "OPENASSAY_HARVEST__AT_ONCE_PER_HOST": "16",
                "OPENASSAY_LLM__ENDPOINTS": json.dumps({"openai": world.addresses["OPENAI_BASE_URL"]}),
                "OPENASSAY_SEARCH__REQUESTS_PER_MINUTE": '{"searxng": 6000}',
            }  # fmt: skip
            if url is not None:
                result = await asked(world, url)
            else:
                result = await commanded(world, command or OURS, extra if ours else {})
        told(world, result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    system = parser.add_mutually_exclusive_group()
    system.add_argument("--openassay", action="store_true", help="the command of OpenAssay")
    system.add_argument("--command", help="a command; {question} stands for the question")
    system.add_argument("--url", help="of a server that answers POST URL/chat/completions")
    parser.add_argument("--pace", type=float, default=1.0, help="2 makes the world twice as slow, for these systems")
    given = parser.parse_args()
    if given.openassay or given.command or given.url:
        asyncio.run(contest(given.command, given.url, ours=given.openassay, pace=given.pace))
    else:
        held()


if __name__ == "__main__":
    main()
