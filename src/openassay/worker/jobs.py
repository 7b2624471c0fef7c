"""Procrastinate's hands on its tables, with four differences: they outlive a database that is away for a while, they
end no job that was taken from this worker meanwhile, what no worker can make sense of is put aside, and what the dead
have left is taken up by a worker that has no place free for anything else."""

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
PAUSE = 1.0  # seconds after which a database that was away is asked again
QUIET = 60.0
LOOK = 0.5  # seconds after which a worker with no place free looks again for what the dead have left
# Deleted by another worker that took this one for dead, it comes back under its number.
_BEAT = """
INSERT INTO procrastinate_workers (id, last_heartbeat) OVERRIDING SYSTEM VALUE VALUES (%(worker_id)s, now())
ON CONFLICT (id) DO UPDATE SET last_heartbeat = now()
"""
# Procrastinate would end a job by its number alone, whoever works on it by now.
_FINISH = """
UPDATE procrastinate_jobs SET status = %(status)s::procrastinate_job_status, attempts = attempts + 1,
    abort_requested = false
WHERE id = %(job_id)s AND status = 'doing' AND worker_id = %(worker_id)s RETURNING id
"""


# The database was lost just when it had given the job out: nobody works on it, and its worker lives.
_UNKNOWN = """
UPDATE procrastinate_jobs SET status = 'failed'
WHERE status = 'doing' AND worker_id = %(worker_id)s AND NOT id = ANY(%(known)s) RETURNING id
"""


class QueueJobManager(JobManager):
    """`tasks` are those that this worker knows, with what each is told; `places` are for runs that it begins."""

    def __init__(self, connector: BaseConnector, tasks: Mapping[str, Mapping[str, type]], places: int) -> None:
        super().__init__(connector)
        self.closed = False  # nothing new is begun
        self._tasks = tasks
        self._places = places
        self._known: dict[int, str] = {}  # jobs that were given out to this worker, with their queues
        self._giving_out = asyncio.Lock()
        self._ended = asyncio.Event()  # one of them has
        self._outage = Outage(_log.warning, rest=QUIET)

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        try:
            while not self.closed:
                is_full = self._is_full()
                job = await self._claim_job([BEGUN, CHORES] if is_full else queues, worker_id)
                self._outage.end()
                if job is None and is_full:
                    await self._wait_briefly()
                elif job is None or not (fault := self._find_fault(job)):
                    return job
                else:
                    _log.error("job %s is put aside: %s", job.id, fault)
                    await super().finish_job(job, Status.FAILED, delete_job=False)
                    self._forget(job)
        except ConnectorException as error:
            self._note_outage(error)
        return None

    def _is_full(self) -> bool:
        return sum(queue == RUNS for queue in self._known.values()) >= self._places

    async def _wait_briefly(self) -> None:
        """Or until a job has ended."""
        self._ended.clear()
        with contextlib.suppress(TimeoutError):  # wait_for may swallow a cancellation before Python 3.12
            async with asyncio.timeout(LOOK):
                await self._ended.wait()

    async def _claim_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        async with self._giving_out:
            job = await super().fetch_job(queues, worker_id)
            if job is not None and job.id is not None:
                self._known[job.id] = job.queue
            return job

    def _find_fault(self, job: Job) -> str:
        """Why nobody can do it."""
        told = self._tasks.get(job.task_name)
        if told is None:
            return f"there is no task {job.task_name!r:.80}"
        given: Any = job.task_kwargs
        if not isinstance(given, dict) or {name: type(value) for name, value in given.items()} != told:
            return f"{job.task_name} is to be told {', '.join(told)}, and was told {given!r:.200}"
        return ""

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """Until it is written down: a job that stays in hand would keep its thread from everybody."""
        values = {"job_id": job.id, "worker_id": job.worker_id, "status": status.value}
        while True:
            try:
                rows = await self.connector.execute_query_all_async(_FINISH, **values)
            except ConnectorException as error:
                self._note_outage(error)
                if self.closed:  # nobody takes this worker for alive for long
                    return
                await asyncio.sleep(PAUSE)
                continue
            if not rows:
                _log.info("job %s was another worker's by the time that it ended here", job.id)
            self._forget(job)
            return

    def _forget(self, job: Job) -> None:
        self._known.pop(job.id or 0, None)
        self._ended.set()

    async def update_heartbeat(self, worker_id: int) -> None:
        try:
            await self.connector.execute_query_async(_BEAT, worker_id=worker_id)
            self._outage.end()
            await self._fail_unknown_jobs(worker_id)
        except ConnectorException as error:
            self._note_outage(error)

    async def _fail_unknown_jobs(self, worker_id: int) -> None:
        """So that the next sweep puts their runs in line again."""
        async with self._giving_out:
            values = {"worker_id": worker_id, "known": list(self._known)}
            rows = await self.connector.execute_query_all_async(_UNKNOWN, **values)
        for row in rows:
            _log.warning("job %s was given out when the database was lost, and is put in line again", row["id"])

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        while True:
            try:
                await super().listen_for_jobs(on_notification=on_notification, queues=queues)
            except ConnectorException as error:
                self._note_outage(error)
            await asyncio.sleep(PAUSE)

    async def list_jobs_to_abort_async(self, queue: str | None = None) -> Iterable[int]:
        """None: what a person stops is asked of the run (threads.ask_to_stop)."""
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
        self._outage.begin(f"the queue cannot be reached, and is asked again and again: {reason}")
