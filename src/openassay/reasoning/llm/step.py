"""Asks a model: fills the prompt of a step, parses the answer, has it repaired once, and falls back to the rules."""

import json
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from openassay.errors import (
    BudgetError,
    ConfigurationError,
    ContextOverflowError,
    ModelError,
    ReasoningError,
    RefusalError,
    failure_details,
)
from openassay.models.spend import ModelPrompt, ModelReply, ModelRole, Purpose
from openassay.protocols import Emit, LanguageModel, OnText, Stream
from openassay.reasoning.llm.forms import NotJSONError, OutputForm, parse_form

FOLDER = files("openassay.reasoning") / "prompts"
TAGS = ("asked", "source", "message", "conversation", "draft", "answer")
REPAIR_VARIABLES = ("problem", "answer")
BYTES_PER_TOKEN = 3.5
SMALL_ROOM = 6000  # tokens of room below which less is asked for
REPAIR_ROOM = 300  # tokens kept free, so that a repaired prompt fits too
MAX_EXCERPT = 600  # characters of a bad answer that are shown when it is to be repaired
MAX_HALVINGS, MAX_SHORTENINGS = 2, 2  # ways out of a prompt that is too long: fewer sources, then shorter ones

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SEPARATOR = re.compile(r"^---\s*$", re.M)
_TAG = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(TAGS)})\b)", re.I)
_HELP = "Prompts are part of the package: reinstall it, or restore the file."

A = TypeVar("A", bound=OutputForm)
S = TypeVar("S")
R = TypeVar("R")


class PromptTemplate(NamedTuple):
    """A prompt as it stands in its file: what looks like a variable in the text of a page is never filled."""

    name: str
    system: str
    text: str

    @property
    def variables(self) -> set[str]:
        """Return the names of the variables."""
        return set(_VARIABLE.findall(self.system + self.text))

    def fill(self, values: Mapping[str, str]) -> tuple[str, str]:
        """Return the system part and the user part, filled in one pass."""
        if missing := self.variables - set(values):
            raise ConfigurationError(
                f"prompt {self.name}.md has no value for {', '.join(sorted(missing))}", help=_HELP, prompt=self.name
            )
        system, text = (_VARIABLE.sub(lambda match: values[match[1]], part) for part in (self.system, self.text))
        return system, text


def load_template(name: str, variables: Iterable[str], folder: Traversable = FOLDER) -> PromptTemplate:
    """Load the prompt of a step. ConfigurationError where it does not use exactly the variables the step fills."""
    try:
        content = (folder / f"{name}.md").read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the prompt {name}.md: {error}", help=_HELP, prompt=name) from error
    parts = [part.strip() for part in _SEPARATOR.split(content)]
    if len(parts) != 2 or not all(parts):
        problem = f"prompt {name}.md needs a system part and a user part with one line --- between them"
        raise ConfigurationError(problem, help=_HELP, prompt=name)
    template = PromptTemplate(name, *parts)
    if wrong := template.variables ^ set(variables):
        problem = f"prompt {name}.md and its step do not agree on: {', '.join(sorted(wrong))}"
        raise ConfigurationError(problem, help=_HELP, prompt=name)
    return template


def escape_tags(text: str) -> str:
    """Make text of others unable to open or close one of our tags."""
    return _TAG.sub("‹", text)


def wrap_tag(tag: str, text: str) -> str:
    """Put text of others between tags."""
    return f"<{tag}>\n{escape_tags(text)}\n</{tag}>"


def number_lines(lines: Iterable[str]) -> str:
    """Number lines from 1."""
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def estimate_tokens(text: str) -> int:
    """Estimate tokens on the safe side for most languages; the provider counts in its own way."""
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)


class ReasoningStep(NamedTuple):
    """A method of the reasoner, as a model is asked for it; `output` names what the model is to make."""

    name: str
    stage: str
    role: ModelRole
    output: str
    variables: tuple[str, ...]
    purpose: Purpose = "research"


@dataclass(frozen=True)
class Job(Generic[A, S, R]):
    """One call of a step. `sources`, best first, are shown as far as there is room; `convert` gets those shown."""

    step: ReasoningStep
    form: type[A]
    schema: dict[str, Any]
    build: Callable[[Sequence[S]], Mapping[str, str]]
    convert: Callable[[A, Sequence[S]], R]
    sources: Sequence[S] = ()
    shorten: Callable[[S], S] | None = None
    task: str = ""
    share: float = 1.0


