"""Which version of something a caller has seen (RFC 9110): it is not sent again, and not changed unseen."""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Header, Request
from fastapi.responses import Response
from pydantic import BaseModel

from assay.server.problems import PreconditionError

_DIGITS = 32
Match = Annotated[str | None, Header(alias="If-Match", description="Only if it is still this version (an ETag).")]


def content_of(value: BaseModel | Mapping[str, Any]) -> bytes:
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


def tag_of(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:_DIGITS]}"'


def answer(request: Request, value: BaseModel | Mapping[str, Any]) -> Response:
    """With its ETag; 304 without anything for who has it."""
    content = content_of(value)
    headers = {"ETag": tag_of(content), "Cache-Control": "private, no-cache"}
    if is_among(headers["ETag"], request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type="application/json")


def refuse_other(match: str | None, value: BaseModel | Mapping[str, Any]) -> None:
    """PreconditionError where the caller has seen another version than there is."""
    if match is not None and not is_among(tag_of(content_of(value)), match):
        raise changed()


def changed() -> PreconditionError:
    return PreconditionError("it has changed since you have seen it", help="Fetch it again and look at it first.")


def is_among(tag: str, told: str | None) -> bool:
    """Whether a header names this version, or any."""
    if told is None:
        return False
    names = [name.strip().removeprefix("W/") for name in told.split(",")]
    return "*" in names or tag in names
