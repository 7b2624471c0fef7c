"""The three wire formats over real HTTP: one suite, played against canned bytes."""

import asyncio
import gc
import json
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from pydantic import SecretStr

from openassay.errors import ApiKeyError, ContextOverflowError, ModelError, ModelTimeoutError, RateLimitError
from openassay.llm.names import parse_name
from openassay.llm.vendors import ModelRequest, ParameterError, Vendor, open_vendor
from openassay.models.spend import Method, ModelPrompt, TokenUsage
from openassay.settings import Keys, ModelSettings, Settings

KEY = "sk-very-secret-0123456789"
TEXT = "Which of these passages speak of the harbour at Zanzibar?"
ANSWER = '{"city": "Zürich", "people": 3}'
PARTS = ('{"city": "Zü', 'rich", "people"', ": 3}")
FORM: dict[str, Any] = {
    "title": "City",
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}, "people": {"type": "integer"}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
CUT = "cut"
METHODS: tuple[Method, ...] = ("json_schema", "function_calling", "json_mode")

pytestmark = pytest.mark.requirement("L-09")


@dataclass
class Played:
    """Answers requests one after another with what it was given, and keeps what it was sent."""

    scripts: list[tuple[int, dict[str, str], Sequence[bytes | float | str]]] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    connections: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    def play(self, *chunks: bytes | float | str, status: int = 200, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.scripts.append((status, {"content-type": "text/event-stream", **named}, chunks))

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.gone.set()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length"))
        self.heads.append(head)
        self.sent.append(json.loads(await reader.readexactly(length)))
        status, headers, chunks = self.scripts.pop(0)
        if chunks[:1] == (CUT,):
            writer.transport.abort()
            return False
        lines = [f"HTTP/1.1 {status} X", "transfer-encoding: chunked", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for chunk in chunks:
            if chunk == CUT:
                writer.transport.abort()
                return False
            if isinstance(chunk, float):
                await self._idle(reader, chunk)
            elif isinstance(chunk, bytes) and chunk:
                writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _idle(self, reader: asyncio.StreamReader, seconds: float) -> None:
        """A pause that notices when the other side hangs up."""
        try:
            async with asyncio.timeout(seconds):
                if not await reader.read(1):
                    raise ConnectionError
        except TimeoutError:
            return


def event(data: Any, name: str | None = None) -> bytes:
    """Names are Anthropic's; Google's SDK takes such a line for a part of an answer."""
    start = f"event: {name}\n" if name else ""
    return f"{start}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def openai(
    parts: Sequence[str], method: Method = "json_schema", finish: str | None = "stop", counts: Any = (11, 7)
) -> list[bytes]:
    def delta(part: str) -> dict[str, Any]:
        if method == "function_calling":
            return {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}
        return {"content": part}

    chunks = [event({"choices": [{"index": 0, "delta": delta(part)}]}) for part in parts]
    if finish:
        chunks.append(event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
    if counts:
        chunks.append(event({"choices": [], "usage": {"prompt_tokens": counts[0], "completion_tokens": counts[1]}}))
    return [*chunks, b"data: [DONE]\n\n"] if finish else chunks


def anthropic(
    parts: Sequence[str], method: Method = "json_schema", finish: str | None = "end_turn", counts: Any = (11, 7)
) -> list[bytes]:
    def delta(part: str) -> dict[str, Any]:
        if method == "function_calling":
            return {"type": "input_json_delta", "partial_json": part}
        return {"type": "text_delta", "text": part}

    start: dict[str, Any] = {"type": "message_start", "message": {"id": "m", "type": "message", "content": []}}
    end: dict[str, Any] = {"type": "message_delta", "delta": {"stop_reason": finish}}
    if counts:
        start["message"]["usage"] = {"input_tokens": counts[0], "output_tokens": 1}
        end["usage"] = {"output_tokens": counts[1]}
    chunks = [event(start, "message_start"), event({"type": "ping"}, "ping")]
    for part in parts:
        data = {"type": "content_block_delta", "index": 0, "delta": delta(part)}
        chunks.append(event(data, "content_block_delta"))
    if finish:
        chunks += [event(end, "message_delta"), event({"type": "message_stop"}, "message_stop")]
    return chunks


def google(
    parts: Sequence[str], method: Method = "json_schema", finish: str | None = "STOP", counts: Any = (11, 7)
) -> list[bytes]:
    def candidate(part: dict[str, Any]) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}

    if method == "function_calling":
        args = json.loads("".join(parts))
        chunks = [candidate({"functionCall": {"name": "City", "args": args}})]
    else:
        chunks = [candidate({"text": part}) for part in parts]
    last: dict[str, Any] = candidate({"text": ""})
    if finish:
        last["candidates"][0]["finishReason"] = finish
    if counts:
        last["usageMetadata"] = {"promptTokenCount": counts[0], "candidatesTokenCount": counts[1]}
    return [event(chunk) for chunk in ([*chunks, last] if finish else chunks)]


SPEAK: dict[str, Callable[..., list[bytes]]] = {
    "openai": openai, "compatible": openai, "anthropic": anthropic, "google": google,
}  # fmt: skip
LENGTH = {"openai": "length", "compatible": "length", "anthropic": "max_tokens", "google": "MAX_TOKENS"}
REFUSAL = {"openai": "content_filter", "compatible": "content_filter", "anthropic": "refusal", "google": "SAFETY"}


@pytest.fixture(params=list(SPEAK))
def vendor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def server() -> AsyncIterator[Played]:
    played = Played()
    listening = await asyncio.start_server(played.handle, "127.0.0.1", 0)
    played.port = listening.sockets[0].getsockname()[1]
    yield played
    listening.close()


def settings(vendor: str, port: int) -> Settings:
    keys = Keys.model_validate({f"{vendor}_api_key": SecretStr(KEY)})
    return Settings(llm=ModelSettings(endpoints={vendor: f"http://127.0.0.1:{port}"}), keys=keys)


@asynccontextmanager
async def opened(vendor: str, port: int) -> AsyncIterator[Vendor]:
    model = await asyncio.to_thread(open_vendor, parse_name(f"{vendor}:m-1"), settings(vendor, port))
    try:
        yield model
    finally:
        await model.close()


def asking(method: Method = "json_schema", seconds: float = 10.0, temperature: float | None = 0.3) -> ModelRequest:
    prompt = ModelPrompt(step="read", role="analyst", system="You read closely.", text=TEXT, form=FORM)
    return ModelRequest("m-1", prompt, method, temperature, 500, seconds)


async def error(vendor: str, server: Played, request: ModelRequest | None = None) -> ModelError:
    """What is raised; whatever it is, it holds no secret and fits on a line."""
    async with opened(vendor, server.port) as model:
        with pytest.raises(ModelError) as caught:
            await model.ask(request or asking())
    shown = f"{caught.value.message} {caught.value.help} {caught.value.context}"
    assert KEY not in shown
    assert KEY[:12] not in shown
    assert "Zanzibar" not in shown
    assert len(caught.value.message) < 240
    assert "\n" not in caught.value.message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value


class Deltas(list[str]):
    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def hear(self, text: str) -> None:
        self.append(text)
        self.begun.set()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
async def test_an_answer_with_its_usage_and_its_pieces(vendor: str, server: Played, method: Method) -> None:
    server.play(*SPEAK[vendor](PARTS, method))
    deltas = Deltas()
    async with opened(vendor, server.port) as model:
        reply = await model.ask(asking(method), deltas.hear)
    assert json.loads(reply.text) == json.loads(ANSWER)
    assert "".join(deltas) == reply.text
    if vendor != "google" or method != "function_calling":  # Google sends arguments in one piece
        assert tuple(deltas) == PARTS
    assert reply.usage == TokenUsage(prompt_tokens=11, completion_tokens=7)
    assert (reply.model, reply.method, reply.finish) == (f"{vendor}:m-1", method, "stop")
    assert reply.seconds > 0


@pytest.mark.slow
async def test_what_each_method_sends(vendor: str, server: Played) -> None:
    for method in METHODS:
        server.play(*SPEAK[vendor](PARTS, method))
    async with opened(vendor, server.port) as model:
        for method in METHODS:
            await model.ask(asking(method))
    schema, tool, mode = (json.dumps(sent) for sent in server.sent)
    asked = {
        "openai": ('"strict": true', '"tool_choice": {"type": "function", "function": {"name": "City"}}'),
        "compatible": ('"json_schema": {"name": "City"', '"tool_choice": {"type": "function"'),
        "anthropic": ('"output_config": {"format"', '"tool_choice": {"type": "tool", "name": "City"}'),
        "google": ('"responseJsonSchema"', '"mode": "ANY"'),
    }[vendor]
    assert asked[0] in schema
    assert asked[1] in tool
    assert "It follows this JSON schema" in mode
    assert "It follows this JSON schema" not in schema
    assert all(TEXT in sent and "You read closely." in sent for sent in (schema, tool, mode))
    limit = {"openai": "max_completion_tokens", "google": "maxOutputTokens"}.get(vendor, "max_tokens")
    assert all(f'"{limit}": 500' in sent for sent in (schema, tool, mode))
    assert ('"stream_options": {"include_usage": true}' in schema) == (vendor in ("openai", "compatible"))
    assert server.connections == 1  # the connection is kept between calls


async def test_strict_schemas_are_closed_and_complete(server: Played) -> None:
    server.play(*openai(PARTS))
    async with opened("openai", server.port) as model:
        await model.ask(asking())
    schema = server.sent[0]["response_format"]["json_schema"]["schema"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["city", "people"]
    assert schema["properties"]["city"] == {"type": "string"}


async def test_headers_hold_the_key_and_nothing_about_this_machine(
    vendor: str, server: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    server.play(*SPEAK[vendor](PARTS))
    async with opened(vendor, server.port) as model:
        await model.ask(asking())
    head = server.heads[0].lower()
    assert KEY in head
    assert "x-stainless" not in head
    assert "org-of-somebody" not in head
    assert "accept-encoding: identity" in head


@pytest.mark.parametrize("counts", [None, (0, 7), (-1, 7), (11, -7), (11, "many"), (True, 7), (1.5, 7)])
async def test_usage_that_is_missing_or_absurd_is_none(vendor: str, server: Played, counts: Any) -> None:
    if vendor == "google" and counts and not all(type(count) is int for count in counts):
        pytest.skip("Google's SDK checks the types itself, and such an answer is malformed")
    server.play(*SPEAK[vendor](PARTS, counts=counts))
    async with opened(vendor, server.port) as model:
        assert (await model.ask(asking())).usage is None


async def test_cached_and_thought_tokens_are_counted(server: Played) -> None:
    counted = {"input_tokens": 5, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 2, "output_tokens": 9}
    chunks = anthropic(PARTS, counts=None)
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": counted}
    server.play(*chunks[:-2], event(end, "message_delta"), chunks[-1])
    async with opened("anthropic", server.port) as model:
        assert (await model.ask(asking())).usage == TokenUsage(prompt_tokens=37, completion_tokens=9)
    last = {"candidates": [{"finishReason": "STOP"}]}
    counts = {"promptTokenCount": 4, "candidatesTokenCount": 6, "thoughtsTokenCount": 50}
    server.play(event({**last, "usageMetadata": counts}))
    async with opened("google", server.port) as model:
        assert (await model.ask(asking())).usage == TokenUsage(prompt_tokens=4, completion_tokens=56)


async def test_the_last_word_on_usage_counts(server: Played) -> None:
    absurd = event({"choices": [], "usage": {"prompt_tokens": -1, "completion_tokens": 7}})
    server.play(*openai(PARTS)[:-1], absurd, b"data: [DONE]\n\n")
    async with opened("compatible", server.port) as model:
        assert (await model.ask(asking())).usage is None


async def test_truncation_and_refusal(vendor: str, server: Played) -> None:
    server.play(*SPEAK[vendor](PARTS, finish=LENGTH[vendor]))
    server.play(*SPEAK[vendor]((), finish=REFUSAL[vendor]))
    async with opened(vendor, server.port) as model:
        assert (await model.ask(asking())).finish == "length"
        assert (await model.ask(asking())).finish == "refusal"


async def test_other_refusals(server: Played) -> None:
    server.play(
        event({"choices": [{"delta": {"refusal": "I cannot help with that."}}]}),
        event({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        b"data: [DONE]\n\n",
    )
    async with opened("openai", server.port) as model:
        assert (await model.ask(asking())).finish == "refusal"
    server.play(event({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}))
    async with opened("google", server.port) as model:
        assert (await model.ask(asking())).finish == "refusal"


async def test_text_instead_of_a_tool_call_is_the_answer(server: Played) -> None:
    server.play(*openai(PARTS, "json_schema"))
    async with opened("compatible", server.port) as model:
        assert (await model.ask(asking("function_calling"))).text == ANSWER


# Refusals ---------------------------------------------------------------------------------------------------------


def body(message: str, code: str = "", status: int = 400, details: Any = None) -> bytes:
    inner = {"message": message, "type": code or "invalid_request_error", "code": code or status}
    return json.dumps({"error": inner | ({"details": details} if details else {})}).encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, ModelError, False),
        (401, ApiKeyError, False),
        (402, ApiKeyError, False),
        (403, ApiKeyError, False),
        (404, ModelError, False),
        (408, ModelError, True),
        (413, ContextOverflowError, False),
        (422, ModelError, False),
        (429, RateLimitError, True),
        (500, ModelError, True),
        (503, ModelError, True),
        (529, ModelError, True),
        (302, ModelError, False),
    ],
)
async def test_a_status_is_an_error_of_ours_and_not_billed(
    vendor: str, server: Played, status: int, kind: type[ModelError], retryable: bool
) -> None:
    for content in (body("no"), b"<html>Bad gateway \xe9</html>", b"", b'"x"', b"[1]", b'{"error": 3}'):
        server.play(content, status=status, location="http://127.0.0.1:9/elsewhere")
        refused = await error(vendor, server)
        assert type(refused) is kind
        assert refused.retryable is retryable
        assert not refused.billed
        assert len(server.sent) == 1  # the SDKs try nothing again and follow nothing
        server.sent.clear()


async def test_a_rejected_key_names_its_variable(vendor: str, server: Played) -> None:
    server.play(body(f"Incorrect API key provided: {KEY}", "invalid_api_key"), status=401)
    assert f"{vendor.upper()}_API_KEY" in (await error(vendor, server)).help
    server.play(body("API key not valid.", details=[{"reason": "API_KEY_INVALID"}]), status=400)
    assert isinstance(await error(vendor, server), ApiKeyError)


@pytest.mark.parametrize("words", ["insufficient_quota", "Your credit balance is too low to access the API."])
async def test_an_empty_account_is_not_a_rate_limit(vendor: str, server: Played, words: str) -> None:
    server.play(body(words, "insufficient_quota"), status=429)
    assert isinstance(await error(vendor, server), ApiKeyError)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "2.5"}, 2.5),
        ({"retry_after_ms": "1500", "retry_after": "2"}, 1.5),
        ({}, None),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "-3"}, None),
    ],
)
async def test_when_to_come_back(vendor: str, server: Played, headers: dict[str, str], seconds: float | None) -> None:
    server.play(body("slow down"), status=429, **headers)
    limited = await error(vendor, server)
    assert isinstance(limited, RateLimitError)
    assert limited.retry_after == seconds


