"""The fake provider: its formats as the vendors' own clients read them, its faults, and its books."""

import asyncio
import json
import warnings
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel, Field

from tests.fakes.llm_api import ModelPrompt
from tests.fakes.llm_faults import FAULTS, LlmFault
from tests.fakes.llm_server import (
    FakeLlmServer,
    FaultAlways,
    FaultOnce,
    FaultSequence,
    FaultShare,
    LlmServerCall,
    count_tokens,
)
from tests.fakes.model import FakeModel
from tests.fakes.model_answers import build_instance


class Town(BaseModel):
    name: str
    people: int = Field(ge=0)


FORM = {**Town.model_json_schema(), "title": "Town"}
TOWN = {"name": "Zürich, on the lake", "people": 443_037}
MODEL = FakeModel({"Town": lambda prompt: TOWN, "Poem": lambda prompt: "No JSON here"})
FORMATS = ("openai", "anthropic", "google")


@pytest.fixture(scope="module", autouse=True)
def _google() -> None:
    """Its source has an invalid escape, of which Python warns when it compiles it for the first time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import google.genai  # noqa: F401


# The vendors' clients --------------------------------------------------------------------------------


async def ask_openai(provider: FakeLlmServer, *, stream: bool, method: str = "json_schema") -> tuple[str, str, Any]:
    """Text, how it ended, and usage, as the vendor's client sees them."""
    from openai import AsyncOpenAI

    schema: Any = {"type": "json_schema", "json_schema": {"name": "town", "schema": FORM, "strict": True}}
    tool: Any = {"type": "function", "function": {"name": "town", "parameters": FORM}}
    ways: dict[str, dict[str, Any]] = {
        "json_schema": {"response_format": schema},
        "function_calling": {"tools": [tool], "tool_choice": {"type": "function", "function": {"name": "town"}}},
        "json_mode": {"response_format": {"type": "json_object"}},
    }
    said = [{"role": "system", "content": f"Fill in {json.dumps(FORM)}"}, {"role": "user", "content": "Which town?"}]
    common: Any = {"model": "gpt", "messages": said, "max_tokens": 500, **ways[method]}
    async with AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="k", max_retries=0, timeout=5) as client:
        if not stream:
            whole = await client.chat.completions.create(**common)
            message = whole.choices[0].message
            called = message.tool_calls[0].function.arguments if message.tool_calls else message.content
            return called or message.refusal or "", whole.choices[0].finish_reason, whole.usage
        text, finish, usage = "", "", None
        events = await client.chat.completions.create(**common, stream=True, stream_options={"include_usage": True})
        async for event in events:
            usage = event.usage or usage
            for choice in event.choices:
                calls = choice.delta.tool_calls or []
                text += (choice.delta.content or "") + (choice.delta.refusal or "")
                text += "".join(call.function.arguments or "" for call in calls if call.function)
                finish = choice.finish_reason or finish
        return text, finish, usage


async def ask_anthropic(provider: FakeLlmServer, *, stream: bool, method: str = "json_schema") -> tuple[str, str, Any]:
    from anthropic import AsyncAnthropic

    ways: dict[str, dict[str, Any]] = {
        "json_schema": {"output_config": {"format": {"type": "json_schema", "schema": FORM}}},
        "function_calling": {
            "tools": [{"name": "town", "input_schema": FORM}],
            "tool_choice": {"type": "tool", "name": "town"},
        },
    }
    asked = [{"role": "user", "content": "Which town?"}]
    common: Any = {"model": "claude", "system": "Fill in", "messages": asked, "max_tokens": 500, **ways[method]}
    async with AsyncAnthropic(base_url=provider.url, api_key="k", max_retries=0, timeout=5) as client:
        if stream:
            async with client.messages.stream(**common) as events:
                message: Any = await events.get_final_message()
        else:
            message = await client.messages.create(**common)
    text = "".join(json.dumps(b.input) if b.type == "tool_use" else b.text for b in message.content)
    return text, message.stop_reason, message.usage


