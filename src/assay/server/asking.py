"""The one way in which a question becomes a run, whichever door it came through; and in which one goes on."""

import asyncio
from typing import get_args

from assay.errors import ConfigurationError, LateAnswerError
from assay.model.branch import Changes
from assay.model.event import AT_WORK, RunStatus
from assay.model.exchange import Role
from assay.model.question import Mode
from assay.model.thread import Options, Run, chosen
from assay.server.access import Principal
from assay.server.service import Service
from assay.settings import Settings
from assay.telemetry.ids import request_id, traceparent

LOOK, MOST_LOOK = 0.05, 0.4  # seconds: two seconds take nine looks
STOPPING = 2.0  # seconds
STOPPED = (RunStatus.CANCELLED, RunStatus.FAILED)


async def ask(
    service: Service, caller: Principal, question: str, options: Options, thread: str | None = None, *,
    id: str | None = None,
) -> Run:  # fmt: skip
    """A run that waits in line; `thread` is one of the caller's, `id` what the run is called. What a person may not
    have is refused before anything is written."""
    refuse_files(options.model, service.settings)
    begun = {"user": caller.user, "request": request_id.get(), "trace": traceparent.get()}
    options = options.model_copy(update=begun)
    await service.engine.fetch(options)
    async with service.limits.admitted(caller, options) as allowed:
        run = await service.engine.queue(question, allowed, thread=thread, id=id)
    service.dispatcher.nudge(run.id)
    return run


async def go_on(service: Service, caller: Principal, thread: str, *, again: bool = False) -> Run:
    """A run that was stopped, or has failed, waits in line again. `again`: of a request whose first attempt may have
    been carried out before its process died."""
    last = (await service.engine.threads.runs(thread))[-1:]
    if again and last and last[0].status not in STOPPED:
        return last[0]
    options = chosen(last[0]) if last else Options(user=caller.user)
    async with service.limits.admitted(caller, options, again=last[0].id if last else None) as allowed:
        run = await service.engine.requeue(thread)
        if allowed != options:
            await service.engine.threads.set_options(run.id, allowed.plain())
    service.dispatcher.nudge(run.id)
    return run


async def answer(service: Service, thread: str, question: str, value: object, *, again: bool = False) -> None:
    """`again`: of a request whose first attempt may have been taken before its process died."""
    try:
        run = await service.engine.answer(thread, question, value, queued=service.has_workers)
    except LateAnswerError:
        if not again or (await service.engine.review(question)).by != "person":
            raise
    else:
        service.dispatcher.nudge(run.id)


async def set_mode(service: Service, thread: str, mode: Mode) -> None:
    if await service.engine.set_mode(thread, mode, queued=service.has_workers):
        service.dispatcher.nudge((await service.engine.threads.runs(thread))[-1].id)


async def stop(service: Service, thread: str, *, drain: bool) -> Run:
    """A run that is being taken up just now, here, is stopped as soon as it is; what another process works on is asked
    to stop, and looks once a second."""
    engine, clock = service.engine, asyncio.get_running_loop().time
    run, ends = await engine.stop(thread, drain=drain), clock() + STOPPING
    while run.status in AT_WORK and not drain and clock() < ends:
        if run.id in engine.running():
            await engine.cancel(run.id)
        await asyncio.sleep(LOOK)
        run = await engine.threads.run(run.id)
    return run


async def fork(
    service: Service, caller: Principal, thread: str, checkpoint: str | None, changes: Changes, *,
    interactive: bool | None = None, id: str | None = None,
) -> Run:  # fmt: skip
    refuse_files(changes.model, service.settings)
    last = (await service.engine.threads.runs(thread))[-1:]
    before = chosen(last[0]) if last else Options(user=caller.user)
    new = {"usd": changes.usd, "model": changes.model, "source": changes.source}
    wanted = before.model_copy(update={name: value for name, value in new.items() if value is not None})
    async with service.limits.admitted(caller, wanted) as allowed:
        run = await service.engine.fork(
            thread, checkpoint, changes, interactive=interactive, usd=allowed.usd, id=id, queued=True
        )
    service.dispatcher.nudge(run.id)
    return run


async def veto(service: Service, caller: Principal, thread: str, document: str) -> Run:
    last = (await service.engine.threads.runs(thread))[-1:]
    async with service.limits.admitted(caller, chosen(last[0]) if last else Options(user=caller.user)) as allowed:
        run = await service.engine.veto(thread, [document], usd=allowed.usd, queued=True)
    service.dispatcher.nudge(run.id)
    return run


def refuse_files(model: str | None, settings: Settings) -> None:
    """A model that is a file stands on the server's disk: it is chosen by who runs the server."""
    if model is None or model.partition(":")[0].strip() != "local":
        return
    roles = [getattr(settings, f"{role}_model") for role in get_args(Role)]
    tiers = settings.llm
    if model not in (tiers.model, tiers.fallback_model, tiers.budget_model, *roles):
        raise ConfigurationError("this server does not offer that model", help="Leave the model out to use its own.")


async def settled(service: Service, run: str, seconds: float) -> Run:
    """The run once it waits for somebody or has ended, or as it is when time is up."""
    clock = asyncio.get_running_loop().time
    ends, pause = clock() + seconds, LOOK
    while True:
        current = await service.engine.threads.run(run)
        left = ends - clock()
        if current.status not in AT_WORK or left <= 0:
            return current
        await asyncio.sleep(min(pause, left))
        pause = min(pause * 1.5, MOST_LOOK)
