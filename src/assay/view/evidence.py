"""What was found and what was read, with the texts of the snapshots."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from assay.errors import EvidenceError, NotFoundError
from assay.model.source import Document
from assay.ports import DocumentStore
from assay.state import Plain
from assay.text.urls import canonical
from assay.view.records import Chunk, EvidenceView, SearchResult
from assay.view.shown import Shown, items, optional_text, text, whole

SNIPPET, CHUNK = 300, 2_000  # characters


class Found(NamedTuple):
    rank: int
    search: str
    result: SearchResult
    document: str | None  # that the source keeps itself
    start: int  # where the match stands in it
    fulltext: str


class Place(NamedTuple):
    start: int
    end: int


class Card(NamedTuple):
    id: str
    title: str


async def _opened(name: str, documents: DocumentStore) -> Document | str:
    """The document, or why it cannot be shown."""
    try:
        return await documents.get(name)
    except (NotFoundError, EvidenceError) as error:
        return error.message


def _snippet(document: Document, start: int) -> str:
    return " ".join(document.text[start : start + SNIPPET].split())


# Found ------------------------------------------------------------------------------------------------


async def results(shown: Shown, documents: DocumentStore) -> tuple[SearchResult, ...]:
    fetched = shown.by_key("harvested", lambda page: optional_text(page.get("document")))
    searched = shown.by_key("searched", lambda search: items(search["hits"]))
    hits = [(key, hit) for key, hits in searched.items() for hit in hits]
    best = shown.first("search_results", _best(shown.readable("searched", hits, lambda pair: _found(*pair))))
    return tuple([await _result(found, fetched, documents) for found in best])


def _found(search: str, hit: Plain) -> Found:
    result = SearchResult(
        url=hit["url"], title=hit["title"], snippet=hit.get("snippet", ""), published=hit["published"],
        provider=hit["provider"], host=hit["host"],
    )  # fmt: skip
    document, fulltext = optional_text(hit["document"]), optional_text(hit["fulltext"])
    return Found(whole(hit["rank"]), search, result, document, whole(hit["start"] or 0), fulltext or result.url)


def _best(hits: Sequence[Found]) -> list[Found]:
    """Every address once, the first of each search before the second of any."""
    ordered = sorted(hits, key=lambda found: (found.rank, found.search))
    return list({canonical(found.result.url): found for found in reversed(ordered)}.values())[::-1]


async def _result(found: Found, fetched: Mapping[str, str | None], documents: DocumentStore) -> SearchResult:
    name = found.document or fetched.get(canonical(found.fulltext))
    if found.result.snippet or not name:
        return found.result
    document = await _opened(name, documents)
    if isinstance(document, str):
        return found.result.model_copy(update={"problem": document})
    snippet = _snippet(document, found.start if found.document else 0)
    return found.result.model_copy(update={"snippet": snippet})


# Read -------------------------------------------------------------------------------------------------


async def evidence(shown: Shown, documents: DocumentStore) -> tuple[EvidenceView, ...]:
    cards = dict(shown.many("sources", lambda source: (text(source["document"]), _card(source))))
    places = _places(shown)
    names = shown.first("evidence", list(dict.fromkeys([*cards, *places])))
    return tuple([await _read(name, cards.get(name), places.get(name, []), documents, shown) for name in names])


def _card(source: Plain) -> Card:
    return Card(text(source["id"]), text(source["title"]))


def _places(shown: Shown) -> dict[str, list[Place]]:
    """Document -> where it was read: the passages chosen of it or, if there are none any more, what was found in it."""
    passages = [place for places in shown.by_key("selected", items).values() for place in places]
    chosen = _by_document(shown.readable("selected", passages, _place))
    found = _by_document(shown.many("findings", lambda finding: _place(finding["span"])))
    return {name: sorted(places) for name, places in {**found, **chosen}.items()}


def _by_document(places: Iterable[tuple[str, Place]]) -> dict[str, set[Place]]:
    gathered: dict[str, set[Place]] = {}
    for document, place in places:
        gathered.setdefault(document, set()).add(place)
    return gathered


def _place(span: Plain) -> tuple[str, Place]:
    return text(span["document"]), Place(whole(span["start"]), whole(span["end"]))


async def _read(
    name: str, card: Card | None, places: Sequence[Place], documents: DocumentStore, shown: Shown
) -> EvidenceView:
    document = await _opened(name, documents)
    id, title = card or (None, "")
    if isinstance(document, str):
        return EvidenceView(id=id, title=title, content_hash=name, problem=document)
    chunks = [
        Chunk(start=start, end=end, text=shown.text(document.text[start:end], CHUNK))
        for start, end in shown.first("chunks", places)
    ]
    return EvidenceView(
        id=id, url=document.url, title=title or document.title, content_hash=name, chunks=tuple(chunks),
        snippet=_snippet(document, places[0].start if places else 0), host=document.host, kind=document.kind,
        published=document.published.isoformat() if document.published else None, author=document.author,
    )  # fmt: skip