async def ask_google(provider: FakeLlmServer, *, stream: bool, method: str = "json_schema") -> tuple[str, str, Any]:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=provider.url, timeout=5000, async_client_args={"trust_env": False})
    function = {"name": "town", "parameters_json_schema": FORM}
    calling = {"function_calling_config": {"mode": "ANY"}}
    ways: dict[str, dict[str, Any]] = {
        "json_schema": {"response_mime_type": "application/json", "response_json_schema": FORM},
        "function_calling": {"tools": [{"function_declarations": [function]}], "tool_config": calling},
        "json_mode": {"response_mime_type": "application/json"},
    }
    system = f"Fill in {json.dumps(FORM)}" if method == "json_mode" else "Fill in"
    config = types.GenerateContentConfig(system_instruction=system, max_output_tokens=500, **ways[method])
    client = genai.Client(api_key="k", http_options=options)
    asked: Any = {"model": "gemini", "contents": "Which town?", "config": config}
    try:
        if stream:
            answers = [event async for event in await client.aio.models.generate_content_stream(**asked)]
        else:
            answers = [await client.aio.models.generate_content(**asked)]
    finally:
        await client.aio.aclose()
        client.close()
    parts = [part for a in answers for c in a.candidates or () if c.content for part in c.content.parts or ()]
    text = "".join(json.dumps(part.function_call.args) if part.function_call else part.text or "" for part in parts)
    finish = answers[-1].candidates[0].finish_reason if answers[-1].candidates else "none"
    return text, str(getattr(finish, "value", finish)), answers[-1].usage_metadata


ASK = {"openai": ask_openai, "anthropic": ask_anthropic, "google": ask_google}
COUNTS = {
    "openai": ("prompt_tokens", "completion_tokens"),
    "anthropic": ("input_tokens", "output_tokens"),
    "google": ("prompt_token_count", "candidates_token_count"),
}
WAYS = [(name, method) for name in FORMATS for method in ("json_schema", "function_calling", "json_mode")]
WAYS.remove(("anthropic", "json_mode"))


@pytest.mark.slow
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(("name", "method"), WAYS)
async def test_the_vendors_own_clients_understand_it(name: str, method: str, stream: bool) -> None:
    async with FakeLlmServer(MODEL) as provider:
        text, finish, usage = await ASK[name](provider, stream=stream, method=method)
    assert json.loads(text) == TOWN
    assert finish.lower() in {"stop", "end_turn", "tool_use"}
    [call] = provider.calls
    assert (call.format, call.form, call.prompt.method, call.fault) == (name, "Town", method, None)
    assert "Which town?" in call.prompt.text
    assert "Fill in" in call.prompt.system
    assert call.prompt.limit == 500
    assert tuple(getattr(usage, field) for field in COUNTS[name]) == (call.prompt_tokens, call.completion_tokens)
    assert call.completion_tokens == count_tokens(call.text)
    assert call.prompt_bytes > call.prompt_tokens > count_tokens("Which town?")
    assert provider.billable_tokens().total == call.prompt_tokens + call.completion_tokens


@pytest.mark.slow
async def test_errors_are_the_vendors_own() -> None:
    import anthropic
    import openai
    from google.genai import errors

    async with FakeLlmServer(MODEL, faults=FaultAlways("rate-limited")) as provider:
        with pytest.raises(openai.RateLimitError) as first:
            await ask_openai(provider, stream=True)
        with pytest.raises(anthropic.RateLimitError) as second:
            await ask_anthropic(provider, stream=True)
        with pytest.raises(errors.ClientError) as third:
            await ask_google(provider, stream=True)
    assert first.value.response.headers["retry-after"] == second.value.response.headers["retry-after"] == "1"
    assert (third.value.code, third.value.status) == (429, "RESOURCE_EXHAUSTED")
    assert provider.billable_calls == []


