"""All settings, with their defaults, and the only place that reads the environment.

Priority: defaults < config.yaml < environment (and .env) < what the caller passes. Every key can be set as
`OPENASSAY_<KEY>`, nested ones as `OPENASSAY_LLM__MODEL`. API keys keep their vendors' names.
"""

import difflib
import hashlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from dotenv import dotenv_values
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, YamlConfigSettingsSource
from pydantic_settings.exceptions import SettingsError

from openassay.errors import ConfigurationError
from openassay.models.plan import FEWEST_WORDS, MOST_USD, MOST_WORDS, Depth, Mode, Style
from openassay.models.spend import ModelRole

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


USER = r"^[A-Za-z0-9_-]{1,64}$"
NAME = r"^[a-z][a-z0-9_-]{0,39}$"
FIELD = r"^[a-z][a-z0-9_]*(\.[A-Za-z0-9][A-Za-z0-9_]*)*$"


class SettingsSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RoleTuning(SettingsSection):
    temperature: float = Field(ge=0, le=2)
    max_tokens: int = Field(ge=1)


class TokenPrice(SettingsSection):
    """USD for a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class ModelSettings(SettingsSection):
    """Which models think. Without a key the embedded reasoner does, and none of this is used."""

    model: str = "anthropic:claude-sonnet-5-5"
    fallback_model: str = "openai:gpt-4o"
    budget_model: str = "google:gemini-2.5-flash-lite"
    base_url: str | None = None  # of the OpenAI-compatible server behind `compatible:`, `ollama:` and `llamacpp:`
    endpoints: dict[str, str] = {}  # another address for a vendor, such as a company's gateway
    prices: dict[str, TokenPrice] = {}  # of models nobody publishes a price for
    requests_per_minute: dict[str, Annotated[int, Field(ge=1)]] = {}  # by vendor
    at_once: int = Field(default=32, ge=1, le=1000)  # calls of a process, over all vendors and runs
    prompt_tokens: int | None = Field(default=None, ge=1000)  # the most of one prompt; None: what suits the model
    answer_tokens: int | None = Field(default=None, ge=100)  # the most of one answer, whatever a role may write
    calls_at_once: int | None = Field(default=None, ge=1, le=1000)  # to one vendor or server
    call_seconds: float | None = Field(default=None, gt=0)  # one call; None: 120, and 900 for a model on this machine
    step_seconds: float | None = Field(default=None, gt=0)  # all attempts of one step; None: 4 calls
    planner: RoleTuning = RoleTuning(temperature=0.3, max_tokens=4000)
    searcher: RoleTuning = RoleTuning(temperature=0.1, max_tokens=4000)
    analyst: RoleTuning = RoleTuning(temperature=0.2, max_tokens=4000)
    writer: RoleTuning = RoleTuning(temperature=0.4, max_tokens=8000)
    reviewer: RoleTuning = RoleTuning(temperature=0.1, max_tokens=4000)
    judge: RoleTuning = RoleTuning(temperature=0.0, max_tokens=4000)  # 80 claims

    @field_validator("planner", "searcher", "analyst", "writer", "reviewer", "judge", mode="before")
    @classmethod
    def _fill_defaults(cls, value: Any, info: ValidationInfo) -> Any:
        """Who sets a role's temperature keeps its token limit."""
        if not isinstance(value, dict):
            return value
        return {**cls.model_fields[str(info.field_name)].default.model_dump(), **value}


class BudgetSettings(SettingsSection):
    usd: float = Field(default=2.0, ge=0, le=MOST_USD, allow_inf_nan=False)
    tokens: int = Field(default=2_000_000, ge=0)
    requests: int = Field(default=2_000, ge=0)
    verification_share: float = Field(default=0.15, ge=0, lt=1)
    near: float = Field(default=0.8, gt=0, le=1)  # share of the cap from which on the budget model is asked


