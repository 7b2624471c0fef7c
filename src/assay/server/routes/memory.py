"""What is remembered of the person who calls, across threads: shown, changed and forgotten by them alone."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import AfterValidator, Field, field_validator

from assay.errors import UsageError
from assay.model.memory import LONGEST_FACT, MOST_NAMED, Fact, Preferences
from assay.model.plan import FEWEST_WORDS, MOST_WORDS, Style
from assay.search.party import party
from assay.server.access import Reader, Writer
from assay.server.bodies import Body, Text, refusals
from assay.server.problems import MalformedError
from assay.server.service import Serving
from assay.settings import Settings
from assay.stages.taste import code
from assay.text.clean import clean, is_readable

router = APIRouter(tags=["memory"])
UNKNOWN_LANGUAGE = "The planner is told; sources cannot be asked in this language."


def _in_words(text: str) -> str:
    said = " ".join(text.split())
    if not is_readable(said) or not any(map(str.isalnum, said)):
        raise ValueError("this is not readable text")
    return said


Words = Annotated[str, AfterValidator(_in_words)]
Party = Annotated[str, Field(max_length=253)]
FactId = Annotated[str, Path(alias="factId", description="The id of a fact.", examples=["M2"])]


class Preferred(Body):
    """Nothing: no preference, so the settings decide."""

    style: Style | None = Field(default=None, examples=["executive"])
    words: int | None = Field(default=None, ge=FEWEST_WORDS, le=MOST_WORDS, examples=[800])
    prefer: list[Party] = Field(default=[], max_length=MOST_NAMED, examples=[["nasa.gov", "arxiv"]])
    avoid: list[Party] = Field(default=[], max_length=MOST_NAMED, examples=[["reddit.com"]])
    region: Annotated[Words, Field(max_length=80)] | None = Field(default=None, examples=["Switzerland"])
    language: Annotated[Words, Field(max_length=40)] | None = Field(default=None, examples=["German"])


class KeptPreferences(Preferred):
    notices: list[str] = Field(default=[], examples=[[UNKNOWN_LANGUAGE]])


class Said(Body):
    text: Annotated[Text, Field(min_length=1, max_length=LONGEST_FACT, examples=["We report in euros"])]

    @field_validator("text")
    @classmethod
    def _is_in_words(cls, text: str) -> str:
        if not any(map(str.isalnum, clean(text))):
            raise ValueError("this is not readable text")
        return text


class KeptFact(Body):
    id: str = Field(examples=["M2"])
    text: str = Field(examples=["We report in euros"])
    created: datetime = Field(examples=["2026-03-01T12:00:00Z"])
    updated: datetime = Field(examples=["2026-03-01T12:00:00Z"])


class Remembered(Body):
    preferences: Preferred
    facts: list[KeptFact]


@router.get(
    "/api/memory", operation_id="get_memory", summary="Look at what is remembered of you", responses=refusals()
)  # fmt: skip
async def get_memory(caller: Reader, service: Serving) -> Remembered:
    memory = service.engine.memory
    preferences, facts = await memory.preferences(caller.user), await memory.facts(caller.user)
    return Remembered(preferences=Preferred.model_validate(preferences.plain()), facts=[_told(one) for one in facts])


@router.put(
    "/api/memory/preferences", operation_id="set_preferences", summary="Set your preferences", responses=refusals()
)  # fmt: skip
async def set_preferences(caller: Writer, service: Serving, body: Preferred) -> KeptPreferences:
    """All of them: what is left out is no preference any more."""
    preferences = _preferences(body, service.engine.settings)
    await service.engine.memory.prefer(caller.user, preferences)
    notices = [UNKNOWN_LANGUAGE] if preferences.language and code(preferences) is None else []
    return KeptPreferences.model_validate({**preferences.plain(), "notices": notices})


@router.post(
    "/api/memory/facts", status_code=201, operation_id="add_fact", summary="Have a fact remembered",
    responses=refusals(409),
)  # fmt: skip
async def add_fact(caller: Writer, service: Serving, body: Said) -> KeptFact:
    """One that is remembered already, in other letters, is the fact it was."""
    return _told(await service.engine.memory.remember(caller.user, body.text))


@router.patch(
    "/api/memory/facts/{factId}", operation_id="edit_fact", summary="Put a fact in other words",
    responses=refusals(404, 409),
)  # fmt: skip
async def edit_fact(id: FactId, caller: Writer, service: Serving, body: Said) -> KeptFact:
    return _told(await service.engine.memory.edit(caller.user, id, body.text))


@router.delete(
    "/api/memory/facts/{factId}", status_code=204, operation_id="forget_fact", summary="Forget a fact",
    responses=refusals(404),
)  # fmt: skip
async def forget_fact(id: FactId, caller: Writer, service: Serving) -> Response:
    await service.engine.memory.forget(caller.user, id)
    return Response(status_code=204)


@router.delete(
    "/api/memory", status_code=204, operation_id="forget_all", summary="Forget everything about you",
    responses=refusals(),
)  # fmt: skip
async def forget_all(caller: Writer, service: Serving) -> Response:
    await service.engine.memory.forget_all(caller.user)
    return Response(status_code=204)


def _preferences(body: Preferred, settings: Settings) -> Preferences:
    try:
        prefer, avoid = ([party(one, settings) for one in said] for said in (body.prefer, body.avoid))
    except UsageError as error:
        raise MalformedError(error.message, help=error.help) from error
    if both := sorted({*prefer} & {*avoid}):
        raise MalformedError(f"{both[0]} is both preferred and avoided", help="Leave it out of one of the two.")
    named = {"prefer": tuple(dict.fromkeys(prefer)), "avoid": tuple(dict.fromkeys(avoid))}
    return Preferences.model_validate({**body.model_dump(by_alias=False), **named})


def _told(fact: Fact) -> KeptFact:
    return KeptFact.model_validate(fact.plain())