async def test_errors_in_a_stream_reach_the_vendors_clients() -> None:
    import anthropic
    import openai
    from google.genai import errors

    async with FakeLlmServer(MODEL, faults=FaultAlways("error-midway")) as provider:
        with pytest.raises(openai.APIError, match="Overloaded"):
            await ask_openai(provider, stream=True)
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            await ask_anthropic(provider, stream=True)
        with pytest.raises(errors.APIError, match="Overloaded"):
            await ask_google(provider, stream=True)
    assert len(provider.billable_calls) == 3


@pytest.mark.parametrize("name", FORMATS)
async def test_a_refusal_is_told_apart(name: str) -> None:
    async with FakeLlmServer(MODEL, faults=FaultAlways("refusal")) as provider:
        text, finish, _ = await ASK[name](provider, stream=True)
    assert "sorry" in text
    assert (name, finish) in {("openai", "stop"), ("anthropic", "refusal"), ("google", "SAFETY")}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("fault", ["small-pieces", "comments", "no-end", "wrong-content-type"])
async def test_oddities_that_do_no_harm(name: str, fault: str) -> None:
    async with FakeLlmServer(MODEL, faults=FaultAlways(fault)) as provider:
        text, _, _ = await ASK[name](provider, stream=True)
    assert json.loads(text) == TOWN


async def test_an_answer_ends_at_its_limit() -> None:
    poem = "word " * 1000
    async with FakeLlmServer(lambda prompt: poem) as provider:
        text, finish, usage = await ask_openai(provider, stream=True)
    assert finish == "length"
    assert usage.completion_tokens == provider.calls[0].completion_tokens == 500
    assert poem.startswith(text)


async def test_a_prompt_that_is_too_long_is_turned_down() -> None:
    import openai

    async with FakeLlmServer(MODEL, context=10) as provider:
        with pytest.raises(openai.BadRequestError, match="maximum context length"):
            await ask_openai(provider, stream=True)
    assert [call.fault for call in provider.calls] == ["context-overflow"]


# Faults ----------------------------------------------------------------------------------------------

PATHS = {
    "openai": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "google": "/v1beta/models/gemini:streamGenerateContent?alt=sse",
}
PLAYED = [(fault, name) for fault in FAULTS.values() for name in FORMATS if name in fault.formats]


def body(name: str, text: str = "Which town?") -> dict[str, Any]:
    said = [{"role": "user", "content": text}]
    if name == "openai":
        schema = {"type": "json_schema", "json_schema": {"name": "town", "schema": FORM}}
        options = {"include_usage": True}
        return {"model": "gpt", "messages": said, "response_format": schema, "stream": True, "stream_options": options}
    if name == "anthropic":
        form = {"format": {"type": "json_schema", "schema": FORM}}
        return {"model": "claude", "messages": said, "max_tokens": 500, "output_config": form, "stream": True}
    config = {"responseMimeType": "application/json", "responseJsonSchema": FORM}
    return {"contents": [{"parts": [{"text": text}]}], "generationConfig": config}


async def heard(client: httpx2.AsyncClient, name: str, text: str = "Which town?") -> tuple[int, bytes] | None:
    """What came back, None where it was no whole response."""
    try:
        answer = await client.post(PATHS[name], json=body(name, text), timeout=60)
    except httpx2.HTTPError:
        return None
    return answer.status_code, answer.content


async def wait_for_calls(provider: FakeLlmServer, count: int) -> None:
    async with asyncio.timeout(60):
        while len(provider.calls) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def give_up(client: httpx2.AsyncClient, name: str, provider: FakeLlmServer) -> None:
    """Asks, and leaves once the server is busy with it."""
    waiting = asyncio.create_task(heard(client, name))
    await wait_for_calls(provider, 1)
    await asyncio.wait([waiting], timeout=0.2)
    waiting.cancel()
    await asyncio.wait([waiting])


def test_there_are_many_faults_each_with_its_name() -> None:
    assert len(FAULTS) >= 60
    assert all(name == fault.name == str(fault) for name, fault in FAULTS.items())


