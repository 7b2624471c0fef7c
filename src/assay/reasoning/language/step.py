"""The one place that asks a model, parses its answer, has it mended once, and falls back to the floor."""

import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from assay.errors import BudgetError, ContextOverflowError, ModelError, ReasoningError, RefusalError, failure
from assay.model.exchange import Prompt, Purpose, Reply, Role
from assay.ports import Emit, LanguageModel, Stream
from assay.reasoning.language.answer import Answer, NotJSONError, parse
from assay.reasoning.language.prompt import Template, defused, load

BYTES_PER_TOKEN = 3.5
SMALL = 6000  # tokens of room below which less is asked for
REPAIR_ROOM = 300  # tokens kept free, so that a mended prompt fits too
QUOTED = 600  # characters of a bad answer that are shown to whoever mends it
MOST_FEWER, MOST_SHORTER = 2, 2  # ways out of a prompt that was too long
REPAIR = ("problem", "answer")


class Step(NamedTuple):
    """A method of the reasoner, as it is asked."""

    name: str
    stage: str
    role: Role
    thing: str  # what the model is to make
    variables: tuple[str, ...]
    purpose: Purpose = "research"


A = TypeVar("A", bound=Answer)
S = TypeVar("S")
R = TypeVar("R")


@dataclass(frozen=True)
class Job(Generic[A, S, R]):
    """One piece of a step. `sources`, best first, are shown as far as there is room; `convert` gets those shown."""

    step: Step
    form: type[A]
    schema: dict[str, Any]
    build: Callable[[Sequence[S]], Mapping[str, str]]
    convert: Callable[[A, Sequence[S]], R]
    sources: Sequence[S] = ()
    shorten: Callable[[S], S] | None = None
    task: str = ""
    share: float = 1.0


class Done(NamedTuple, Generic[R]):
    result: R
    by: str
    repaired: bool = False


class Steps:
    """Takes the steps of one run."""

    def __init__(self, models: LanguageModel, emit: Emit, steps: Sequence[Step]) -> None:
        self._models = models
        self._emit = emit
        self._templates = {step.name: load(step.name, step.variables) for step in steps}
        self._repair = load("repair", REPAIR)

    def small(self, step: Step) -> bool:
        return self._models.room(step.role) < SMALL

    def words(self, step: Step) -> int:
        return self._models.words(step.role)

    async def take(self, job: Job[A, S, R], floor: Callable[[], Awaitable[R]], stream: Stream | None = None) -> R:
        """The model's answer, or the floor's with a notice that says why."""
        started = time.perf_counter()
        try:
            done = await self._answered(job, stream)
        except (ModelError, BudgetError, ReasoningError) as error:
            await self.notice(
                job.step,
                f"The model gave no usable {job.step.thing} ({error.message}), so the embedded reasoner made it",
                reason=error.message,
                **failure(error),
            )
            done = Done(await floor(), "embedded")
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

    async def notice(self, step: Step, text: str, **data: object) -> None:
        await self._emit("notice", step.stage, {"text": text, "step": step.name, **data})

    def fits(self, job: Job[A, S, R], sources: Sequence[S]) -> bool:
        system, text = self._filled(job, sources)
        used = tokens(system) + tokens(text) + tokens(json.dumps(job.schema))
        return used + REPAIR_ROOM <= self._models.room(job.step.role)

    async def _answered(self, job: Job[A, S, R], stream: Stream | None) -> Done[R]:
        """Fewer, then shorter sources when the prompt is too long for the model."""
        job = self._fitted(job)
        for reduction in range(MOST_FEWER + MOST_SHORTER):
            try:
                return await self._asked(job, stream)
            except ContextOverflowError as error:
                job, how = _reduced(job, reduction)
                text = f"The prompt was too long for the model, so it was given {how}"
                await self.notice(job.step, text, **failure(error))
        return await self._asked(job, stream)

    def _fitted(self, job: Job[A, S, R]) -> Job[A, S, R]:
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

    async def _asked(self, job: Job[A, S, R], stream: Stream | None) -> Done[R]:
        prompt = self._prompt(job)
        reply = await self._models.ask(prompt, stream)
        try:
            return Done(self._read(job, reply), reply.model)
        except ReasoningError as problem:
            again = self._mended(prompt, reply, problem)
        reply = await self._models.ask(again, stream)
        return Done(self._read(job, reply), reply.model, repaired=True)

    def _read(self, job: Job[A, S, R], reply: Reply) -> R:
        if reply.finish == "refusal":
            raise RefusalError("the model declined to answer")
        try:
            return job.convert(parse(reply.text, job.form, cut=reply.finish == "length"), job.sources)
        except ValidationError as error:  # of our own records, which are stricter than a form
            raise ReasoningError(f"{error.error_count()} values are out of their bounds") from error

    def _prompt(self, job: Job[A, S, R]) -> Prompt:
        system, text = self._filled(job, job.sources)
        step = job.step
        return Prompt(step=step.name, task=job.task, role=step.role, system=system, text=text, form=job.schema,
                      purpose=step.purpose, share=job.share)  # fmt: skip

    def _filled(self, job: Job[A, S, R], sources: Sequence[S]) -> tuple[str, str]:
        template: Template = self._templates[job.step.name]
        return template.fill(job.build(sources))

    def _mended(self, prompt: Prompt, reply: Reply, problem: ReasoningError) -> Prompt:
        """The same question with what was wrong; where no JSON came at all, to be asked in another way."""
        wrong = "it was cut off, so be briefer" if reply.finish == "length" else problem.message
        system, text = self._repair.fill({"problem": defused(wrong[:QUOTED]), "answer": defused(reply.text[:QUOTED])})
        avoid = (reply.method,) if isinstance(problem, NotJSONError) and reply.finish != "length" else ()
        return prompt.model_copy(
            update={"system": f"{prompt.system}\n\n{system}", "text": f"{prompt.text}\n\n{text}", "avoid": avoid}
        )


def tokens(text: str) -> int:
    """An estimate on the safe side for most languages; the provider counts in its own way."""
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)


def _reduced(job: Job[A, S, R], reduction: int) -> tuple[Job[A, S, R], str]:
    if reduction < MOST_FEWER and len(job.sources) > 1:
        kept = tuple(job.sources[: (len(job.sources) + 1) // 2])
        return replace(job, sources=kept), f"fewer sources: {len(kept)} of {len(job.sources)}"
    if job.shorten is None or not job.sources:
        raise ContextOverflowError("the prompt is too long for the model, and nothing can be left out of it")
    return replace(job, sources=tuple(map(job.shorten, job.sources))), "shorter sources"