async def test_when_to_come_back_as_a_date(vendor: str, server: Played) -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    server.play(body("slow down"), status=429, retry_after=then)
    limited = await error(vendor, server)
    assert isinstance(limited, RateLimitError)
    assert limited.retry_after == pytest.approx(59, abs=3)
    server.play(body("slow down", details=[{"retryDelay": "34s"}]), status=429)
    limited = await error(vendor, server)
    assert isinstance(limited, RateLimitError)
    assert limited.retry_after == 34


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (400, body("This model's maximum context length is 8192 tokens.", "context_length_exceeded")),
        (400, body("prompt is too long: 210000 tokens > 200000 maximum")),
        (400, body("The input token count (9) exceeds the maximum number of tokens allowed (8).")),
        (400, body("the request exceeds the available context size", "exceed_context_size_error")),
        (500, body("the request exceeds the available context size", "exceed_context_size_error")),
        (413, b""),
    ],
)
async def test_a_prompt_that_is_too_long(vendor: str, server: Played, status: int, content: bytes) -> None:
    server.play(content, status=status)
    assert type(await error(vendor, server)) is ContextOverflowError


@pytest.mark.parametrize(
    ("status", "words", "parameter"),
    [
        (400, "response_format.json_schema is not supported with this model", "response_format"),
        (400, "output_config.format: Extra inputs are not permitted", "response_format"),
        (400, "m-1 does not support tools", "tools"),
        (422, "Invalid JSON schema", "response_format"),
        (500, "tools param requires --jinja flag", "tools"),
        (404, "No endpoints found that support tool use: not available", "tools"),
    ],
)
async def test_a_way_of_asking_that_is_not_known(
    vendor: str, server: Played, status: int, words: str, parameter: str
) -> None:
    server.play(body(words), status=status)
    refused = await error(vendor, server)
    assert isinstance(refused, ParameterError)
    assert refused.parameter == parameter
    assert not refused.billed