class PersistenceSettings(SettingsSection):
    """Where threads are kept, for how long, and how safe from whom (docs/explanation/durability.md)."""

    backend: Literal["sqlite", "postgres", "memory"] = "sqlite"
    connection_string: str | None = None  # of PostgreSQL; DATABASE_URL does as well
    ttl_hours: float | None = Field(default=None, gt=0)  # threads nobody has touched for so long are deleted
    keep_checkpoints: int | None = Field(default=None, ge=1)  # of each finished run; None: all of them
    journal: bool = True  # a verified copy of each run under checkpoints/ in the data directory
    encrypt: bool = False  # what is stored, with OPENASSAY_STORAGE_KEY


BreakpointPlace = Literal["plan", "harvest", "claims", "review", "output"]  # where a run can be stopped for a person
Operator = Literal["<", "<=", ">", ">=", "==", "!=", "in", "not in", "contains", "exists", "missing"]


class Condition(SettingsSection):
    """A field of the run held against a value; never code. A list is compared by its length with a number."""

    field: str = Field(pattern=FIELD)  # as in critique.score or coverage.Q1
    operator: Operator
    value: Any = None


class CustomBreakpoint(SettingsSection):
    """A breakpoint of one's own: where, on which condition, and what the reviewer sees."""

    name: str = Field(pattern=NAME)
    at: BreakpointPlace
    when: Condition | None = None  # None: always
    question: str = Field(default="", max_length=300)
    shows: tuple[str, ...] = ()  # fields; none: what the place usually shows
    timeout: int = Field(default=3600, gt=0)
    auto_approve: bool = False


class BreakpointSettings(SettingsSection):
    """Where a person is asked, how many seconds they have, and what happens when nobody answers: the run goes on where
    `auto_approve` is set, else it ends with the fallback report."""

    plan_timeout: int = Field(default=1800, gt=0)
    plan_auto_approve: bool = False
    output_timeout: int = Field(default=3600, gt=0)
    output_auto_approve: bool = False
    critical_timeout: int = Field(default=7200, gt=0)
    critical_auto_approve: bool = False
    harvest_timeout: int = Field(default=1800, gt=0)
    harvest_auto_approve: bool = False
    before_harvest: bool = False
    harvest_pages: int = Field(default=0, ge=0)  # ask where at least so many pages would be fetched ...
    harvest_usd: float = Field(default=0.0, ge=0)  # ... or reading would cost at least this
    on_critical: bool = False
    question_timeout: int | None = Field(default=None, gt=0)  # for clarifying and planning questions; None: no end
    custom: tuple[CustomBreakpoint, ...] = Field(default=(), max_length=20)

    @field_validator("custom")
    @classmethod
    def _check_unique_names(cls, custom: tuple[CustomBreakpoint, ...]) -> tuple[CustomBreakpoint, ...]:
        names = [one.name for one in custom]
        if len(set(names)) < len(names):
            raise ValueError("two breakpoints have the same name")
        return custom


class ReportStandards(SettingsSection):
    """What a report must meet before it is published; what it does not meet goes back to the writer, and is told in the
    report if that does not help."""

    min_citations: int = Field(default=1, ge=0, le=50)  # sources cited
    recency_days: int | None = Field(default=None, ge=1)  # age of the newest source; None: as the question asks
    disclaimers: bool = True  # where it speaks of health, law or money


class ReadingSettings(SettingsSection):
    max_file_mb: int = Field(default=50, gt=0)
    pdf_seconds: int = Field(default=60, gt=0)
    # None: 32 and 96, but 12 and 36 for quick questions and where the embedded reasoner reads
    documents_per_question: int | None = Field(default=None, ge=1, le=50)
    passages_per_question: int | None = Field(default=None, ge=1, le=200)


class McpSourceSettings(SettingsSection):
    """An MCP server that is asked like any other source: a program on this machine, or an address."""

    command: tuple[str, ...] = ()
    url: str | None = None
    token: SecretStr | None = None  # what the address wants as a bearer
    env: dict[str, SecretStr] = {}  # what the program sees besides PATH, HOME and the like
    tool: str = "search"  # takes a query
    fetch: str | None = "fetch"  # takes the id of a result, gives its text; None: what `tool` gives is all there is
    kind: Literal["web", "academic", "news", "code"] = "web"
    seconds: float = Field(default=30.0, gt=0)
    usd_per_request: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _check_one_target(self) -> "McpSourceSettings":
        if bool(self.command) == bool(self.url):
            raise ValueError("give either a command or a url")
        return self


