"""Fetch the pages of one sub-question, and select passages of those that were read.

A page that cannot be read is reported and stops nothing.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import cast

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.errors import BudgetError
from openassay.models.evidence import Document, Passage
from openassay.models.plan import SubQuestion
from openassay.models.spend import Fee
from openassay.nodes.read import load_documents
from openassay.protocols import PageResult
from openassay.search.ranking import K, find_duplicates
from openassay.settings import ReadingSettings
from openassay.state import (
    HarvestOutcome,
    PageRequest,
    PassageRef,
    State,
    Task,
    load_harvests,
    load_page_requests,
    load_searches,
    load_selected,
    load_tasks,
)

MAX_REASONS = 4  # why pages were not read, in one notice
_CREDENTIALS = re.compile(r"//[^/?#]*@")  # a name and a password before the host are nobody's business


async def harvest(task: Task, runtime: Runtime[ResearchContext]) -> State:
    requests = cast("list[PageRequest]", task["pages"])
    outcomes = await asyncio.gather(*(_read_page(request, task, runtime.context) for request in requests))
    return {"harvested": {request["key"]: dict(outcome) for request, outcome in zip(requests, outcomes, strict=True)}}


async def _read_page(request: PageRequest, task: Task, context: ResearchContext) -> HarvestOutcome:
    """Fetch a page and store it. Every page counts as one request of the run."""
    question, pages = task["question"]["id"], []

    async def fetch() -> str:
        pages.append(await context.pages.read(request["url"], kind=request["kind"]))
        return ""

    fee = Fee(step="harvest", task=question, provider="web", request=request["key"])
    try:
        await context.account.buy(fee, fetch)
        if not pages:  # it was paid for before the run was resumed
            await fetch()
        page = pages[0]
    except BudgetError as error:
        page = PageResult(request["url"], reason=error.message, again=True)
    data: dict[str, object] = {"question": question, "cached": page.cached}
    if page.seconds:
        data["seconds"] = round(page.seconds, 3)
    if page.document is None:
        url = _CREDENTIALS.sub("//", request["url"])
        await context.emit("skip", "harvest", path=url, reason=page.reason, **data)
    else:
        document = fill_metadata(page.document, request)
        await context.documents.put(document)
        await context.emit(
            "read",
            "harvest",
            url=document.url,
            title=document.title,
            host=document.host,
            words=len(document.text.split()),
            document=document.hash,
            **data,
        )
    return {
        "address": request["url"],
        "document": page.document.hash if page.document else None,
        "reason": page.reason,
        "cached": page.cached,
        "again": page.again,
        "round": task["key"].partition(":")[0],
    }


def fill_metadata(document: Document, request: PageRequest) -> Document:
    """Add what a page does not say of itself and its search result did."""
    published = date.fromisoformat(request["published"]) if request["published"] else None
    return document.model_copy(
        update={
            "title": document.title or request["title"] or document.url,
            "author": document.author or request["author"],
            "published": document.published or published,
        }
    )


async def select(state: State, runtime: Runtime[ResearchContext]) -> State:
    """Choose passages of the pages that were read: copies left out, the best for each sub-question kept."""
    context, limits = runtime.context, runtime.context.settings.reading
    harvested, before = load_harvests(state), load_selected(state)
    keys = dict.fromkeys(page["key"] for pages in load_page_requests(state).values() for page in pages)
    outcomes = [harvested[key] for key in keys if key in harvested]
    fetched = {outcome["document"] for outcome in outcomes if outcome["document"]}
    earlier = [passage["document"] for passages in before.values() for passage in passages]
    documents = await load_documents([o["document"] for o in outcomes if o["document"]] + earlier, context)
    # Each copy and the document it repeats. A person's own is kept before a page, a page before its summary.
    own_documents = [name for name, document in documents.items() if document.kind in ("document", "demo")]
    texts = [(name, document.text) for name, document in documents.items()]
    keep_first = [*own_documents, *(name for name in documents if name in fetched)]
    duplicates = await asyncio.to_thread(find_duplicates, texts, keep_first)
    copies = {copy: original for copy, original in duplicates.items() if copy not in own_documents}
    for copy, original in copies.items():
        if copy in fetched:
            reason = f"says the same as “{documents[original].title}”"
            await context.emit("skip", "select", path=documents[copy].title, reason=reason)
    questions = [SubQuestion.model_validate(task["question"]) for task in load_tasks(state)]
    ranked = await context.ranker.rank(
        [document for name, document in documents.items() if name in fetched and name not in copies],
        [question.in_context for question in questions],
        limit=limits.passages_per_question,
    )
    selected = dict(before)
    for question, passages in zip(questions, ranked, strict=True):
        own = [passage for passage in before.get(question.id, ()) if passage["document"] not in copies]
        selected[question.id] = merge_passages(own, passages, limits)
    current = [outcome for outcome in outcomes if outcome["round"] == str(state["round"] - 1)]
    await context.emit(
        "read",
        "select",
        pages=len(keys) - len(outcomes) + len(current),
        read=sum(bool(outcome["document"]) for outcome in current),
        copies=len(copies.keys() & fetched),
        cached=sum(outcome["cached"] and bool(outcome["document"]) for outcome in current),
        passages=sum(len(selected[question.id]) for question in questions),
    )
    return {
        "selected": {question: [dict(place) for place in places] for question, places in selected.items()},
        "current_agent": "research",
    }


def merge_passages(own: Sequence[PassageRef], ranked: Sequence[Passage], limits: ReadingSettings) -> list[PassageRef]:
    """Merge two rankings by rank alone, since their scores do not compare, from a bounded number of documents."""
    found: list[PassageRef] = [{"document": p.document, "start": p.start, "end": p.end} for p in ranked]
    scores: dict[tuple[str, int], float] = {}
    places: dict[tuple[str, int], PassageRef] = {}
    for ranking in (own, found):
        for rank, place in enumerate(ranking, 1):
            key = place["document"], place["start"]
            scores[key] = scores.get(key, 0.0) + 1 / (K + rank)
            places.setdefault(key, place)
    chosen: list[PassageRef] = []
    documents: set[str] = set()
    for key in sorted(scores, key=lambda key: (-scores[key], key)):
        if key[0] in documents or len(documents) < limits.documents_per_question:
            documents.add(key[0])
            chosen.append(places[key])
    return chosen[: limits.passages_per_question]


def pages_to_skip(harvested: Mapping[str, HarvestOutcome]) -> set[str]:
    """Return the addresses that need not be fetched again: they were read, or trying again would not help."""
    return {key for key, outcome in harvested.items() if not outcome["again"]}


def list_unread_passages(state: State, question: str) -> list[PassageRef]:
    """List the passages chosen for a sub-question that no round has read for it."""
    before = {
        tuple(place) for key, places in state["perused"].items() if key.endswith(f":{question}") for place in places
    }
    return [p for p in load_selected(state).get(question, ()) if (p["document"], p["start"]) not in before]


def failure_notices(state: State) -> list[str]:
    """Report searches that failed, and pages that were found but not read."""
    failed: Counter[str] = Counter()
    messages: dict[str, str] = {}
    for _, result in sorted(load_searches(state).items()):
        for source, (message, count) in result.get("errors", {}).items():
            failed[source] += count
            messages.setdefault(source, message)
    notices = [
        f"{count} {'searches' if count > 1 else 'search'} of {source} failed: {messages[source]}."
        for source, count in sorted(failed.items())
    ]
    outcomes = load_harvests(state).values()
    reasons = Counter(str(outcome["reason"]) for outcome in outcomes if not outcome["document"])
    if reasons:
        common = reasons.most_common(MAX_REASONS)
        listed = "; ".join(f"{reason} ({count})" if count > 1 else reason for reason, count in common)
        more = "; and other reasons" if len(reasons) > MAX_REASONS else ""
        unread = f"{reasons.total()} of {len(outcomes)} pages found were not read"
        notices.append(f"{unread}: {listed}{more}. The run log lists them.")
    return notices
