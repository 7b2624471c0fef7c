"""Asks a model: fills the prompt of a step, parses the answer, has it repaired once, and falls back to the rules."""

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from openassay import errors
from openassay.models.spend import ModelPrompt, ModelReply, ModelRole, Purpose
from openassay.protocols import Emit, LanguageModel, OnText, Stream
from openassay.reasoning.llm.forms import NotJSONError, OutputForm, parse_form
from openassay.reasoning.llm.prose import hold_back_mark, remove_marks

FOLDER = files("openassay.reasoning") / "prompts"
TAGS = ("asked", "source", "message", "conversation", "draft", "answer")
BYTES_PER_TOKEN = 3.5
SMALL_ROOM = 6000  # tokens of room below which less is asked for
CAPABLE_ROOM = 16_000  # tokens of room from which on a model composes freely
REPAIR_ROOM = 300  # tokens kept free, so that a repaired prompt fits too
MAX_EXCERPT = 600  # characters of a bad answer that are shown when it is to be repaired
MAX_HALVINGS, MAX_SHORTENINGS = 2, 2  # ways out of a prompt that is too long: fewer sources, then shorter ones

_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SEPARATOR = re.compile(r"^---\s*$", re.M)
_TAG = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(TAGS)})\b)", re.I)

A = TypeVar("A", bound=OutputForm)
S = TypeVar("S")
R = TypeVar("R", covariant=True)


class PromptTemplate(NamedTuple):
    """A prompt as it stands in its file: what looks like a variable in the text of a page is never filled."""

    system: str
    text: str

    def fill(self, values: Mapping[str, str]) -> tuple[str, str]:
        """Return the system part and the user part, filled in one pass."""
        system, text = (_VARIABLE.sub(lambda match: values[match[1]], part) for part in self)
        return system, text


@cache
def load_template(name: str) -> PromptTemplate:
    """Load the prompt of a step: two parts with a line --- between them."""
    system, text = _SEPARATOR.split((FOLDER / f"{name}.md").read_text("utf-8"))
    return PromptTemplate(system.strip(), text.strip())


def escape_tags(text: str) -> str:
    """Make text of others unable to open or close one of our tags."""
    return _TAG.sub("‹", text)


def wrap_tag(tag: str, text: str) -> str:
    """Put text of others between tags."""
    return f"<{tag}>\n{escape_tags(text)}\n</{tag}>"


def number_lines(lines: Iterable[str]) -> str:
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


