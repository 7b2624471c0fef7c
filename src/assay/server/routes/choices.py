"""What a person may choose when they ask, and what holds where they choose nothing. Nobody on the network is asked."""

import asyncio
from pathlib import Path
from typing import Literal, get_args

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from assay.errors import AssayError
from assay.harvest.files import SUFFIXES
from assay.llm.lineup import EMBEDDED, Lineup, lineup
from assay.model.plan import FEWEST_WORDS, MOST_WORDS, TYPES_BY_DEPTH, QueryType, Style
from assay.model.question import LONGEST, Depth, Mode
from assay.model.thread import Options
from assay.ports import Remote, Source
from assay.reasoning.embedded import planning as embedded
from assay.reasoning.language import planning as language
from assay.reasoning.language.writing import QUICK_WORDS
from assay.search.choice import OFFLINE
from assay.server.access import Reader
from assay.server.bodies import Body, refusals
from assay.server.service import Service, Serving
from assay.server.wishes import MOST_DOCUMENTS
from assay.settings import Settings
from assay.stages.analyse import most_rounds

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


class Files(Body):
    suffixes: tuple[str, ...]
    max_mb: float = Field(description="Of one file.")
    most: int = Field(description="Of one question.")


class Choices(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "depths": [{"name": "quick", "about": "An answer of up to 220 words: one sub-question, ..."}],
                    "styles": list(get_args(Style)),
                    "modes": ["auto", "plan"],
                    "sources": [
                        {"name": "brave", "kind": "web", "available": False, "reason": "needs BRAVE_API_KEY",
                         "usd": 0.005},
                    ],
                    "defaults": {"depth": "standard", "mode": "auto", "source": "auto", "style": "academic",
                                 "words": 2000, "usd": 2.0, "model": "embedded"},
                    "files": {"suffixes": [".pdf", ".txt"], "maxMb": 25, "most": 100},
                    "words": [50, 20000],
                    "longestQuestion": 2000,
                    "shareDays": 7,
                }
            ]
        }
    )  # fmt: skip

    depths: tuple[DepthChoice, ...]
    styles: tuple[Style, ...]
    modes: tuple[Mode, ...]
    sources: tuple[SourceChoice, ...]
    defaults: Defaults
    files: Files
    words: tuple[int, int] = Field(description="Of a report: the fewest and the most that can be asked for.")
    longest_question: int = Field(description="In characters.")
    share_days: float = Field(description="A link is good for, where nothing else is said.")


@router.get("/api/choices", summary="What can be chosen", operation_id="get_choices", responses=refusals())
async def get_choices(caller: Reader, service: Serving) -> Choices:
    """The same for everybody, as the settings of the server have it."""
    return await asyncio.to_thread(_choices, service)


def _choices(service: Service) -> Choices:
    settings = service.settings
    server, thinking = settings.server, _thinking(settings)
    return Choices(
        depths=tuple(DepthChoice(name=depth, about=_about(depth, settings, thinking)) for depth in Depth),
        styles=get_args(Style),
        modes=tuple(Mode),
        sources=tuple(_source(one, settings) for one in service.premises.world.sources.installed()),
        defaults=Defaults(
            depth=settings.depth, mode=settings.mode, source=settings.source, style=settings.style_guide,
            words=settings.target_length, usd=settings.budget.usd, model=_named(thinking),
        ),
        files=Files(
            suffixes=tuple(sorted(SUFFIXES)), max_mb=min(server.upload_mb, settings.reading.max_file_mb),
            most=min(MOST_DOCUMENTS, server.uploads),
        ),
        words=(FEWEST_WORDS, MOST_WORDS),
        longest_question=LONGEST,
        share_days=server.share_days,
    )  # fmt: skip


def _thinking(settings: Settings) -> Lineup | AssayError | None:
    """Who does, or why nobody can be asked; None: the embedded reasoner."""
    try:
        return lineup(settings, Options())
    except AssayError as error:
        return error


def _named(thinking: Lineup | AssayError | None) -> str | None:
    if not isinstance(thinking, Lineup):
        return EMBEDDED if thinking is None else None
    model = thinking.first
    return f"local:{Path(model.name).name}" if model.vendor == "local" else str(model)


def _about(depth: Depth, settings: Settings, thinking: object) -> str:
    most = (embedded if thinking is None else language).MOST[depth]
    quick = f"An answer of up to {QUICK_WORDS} words"
    long = quick if depth is Depth.QUICK else f"A report of up to {settings.target_length:,} words"
    *others, last = [_PLACES[kind] for kind in TYPES_BY_DEPTH[depth]]
    places = f"{', '.join(others)} and {last}" if others else last
    return f"{long}: {_many(most, 'sub-question')}, {_many(most_rounds(settings), 'round')} of searching {places}."


def _many(most: int, noun: str) -> str:
    return f"up to {most} {noun}s" if most > 1 else f"one {noun}"


def _source(source: Source, settings: Settings) -> SourceChoice:
    if not isinstance(source, Remote):
        ready = source.is_available()
        reason = "" if ready else "needs documents that are given with the question"
        return SourceChoice(name=source.name, kind="own", available=ready, reason=reason)
    reason = _hindrance(source, settings)
    return SourceChoice(
        name=source.name, kind=source.types[0], available=not reason, reason=reason, usd=source.terms.usd
    )


def _hindrance(source: Remote, settings: Settings) -> str:
    if settings.offline:
        return OFFLINE
    if source.is_available():
        return ""
    if source.name in settings.search.without:
        return "left out by the settings"
    needed = source.terms.needs or (source.terms.key or "").upper()
    return f"needs {needed}" if needed else "it is not set up"
