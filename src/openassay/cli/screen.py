"""What is shown at a terminal: lines, tables, JSON, money, a whole report, and how a run goes."""

import json
import os
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from textwrap import fill
from typing import Any, Self, TextIO

import typer
from pydantic import BaseModel
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.status import Status
from rich.table import Table
from rich.text import Text

from openassay.export import Report
from openassay.export.layout import LEGEND, BulletList, Paragraph, ReportLayout, SentenceTable, split_blocks
from openassay.models.event import Event
from openassay.models.report import ReportStatus, Section, Sentence
from openassay.models.spend import CostEstimate
from openassay.models.thread import Run
from openassay.text.words import pluralize

MAX_WIDTH = 100  # columns; longer lines are hard to follow
_COLOURS = {"✓✓": "bold green", "✓": "green", "⚠": "yellow"}


# -- lines --------------------------------------------------------------------------------------------------


def to_one_line(text: str) -> str:
    """Escape line breaks and control codes, so that names and messages of others are shown, not obeyed."""
    breaks = "\n\r\v\f\x1c\x1d\x1e\x1f"
    return "".join(
        one if one.isprintable() else " " if one.isspace() and one not in breaks else repr(one)[1:-1] for one in text
    )


def shorten(text: str, most: int) -> str:
    """Put a text on one line, ended with … after `most` characters."""
    line = to_one_line(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def wrap_line(line: str, indent: int, stream: TextIO | None = None) -> str:
    """Break a line between words for a terminal, which would break it anywhere. Lines of a log are not broken."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return line
    width = os.get_terminal_size(stream.fileno()).columns or len(line)
    return fill(line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def truncate_line(line: str) -> str:
    """End a line with … where the terminal ends. Lines of a log are left as they are."""
    width = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0
    return line if not width or len(line) <= width else f"{line[: width - 1]}…"


def format_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for first, *rest in (heads, *rows):
        cells = [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(rest, widths[1:], strict=True))]
        yield "  ".join(cells).rstrip()


def print_found(found: object, lines: Iterable[str], *, json: bool, indent: int | None = None) -> None:
    """Print what a command has found, as JSON or as lines.

    A terminal breaks a line with `indent`, and ends one without it where the screen ends."""
    if json:
        return print_json(found)
    for line in lines:
        typer.echo(truncate_line(line) if indent is None else wrap_line(line, indent))
    return None


def print_json(value: object) -> None:
    """Print records or plain data. JSON is UTF-8 whatever the terminal speaks: a quote in it stays as it was read."""
    if isinstance(value, BaseModel):
        typer.echo(value.model_dump_json(indent=2).encode())
    else:
        plain = json.dumps(value, indent=2, ensure_ascii=False, default=lambda record: record.model_dump(mode="json"))
        typer.echo(plain.encode())


def is_command(line: str) -> bool:
    """Whether a line begins with a slash; two stand for one that is part of a question or an answer."""
    line = line.lstrip()
    return line.startswith("/") and not line.startswith("//")


def unescape_line(line: str) -> str:
    """Turn // at the beginning of a line that is no command into /."""
    line = line.strip()
    return line[1:] if line.startswith("//") else line


# -- money and time -----------------------------------------------------------------------------------------


def format_estimate(estimate: CostEstimate) -> str:
    """Put an estimate on one line that a person can decide by."""
    searches = (
        f"up to {estimate.searches} paid searches a round, {format_dollars(estimate.search_usd)}"
        if estimate.searches
        else ""
    )
    if not estimate.calls:
        return f"{estimate.model}: " + (f"the model costs nothing; {searches}" if searches else "costs nothing")
    about, most = f"about {format_dollars(estimate.usd)}", format_dollars(estimate.most_usd)
    if not estimate.usd:
        price = "costs nothing"
    elif estimate.usd > estimate.most_usd:
        price = f"{about}, more than the cap of {most}: it may end early"
    else:
        price = f"{about}, never more than {most}"
    seconds = estimate.seconds
    duration = f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
    calls = f"about {estimate.calls} calls, {estimate.tokens:,} tokens, {duration}"
    return "; ".join(part for part in (f"{estimate.model}: {price}", calls, searches) if part)


def format_dollars(usd: float) -> str:
    """Format an amount to the cent, or to the micro-dollar where a cent would hide it."""
    return f"${usd:.2f}" if usd == 0 or usd >= 0.1 else f"${usd:.4f}" if usd >= 0.0001 else f"${usd:.6f}"


def format_age(since: timedelta) -> str:
    """Say how long ago something was, in one unit."""
    seconds = max(since.total_seconds(), 0.0)
    for unit, size in (("day", 86400), ("hour", 3600), ("min", 60)):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} min" if unit == "min" else pluralize(number, unit)
    return f"{int(seconds)} s"


# -- a report -----------------------------------------------------------------------------------------------


def open_console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    console.width = min(console.width, MAX_WIDTH)
    return console


def print_message(line: str, style: str = "") -> None:
    """Tell the person something, beside the answers. A terminal breaks lines between words, a log does not."""
    console = open_console(stderr=True)
    console.print(Text(line, style=style), soft_wrap=not console.is_terminal)


