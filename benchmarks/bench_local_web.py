"""Does research on the web cite the primary source, and the newest figure, first? On a local web of real pages.

    SITE_CLONES=folder python benchmarks/bench_local_web.py            all questions, by half
    SITE_CLONES=folder python benchmarks/bench_local_web.py --half 1   those that may be looked at, with the reports

The folder holds clones of the repositories in benchmarks/site_pages.py, which says how to get them: some 1,850
pages of 42 hosts. Among them are families of ten pages for each of the 20 facts of benchmarks/data/local_web: a primary
source, copies, a retelling, pages written to be found, older figures, a paywall and a list. A search provider ranks all
of them by BM25 and answers in Tavily's documented format over HTTP; it does not obey hosts and dates, so that what is
obeyed is OpenAssay's doing. The embedded reasoner asks at standard depth.

The facts are in halves by a hash of their id: rules were made looking at half 1, and half 0 was only ever counted.
"""

import argparse
import asyncio
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.figures import keep
from benchmarks.site_pages import read_site_pages
from openassay.bootstrap import open_engine
from openassay.export.markdown import render_markdown
from openassay.models.thread import LOCAL, ResearchOptions
from openassay.models.user import Preferences
from openassay.settings import load
from tests.fakes.local_web import Fact, LocalWeb, iter_families, make_question, serve_local_web
from tests.fakes.local_web_report import Judged, judge_report

FACTS = Path(__file__).parent / "data" / "local_web" / "facts.jsonl"


def load_facts() -> list[Fact]:
    return [Fact.from_json(json.loads(line)) for line in FACTS.read_text(encoding="utf-8").splitlines()]


def half_of(fact: Fact) -> int:
    return int(hashlib.sha256(fact.id.encode()).hexdigest(), 16) % 2


async def ask(fact: Fact, web: LocalWeb, *, show: bool) -> Judged:
    """Ask one question in a data folder of its own, so that nothing is remembered from another."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load(data_dir=Path(folder), **web.settings)
        async with open_engine(settings) as engine:
            await engine.memory.set_preferences(LOCAL, Preferences(avoid=fact.deny))
            run = await engine.start(make_question(fact), ResearchOptions(source="tavily"))
            outcome = await engine.wait(run.id)
    if outcome.report is None:
        sys.exit(f"{fact.id}: no report: {outcome.run.error}")
    if show:
        print(render_markdown(outcome.report))
    return judge_report(outcome.report, fact, web)


async def measure(clones: Path, half: int | None, only: Sequence[str]) -> None:
    os.environ["TAVILY_API_KEY"] = "tvly-local-not-a-key"
    facts = load_facts()
    real = read_site_pages(clones)
    families = list(iter_families(facts, datetime.now(UTC).date()))
    hosts = {page.host for page in real}
    print(f"{len(real)} real pages of {len(hosts)} hosts and {len(families)} pages of families")
    judged: dict[str, Judged] = {}
    async with serve_local_web([*real, *families], careless=True) as web:
        for fact in facts:
            if half not in (None, half_of(fact)) or (only and fact.id not in only):
                continue
            began = time.perf_counter()
            judged[fact.id] = found = await ask(fact, web, show=half == 1)
            seconds = time.perf_counter() - began
            # Of the half that is told only the counts are printed.
            line = describe(found, words=half_of(fact) == 1)
            print(f"{fact.id} (half {half_of(fact)}), {seconds:.0f} s: {line}", flush=True)
    halves = [[judged[fact.id] for fact in facts if fact.id in judged and half_of(fact) == part] for part in (1, 0)]
    columns = ["", "looked at", "told"]
    rows = [[name, *(count(found) for found in halves)] for name, count in COUNTS.items()]
    for row in rows:
        print("  ".join(map(str, row)))
    if half is None and not only:
        note = f"{len(real):,} real pages of {len(hosts)} hosts, {len(families)} pages of families."
        keep("local_web", columns, rows, note)


def describe(found: Judged, *, words: bool) -> str:
    lists = {name: value if words else len(value) for name, value in vars(found).items() if isinstance(value, list)}
    flags = {name: value for name, value in vars(found).items() if not isinstance(value, list)}
    return ", ".join(f"{name} {value}" for name, value in {**flags, **lists}.items() if value or name in flags)


COUNTS: dict[str, Callable[[Sequence[Judged]], int]] = {
    "questions": len,
    "the figure asked for is stated": lambda found: sum(one.answered for one in found),
    "the primary source is cited first": lambda found: sum(one.primary_first for one in found),
    "the newest figure comes first": lambda found: sum(one.newest_first for one in found),
    "statements with an outdated figure": lambda found: sum(one.outdated for one in found),
    "of them without its date": lambda found: sum(len(one.undated) for one in found),
    "wrong figures asserted": lambda found: sum(len(one.spam) for one in found),
    "wrong figures shown as disputed": lambda found: sum(len(one.spam_disputed) for one in found),
    "paywalled stubs cited": lambda found: sum(len(one.paywall) for one in found),
    "copies counted as independent (✓✓)": lambda found: sum(len(one.copies) for one in found),
    "sources of hosts or dates ruled out": lambda found: sum(len(one.disobeyed) for one in found),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--only", default="", help="ids of facts, with commas between them")
    arguments = parser.parse_args()
    if not (clones := os.environ.get("SITE_CLONES")):
        sys.exit("SITE_CLONES names no folder: benchmarks/site_pages.py says what it holds")
    asyncio.run(measure(Path(clones), arguments.half, tuple(filter(None, arguments.only.split(",")))))


if __name__ == "__main__":
    main()