class SearchSettings(SettingsSection):
    """Which providers are asked, and how. Limits and prices of a provider are its own unless set here, by name."""

    without: tuple[str, ...] = ()  # providers that are never asked
    searxng_url: str | None = None  # of your own metasearch
    contact: str | None = None  # an e-mail address; OpenAlex, Crossref and Wikipedia serve those better who give one
    news_days: int = Field(default=30, ge=1, le=3650)  # how far back news are asked for
    academic_years: int | None = Field(default=None, ge=1, le=200)  # the same for papers; None: all of them
    cache_hours: float = Field(default=24.0, ge=0)
    seconds: float = Field(default=20.0, gt=0)  # one request
    at_once: int = Field(default=32, ge=1, le=1000)  # searches of a process, over all providers and runs
    endpoints: dict[str, str] = {}  # another address for a provider
    requests_per_minute: dict[str, Annotated[float, Field(gt=0)]] = {}
    requests_per_day: dict[str, Annotated[int, Field(ge=0)]] = {}
    usd_per_request: dict[str, Annotated[float, Field(ge=0)]] = {}
    mcp: dict[Annotated[str, Field(pattern=NAME)], McpSourceSettings] = {}  # more sources, by their names


class HarvestSettings(SettingsSection):
    """How pages are fetched and read."""

    pages_per_question: int = Field(default=8, ge=1, le=50)  # in one round
    page_seconds: float = Field(default=20.0, gt=0)
    page_mb: float = Field(default=10.0, gt=0, le=100)
    pdf_mb: float = Field(default=25.0, gt=0, le=100)
    at_once: int = Field(default=16, ge=1, le=200)
    at_once_per_host: int = Field(default=2, ge=1, le=20)
    host_pause: float = Field(default=0.25, ge=0)  # seconds between two requests to a host
    least_quality: float = Field(default=0.3, ge=0, le=1)
    cache_hours: float = Field(default=24.0, ge=0)  # for pages that do not say how long they stay fresh
    user_agent: str = "OpenAssayBot/0.1"
    browser: Literal["auto", "playwright", "crawl4ai", "off"] = "auto"  # for pages that need JavaScript
    browser_path: str | None = None  # of a Chromium; None: the one that is found
    allow_addresses: tuple[str, ...] = ()  # private networks that may be fetched all the same, as 10.1.0.0/16


class CacheSettings(SettingsSection):
    backend: Literal["sqlite", "redis", "memory"] = "sqlite"  # redis: at REDIS_URL
    memory_mb: float = Field(default=32.0, gt=0)  # the part kept in the process
    disk_mb: float = Field(default=500.0, gt=0)


_ORIGIN = re.compile(r"https?://(?:[\w.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?/?", re.IGNORECASE)


