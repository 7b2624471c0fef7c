"""Harvest the pages of a round: choose the best of what was found, fetch them, and select passages of what was read.

A page that cannot be read is reported and stops nothing.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple, cast

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.errors import BudgetError
from openassay.models.evidence import Document, Hit, Passage
from openassay.models.plan import Depth, SubQuestion, Understanding
from openassay.models.spend import Fee
from openassay.nodes.preferences import SourcePreferences, asked_period, source_preferences
from openassay.protocols import PageResult
from openassay.search import ranking
from openassay.state import (
    HarvestOutcome,
    PageRequest,
    PassageRef,
    SearchOutcome,
    State,
    Task,
    load_edits,
    load_harvests,
    load_page_requests,
    load_plan,
    load_question,
    load_searches,
    load_selected,
    load_tasks,
    load_understanding,
    load_vetoes,
)
from openassay.text.questions import needs_recent_sources
from openassay.text.urls import canonicalize_url, host_of
from openassay.text.words import find_names, interleave_groups, stem, stems, words
from openassay.verification.sources import Credibility, rate_sources

MAX_SUBJECTS = 4  # a text that names more than these is about what they have in common
LEAST_TOPICAL = 0.5  # of the most topical document: the subject is named, but only in passing
OPENING_LENGTH = 2000  # characters at the beginning of a document in which it names its subject
MAX_REASONS = 4  # why pages were not read, in one notice
_CREDENTIALS = re.compile(r"//[^/?#]*@")  # a name and a password before the host are nobody's business


async def fuse(state: State, runtime: Runtime[ResearchContext]) -> State:
    """Choose what to read: the best pages and passages of each sub-question, before anything is fetched."""
    context, understanding, harvested = runtime.context, load_understanding(state), load_harvests(state)
    plan, limits = load_plan(state), reading_limits(context)
    if plan.asks_for_themes and limits.passages == NARROW.passages:
        limits = BROAD
    tasks, searches, before = load_tasks(state), load_searches(state), load_selected(state)
    results = [searches[task["key"]] for task in tasks if task["key"] in searches]  # of this round
    hits_by_question, fresh_hits = await _filter_searches(state, understanding, context)
    today, question = context.started.date(), state["original_query"]
    recent = needs_recent_sources(question, today)
    preferences = source_preferences(understanding.question, context.options)
    fused = {
        name: preferences.promote_hits(ranking.fuse(lists, today, moving=recent))
        for name, lists in sorted(hits_by_question.items())
    }
    # An edited plan may ask about other subjects than the question did.
    subjects = understanding.subjects
    if plan.edited and subjects:
        names = [name for sub_question in plan.questions for name in find_names(sub_question.text)]
        subjects = tuple(dict.fromkeys((*subjects, *names)))
    whole = [hit.document for hits in fused.values() for hit in hits if hit.document and has_full_document(hit)]
    documents = list((await context.load_documents(whole)).values())
    topicality = await asyncio.to_thread(score_topicality, documents, subjects)
    # The embedded reasoner would take "we" and "the company" of other documents for the subject's: those it leaves out.
    # A language model is shown their titles, and what is least about the subject comes last.
    off_subject = set()
    if context.reasoner.name == "embedded" and len(subjects) <= MAX_SUBJECTS:
        for document in documents:
            if topicality[document.hash] <= LEAST_TOPICAL:
                off_subject.add(document.hash)
                await context.emit("skip", "fuse", path=document.title, reason=f"is not about {' or '.join(subjects)}")
    # No hit points to what earlier rounds have chosen of pages, but it still bears witness.
    fetched = {outcome["document"] for outcome in harvested.values()}

    def choose(hits: Sequence[Hit], limits: ReadingLimits) -> list[PassageRef]:
        kept = [hit for hit in hits if hit.document not in off_subject]
        ranked = rank_by_title_figures(rank_by_topicality(kept, topicality), question)
        return choose_passages(list_places(ranked), limits)

    selected = {}
    for name, hits in fused.items():
        chosen = choose(hits, limits)
        # What a later round was sent for is ranked by itself: one query that finds it does not count for much among
        # the many of the rounds before. What these have read is not read again.
        if limits.in_turn and state["round"] > 1 and name in fresh_hits:
            fresh = choose(preferences.promote_hits(ranking.fuse(fresh_hits[name], today, moving=recent)), AGAIN)
            chosen += [place for place in fresh if place not in chosen]
        earlier = [passage for passage in before.get(name, ()) if passage["document"] in fetched]
        selected[name] = [*chosen, *earlier]
    due = {task["question"]["id"] for task in tasks}
    max_pages = context.settings.harvest.pages_per_question
    pages = select_pages({name: hits for name, hits in fused.items() if name in due}, harvested, max_pages)
    await context.emit(
        "search",
        "fuse",
        documents=len({passage["document"] for passages in selected.values() for passage in passages}),
        passages=sum(map(len, selected.values())),
        pages=len({page["key"] for chosen in pages.values() for page in chosen} - pages_to_skip(harvested)),
        asked=sum(result["completed"] for result in results),
        cached=sum(result.get("cached", 0) for result in results),
    )
    return {
        "selected": {name: [dict(passage) for passage in passages] for name, passages in selected.items()},
        "pages": {name: [dict(page) for page in chosen] for name, chosen in pages.items()},
        "current_agent": "research",
    }


async def _filter_searches(
    state: State, understanding: Understanding, context: ResearchContext
) -> tuple[dict[str, list[list[Hit]]], dict[str, list[list[Hit]]]]:
    """Return the hits of each search by sub-question, of all rounds and of this one, without sources that the person
    avoids, has left out at a review or has vetoed; report which hosts and sources of this round that concerns, each
    once."""
    searches, vetoes = load_searches(state), load_vetoes(state)
    current = {task["key"] for task in load_tasks(state)}
    preferences = source_preferences(understanding.question, context.options)
    # Hosts left out at a breakpoint are left out for the whole run, even if the question names them.
    reviewed = SourcePreferences(avoid=tuple(load_edits(state).get("without", ())))
    documents = {veto.document for veto in vetoes}
    addresses = {canonicalize_url(veto.url) for veto in vetoes}
    avoided, left_out, vetoed = Counter[str](), Counter[str](), dict[str, str]()
    hits_by_question: dict[str, list[list[Hit]]] = {}
    fresh: dict[str, list[list[Hit]]] = {}
    for key in sorted(searches):
        hits = _load_hits(searches[key])
        allowed = [hit for hit in hits if hit.document not in documents and canonicalize_url(hit.url) not in addresses]
        kept, _ = preferences.filter_hits(reviewed.filter_hits(allowed)[0])
        hits_by_question.setdefault(searches[key]["question"], []).append(kept)
        if key in current:
            fresh.setdefault(searches[key]["question"], []).append(kept)
            avoided.update(searches[key].get("avoided", {}))
            left_out.update(reviewed.filter_hits(hits)[1])
            urls = {hit.url for hit in allowed}
            vetoed.update({hit.url: hit.title for hit in hits if hit.url not in urls})
    for host, count in sorted(avoided.items()):
        await context.emit("skip", "fuse", path=host, reason=f"you asked to avoid {host}", hits=count)
    for host, count in sorted(left_out.items()):
        await context.emit("skip", "fuse", path=host, reason=f"you left {host} out at a review", hits=count)
    for url, title in sorted(vetoed.items()):
        await context.emit("skip", "fuse", path=title or url, reason="you vetoed this source")
    return hits_by_question, fresh


def _load_hits(result: SearchOutcome) -> list[Hit]:
    return [Hit.model_validate(hit) for hit in result["hits"]]


def documents_only_from(hosts: Sequence[str], state: State) -> set[str]:
    """Return the documents that were found on these hosts only."""
    hits = [hit for result in load_searches(state).values() for hit in _load_hits(result)]
    kept, _ = SourcePreferences(avoid=tuple(hosts)).filter_hits(hits)
    return {hit.document for hit in hits if hit.document} - {hit.document for hit in kept if hit.document}


def select_pages(
    fused: Mapping[str, Sequence[Hit]], harvested: Mapping[str, HarvestOutcome], most: int
) -> dict[str, list[PageRequest]]:
    """Select the best pages of each sub-question. One that failed before does not keep its place; one that an earlier
    round has read is not fetched again, but passages are chosen from it once more."""
    pages: dict[str, list[PageRequest]] = {}
    failed = {key for key in pages_to_skip(harvested) if not harvested[key]["document"]}
    for question, hits in fused.items():
        chosen: dict[str, PageRequest] = {}
        for hit in hits:
            url = hit.fulltext
            # Where the source gave all that can be read, there is nothing to fetch.
            if not url and not hit.document and hit.url.startswith(("https://", "http://")):
                url = hit.url
            key = canonicalize_url(url) if url else ""
            if not url or key in failed or key in chosen:
                continue
            if len(chosen) == most:
                break
            published = hit.published.isoformat() if hit.published else None
            chosen[key] = {
                "key": key,
                "url": url,
                "kind": hit.kind,
                "title": hit.title,
                "published": published,
                "author": hit.author,
            }
        pages[question] = list(chosen.values())
    return pages


def score_topicality(documents: Sequence[Document], subjects: Sequence[str]) -> dict[str, float]:
    """Score how far each document is about any of the subjects, from 0 to 1 for the best: by the share of a subject's
    words that it has, half of it in title and opening. A subject that all name tells none apart; where no document has
    a word of any, all are alike."""
    openings = [set(stems(f"{one.title} {one.text[:OPENING_LENGTH]}")) for one in documents]
    texts = [{stem(word) for word in set(words(one.text))} for one in documents]  # each word once, which is quicker
    scores = [0.0] * len(documents)
    for wanted in map(set, map(stems, subjects)):
        shares = [(len(wanted & (a | b)), len(wanted & b)) for a, b in zip(texts, openings, strict=True)]
        if any(share < len(wanted) for share, _ in shares):
            scores = [max(old, sum(new) / 2 / len(wanted)) for old, new in zip(scores, shares, strict=True)]
    best = max(scores, default=0.0)
    return {one.hash: score / best if best else 1.0 for one, score in zip(documents, scores, strict=True)}


def rank_by_topicality(hits: Sequence[Hit], topicality: Mapping[str, float]) -> list[Hit]:
    """Weigh the rank of each hit by how far its document is about the subject: one that is not counts half."""
    weights = [(1 + topicality.get(hit.document or "", 1.0)) / (ranking.K + rank) for rank, hit in enumerate(hits, 1)]
    return [hits[at] for at in sorted(range(len(hits)), key=lambda at: -weights[at])]


def rank_by_title_figures(hits: Sequence[Hit], question: str) -> list[Hit]:
    """Put documents first whose titles have the figures a question names; two or more ("Q3 2023") name the document
    itself, and then only those with all of them are read."""
    titles = {hit.title for hit in hits if has_full_document(hit)}
    labels = {word for word in words(question) if any(character.isdigit() for character in word)}
    years = all(label.isdigit() and len(label) == 4 for label in labels)  # "between 1996 and 2007" names no document
    counts = {title: len(labels & set(words(title))) for title in titles}
    most = max(counts.values(), default=0)
    kept = [hit for hit in hits if most < 2 or years or counts.get(hit.title, most) == most]
    return sorted(kept, key=lambda hit: -counts.get(hit.title, 0))


def has_full_document(hit: Hit) -> bool:
    """Tell whether its source has the whole document. Titles and openings of abstracts and pages do not say what they
    are about as reliably, and the provider that found them has looked."""
    return hit.document is not None and hit.fulltext is None and hit.kind != "academic"


class ReadingLimits(NamedTuple):
    """Of one sub-question. `in_turn`: every document is heard before one is heard again."""

    documents: int
    passages: int
    in_turn: bool = False


# Of a prompt of 24,000 tokens 32 documents with 96 passages and their leads take 6,000 to 11,000. The embedded reasoner
# encodes and compares sentence by sentence, so it reads no more than a quick question does.
WIDE, NARROW = ReadingLimits(32, 96, in_turn=True), ReadingLimits(12, 36)
BROAD = ReadingLimits(24, 48, in_turn=True)  # themes want many documents, each with its best passages
AGAIN = ReadingLimits(16, 48, in_turn=True)  # of what a later round has found by itself


def reading_limits(context: ResearchContext) -> ReadingLimits:
    narrow = context.reasoner.name == "embedded" or context.options.depth is Depth.QUICK
    usual, chosen = NARROW if narrow else WIDE, context.settings.reading
    documents = chosen.documents_per_question or usual.documents
    return usual._replace(documents=documents, passages=chosen.passages_per_question or usual.passages)


def choose_passages(places: Iterable[PassageRef], limits: ReadingLimits) -> list[PassageRef]:
    """Choose passages in order of rank, from a bounded number of documents."""
    chosen: list[PassageRef] = []
    documents: set[str] = set()
    for place in places:
        if place["document"] in documents or len(documents) < limits.documents:
            documents.add(place["document"])
            chosen.append(place)
    if limits.in_turn:
        chosen = interleave_groups(chosen, lambda place: place["document"])
    return chosen[: limits.passages]


def list_places(hits: Iterable[Hit]) -> list[PassageRef]:
    return [
        {"document": hit.document, "start": hit.start, "end": hit.end}
        for hit in hits
        if hit.document is not None and hit.start is not None and hit.end is not None
    ]


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
    document = fill_metadata(page.document, request) if page.document else None
    if document is None:
        url = _CREDENTIALS.sub("//", request["url"])
        await context.emit("skip", "harvest", path=url, reason=page.reason, **data)
    else:
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
        "document": document.hash if document else None,
        "reason": page.reason,
        "cached": page.cached,
        "again": page.again,
        "round": task["key"].partition(":")[0],
        "page": document.model_dump(mode="json", include=_PAGE_FIELDS, exclude_none=True) if document else {},
    }


_PAGE_FIELDS = {"title", "author", "published", "publisher", "origin"}


async def load_read_documents(state: State, context: ResearchContext, names: Iterable[str]) -> dict[str, Document]:
    """Load documents, each under the best of the addresses it was read at. One text is one document, stored under the
    address where it was met first, and that may be a copy."""
    documents = await context.load_documents(names)
    found: dict[str, list[Document]] = {}
    for outcome in load_harvests(state).values():
        if (name := outcome["document"]) in documents and (page := outcome.get("page")):
            url = outcome["address"]
            update = dict.fromkeys(_PAGE_FIELDS) | {**page, "url": url, "host": host_of(url)}
            fields = documents[name].model_dump() | update
            found.setdefault(name, []).append(Document.model_validate(fields))
    several = [page for pages in found.values() if len(pages) > 1 for page in pages]
    if not several:
        return documents
    others = [document for name, document in documents.items() if len(found.get(name, ())) < 2]
    numbered = {f"{at}": page for at, page in enumerate((*several, *others))}
    rated = await asyncio.to_thread(rate_sources, numbered, load_question(state))
    best: dict[str, Document] = {}
    for at in sorted(numbered, key=lambda at: _copy_order(rated[at], numbered[at])):
        best.setdefault(numbered[at].hash, numbered[at])
    return {name: best[name] for name in documents}


def _copy_order(credibility: Credibility, document: Document) -> tuple[bool, int, date]:
    """Order pages with the same text: the one at first hand, then of a better kind, then the one that was there
    first."""
    return not credibility.primary, -credibility.rank, document.published or date.max


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
    context, limits = runtime.context, reading_limits(runtime.context)
    harvested, before = load_harvests(state), load_selected(state)
    keys = dict.fromkeys(page["key"] for pages in load_page_requests(state).values() for page in pages)
    outcomes = [harvested[key] for key in keys if key in harvested]
    fetched = {outcome["document"] for outcome in outcomes if outcome["document"]}
    earlier = [passage["document"] for passages in before.values() for passage in passages]
    names = [o["document"] for o in outcomes if o["document"]] + earlier
    documents = await load_read_documents(state, context, names)
    # Each copy and the document it repeats. A person's own is kept before a page, a page before its summary; of pages
    # the one that speaks at first hand, then the one that was there first.
    own_documents = [name for name, document in documents.items() if document.kind in ("document", "demo")]
    texts = [(name, document.text) for name, document in documents.items()]
    rated = await asyncio.to_thread(rate_sources, documents, load_question(state))
    pages = [name for name in documents if name in fetched]
    keep_first = [*own_documents, *sorted(pages, key=lambda name: _copy_order(rated[name], documents[name]))]
    duplicates = await asyncio.to_thread(ranking.find_duplicates, texts, keep_first)
    copies = {copy: original for copy, original in duplicates.items() if copy not in own_documents}
    for copy, original in copies.items():
        if copy in fetched:
            reason = f"says the same as “{documents[original].title}”"
            await context.emit("skip", "select", path=documents[copy].title, reason=reason)
    # A page may say of itself that it is of another time than its search result said.
    understanding = load_understanding(state)
    period = asked_period(understanding.question, understanding.temporal_scope, context.started.date())
    outside = {name for name in fetched - set(own_documents) if not period.contains(documents[name].published)}
    for name in sorted(outside):
        reason = f"was published on {documents[name].published}, outside the period you asked for"
        await context.emit("skip", "select", path=documents[name].title, reason=reason)
    questions = [SubQuestion.model_validate(task["question"]) for task in load_tasks(state)]
    ranked = await context.ranker.rank(
        [document for name, document in documents.items() if name in fetched - outside and name not in copies],
        [question.in_context for question in questions],
        limit=limits.passages,
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


def merge_passages(own: Sequence[PassageRef], ranked: Sequence[Passage], limits: ReadingLimits) -> list[PassageRef]:
    """Merge two rankings by rank alone, since their scores do not compare, from a bounded number of documents."""
    found: list[PassageRef] = [{"document": p.document, "start": p.start, "end": p.end} for p in ranked]
    scores: dict[tuple[str, int], float] = {}
    places: dict[tuple[str, int], PassageRef] = {}
    for order in (own, found):
        for rank, place in enumerate(order, 1):
            key = place["document"], place["start"]
            scores[key] = scores.get(key, 0.0) + 1 / (ranking.K + rank)
            places.setdefault(key, place)
    ordered = sorted(scores, key=lambda key: (-scores[key], key))
    return choose_passages([places[key] for key in ordered], limits)


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
