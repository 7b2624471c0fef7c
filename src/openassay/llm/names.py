"""A model's name, "vendor:model", and what follows from it: its key, its address, whether it runs on this machine."""

import asyncio
import difflib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr, ValidationError

from openassay.errors import ConfigurationError
from openassay.settings import Keys, Settings

VendorName = Literal["anthropic", "openai", "google", "compatible", "ollama", "llamacpp", "local"]

VENDORS: tuple[VendorName, ...] = get_args(VendorName)
HOSTED = frozenset({"anthropic", "openai", "google"})  # need a key, and see what they are asked
SERVED = {  # speak OpenAI's format at an address that the user gives
    "compatible": None,
    "ollama": "http://127.0.0.1:11434/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
}
EXAMPLES: dict[str, str] = {
    "anthropic": "anthropic:claude-sonnet-5-5",
    "openai": "openai:gpt-4o",
    "google": "google:gemini-2.5-flash-lite",
    "compatible": "compatible:NAME-ON-THE-SERVER",
    "ollama": "ollama:qwen2.5:7b",
    "llamacpp": "llamacpp:default",
    "local": "local:PATH/TO/MODEL.gguf",
}
FAMILIES = {"claude": "anthropic", "gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "gemini": "google"}
MAGIC = b"GGUF"


@dataclass(frozen=True, slots=True)
class ModelName:
    vendor: VendorName
    name: str

    def __str__(self) -> str:
        return f"{self.vendor}:{self.name}"

    @property
    def path(self) -> Path:
        """The file behind a `local:` name."""
        return Path(self.name).expanduser()


def parse_name(text: str) -> ModelName:
    vendor, colon, name = (part.strip() for part in text.partition(":"))
    if not colon and vendor not in VENDORS:
        family = next((known for start, known in FAMILIES.items() if vendor.lower().startswith(start)), None)
        hint = f" (did you mean {family}:{vendor}?)" if family else _suggest_vendor(vendor)
        raise ConfigurationError(f"{vendor!r} does not name the vendor of its model{hint}", help=_format_help())
    if vendor not in VENDORS:
        raise ConfigurationError(f"unknown vendor {vendor!r} in {text!r}{_suggest_vendor(vendor)}", help=_format_help())
    if not name:
        raise ConfigurationError(f"{text!r} names no model", help=f"Write it as {EXAMPLES[vendor]}.")
    return ModelName(vendor, name)


def key_variable(model: ModelName) -> str:
    """Return the variable that holds the vendor's key; the user's own servers share one, which may be absent."""
    return f"{model.vendor if model.vendor in HOSTED else 'compatible'}_api_key".upper()


def find_key(model: ModelName, keys: Keys) -> str | None:
    if model.vendor == "local":
        return None
    secret: SecretStr | None = getattr(keys, key_variable(model).lower())
    value = secret.get_secret_value().strip() if secret else ""
    if value and not (value.isascii() and value.isprintable()):
        raise ConfigurationError(
            f"{key_variable(model)} holds characters that no key has", help="Copy the key again, without quotes."
        )
    return value or None


def has_key(model: ModelName, keys: Keys) -> bool:
    """Tell whether the model can be asked as far as keys go."""
    return model.vendor not in HOSTED or find_key(model, keys) is not None


def base_url(model: ModelName, settings: Settings) -> str | None:
    """Return the address of the model's server; None for a hosted vendor's own address and for a file."""
    for vendor in settings.llm.endpoints:
        if vendor not in VENDORS:
            raise ConfigurationError(
                f"llm.endpoints: unknown vendor {vendor!r}{_suggest_vendor(vendor)}", help=_format_help()
            )
    if model.vendor == "local":
        return None
    address = settings.llm.endpoints.get(model.vendor)
    if address is None and model.vendor in SERVED:
        address = settings.llm.base_url or SERVED[model.vendor]
        if address is None:
            raise ConfigurationError(
                f"{model} needs the address of its server",
                help="Set llm.base_url in config.yaml or OPENASSAY_LLM__BASE_URL, such as http://127.0.0.1:8000/v1.",
            )
    if address is None:
        return None
    try:
        parts = urlsplit(address.strip())
        well_formed = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number, a bracket without its mate
        parts, well_formed = urlsplit(""), False
    if not well_formed or parts.query or parts.fragment:
        raise ConfigurationError(
            f"the address of {model.vendor} is not a URL", help="Write it as http://HOST:PORT/v1 or https://HOST/v1."
        )
    path = parts.path.rstrip("/")
    if not path and model.vendor not in ("anthropic", "google"):  # their SDKs add the version themselves
        path = "/v1"
    return f"{parts.scheme}://{parts.netloc}{path}"


def is_on_this_machine(model: ModelName, settings: Settings) -> bool:
    """Tell whether nothing leaves the machine. A hosted vendor's gateway on loopback passes everything on: never."""
    if model.vendor == "local":
        return True
    if model.vendor not in SERVED:
        return False
    host = urlsplit(base_url(model, settings) or "").hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_file(model: ModelName) -> None:
    """Check that a `local:` model is a .gguf file: at start, rather than by a server that dies."""
    if model.vendor != "local":
        return
    path = model.path
    if path.suffix.lower() != ".gguf":
        raise ConfigurationError(f"{path} is not a .gguf file", help=f"Write it as {EXAMPLES['local']}.")
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the model {path}: {error.strerror or 'it is not a file'}", help="Correct the path."
        ) from error
    if start != MAGIC:
        raise ConfigurationError(f"{path} does not hold a GGUF model", help="Download the file again.")


