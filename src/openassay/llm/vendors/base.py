"""What all adapters share: one streamed call within its deadline and bounds, its connection, JSON schemas, errors."""

import asyncio
import codecs
import json
import math
import re
import ssl
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeGuard, TypeVar
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, ConfigDict

from openassay.errors import ApiKeyError, ContextOverflowError, ModelError, ModelTimeoutError, RateLimitError
from openassay.llm.names import ModelName, base_url, find_key, key_variable
from openassay.llm.vendors import ModelRequest, ParameterError
from openassay.models.spend import ModelReply, TokenUsage
from openassay.protocols import OnText
from openassay.settings import Settings
from openassay.text.urls import parse_retry_after

# JSON schemas of answers -------------------------------------------------------------------------------


def schema_name(form: dict[str, Any]) -> str:
    """Return a name for a schema or a tool: letters, digits and dashes."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", str(form.get("title", ""))).strip("_")[:64] or "answer"


def system_text(request: ModelRequest) -> str:
    """Return the system text; in JSON mode the server sees no schema, so it is added there."""
    text = replace_surrogates(request.prompt.system)
    if request.method != "json_mode":
        return text
    schema = json.dumps(request.prompt.form, ensure_ascii=False)
    return (
        f"{text}\n\nAnswer with one JSON object and nothing else. It "
        f"follows this JSON schema:\n{replace_surrogates(schema)}"
    )


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, as of a broken file name or page, which cannot be sent as UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def clean_schema(node: Any) -> Any:
    """Drop the keyword that neither OpenAI's strict mode nor Google knows; forms are closed and complete anyway."""
    if isinstance(node, list):
        return [clean_schema(part) for part in node]
    if isinstance(node, dict):
        return {key: clean_schema(part) for key, part in node.items() if key != "maxLength"}
    return node


# The connection below every SDK. Redirects are not followed and proxies of the environment are not used. Answers are
# requested uncompressed, since a few compressed kilobytes can unpack to gigabytes.

MAX_RESPONSE_BYTES = 32_000_000  # of one response; 8,000 tokens arrive as some 3 MB of events
CONNECT_SECONDS = 10.0

# What an SDK adds on its own (the system's name, headers of the environment) stays here.
PASS_HEADERS = frozenset(
    {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "transfer-encoding",
     "user-agent", "authorization", "x-api-key", "x-goog-api-key", "anthropic-version"}
)  # fmt: skip


class HttpExchange:
    """The HTTP exchange of one call, below the SDK."""

    def __init__(self, seconds: float) -> None:
        # Address and TLS each have this long, so that a deadline that passes passes on a connection that stood.
        self.connect = min(CONNECT_SECONDS, seconds / 3)
        self.response: httpx2.Response | None = None

    async def close(self) -> None:
        """Close the connection, whatever the SDK does with a stream that nobody reads to its end."""
        if self.response is not None:
            await self.response.aclose()


EXCHANGE: ContextVar[HttpExchange] = ContextVar("exchange")


@cache
def load_ssl_context() -> ssl.SSLContext:
    """Read the certificate authorities once, and in a thread: it takes longer than everything else before a call."""
    return httpx2.create_ssl_context(trust_env=False)


class _VendorTransport(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        exchange = EXCHANGE.get()
        for name in set(request.headers) - PASS_HEADERS:
            del request.headers[name]
        request.headers["accept-encoding"] = "identity"
        request.extensions["timeout"] = {"connect": exchange.connect, "read": None, "write": None, "pool": None}
        response = await super().handle_async_request(request)
        response.headers.pop("content-encoding", None)  # bytes we did not ask for are not unpacked
        response.stream = _BodyStream(response.stream, text=response.status_code == 200)
        exchange.response = response
        return response


class _BodyStream(httpx2.AsyncByteStream):
    def __init__(self, inner: object, *, text: bool) -> None:
        if not isinstance(inner, httpx2.AsyncByteStream):
            raise TypeError("an asynchronous transport gave a synchronous stream")
        self._inner = inner
        self._text = text

    async def __aiter__(self) -> AsyncIterator[bytes]:
        decoder = codecs.getincrementaldecoder("utf-8")()
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_RESPONSE_BYTES:
                raise ModelError(f"the answer is longer than {MAX_RESPONSE_BYTES // 1_000_000} MB", billed=True)
            if self._text:
                decoder.decode(chunk)  # some SDKs put U+FFFD for broken bytes, and a broken answer would pass for whole
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


MAX_ANSWER_BYTES = 2_000_000  # of an answer's text

Finish = Literal["stop", "length", "refusal"]
SDK = TypeVar("SDK")

# What unexpected JSON raises: not JSON, other types, missing parts, nested without end.
FORMAT_ERRORS = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
# From below the SDKs, where they let it through.
CONNECTION_ERRORS = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)