@pytest.mark.slow
@pytest.mark.requirement("F-11")
@pytest.mark.parametrize(("fault", "name"), PLAYED, ids=[f"{fault}-{name}" for fault, name in PLAYED])
async def test_every_fault_is_played_and_the_server_goes_on(fault: LlmFault, name: str) -> None:
    async with (
        FakeLlmServer(MODEL, faults=FaultSequence([fault])) as provider,
        httpx2.AsyncClient(base_url=provider.url, trust_env=False) as client,
    ):
        first = await (give_up(client, name, provider) if fault.slow else heard(client, name))
        second = await heard(client, name)
    broken, sound = provider.calls
    assert (broken.fault, broken.billed) == (fault.name, fault.billed)
    assert second is not None
    assert (second[0], sound.fault, json.loads(sound.text)) == (200, None, TOWN)
    assert first != second or fault.name in {"small-pieces", "wrong-content-type", "unknown-tool", "no-end"}
    assert broken.ended is not None
    if not fault.billed:
        assert broken.completion_tokens == 0
        assert provider.billable_calls == [sound]


async def test_redirects_lead_to_another_host_that_sees_who_follows() -> None:
    async with (
        FakeLlmServer(MODEL, faults=FaultAlways("redirect-with-body")) as provider,
        httpx2.AsyncClient(base_url=provider.url, trust_env=False, follow_redirects=True) as client,
    ):
        await heard(client, "openai")
        assert provider.strays[0].headers["host"] == f"localhost:{provider.port}"
        assert b"Which town?" in provider.strays[0].body


async def test_usage_may_be_false_while_the_books_are_not() -> None:
    async with FakeLlmServer(MODEL, faults=FaultAlways("usage-absurd")) as provider:
        _, _, usage = await ask_openai(provider, stream=True)
    assert usage.prompt_tokens == 10**12
    assert 0 < provider.billable_tokens().total < 1000
    assert provider.billable_tokens("gpt") == provider.billable_tokens()
    assert provider.billable_tokens("claude").total == 0


async def test_what_a_fault_makes_the_model_say_is_counted_up_to_the_limit() -> None:
    async with FakeLlmServer(MODEL, faults=FaultSequence(["prose", "deep-nesting"])) as provider:
        prose = await ask_anthropic(provider, stream=True)
        nested = await ask_anthropic(provider, stream=True)
    assert [usage.output_tokens for _, _, usage in (prose, nested)] == [count_tokens(prose[0]), 500]
    assert [call.completion_tokens for call in provider.calls] == [count_tokens(prose[0]), 500]


# Policies --------------------------------------------------------------------------------------------


def called(number: int, text: str = "") -> LlmServerCall:
    prompt = ModelPrompt(model="m", system="", text=text)
    return LlmServerCall(number, "openai", prompt, 0, 0, concurrency=1, started=0.0)


def test_a_share_is_the_same_for_the_same_seed() -> None:
    first, again, other = (
        [policy(called(number)) for number in range(1, 501)]
        for policy in (FaultShare(0.3, 7), FaultShare(0.3, 7), FaultShare(0.3, 8))
    )
    assert first == again != other
    played = [fault for fault in first if fault]
    assert 120 <= len(played) <= 180
    assert len(set(map(str, played))) > 40
    assert not any(fault.slow for fault in played)


def test_a_share_of_chosen_faults() -> None:
    policy = FaultShare(1.0, 1, ["cut", FAULTS["reset"]])
    assert {str(policy(called(number))) for number in range(1, 50)} == {"cut", "reset"}


def test_once_is_once_a_prompt() -> None:
    policy = FaultOnce("cut")
    assert [str(policy(called(0, text))) for text in "abab"] == ["cut", "cut", "None", "None"]


def test_a_script_ends() -> None:
    policy = FaultSequence(["cut", None, "reset"])
    assert [str(policy(called(number))) for number in range(1, 6)] == ["cut", "None", "reset", "None", "None"]