class StepResult(NamedTuple, Generic[R]):
    """What came of a job, and which model (or "embedded") made it."""

    result: R
    by: str
    repaired: bool = False


class StepRunner:
    """Runs the jobs of one run."""

    def __init__(self, models: LanguageModel, emit: Emit, steps: Sequence[ReasoningStep]) -> None:
        self._models = models
        self._emit = emit
        self._templates = {step.name: load_template(step.name, step.variables) for step in steps}
        self._repair = load_template("repair", REPAIR_VARIABLES)

    def is_small(self, step: ReasoningStep) -> bool:
        """Tell whether the model of a step has little room for a prompt."""
        return self._models.max_prompt_tokens(step.role) < SMALL_ROOM

    def max_words(self, step: ReasoningStep) -> int:
        """Return how many words an answer may have."""
        return self._models.max_words(step.role)

    def fits(self, job: Job[A, S, R], sources: Sequence[S]) -> bool:
        """Tell whether the prompt with these sources fits the model."""
        system, text = self._templates[job.step.name].fill(job.build(sources))
        used = estimate_tokens(system) + estimate_tokens(text) + estimate_tokens(json.dumps(job.schema))
        return used + REPAIR_ROOM <= self._models.max_prompt_tokens(job.step.role)

    async def send_notice(self, step: ReasoningStep, text: str, **data: object) -> None:
        """Emit a notice about a step."""
        await self._emit("notice", step.stage, {"text": text, "step": step.name, **data})

    async def run(self, job: Job[A, S, R], fallback: Callable[[], Awaitable[R]], stream: Stream | None = None) -> R:
        """Return the model's answer, or the fallback with a notice that says why."""
        started = time.perf_counter()
        try:
            done = await self._answer(job, stream)
        except (ModelError, BudgetError, ReasoningError) as error:
            problem = f"The model gave no usable {job.step.output} ({error.message})"
            text = f"{problem}, so the embedded reasoner made it"
            await self.send_notice(job.step, text, reason=error.message, **failure_details(error))
            done = StepResult(await fallback(), "embedded")
        seconds = round(time.perf_counter() - started, 2)
        data = {"step": job.step.name, "task": job.task, "by": done.by, "repaired": done.repaired, "seconds": seconds}
        await self._emit("think", job.step.stage, data)
        return done.result

    async def _answer(self, job: Job[A, S, R], stream: Stream | None) -> StepResult[R]:
        """Ask with as many sources as fit, and with fewer, then shorter ones where the model finds it too long."""
        low, high = min(1, len(job.sources)), len(job.sources)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.fits(job, job.sources[:middle]) else (low, middle - 1)
        job = replace(job, sources=tuple(job.sources[:low]))
        for _ in range(MAX_SHORTENINGS * 2):
            if job.shorten is None or self.fits(job, job.sources):
                break
            job = replace(job, sources=tuple(map(job.shorten, job.sources)))
        for attempt in range(MAX_HALVINGS + MAX_SHORTENINGS):
            try:
                return await self._ask_model(job, stream)
            except ContextOverflowError as error:
                if attempt < MAX_HALVINGS and len(job.sources) > 1:
                    fewer = tuple(job.sources[: (len(job.sources) + 1) // 2])
                    change = f"fewer sources: {len(fewer)} of {len(job.sources)}"
                    job = replace(job, sources=fewer)
                elif job.shorten is None or not job.sources:
                    problem = "the prompt is too long for the model, and nothing can be left out of it"
                    raise ContextOverflowError(problem) from error
                else:
                    change = "shorter sources"
                    job = replace(job, sources=tuple(map(job.shorten, job.sources)))
                text = f"The prompt was too long for the model, so it was given {change}"
                await self.send_notice(job.step, text, **failure_details(error))
        return await self._ask_model(job, stream)

    async def _ask_model(self, job: Job[A, S, R], stream: Stream | None) -> StepResult[R]:
        """Ask, and once more with what was wrong; where no JSON came at all, in another way of asking."""
        step = job.step
        system, text = self._templates[step.name].fill(job.build(job.sources))
        prompt = ModelPrompt(
            step=step.name,
            task=job.task,
            role=step.role,
            system=system,
            text=text,
            form=job.schema,
            purpose=step.purpose,
            share=job.share,
        )
        reply = await self._models.ask(prompt, stream)
        try:
            return StepResult(self._parse_reply(job, reply), reply.model)
        except ReasoningError as error:
            problem = "it was cut off, so be briefer" if reply.finish == "length" else error.message
            avoid = (reply.method,) if isinstance(error, NotJSONError) and reply.finish != "length" else ()
        values = {"problem": escape_tags(problem[:MAX_EXCERPT]), "answer": escape_tags(reply.text[:MAX_EXCERPT])}
        system, text = self._repair.fill(values)
        update = {"system": f"{prompt.system}\n\n{system}", "text": f"{prompt.text}\n\n{text}", "avoid": avoid}
        reply = await self._models.ask(prompt.model_copy(update=update), stream)
        return StepResult(self._parse_reply(job, reply), reply.model, repaired=True)

    def _parse_reply(self, job: Job[A, S, R], reply: ModelReply) -> R:
        if reply.finish == "refusal":
            raise RefusalError("the model declined to answer")
        try:
            return job.convert(parse_form(reply.text, job.form, is_cut=reply.finish == "length"), job.sources)
        except ValidationError as error:  # of our own records, which are stricter than a form
            raise ReasoningError(f"{error.error_count()} values are out of their bounds") from error


# Sends the words of a draft to the people who watch, while its JSON is still arriving.

BATCH_CHARACTERS, BATCH_SECONDS = 40, 0.1
_ESCAPES = {"n": " ", "t": " ", "r": " ", "b": "", "f": ""}


class TextValueParser:
    """Takes a JSON text in pieces of any size and returns the values of one key, a line each."""

    def __init__(self, key: str = "text") -> None:
        self._key = key
        self._string: list[str] | None = None  # the string being read
        self._wanted = False  # whether it is a value of the key
        self._name = ""  # the last string, which may be a key
        self._after_colon = False
        self._escape = ""
        self._high: int | None = None  # the first half of a character that is written as two escapes

    def feed(self, piece: str) -> str:
        """Return what the next piece of JSON adds to the values."""
        values = []
        for character in piece:
            if self._string is None:
                if character == '"':
                    self._string, self._wanted = [], self._after_colon and self._name == self._key
                if not character.isspace():
                    self._after_colon = character == ":"
                continue
            if character == '"' and not self._escape:
                values.append("\n" if self._wanted else "")
                self._name = "" if self._wanted else "".join(self._string)
                self._string, self._wanted, self._high = None, False, None
                continue
            text = self._unescape(character) if self._escape or character == "\\" else character
            (values if self._wanted else self._string).append(text)
        return "".join(values)

    def _unescape(self, character: str) -> str:
        self._escape += character
        if len(self._escape) == 1 or (self._escape[1] == "u" and len(self._escape) < 6):
            return ""
        escape, self._escape = self._escape, ""
        if escape[1] != "u":
            return _ESCAPES.get(escape[1], escape[1])
        try:
            code = int(escape[2:], 16)
        except ValueError:
            return "\ufffd"
        if 0xD800 <= code < 0xDC00:
            self._high = code
            return ""
        if 0xDC00 <= code < 0xE000:
            high, self._high = self._high, None
            return "\ufffd" if high is None else chr(0x10000 + (high - 0xD800) * 0x400 + code - 0xDC00)
        return chr(code)


class TokenStream:
    """Emits what a draft says, in batches."""

    def __init__(self, emit: Emit, now: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._now = now
        self._waiting = ""
        self._sent_at = now()
        self._has_sent = self._again = False

    def start(self) -> OnText:
        """Begin an answer; a second attempt is a JSON text of its own, and voids what the first has said."""
        values = TextValueParser()
        self._waiting, self._again = "", self._has_sent

        async def on_text(piece: str) -> None:
            self._waiting += values.feed(piece)
            if len(self._waiting) >= BATCH_CHARACTERS or self._now() - self._sent_at >= BATCH_SECONDS:
                await self.flush()

        return on_text

    async def flush(self) -> None:
        """Emit what is waiting."""
        text, self._waiting, self._sent_at = self._waiting, "", self._now()
        if text:
            again = {"again": True} if self._again else {}
            self._has_sent, self._again = True, False
            await self._emit("token", "write", {"text": text, "draft": True, **again})