class ServerSettings(SettingsSection):
    """`openassay serve`: who is let in from where, and how much of everything one person may have."""

    host: str = "127.0.0.1"
    port: int = Field(default=8765, ge=0, le=65_535)
    public_url: str | None = None  # as people reach it, where that is not host and port; for links and webhooks
    allow_origins: tuple[str, ...] = ()  # of web pages that may call the API, as https://team.example
    allow_hosts: tuple[str, ...] = ()  # names it answers to besides its own, as openassay.team.example
    runs: Literal["here", "workers"] = "here"  # who works on them: the server itself, or `openassay worker`
    runs_at_once: int = Field(default=16, ge=1, le=1000)  # the others wait in line
    runs_per_user: int = Field(default=50, ge=1)  # at work, in line, or waiting for an answer
    streams_per_user: int = Field(default=100, ge=1)
    requests_per_minute: int = Field(default=600, ge=1)  # of one person
    usd_per_month: float | None = Field(default=None, ge=0)  # of one person
    start_seconds: float = Field(default=2.0, ge=0, le=60)  # a start waits so long for a first question
    heartbeat: float = Field(default=15.0, gt=0)  # seconds of silence after which a stream says that it lives
    drain_seconds: float = Field(default=20.0, ge=0)  # a run is given to end its step when the server stops
    body_mb: float = Field(default=1.0, gt=0)
    upload_mb: float = Field(default=25.0, gt=0)  # one file
    uploads_mb: float = Field(default=500.0, gt=0)  # all of one person's
    uploads: int = Field(default=200, ge=0)  # files of one person
    share_days: float = Field(default=7.0, gt=0)  # a link is good for, where nothing else is said
    webhook_seconds: float = Field(default=10.0, gt=0)
    webhook_attempts: int = Field(default=6, ge=1, le=20)
    webhook_addresses: tuple[str, ...] = ()  # private networks that may be told all the same, as 10.1.0.0/16

    @field_validator("allow_origins")
    @classmethod
    def _check_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        """A star would let every page in that anybody opens."""
        for one in origins:
            if not _ORIGIN.fullmatch(one.strip()):
                raise ValueError(f"{one!r} is no origin: name each, as https://team.example; there is no wildcard")
        return origins


class FleetSettings(SettingsSection):
    """`openassay worker`, and how processes on several machines keep out of each other's way (docs/howto/fleet.md)."""

    # Runs one worker begins and is at together; of what the dead have left, as many besides.
    concurrency: int = Field(default=4, ge=1, le=200)
    lease_seconds: float = Field(default=15.0, ge=1, le=600)  # a thread is its worker's so long after its last sign
    most_falls: int = Field(default=5, ge=1, le=100)  # workers a run may take down before it is given up
    drain_seconds: float = Field(default=30.0, ge=0)  # a run is given to end its step when its worker stops
    signals: Literal["auto", "process", "postgres", "redis"] = "auto"  # what carries news and rates between processes
    metrics_port: int | None = Field(default=None, ge=0, le=65_535)  # of a worker; None: it shows no figures
    metrics_host: str = "127.0.0.1"


class TelemetrySettings(SettingsSection):
    """What is told to a collector of traces. Its address is OTEL_EXPORTER_OTLP_ENDPOINT, as for every program."""

    traces: Literal["off", "otlp"] = "off"
    service: str = "openassay"
    content: bool = False  # whether questions, prompts and answers are told, too


# What is wrong with settings, in plain words.

_FORMS = {
    USER: "1 to 64 letters, digits, hyphens and underscores",
    NAME: "a small letter and up to 39 more, digits, hyphens and underscores",
    FIELD: "the name of a field, as in critique.score",
}
LONGEST_SHOWN = 200  # characters of a value in a message


def explain_errors(error: ValidationError, settings: type[BaseModel]) -> list[str]:
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"]) or "config.yaml"
        if problem["type"] == "extra_forbidden":
            siblings = _siblings(settings, problem["loc"])
            lines.append(f"unknown setting {key}{suggest_name(key.rpartition('.')[2], siblings)}")
        else:
            value = problem["input"]  # a whole part of the settings says nothing about what is wrong in it
            is_part = isinstance(value, SettingsSection | dict | list | tuple)
            shown = "" if is_part or len(repr(value)) > LONGEST_SHOWN else f", not {value!r}"
            lines.append(f"{key}: {_describe_problem(problem)}{shown}")
    return lines


def _describe_problem(problem: "ErrorDetails") -> str:
    """What should stand there, in plain words."""
    limits = problem.get("ctx", {})
    if "pattern" in limits:
        return f"should be {_FORMS.get(limits['pattern'], limits['pattern'])}"
    if problem["type"] == "value_error":
        return str(limits["error"])
    message = re.sub(r" or instance of \w+", "", problem["msg"]).replace("valid tuple", "list")
    return (message[:1].lower() + message[1:]).replace("valid dictionary", "mapping")


