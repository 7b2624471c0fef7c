"""Pages people open in a browser: one file each, without scripts, and nothing of them is fetched from anywhere."""

import hashlib
import json
import re
import unicodedata
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from string import Template
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Header, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel

from openassay.export import to_file_stem
from openassay.server.problems import PreconditionError

# Which version of something a caller has seen (RFC 9110): it is not sent again, and not changed unseen.

_DIGITS = 32
IfMatch = Annotated[str | None, Header(alias="If-Match", description="Only if it is still this version (an ETag).")]


def to_json_bytes(value: BaseModel | Mapping[str, Any]) -> bytes:
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()


def compute_etag(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:_DIGITS]}"'


def respond_with_etag(request: Request, value: BaseModel | Mapping[str, Any]) -> Response:
    """With its ETag; 304 without anything for who has it."""
    content = to_json_bytes(value)
    headers = {"ETag": compute_etag(content), "Cache-Control": "private, no-cache"}
    if matches_etag(headers["ETag"], request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type="application/json")


def require_match(match: str | None, value: BaseModel | Mapping[str, Any]) -> None:
    """PreconditionError where the caller has seen another version than there is."""
    if match is not None and not matches_etag(compute_etag(to_json_bytes(value)), match):
        raise precondition_error()


def precondition_error() -> PreconditionError:
    return PreconditionError("it has changed since you have seen it", help="Fetch it again and look at it first.")


def matches_etag(tag: str, told: str | None) -> bool:
    """Whether a header names this version, or any."""
    if told is None:
        return False
    names = [name.strip().removeprefix("W/") for name in told.split(",")]
    return "*" in names or tag in names


# What a browser calls what it is sent (RFC 6266).


def content_disposition(title: str, suffix: str) -> str:
    """An attachment, with a name for those who read ASCII alone and one for all others."""
    name = to_file_stem(title)
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = " ".join(re.sub(r"[^A-Za-z0-9 ()+,._-]", " ", plain).split()).strip(" .") or "report"
    return f"attachment; filename=\"{plain}.{suffix}\"; filename*=UTF-8''{quote(f'{name}.{suffix}', safe='')}"


_STYLE = (
    "body{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
)
_PAGE = Template(
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="robots" content="noindex, nofollow"><meta name="referrer" content="no-referrer">'
    "<title>$title</title>$style</head><body>$body</body></html>"
)
_STYLES = re.compile(r"<style>(.*?)</style>", re.S)


def respond_with_page(title: str, body: str, status: int = 200) -> HTMLResponse:
    content = render_page(title, body)
    return HTMLResponse(content, status, headers=page_headers(content))


def render_page(title: str, body: str) -> str:
    """`body` is HTML of ours, in which everything others have written is escaped."""
    return _PAGE.substitute(title=escape(title), style=f"<style>{_STYLE}</style>", body=body)


def respond_with_message(title: str, *lines: str, status: int = 200) -> HTMLResponse:
    text = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return respond_with_page(title, f"<h1>{escape(title)}</h1>{text}", status)


def page_headers(content: str) -> dict[str, str]:
    """Nothing may be loaded or run but the styles that stand in it; nobody is told where a reader came from."""
    styles = " ".join(f"'sha256-{_digest(style)}'" for style in _STYLES.findall(content)) or "'none'"
    policy = f"default-src 'none'; style-src {styles}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Robots-Tag": "noindex, nofollow",
        "Cache-Control": "private, no-store",
    }


def _digest(style: str) -> str:
    return b64encode(hashlib.sha256(style.encode()).digest()).decode()