class StreamPiece(NamedTuple):
    text: str = ""
    finish: Finish | None = None
    counted: bool = False  # whether it says what was used, however absurd: the last word counts
    usage: TokenUsage | None = None


class WireModel(BaseModel):
    """The base of what is read of a stream: SDKs take whatever comes without a look at its types; this looks."""

    model_config = ConfigDict(from_attributes=True)


class StreamingVendor(ABC, Generic[SDK]):
    """The base of vendors. Subclasses say how to open their SDK's client, and how its stream becomes pieces."""

    official: ClassVar[str]
    faults: ClassVar[tuple[type[Exception], ...]]  # what the SDK raises
    optional: ClassVar[frozenset[str]] = frozenset({"temperature"})  # what a call can go without

    def __init__(
        self, name: ModelName, settings: Settings, *, address: str | None = None, secret: str | None = None
    ) -> None:
        self.vendor = name.vendor
        self.address = address or base_url(name, settings) or self.official
        self.secret = secret or find_key(name, settings.keys) or "none"
        parts = urlsplit(self.address)
        self.endpoint = VendorEndpoint(
            name.vendor,
            f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}",
            key_variable(name),
            self.secret,
        )
        load_ssl_context()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._http: httpx2.AsyncClient | None = None
        self._sdk: SDK | None = None
        self._refused: defaultdict[str, set[str]] = defaultdict(set)  # by model: parameters its server does not take

    @abstractmethod
    def connect(self, http: httpx2.AsyncClient) -> SDK: ...

    @abstractmethod
    def stream_pieces(
        self, sdk: SDK, request: ModelRequest, without: frozenset[str]
    ) -> AsyncGenerator[StreamPiece, None]: ...

    @abstractmethod
    def error_event(self, error: Exception) -> object:
        """Return the body of an error that came as an event of the stream; None for any other error."""

    async def ask(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        began = time.monotonic()
        deadline = asyncio.timeout(request.seconds)
        try:
            async with deadline:
                answer = None
                while answer is None:
                    without = frozenset(self._refused[request.model])
                    try:
                        answer = await self._ask_once(request, on_text, without)
                    except ParameterError as error:  # again without what the server refuses, which is not billed
                        if error.parameter not in self.optional or error.parameter in without:
                            raise
                        self._refused[request.model].add(error.parameter)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise timeout_error(self.endpoint, request.seconds, connected=True) from None
        return ModelReply(
            text=answer.text,
            model=f"{self.vendor}:{request.model}",
            method=request.method,
            finish=answer.finish or "stop",
            usage=answer.usage,
            seconds=time.monotonic() - began,
        )

    async def close(self) -> None:
        http, self._http, self._sdk = self._http, None, None
        if http is not None and self._loop is asyncio.get_running_loop():
            await http.aclose()

    async def _ask_once(self, request: ModelRequest, on_text: OnText | None, without: frozenset[str]) -> "StreamAnswer":
        exchange, answer = HttpExchange(request.seconds), StreamAnswer()
        token = EXCHANGE.set(exchange)
        # Connections belong to the event loop they were made in.
        loop = asyncio.get_running_loop()
        if self._sdk is None or self._loop is not loop:
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=16)
            transport = _VendorTransport(verify=load_ssl_context(), limits=limits, trust_env=False)
            self._loop = loop
            self._http = httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)
            self._sdk = self.connect(self._http)
        pieces = self.stream_pieces(self._sdk, request, without)
        try:
            while (piece := await self._next_piece(pieces, request, exchange, answer)) is not None:
                answer.add(piece)
                if on_text is not None and piece.text:
                    await on_text(piece.text)
        finally:
            EXCHANGE.reset(token)
            await exchange.close()
            await pieces.aclose()
        if answer.finish is None:
            what = "the answer broke off before its end" if answer.begun else "sent no answer"
            raise answer_error(self.endpoint, what, billed=answer.begun or not _is_page(exchange))
        return answer

    async def _next_piece(
        self,
        pieces: AsyncGenerator[StreamPiece, None],
        request: ModelRequest,
        exchange: HttpExchange,
        answer: "StreamAnswer",
    ) -> StreamPiece | None:
        """Return the next piece. Errors drop their causes: an SDK's message may hold the prompt or the key."""
        try:
            return await anext(pieces, None)
        except self.faults + CONNECTION_ERRORS as error:
            raise self._translate_error(error, request, exchange, begun=answer.begun) from None
        except FORMAT_ERRORS:
            if exchange.response is None:
                raise ModelError(
                    f"the request to {self.vendor} could not be made",
                    help="Check the model's name.",
                    provider=self.vendor,
                ) from None
            if not exchange.response.is_success:
                raise self._refusal_error(exchange.response, request) from None
            what = "sent something that is no answer"
            raise answer_error(self.endpoint, what, billed=not _is_page(exchange)) from None

    def _translate_error(
        self, error: Exception, request: ModelRequest, exchange: HttpExchange, *, begun: bool
    ) -> ModelError:
        response = exchange.response
        if response is None:
            if isinstance(error, httpx2.TimeoutException) or isinstance(error.__cause__, httpx2.TimeoutException):
                return timeout_error(self.endpoint, request.seconds, connected=False)
            return ModelError(
                f"cannot reach {self.vendor} at {self.endpoint.address}; is the server running?",
                help="Check the address and the network.",
                retryable=True,
                provider=self.vendor,
            )
        if not response.is_success:
            return self._refusal_error(response, request)
        body = self.error_event(error)
        parsed = parse_error_body(body)
        if body is None or begun or not 400 <= parsed.status < 600:
            return answer_error(self.endpoint, "the answer broke off before its end")
        return refusal_error(parsed.status, response.headers, parsed, self.endpoint, request)

    def _refusal_error(self, response: httpx2.Response, request: ModelRequest) -> ModelError:
        try:
            body = json.loads(response.content)
        except (ValueError, RecursionError, httpx2.ResponseNotRead):  # a gateway's page, or it broke while it said why
            body = None
        return refusal_error(response.status_code, response.headers, parse_error_body(body), self.endpoint, request)