def _siblings(model: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    """The keys that stand where an unknown one was given."""
    for part in place[:-1]:
        if field := model.model_fields.get(str(part)):  # else it counts or names entries of the same kind
            model = _find_model(field.annotation) or model
    return list(model.model_fields)


def _find_model(kind: Any) -> type[BaseModel] | None:
    """Of a field, whether it holds one, several, or none."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((model for part in get_args(kind) if (model := _find_model(part))), None)


def suggest_name(word: str, known: Iterable[str]) -> str:
    match = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {match[0]}?)" if match else ""


# Variables with our prefix that are not settings of a run.
NOT_SETTINGS = frozenset(
    f"OPENASSAY_{name}"
    for name in "CONFIG EVAL_DATA STORAGE_KEY STORAGE_KEY_BEFORE TEST_MODEL_URL TEST_MODEL_FILE".split()
)


class Keys(BaseSettings):
    """Secrets under their vendors' own names; none is ever printed."""

    model_config = SettingsConfigDict(env_file=".env", extra="ignore", frozen=True)

    anthropic_api_key: SecretStr | None = None
    openai_api_key: SecretStr | None = None
    google_api_key: SecretStr | None = None
    compatible_api_key: SecretStr | None = None
    tavily_api_key: SecretStr | None = None
    exa_api_key: SecretStr | None = None
    serper_api_key: SecretStr | None = None
    brave_api_key: SecretStr | None = None
    news_api_key: SecretStr | None = None
    semantic_scholar_api_key: SecretStr | None = None
    openalex_api_key: SecretStr | None = None
    github_token: SecretStr | None = None
    redis_url: SecretStr | None = None
    database_url: SecretStr | None = None
    openassay_storage_key: SecretStr | None = None  # seals what is stored, and encrypts it where that is asked for
    openassay_storage_key_before: SecretStr | None = None  # the one that `openassay admin seal` replaces


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="OPENASSAY_",
        env_nested_delimiter="__",
        env_file=".env",
        dotenv_filtering="only_existing",  # a .env file also holds API keys and other programs' variables
        extra="forbid",
        frozen=True,
    )

    data_dir: Path = Path("data")
    log_level: Literal["debug", "info", "warning", "error"] = "warning"

    depth: Depth = Depth.STANDARD
    mode: Mode = Mode.AUTO
    auto_gate: bool = True
    user: str = Field(default="local", pattern=USER)  # whose memory is used
    style_guide: Style = "academic"
    target_length: int = Field(default=2000, ge=FEWEST_WORDS, le=MOST_WORDS)
    banned_words: tuple[str, ...] = (
        "delve", "realm", "harness", "unlock", "tapestry", "paradigm", "cutting-edge", "revolutionize",
        "landscape", "crucial", "pivotal", "groundbreaking", "leverage", "synergy", "innovative",
        "game-changer", "holistic", "transformative", "seamless", "robust", "breakthrough", "empower",
    )  # fmt: skip

    max_iterations: int = Field(default=3, ge=1, le=10)
    max_search_iterations: int = Field(default=5, ge=1, le=20)
    max_gap_searches: int = Field(default=2, ge=0, le=2)  # three rounds at most (F-08)
    max_search_errors: int = Field(default=3, ge=1, le=100)
    max_clarifications: int = Field(default=2, ge=0, le=5)
    query_variations: int = Field(default=3, ge=1, le=5)
    results_per_query: int = Field(default=50, ge=1, le=50)

    hitl_after_planning: bool = False
    hitl_before_output: bool = False

    planner_model: str | None = None
    searcher_model: str | None = None
    analyst_model: str | None = None
    writer_model: str | None = None
    reviewer_model: str | None = None
    judge_model: str | None = None

    source: str = "auto"  # several with commas between them
    offline: bool = False  # ask nothing of the network: no search provider, no page
    llm: ModelSettings = ModelSettings()
    budget: BudgetSettings = BudgetSettings()
    persistence: PersistenceSettings = PersistenceSettings()
    breakpoints: BreakpointSettings = BreakpointSettings()
    standards: ReportStandards = ReportStandards()
    reading: ReadingSettings = ReadingSettings()
    search: SearchSettings = SearchSettings()
    harvest: HarvestSettings = HarvestSettings()
    cache: CacheSettings = CacheSettings()
    server: ServerSettings = ServerSettings()
    fleet: FleetSettings = FleetSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    keys: Keys = Field(default_factory=Keys, exclude=True)

    def model_for(self, role: ModelRole) -> str:
        """The model a role asks: its own where one is set, else the first tier."""
        return getattr(self, f"{role}_model") or self.llm.model

    def fingerprint(self) -> str:
        """What a run stores to say which settings made it; where data lie does not matter to a result."""
        values = self.model_dump(mode="json", exclude={"data_dir", "log_level", "server", "fleet", "telemetry", "keys"})
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        yaml = YamlConfigSettingsSource(settings_cls, yaml_file=config_file())
        return init_settings, env_settings, dotenv_settings, yaml


