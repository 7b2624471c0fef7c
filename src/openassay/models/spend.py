"""What a run has used, and what it may use. Money is counted in whole micro-dollars, rounded up."""

from typing import Any, Literal

from pydantic import Field

from openassay.models.base import Record

# One question to a language model, and what came back.

ModelRole = Literal["planner", "searcher", "analyst", "writer", "reviewer", "judge"]
Purpose = Literal["research", "finish"]  # finishing (verifying, writing, reviewing) may use what research may not
Method = Literal["json_schema", "function_calling", "json_mode"]


class ModelPrompt(Record):
    """What a model is asked. Two prompts that are equal are the same call: it is paid for once, even over a crash."""

    step: str  # the reasoner's method
    task: str = ""  # which piece of that step, the same after a resume: a sub-question's id, a batch's number
    role: ModelRole
    system: str
    text: str
    form: dict[str, Any]  # JSON schema of the answer; its title names it
    purpose: Purpose = "research"
    share: float = Field(default=1.0, gt=0, le=1)  # of the research money, for all calls of this task
    avoid: tuple[Method, ...] = ()  # ways of asking for JSON that gave something else


class TokenUsage(Record):
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)

    @property
    def total(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class ModelReply(Record):
    """An answer as it arrived: JSON as text, unchecked."""

    text: str
    model: str
    method: Method = "json_schema"
    finish: Literal["stop", "length", "refusal"] = "stop"
    usage: TokenUsage | None = None  # None: the provider did not say, or said something absurd
    seconds: float = 0.0


MICRO = 1_000_000  # micro-dollars in a dollar


class ModelSpend(Record):
    """What one model (or search provider) has cost."""

    calls: int = 0
    failed: int = 0  # calls without an answer
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0


class Spend(Record):
    usd: float = Field(default=0.0, ge=0)
    tokens: int = Field(default=0, ge=0)
    requests: int = Field(default=0, ge=0)
    unconfirmed_usd: float = Field(default=0.0, ge=0)  # the part of `usd` no usage confirms, booked at its worst case
    by_model: dict[str, ModelSpend] = {}


class Caps(Record):
    """The most a run may use. `finish_share` of each is kept for verifying and writing."""

    micros: int = Field(ge=0)
    tokens: int = Field(ge=0)
    requests: int = Field(ge=0)
    finish_share: float = Field(default=0.15, ge=0, lt=1)


class Reservation(Record):
    """One paid call before it is made, at its worst case."""

    key: str  # thread, step, task and hash of the request: the same call has the same key after a crash
    run: str
    step: str
    task: str = ""
    provider: str  # who is paid: "anthropic", "openai", ...
    model: str
    micros: int = Field(ge=0)
    tokens: int = Field(ge=0)
    research: bool = True  # False: may use the share kept for finishing
    share: float = Field(default=1.0, gt=0, le=1)  # of the research caps, for all calls of this task
    seconds: float = Field(default=600.0, gt=0)  # after which the caller must be dead
    last: bool = True  # whether nobody cheaper is left to ask, so that a refusal ends research


class Fee(Record):
    """A request to somebody who is no model: a search provider, or a host that serves a page."""

    step: str
    task: str = ""
    provider: str
    request: str  # what is asked; a run pays for the same request once
    micros: int = Field(default=0, ge=0)


class Charge(Record):
    """What a call has cost; None for usage that was missing or absurd, which is booked at the worst case."""

    micros: int | None = Field(default=None, ge=0)
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    seconds: float = Field(default=0.0, ge=0)


class LedgerCall(Record):
    key: str
    run: str
    step: str
    task: str
    provider: str
    model: str
    state: Literal["reserved", "sent", "settled", "lost", "void"]
    micros: int  # reserved while the call is open, charged when settled, 0 when void
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    confirmed: bool = True
    error: str = ""


class CostEstimate(Record):
    """What a question will probably cost, before anything is spent."""

    model: str  # who thinks; "embedded" costs nothing
    usd: float = Field(ge=0)
    most_usd: float = Field(ge=0)  # the cap
    calls: int = Field(ge=0)
    tokens: int = Field(ge=0)
    seconds: float = Field(ge=0)
    reading_usd: float = Field(default=0.0, ge=0)  # the part that is spent on reading
    searches: int = Field(default=0, ge=0)  # the most that paid providers are asked in a first round
    search_usd: float = Field(default=0.0, ge=0)