async def test_a_temperature_that_is_refused_is_left_out_from_then_on(vendor: str, server: Played) -> None:
    server.play(body("Unsupported value: 'temperature' only the default (1) value is supported"), status=400)
    server.play(*SPEAK[vendor](PARTS))
    server.play(*SPEAK[vendor](PARTS))
    async with opened(vendor, server.port) as model:
        assert (await model.ask(asking())).text == ANSWER
        assert (await model.ask(asking())).text == ANSWER
    assert ["temperature" in json.dumps(sent) for sent in server.sent] == [True, False, False]


async def test_a_server_that_refuses_three_parameters_is_asked_without_them(server: Played) -> None:
    server.play(body("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."), status=400)
    server.play(body("unknown field stream_options"), status=422)
    server.play(body("temperature is deprecated"), status=400)
    server.play(*openai(PARTS, counts=None))
    async with opened("compatible", server.port) as model:
        assert (await model.ask(asking())).usage is None
    assert server.sent[-1]["max_completion_tokens"] == 500  # never without a limit
    assert not {"max_tokens", "stream_options", "temperature"} & set(server.sent[-1])


async def test_a_limit_that_stays_refused_is_an_error(vendor: str, server: Played) -> None:
    for _ in range(2):
        server.play(body("Unsupported parameter: max_tokens, max_completion_tokens"), status=400)
    assert isinstance(await error(vendor, server), ParameterError)


