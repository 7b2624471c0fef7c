"""Responses: JSON with ETags (RFC 9110), file names (RFC 6266), and pages without scripts or outside resources."""

import hashlib
import json
import re
import unicodedata
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Header, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel

from openassay.export import to_file_stem
from openassay.server.problems import PreconditionError

IfMatch = Annotated[str | None, Header(alias="If-Match", description="Only if it is still this version (an ETag).")]
_STYLE = (
    "body{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
)
_STYLES = re.compile(r"<style>(.*?)</style>", re.S)


def to_json_bytes(value: BaseModel | Mapping[str, Any]) -> bytes:
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


def json_response(value: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(to_json_bytes(value), status, headers=dict(headers or {}), media_type="application/json")


def compute_etag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def matches_etag(tag: str, header: str | None) -> bool:
    """Return whether a header names this version, or any."""
    names = [name.strip().removeprefix("W/") for name in (header or "").split(",")]
    return "*" in names or tag in names


def respond_unless_seen(
    request: Request, content: bytes, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with content and its ETag; with 304 and nothing if the caller has it already."""
    tagged = {"Cache-Control": "private, no-cache", **(headers or {}), "ETag": compute_etag(content)}
    if matches_etag(tagged["ETag"], request.headers.get("if-none-match")):
        return Response(status_code=304, headers=tagged)
    return Response(content, headers=tagged, media_type=media_type)


def respond_with_etag(request: Request, value: BaseModel | Mapping[str, Any]) -> Response:
    return respond_unless_seen(request, to_json_bytes(value), "application/json")


def require_match(match: str | None, value: BaseModel | Mapping[str, Any]) -> None:
    """Raise PreconditionError where the caller has seen another version than there is."""
    if match is not None and not matches_etag(compute_etag(to_json_bytes(value)), match):
        raise precondition_error()


def precondition_error() -> PreconditionError:
    return PreconditionError("it has changed since you last saw it", help="Fetch it again and look at it first.")


def content_disposition(title: str, suffix: str) -> str:
    """Return the header of an attachment, with a file name in ASCII and one for all others."""
    name = to_file_stem(title)
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = " ".join(re.sub(r"[^A-Za-z0-9 ()+,._-]", " ", plain).split()).strip(" .") or "report"
    return f"attachment; filename=\"{plain}.{suffix}\"; filename*=UTF-8''{quote(f'{name}.{suffix}', safe='')}"


def respond_with_page(title: str, body: str, status: int = 200) -> HTMLResponse:
    """Answer with a page; `body` is HTML of ours, in which everything that others have written is escaped."""
    content = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="robots" content="noindex, nofollow"><meta name="referrer" content="no-referrer">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>"
    )
    return HTMLResponse(content, status, headers=page_headers(content))


def respond_with_message(title: str, *lines: str, status: int = 200) -> HTMLResponse:
    text = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return respond_with_page(title, f"<h1>{escape(title)}</h1>{text}", status)


def page_headers(content: str) -> dict[str, str]:
    """Return headers that allow the page's own styles and nothing else, and send no referrer."""
    digests = (b64encode(hashlib.sha256(style.encode()).digest()).decode() for style in _STYLES.findall(content))
    styles = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    policy = f"default-src 'none'; style-src {styles}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Robots-Tag": "noindex, nofollow",
        "Cache-Control": "private, no-store",
    }
