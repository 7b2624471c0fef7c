"""Choose what to read: the best pages and passages of each sub-question, before anything is fetched."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.evidence import Hit
from openassay.models.plan import Understanding
from openassay.nodes.harvest import pages_to_skip
from openassay.nodes.preferences import SourcePreferences, source_preferences
from openassay.nodes.read import load_documents
from openassay.search.ranking import fuse as fuse_hits
from openassay.settings import ReadingSettings
from openassay.state import (
    HarvestOutcome,
    PageRequest,
    PassageRef,
    SearchOutcome,
    State,
    load_edits,
    load_harvests,
    load_plan,
    load_searches,
    load_selected,
    load_tasks,
    load_understanding,
    load_vetoes,
)
from openassay.text.questions import needs_recent_sources
from openassay.text.urls import canonicalize_url
from openassay.text.words import find_names, words
from openassay.verification.sources import select_on_subject

MAX_SUBJECTS = 4  # a text that names more than these is about what they have in common


async def fuse(state: State, runtime: Runtime[ResearchContext]) -> State:
    context, understanding, harvested = runtime.context, load_understanding(state), load_harvests(state)
    tasks, searches, before = load_tasks(state), load_searches(state), load_selected(state)
    results = [searches[task["key"]] for task in tasks if task["key"] in searches]  # of this round
    hits_by_question = await _filter_searches(state, understanding, context)
    today, question = context.started.date(), state["original_query"]
    recent = needs_recent_sources(question, today)
    preferences = source_preferences(understanding.question, context.options)
    fused = {
        name: preferences.promote_hits(fuse_hits(lists, today, moving=recent))
        for name, lists in sorted(hits_by_question.items())
    }
    # An edited plan may ask about other subjects than the question did.
    plan, subjects = load_plan(state), understanding.subjects
    if plan.edited and subjects:
        names = [name for sub_question in plan.questions for name in find_names(sub_question.text)]
        subjects = tuple(dict.fromkeys((*subjects, *names)))
    # Documents about something else are left out: their "we" and "the company" would be taken for the subject's.
    off_subject = set()
    if len(subjects) <= MAX_SUBJECTS:
        whole = [hit.document for hits in fused.values() for hit in hits if hit.document and has_full_document(hit)]
        documents = list((await load_documents(whole, context)).values())
        kept = await asyncio.to_thread(select_on_subject, documents, subjects)
        for document in documents:
            if document.hash not in kept:
                off_subject.add(document.hash)
                await context.emit("skip", "fuse", path=document.title, reason=f"is not about {' or '.join(subjects)}")
    # No hit points to what earlier rounds have chosen of pages, but it still bears witness.
    fetched = {outcome["document"] for outcome in harvested.values()}
    selected = {}
    for name, hits in fused.items():
        ranked = rank_by_title_figures([hit for hit in hits if hit.document not in off_subject], question)
        earlier = [passage for passage in before.get(name, ()) if passage["document"] in fetched]
        selected[name] = [*choose_passages(ranked, context.settings.reading), *earlier]
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
) -> dict[str, list[list[Hit]]]:
    """Return the hits of each search by sub-question, without sources that the person avoids, has left out at a review
    or has vetoed; report which hosts and sources of this round that concerns, each once."""
    searches, vetoes = load_searches(state), load_vetoes(state)
    current = {task["key"] for task in load_tasks(state)}
    preferences = source_preferences(understanding.question, context.options)
    # Hosts left out at a breakpoint are left out for the whole run, even if the question names them.
    reviewed = SourcePreferences(avoid=tuple(load_edits(state).get("without", ())))
    documents = {veto.document for veto in vetoes}
    addresses = {canonicalize_url(veto.url) for veto in vetoes}
    avoided, left_out, vetoed = Counter[str](), Counter[str](), dict[str, str]()
    hits_by_question: dict[str, list[list[Hit]]] = {}
    for key in sorted(searches):
        hits = _load_hits(searches[key])
        allowed = [hit for hit in hits if hit.document not in documents and canonicalize_url(hit.url) not in addresses]
        kept, _ = preferences.filter_hits(reviewed.filter_hits(allowed)[0])
        hits_by_question.setdefault(searches[key]["question"], []).append(kept)
        if key in current:
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
    return hits_by_question


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


def rank_by_title_figures(hits: Sequence[Hit], question: str) -> list[Hit]:
    """Put documents first whose titles have the figures a question names; two or more ("Q3 2023") name the document
    itself, and then only those with all of them are read."""
    titles = {hit.title for hit in hits if has_full_document(hit)}
    labels = {word for word in words(question) if any(character.isdigit() for character in word)}
    counts = {title: len(labels & set(words(title))) for title in titles}
    most = max(counts.values(), default=0)
    kept = [hit for hit in hits if most < 2 or counts.get(hit.title, most) == most]
    return sorted(kept, key=lambda hit: -counts.get(hit.title, 0))


def has_full_document(hit: Hit) -> bool:
    """Tell whether its source has the whole document. Titles and openings of abstracts and pages do not say what they
    are about as reliably, and the provider that found them has looked."""
    return hit.document is not None and hit.fulltext is None and hit.kind != "academic"


def choose_passages(hits: Sequence[Hit], limits: ReadingSettings) -> list[PassageRef]:
    """Choose passages in order of rank, from a bounded number of documents."""
    chosen: list[PassageRef] = []
    documents: set[str] = set()
    for hit in hits:
        if hit.document is None or hit.start is None or hit.end is None:
            continue
        if hit.document not in documents and len(documents) >= limits.documents_per_question:
            continue
        if len(chosen) >= limits.passages_per_question:
            break
        documents.add(hit.document)
        chosen.append({"document": hit.document, "start": hit.start, "end": hit.end})
    return chosen