async def test_a_reason_is_quoted_unless_it_repeats_the_prompt(vendor: str, server: Played) -> None:
    server.play(body("the model is not loaded"), status=400)
    assert "the model is not loaded" in (await error(vendor, server)).message
    server.play(body(f"cannot answer: {TEXT}"), status=400)
    assert "cannot answer" not in (await error(vendor, server)).message
    server.play(body(f"the key {KEY} is odd"), status=400)
    assert "0123456789" not in (await error(vendor, server)).message


# Broken answers ----------------------------------------------------------------------------------------------------


BREAKS: dict[str, Callable[[list[bytes]], list[bytes | float | str]]] = {
    "cut in the middle": lambda chunks: [*chunks[:3], CUT],
    "cut at once": lambda chunks: [b"\n", CUT],
    "ends early": lambda chunks: [*chunks[:3]],
    "empty": lambda chunks: [b""],
    "a page": lambda chunks: [b"<!doctype html>\n<html><body>Sign in</body></html>\n"],
    "bytes that are no text": lambda chunks: [chunks[0].replace("Zü".encode(), b"Z\xff\xfe"), b"\xff\xfe\n\n"],
    "half a character": lambda chunks: [chunks[0], b"\xc3(\n\n", *chunks[1:]],
    "no JSON": lambda chunks: [*chunks[:2], b"event: content_block_delta\ndata: {oops\n\n", *chunks[2:]],
    "JSON of another kind": lambda chunks: [
        chunks[0], event({"choices": 5, "candidates": 5, "type": 5}, "message_delta"), *chunks[1:]
    ],
    "numbers for words": lambda chunks: [
        event({"choices": [{"delta": {"content": 5}}], "candidates": [{"content": {"parts": [{"text": {}}]}}],
               "type": "content_block_delta", "delta": {"text": 5, "type": "text_delta"}}, "content_block_delta")
    ],
    "an error in the middle": lambda chunks: [
        *chunks[:3], event({"type": "error", "error": {"type": "api_error", "code": 500, "message": "oh"}}, "error")
    ],
}  # fmt: skip


