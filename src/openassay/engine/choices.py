"""What can be chosen for a question under the given settings. Nothing on the network is asked."""

from pathlib import Path

from openassay.errors import OpenAssayError
from openassay.llm.selection import EMBEDDED, ModelSelection, select_models
from openassay.models.plan import TYPES_BY_DEPTH, Depth, QueryType
from openassay.models.thread import ResearchOptions
from openassay.nodes.analyse import max_rounds
from openassay.protocols import RemoteSource, Source
from openassay.reasoning.llm import plan as llm_plan
from openassay.reasoning.llm.write import QUICK_WORDS
from openassay.reasoning.rules import plan as rules_plan
from openassay.search.registry import OFFLINE
from openassay.settings import Settings

_PLACES: dict[QueryType, str] = {"web": "the web", "academic": "papers", "news": "the news", "code": "code"}
Models = ModelSelection | OpenAssayError | None  # an error: why no model can be used; None: the rules think


def select_default_models(settings: Settings) -> Models:
    try:
        return select_models(settings, ResearchOptions())
    except OpenAssayError as error:
        return error


def describe_model(models: Models) -> str | None:
    """Return the name of the model that is used, or None if it cannot be used."""
    if not isinstance(models, ModelSelection):
        return EMBEDDED if models is None else None
    return f"local:{Path(models.first.name).name}" if models.first.vendor == "local" else str(models.first)


def describe_depth(depth: Depth, settings: Settings, models: Models) -> str:
    """Return what a depth of research means, in a sentence."""
    most, rounds = (rules_plan if models is None else llm_plan).MOST[depth], max_rounds(settings)
    quick = f"An answer of up to {QUICK_WORDS} words"
    length = quick if depth is Depth.QUICK else f"A report of up to {settings.target_length:,} words"
    *others, last = [_PLACES[kind] for kind in TYPES_BY_DEPTH[depth]]
    places = f"{', '.join(others)} and {last}" if others else last
    questions = f"up to {most} sub-questions" if most > 1 else "one sub-question"
    return f"{length}: {questions}, {f'up to {rounds} rounds' if rounds > 1 else 'one round'} of searching {places}."


def unavailable_reason(source: Source, settings: Settings) -> str:
    """Return why a source cannot be searched, or an empty text if it can."""
    if isinstance(source, RemoteSource) and settings.offline:
        return OFFLINE
    if source.is_available():
        return ""
    if not isinstance(source, RemoteSource):
        return "needs documents that are given with the question"
    if source.name in settings.search.without:
        return "left out by the settings"
    needed = source.terms.needs or (source.terms.key or "").upper()
    return f"needs {needed}" if needed else "it is not set up"
