"""What all adapters share: one streamed call within its deadline and bounds, its connection, and JSON schemas."""

import asyncio
import codecs
import json
import re
import ssl
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextvars import ContextVar
from functools import cache
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeGuard, TypeVar
from urllib.parse import urlsplit

import httpx2

from openassay.errors import ModelError
from openassay.llm.names import ModelName, base_url, find_key, key_variable
from openassay.llm.vendors import ModelRequest, ParameterError
from openassay.llm.vendors.errors import (
    VendorEndpoint,
    answer_error,
    decode_json,
    parse_error_body,
    refusal_error,
    timeout_error,
    unreachable_error,
)
from openassay.models.spend import ModelReply, TokenUsage
from openassay.protocols import OnText
from openassay.settings import Settings

# JSON schemas of answers -------------------------------------------------------------------------------

Schema = dict[str, Any]

_MAPS = frozenset({"properties", "$defs", "definitions"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
# Neither OpenAI's strict mode nor Google's schemas know these.
UNKNOWN_KEYWORDS = frozenset(
    {"default", "minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties", "examples"}
)


def schema_name(form: Schema) -> str:
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


def strict_schema(form: Schema) -> Schema | None:
    """Close objects and require everything, for OpenAI's strict mode; None where there are maps with free keys."""
    return None if _has_free_keys(form) else clean_schema(form, all_required=True)


def clean_schema(node: Schema, *, all_required: bool = False) -> Schema:
    """Drop keywords that vendors refuse; a reference stands alone, and objects hold what they list."""
    if "$ref" in node and "$defs" not in node:
        return {"$ref": node["$ref"]}
    result: Schema = {}
    for key, value in node.items():
        if key in UNKNOWN_KEYWORDS:
            continue
        if key in _MAPS and isinstance(value, dict):
            result[key] = {name: clean_schema(part, all_required=all_required) for name, part in value.items()}
        elif key in _LISTS and isinstance(value, list):
            result[key] = [clean_schema(part, all_required=all_required) for part in value]
        elif isinstance(value, dict):
            result[key] = clean_schema(value, all_required=all_required)
        else:
            result[key] = value
    if "properties" in result:
        result["additionalProperties"] = False
        if all_required:
            result["required"] = list(result["properties"])
    return result


def _has_free_keys(node: object) -> bool:
    if isinstance(node, list):
        return any(_has_free_keys(part) for part in node)
    if not isinstance(node, dict):
        return False
    if node.get("type") == "object" and "properties" not in node:
        return True
    return any(_has_free_keys(part) for part in node.values())


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


def open_client() -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=16)
    transport = _VendorTransport(verify=load_ssl_context(), limits=limits, trust_env=False)
    return httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)


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
            self._loop, self._http = loop, open_client()
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
            return unreachable_error(self.endpoint)
        if not response.is_success:
            return self._refusal_error(response, request)
        body = self.error_event(error)
        parsed = parse_error_body(body)
        if body is None or begun or not 400 <= parsed.status < 600:
            return answer_error(self.endpoint, "the answer broke off before its end")
        return refusal_error(parsed.status, response.headers, parsed, self.endpoint, request)

    def _refusal_error(self, response: httpx2.Response, request: ModelRequest) -> ModelError:
        try:
            body = decode_json(response.content)
        except httpx2.ResponseNotRead:  # the connection broke while it said why
            body = None
        return refusal_error(response.status_code, response.headers, parse_error_body(body), self.endpoint, request)


def _is_page(exchange: HttpExchange) -> bool:
    """Tell whether a gateway has answered, with a web page or nothing on purpose, and no model was asked."""
    response = exchange.response
    if response is None:
        return False
    return response.status_code == 204 or response.headers.get("content-type", "").lower().startswith("text/html")


class StreamAnswer:
    """The answer so far."""

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
