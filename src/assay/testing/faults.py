"""What goes wrong with a provider: the statuses, breaks and answers seen in the wild, each by name.

A fault says whether a real provider would charge for the call: not for what it turned down, always once it has begun
to think, whether or not anybody heard the answer.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from assay.testing import breaks, spoiled
from assay.testing.formats import Answer, Format, Problem, Reported
from assay.testing.wire import Piece, Response, Wire

EVERY = frozenset({"openai", "anthropic", "google"})
ELSEWHERE = "/elsewhere"  # where redirects lead, on another host of the same server


@dataclass(frozen=True)
class Fault:
    """`said` changes what the model says, `reported` its usage, `replied` the response, `sent` how its bytes go out."""

    name: str
    billed: bool
    said: Callable[[Answer], Answer] | None = None
    reported: Callable[[Reported], Reported | None] | None = None
    replied: Callable[[Response, Format], Response] | None = None
    sent: Callable[[Wire, Response], Awaitable[None]] | None = None
    formats: frozenset[str] = EVERY
    slow: bool = False  # the client has to lose patience

    def __str__(self) -> str:
        return self.name


def problem_response(format: Format, problem: Problem) -> Response:
    headers = {"Content-Type": "application/json", **_retry_after(problem)}
    return Response(problem.status, (Piece("body", spoiled.dumped(format.error(problem))),), headers)


def _retry_after(problem: Problem) -> dict[str, str]:
    if problem.retry_after != "date":
        return {"Retry-After": problem.retry_after} if problem.retry_after else {}
    return {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)}


def _turned_down(name: str, default: Problem | None, **wordings: Problem) -> Fault:
    """A status that is not 200, in each vendor's own words where they differ; one without words does not know it."""

    def replied(_: Response, format: Format) -> Response:
        problem = wordings.get(format.name, default)
        assert problem is not None, "played where it does not apply"  # noqa: S101
        return problem_response(format, problem)

    return Fault(name, False, replied=replied, formats=EVERY if default else frozenset(wordings))


def _body(name: str, status: int, data: bytes, *, billed: bool = False, **headers: str) -> Fault:
    """Something else in the place of an answer."""
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return Fault(name, billed, replied=lambda *_: Response(status, (Piece("body", data),), named))


def _said(name: str, spoil: Callable[[str], str | None], **changes: object) -> Fault:
    """An answer that is well delivered and of no use."""

    def said(answer: Answer) -> Answer:
        return replace(answer, text=spoil(answer.text or ""), **changes)  # type: ignore[arg-type]

    return Fault(name, True, said=said)


def _usage(name: str, report: Callable[[Reported], Reported | None]) -> Fault:
    return Fault(name, True, reported=report)


def _pieces(
    name: str, change: Callable[[tuple[Piece, ...], Format], tuple[Piece, ...]], *, billed: bool = True
) -> Fault:
    """A stream that ends in good order and holds something else than it should."""
    return Fault(
        name, billed, replied=lambda response, format: replace(response, pieces=change(response.pieces, format))
    )


_KEY = "Incorrect API key provided. You can find your API key at https://platform.example/keys."
_QUOTA = "You exceeded your current quota, please check your plan and billing details."
_TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."
_HTML = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body><h1>502</h1></body></html>"

