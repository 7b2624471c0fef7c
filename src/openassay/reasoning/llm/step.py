"""The one place that asks a model, parses its answer, has it mended once, and falls back to the floor."""

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

# Prompts: one file a step, checked when a reasoner is made and filled in one pass.
#
# Text of pages stands between tags that it cannot close, and what looks like a variable in it is never filled.

FOLDER = files("openassay.reasoning") / "prompts"
TAGS = ("asked", "source", "message", "conversation", "draft", "answer")

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SEPARATOR = re.compile(r"^---\s*$", re.M)
_TAG = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(TAGS)})\b)", re.I)
_HELP = "Prompts are part of the package: install it again, or put the file back as it was."


class PromptTemplate(NamedTuple):
    """A prompt as it stands in its file."""

    name: str
    system: str
    text: str

    @property
    def variables(self) -> set[str]:
        return set(_VARIABLE.findall(self.system + self.text))

    def fill(self, values: Mapping[str, str]) -> tuple[str, str]:
        """The system part and the user part. What is filled in is not looked at again."""
        if missing := self.variables - set(values):
            raise ConfigurationError(
                f"prompt {self.name}.md has no value for {', '.join(sorted(missing))}", help=_HELP, prompt=self.name
            )

        def value(match: re.Match[str]) -> str:
            return values[match[1]]

        return _VARIABLE.sub(value, self.system), _VARIABLE.sub(value, self.text)


def load_template(name: str, variables: Iterable[str], folder: Traversable = FOLDER) -> PromptTemplate:
    """The prompt of a step, if it uses exactly the variables the step fills."""
    try:
        content = (folder / f"{name}.md").read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the prompt {name}.md: {error}", help=_HELP, prompt=name) from error
    parts = _SEPARATOR.split(content)
    if len(parts) != 2 or not all(part.strip() for part in parts):
        raise ConfigurationError(
            f"prompt {name}.md needs a system part and a user part with one line --- between them",
            help=_HELP,
            prompt=name,
        )
    template = PromptTemplate(name, parts[0].strip(), parts[1].strip())
    if wrong := template.variables ^ set(variables):
        raise ConfigurationError(
            f"prompt {name}.md and its step do not agree on: {', '.join(sorted(wrong))}", help=_HELP, prompt=name
        )
    return template


def escape_tags(text: str) -> str:
    """Text of others, unable to open or close a tag of ours."""
    return _TAG.sub("‹", text)


def wrap_tag(tag: str, text: str) -> str:
    return f"<{tag}>\n{escape_tags(text)}\n</{tag}>"


