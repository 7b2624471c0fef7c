"""The JSON of the API: names in camelCase, unknown ones refused."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

from openassay.text.words import is_readable

MAX_DEPTH = 24  # levels of data without a schema of their own; a plan has five
MAX_ID_LENGTH = 64
PROBLEM = "application/problem+json"
Responses = dict[int | str, dict[str, Any]]


class Body(BaseModel):
    """The base of all bodies that are the API's own; a report, an event or a state has its own schema."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, serialize_by_alias=True
    )


def with_examples(*examples: str | JsonDict) -> ConfigDict:
    """Return the `model_config` of a body with examples for the OpenAPI document, as JSON texts or as data."""
    return ConfigDict(
        json_schema_extra={"examples": [json.loads(one) if isinstance(one, str) else one for one in examples]}
    )


def require_readable(text: str) -> str:
    if not is_readable(text):
        raise ValueError("this is not readable text")
    return text


def require_shallow(value: Any) -> Any:
    """Refuse data that could not be stored: nested too deeply, or with unreadable text in it."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"this is nested more than {MAX_DEPTH} levels deep")
        below: list[Any] = []
        for one in level:
            if isinstance(one, str):
                require_readable(one)
            elif isinstance(one, dict):
                below += [*one, *one.values()]
            elif isinstance(one, list):
                below += one
        level = below
    return value


ReadableText = Annotated[str, AfterValidator(require_readable)]  # no control codes, no half characters
JsonData = Annotated[Any, AfterValidator(require_shallow)]
Id = Annotated[str, Field(pattern=rf"^[0-9A-Za-z_-]{{1,{MAX_ID_LENGTH}}}$")]


class ProblemDetails(BaseModel):
    """An error, as RFC 9457 describes it."""

    model_config = with_examples("""
        {"type": "urn:openassay:problem:not-found", "title": "Not Found", "status": 404,
        "detail": "no thread 4f1c2a9b7d3e", "help": "Look at the list of threads for its id.",
        "instance": "/api/threads/4f1c2a9b7d3e", "requestId": "6b0f2c41d8e94f0a9a1f1f3f3f0c7a55"}
        """)

    type: str
    title: str
    status: int
    detail: str
    instance: str
    requestId: str
    help: str = ""
    errors: list[dict[str, str]] = []  # of a malformed request: where, and what is wrong there


NOT_MODIFIED: Responses = {304: {"description": "Not modified since you fetched it (If-None-Match)."}}
COMMON_STATUSES = (400, 401, 403, 413, 422, 429)
PROBLEM_CONTENT: Mapping[str, Any] = {PROBLEM: {"schema": {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}}}


def refusals(*statuses: int) -> Responses:
    """Return the `responses=` of a route: the given statuses and those that every route may answer."""
    return {
        status: {"description": HTTPStatus(status).phrase, "content": PROBLEM_CONTENT}
        for status in sorted({*COMMON_STATUSES, *statuses})
    }