# The server ------------------------------------------------------------------------------------------


async def test_many_at_once_with_latency() -> None:
    async with (
        FakeLlmServer(MODEL, latency=0.2) as provider,
        httpx2.AsyncClient(base_url=provider.url, trust_env=False) as client,
    ):
        await asyncio.gather(*(heard(client, FORMATS[number % 3], str(number)) for number in range(30)))
    assert provider.max_concurrency == 30
    assert all(call.ended and call.ended - call.started >= 0.19 for call in provider.calls)


async def test_a_client_that_gives_up_is_billed_and_done_with() -> None:
    async with (
        FakeLlmServer(MODEL, latency=30) as provider,
        httpx2.AsyncClient(base_url=provider.url, trust_env=False) as client,
    ):
        await give_up(client, "openai", provider)
        async with asyncio.timeout(60):
            while provider.calls[0].ended is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert provider.billable_calls == provider.calls


async def test_it_closes_at_once_with_clients_that_still_wait() -> None:
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
        async with FakeLlmServer(MODEL, faults=FaultAlways("hang")) as provider:
            waiting = [
                asyncio.create_task(client.post(provider.url + PATHS["openai"], json=body("openai"))) for _ in range(5)
            ]
            await wait_for_calls(provider, 5)
            assert provider.max_concurrency == 5
        results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(result, httpx2.RemoteProtocolError | httpx2.ReadError) for result in results)


async def test_what_is_no_request_ends_its_connection_alone() -> None:
    async with FakeLlmServer(MODEL) as provider:
        for junk in (b"\x16\x03\x01\x00\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"A" * 200_000):
            reader, writer = await asyncio.open_connection("127.0.0.1", provider.port)
            writer.write(junk)
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
            with suppress(ConnectionResetError):
                await writer.wait_closed()
        async with httpx2.AsyncClient(base_url=provider.url, trust_env=False) as client:
            assert await heard(client, "openai")


async def test_it_says_which_models_it_has() -> None:
    async with (
        FakeLlmServer(MODEL, models=("small", "large")) as provider,
        httpx2.AsyncClient(base_url=provider.url, trust_env=False) as client,
    ):
        listed = (await client.get("/v1/models")).json()
        tags = (await client.get("/api/tags")).json()
        absent = await client.get("/v1/else")
    assert [model["id"] for model in listed["data"]] == ["small", "large"]
    assert [model["name"] for model in tags["models"]] == ["small", "large"]
    assert absent.status_code == 404


async def test_an_error_of_the_model_is_not_lost() -> None:
    def confused(prompt: ModelPrompt) -> str:
        raise LookupError("no such answer")

    with pytest.raises(LookupError, match="no such answer"):
        async with (
            FakeLlmServer(confused) as provider,
            httpx2.AsyncClient(base_url=provider.url, trust_env=False) as client,
        ):
            await heard(client, "openai")


# The script ------------------------------------------------------------------------------------------


class Inner(BaseModel):
    kind: str = Field(json_schema_extra={"enum": ["web", "news"]})
    share: float = Field(gt=0, le=0.5)
    tags: list[str] = Field(min_length=2)


class Outer(BaseModel):
    inner: Inner
    others: list[Inner]
    when: str | None
    years: int = Field(ge=1900)
    short: str = Field(max_length=2)
    long: str = Field(min_length=9)
    sure: bool
    children: list["Outer"] = []


def test_a_form_nobody_wrote_an_answer_for_is_filled_in_validly() -> None:
    made = build_instance(Outer.model_json_schema())
    outer = Outer.model_validate(made)
    assert outer.inner.kind == "web"
    assert outer.years == 1900
    assert outer.others
    assert outer.children


def test_a_string_is_sent_as_it_is() -> None:
    assert MODEL(ModelPrompt(model="m", system="", text="", form="Poem")) == "No JSON here"
    assert MODEL(ModelPrompt(model="m", system="", text="")) == "text"