def _read_variable(variable: str) -> str | None:
    """Of the environment, or else of .env, as settings are."""
    return os.environ[variable] if variable in os.environ else dotenv_values(".env").get(variable)


def config_file() -> Path:
    named = _read_variable("OPENASSAY_CONFIG")
    return Path("config.yaml" if named is None else named)


def eval_data() -> Path | None:
    """Where the data lie that `python -m benchmarks.evaluation` measures on; it is no setting of a run."""
    named = _read_variable("OPENASSAY_EVAL_DATA")
    return Path(named) if named else None


def load(**overrides: object) -> Settings:
    """Settings from all layers; anything wrong is one ConfigurationError that names every bad key."""
    from yaml import YAMLError

    try:
        if _read_variable("OPENASSAY_CONFIG") is not None and not config_file().is_file():
            raise ConfigurationError(
                f"OPENASSAY_CONFIG names {config_file()}, which is not a file", help="Correct it or unset it."
            )
        _refuse_unknown_variables()
        given = {"log_level": _read_log_level(), **overrides}
        return Settings(**{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]
    except ValidationError as error:
        raise ConfigurationError("; ".join(explain_errors(error, Settings)), help=_HELP) from error
    except SettingsError as error:
        raise ConfigurationError(f"cannot read the configuration: {error}", help=_JSON) from error
    except (YAMLError, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"cannot read the configuration: {reason}", help=_HELP) from error
    except (TypeError, ValueError) as error:  # a list or a lone word where keys with values should stand
        raise ConfigurationError(f"{config_file()} does not hold keys with values", help=_HELP) from error


def _read_log_level() -> str | None:
    """Read LOG_LEVEL, which many programs share; a level that we do not know is not ours to judge."""
    level = os.environ.get("LOG_LEVEL", "").lower()
    level = {"warn": "warning", "critical": "error", "fatal": "error"}.get(level, level)
    known = get_args(Settings.model_fields["log_level"].annotation)
    return level if level in known and "OPENASSAY_LOG_LEVEL" not in os.environ else None


_JSON = """Lists and mappings in variables are JSON, as in OPENASSAY_HARVEST__ALLOW_ADDRESSES='["10.1.0.0/16"]'."""
_HELP = "See docs/reference/settings.md for every key and its values."


def _refuse_unknown_variables() -> None:
    """Refuse a misspelt OPENASSAY_DETPH, and an ASSAY_DEPTH of version 0.1, which would be ignored silently."""
    known = {f"OPENASSAY_{name}".upper() for name in Settings.model_fields}
    for variable in sorted({*os.environ, *dotenv_values(".env")}):
        stem = variable.upper().split("__")[0]
        if variable.startswith("ASSAY_") and (f"OPEN{stem}" in known or f"OPEN{variable}" in NOT_SETTINGS):
            raise ConfigurationError(f"{variable} is a name of version 0.1", help=f"Rename it to OPEN{variable}.")
        if variable.startswith("OPENASSAY_") and stem not in known and variable not in NOT_SETTINGS:
            raise ConfigurationError(f"unknown variable {variable}{suggest_name(stem, known)}", help=_HELP)
