"""A run's events, told as the spans of one trace.

    assay.run                 from when it was asked to its end, by whichever process has brought it there
      assay.part              from being taken up to standing still, in one process
        stage search          the graph's, by name
          retrieval searxng   one query; `page news` is one page, by the sort of its site
          chat gpt-4o         one call to a model

Every id follows from the run's and the number of an event. So processes that work on a run one after the other tell one
trace without having heard of each other, and what a process that died has not told leaves a gap and no knot.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple

from assay.deps import working
from assay.llm.tracing import Exchange, exchange
from assay.model.event import ENDED, Event, RunStatus
from assay.model.thread import Run
from assay.telemetry import names
from assay.text.redaction import Redaction
from assay.view.outside import Asked, asked, number
from assay.view.timings import is_left

MOST_PARTS = 10_000  # open at once; one whose end could not be written down is never told, and must not stay for good
LONGEST = 20_000  # characters of one text

Value = str | bool | int | float | tuple[str, ...]
Attributes = dict[str, Value]


class Moment(NamedTuple):
    """Something that happened within a span."""

    name: str
    time: datetime
    attributes: Attributes


class Span(NamedTuple):
    trace: int
    id: int
    parent: int  # 0: none
    name: str
    start: datetime
    end: datetime
    attributes: Attributes
    outside: bool = False  # somebody else was asked
    error: str = ""  # of what sort, if it failed
    moments: tuple[Moment, ...] = ()
    link: str = ""  # the traceparent of what has set it going


def trace_id(run: str) -> int:
    return _number(f"assay run {run}", 16)


def span_id(run: str, event: int) -> int:
    """Of what began with an event; 0 for the run itself."""
    return _number(f"assay run {run} {event}", 8)


def _number(name: str, size: int) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=size).digest()) or 1


@dataclass(slots=True)
class Part:
    """What one process does of a run."""

    began: Event
    run: Run | None
    entered: dict[int, Event] = field(default_factory=dict)
    moments: dict[int, list[Moment]] = field(default_factory=dict)  # by what they happened in
    errors: dict[int, str] = field(default_factory=dict)
    usd: float | None = None


class Spans:
    """`content`: whether questions, queries, addresses, prompts and answers are told. Never of a run on documents."""

    def __init__(self, redaction: Redaction, *, content: bool) -> None:
        self._redaction = redaction
        self._content = content
        self._parts: dict[str, Part] = {}

    def of(self, event: Event) -> list[Span]:
        """What has come to its end with an event. Called as the run that it is of."""
        if event.kind == "run":
            return self._stands(event, RunStatus(str(event.data["status"])))
        part = self._parts.get(event.run)
        if part is None:  # nobody works on the run
            return []
        if event.kind == "enter":
            part.entered[event.seq] = event
        elif is_left(event) or (event.kind == "error" and "type" in event.data):
            part.errors |= _failed(event)
            return self._left(part, event)
        elif call := self._call(part, event):
            return [call]
        else:
            self._note(part, event)
        return []

    # -- the run ------------------------------------------------------------------------------------------

    def _stands(self, event: Event, status: RunStatus) -> list[Span]:
        part = self._parts.pop(event.run, None)
        if status is RunStatus.RUNNING:
            self._parts[event.run] = Part(event, working.get())
            while len(self._parts) > MOST_PARTS:
                del self._parts[next(iter(self._parts))]
            return []
        told: list[Span] = []
        if part is not None:
            told += [self._stage(part, seq, event.time, unfinished=True) for seq in list(part.entered)]
            told.append(self._part(part, event, status))
        if status in ENDED:
            told.append(self._root(part, event, status))
        return told

    def _part(self, part: Part, event: Event, status: RunStatus) -> Span:
        seq, falls = part.began.seq, int(number(part.began, "falls"))
        told: Attributes = {names.RUN: event.run, names.RUN_STATUS: status.value, names.FALLS: falls}
        return Span(
            trace_id(event.run), span_id(event.run, seq), span_id(event.run, 0), "assay.part", part.began.time,
            event.time, told, error=part.errors.get(seq, "") if status is RunStatus.FAILED else "",
            moments=tuple(part.moments.get(seq, ())),
        )  # fmt: skip

    def _root(self, part: Part | None, event: Event, status: RunStatus) -> Span:
        """Of a run that was stopped, and is gone on with, it is told once more."""
        run = part.run if part else None
        told: Attributes = {names.OPERATION: names.INVOKE_AGENT, names.AGENT: "assay", names.RUN: event.run}
        told[names.RUN_STATUS] = status.value
        if run is not None:
            told |= {names.CONVERSATION: run.thread, names.REQUEST: str(run.options.get("request") or "")}
            if self._may_tell(run):
                told[names.INPUT] = self._message("user", run.question)
        if part is not None and part.usd is not None:
            told[names.USD] = part.usd
        failed = part.errors.get(part.began.seq, "internal") if part else "internal"
        return Span(
            trace_id(event.run), span_id(event.run, 0), 0, "assay.run", run.started if run else event.time, event.time,
            {name: value for name, value in told.items() if value != ""},
            error=failed if status is RunStatus.FAILED else "", link=str(run.options.get("trace") or "") if run else "",
        )  # fmt: skip

    # -- stages -------------------------------------------------------------------------------------------

    def _left(self, part: Part, event: Event) -> list[Span]:
        entered = event.parent
        return [self._stage(part, entered, event.time)] if entered in part.entered else []

    def _stage(self, part: Part, seq: int, end: datetime, *, unfinished: bool = False) -> Span:
        entered = part.entered.pop(seq)
        told: Attributes = {names.STAGE: entered.stage, names.RUN: entered.run}
        if unfinished:
            told[names.UNFINISHED] = True
        return Span(
            trace_id(entered.run), span_id(entered.run, seq), _parent(part, entered), f"stage {entered.stage}",
            entered.time, end, told, error=part.errors.pop(seq, ""), moments=tuple(part.moments.pop(seq, ())),
        )  # fmt: skip

    # -- those outside ------------------------------------------------------------------------------------

    def _call(self, part: Part, event: Event) -> Span | None:
        """Who is not asked for money, and answers from this machine or a cache, takes no time that is told."""
        who = asked(event) or _own_search(event)
        if who is None:
            return None
        part.usd = number(event, "total_usd") if "total_usd" in event.data else part.usd
        if who.kind == "search" and event.kind == "spend":
            return None  # the price of a search that has a span of its own
        name, told = self._told(part, event, who)
        return Span(
            trace_id(event.run), span_id(event.run, event.seq), _parent(part, event), name,
            event.time - timedelta(seconds=who.seconds or 0.0), event.time, {**told, names.RUN: event.run},
            outside=who.cached is not True and bool(event.data.get("remote", True)),
            error=str(event.data.get("category") or "failed") if who.failures else "",
        )  # fmt: skip

    def _told(self, part: Part, event: Event, who: Asked) -> tuple[str, Attributes]:
        """What the span is called, and what it says."""
        if who.kind == "model":
            vendor, _, model = who.party.partition(":")
            told = self._chat(part, event, who)
            return f"{names.CHAT} {model}", told | {
                names.PROVIDER: names.PROVIDERS.get(vendor, vendor), names.REQUEST_MODEL: model
            }  # fmt: skip
        if who.kind == "search":
            return f"{names.RETRIEVAL} {who.party}", self._search(part, event, who)
        return f"page {who.party}", self._page(part, event, who)

    def _chat(self, part: Part, event: Event, who: Asked) -> Attributes:
        told: Attributes = {
            names.OPERATION: names.CHAT, names.STEP: str(event.data.get("step", "")),
            names.TASK: str(event.data.get("task", "")),
        }  # fmt: skip
        if event.kind == "spend":
            told |= {
                names.INPUT_TOKENS: int(number(event, "prompt_tokens")), names.USD: who.usd,
                names.OUTPUT_TOKENS: int(number(event, "completion_tokens")),
                names.CONFIRMED: bool(event.data.get("confirmed")),
            }  # fmt: skip
            said = exchange.get()
            if said is not None:
                told |= _tuning(said) | (self._said(said) if self._may_tell(part.run) else {})
        return {name: value for name, value in told.items() if value != ""}

    def _search(self, part: Part, event: Event, who: Asked) -> Attributes:
        told: Attributes = {names.OPERATION: names.RETRIEVAL, names.DATA_SOURCE: who.party}
        if event.kind == "search":
            told |= {names.HITS: int(number(event, "hits")), names.CACHED: bool(who.cached)}
        if self._may_tell(part.run):
            told |= {names.QUERY: self._text(event.data.get("query")), **self._reason(event)}
        return told

    def _page(self, part: Part, event: Event, who: Asked) -> Attributes:
        told: Attributes = {names.PUBLISHER: who.party, names.CACHED: bool(who.cached)}
        if event.kind == "read":
            told[names.WORDS] = int(number(event, "words"))
        if self._may_tell(part.run):
            address, title = event.data.get("url") or event.data.get("path"), event.data.get("title")
            told |= {names.ADDRESS: self._text(address), names.TITLE: self._text(title), **self._reason(event)}
        return {name: value for name, value in told.items() if value != ""}

    # -- the rest -----------------------------------------------------------------------------------------

    def _note(self, part: Part, event: Event) -> None:
        told: Attributes | None = None
        if event.kind == "error":
            part.errors |= _failed(event)
            told = {names.ERROR: str(event.data.get("category") or "internal")}
        elif event.kind == "think":
            told = {names.STEP: str(event.data.get("step", "")), names.BY: str(event.data.get("by", ""))}
        elif event.kind == "interrupt":
            told = {names.QUESTION_KIND: str(event.data.get("kind", ""))}
        elif event.kind == "notice" and self._may_tell(part.run):
            told = {}
        if told is not None:
            if self._may_tell(part.run):
                told |= self._reason(event)
            within = event.parent if event.parent in part.entered else part.began.seq
            part.moments.setdefault(within, []).append(Moment(event.kind, event.time, told))

    # -- content ------------------------------------------------------------------------------------------

    def _may_tell(self, run: Run | None) -> bool:
        return self._content and run is not None and not (run.options.get("docs") or run.options.get("private"))

    def _said(self, said: Exchange) -> Attributes:
        request, reply = said
        return {
            names.INSTRUCTIONS: json.dumps([{"type": "text", "content": self._text(request.prompt.system)}]),
            names.INPUT: self._message("user", request.prompt.text),
            names.OUTPUT: self._message("assistant", reply.text, finish_reason=reply.finish),
        }

    def _message(self, role: str, text: str, **more: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": self._text(text)}], **more}])

    def _reason(self, event: Event) -> Attributes:
        said = (event.data.get(name) for name in ("message", "text", "reason", "question"))
        text = self._text(next((one for one in said if one), ""))
        return {names.EXCEPTION_MESSAGE if event.kind == "error" else names.TEXT: text} if text else {}

    def _text(self, text: object) -> str:
        """Without secrets before it is written as JSON: what follows an escaped line break is no word of its own."""
        said = self._redaction.text(str(text or ""))
        return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"


def _own_search(event: Event) -> Asked | None:
    """A search on this machine."""
    if event.kind == "search" and event.stage == "search":
        return Asked("search", str(event.data.get("source", "")), cached=bool(event.data.get("cached")))
    return None


def _parent(part: Part, event: Event) -> int:
    """What it happened in; what happened in nothing that is known happened in the part."""
    return span_id(event.run, event.parent if event.parent in part.entered else part.began.seq)


def _failed(event: Event) -> dict[int, str]:
    """A stage's own failure, or the run's."""
    if event.kind != "error" or event.parent is None or (event.stage and "type" not in event.data):
        return {}
    return {event.parent: str(event.data.get("category") or "internal")}


def _tuning(said: Exchange) -> Attributes:
    request, reply = said
    warmth = {} if request.temperature is None else {names.REQUEST_TEMPERATURE: request.temperature}
    return {**warmth, names.REQUEST_MAX_TOKENS: request.max_tokens, names.FINISH_REASONS: (reply.finish,)}
