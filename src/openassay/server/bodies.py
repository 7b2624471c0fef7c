"""The JSON of the API: names in camelCase, unknown ones refused; of files on the server's disk only their names."""

import json
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.config import JsonDict

from openassay.export import Report
from openassay.models.event import Event
from openassay.models.report import CONSIDERATION_PREFIX, REVIEWER_PREFIX
from openassay.text.redaction import Redactor
from openassay.text.words import is_readable

MAX_DEPTH = 24  # levels of data without a schema of their own; a plan has five
MAX_ID_LENGTH = 64
PROBLEM = "application/problem+json"
Responses = dict[int | str, dict[str, Any]]


class Body(BaseModel):
    """The base of all bodies that are the API's own, made from records of the same attributes where there are any; a
    report, an event or a state has its own schema."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        serialize_by_alias=True,
        from_attributes=True,
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
    _check_level(value, 1)
    return value


def _check_level(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"this is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        require_readable(value)
    elif isinstance(value, dict | list):
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            _check_level(item, depth + 1)


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


def created_links(**operations: dict[str, str]) -> Responses:
    """Return the `responses=` of a route that creates something: the operations on it, and their parameters."""
    return {201: {"links": {name: {"operationId": name, "parameters": given} for name, given in operations.items()}}}


def refusals(*statuses: int) -> Responses:
    """Return the `responses=` of a route: the given statuses and those that every route may answer."""
    return {
        status: {"description": HTTPStatus(status).phrase, "content": PROBLEM_CONTENT}
        for status in sorted({*COMMON_STATUSES, *statuses})
    }


# Redaction of what leaves the server

_FILE_URL = re.compile(r"file://[^\s\"'<>]*/")
_PATH = re.compile(r"(?<![^\s\"'(“‘])/(?:[^\s/][^/\n\"'<>:]*/)+(?=[^\s/])")  # that is no part of an address
_WITH_PATHS = frozenset({"run", "skip", "error", "notice"})  # kinds of events that may mention files
_PERSONAL_NOTICES = (CONSIDERATION_PREFIX, REVIEWER_PREFIX)


def hide_file_urls(value: Any) -> Any:
    """Return plain data with every file URL cut down to the file's name."""
    return _map_text(value, lambda text: _FILE_URL.sub("file:", text) if "file://" in text else text)


def hide_paths(value: Any) -> Any:
    """Hide the folders of file URLs and of paths. For messages about runs; what sources say stays as it is."""
    return _map_text(hide_file_urls(value), lambda text: _PATH.sub("", text) if "/" in text else text)


def redact_event(event: Event) -> Event:
    data = hide_paths(event.data) if event.kind in _WITH_PATHS else hide_file_urls(event.data)
    return event.model_copy(update={"data": data})


def redact_report(report: Report, redaction: Redactor) -> Report:
    """Hide file URLs and secrets, before it is rendered: Markdown escapes what a secret would be recognised by."""
    return Report.model_validate(redaction.redact_data(hide_file_urls(report.plain())))


def redact_report_for_link(report: Report, redaction: Redactor) -> Report:
    """Redact a report for anyone with a link: without how it was researched, and without the person who asked."""
    shown = redact_report(report, redaction)
    provenance = shown.provenance.model_copy(update={"queries": (), "checkpoints": ()})
    notices = tuple(notice for notice in shown.notices if not notice.startswith(_PERSONAL_NOTICES))
    return shown.model_copy(update={"plan": None, "errors": (), "notices": notices, "provenance": provenance})


def _map_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _map_text(item, change) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_text(item, change) for item in value]
    return value