def show_report(report: Report, *, talking: bool = False, noted: Container[str] = ()) -> None:
    """Show a report. `talking`: in a conversation, where commands show more; `noted`: notices it has shown before.

    Small talk, and what was called off, has a reply and no report."""
    console = open_console()
    console.print()
    if report.status is ReportStatus.CANCELLED:
        for section in report.sections:
            _show_section(console, section)
        return
    console.print(Text(report.title, style="bold underline"))
    layout = ReportLayout(report)
    for heading, answers in (("Answer", layout.answers), ("Sources disagree", layout.disputed)):
        if answers:
            console.print(Text(f"\n{heading}", style="bold"))
        for answer in answers:
            about = f" ({answer.about})" if answer.about else ""
            line = Text.assemble((answer.text, "bold"), about, " ", _render_citations(answer.mark, answer.citations))
            console.print(Padding(line, (0, 0, 0, 2)))
    for section in report.sections:
        console.print()
        _show_section(console, section)
        if layout.shows_figures(section):
            rows = Table(title=Text("Key figures", style="bold"), title_justify="left", box=None, padding=(0, 2, 0, 0))
            for heading in ("", "what", "value", "when", ""):
                rows.add_column(Text(heading, style="dim"))
            for figure in report.figures:
                value = Text(f"{figure.value}{' (disputed)' if figure.disputed else ''}")
                cited = _render_citations(figure.mark, figure.citations)
                rows.add_row("", Text(figure.what), value, Text(figure.when), cited)
            console.print()
            console.print(rows)
    if report.sources:
        console.print()
        show_sources(console, report)
    for notice in report.notices:
        if notice not in noted:
            console.print(Text(f"\nNote: {notice}", style="cyan"))
    _show_footer(console, report, talking=talking)


def _show_section(console: Console, section: Section) -> None:
    if section.title:
        console.print(Text(section.title, style="bold"))
    for number, block in enumerate(split_blocks(section.sentences)):
        if number:
            console.print()
        match block:
            case Paragraph(sentences):
                console.print(Padding(Text(" ").join(map(_render_sentence, sentences)), (0, 0, 0, 2)))
            case BulletList(items):
                for item in items:
                    console.print(make_list_item("•", Text(" ").join(map(_render_sentence, item))))
            case SentenceTable(titles, rows):
                grid = Table(box=box.SIMPLE_HEAD, show_edge=False)
                for title in titles:
                    grid.add_column(Text(title))
                for name, row in rows.items():
                    grid.add_row(Text(name), *(Text("\n").join(map(_render_sentence, cell)) for cell in row))
                console.print(Padding(grid, (0, 0, 0, 2)))


def _render_sentence(sentence: Sentence) -> Text:
    lead, rest = sentence.split_lead()
    text = Text.assemble((lead, "bold"), rest)
    if sentence.kind == "frame":
        return Text.assemble(text, style="italic")
    cited = _render_citations(sentence.mark, sentence.visible_citations)
    follows = " ∴ " if sentence.kind == "synthesis" else " "
    return Text.assemble(text, follows, cited, (f" {','.join(sentence.claims)}", "dim"))


def _render_citations(mark: object, sources: Sequence[str]) -> Text:
    """Render a mark and the sources behind it; without a mark something is disputed."""
    mark = str(mark or "⚠")
    return Text.assemble((mark, _COLOURS[mark]), " ", ("".join(f"[{source}]" for source in sources), "blue"))


def show_sources(console: Console, report: Report) -> None:
    console.print(Text("Sources", style="bold"))
    widest = max(len(card.id) for card in report.sources)
    for card in report.sources:
        kind = "primary" if card.primary else "secondary"
        facts = f"{card.published or 'undated'}, {kind}, group {card.group}, credibility {card.credibility:.2f}"
        link = f"\n{card.url}" if card.url.startswith(("https://", "http://")) else ""
        text = Text.assemble(card.title, (f"  {facts}", "dim"), (link, "dim"))
        console.print(make_list_item(card.id, text, widest))
    console.print(Text("\n" + " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items()), style="dim"))


def _show_footer(console: Console, report: Report, *, talking: bool) -> None:
    """Say how much was checked, and how to look behind the report."""
    thread = report.provenance.thread
    checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
    spent = f" · {format_dollars(report.spend.usd)} spent" if report.spend.usd else ""
    console.print(Text(f"\n{checked} · confidence {report.confidence}{spent} · thread {thread}", style="dim"))
    claim = next((claim.id for claim in report.claims if claim.spans), None)
    if talking:
        behind = f"/claim {claim} or /source 1 opens the passages behind it · " if claim else ""
        console.print(Text(f"{behind}/export FILE keeps it · /help", style="dim"))
    elif claim:
        hint = f"Open the passage behind a statement: openassay threads passage {thread} {claim}"
        console.print(Text(hint, style="dim"))


def make_list_item(head: str, text: Text, width: int = 1) -> Table:
    """Put a text beside a head, with lines after the first under the first."""
    row = Table.grid(padding=(0, 1))
    row.add_column(width=1)
    row.add_column(width=width)
    row.add_row("", Text(head, style="blue"), text)
    return row


def make_usage_table(meanings: Mapping[str, str]) -> Table:
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True)
    for usage, meaning in meanings.items():
        rows.add_row(f"  {usage}", meaning)
    return rows


# -- how a run goes, on stderr, from its events -------------------------------------------------------------

_STAGES = {
    "understand": "Understanding the question", "gate": "Deciding whether to ask first",
    "clarify": "Asking", "question": "Asking", "plan": "Planning",
    "dispatch": "Assigning sub-questions", "search": "Searching", "fuse": "Choosing what to read",
    "harvest": "Fetching pages", "select": "Choosing passages", "read": "Reading",
    "consolidate": "Combining findings", "analyse": "Looking for gaps", "verify": "Checking every claim",
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

    def __exit__(self, *_: object) -> None:
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
