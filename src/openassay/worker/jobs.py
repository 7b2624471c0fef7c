"""Procrastinate's job manager with four differences: it survives a database that is away for a while, it finishes no
job that was taken from this worker meanwhile, it fails jobs that no worker understands, and a worker that is full still
takes the jobs of workers that have died."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from procrastinate.connector import BaseConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager, NotificationCallback

from openassay.storage.connections import Outage
from openassay.worker.queue import BEGUN, CHORES, RUNS

_log = logging.getLogger("openassay")
RETRY_SECONDS = 1.0  # after which a database that was away is asked again
LOG_PAUSE = 60.0  # seconds between two lines in the log about one outage
POLL_SECONDS = 0.5  # after which a full worker looks again for the jobs of dead ones
# Deleted by another worker that took this one for dead, it comes back under its number.
_BEAT = """
INSERT INTO procrastinate_workers (id, last_heartbeat) OVERRIDING SYSTEM VALUE VALUES (%(worker_id)s, now())
ON CONFLICT (id) DO UPDATE SET last_heartbeat = now()
"""
# Procrastinate would finish a job by its number alone, whoever works on it by now.
_FINISH = """
UPDATE procrastinate_jobs SET status = %(status)s::procrastinate_job_status, attempts = attempts + 1,
    abort_requested = false
WHERE id = %(job_id)s AND status = 'doing' AND worker_id = %(worker_id)s RETURNING id
"""
# The database was lost just when it had handed the job out: nobody works on it, and its worker lives.
_UNKNOWN = """
UPDATE procrastinate_jobs SET status = 'failed'
WHERE status = 'doing' AND worker_id = %(worker_id)s AND NOT id = ANY(%(known)s) RETURNING id
"""


class QueueJobManager(JobManager):
    """`tasks`: the arguments of each task that this worker knows; `places`: how many runs it starts at once."""

    def __init__(self, connector: BaseConnector, tasks: Mapping[str, Mapping[str, type]], places: int) -> None:
        super().__init__(connector)
        self.closed = False  # nothing new is started
        self._tasks = tasks
        self._places = places
        self._known: dict[int, str] = {}  # the jobs of this worker, with their queues
        self._fetching = asyncio.Lock()
        self._job_ended = asyncio.Event()
        self._outage = Outage(_log.warning, rest=LOG_PAUSE)

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        try:
            while not self.closed:
                is_full = sum(queue == RUNS for queue in self._known.values()) >= self._places
                async with self._fetching:
                    job = await super().fetch_job([BEGUN, CHORES] if is_full else queues, worker_id)
                    if job is not None and job.id is not None:
                        self._known[job.id] = job.queue
                self._outage.end()
                if job is None and is_full:
                    self._job_ended.clear()
                    with contextlib.suppress(TimeoutError):  # wait_for may swallow a cancellation before Python 3.12
                        async with asyncio.timeout(POLL_SECONDS):
                            await self._job_ended.wait()
                    continue
                if job is None:
                    return None
                expected = self._tasks.get(job.task_name)
                given: Any = job.task_kwargs
                if expected is None:
                    fault = f"there is no task {job.task_name!r:.80}"
                elif not isinstance(given, dict) or {name: type(value) for name, value in given.items()} != expected:
                    fault = f"{job.task_name} takes {', '.join(expected)}, and was given {given!r:.200}"
                else:
                    return job
                _log.error("job %s was rejected: %s", job.id, fault)  # no worker can do it
                await super().finish_job(job, Status.FAILED, delete_job=False)
                self._forget(job)
        except ConnectorException as error:
            self._note_outage(error)
        return None

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """Retry until it is stored: a job that is not finished would keep its thread from everybody."""
        values = {"job_id": job.id, "worker_id": job.worker_id, "status": status.value}
        while True:
            try:
                rows = await self.connector.execute_query_all_async(_FINISH, **values)
            except ConnectorException as error:
                self._note_outage(error)
                if self.closed:  # the others will soon take this worker for dead
                    return
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if not rows:
                _log.info("job %s belonged to another worker by the time it ended here", job.id)
            self._forget(job)
            return

    def _forget(self, job: Job) -> None:
        self._known.pop(job.id or 0, None)
        self._job_ended.set()

    async def update_heartbeat(self, worker_id: int) -> None:
        """Say that this worker lives, and fail jobs it does not know, so that the next sweep requeues their runs."""
        try:
            await self.connector.execute_query_async(_BEAT, worker_id=worker_id)
            self._outage.end()
            async with self._fetching:
                values = {"worker_id": worker_id, "known": list(self._known)}
                rows = await self.connector.execute_query_all_async(_UNKNOWN, **values)
            for row in rows:
                _log.warning("job %s was handed out when the database was lost, and is requeued", row["id"])
        except ConnectorException as error:
            self._note_outage(error)

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        while True:
            try:
                await super().listen_for_jobs(on_notification=on_notification, queues=queues)
            except ConnectorException as error:
                self._note_outage(error)
            await asyncio.sleep(RETRY_SECONDS)

    async def list_jobs_to_abort_async(self, queue: str | None = None) -> Iterable[int]:
        """Return none: a run that a person stops is asked to stop, not its job."""
        return []

    async def defer_periodic_job(self, job: Job, periodic_id: str, defer_timestamp: int) -> int | None:
        try:
            return await super().defer_periodic_job(job, periodic_id, defer_timestamp)
        except ConnectorException as error:
            self._note_outage(error)
            return None

    async def unregister_worker(self, worker_id: int) -> None:
        try:
            await super().unregister_worker(worker_id)
        except ConnectorException as error:
            self._note_outage(error)

    def _note_outage(self, error: ConnectorException) -> None:
        reason = " ".join(str(error.__cause__ or error).split())
        self._outage.begin(f"the queue cannot be reached, and is retried: {reason}")
