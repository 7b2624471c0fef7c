"""Choosing what to read: the best pages and passages of each sub-question, counted before anything is read."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.evidence import Hit
from openassay.models.plan import Plan, Understanding
from openassay.nodes.harvest import pages_to_skip
from openassay.nodes.preferences import SourcePreferences, source_preferences
from openassay.search.ranking import fuse as fuse_hits
from openassay.settings import ReadingSettings
from openassay.state import Plain, State
from openassay.text.questions import needs_recent_sources
from openassay.text.urls import canonicalize_url
from openassay.text.words import find_names, words
from openassay.verification.sources import select_on_subject

MOST_SUBJECTS = 4  # a text that names more than these is about what they have in common


async def fuse(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    understanding = Understanding.model_validate(state["understanding"])
    wishes = source_preferences(understanding.question, deps.options)
    await _report_preference_skips(state, deps)
    await _report_review_skips(state, deps)
    if state.get("vetoed"):
        await _report_vetoes(state, deps)
    today = deps.started.date()
    moving = needs_recent_sources(state["original_query"], today)
    fused = {
        question: wishes.promote_hits(fuse_hits(lists, today, moving=moving))
        for question, lists in sorted(_collect_hits(state, wishes).items())
    }
    subjects = _find_subjects(state, understanding)
    off_subject = await _find_off_subject(fused.values(), subjects, deps) if len(subjects) <= MOST_SUBJECTS else set()
    asked = state["original_query"]
    selected = {
        question: choose_passages(
            rank_by_title_figures([hit for hit in hits if hit.document not in off_subject], asked),
            deps.settings.reading,
        )
        for question, hits in fused.items()
    }
    for question, places in selected.items():
        places += _page_passages(state["selected"].get(question, ()), state["harvested"])
    due = {task["question"]["id"] for task in state["tasks"]}
    most = deps.settings.harvest.pages_per_question
    pages = select_pages({q: hits for q, hits in fused.items() if q in due}, state["harvested"], most)
    fresh = {page["key"] for chosen in pages.values() for page in chosen} - pages_to_skip(state["harvested"])
    documents = {passage["document"] for passages in selected.values() for passage in passages}
    await deps.emit(
        "search", "fuse", documents=len(documents), passages=sum(map(len, selected.values())),
        pages=len(fresh), **_request_counts(state),
    )  # fmt: skip
    return {"selected": selected, "pages": pages, "current_agent": "research"}


def _find_subjects(state: State, understanding: Understanding) -> tuple[str, ...]:
    """Who changes the plan may ask about others than the question did."""
    plan = Plan.model_validate(state["plan"])
    added = [name for question in plan.questions for name in find_names(question.text)] if plan.edited else []
    return tuple(dict.fromkeys((*understanding.subjects, *added))) if understanding.subjects else ()


def _collect_hits(state: State, wishes: SourcePreferences) -> dict[str, list[list[Hit]]]:
    """By sub-question the hits of each of its searches, whoever let through what is avoided or was struck out."""
    found: dict[str, list[list[Hit]]] = {}
    for key in sorted(state["searched"]):
        result = state["searched"][key]
        kept, _ = wishes.filter_hits(_review_filter(state).filter_hits(_apply_veto(_load_hits(result), state))[0])
        found.setdefault(result["question"], []).append(kept)
    return found


def _apply_veto(hits: Iterable[Hit], state: State) -> list[Hit]:
    """Without the sources the thread was told to do without, whatever text they have now."""
    documents, addresses = _veto_lists(state)
    return [hit for hit in hits if hit.document not in documents and canonicalize_url(hit.url) not in addresses]


def _veto_lists(state: State) -> tuple[set[str], set[str]]:
    vetoed = state.get("vetoed") or []
    return {source["document"] for source in vetoed}, {canonicalize_url(source["url"]) for source in vetoed}


async def _report_vetoes(state: State, deps: ResearchContext) -> None:
    found = {hit.url: hit.title for result in _round_results(state) for hit in _load_hits(result)}
    for url in sorted(found.keys() - {hit.url for result in _round_results(state)
                                      for hit in _apply_veto(_load_hits(result), state)}):  # fmt: skip
        await deps.emit("skip", "fuse", path=found[url] or url, reason="you vetoed this source")


def _load_hits(result: Plain) -> list[Hit]:
    return [Hit.model_validate(hit) for hit in result["hits"]]


def _review_filter(state: State) -> SourcePreferences:
    """Hosts a person left out at a breakpoint: for the whole run, even if the question names them."""
    return SourcePreferences(avoid=tuple(state["edits"].get("without", ())))


def documents_only_from(hosts: Sequence[str], state: State) -> set[str]:
    """Documents that were found nowhere else than there."""
    hits = [hit for result in state["searched"].values() for hit in _load_hits(result)]
    kept, _ = SourcePreferences(avoid=tuple(hosts)).filter_hits(hits)
    return {hit.document for hit in hits if hit.document} - {hit.document for hit in kept if hit.document}


async def _report_preference_skips(state: State, deps: ResearchContext) -> None:
    """Once for each host, however many searches of this round came upon it."""
    hosts: Counter[str] = Counter()
    for result in _round_results(state):
        hosts.update(result.get("avoided", {}))
    for host, hits in sorted(hosts.items()):
        await deps.emit("skip", "fuse", path=host, reason=f"you asked to avoid {host}", hits=hits)


async def _report_review_skips(state: State, deps: ResearchContext) -> None:
    hosts: Counter[str] = Counter()
    for result in _round_results(state):
        hosts.update(_review_filter(state).filter_hits(_load_hits(result))[1])
    for host, hits in sorted(hosts.items()):
        await deps.emit("skip", "fuse", path=host, reason=f"you left {host} out at a review", hits=hits)


def _round_results(state: State) -> list[Plain]:
    return [state["searched"][task["key"]] for task in state["tasks"] if task["key"] in state["searched"]]


def _request_counts(state: State) -> dict[str, int]:
    """Requests of this round, and how many of them the cache has answered."""
    results = _round_results(state)
    return {
        "asked": sum(result["completed"] for result in results),
        "cached": sum(result.get("cached", 0) for result in results),
    }


def _page_passages(places: Sequence[Plain], harvested: Mapping[str, Plain]) -> list[Plain]:
    """What earlier rounds have chosen of pages: no hit points to it, but it still bears witness."""
    read = {outcome["document"] for outcome in harvested.values()}
    return [place for place in places if place["document"] in read]


def select_pages(
    fused: Mapping[str, Sequence[Hit]], harvested: Mapping[str, Plain], most: int
) -> dict[str, list[Plain]]:
    """The best pages of each sub-question. One that was tried in vain does not keep its place; one that an earlier
    round has read is not fetched again, but chosen from once more."""
    pages: dict[str, list[Plain]] = {}
    in_vain = {key for key in pages_to_skip(harvested) if not harvested[key]["document"]}
    for question, hits in fused.items():
        chosen: dict[str, Plain] = {}
        for hit in hits:
            address = _full_text_url(hit)
            key = canonicalize_url(address) if address else ""
            if address is None or key in in_vain or key in chosen:
                continue
            if len(chosen) == most:
                break
            chosen[key] = _make_page(hit, key, address)
        pages[question] = list(chosen.values())
    return pages


def _make_page(hit: Hit, key: str, address: str) -> Plain:
    date = hit.published.isoformat() if hit.published else None
    return {
        "key": key, "url": address, "kind": hit.kind, "title": hit.title, "published": date, "author": hit.author
    }  # fmt: skip


def _full_text_url(hit: Hit) -> str | None:
    """Where the whole text of a hit is to be fetched; nowhere, if what the source gave is all that can be read."""
    if hit.fulltext or hit.document:
        return hit.fulltext
    return hit.url if hit.url.startswith(("https://", "http://")) else None


async def _find_off_subject(lists: Iterable[Sequence[Hit]], subjects: Sequence[str], deps: ResearchContext) -> set[str]:
    """Documents that are about somebody else: their "we" and "the company" would be taken for the subject's."""
    names = dict.fromkeys(hit.document for hits in lists for hit in hits if hit.document and has_full_document(hit))
    documents = [await deps.documents.get(name) for name in names]
    kept = await asyncio.to_thread(select_on_subject, documents, subjects)
    for document in documents:
        if document.hash not in kept:
            await deps.emit("skip", "fuse", path=document.title, reason=f"is not about {' or '.join(subjects)}")
    return {document.hash for document in documents} - kept


def rank_by_title_figures(hits: Sequence[Hit], asked: str) -> list[Hit]:
    """Documents whose titles carry the figures a question names come first; two or more ("Q3 2023") name the document
    itself, and then only those with all of them are read."""
    own = {hit.title for hit in hits if has_full_document(hit)}
    labels = {word for word in words(asked) if any(character.isdigit() for character in word)}
    carried = {title: len(labels & set(words(title))) for title in own}
    most = max(carried.values(), default=0)
    kept = [hit for hit in hits if most < 2 or carried.get(hit.title, most) == most]
    return sorted(kept, key=lambda hit: -carried.get(hit.title, 0))


def has_full_document(hit: Hit) -> bool:
    """Whether its source holds the whole document. Titles and openings of abstracts and pages do not say what they are
    about as reliably, and whoever found them has looked."""
    return hit.document is not None and hit.fulltext is None and hit.kind != "academic"


def choose_passages(hits: Sequence[Hit], limits: ReadingSettings) -> list[Plain]:
    """In order of rank, from a bounded number of documents."""
    chosen: list[Plain] = []
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
