"""One question to a language model, and what came back."""

from typing import Any, Literal

from pydantic import Field

from assay.model.record import Record

Role = Literal["planner", "searcher", "analyst", "writer", "reviewer", "judge"]
Purpose = Literal["research", "finish"]  # finishing (verifying, writing, reviewing) may use what research may not
Method = Literal["json_schema", "function_calling", "json_mode"]


class Prompt(Record):
    """What a model is asked. Two prompts that are equal are the same call: it is paid for once, even over a crash."""

    step: str  # the reasoner's method
    task: str = ""  # which piece of that step, the same after a resume: a sub-question's id, a batch's number
    role: Role
    system: str
    text: str
    form: dict[str, Any]  # JSON schema of the answer; its title names it
    purpose: Purpose = "research"
    share: float = Field(default=1.0, gt=0, le=1)  # of the research money, for all calls of this task
    avoid: tuple[Method, ...] = ()  # ways of asking for JSON that gave something else


class Usage(Record):
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)

    @property
    def total(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class Reply(Record):
    """An answer as it arrived: JSON as text, unchecked."""

    text: str
    model: str
    method: Method = "json_schema"
    finish: Literal["stop", "length", "refusal"] = "stop"
    usage: Usage | None = None  # None: the provider did not say, or said something absurd
    seconds: float = 0.0