def _plain(chunk: bytes | float | str) -> bytes | float | str:
    """Without the name of an event, which only Anthropic's format has."""
    return chunk.split(b"\n", 1)[1] if isinstance(chunk, bytes) and chunk.startswith(b"event:") else chunk


@pytest.mark.slow
@pytest.mark.parametrize("how", list(BREAKS))
async def test_a_broken_answer_may_be_asked_again_and_may_have_been_billed(
    vendor: str, server: Played, how: str
) -> None:
    chunks = BREAKS[how](SPEAK[vendor](PARTS))
    server.play(*(_plain(chunk) if vendor != "anthropic" else chunk for chunk in chunks))
    broken = await error(vendor, server)
    assert type(broken) is ModelError
    assert broken.retryable
    assert broken.billed


async def test_an_error_as_the_first_event_is_a_refusal(vendor: str, server: Played) -> None:
    name = "error" if vendor == "anthropic" else None
    server.play(event({"error": {"type": "overloaded_error", "code": 529, "message": "Overloaded"}}, name))
    refused = await error(vendor, server)
    assert refused.retryable
    assert not refused.billed
    assert "overloaded" in refused.message
    server.play(event({"error": {"type": "rate_limit_error", "code": 429, "message": "slow"}}, name))
    assert isinstance(await error(vendor, server), RateLimitError)


