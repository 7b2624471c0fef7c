"""Live progress on stderr, read from the run's events."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from assay.model.event import Event

_STAGES = {
    "understand": "Understanding the question", "gate": "Weighing whether to ask first", "plan": "Planning",
    "dispatch": "Handing out sub-questions", "search": "Searching", "fuse": "Choosing what to read", "read": "Reading",
    "consolidate": "Bringing findings together", "analyse": "Looking for gaps", "verify": "Checking every claim",
    "write": "Writing", "review": "Reviewing", "publish": "Publishing", "fallback": "Saving what there is",
    "prepare": "Reading your documents",
}  # fmt: skip


class Progress:
    """One moving line for what is at work, one lasting line for what was done."""

    def __init__(self, *, enabled: bool = True) -> None:
        self._console = Console(stderr=True, quiet=not enabled, highlight=False)
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status("Starting")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def show(self, event: Event) -> None:
        if event.kind == "enter" and self._status is not None:
            self._status.update(_STAGES.get(event.stage, event.stage))
        line = describe(event)
        if line:
            self._console.print(line)


def describe(event: Event) -> str:
    """A lasting line for events a person wants to see; empty for the rest."""
    teller = _TELLERS.get((event.kind, event.stage)) or _TELLERS.get((event.kind, ""))
    return (
        teller({key: escape(str(value)) if isinstance(value, str) else value for key, value in event.data.items()})
        if teller
        else ""
    )


def _plan(data: dict[str, Any]) -> str:
    lines = "".join(f"\n    {number}. {escape(text)}" for number, text in enumerate(data["questions"], 1))
    return f"[bold]Plan[/]  {len(data['questions'])} sub-questions, {data['queries']} queries{lines}"


def _verified(data: dict[str, Any]) -> str:
    return f"[bold]Verify[/]  {data['supported']} of {data['claims']} claims supported"


def _done(data: dict[str, Any]) -> str:
    checked = f"{data['checked']} of {data['total']} statements checked"
    return f"[bold]Done[/]  {data['status']}, confidence {data['confidence']}: {checked}"


_TELLERS: dict[tuple[str, str], Callable[[dict[str, Any]], str]] = {
    ("read", "prepare"): lambda d: f"[bold]Documents[/]  {d['files']} files, {d['new']} new or changed",
    ("skip", ""): lambda d: f"  [yellow]skipped[/] {d['path']}: {d['reason']}",
    ("section", "plan"): _plan,
    ("search", "fuse"): lambda d: f"[bold]Search[/]  {d['passages']} passages of {d['documents']} documents to read",
    ("finding", ""): lambda d: f"  [green]read[/] {d['text']}  {d['findings']} findings in {d['documents']} documents",
    ("leave", "verify"): lambda d: _verified(d) if "claims" in d else "",
    ("notice", ""): lambda d: f"  [cyan]note[/] {d['text']}" if d.get("text") else "",
    ("error", ""): lambda d: f"  [red]error[/] {d['message']}",
    ("done", ""): _done,
}  # fmt: skip
