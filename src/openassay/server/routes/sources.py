"""The sources of a report: listed, pinned and vetoed."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import Response
from pydantic import Field

from openassay.errors import NotFoundError
from openassay.export import Report
from openassay.models.report import SourceCard
from openassay.server import runs
from openassay.server.auth import Caller, OwnThread, VisibleThread, WritableThread, Writer
from openassay.server.bodies import Body, hide_file_urls, refusals, with_examples
from openassay.server.reports import RunQuery, load_report
from openassay.server.runs import StartResponse, to_start_response
from openassay.server.service import Service, ServiceDep

router = APIRouter(tags=["sources"])
SourceId = Annotated[
    str,
    Path(
        alias="sourceId",
        pattern="^([Ss][0-9]{1,6}|[0-9a-fA-F]{8,64})$",
        description="Its id in the report (S1), or the hash of its document.",
        examples=["S1"],
    ),
]


class Excerpt(Body):
    """A quote of a source that supports a claim, or speaks against it."""

    claim: str
    start: int
    end: int
    quote: str
    against: bool = False


class SourceBody(Body):
    model_config = with_examples("""
        {"id": "S1", "title": "Annual report", "url": "https://example.com/annual-report", "host": "example.com",
        "kind": "web", "author": null, "published": "2024-01-31",
        "document": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "group": "G1",
        "whyUsed": "It answers Q1", "primary": true, "credibility": 0.8, "credibilityReasons": [], "sameAs": [],
        "pinned": false, "excerpts": [{"claim": "C1", "start": 1600, "end": 1629,
        "quote": "Deliveries rose by 38 percent"}]}
        """)

    id: str
    title: str
    url: str
    host: str = ""
    kind: str
    author: str | None = None
    published: str | None = None
    document: str
    group: str
    why_used: str
    primary: bool = False
    credibility: float
    credibility_reasons: tuple[str, ...] = ()
    same_as: tuple[str, ...] = ()
    pinned: bool = False
    excerpts: tuple[Excerpt, ...] = ()


class VetoBody(Body):
    document: str
    url: str
    title: str = ""


class SourceList(Body):
    """`pinned` are documents, also such that the last report does not use; `vetoed` is what the thread must not use."""

    sources: tuple[SourceBody, ...]
    pinned: tuple[str, ...] = ()
    vetoed: tuple[VetoBody, ...] = ()


@router.get("/api/threads/{threadId}/sources", summary="List the sources of the report", responses=refusals(404))
async def list_sources(thread: VisibleThread, caller: Caller, service: ServiceDep, run: RunQuery = None) -> SourceList:
    """Of the latest report, or of an earlier run's; none while there is no report. A link shows the report's own, and
    not what was pinned or vetoed."""
    values = await service.engine.state(thread.id)
    try:
        report = await load_report(service, caller, thread, run)
    except NotFoundError:
        if run is not None:
            raise
        report = None
    if caller.share is not None:
        return SourceList(
            sources=tuple(_to_source(card, report, pinned=False) for card in report.sources) if report else ()
        )
    pinned = [pin.document for pin in await service.resources.pins.list_for(thread.id)]
    cards = [_to_source(card, report, card.document in pinned) for card in report.sources] if report else []
    vetoed = [VetoBody(**hide_file_urls(one)) for one in values.get("vetoed") or ()]
    return SourceList(sources=tuple(cards), pinned=tuple(pinned), vetoed=tuple(vetoed))


def _to_source(card: SourceCard, report: Report, pinned: bool) -> SourceBody:
    excerpts = [
        Excerpt(claim=claim.id, start=span.start, end=span.end, quote=span.quote, against=against)
        for claim in report.claims
        for spans, against in ((claim.spans, False), (claim.against, True))
        for span in spans
        if span.document == card.document
    ]
    return SourceBody(**hide_file_urls(card.model_dump()), pinned=pinned, excerpts=tuple(excerpts))


class PinBody(Body):
    model_config = with_examples("""
        {"document": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "pinned": true}
        """)

    document: str
    pinned: bool


@router.put("/api/threads/{threadId}/sources/{sourceId}/pin", summary="Pin a source", responses=refusals(404))
async def pin_source(id: SourceId, thread: WritableThread, service: ServiceDep) -> PinBody:
    """Its document is pinned, whatever id later reports give it."""
    document = await _resolve_document(service, thread.id, id)
    await service.resources.pins.pin(thread.id, document)
    return PinBody(document=document, pinned=True)


@router.delete("/api/threads/{threadId}/sources/{sourceId}/pin", summary="Unpin a source", responses=refusals(404))
async def unpin_source(id: SourceId, thread: WritableThread, service: ServiceDep) -> PinBody:
    document = await _resolve_document(service, thread.id, id)
    await service.resources.pins.unpin(thread.id, document)
    return PinBody(document=document, pinned=False)


async def _resolve_document(service: Service, thread: str, source: str) -> str:
    """Return the hash of a source of the last report, or of any document of the thread."""
    if source[0] in "sS":
        return (await _find_card(service, thread, source)).document
    return (await service.engine.document(source, thread=thread)).hash


async def _find_card(service: Service, thread: str, source: str) -> SourceCard:
    """Return a source of the report by its id or by its document."""
    report = await service.engine.history.report(thread)
    name = source.lower()
    found = [card for card in report.sources if card.id.lower() == name or card.document.startswith(name)]
    if len(found) != 1:
        known = ", ".join(card.id for card in report.sources) or "none"
        raise NotFoundError(f"the report has no source {source}", help=f"It has: {known}.")
    return found[0]


@router.post(
    "/api/threads/{threadId}/sources/{sourceId}/veto",
    status_code=202,
    summary="Veto a source",
    response_model=StartResponse,
    responses=refusals(402, 404, 409),
)
async def veto_source(id: SourceId, thread: WritableThread, caller: Writer, service: ServiceDep) -> Response:
    """A run derives again what rested on it; all else stays as it is, and later questions do not use it."""
    card = await _find_card(service, thread.id, id)
    run = await runs.veto(service, caller, thread.id, card.document)
    return to_start_response(run, None, 202)


class VetoConsequences(Body):
    """What the report would lose: ids of claims, and the texts of sentences and sub-questions."""

    model_config = with_examples("""
        {"lost": ["C1"], "weaker": ["C2"], "sentences": ["Deliveries rose by 38 percent."], "unanswered": [],
        "untouched": 7}
        """)

    lost: tuple[str, ...] = Field(default=(), description="Claims that rest on nothing else.")
    weaker: tuple[str, ...] = Field(default=(), description="Claims that keep other sources.")
    sentences: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()
    untouched: int = 0


@router.get(
    "/api/threads/{threadId}/sources/{sourceId}/consequences",
    summary="Preview the consequences of a veto",
    responses=refusals(404),
)
async def get_consequences(id: SourceId, thread: OwnThread, service: ServiceDep) -> VetoConsequences:
    """Nothing is changed."""
    card = await _find_card(service, thread.id, id)
    found = await service.engine.vetoes.consequences(thread.id, [card.document])
    return VetoConsequences(**found.model_dump(exclude={"sources"}))
