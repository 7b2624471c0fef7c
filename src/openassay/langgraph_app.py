"""The research graph for LangGraph's own tools, as langgraph.json names it: the very graph that runs are made of,
without a checkpointer, since those tools bring their own.

A question goes in as {"question": "...", "depth": "quick"}; every step can be looked at, and its whole state. Nobody is
asked back, no thread of OpenAssay's is made, and no event is written; money that is spent is in the books as always.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

from langchain_core.runnables import RunnableConfig

from openassay.bootstrap import ServerResources, open_server_resources
from openassay.context import ResearchContext
from openassay.engine.runner import ignore_event
from openassay.engine.validation import validate_question
from openassay.graph import build_graph
from openassay.models.plan import Depth, Mode
from openassay.models.thread import ResearchOptions, Run
from openassay.protocols import Source
from openassay.settings import load
from openassay.state import Plain, StateCompactor, question_input

T = TypeVar("T")
QUESTION = {
    "type": "object",
    "title": "Question",
    "required": ["question"],
    "properties": {
        "question": {"type": "string", "title": "Question"},
        "depth": {"enum": [depth.value for depth in Depth], "title": "Depth"},
        "source": {"type": "string", "title": "Source", "description": "auto, or names with commas between them"},
    },
}


@asynccontextmanager
async def graph(config: RunnableConfig) -> AsyncIterator[Any]:
    """What langgraph.json names: opened for as long as it is used."""
    async with open_server_resources(load(), expire=False) as resources:
        yield bind_context(ContextFactory(resources))


def bind_context(contexts: "ContextFactory") -> Any:
    """Return the compiled graph, which takes a question and has what its steps need."""
    plain = build_graph()
    kind = type("OpenAssay", (QuestionGraph, type(plain)), {"contexts": contexts})
    return kind(**{name: value for name, value in vars(plain).items() if name != "__orig_class__"})


class QuestionGraph:
    """Mixed into the graph: makes its context, since no tool can send one."""

    contexts: ClassVar["ContextFactory"]

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, *, context: Any = None, **more: Any
    ) -> AsyncIterator[Any]:
        thread = str((config or {}).get("configurable", {}).get("thread_id", ""))
        held = {} if _is_question(input) else (await self.aget_state(config)).values  # type: ignore[attr-defined]
        given, made = await self.contexts.prepare(input, held, thread)
        async for part in super().astream(given, config, context=made, **more):  # type: ignore[misc]
            yield part

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        return QUESTION


def _is_question(given: object) -> bool:
    return isinstance(given, Mapping) and "question" in given


class ContextFactory:
    """Makes what the steps of a run work with."""

    def __init__(self, resources: ServerResources) -> None:
        self._resources = resources
        self._runner = resources.engine._runner  # it knows who thinks, and how passages are ranked

    async def prepare(self, given: Any, held: Mapping[str, Any], thread: str) -> tuple[Any, ResearchContext]:
        """Return the input of the graph and its context; one that goes on keeps what it was asked with."""
        if _is_question(given):
            settings = self._resources.engine.settings
            depth, source = given.get("depth") or settings.depth, given.get("source") or settings.source
            options = ResearchOptions(depth=depth, source=source, mode=Mode.AUTO, user=settings.user)
            id, question = uuid4().hex[:12], validate_question(str(given["question"]), options)
        else:
            options = ResearchOptions.model_validate(held.get("options") or {})
            id, question = str(held.get("run", "")), str(held.get("original_query"))
        run = Run(id=id, thread=thread or id, question=question, started=self._runner.now(), options=options)
        sources, notices = await asyncio.to_thread(self._resources.sources, options)
        return question_input(run, notices) if _is_question(given) else given, self._build_context(run, sources)

    def _build_context(self, run: Run, sources: Sequence[Source]) -> ResearchContext:
        runner = self._runner
        reasoner, account = runner.reasoners.open(run, ignore_event)
        return ResearchContext(
            run=run.id,
            thread=run.thread,
            options=run.options,
            settings=runner.settings,
            reasoner=reasoner,
            account=account,
            quote=None,
            sources=sources,
            documents=runner.documents,
            pages=runner.pages,
            notes=IdentityCompactor(runner.notes, run.thread),
            ranker=runner.ranker,
            memory=runner.memory,
            started=run.started,
            now=runner.now,
            append=ignore_event,
            checkpoints=partial(give, ()),
            tally=partial(give, {}),
            mode=partial(give, Mode.AUTO),
        )


class IdentityCompactor(StateCompactor):
    """The state stays whole: it is there to be looked at, and whoever keeps it has no notes of ours."""

    async def compact(self, update: Mapping[str, Any]) -> Plain:
        return dict(update)

    async def compact_tasks(self, tasks: Any) -> list[Plain]:
        return [dict(task) for task in tasks]

    async def expand(self, state: Mapping[str, Any]) -> Plain:
        return dict(state)


async def give(value: T) -> T:
    return value
