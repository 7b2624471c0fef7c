"""A conversation with the whole engine on a thread of its own, on either reasoner."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from openassay.bootstrap import open_engine
from openassay.engine.engine import Engine, RunOutcome
from openassay.models.event import Event
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel
from tests.scenario.checking import check_report, stored_texts

REASONERS = ("embedded", "model")
GPT = "openai:gpt-4o"
PIPELINE = ("understand", "clarify", "dispatch", "analyse", "write", "fallback", "publish")  # the roles, and the ends


class Talk:
    """What is said goes on the thread; while a question is open, it is the answer to it."""

    def __init__(self, engine: Engine, folder: Path, provider: FakeLlmServer, **options: Any) -> None:
        self.engine = engine
        self.provider = provider
        self.options = {"depth": "quick", "source": "demo", "interactive": True, **options}
        self.thread: str | None = None
        self.outcome: RunOutcome | None = None
        self._folder = folder

    def another(self) -> "Talk":
        """Beside this one, on the same engine."""
        return Talk(self.engine, self._folder, self.provider, **self.options)

    async def say(self, message: str) -> RunOutcome:
        if self.thread and self.outcome and self.outcome.questions:
            [question] = self.outcome.questions
            run = await self.engine.interrupts.answer(self.thread, question.id, message)
        else:
            run = await self.engine.start(message, ResearchOptions.model_validate(self.options), thread=self.thread)
        self.thread = run.thread
        async with asyncio.timeout(60):
            self.outcome = await self.engine.wait(run.id)
        if self.outcome.report is not None:
            check_report(self.outcome.report, stored_texts(self._folder))
        return self.outcome

    async def state(self) -> dict[str, Any]:
        assert self.thread is not None
        return await self.engine.state(self.thread)

    async def log(self) -> list[Event]:
        assert self.outcome is not None
        return [event async for event in self.engine.events(self.outcome.run.id)]

    async def way(self) -> list[str]:
        """The roles as they were entered, each time a role took over from another."""
        entered = [event.stage for event in await self.log() if event.kind == "enter" and event.stage in PIPELINE]
        return [stage for at, stage in enumerate(entered) if not at or stage != entered[at - 1]]


def text(outcome: RunOutcome) -> str:
    """Everything the answer says."""
    assert outcome.report is not None, outcome.run.error
    return " ".join(sentence.text for section in outcome.report.sections for sentence in section.sentences)


@asynccontextmanager
async def open_talk(
    reasoner: str,
    folder: Path,
    *,
    model: FakeModel | None = None,
    faults: Any = None,
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Talk]:
    """The model is behind real HTTP; the embedded reasoner never calls it."""
    async with FakeLlmServer(model or FakeModel(), faults=faults) as provider:
        hosted = {"model": GPT, "endpoints": {"openai": f"{provider.url}/v1"}}
        llm = hosted if reasoner == "model" else {"model": "embedded"}
        async with open_engine(load(data_dir=folder, llm=llm, **settings)) as engine:
            yield Talk(engine, folder, provider, **(options or {}))
        assert bool(provider.calls) <= (reasoner == "model")