class StepRunner:
    """Runs the jobs of one run."""

    def __init__(self, models: LanguageModel, emit: Emit) -> None:
        self._models = models
        self._emit = emit

    def is_small(self, step: ReasoningStep) -> bool:
        """Tell whether the model of a step has little room for a prompt."""
        return self._models.max_prompt_tokens(step.role) < SMALL_ROOM

    def is_capable(self, step: ReasoningStep) -> bool:
        """Tell whether the model of a step has room for all that it is to draw together."""
        return self._models.max_prompt_tokens(step.role) >= CAPABLE_ROOM

    def max_prompt_tokens(self, step: ReasoningStep) -> int:
        return self._models.max_prompt_tokens(step.role)

    def max_words(self, step: ReasoningStep) -> int:
        return self._models.max_words(step.role)

    def fits(self, job: Job[A, S, R], sources: Sequence[S]) -> bool:
        system, text = load_template(job.step.name).fill(job.build(sources))
        used = estimate_tokens(system) + estimate_tokens(text) + estimate_tokens(json.dumps(job.schema))
        return used + REPAIR_ROOM <= self._models.max_prompt_tokens(job.step.role)

    async def send_notice(self, step: ReasoningStep, text: str, **data: object) -> None:
        await self._emit("notice", step.stage, {"text": text, "step": step.name, **data})

    async def run(self, job: Job[A, S, R], stream: Stream | None = None) -> R | None:
        """Return the model's answer, or None, with a notice that says why the embedded reasoner has to make it."""
        started = time.perf_counter()
        result, by, is_repaired = None, "embedded", False
        try:
            result, by, is_repaired = await self._answer(job, stream)
        except (errors.ModelError, errors.BudgetError, errors.ReasoningError) as error:
            problem = f"The model gave no usable {job.step.output} ({error.message})"
            text = f"{problem}, so the embedded reasoner made it"
            await self.send_notice(job.step, text, reason=error.message, **errors.failure_details(error))
        seconds = round(time.perf_counter() - started, 2)
        data = {"step": job.step.name, "task": job.task, "by": by, "repaired": is_repaired, "seconds": seconds}
        await self._emit("think", job.step.stage, data)
        return result

    async def _answer(self, job: Job[A, S, R], stream: Stream | None) -> tuple[R, str, bool]:
        """Ask with as many sources as fit, and with fewer, then shorter ones where the model finds it too long.

        Return the result, the model that made it, and whether it had to be repaired."""
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
            except errors.ContextOverflowError as error:
                if attempt < MAX_HALVINGS and len(job.sources) > 1:
                    fewer = tuple(job.sources[: (len(job.sources) + 1) // 2])
                    change = f"fewer sources: {len(fewer)} of {len(job.sources)}"
                    job = replace(job, sources=fewer)
                elif job.shorten is None or not job.sources:
                    problem = "the prompt is too long for the model, and nothing can be left out of it"
                    raise errors.ContextOverflowError(problem) from error
                else:
                    change = "shorter sources"
                    job = replace(job, sources=tuple(map(job.shorten, job.sources)))
                text = f"The prompt was too long for the model, so it was given {change}"
                await self.send_notice(job.step, text, **errors.failure_details(error))
        return await self._ask_model(job, stream)

    async def _ask_model(self, job: Job[A, S, R], stream: Stream | None) -> tuple[R, str, bool]:
        """Ask, and once more with what was wrong; where no JSON came at all, in another way of asking."""
        step = job.step
        system, text = load_template(step.name).fill(job.build(job.sources))
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
            return _parse_reply(job, reply), reply.model, False
        except errors.ReasoningError as error:
            problem = "it was cut off, so be briefer" if reply.finish == "length" else error.message
            avoid = (reply.method,) if isinstance(error, NotJSONError) and reply.finish != "length" else ()
        values = {"problem": escape_tags(problem[:MAX_EXCERPT]), "answer": escape_tags(reply.text[:MAX_EXCERPT])}
        system, text = load_template("repair").fill(values)
        update = {"system": f"{prompt.system}\n\n{system}", "text": f"{prompt.text}\n\n{text}", "avoid": avoid}
        reply = await self._models.ask(prompt.model_copy(update=update), stream)
        return _parse_reply(job, reply), reply.model, True


def _parse_reply(job: Job[A, S, R], reply: ModelReply) -> R:
    if reply.finish == "refusal":
        raise errors.RefusalError("the model declined to answer")
    try:
        return job.convert(parse_form(reply.text, job.form, is_cut=reply.finish == "length"), job.sources)
    except ValidationError as error:  # of our own records, which are stricter than a form
        raise errors.ReasoningError(f"{error.error_count()} values are out of their bounds") from error


# Sends the words of a draft to the people who watch, while its JSON is still arriving.

BATCH_CHARACTERS, BATCH_SECONDS = 40, 0.1
_BREAKS = str.maketrans({"\n": " ", "\t": " ", "\r": " ", "\b": "", "\f": ""})


def read_texts(answer: str) -> str:
    """Return the values of `text` in an answer that may not be whole yet, a line each."""
    try:
        data = from_json(answer[max(answer.find("{"), 0) :], allow_partial="trailing-strings")
    except ValueError:
        return ""
    *texts, last = [*_find_texts(data)] or [""]
    texts.append(last if answer.rstrip().endswith("}") else hold_back_mark(last))
    return "\n".join(remove_marks(text).translate(_BREAKS) for text in texts)


def _find_texts(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name == "text" and isinstance(value, str):
                yield value
            else:
                yield from _find_texts(value)
    elif isinstance(node, list):
        for item in node:
            yield from _find_texts(item)


class TokenStream:
    """Emits what a draft says, in batches."""

    def __init__(self, emit: Emit, now: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._now = now
        self._answer = self._sent = ""
        self._unread = 0  # characters
        self._sent_at = now()
        self._has_sent = self._again = False

    def start(self) -> OnText:
        """Begin an answer; a second attempt is a JSON text of its own, and voids what the first has said."""
        self._answer = self._sent = ""
        self._again = self._has_sent
        return self._add_piece

    async def flush(self) -> None:
        if text := read_texts(self._answer):
            await self._send(f"{text}\n")

    async def _add_piece(self, piece: str) -> None:
        self._answer += piece
        self._unread += len(piece)
        is_due = self._now() - self._sent_at >= BATCH_SECONDS
        if is_due or self._unread >= BATCH_CHARACTERS:
            text, self._unread = read_texts(self._answer), 0
            if is_due or len(text) - len(self._sent) >= BATCH_CHARACTERS:
                await self._send(text)

    async def _send(self, text: str) -> None:
        new, self._sent_at = text[len(self._sent) :], self._now()
        if new:
            again = {"again": True} if self._again else {}
            self._sent, self._has_sent, self._again = text, True, False
            await self._emit("token", "write", {"text": new, "draft": True, **again})
