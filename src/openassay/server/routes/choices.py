"""What can be chosen for a question, and the defaults. Nothing on the network is asked."""

from typing import Literal, get_args

from fastapi import APIRouter
from pydantic import Field

from openassay.engine.choices import describe_depth, describe_model, select_default_models, unavailable_reason
from openassay.fetch.documents import SUFFIXES
from openassay.models.plan import FEWEST_WORDS, LONGEST, MOST_WORDS, Depth, Mode, QueryType, Style
from openassay.protocols import RemoteSource
from openassay.server.auth import Reader
from openassay.server.bodies import Body, refusals, with_examples
from openassay.server.schemas import MAX_DOCUMENTS
from openassay.server.service import ServiceDep

router = APIRouter(tags=["choices"])


class DepthChoice(Body):
    name: Depth
    about: str


class SourceChoice(Body):
    """`kind`: what it has; `own` is on the server's machine. `usd` is what one search costs."""

    name: str
    kind: QueryType | Literal["own"]
    available: bool
    reason: str = Field(default="", description="Why it cannot be searched.")
    usd: float = 0.0


class Defaults(Body):
    """What is used for options that are left out; leave them out instead of sending these."""

    depth: Depth
    mode: Mode
    source: str
    style: Style
    words: int
    usd: float = Field(description="The most a question may cost.")
    model: str | None = Field(description="The model used; embedded costs nothing, null: it cannot be used.")


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
                {"name": "brave", "kind": "web", "available": False, "reason": "needs BRAVE_API_KEY", "usd": 0.005}
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
    words: tuple[int, int] = Field(description="Of a report: the fewest and the most.")
    longest_question: int = Field(description="In characters.")
    share_days: float = Field(description="For which a link is valid by default.")


@router.get("/api/choices", summary="List the choices for a question", responses=refusals())
def get_choices(caller: Reader, service: ServiceDep) -> Choices:
    """The same for everybody, as the settings have it."""
    settings = service.settings
    server, models = settings.server, select_default_models(settings)
    sources = []
    for source in service.resources.sources.list_sources():
        reason = unavailable_reason(source, settings)
        choice = SourceChoice(name=source.name, kind="own", available=not reason, reason=reason)
        if isinstance(source, RemoteSource):
            choice = choice.model_copy(update={"kind": source.types[0], "usd": source.terms.usd})
        sources.append(choice)
    return Choices(
        depths=tuple(DepthChoice(name=depth, about=describe_depth(depth, settings, models)) for depth in Depth),
        styles=get_args(Style),
        modes=tuple(Mode),
        sources=tuple(sources),
        defaults=Defaults(
            depth=settings.depth,
            mode=settings.mode,
            source=settings.source,
            style=settings.style_guide,
            words=settings.target_length,
            usd=settings.budget.usd,
            model=describe_model(models),
        ),
        files=FileLimits(
            suffixes=tuple(sorted(SUFFIXES)),
            max_mb=min(server.upload_mb, settings.reading.max_file_mb),
            most=min(MAX_DOCUMENTS, server.uploads),
        ),
        words=(FEWEST_WORDS, MOST_WORDS),
        longest_question=LONGEST,
        share_days=server.share_days,
    )