def _suggest_vendor(word: str) -> str:
    match = difflib.get_close_matches(word.lower(), VENDORS, n=1)
    return f" (did you mean {match[0]}?)" if match else ""


def _format_help() -> str:
    return f"Write VENDOR:MODEL, such as {EXAMPLES['anthropic']}. Vendors: {', '.join(VENDORS)}; or `embedded`."


# How much fits into a call --------------------------------------------------------------------------------------


class CallLimits(NamedTuple):
    """How long a prompt, an answer and a call to a model may be."""

    prompt_tokens: int
    answer_tokens: int
    seconds: float
    at_once: int


# A model on this machine reads some 40 tokens a second on two cores, has a window of 4,000 or 8,000, and one slot.
LOCAL_LIMITS = CallLimits(prompt_tokens=3_000, answer_tokens=1_500, seconds=900.0, at_once=1)
# A report of 2,500 words from 140 claims takes 45,000 tokens of a prompt, and a minute or two to be written.
HOSTED_LIMITS = CallLimits(prompt_tokens=96_000, answer_tokens=8_000, seconds=300.0, at_once=16)


LARGE_ROOM = 16_000  # tokens of a prompt: whoever sets so much has a server that can answer at length


def call_limits(model: ModelName, settings: Settings) -> CallLimits:
    """Return what suits where a model runs, unless it is set: what a server can do cannot be told from its address."""
    llm, limits = settings.llm, HOSTED_LIMITS
    if is_on_this_machine(model, settings):
        large = (llm.prompt_tokens or 0) >= LARGE_ROOM
        limits = HOSTED_LIMITS._replace(seconds=LOCAL_LIMITS.seconds) if large else LOCAL_LIMITS
    return CallLimits(
        prompt_tokens=llm.prompt_tokens or limits.prompt_tokens,
        answer_tokens=llm.answer_tokens or limits.answer_tokens,
        seconds=llm.call_seconds or limits.seconds,
        at_once=llm.calls_at_once or limits.at_once,
    )


# Model servers that run on this machine, for the first-run dialogue and `doctor` to propose -------------------

ServerKind = Literal["ollama", "compatible"]

MAX_LIST_BYTES = 1_000_000
SERVERS: dict[str, ServerKind] = {
    "http://127.0.0.1:11434": "ollama",
    "http://127.0.0.1:8080": "compatible",  # llama.cpp
    "http://127.0.0.1:1234": "compatible",  # LM Studio
    "http://127.0.0.1:8000": "compatible",  # vLLM
}


@dataclass(frozen=True, slots=True)
class ModelServer:
    url: str  # what llm.base_url would be
    kind: ServerKind
    models: tuple[str, ...]


class _ServedModel(BaseModel):
    id: str


class _ServedModels(BaseModel):
    data: list[_ServedModel]


async def find_model_servers(seconds: float = 0.5, servers: Mapping[str, ServerKind] = SERVERS) -> list[ModelServer]:
    """Return the servers that answer in time; one that is absent, slow or something else is left out."""
    found = await asyncio.gather(*(_probe(url, kind, seconds) for url, kind in servers.items()))
    return [server for server in found if server is not None]


async def _probe(url: str, kind: ServerKind, seconds: float) -> ModelServer | None:
    import httpx2

    content = b""
    try:
        async with (
            asyncio.timeout(seconds),
            httpx2.AsyncClient(trust_env=False, follow_redirects=False, verify=False) as client,
            client.stream("GET", f"{url}/v1/models", headers={"accept-encoding": "identity"}) as response,
        ):
            if response.status_code == 200:
                async for chunk in response.aiter_raw():
                    content += chunk
                    if len(content) > MAX_LIST_BYTES:
                        break  # a longer list fails as JSON
        listed = _ServedModels.model_validate_json(content[:MAX_LIST_BYTES])
    except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, ValidationError):
        return None
    return ModelServer(f"{url}/v1", kind, tuple(model.id for model in listed.data))