def _is_page(exchange: HttpExchange) -> bool:
    """Tell whether a gateway has answered, with a web page or nothing on purpose, and no model was asked."""
    response = exchange.response
    if response is None:
        return False
    return response.status_code == 204 or response.headers.get("content-type", "").lower().startswith("text/html")


class StreamAnswer:
    def __init__(self) -> None:
        self.finish: Finish | None = None
        self.usage: TokenUsage | None = None
        self.begun = False
        self._parts: list[str] = []
        self._size = 0

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, piece: StreamPiece) -> None:
        self.begun = True
        self.finish = piece.finish or self.finish
        self.usage = piece.usage if piece.counted else self.usage
        self._parts.append(piece.text)
        self._size += len(piece.text.encode("utf-8", "surrogatepass"))
        if self._size > MAX_ANSWER_BYTES:
            raise ModelError(
                f"the answer is longer than {MAX_ANSWER_BYTES // 1_000_000} MB and was cut off", billed=True
            )


def make_usage(prompt: object, completion: object) -> TokenUsage | None:
    """Return the usage; None for a missing or absurd one, which is then booked at its worst case."""
    if not is_count(prompt) or not is_count(completion) or prompt == 0:
        return None
    return TokenUsage(prompt_tokens=prompt, completion_tokens=completion)


def is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


# What a refusal means, by its status, headers and body. The words of a provider are quoted only where they explain
# something, and never when they hold a key or a piece of the prompt.

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