_ALL = (
    _turned_down("rate-limited", Problem(429, "Rate limit reached for requests", retry_after="1")),
    _turned_down("rate-limited-until-date", Problem(429, "Rate limit reached for tokens", retry_after="date")),
    _turned_down("rate-limited-without-end", Problem(429, "Too many requests")),
    _turned_down("rate-limited-for-an-hour", Problem(429, "Daily limit reached", retry_after="3600")),
    _turned_down(
        "out-of-credit",
        Problem(429, _QUOTA),
        openai=Problem(429, _QUOTA, "insufficient_quota"),
        anthropic=Problem(400, "Your credit balance is too low to access the Anthropic API."),
    ),
    _turned_down("payment-required", Problem(402, "Insufficient credits. Add more.")),
    _turned_down("server-error", Problem(500, "The server had an error while processing your request")),
    _body("bad-gateway", 502, _HTML, Content_Type="text/html"),
    _turned_down("unavailable", Problem(503, "The model is overloaded. Please try again later.")),
    _turned_down("gateway-timeout", Problem(504, "The request timed out upstream")),
    _turned_down("overloaded", breaks.OVERLOADED),
    _turned_down("request-timeout", Problem(408, "Request timeout")),
    _turned_down(
        "key-rejected",
        Problem(401, _KEY),
        openai=Problem(401, _KEY, "invalid_api_key"),
        anthropic=Problem(401, "invalid x-api-key"),
        google=Problem(400, "API key not valid. Please pass a valid API key."),
    ),
    _turned_down("forbidden", Problem(403, "Your key may not use this model")),
    _turned_down(
        "unknown-model",
        Problem(404, "model: no-such-model"),
        openai=Problem(404, "The model `no-such-model` does not exist", "model_not_found"),
        google=Problem(404, "models/no-such-model is not found for API version v1beta"),
    ),
    _turned_down(
        "unknown-parameter",
        Problem(400, "temperature: Extra inputs are not permitted"),
        openai=Problem(400, "Unsupported parameter: 'max_tokens'", "unsupported_parameter"),
        google=Problem(400, 'Invalid JSON payload received. Unknown name "seed" at \'generation_config\''),
    ),
    _turned_down(
        "schema-unsupported",
        Problem(400, "output_config.format: this model does not support structured outputs"),
        openai=Problem(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported"),
        google=Problem(400, "JSON mode is not enabled for this model"),
    ),
    _turned_down(
        "tools-unsupported",
        Problem(400, "tools: this model does not support tool use"),
        openai=Problem(400, "registry.example/model:latest does not support tools"),
        google=Problem(400, "Function calling is not enabled for this model"),
    ),
    _turned_down(
        "context-overflow",
        Problem(400, "prompt is too long: 250000 tokens > 200000 maximum"),
        openai=Problem(400, _TOO_LONG, "context_length_exceeded"),
        google=Problem(400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    ),
    _turned_down(
        "context-overflow-local",
        None,
        openai=Problem(400, "the request exceeds the available context size", "exceed_context_size_error"),
    ),
    _turned_down("too-large", Problem(413, "Request exceeds the maximum size")),
    _turned_down("unprocessable", Problem(422, "messages: value is not a valid list")),
    Fault("closed", False, sent=breaks.closed),
    Fault("reset", False, sent=breaks.reset),
    Fault("closed-in-head", False, sent=breaks.closed_in_head),
    Fault("not-http", False, sent=breaks.no_http),
    Fault("cut", True, sent=breaks.cut),
    Fault("cut-before-usage", True, sent=breaks.cut_before_usage),
    Fault("hang", True, sent=breaks.hung, slow=True),
    Fault("hang-midway", True, sent=breaks.hung_midway, slow=True),
    Fault("drip", True, sent=breaks.dripped, slow=True),
    Fault("small-pieces", True, sent=breaks.byte_by_byte),
    _pieces("no-finish", breaks.without("finish", "usage", "end")),
    _pieces("no-end", breaks.without("end")),
    replace(_pieces("comments", breaks.commented), formats=EVERY - {"google"}),  # whose client knows no comments
    _pieces("error-first", breaks.error_first, billed=False),
    _pieces("error-midway", breaks.error_midway),
    _pieces("bad-event", breaks.bad_event),
    _pieces("bad-utf8", breaks.bad_bytes),
    _body("empty-body", 200, b"", billed=True, Content_Type="text/event-stream"),
    _body("html-page", 200, _HTML, Content_Type="text/html"),
    _body("no-content", 204, b""),
    Fault("wrong-content-type", True, replied=breaks.as_html),
    _body("bad-gzip", 200, b"\x1f\x8b\x08 this is not gzip", billed=True, Content_Encoding="gzip"),
    _body("redirect", 302, b"", Location=ELSEWHERE),
    _body("redirect-with-body", 307, b"", Location=ELSEWHERE),
    _said("empty-answer", lambda _: ""),
    _said("blank-answer", lambda _: " \n\t "),
    _said("null-answer", lambda _: None),
    _said("prose", spoiled.prose, tool=""),
    _said("fenced", spoiled.fenced),
    _said("thinking-aloud", spoiled.thinking),
    _said("malformed-json", spoiled.malformed),
    _said("truncated", spoiled.truncated, finish="length"),
    _said("wrong-form", lambda _: '{"unexpected": ["fields"], "of": "another form"}'),
    _said("empty-object", lambda _: "{}"),
    _said("json-null", lambda _: "null"),
    _said("json-list", lambda text: f"[{text}]"),
    _said("twice-encoded", spoiled.encoded),
    _said("out-of-range", spoiled.out_of_range),
    _said("lists-emptied", spoiled.emptied),
    _said("duplicate-keys", spoiled.duplicate_keys),
    _said("not-a-number", spoiled.not_a_number),
    _said("huge-number", spoiled.huge_number),
    _said("lone-surrogate", spoiled.lone_surrogate),
    _said("control-characters", spoiled.control_characters),
    _said("deep-nesting", lambda _: "[" * 50_000),
    _said("instruction", spoiled.instruction),
    _said("ten-megabytes", lambda _: "All work and no play. " * 480_000),
    _said("refusal", lambda _: "I'm sorry, but I can't help with that.", finish="refusal", tool=""),
    _said("content-filter", lambda text: text[:40], finish="filter"),
    Fault("unknown-tool", True, said=lambda answer: replace(answer, tool=answer.tool and "no_such_tool")),
    _usage("usage-missing", lambda _: None),
    _usage("usage-zero", lambda _: Reported(0, 0)),
    _usage("usage-absurd", lambda _: Reported(10**12, 10**12)),
    _usage("usage-negative", lambda usage: Reported(-usage.prompt, -usage.completion)),
    _usage("usage-not-a-number", lambda _: Reported("many", "few")),
)  # fmt: skip

FAULTS = {fault.name: fault for fault in _ALL}