def number_lines(lines: Iterable[str]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


BYTES_PER_TOKEN = 3.5
SMALL_ROOM = 6000  # tokens of room below which less is asked for
REPAIR_ROOM = 300  # tokens kept free, so that a mended prompt fits too
LONGEST_EXCERPT = 600  # characters of a bad answer that are shown to whoever mends it
MOST_FEWER, MOST_SHORTER = 2, 2  # ways out of a prompt that was too long
REPAIR_VARIABLES = ("problem", "answer")


class ReasoningStep(NamedTuple):
    """A method of the reasoner, as it is asked."""

    name: str
    stage: str
    role: ModelRole
    thing: str  # what the model is to make
    variables: tuple[str, ...]
    purpose: Purpose = "research"


A = TypeVar("A", bound=OutputForm)
S = TypeVar("S")
R = TypeVar("R")


@dataclass(frozen=True)
class Job(Generic[A, S, R]):
    """One piece of a step. `sources`, best first, are shown as far as there is room; `convert` gets those shown."""

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
    result: R
    by: str
    repaired: bool = False


class StepRunner:
    """Takes the steps of one run."""

    def __init__(self, models: LanguageModel, emit: Emit, steps: Sequence[ReasoningStep]) -> None:
        self._models = models
        self._emit = emit
        self._templates = {step.name: load_template(step.name, step.variables) for step in steps}
        self._repair = load_template("repair", REPAIR_VARIABLES)

    def is_small(self, step: ReasoningStep) -> bool:
        return self._models.max_prompt_tokens(step.role) < SMALL_ROOM

    def max_words(self, step: ReasoningStep) -> int:
        return self._models.max_words(step.role)

    async def run(self, job: Job[A, S, R], floor: Callable[[], Awaitable[R]], stream: Stream | None = None) -> R:
        """The model's answer, or the floor's with a notice that says why."""
        started = time.perf_counter()
        try:
            done = await self._answer(job, stream)
        except (ModelError, BudgetError, ReasoningError) as error:
            await self.send_notice(
                job.step,
                f"The model gave no usable {job.step.thing} ({error.message}), so the embedded reasoner made it",
                reason=error.message,
                **failure_details(error),
            )
            done = StepResult(await floor(), "embedded")
        await self._emit(
            "think",
            job.step.stage,
            {
                "step": job.step.name,
                "task": job.task,
                "by": done.by,
                "repaired": done.repaired,
                "seconds": round(time.perf_counter() - started, 2),
            },
        )
        return done.result

    async def send_notice(self, step: ReasoningStep, text: str, **data: object) -> None:
        await self._emit("notice", step.stage, {"text": text, "step": step.name, **data})

    def fits(self, job: Job[A, S, R], sources: Sequence[S]) -> bool:
        system, text = self._fill_template(job, sources)
        used = estimate_tokens(system) + estimate_tokens(text) + estimate_tokens(json.dumps(job.schema))
        return used + REPAIR_ROOM <= self._models.max_prompt_tokens(job.step.role)

    async def _answer(self, job: Job[A, S, R], stream: Stream | None) -> StepResult[R]:
        """Fewer, then shorter sources when the prompt is too long for the model."""
        job = self._fit_sources(job)
        for reduction in range(MOST_FEWER + MOST_SHORTER):
            try:
                return await self._ask_model(job, stream)
            except ContextOverflowError as error:
                job, how = _reduce_sources(job, reduction)
                text = f"The prompt was too long for the model, so it was given {how}"
                await self.send_notice(job.step, text, **failure_details(error))
        return await self._ask_model(job, stream)

    def _fit_sources(self, job: Job[A, S, R]) -> Job[A, S, R]:
        """As many sources as there is room for, and shorter ones only if not even one fits."""
        low, high = min(1, len(job.sources)), len(job.sources)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.fits(job, job.sources[:middle]) else (low, middle - 1)
        job = replace(job, sources=tuple(job.sources[:low]))
        for _ in range(MOST_SHORTER * 2):
            if job.shorten is None or self.fits(job, job.sources):
                break
            job = replace(job, sources=tuple(map(job.shorten, job.sources)))
        return job

    async def _ask_model(self, job: Job[A, S, R], stream: Stream | None) -> StepResult[R]:
        prompt = self._build_prompt(job)
        reply = await self._models.ask(prompt, stream)
        try:
            return StepResult(self._parse_reply(job, reply), reply.model)
        except ReasoningError as problem:
            again = self._build_repair_prompt(prompt, reply, problem)
        reply = await self._models.ask(again, stream)
        return StepResult(self._parse_reply(job, reply), reply.model, repaired=True)

    def _parse_reply(self, job: Job[A, S, R], reply: ModelReply) -> R:
        if reply.finish == "refusal":
            raise RefusalError("the model declined to answer")
        try:
            return job.convert(parse_form(reply.text, job.form, cut=reply.finish == "length"), job.sources)
        except ValidationError as error:  # of our own records, which are stricter than a form
            raise ReasoningError(f"{error.error_count()} values are out of their bounds") from error

    def _build_prompt(self, job: Job[A, S, R]) -> ModelPrompt:
        system, text = self._fill_template(job, job.sources)
        step = job.step
        return ModelPrompt(step=step.name, task=job.task, role=step.role, system=system, text=text, form=job.schema,
                      purpose=step.purpose, share=job.share)  # fmt: skip

    def _fill_template(self, job: Job[A, S, R], sources: Sequence[S]) -> tuple[str, str]:
        template: PromptTemplate = self._templates[job.step.name]
        return template.fill(job.build(sources))

    def _build_repair_prompt(self, prompt: ModelPrompt, reply: ModelReply, problem: ReasoningError) -> ModelPrompt:
        """The same question with what was wrong; where no JSON came at all, to be asked in another way."""
        wrong = "it was cut off, so be briefer" if reply.finish == "length" else problem.message
        system, text = self._repair.fill(
            {"problem": escape_tags(wrong[:LONGEST_EXCERPT]), "answer": escape_tags(reply.text[:LONGEST_EXCERPT])}
        )
        avoid = (reply.method,) if isinstance(problem, NotJSONError) and reply.finish != "length" else ()
        return prompt.model_copy(
            update={"system": f"{prompt.system}\n\n{system}", "text": f"{prompt.text}\n\n{text}", "avoid": avoid}
        )


def estimate_tokens(text: str) -> int:
    """An estimate on the safe side for most languages; the provider counts in its own way."""
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)


