"""One sub-question's pages: fetched, read and kept. A page that cannot be read is told of and stops nothing."""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.errors import BudgetError
from openassay.models.evidence import Document, Passage
from openassay.models.plan import SubQuestion
from openassay.models.spend import Fee
from openassay.protocols import PageResult
from openassay.search.ranking import K, find_duplicates
from openassay.settings import ReadingSettings
from openassay.state import Plain, State, Task

_NAMES = re.compile(r"//[^/?#]*@")  # a name and a password before the host are nobody's business


async def harvest(task: Task, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    found = await asyncio.gather(*(_read_page(page, task, deps) for page in task["pages"]))
    return {"harvested": dict(zip((page["key"] for page in task["pages"]), found, strict=True))}


async def _read_page(wanted: Plain, task: Task, deps: ResearchContext) -> Plain:
    page, question = await _fetch_page(wanted, task, deps), task["question"]["id"]
    if page.document is None:
        await deps.emit(
            "skip",
            "harvest",
            path=_NAMES.sub("//", wanted["url"]),
            reason=page.reason,
            question=question,
            cached=page.cached,
            **_latency(page),
        )
        return _make_outcome(wanted, task, page)
    document = fill_metadata(page.document, wanted)
    await deps.documents.put(document)
    await deps.emit(
        "read", "harvest", url=document.url, title=document.title, host=document.host, question=question,
        words=len(document.text.split()), cached=page.cached, document=document.hash, **_latency(page),
    )  # fmt: skip
    return _make_outcome(wanted, task, page)


def _latency(page: PageResult) -> dict[str, object]:
    return {"seconds": round(page.seconds, 3)} if page.seconds else {}


def _make_outcome(wanted: Plain, task: Task, page: PageResult) -> Plain:
    """`again`: another round, or a larger budget, may have more luck."""
    round, _, _ = task["key"].partition(":")
    document = page.document.hash if page.document else None
    return {
        "address": wanted["url"], "document": document, "reason": page.reason, "cached": page.cached,
        "again": page.again, "round": round,
    }  # fmt: skip


async def _fetch_page(wanted: Plain, task: Task, deps: ResearchContext) -> PageResult:
    """Every page counts as one request of the run."""
    read: list[PageResult] = []

    async def request() -> str:
        read.append(await deps.pages.read(wanted["url"], kind=wanted["kind"]))
        return ""

    fee = Fee(step="harvest", task=task["question"]["id"], provider="web", request=wanted["key"])
    try:
        await deps.account.buy(fee, request)
    except BudgetError as error:
        return PageResult(wanted["url"], reason=error.message, again=True)
    return read[0] if read else await deps.pages.read(wanted["url"], kind=wanted["kind"])


def fill_metadata(document: Document, wanted: Plain) -> Document:
    """What a page does not say of itself, its search result may have said."""
    published = date.fromisoformat(wanted["published"]) if wanted["published"] else None
    return document.model_copy(
        update={
            "title": document.title or wanted["title"] or document.url,
            "author": document.author or wanted["author"],
            "published": document.published or published,
        }
    )


# Choosing passages of the pages that were read: copies left out, the best for each sub-question kept.


async def select(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    wanted = dict.fromkeys(page["key"] for pages in state["pages"].values() for page in pages)
    outcomes = [state["harvested"][key] for key in wanted if key in state["harvested"]]
    names = list(dict.fromkeys(outcome["document"] for outcome in outcomes if outcome["document"]))
    before = [passage["document"] for passages in state["selected"].values() for passage in passages]
    documents = [await deps.documents.get(name) for name in dict.fromkeys([*names, *before])]
    copies = await _find_copies(documents, set(names), deps)
    questions = [SubQuestion.model_validate(task["question"]) for task in state["tasks"]]
    fresh = [document for document in documents if document.hash in names and document.hash not in copies]
    limits = deps.settings.reading
    ranked = await deps.ranker.rank(
        fresh, [question.in_context for question in questions], limit=limits.passages_per_question
    )
    chosen = {
        question.id: merge_passages(_drop_copies(state["selected"].get(question.id, ()), copies), passages, limits)
        for question, passages in zip(questions, ranked, strict=True)
    }
    now = [outcome for outcome in outcomes if outcome["round"] == str(state["round"] - 1)]
    await deps.emit(
        "read", "select", pages=len(wanted) - len(outcomes) + len(now), read=sum(bool(o["document"]) for o in now),
        copies=len(copies.keys() & set(names)), cached=sum(o["cached"] and bool(o["document"]) for o in now),
        passages=sum(map(len, chosen.values())),
    )  # fmt: skip
    return {"selected": {**state["selected"], **chosen}, "current_agent": "research"}


async def _find_copies(documents: Sequence[Document], pages: set[str], deps: ResearchContext) -> dict[str, str]:
    """Document -> the one it repeats. A person's own is kept before a page, and a page before its own summary."""
    own = [document.hash for document in documents if document.kind in ("document", "demo")]
    fetched = [document.hash for document in documents if document.hash in pages]
    texts = [(document.hash, document.text) for document in documents]
    found = await asyncio.to_thread(find_duplicates, texts, [*own, *fetched])
    kept = {copy: original for copy, original in found.items() if copy not in own}
    titles = {document.hash: document.title for document in documents}
    for copy, original in kept.items():
        if copy in pages:
            await deps.emit("skip", "select", path=titles[copy], reason=f"says the same as “{titles[original]}”")
    return kept


def _drop_copies(places: Sequence[Plain], copies: Mapping[str, str]) -> list[Plain]:
    return [place for place in places if place["document"] not in copies]


def merge_passages(own: Sequence[Plain], ranked: Sequence[Passage], limits: ReadingSettings) -> list[Plain]:
    """Two rankings into one, by rank alone since their scores do not compare; from a bounded number of documents."""
    found = [{"document": p.document, "start": p.start, "end": p.end} for p in ranked]
    scores: dict[tuple[str, int], float] = {}
    places: dict[tuple[str, int], Plain] = {}
    for ranking in (own, found):
        for rank, place in enumerate(ranking, 1):
            key = place["document"], place["start"]
            scores[key] = scores.get(key, 0.0) + 1 / (K + rank)
            places.setdefault(key, dict(place))
    chosen: list[Plain] = []
    documents: set[str] = set()
    for key in sorted(scores, key=lambda key: (-scores[key], key)):
        if key[0] in documents or len(documents) < limits.documents_per_question:
            documents.add(key[0])
            chosen.append(places[key])
    return chosen[: limits.passages_per_question]


# What was chosen or found and not read yet, and what a report could not use: searches that failed, and pages that were
# found but not read.

MOST_REASONS = 4


def pages_to_skip(harvested: Mapping[str, Plain]) -> set[str]:
    """Addresses that need not be fetched any more: they were read, or trying again would not help."""
    return {key for key, outcome in harvested.items() if not outcome["again"]}


def list_unread_passages(state: State, question: str) -> list[Plain]:
    """Passages chosen for a sub-question that no round has read for it."""
    before = {
        tuple(place) for key, places in state["perused"].items() if key.endswith(f":{question}") for place in places
    }
    return [p for p in state["selected"].get(question, ()) if (p["document"], p["start"]) not in before]


def failure_notices(state: State) -> list[str]:
    return [*_search_failure_notices(state), *_page_failure_notices(state)]


def _search_failure_notices(state: State) -> list[str]:
    failed: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for key in sorted(state["searched"]):
        for source, (message, count) in state["searched"][key].get("errors", {}).items():
            failed[source] += count
            reasons.setdefault(source, message)
    return [
        f"{count} {'searches' if count > 1 else 'search'} of {source} failed: {reasons[source]}."
        for source, count in sorted(failed.items())
    ]


def _page_failure_notices(state: State) -> list[str]:
    outcomes = list(state["harvested"].values())
    reasons = Counter(str(outcome["reason"]) for outcome in outcomes if not outcome["document"])
    if not reasons:
        return []
    listed = "; ".join(
        f"{reason} ({count})" if count > 1 else reason for reason, count in reasons.most_common(MOST_REASONS)
    )
    more = "; and other reasons" if len(reasons) > MOST_REASONS else ""
    return [f"{reasons.total()} of {len(outcomes)} pages found were not read: {listed}{more}. The run log lists them."]
