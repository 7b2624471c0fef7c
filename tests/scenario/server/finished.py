"""A thread with a report on a server, made without waiting for a model."""

from openassay.engine.engine import RunOutcome
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions
from openassay.server.app import RunningServer

QUESTION = "What's happening with Tesla and its stock?"


async def finished(
    server: RunningServer, user: str = "local", question: str = QUESTION, thread: str | None = None
) -> RunOutcome:
    engine = server.service.engine
    run = await engine.start(question, ResearchOptions(source="demo", user=user, depth=Depth.QUICK), thread=thread)
    outcome = await engine.wait(run.id)
    assert outcome.report is not None
    return outcome
