"""A thread with a report on a server, made without waiting for a model."""

from assay.engine import Outcome
from assay.model.question import Depth
from assay.model.thread import Options
from assay.server.serving import Served

QUESTION = "What's happening with Tesla and its stock?"


async def finished(server: Served, user: str = "local", question: str = QUESTION, thread: str | None = None) -> Outcome:
    engine = server.service.engine
    run = await engine.start(question, Options(source="demo", user=user, depth=Depth.QUICK), thread=thread)
    outcome = await engine.wait(run.id)
    assert outcome.report is not None
    return outcome
