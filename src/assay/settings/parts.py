"""The parts of the settings, with their defaults."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationInfo, field_validator, model_validator

from assay.model.plan import MOST_USD

USER = r"^[A-Za-z0-9_-]{1,64}$"
NAME = r"^[a-z][a-z0-9_-]{0,39}$"
FIELD = r"^[a-z][a-z0-9_]*(\.[A-Za-z0-9][A-Za-z0-9_]*)*$"


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RoleTuning(Part):
    temperature: float = Field(ge=0, le=2)
    max_tokens: int = Field(ge=1)


class Price(Part):
    """USD for a million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)


class Models(Part):
    """Which models think. Without a key the embedded reasoner does, and none of this is used."""

    model: str = "anthropic:claude-sonnet-5-5"
    fallback_model: str = "openai:gpt-4o"
    budget_model: str = "google:gemini-2.5-flash-lite"
    base_url: str | None = None  # of the OpenAI-compatible server behind `compatible:`, `ollama:` and `llamacpp:`
    endpoints: dict[str, str] = {}  # another address for a vendor, such as a company's gateway
    prices: dict[str, Price] = {}  # of models nobody publishes a price for
    requests_per_minute: dict[str, Annotated[int, Field(ge=1)]] = {}  # by vendor
    at_once: int = Field(default=32, ge=1, le=1000)  # calls of a process, over all vendors and runs
    prompt_tokens: int | None = Field(default=None, ge=1000)  # the most of one prompt; None: what suits the model
    call_seconds: float | None = Field(default=None, gt=0)  # one call; None: 120, and 900 for a model on this machine
    step_seconds: float | None = Field(default=None, gt=0)  # all attempts of one step; None: 4 calls
    planner: RoleTuning = RoleTuning(temperature=0.3, max_tokens=4000)
    searcher: RoleTuning = RoleTuning(temperature=0.1, max_tokens=4000)
    analyst: RoleTuning = RoleTuning(temperature=0.2, max_tokens=4000)
    writer: RoleTuning = RoleTuning(temperature=0.4, max_tokens=8000)
    reviewer: RoleTuning = RoleTuning(temperature=0.1, max_tokens=4000)
    judge: RoleTuning = RoleTuning(temperature=0.0, max_tokens=2000)

    @field_validator("planner", "searcher", "analyst", "writer", "reviewer", "judge", mode="before")
    @classmethod
    def _completed(cls, value: Any, info: ValidationInfo) -> Any:
        """Who sets a role's temperature keeps its token limit."""
        if not isinstance(value, dict):
            return value
        return {**cls.model_fields[str(info.field_name)].default.model_dump(), **value}


class Budget(Part):
    usd: float = Field(default=2.0, ge=0, le=MOST_USD, allow_inf_nan=False)
    tokens: int = Field(default=2_000_000, ge=0)
    requests: int = Field(default=2_000, ge=0)
    verification_share: float = Field(default=0.15, ge=0, lt=1)
    near: float = Field(default=0.8, gt=0, le=1)  # share of the cap from which on the budget model is asked


class Persistence(Part):
    """Where threads are kept, for how long, and how safe from whom (docs/explanation/durability.md)."""

    backend: Literal["sqlite", "postgres", "memory"] = "sqlite"
    connection_string: str | None = None  # of PostgreSQL; DATABASE_URL does as well
    ttl_hours: float | None = Field(default=None, gt=0)  # threads nobody has touched for so long are deleted
    keep_checkpoints: int | None = Field(default=None, ge=1)  # of each finished run; None: all of them
    journal: bool = True  # a verified copy of each run under checkpoints/ in the data directory
    encrypt: bool = False  # what is stored, with ASSAY_STORAGE_KEY


Place = Literal["plan", "harvest", "claims", "review", "output"]  # where a run can be stopped for a person
Operator = Literal["<", "<=", ">", ">=", "==", "!=", "in", "not in", "contains", "exists", "missing"]


class Condition(Part):
    """A field of the run held against a value; never code. A list is compared by its length with a number."""

    field: str = Field(pattern=FIELD)  # as in critique.score or coverage.Q1
    operator: Operator
    value: Any = None


