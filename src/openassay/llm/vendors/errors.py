"""Turns the refusals of providers into errors: by their status, headers and body.

The words of a provider are quoted only where they explain something, and never when they hold a key or a piece of the
prompt.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from openassay.errors import ApiKeyError, ContextOverflowError, ModelError, ModelTimeoutError, RateLimitError
from openassay.llm.vendors import ModelRequest, ParameterError
from openassay.text.urls import parse_retry_after

# Errors in the middle of a stream have a name instead of a status.
STATUSES = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "server_error": 500,
    "timeout_error": 504, "overloaded_error": 529,
}  # fmt: skip

_OVERFLOW = re.compile(
    r"context_length_exceeded|maximum context|context (length|limit|window|size)|prompt is too long|input is too long"
    r"|exceeds the maximum number of tokens|exceed_context_size|request_too_large",
    re.I,
)
_NO_CREDIT = re.compile(r"insufficient_quota|credit balance|billing_error|no credit", re.I)
_BAD_KEY = re.compile(r"API_KEY_INVALID|api key not valid|invalid api key|incorrect api key", re.I)
_REFUSES = re.compile(
    r"not support|unsupported|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|requires|not available"
    r"|deprecated|only the default|extra inputs|no endpoints|failed to|cannot",
    re.I,
)
# In this order: a tool's schema is a matter of tools.
_PARAMETERS = {
    "stream_options": re.compile(r"stream_options|include_usage", re.I),
    "temperature": re.compile(r"\btemperature\b", re.I),
    "max_tokens": re.compile(r"\bmax_(completion_)?tokens\b", re.I),
    "tools": re.compile(r"\btools?\b|tool_?(choice|config)|function.?(call|declaration)", re.I),
    "response_format": re.compile(
        r"response_?format|output_config|output_format|response_?(json_?)?schema|response_?mime|json.?(schema|object)"
        r"|structured output|grammar",
        re.I,
    ),
}
_KEYLIKE = re.compile(r"\b(sk|pk|key|AIza|Bearer)[-_ ]?[\w*.-]{6,}", re.I)


class VendorEndpoint(NamedTuple):
    """The endpoint of a vendor, as messages name it."""

    vendor: str
    address: str  # without user and password
    variable: str  # that holds the key
    secret: str = ""  # never in a message


class ErrorBody(NamedTuple):
    """The useful parts of an error body, whoever wrote it."""

    code: str = ""
    message: str = ""
    parameter: str = ""
    status: int = 0
    delay: float | None = None


def parse_error_body(body: object) -> ErrorBody:
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return ErrorBody(message=body if isinstance(body, str) else "")
    inner = body.get("error", body)
    if not isinstance(inner, dict):
        return ErrorBody(message=str(inner))
    codes = [str(inner[name]) for name in ("code", "type", "status") if inner.get(name) is not None]
    status = inner.get("code") if isinstance(inner.get("code"), int) else STATUSES.get(str(inner.get("type")), 0)
    # Google's ErrorInfo and RetryInfo ({"retryDelay": "34s"}), and Anthropic's error codes.
    listed = inner.get("details")
    details = [item for item in (listed if isinstance(listed, list) else [listed]) if isinstance(item, dict)]
    reasons = [item.get("reason") or item.get("error_code") for item in details]
    delays = [item["retryDelay"] for item in details if isinstance(item.get("retryDelay"), str)]
    delay = _parse_number(delays[0].removesuffix("s")) if delays and isinstance(listed, list) else None
    return ErrorBody(
        code=" ".join([*codes, *(reason for reason in reasons if isinstance(reason, str))]),
        message=str(inner.get("message") or inner.get("detail") or ""),
        parameter=str(inner.get("param") or ""),
        status=int(status or 0),
        delay=delay,
    )


def decode_json(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None  # an HTML page of a gateway says nothing to us


def refusal_error(
    status: int, headers: Mapping[str, str], body: ErrorBody, endpoint: VendorEndpoint, request: ModelRequest
) -> ModelError:
    """Return the error of a request that the provider refused, and does not bill."""
    text = f"{body.code} {body.parameter} {body.message}".replace(request.model, "")
    about: dict[str, Any] = {"provider": endpoint.vendor, "model": request.model, "status": status}
    if status in (401, 403) or _BAD_KEY.search(text):
        return ApiKeyError(
            f"{endpoint.vendor} rejects the key ({about['status']})",
            help=f"Check {endpoint.variable}, and that the account may use this model.",
            **about,
        )
    if status == 402 or _NO_CREDIT.search(text):
        return ApiKeyError(
            f"the account at {endpoint.vendor} has no credit left",
            help=f"Add credit there, or set another {endpoint.variable}.",
            **about,
        )
    if status == 429:
        wait = body.delay if body.delay is not None else retry_after(headers)
        return RateLimitError(f"{endpoint.vendor} wants fewer requests (429)", retry_after=wait, **about)
    if status == 413 or (status < 500 and _OVERFLOW.search(text)) or "exceed_context_size" in text:
        return ContextOverflowError(f"the prompt is too long for {request.model}", **about)
    if (parameter := _find_parameter(status, text)) is not None:
        return ParameterError(
            f"{endpoint.vendor} does not take {parameter} for {request.model}", parameter=parameter, **about
        )
    if status == 404:
        return ModelError(
            f"{endpoint.vendor} has no model {request.model}",
            help="Check the name with the vendor or the server.",
            **about,
        )
    if 300 <= status < 400:
        return ModelError(
            f"{endpoint.address} redirects elsewhere ({status})",
            help="Correct the address; redirects are not followed.",
            **about,
        )
    reason = _safe_reason(body.message, request, endpoint)
    what = "is overloaded" if status == 529 or "overloaded" in body.code else "answered"
    return ModelError(
        f"{endpoint.vendor} {what} ({status}){reason}", retryable=status >= 500 or status in (408, 409, 425), **about
    )


def unreachable_error(endpoint: VendorEndpoint) -> ModelError:
    return ModelError(
        f"cannot reach {endpoint.vendor} at {endpoint.address}; is the server running?",
        help="Check the address and the network.",
        retryable=True,
        provider=endpoint.vendor,
    )


def answer_error(endpoint: VendorEndpoint, what: str, *, billed: bool = True) -> ModelError:
    """Return the error of a broken answer, which may have been billed unless it is known that no model answered."""
    return ModelError(f"{endpoint.vendor}: {what}", retryable=True, billed=billed, provider=endpoint.vendor)


def timeout_error(endpoint: VendorEndpoint, seconds: float, *, connected: bool) -> ModelTimeoutError:
    what = f"gave no whole answer in {seconds:g} s" if connected else f"at {endpoint.address} accepts no connection"
    return ModelTimeoutError(
        f"{endpoint.vendor} {what}",
        help="Raise llm.call_seconds, or choose a faster model.",
        retryable=True,
        billed=connected,
        provider=endpoint.vendor,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait; the header holds them, or a date."""
    if (milliseconds := _parse_number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    return parse_retry_after(headers.get("retry-after", ""))


def _parse_number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _find_parameter(status: int, text: str) -> str | None:
    """Find the parameter that was refused.

    On a bad request its name is enough, save for limits, where a wrong value is named as well."""
    if status not in (400, 404, 422, 500, 501):
        return None
    refuses = _REFUSES.search(text) is not None
    for parameter, pattern in _PARAMETERS.items():
        if pattern.search(text) and (refuses or (status in (400, 422) and parameter != "max_tokens")):
            return parameter
    return None


def _safe_reason(message: str, request: ModelRequest, endpoint: VendorEndpoint) -> str:
    """Return a provider's reason on one short line, or nothing if it repeats the prompt or the key."""
    line = _KEYLIKE.sub("…", " ".join(message.split()))[:160]
    if not line or not line.isprintable() or "<" in line:
        return ""
    if _has_overlap(message, endpoint.secret, 8):
        return ""
    sent = " ".join(f"{request.prompt.system} {request.prompt.text}".split())
    return "" if _has_overlap(line, sent, 16) else f": {line}"


def _has_overlap(text: str, secret: str, length: int) -> bool:
    """Tell whether so many characters in a row stand in both."""
    return any(text[at : at + length] in secret for at in range(len(text) - length + 1))
