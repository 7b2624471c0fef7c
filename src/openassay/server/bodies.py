"""What comes in and goes out as JSON: names in camelCase, unknown ones refused."""

from http import HTTPStatus
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict
from pydantic.alias_generators import to_camel

from openassay.text.words import is_readable

DEEPEST = 24  # levels of data that have no form of their own; a plan has five
LONGEST_ID = 64


class Body(BaseModel):
    """The base of all bodies that are the API's own; a report, an event or a state has its own form."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, serialize_by_alias=True
    )


def require_readable(text: str) -> str:
    if not is_readable(text):
        raise ValueError("this is not readable text")
    return text


def require_shallow(value: Any) -> Any:
    """Data that can be written down again: what is nested without end, or holds what is no text, cannot."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"this is nested more than {DEEPEST} levels deep")
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
JsonData = Annotated[Any, AfterValidator(require_shallow)]  # whatever is JSON
StrictInt = Annotated[int, Strict()]  # "5" is a text, and true no number
StrictFloat = Annotated[float, Strict()]
StrictBool = Annotated[bool, Strict()]
Id = Annotated[str, Field(pattern=rf"^[0-9A-Za-z_-]{{1,{LONGEST_ID}}}$")]


class ProblemDetails(BaseModel):
    """RFC 9457: what is told of everything that cannot be."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:openassay:problem:not-found",
                    "title": "Not Found",
                    "status": 404,
                    "detail": "no thread 4f1c2a9b7d3e",
                    "help": "Look at the list of threads for its id.",
                    "instance": "/api/threads/4f1c2a9b7d3e",
                    "requestId": "6b0f2c41d8e94f0a9a1f1f3f3f0c7a55",
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    instance: str
    requestId: str
    help: str = ""
    errors: list[dict[str, str]] = []  # of a malformed request: where, and what is wrong there


PROBLEM = "application/problem+json"
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "It is as you have seen it (If-None-Match)."}}
ALWAYS = (400, 401, 403, 413, 422, 429)
_CONTENT = {
    PROBLEM: {"schema": {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}}
}  # problems.py puts it there


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For `responses=` of a route; those of ALWAYS are every route's."""
    return {
        status: {"description": HTTPStatus(status).phrase, "content": _CONTENT}
        for status in sorted({*ALWAYS, *statuses})
    }