@pytest.mark.slow
async def test_an_answer_without_end_is_cut_off(vendor: str, server: Played) -> None:
    part = '"' + "x" * 100_000 + '"'
    parts = [f'{{"a": {part}}}'] if vendor == "google" else [part] * 100
    chunks = SPEAK[vendor](parts * (1 if vendor != "google" else 100))
    server.play(*chunks)
    refused = await error(vendor, server)
    assert refused.billed
    assert not refused.retryable
    assert "2 MB" in refused.message


@pytest.mark.slow
async def test_one_event_without_end_is_cut_off(vendor: str, server: Played) -> None:
    server.play(b"data: ", *[b"x" * 1_000_000] * 40)
    refused = await error(vendor, server, asking(seconds=300))  # an SDK copies what it has with each piece
    assert refused.billed
    assert "32 MB" in refused.message


async def test_a_compressed_answer_is_not_unpacked(vendor: str, server: Played) -> None:
    server.play(b"\x1f\x8b\x08\x00\xff\xff", content_encoding="gzip")
    assert (await error(vendor, server)).billed


# Time ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 2])
async def test_an_answer_that_does_not_come_in_time(vendor: str, server: Played, after: int) -> None:
    server.play(*SPEAK[vendor](PARTS)[:after], 30.0)
    late = await error(vendor, server, asking(seconds=0.5))
    assert isinstance(late, ModelTimeoutError)
    assert late.billed
    assert late.retryable
    async with asyncio.timeout(5):
        await server.gone.wait()


@pytest.mark.slow
async def test_an_answer_that_drips_has_the_same_deadline(vendor: str, server: Played) -> None:
    drops = [part for _ in range(100) for part in (b"\n", 0.1)]
    server.play(*drops)
    assert isinstance(await error(vendor, server, asking(seconds=0.5)), ModelTimeoutError)


async def test_a_host_that_never_accepts_bills_nothing(vendor: str) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(8)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        late = await error(vendor, Played(port=port), asking(seconds=0.6))
        for one in waiting:
            one.close()
    assert isinstance(late, ModelTimeoutError)
    assert not late.billed


async def test_a_server_that_is_not_there(vendor: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    absent = await error(vendor, Played(port=port))
    assert absent.retryable
    assert not absent.billed
    assert f"127.0.0.1:{port}" in absent.message
    assert "is the server running?" in absent.message


async def test_a_connection_reset_before_any_answer(vendor: str, server: Played) -> None:
    server.play(CUT)
    reset = await error(vendor, server)
    assert reset.retryable
    assert not reset.billed


async def test_cancelling_closes_the_connection(vendor: str, server: Played) -> None:
    server.play(*SPEAK[vendor](PARTS)[:-1], 30.0)
    async with opened(vendor, server.port) as model:
        heard = Deltas()
        task = asyncio.create_task(model.ask(asking(seconds=30), heard.hear))
        await heard.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5):
            await server.gone.wait()


async def test_an_error_of_the_listener_is_its_own_and_closes_the_connection(vendor: str, server: Played) -> None:
    async def hear(text: str) -> None:
        raise ZeroDivisionError

    server.play(*SPEAK[vendor](PARTS)[:-1], 30.0)
    async with opened(vendor, server.port) as model:
        with pytest.raises(ZeroDivisionError):
            await model.ask(asking(seconds=30), hear)
        async with asyncio.timeout(5):
            await server.gone.wait()


@pytest.mark.slow
def test_a_vendor_outlives_an_event_loop(vendor: str) -> None:
    async def once(model: Vendor, played: Played) -> str:
        listening = await asyncio.start_server(played.handle, "127.0.0.1", played.port)
        async with listening:
            reply = await model.ask(asking())
            await model.close()
            await played.gone.wait()
        return reply.text

    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = open_vendor(parse_name(f"{vendor}:m-1"), settings(vendor, port))
    for _ in range(2):
        played = Played(port=port)
        played.play(*SPEAK[vendor](PARTS))
        assert asyncio.run(once(model, played)) == ANSWER
    gc.collect()