def _reduce_sources(job: Job[A, S, R], reduction: int) -> tuple[Job[A, S, R], str]:
    if reduction < MOST_FEWER and len(job.sources) > 1:
        kept = tuple(job.sources[: (len(job.sources) + 1) // 2])
        return replace(job, sources=kept), f"fewer sources: {len(kept)} of {len(job.sources)}"
    if job.shorten is None or not job.sources:
        raise ContextOverflowError("the prompt is too long for the model, and nothing can be left out of it")
    return replace(job, sources=tuple(map(job.shorten, job.sources))), "shorter sources"


# The words of a draft while its JSON is still arriving.

BATCH_CHARACTERS, BATCH_SECONDS = 40, 0.1

_ESCAPES = {"n": " ", "t": " ", "r": " ", "b": "", "f": ""}


class TextValueParser:
    """Takes a JSON text in pieces of any size and gives back the values of one key, a line each."""

    def __init__(self, key: str = "text") -> None:
        self._key = key
        self._string: list[str] | None = None  # the string being read
        self._wanted = False  # whether it is a value of the key
        self._name = ""  # the last string, which may be a key
        self._after_colon = False
        self._escape = ""
        self._high = ""  # the first half of a character given as two escapes

    def feed(self, piece: str) -> str:
        return "".join(map(self._feed_character, piece))

    def _feed_character(self, character: str) -> str:
        if self._string is None:
            self._read_outside(character)
            return ""
        if self._escape or character == "\\":
            return self._collect_text(self._unescape(character))
        if character == '"':
            return self._close_string()
        return self._collect_text(character)

    def _read_outside(self, character: str) -> None:
        if character == '"':
            self._string, self._wanted = [], self._after_colon and self._name == self._key
        if not character.isspace():
            self._after_colon = character == ":"

    def _close_string(self) -> str:
        wanted, self._name = self._wanted, "" if self._wanted else "".join(self._string or ())
        self._string, self._wanted, self._high = None, False, ""
        return "\n" if wanted else ""

    def _collect_text(self, text: str) -> str:
        if self._wanted:
            return text
        if self._string is not None:
            self._string.append(text)
        return ""

    def _unescape(self, character: str) -> str:
        self._escape += character
        if len(self._escape) == 1 or (self._escape[1] == "u" and len(self._escape) < 6):
            return ""
        escape, self._escape = self._escape, ""
        return self._decode_unit(escape[2:]) if escape[1] == "u" else _ESCAPES.get(escape[1], escape[1])

    def _decode_unit(self, digits: str) -> str:
        try:
            code = int(digits, 16)
        except ValueError:
            return "\ufffd"
        if 0xD800 <= code < 0xDC00:
            self._high = digits
            return ""
        if 0xDC00 <= code < 0xE000:
            high, self._high = self._high, ""
            return chr(0x10000 + (int(high, 16) - 0xD800) * 0x400 + code - 0xDC00) if high else "\ufffd"
        return chr(code)


class TokenStream:
    """Sends what a draft says to whoever watches, in batches."""

    def __init__(self, emit: Emit, now: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._now = now
        self._waiting = ""
        self._sent = now()
        self._told = self._again = False

    def start(self) -> OnText:
        """One answer; a second attempt begins a JSON of its own, and what the first has said is void."""
        values = TextValueParser()
        self._waiting, self._again = "", self._told

        async def on_text(piece: str) -> None:
            self._waiting += values.feed(piece)
            if len(self._waiting) >= BATCH_CHARACTERS or self._now() - self._sent >= BATCH_SECONDS:
                await self.flush()

        return on_text

    async def flush(self) -> None:
        text, self._waiting, self._sent = self._waiting, "", self._now()
        if text:
            again = {"again": True} if self._again else {}
            self._told, self._again = True, False
            await self._emit("token", "write", {"text": text, "draft": True, **again})
