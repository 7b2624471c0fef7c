"""Live progress on stderr, read from the run's events."""

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from openassay.cli.screen import format_dollars, format_estimate, to_one_line
from openassay.models.event import Event
from openassay.models.report import ReportStatus
from openassay.models.spend import CostEstimate
from openassay.models.thread import Run
from openassay.text.words import pluralize

_STAGES = {
    "understand": "Understanding the question", "gate": "Weighing whether to ask first",
    "clarify": "Asking", "question": "Asking", "plan": "Planning",
    "dispatch": "Handing out sub-questions", "search": "Searching", "fuse": "Choosing what to read",
    "harvest": "Fetching pages", "select": "Choosing passages", "read": "Reading",
    "consolidate": "Bringing findings together", "analyse": "Looking for gaps", "verify": "Checking every claim",
    "write": "Writing", "review": "Reviewing", "publish": "Publishing", "fallback": "Saving what there is",
    "approve_plan": "Asking", "approve_harvest": "Asking", "approve_claims": "Asking", "approve_review": "Asking",
    "approve_output": "Asking",
}  # fmt: skip
# What is noted when a run begins waits for one of these: small talk and what is called off need no note on sources.
_IN_EARNEST = frozenset(_STAGES) - {"understand", "publish"}
_STYLES = {"skipped": "yellow", "read": "green", "note": "cyan", "error": "red"}
_LABEL = 9  # the longest label, "Documents"
_TAIL = 60  # characters of a draft that are shown while it is being written


class ProgressDisplay:
    """One moving line for what is at work, one lasting line for what was done. What stands in `noted` was told before
    and is not told again."""

    def __init__(self, run: Run, *, enabled: bool = True, noted: set[str] | None = None) -> None:
        self._console = Console(stderr=True, quiet=not enabled, highlight=False, markup=False, emoji=False)
        self._status: Status | None = None
        self._prepared: set[tuple[str, str]] = set()
        self._noted = set() if noted is None else noted
        self._waiting: list[str] = []
        first = "Reading your documents" if run.options.get("docs") else "Getting ready"
        self._stage, self._spent, self._draft = first, "", ""

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status = self._console.status(self._stage)
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def show(self, event: Event) -> None:
        self._update_status(event)
        if (event.kind, event.stage) == ("notice", ""):
            self._waiting.append(str(event.data.get("text", "")))
            return
        if event.kind in ("error", "interrupt") or event.stage in _IN_EARNEST:
            self.note([text for text in self._waiting if text not in self._noted])
            self._noted |= {*self._waiting}
            self._waiting = []
        told = describe_event(event)
        if told and not self._is_repeat(event, told):
            self._print(*told)

    def _update_status(self, event: Event) -> None:
        """The moving line: the stage, what was spent so far, and the end of a draft while it is being written."""
        match event.kind:
            case "enter":
                self._stage, self._draft = _STAGES.get(event.stage, event.stage), ""
            case "spend":
                self._spent = _format_spend(event.data)
            case "token":
                before = "" if event.data.get("again") else self._draft
                self._draft = f"{before}{event.data['text']}"[-_TAIL:]
            case _:
                return
        if self._status is not None:
            parts = [self._stage, self._spent, to_one_line(self._draft)]
            self._status.update(Text(" · ".join(part for part in parts if part)))

    def note(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._print("note", to_one_line(text))

    def _is_repeat(self, event: Event, told: tuple[str, str]) -> bool:
        """Documents are looked through again after every answer, and a source that is down fails for every
        sub-question; what is the same again need not be said."""
        if event.stage != "prepare" and (event.kind, event.stage) != ("error", "search"):
            return False
        unchanged = event.data.get("new") == 0 and any(label == told[0] for label, _ in self._prepared)
        before = told in self._prepared or unchanged
        self._prepared.add(told)
        return before

    def _print(self, label: str, text: str) -> None:
        style = _STYLES.get(label, "bold")
        if not self._console.is_terminal:  # lines of a log are not broken
            indented = text.replace("\n", "\n" + " " * (_LABEL + 2))
            self._console.print(f"{label:{_LABEL}}  {indented}", soft_wrap=True)
            return
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=_LABEL)
        line.add_row(Text(label, style=style), Text(text))
        self._console.print(line)


