"""What is done now and then for the whole fleet, whichever worker comes to it."""

from typing import TYPE_CHECKING

from assay.worker.queue import CHORES

if TYPE_CHECKING:
    from procrastinate import App

    from assay.bootstrap import Premises

EXPIRE, PRUNE, FORGET = "expire", "prune", "forget"  # the names of these tasks
TASKS: dict[str, dict[str, type]] = {name: {"timestamp": int} for name in (EXPIRE, PRUNE, FORGET)}  # when it was due
FIRST = 2_000_000_000  # before any run: each takes a moment
MOST_ROUNDS = 100  # of pruning at one time
KEPT_HOURS = 1  # jobs that have ended: who had the last turn is read from them
KEPT_FAILED_HOURS = 168  # jobs that were put aside, for whoever wants to know why


def schedule(app: "App", premises: "Premises") -> None:
    """At the same minute on every machine; the queue takes each once."""

    @app.periodic(cron="*/10 * * * *")
    @app.task(name=EXPIRE, queue=CHORES, lock=EXPIRE, queueing_lock=EXPIRE, priority=FIRST)
    async def expire(timestamp: int) -> None:
        """Threads that nobody has touched for `persistence.ttl_hours`."""
        await premises.engine.expire()

    @app.periodic(cron="5-59/10 * * * *")
    @app.task(name=PRUNE, queue=CHORES, lock=PRUNE, queueing_lock=PRUNE, priority=FIRST)
    async def prune(timestamp: int) -> None:
        """What has expired in the cache."""
        for _ in range(MOST_ROUNDS):
            if not await premises.world.cache.prune():
                return

    @app.periodic(cron="7 * * * *")
    @app.task(name=FORGET, queue=CHORES, lock=FORGET, queueing_lock=FORGET, priority=FIRST)
    async def forget(timestamp: int) -> None:
        """Jobs that have ended."""
        jobs = app.job_manager
        await jobs.delete_old_jobs(KEPT_HOURS, include_cancelled=True, include_aborted=True)
        await jobs.delete_old_jobs(KEPT_FAILED_HOURS, include_failed=True)
