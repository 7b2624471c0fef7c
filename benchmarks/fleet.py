"""A fleet on one machine: workers that are processes of their own, somebody who disturbs them, and books that the
database keeps by itself of who has taken which thread and who has written what.

The books are triggers: whatever a worker believes, what it wrote stands there with its name (PGAPPNAME) in the order in
which the database let it happen.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from openassay.bootstrap import open_engine
from openassay.models.plan import Depth, Mode
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from openassay.storage.postgres import PostgresDatabase

QUESTION = "What's happening with Tesla and its stock?"
SETTLING = 0.2  # seconds in which a server carries out what it was sent
STARTING = 60.0  # seconds a worker may take to begin
BOOKS = """
CREATE TABLE books (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    what TEXT NOT NULL,
    thread TEXT NOT NULL,
    who TEXT NOT NULL DEFAULT current_setting('application_name'),
    early BOOLEAN NOT NULL DEFAULT false
);
CREATE FUNCTION book_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO books (what, thread) VALUES ('release', OLD.thread);
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO books (what, thread) VALUES ('take', NEW.thread);
    ELSIF NEW.token <> OLD.token THEN
        INSERT INTO books (what, thread, early) VALUES ('take', NEW.thread, OLD.until > clock_timestamp());
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER book_lease AFTER INSERT OR UPDATE OR DELETE ON leases FOR EACH ROW EXECUTE FUNCTION book_lease();
CREATE FUNCTION book_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO books (what, thread) SELECT 'event ' || NEW.kind, thread FROM runs WHERE id = NEW.run;
    RETURN NULL;
END $$;
CREATE TRIGGER book_event AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION book_event();
CREATE FUNCTION book_checkpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO books (what, thread) VALUES ('checkpoint', NEW.thread);
    RETURN NULL;
