"""What all adapters share: one streamed call within its deadline and bounds, and an answer made of its pieces."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncGenerator
from typing import ClassVar, Generic, Literal, NamedTuple, TypeGuard, TypeVar
from urllib.parse import urlsplit

import httpx2

from assay.errors import ModelError
from assay.llm.names import ModelName, base_url, key, key_variable
from assay.llm.vendors import Request, Unsupported
from assay.llm.vendors.faults import Place, broken, decoded, late, refused, said, unreachable
from assay.llm.vendors.wire import EXCHANGE, Exchange, certificates, client
from assay.model.exchange import Reply, Usage
from assay.ports import OnText
from assay.settings import Settings

MOST_BYTES = 2_000_000  # of an answer's text

Finish = Literal["stop", "length", "refusal"]
SDK = TypeVar("SDK")

# What comes of JSON that is not what it should be: not JSON, other types, missing parts, nested without end.
MALFORMED = (ValueError, TypeError, AttributeError, LookupError, RecursionError)


# Below the SDKs, where they let it through.
CONNECTION = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)


class Piece(NamedTuple):
    text: str = ""
    finish: Finish | None = None
    counted: bool = False  # whether it says what was used, however absurd: the last word counts
    usage: Usage | None = None


class Streaming(ABC, Generic[SDK]):
    """A Vendor. Subclasses say how to open their SDK's client, and how its stream becomes pieces."""

    official: ClassVar[str]
    faults: ClassVar[tuple[type[Exception], ...]]  # what the SDK raises
    optional: ClassVar[frozenset[str]] = frozenset({"temperature"})  # what a call can go without

    def __init__(
        self, name: ModelName, settings: Settings, *, address: str | None = None, secret: str | None = None
    ) -> None:
        self.vendor = name.vendor
        self.address = address or base_url(name, settings) or self.official
        self.secret = secret or key(name, settings.keys) or "none"
        self.place = Place(name.vendor, _shown(self.address), key_variable(name), self.secret)
        certificates()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._http: httpx2.AsyncClient | None = None
        self._sdk: SDK | None = None
        self._refused: defaultdict[str, set[str]] = defaultdict(set)  # by model: parameters its server does not take

    @abstractmethod
    def connect(self, http: httpx2.AsyncClient) -> SDK: ...

    @abstractmethod
    def pieces(self, sdk: SDK, request: Request, without: frozenset[str]) -> AsyncGenerator[Piece, None]: ...

    @abstractmethod
    def event(self, error: Exception) -> object:
        """The body of an error that came as an event of the stream; None for any other error."""

    async def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        began = time.monotonic()
        deadline = asyncio.timeout(request.seconds)
        try:
            async with deadline:
                answer = await self._adapted(request, on_text)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise late(self.place, request.seconds, connected=True) from None
        return Reply(
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

    async def _adapted(self, request: Request, on_text: OnText | None) -> "Answer":
        """Once more without a parameter that the server refuses, which is remembered; refusals are not billed."""
        while True:
            without = frozenset(self._refused[request.model])
            try:
                return await self._once(request, on_text, without)
            except Unsupported as error:
                if error.parameter not in self.optional or error.parameter in without:
                    raise
                self._refused[request.model].add(error.parameter)

    async def _once(self, request: Request, on_text: OnText | None, without: frozenset[str]) -> "Answer":
        exchange, answer = Exchange(request.seconds), Answer()
        token = EXCHANGE.set(exchange)
        pieces = self.pieces(self._client(), request, without)
        try:
            while (piece := await self._next(pieces, request, exchange, answer)) is not None:
                answer.add(piece)
                if on_text is not None and piece.text:
                    await on_text(piece.text)
        finally:
            EXCHANGE.reset(token)
            await exchange.close()
            await pieces.aclose()
        if answer.finish is None:
            what = "the answer broke off before its end" if answer.begun else "sent no answer"
            raise broken(self.place, what, billed=answer.begun or not _is_page(exchange))
        return answer

    async def _next(
        self, pieces: AsyncGenerator[Piece, None], request: Request, exchange: Exchange, answer: "Answer"
    ) -> Piece | None:
        """Errors leave their causes behind: an SDK's message may hold the prompt or the key."""
        try:
            return await anext(pieces, None)
        except self.faults + CONNECTION as error:
            raise self._fault(error, request, exchange, begun=answer.begun) from None
        except MALFORMED:
            raise self._malformed(request, exchange) from None

    def _fault(self, error: Exception, request: Request, exchange: Exchange, *, begun: bool) -> ModelError:
        response = exchange.response
        if response is None:
            if isinstance(error, httpx2.TimeoutException) or isinstance(error.__cause__, httpx2.TimeoutException):
                return late(self.place, request.seconds, connected=False)
            return unreachable(self.place)
        if not response.is_success:
            return self._refusal(response, request)
        body = self.event(error)
        words = said(body)
        if body is None or begun or not 400 <= words.status < 600:
            return broken(self.place, "the answer broke off before its end")
        return refused(words.status, response.headers, words, self.place, request)

    def _malformed(self, request: Request, exchange: Exchange) -> ModelError:
        if exchange.response is None:
            return ModelError(
                f"the request to {self.vendor} could not be made", help="Check the model's name.", provider=self.vendor
            )
        if not exchange.response.is_success:
            return self._refusal(exchange.response, request)
        return broken(self.place, "sent something that is no answer", billed=not _is_page(exchange))

    def _refusal(self, response: httpx2.Response, request: Request) -> ModelError:
        try:
            body = decoded(response.content)
        except httpx2.ResponseNotRead:  # the connection broke while it said why
            body = None
        return refused(response.status_code, response.headers, said(body), self.place, request)

    def _client(self) -> SDK:
        """Connections belong to the event loop they were made in."""
        loop = asyncio.get_running_loop()
        if self._sdk is None or self._loop is not loop:
            self._loop, self._http = loop, client()
            self._sdk = self.connect(self._http)
        return self._sdk


def _is_page(exchange: Exchange) -> bool:
    """A web page, or nothing by intention: somebody on the way has answered, and no model has thought."""
    response = exchange.response
    if response is None:
        return False
    return response.status_code == 204 or response.headers.get("content-type", "").lower().startswith("text/html")


class Answer:
    """Pieces so far."""

    def __init__(self) -> None:
        self.finish: Finish | None = None
        self.usage: Usage | None = None
        self.begun = False
        self._parts: list[str] = []
        self._size = 0

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, piece: Piece) -> None:
        self.begun = True
        self.finish = piece.finish or self.finish
        self.usage = piece.usage if piece.counted else self.usage
        self._parts.append(piece.text)
        self._size += len(piece.text.encode("utf-8", "surrogatepass"))
        if self._size > MOST_BYTES:
            raise ModelError(f"the answer is longer than {MOST_BYTES // 1_000_000} MB and was cut off", billed=True)


def usage(prompt: object, completion: object) -> Usage | None:
    """None for what is missing or absurd, which is then booked at its worst case. No prompt has no tokens."""
    if not is_count(prompt) or not is_count(completion) or prompt == 0:
        return None
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


def is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shown(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
