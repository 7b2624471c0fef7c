"""What is kept of threads and of people."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Protocol

from assay.model.event import Event, RunStatus, Status
from assay.model.memory import Fact, Preferences
from assay.model.question import Mode
from assay.model.review import By, Review
from assay.model.source import Document
from assay.model.thread import Branch, Cursor, Run, Stop, Thread, ThreadSummary


class DocumentStore(Protocol):
    """Content-addressed snapshots. `get` raises NotFoundError, or EvidenceError if the text was altered."""

    async def put(self, document: Document) -> None: ...

    async def get(self, hash: str) -> Document: ...

    async def used(self, thread: str) -> list[str]:
        """The hashes of those a thread rests on, as far as they are there."""
        ...


class Notes(Protocol):
    """What the state of a thread refers to, apart from it: plain values under a name made from what they say.

    A checkpoint is whole only with the notes it names (`notebook.notes_in`): who copies or journals one takes them
    along, and `put` gives a value the same name everywhere. `get` raises NotFoundError, or IntegrityError if a note
    was altered; the documents a note speaks of count as used by its thread."""

    async def put(self, thread: str, values: Sequence[Any]) -> list[str]:
        """Their names, in order. What is there already is not written again."""
        ...

    async def get(self, thread: str, names: Collection[str]) -> dict[str, Any]: ...


class ThreadStore(Protocol):
    """`begin` raises ThreadBusyError when another run is active on the thread."""

    async def create(self, thread: Thread) -> None: ...

    async def get(self, id: str, *, owner: str | None = None) -> Thread:
        """Another's is not there for an owner."""
        ...

    async def recent(self, *, limit: int) -> list[Thread]: ...

    async def overview(
        self, *, limit: int, statuses: Collection[RunStatus] = (), owner: str | None = None,
        after: Cursor | None = None,
    ) -> list[ThreadSummary]:  # fmt: skip
        """The one that something happened on last comes first; `statuses` are those of a thread's last run."""
        ...

    async def untouched(self, since: datetime, *, limit: int) -> list[str]:
        """Threads on which nothing happened since then, and on which nothing is going on; oldest first."""
        ...

    async def rename(self, id: str, title: str) -> None: ...

    async def delete(self, id: str) -> None:
        """With everything that was said, found and decided on it, and the documents no other thread uses; also one
        whose rows are damaged."""
        ...

    async def sweep(self) -> None:
        """Give up documents that stayed when their thread went, since some run might just have read them."""
        ...

    async def run_ids(self, thread: str) -> list[str]:
        """Oldest first, whatever state the rows are in; none for a thread that is not there."""
        ...

    async def deleted(self, runs: Collection[str]) -> set[str]:
        """Those of the runs that went with their thread, on whatever machine."""
        ...

    async def folders(self) -> set[str]:
        """Documents of people's own that any run was asked on."""
        ...

    async def begin(self, run: Run) -> None: ...

    async def update(
        self,
        run: str,
        *,
        status: RunStatus | None = None,
        stage: Status | None = None,
        error: str | None = None,
    ) -> None: ...

    async def run(self, id: str) -> Run: ...

    async def runs(self, thread: str) -> list[Run]: ...

    async def active(self, *statuses: RunStatus) -> list[Run]:
        """Runs that have not ended, whoever works on them; oldest first. Where statuses are named, of these alone."""
        ...

    async def ask_to_stop(self, run: str, stop: Stop) -> None:
        """For whatever process works on it. A run that goes on, or ends, is asked no more."""
        ...

    async def stopping(self, run: str) -> Stop: ...

    async def add_branch(self, branch: Branch) -> None: ...

    async def fork(
        self, thread: Thread, run: Run, branch: Branch | None = None, copy: Callable[[], None] = lambda: None
    ) -> None:
        """A new thread with its first run, where it comes from, if it is a branch, and what `copy` puts beside them:
        all or nothing."""
        ...

    async def branch(self, thread: str) -> Branch | None:
        """Where a thread comes from; None for one that is no branch."""
        ...

    async def branches(self, parent: str) -> list[Branch]: ...

    async def set_mode(self, thread: str, mode: Mode) -> None: ...

    async def set_options(self, run: str, options: dict[str, object]) -> None: ...


class ReviewStore(Protocol):
    """Questions put to people. An answer is taken once: whoever comes second, or too late, gets an AnswerError."""

    async def open(self, review: Review) -> None:
        """Opening the same one again changes nothing."""
        ...

    async def get(self, id: str) -> Review:
        """NotFoundError for one that never was."""
        ...

    async def pending(self, thread: str | None = None, *, owner: str | None = None) -> list[Review]:
        """Not yet answered, of runs that have not ended: what is due first comes first, then what was opened first."""
        ...

    async def latest(self, thread: str) -> Review | None:
        """The question a thread was asked last, answered or not."""
        ...

    async def take(self, id: str, answer: Any, by: By, now: datetime) -> Review:
        """In one step, so that of two answers at once one is refused. A person's is refused from `due` on."""
        ...


class Memory(Protocol):
    """What people want remembered across threads. Nobody sees what is another's; a user without a valid name is refused
    with UsageError, an id that is not the user's with NotFoundError."""

    async def preferences(self, user: str) -> Preferences: ...

    async def prefer(self, user: str, preferences: Preferences) -> None:
        """In place of those before."""
        ...

    async def facts(self, user: str) -> list[Fact]:
        """Oldest first."""
        ...

    async def relevant(self, user: str, question: str, *, limit: int) -> list[Fact]:
        """Those that have to do with a question, best first."""
        ...

    async def remember(self, user: str, text: str) -> Fact:
        """Saying the same again gives the fact there is."""
        ...

    async def edit(self, user: str, id: str, text: str) -> Fact: ...

    async def forget(self, user: str, id: str) -> None: ...

    async def forget_all(self, user: str) -> None: ...


class EventLog(Protocol):
    """Append-only; `append` returns the event with its sequence number within the run."""

    async def append(self, event: Event) -> Event: ...

    async def since(self, run: str, seq: int) -> list[Event]: ...


class Integrity(Protocol):
    """Whether what is stored is what was written."""

    async def check(self, thread: str, documents: Collection[str]) -> None:
        """Before a run goes on: raises IntegrityError unless every row of the thread is there, and the documents are
        what they were. What is read later is checked when it is read."""
        ...

    async def problems(self, thread: str | None = None) -> list[str]:
        """Every row of a thread, or of all, looked into; one line for each that is wrong."""
        ...