END $$;
CREATE TRIGGER book_checkpoint AFTER INSERT ON checkpoints FOR EACH ROW EXECUTE FUNCTION book_checkpoint();
"""


@dataclass
class Blow:
    """What was done to a worker, and the threads that were its at that moment."""

    kind: str
    worker: str
    at: float  # by the database's clock
    threads: tuple[str, ...]


@dataclass
class Found:
    """What the books say."""

    runs: dict[str, int]
    blows: list[Blow]
    rescues: list[float] = field(default_factory=list)  # seconds from a blow until another had the thread
    slow: list[str] = field(default_factory=list)  # of those that took more than two leases, what the books say
    early: int = 0  # threads taken whose lease had not ended
    foreign: list[str] = field(default_factory=list)  # what somebody wrote whose thread was another's
    refused: int = 0  # writes that were tried and not let through, as the workers' logs tell
    seconds: float = 0.0
    starts: int = 0

    def within(self, seconds: float) -> float:
        return sum(one <= seconds for one in self.rescues) / len(self.rescues) if self.rescues else 1.0


class Fleet:
    """Workers on one database. `lease` is short, so that rescues come soon."""

    def __init__(self, address: str, folder: Path, *, lease: float, concurrency: int = 4, **variables: str) -> None:
        self.address = address
        self.lease = lease
        self.starts = 0
        self.blows: list[Blow] = []
        self._folder = folder
        self._concurrency = concurrency
        self._variables = variables
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._books = psycopg.connect(address, autocommit=True, application_name="books")

    def environment(self, name: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("OPENASSAY_")}
        return {
            **kept, "PGAPPNAME": name, "DATABASE_URL": self.address, "OPENASSAY_PERSISTENCE__BACKEND": "postgres",
            "OPENASSAY_DATA_DIR": str(self._folder / name), "OPENASSAY_SOURCE": "demo", "OPENASSAY_OFFLINE": "true",
            "OPENASSAY_SERVER__RUNS": "workers", "OPENASSAY_FLEET__LEASE_SECONDS": str(self.lease),
            "OPENASSAY_FLEET__MOST_FALLS": "100", **self._variables,
        }  # fmt: skip

    def prepare(self) -> None:
        """The tables, with books on them."""
        PostgresDatabase(self.address).close()
        self._books.execute(BOOKS.encode())

    # -- workers ------------------------------------------------------------------------------------------

    def start(self) -> str:
        self.starts += 1
        name = f"worker-{self.starts}"
        with (self._folder / f"{name}.log").open("wb") as log:
            self._workers[name] = subprocess.Popen(
                [str(Path(sys.executable).with_name("openassay")), "worker", "--concurrency", str(self._concurrency)],
                env=self.environment(name), stdout=log, stderr=log,
            )  # fmt: skip
        return name

    def wait_for_all(self) -> None:
        """Until as many workers as were started have given a sign of life."""
        began = time.monotonic()
        while self._alive() < self.starts:
            fallen = [name for name, worker in self._workers.items() if worker.poll() is not None]
            if fallen or time.monotonic() - began > STARTING:
                raise SystemExit(f"they do not begin:\n{self.log(fallen[0] if fallen else 'worker-1')[-2000:]}")
            time.sleep(0.05)

    def _alive(self) -> int:
        try:
            return int(self._asked("SELECT count(*) FROM procrastinate_workers")[0][0])
        except psycopg.errors.UndefinedTable:  # the first of them makes it
            return 0

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def kill(self, name: str) -> None:
        at, worker = self._now(), self._workers.pop(name)
        worker.kill()
        worker.wait()
        self._note("kill", name, at)

    async def pause(self, name: str, seconds: float) -> None:
        """Stopped so that it cannot see it, and let go on: it believes that no time has passed."""
        at, worker = self._now(), self._workers[name]
        worker.send_signal(signal.SIGSTOP)
        self._note("stop", name, at)
        await asyncio.sleep(seconds)
        if worker.poll() is None:
            worker.send_signal(signal.SIGCONT)

    def close(self) -> None:
        for worker in self._workers.values():
            worker.send_signal(signal.SIGCONT)
            worker.terminate()
        for worker in self._workers.values():
            try:
                worker.wait(60)
            except subprocess.TimeoutExpired:
                worker.kill()
        self._books.close()

    def _now(self) -> float:
        return float(self._asked("SELECT extract(epoch FROM clock_timestamp())")[0][0])

    def _note(self, kind: str, name: str, at: float) -> None:
        """What it holds is asked after the blow: what it had sent before, the server still carries out, and a run whose
        end is among that needs nobody."""
        time.sleep(SETTLING)
        self.blows.append(Blow(kind, name, at, tuple(self._held(name))))

    def _held(self, name: str) -> Iterator[str]:
        """Threads whose last line of taking or giving back is that this one took them, and whose run has not ended."""
        last = self._asked(
            "SELECT DISTINCT ON (thread) thread, what, who FROM books WHERE what IN ('take', 'release')"
            " AND thread IN (SELECT thread FROM books WHERE who = %s AND what = 'take')"
            " AND thread IN (SELECT thread FROM runs WHERE status IN ('queued', 'running'))"
            " ORDER BY thread, id DESC",
            name,
        )
        return (thread for thread, what, who in last if what == "take" and who == name)

    # -- disturbing ---------------------------------------------------------------------------------------

    async def disturb(self, blows: int, pause: float, seed: int = 0) -> None:
        """SIGKILL and SIGSTOP in turn, spread over all runs, with this pause between two at the least; who is killed is
        replaced at once, who is stopped sleeps past its lease."""
        chance, asleep = random.Random(seed), dict[str, asyncio.Task[None]]()
        for number in range(blows):
            await asyncio.sleep(pause)
            while self._share_done() < (number + 1) / (blows + 1):  # noqa: ASYNC110  # a table of the database
                await asyncio.sleep(0.5)
            awake = [name for name in self._workers if name not in asleep or asleep[name].done()]
            if not awake:
                continue
            chance.shuffle(awake)
            name = next((one for one in awake if any(self._held(one))), awake[0])  # one that has something to lose
            if number % 2:
                asleep[name] = asyncio.create_task(self.pause(name, 2.5 * self.lease))
            else:
                self.kill(name)
                self.start()
        await asyncio.gather(*asleep.values())

    def _share_done(self) -> float:
        counts = self.counts()
        left = sum(counts.get(status, 0) for status in ("queued", "running"))
        return 1 - left / max(sum(counts.values()), 1)

    # -- runs ---------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def asking(self) -> AsyncIterator["Asker"]:
        settings = load(
            data_dir=self._folder / "asker", source="demo", offline=True, log_level="error",
            persistence={"backend": "postgres", "connection_string": self.address},
        )  # fmt: skip
        async with open_engine(settings) as engine:
            yield Asker(engine)

    def counts(self) -> dict[str, int]:
        return dict(self._asked("SELECT status, count(*) FROM runs GROUP BY status"))

    async def done(self, seconds: float) -> dict[str, int]:
        """How runs stand once all of them have ended, or time is up."""
        ends = time.monotonic() + seconds
        while (found := self.counts()) and time.monotonic() < ends:
            if not found.keys() & {"queued", "running"}:
                break
            await asyncio.sleep(0.5)
        return found

    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers.values()]

    def pace(self) -> float:
        """Runs a second, from the first that ended to the last."""
        sql = "SELECT count(*), extract(epoch FROM max(finished::timestamptz) - min(finished::timestamptz)) FROM runs"
        [(many, seconds)] = self._asked(sql)
        return (int(many) - 1) / float(seconds)

    # -- what the books say -------------------------------------------------------------------------------

    def found(self, seconds: float) -> Found:
        result = Found(self.counts(), self.blows, seconds=seconds, starts=self.starts)
        result.early = int(self._asked("SELECT count(*) FROM books WHERE early")[0][0])
        result.foreign = list(self._foreign())
        for blow, thread, seconds in self._rescues():
            result.rescues.append(seconds)
            if seconds > 2 * self.lease:
                result.slow.append(f"{seconds:.1f} s after {blow.kind}: {self._story(thread, blow.at)}")
        result.refused = sum(self.log(f"worker-{number}").count("has it") for number in range(1, self.starts + 1))
        return result

    def _foreign(self) -> Iterator[str]:
        """Lines of a worker that had not been the last to take the thread."""
        holder: dict[str, str] = {}
        for number, what, thread, who in self._asked("SELECT id, what, thread, who FROM books ORDER BY id"):
            if what == "take":
                holder[thread] = who
            elif what != "release" and who.startswith("worker") and holder.get(thread) != who:
                yield f"{number}: {what} on {thread} by {who}, which was {holder.get(thread)}'s"

    def _rescues(self) -> Iterator[tuple[Blow, str, float]]:
        for blow in self.blows:
            for thread in blow.threads:
                again = self._asked(
                    "SELECT extract(epoch FROM min(at)) FROM books WHERE what IN ('take', 'release') AND thread = %s"
                    " AND at > to_timestamp(%s)",
                    thread, blow.at,
                )[0][0]  # fmt: skip
                if again is not None:
                    yield blow, thread, float(again) - blow.at

    def _story(self, thread: str, at: float) -> str:
        """What happened on a thread, in seconds from a blow."""
        lines = self._asked(
            "SELECT round(extract(epoch FROM at)::numeric - %s::numeric, 1), what, who FROM books WHERE thread = %s"
            " AND what IN ('take', 'release', 'event run') ORDER BY id",
            at, thread,
        )  # fmt: skip
        return ", ".join(f"{seconds} {what} {who}" for seconds, what, who in lines)

    def _asked(self, sql: str, *values: Any) -> list[Any]:
        return self._books.execute(sql.encode(), values).fetchall()


class Asker:
    """Puts questions in line, for so many people."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    async def ask(self, many: int, people: int = 1) -> None:
        for number in range(many):
            options = ResearchOptions(
                depth=Depth.QUICK, source="demo", mode=Mode.AUTO, interactive=False, user=f"p{number % people}"
            )
            await self._engine.queue(f"{QUESTION} (number {number})", options)