class CustomBreakpoint(Part):
    """A breakpoint of one's own: where, on which condition, and what the reviewer sees."""

    name: str = Field(pattern=NAME)
    at: Place
    when: Condition | None = None  # None: always
    question: str = Field(default="", max_length=300)
    shows: tuple[str, ...] = ()  # fields; none: what the place usually shows
    timeout: int = Field(default=3600, gt=0)
    auto_approve: bool = False


class Breakpoints(Part):
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
    def _named_once(cls, custom: tuple[CustomBreakpoint, ...]) -> tuple[CustomBreakpoint, ...]:
        names = [one.name for one in custom]
        if len(set(names)) < len(names):
            raise ValueError("two breakpoints have the same name")
        return custom


class Standards(Part):
    """What a report must meet before it is published; what it does not meet goes back to the writer, and is told in the
    report if that does not help."""

    min_citations: int = Field(default=1, ge=0, le=50)  # sources cited
    recency_days: int | None = Field(default=None, ge=1)  # age of the newest source; None: as the question asks
    disclaimers: bool = True  # where it speaks of health, law or money


class Reading(Part):
    max_file_mb: int = Field(default=50, gt=0)
    pdf_seconds: int = Field(default=60, gt=0)
    documents_per_question: int = Field(default=12, ge=1, le=50)
    passages_per_question: int = Field(default=36, ge=1, le=200)


class McpSource(Part):
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
    def _one_of_both(self) -> "McpSource":
        if bool(self.command) == bool(self.url):
            raise ValueError("give either a command or a url")
        return self


class Searching(Part):
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
    mcp: dict[Annotated[str, Field(pattern=NAME)], McpSource] = {}  # more sources, by the name they are asked under


class Harvesting(Part):
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
    user_agent: str = "AssayBot/0.1"
    browser: Literal["auto", "playwright", "crawl4ai", "off"] = "auto"  # for pages that need JavaScript
    browser_path: str | None = None  # of a Chromium; None: the one that is found
    allow_addresses: tuple[str, ...] = ()  # private networks that may be fetched all the same, as 10.1.0.0/16


class Caching(Part):
    backend: Literal["sqlite", "redis", "postgres", "memory"] = "sqlite"  # redis: at REDIS_URL
    memory_mb: float = Field(default=32.0, gt=0)  # the part kept in the process
    disk_mb: float = Field(default=500.0, gt=0)


_ORIGIN = re.compile(r"https?://(?:[\w.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?/?", re.IGNORECASE)


class Serving(Part):
    """`assay serve`: who is let in from where, and how much of everything one person may have."""

    host: str = "127.0.0.1"
    port: int = Field(default=8765, ge=0, le=65_535)
    public_url: str | None = None  # as people reach it, where that is not host and port; for links and webhooks
    allow_origins: tuple[str, ...] = ()  # of web pages that may call the API, as https://team.example
    allow_hosts: tuple[str, ...] = ()  # names it answers to besides its own, as assay.team.example
    runs: Literal["here", "workers"] = "here"  # who works on them: the server itself, or `assay worker`
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
    def _whole_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        """A star would let every page in that anybody opens."""
        for one in origins:
            if not _ORIGIN.fullmatch(one.strip()):
                raise ValueError(f"{one!r} is no origin: name each, as https://team.example; there is no wildcard")
        return origins


class Fleet(Part):
    """`assay worker`, and how processes on several machines keep out of each other's way (docs/howto/fleet.md)."""

    concurrency: int = Field(
        default=4, ge=1, le=200
    )  # runs one worker begins and is at together; of what the dead have left, as many besides
    lease_seconds: float = Field(default=15.0, ge=1, le=600)  # a thread is its worker's so long after its last sign
    most_falls: int = Field(default=5, ge=1, le=100)  # workers a run may take down before it is given up
    drain_seconds: float = Field(default=30.0, ge=0)  # a run is given to end its step when its worker stops
    signals: Literal["auto", "process", "postgres", "redis"] = "auto"  # what carries news and rates between processes
    metrics_port: int | None = Field(default=None, ge=0, le=65_535)  # of a worker; None: it shows no figures
    metrics_host: str = "127.0.0.1"


class Telemetry(Part):
    """What is told to a collector of traces. Its address is OTEL_EXPORTER_OTLP_ENDPOINT, as for every program."""

    traces: Literal["off", "otlp"] = "off"
    service: str = "assay"
    content: bool = False  # whether questions, prompts and answers are told, too
