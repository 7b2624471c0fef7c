"""Model servers that happen to run on this machine, for a first-run dialogue and a doctor to propose."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

Kind = Literal["ollama", "compatible"]

MOST_BYTES = 1_000_000
OLLAMA = "http://127.0.0.1:11434"
SERVERS = ("http://127.0.0.1:8080", "http://127.0.0.1:1234", "http://127.0.0.1:8000")  # llama.cpp, LM Studio, vLLM


@dataclass(frozen=True, slots=True)
class Found:
    url: str  # what llm.base_url would be
    kind: Kind
    models: tuple[str, ...]


class _Tag(BaseModel):
    name: str


class _Tags(BaseModel):
    """What Ollama answers."""

    models: list[_Tag]

    def names(self) -> tuple[str, ...]:
        return tuple(tag.name for tag in self.models)


class _Model(BaseModel):
    id: str


class _Models(BaseModel):
    """What servers with OpenAI's format answer."""

    data: list[_Model]

    def names(self) -> tuple[str, ...]:
        return tuple(model.id for model in self.data)


_TAGS = TypeAdapter(_Tags)
_MODELS = TypeAdapter(_Models)


async def nearby(
    seconds: float = 0.5, *, ollama: Sequence[str] = (OLLAMA,), servers: Sequence[str] = SERVERS
) -> list[Found]:
    """Those that answer in time; a server that is absent, slow or something else is left out without a word."""
    asked = [_ask(url, "ollama", "/api/tags", _TAGS, seconds) for url in ollama]
    asked += [_ask(url, "compatible", "/v1/models", _MODELS, seconds) for url in servers]
    return [found for found in await asyncio.gather(*asked) if found is not None]


async def _ask(
    url: str, kind: Kind, path: str, form: TypeAdapter[_Tags] | TypeAdapter[_Models], seconds: float
) -> Found | None:
    import httpx2

    try:
        async with asyncio.timeout(seconds):
            answer = form.validate_json(await _read(url + path))
    except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, ValidationError):
        return None
    return Found(f"{url}/v1", kind, answer.names())


async def _read(url: str) -> bytes:
    """At most MOST_BYTES, uncompressed: what is longer is no list of models and fails as JSON."""
    import httpx2

    content = b""
    async with (
        httpx2.AsyncClient(trust_env=False, follow_redirects=False, verify=False) as client,
        client.stream("GET", url, headers={"accept-encoding": "identity"}) as response,
    ):
        if response.status_code == 200:
            async for chunk in response.aiter_raw():
                content += chunk
                if len(content) > MOST_BYTES:
                    break
    return content[:MOST_BYTES]
