"""Live progress on stderr, read from the run's events."""

from collections.abc import Iterable
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
        first = "Reading your documents" if run.options.docs else "Getting ready"
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
        # The moving line: the stage, what was spent so far, and the end of a draft while it is being written.
        match event.kind:
            case "enter":
                self._stage, self._draft = _STAGES.get(event.stage, event.stage), ""
            case "spend":
                data: dict[str, Any] = event.data
                self._spent = f"{data['total_tokens'] / 1000:.1f}k tokens"
                if data["total_usd"]:
                    usd = f"{format_dollars(data['total_usd'])} of {format_dollars(data['cap_usd'])}"
                    self._spent = f"{usd}, {self._spent}"
            case "token":
                before = "" if event.data.get("again") else self._draft
                self._draft = f"{before}{event.data['text']}"[-_TAIL:]
        if self._status is not None and event.kind in ("enter", "spend", "token"):
            parts = [self._stage, self._spent, to_one_line(self._draft)]
            self._status.update(Text(" · ".join(part for part in parts if part)))
        if (event.kind, event.stage) == ("notice", ""):
            self._waiting.append(str(event.data.get("text", "")))
            return
        if event.kind in ("error", "interrupt") or event.stage in _IN_EARNEST:
            self.note([text for text in self._waiting if text not in self._noted])
            self._noted |= {*self._waiting}
            self._waiting = []
        told = describe_event(event)
        if told is None:
            return
        # Documents are looked through again after every answer, and a source that is down fails for every
        # sub-question; what is the same again need not be said.
        if event.stage == "prepare" or (event.kind, event.stage) == ("error", "search"):
            unchanged = event.data.get("new") == 0 and any(label == told[0] for label, _ in self._prepared)
            is_repeat = told in self._prepared or unchanged
            self._prepared.add(told)
            if is_repeat:
                return
        self._print(*told)

    def note(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._print("note", to_one_line(text))

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
    data: dict[str, Any] = event.data
    text = ""
    match event.kind, event.stage:
        case "quote", _:
            label = "Estimate"
            if data["calls"] or data["searches"]:
                text = format_estimate(CostEstimate.model_validate(data))
        case "read", "prepare":
            label, text = "Documents", f"{pluralize(data['files'], 'file')}, {data['new']} new or changed"
        case "skip", _:
            label, text = "skipped", f"{to_one_line(str(data['path']))}: {to_one_line(str(data['reason']))}"
        case "section", "plan":
            questions, queries = data["questions"], pluralize(data["queries"], "query", "queries")
            numbered = (f"{number}. {to_one_line(question)}" for number, question in enumerate(questions, 1))
            label, text = "Plan", "\n".join([f"{pluralize(len(questions), 'sub-question')}, {queries}", *numbered])
        case "search", "fuse":
            found = f"{pluralize(data['passages'], 'passage')} of {pluralize(data['documents'], 'document')}"
            label, text = "Search", f"{found} to read"
            if data.get("pages"):
                reading = f", {found} to read" if data["passages"] else ""
                cached = f" ({data['cached']} of {pluralize(data['asked'], 'search', 'searches')} from the cache)"
                text = f"{pluralize(data['pages'], 'page')} to fetch{reading}{cached if data['cached'] else ''}"
        case "read", "select":
            label = "Pages"
            if data["pages"]:
                cached = f", {data['cached']} from the cache" if data["cached"] else ""
                copies = f", {pluralize(data['copies'], 'copy', 'copies')} left out" if data["copies"] else ""
                text = f"{data['read']} of {pluralize(data['pages'], 'page')} read{cached}{copies}"
        case "finding", _:
            found = f"{pluralize(data['findings'], 'finding')} in {pluralize(data['documents'], 'document')}"
            label, text = "read", f"{to_one_line(str(data['text']))}: {found}"
        case "leave", "verify" if "claims" in data:
            label, text = "Verify", f"{data['supported']} of {pluralize(data['claims'], 'claim')} supported"
        case "notice", _:
            label, text = "note", to_one_line(str(data.get("text") or data.get("reason") or ""))
        case "error", _:
            label, text = "error", to_one_line(str(data["message"]))
        case "done", _ if data["status"] != ReportStatus.CANCELLED:  # of which the reply says it all
            checked = f"{data['checked']} of {pluralize(data['total'], 'statement')} checked"
            spent = f", {format_dollars(data['usd'])} spent" if data.get("usd") else ""
            status = str(data["status"]).replace("_", " ")
            label, text = "Done", f"{status}, confidence {data['confidence']}, {checked}{spent}"
        case _:
            return None
    return (label, "\n".join(to_one_line(line) for line in text.split("\n"))) if text else None
