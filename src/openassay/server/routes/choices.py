"""What a person may choose when they ask, and what holds where they choose nothing. Nobody on the network is asked."""

import asyncio
from pathlib import Path
from typing import Literal, get_args

from fastapi import APIRouter
from pydantic import Field

from openassay.errors import OpenAssayError
from openassay.fetch.documents import SUFFIXES
from openassay.llm.selection import EMBEDDED, ModelSelection, select_models
from openassay.models.plan import FEWEST_WORDS, LONGEST, MOST_WORDS, TYPES_BY_DEPTH, Depth, Mode, QueryType, Style
from openassay.models.thread import ResearchOptions
from openassay.nodes.analyse import max_rounds
from openassay.protocols import RemoteSource, Source
from openassay.reasoning.llm import plan as language
from openassay.reasoning.llm.write import QUICK_WORDS
from openassay.reasoning.rules import plan as embedded
from openassay.search.registry import OFFLINE
from openassay.server.auth import Reader
from openassay.server.bodies import Body, refusals, with_examples
from openassay.server.schemas import MOST_DOCUMENTS
from openassay.server.service import Service, ServiceDep
from openassay.settings import Settings

router = APIRouter(tags=["choices"])
_PLACES: dict[QueryType, str] = {"web": "the web", "academic": "papers", "news": "the news", "code": "code"}


class DepthChoice(Body):
    name: Depth
    about: str


class SourceChoice(Body):
    """`kind`: what is found there; `own` is on the server's machine. `usd` is what one search costs."""

    name: str
    kind: QueryType | Literal["own"]
    available: bool
    reason: str = Field(default="", description="Why it cannot be asked.")
    usd: float = 0.0


class Defaults(Body):
    """What holds where nothing is said: leave it out instead of sending it back."""

    depth: Depth
    mode: Mode
    source: str
    style: Style
    words: int
    usd: float = Field(description="The most a question may cost.")
    model: str | None = Field(description="Who thinks; embedded costs nothing, null: it cannot be asked.")


class FileLimits(Body):
    suffixes: tuple[str, ...]
    max_mb: float = Field(description="Of one file.")
    most: int = Field(description="Of one question.")


class Choices(Body):
    model_config = with_examples(
        {
            "depths": [{"name": "quick", "about": "An answer of up to 220 words: one sub-question, ..."}],
            "styles": list(get_args(Style)),
            "modes": ["auto", "plan"],
            "sources": [
                {"name": "brave", "kind": "web", "available": False, "reason": "needs BRAVE_API_KEY", "usd": 0.005},
            ],
            "defaults": {
                "depth": "standard",
                "mode": "auto",
                "source": "auto",
                "style": "academic",
                "words": 2000,
                "usd": 2.0,
                "model": "embedded",
            },
            "files": {"suffixes": [".pdf", ".txt"], "maxMb": 25, "most": 100},
            "words": [50, 20000],
            "longestQuestion": 2000,
            "shareDays": 7,
        }
    )

    depths: tuple[DepthChoice, ...]
    styles: tuple[Style, ...]
    modes: tuple[Mode, ...]
    sources: tuple[SourceChoice, ...]
    defaults: Defaults
    files: FileLimits
    words: tuple[int, int] = Field(description="Of a report: the fewest and the most that can be asked for.")
    longest_question: int = Field(description="In characters.")
    share_days: float = Field(description="A link is good for, where nothing else is said.")


@router.get("/api/choices", summary="What can be chosen", responses=refusals())
async def get_choices(caller: Reader, service: ServiceDep) -> Choices:
    """The same for everybody, as the settings of the server have it."""
    return await asyncio.to_thread(_load_choices, service)


def _load_choices(service: Service) -> Choices:
    settings = service.settings
    server, thinking = settings.server, _select_model(settings)
    return Choices(
        depths=tuple(DepthChoice(name=depth, about=_describe_depth(depth, settings, thinking)) for depth in Depth),
        styles=get_args(Style),
        modes=tuple(Mode),
        sources=tuple(_to_source_choice(one, settings) for one in service.resources.sources.list_sources()),
        defaults=Defaults(
            depth=settings.depth,
            mode=settings.mode,
            source=settings.source,
            style=settings.style_guide,
            words=settings.target_length,
            usd=settings.budget.usd,
            model=_model_name(thinking),
        ),
        files=FileLimits(
            suffixes=tuple(sorted(SUFFIXES)),
            max_mb=min(server.upload_mb, settings.reading.max_file_mb),
            most=min(MOST_DOCUMENTS, server.uploads),
        ),
        words=(FEWEST_WORDS, MOST_WORDS),
        longest_question=LONGEST,
        share_days=server.share_days,
    )


def _select_model(settings: Settings) -> ModelSelection | OpenAssayError | None:
    """Who does, or why nobody can be asked; None: the embedded reasoner."""
    try:
        return select_models(settings, ResearchOptions())
    except OpenAssayError as error:
        return error


def _model_name(thinking: ModelSelection | OpenAssayError | None) -> str | None:
    if not isinstance(thinking, ModelSelection):
        return EMBEDDED if thinking is None else None
    model = thinking.first
    return f"local:{Path(model.name).name}" if model.vendor == "local" else str(model)


def _describe_depth(depth: Depth, settings: Settings, thinking: object) -> str:
    most = (embedded if thinking is None else language).MOST[depth]
    quick = f"An answer of up to {QUICK_WORDS} words"
    long = quick if depth is Depth.QUICK else f"A report of up to {settings.target_length:,} words"
    *others, last = [_PLACES[kind] for kind in TYPES_BY_DEPTH[depth]]
    places = f"{', '.join(others)} and {last}" if others else last
    return (
        f"{long}: {_pluralize(most, 'sub-question')}, "
        f"{_pluralize(max_rounds(settings), 'round')} of searching {places}."
    )


def _pluralize(most: int, noun: str) -> str:
    return f"up to {most} {noun}s" if most > 1 else f"one {noun}"


def _to_source_choice(source: Source, settings: Settings) -> SourceChoice:
    if not isinstance(source, RemoteSource):
        ready = source.is_available()
        reason = "" if ready else "needs documents that are given with the question"
        return SourceChoice(name=source.name, kind="own", available=ready, reason=reason)
    reason = _unavailable_reason(source, settings)
    return SourceChoice(
        name=source.name, kind=source.types[0], available=not reason, reason=reason, usd=source.terms.usd
    )


def _unavailable_reason(source: RemoteSource, settings: Settings) -> str:
    if settings.offline:
        return OFFLINE
    if source.is_available():
        return ""
    if source.name in settings.search.without:
        return "left out by the settings"
    needed = source.terms.needs or (source.terms.key or "").upper()
    return f"needs {needed}" if needed else "it is not set up"