def describe_event(event: Event) -> tuple[str, str] | None:
    """A label and a lasting line for events a person wants to see."""
    teller = _TELLERS.get((event.kind, event.stage)) or _TELLERS.get((event.kind, ""))
    label, text = teller(event.data) if teller else ("", "")
    return (label, "\n".join(to_one_line(line) for line in text.split("\n"))) if text else None


def _format_spend(data: dict[str, Any]) -> str:
    tokens = f"{data['total_tokens'] / 1000:.1f}k tokens"
    if not data["total_usd"]:
        return tokens
    return f"{format_dollars(data['total_usd'])} of {format_dollars(data['cap_usd'])}, {tokens}"


def _format_documents(data: dict[str, Any]) -> str:
    return f"{pluralize(data['files'], 'file')}, {data['new']} new or changed"


def _format_plan(data: dict[str, Any]) -> str:
    questions = data["questions"]
    lines = [f"{number}. {to_one_line(text)}" for number, text in enumerate(questions, 1)]
    head = f"{pluralize(len(questions), 'sub-question')}, {pluralize(data['queries'], 'query', 'queries')}"
    return "\n".join([head, *lines])


def _format_search(data: dict[str, Any]) -> str:
    found = f"{pluralize(data['passages'], 'passage')} of {pluralize(data['documents'], 'document')}"
    if not data.get("pages"):
        return f"{found} to read"
    cached = f" ({data['cached']} of {pluralize(data['asked'], 'search', 'searches')} from the cache)"
    reading = f", {found} to read" if data["passages"] else ""
    return f"{pluralize(data['pages'], 'page')} to fetch{reading}{cached if data['cached'] else ''}"


def _format_pages(data: dict[str, Any]) -> str:
    cached = f", {data['cached']} from the cache" if data["cached"] else ""
    copies = f", {pluralize(data['copies'], 'copy', 'copies')} left out" if data["copies"] else ""
    return f"{data['read']} of {pluralize(data['pages'], 'page')} read{cached}{copies}"


def _format_finding(data: dict[str, Any]) -> str:
    found = f"{pluralize(data['findings'], 'finding')} in {pluralize(data['documents'], 'document')}"
    return f"{to_one_line(str(data['text']))}: {found}"


def _format_claims(data: dict[str, Any]) -> str:
    return f"{data['supported']} of {pluralize(data['claims'], 'claim')} supported" if "claims" in data else ""


def _format_summary(data: dict[str, Any]) -> str:
    if data["status"] == ReportStatus.CANCELLED:
        return ""  # the reply says it all
    checked = f"{data['checked']} of {pluralize(data['total'], 'statement')} checked"
    spent = f", {format_dollars(data['usd'])} spent" if data.get("usd") else ""
    return f"{str(data['status']).replace('_', ' ')}, confidence {data['confidence']}, {checked}{spent}"


_TELLERS: dict[tuple[str, str], Callable[[dict[str, Any]], tuple[str, str]]] = {
    ("quote", ""): lambda data: (
        "Estimate",
        format_estimate(CostEstimate.model_validate(data)) if data["calls"] or data["searches"] else "",
    ),
    ("read", "prepare"): lambda data: ("Documents", _format_documents(data)),
    ("skip", ""): lambda data: ("skipped", f"{to_one_line(str(data['path']))}: {to_one_line(str(data['reason']))}"),
    ("section", "plan"): lambda data: ("Plan", _format_plan(data)),
    ("search", "fuse"): lambda data: ("Search", _format_search(data)),
    ("read", "select"): lambda data: ("Pages", _format_pages(data) if data["pages"] else ""),
    ("finding", ""): lambda data: ("read", _format_finding(data)),
    ("leave", "verify"): lambda data: ("Verify", _format_claims(data)),
    ("notice", ""): lambda data: ("note", to_one_line(str(data.get("text") or data.get("reason") or ""))),
    ("error", ""): lambda data: ("error", to_one_line(str(data["message"]))),
    ("done", ""): lambda data: ("Done", _format_summary(data)),
}
