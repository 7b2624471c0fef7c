"""A report on a terminal."""

import os
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import timedelta
from textwrap import fill
from typing import TextIO

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from openassay.export.common import LEGEND, ends_body, split_paragraphs
from openassay.export.report import Report
from openassay.models.report import KeyFigure, ReportStatus, Section, Sentence, ShortAnswer, SourceCard
from openassay.models.spend import CostEstimate

# What stands on one line of a terminal: text of others, counts, money.


def to_one_line(text: str) -> str:
    """File names and messages may hold line breaks and escape codes: they are shown, not obeyed."""
    return "".join(character if character.isprintable() else _escape_character(character) for character in text)


def _escape_character(character: str) -> str:
    return " " if character.isspace() and character not in "\n\r\v\f\x1c\x1d\x1e\x1f" else repr(character)[1:-1]


def wrap_line(line: str, indent: int, stream: TextIO | None = None) -> str:
    """Broken between words for a terminal, which would break it anywhere; what goes on stands indented. The lines of a
    log are not broken."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return line
    width = os.get_terminal_size(stream.fileno()).columns or len(line)
    return fill(line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def truncate_line(line: str, stream: TextIO | None = None) -> str:
    """Ended with … where a terminal ends. The lines of a log are left as they are."""
    stream = stream or sys.stdout
    width = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    return line if not width or len(line) <= width else f"{line[: width - 1]}…"


def is_command(line: str) -> bool:
    """What begins with a slash is meant for OpenAssay; two stand for one that is meant so."""
    line = line.lstrip()
    return line.startswith("/") and not line.startswith("//")


def unescape_line(line: str) -> str:
    """A line that is no command, as it was meant."""
    line = line.strip()
    return line[1:] if line.startswith("//") else line


def format_estimate(quote: CostEstimate) -> str:
    """A quote as one line a person can decide by."""
    searching = (
        f"up to {quote.searches} paid searches a round, {format_dollars(quote.search_usd)}" if quote.searches else ""
    )
    if not quote.calls:
        return f"{quote.model}: " + (f"thinking costs nothing; {searching}" if searching else "costs nothing")
    price = (
        f"about {format_dollars(quote.usd)}, never more than {format_dollars(quote.most_usd)}"
        if quote.usd
        else "costs nothing"
    )
    if quote.usd > quote.most_usd:
        price = (
            f"about {format_dollars(quote.usd)}, more than the cap of "
            f"{format_dollars(quote.most_usd)}: it may end early"
        )
    calls = f"about {quote.calls} calls, {quote.tokens:,} tokens, {_format_duration(quote.seconds)}"
    return "; ".join(part for part in (f"{quote.model}: {price}", calls, searching) if part)


def format_dollars(usd: float) -> str:
    """To the cent, or to the micro-dollar where a cent would hide it."""
    return f"${usd:.2f}" if usd == 0 or usd >= 0.1 else f"${usd:.4f}" if usd >= 0.0001 else f"${usd:.6f}"


def format_age(since: timedelta) -> str:
    """How long ago, in one unit."""
    seconds = max(since.total_seconds(), 0.0)
    for unit, size in (("day", 86400), ("hour", 3600), ("min", 60)):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'s' if number > 1 and unit != 'min' else ''}"
    return f"{int(seconds)} s"


def _format_duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"


WIDEST = 100  # columns; longer lines are hard to follow
_COLOURS = {"✓✓": "bold green", "✓": "green", "⚠": "yellow"}


def open_console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    console.width = min(console.width, WIDEST)
    return console


def print_message(line: str, style: str = "") -> None:
    """To the person, beside the answers. A terminal breaks lines between words; lines of a log are not broken."""
    console = open_console(stderr=True)
    console.print(Text(line, style=style), soft_wrap=not console.is_terminal)


def show_report(report: Report, *, talking: bool = False, noted: Container[str] = ()) -> None:
    """`talking`: in a conversation, where more can be asked for by commands. What stands in `noted` was told before.
    Small talk, and what was called off, has a reply and no report."""
    console = open_console()
    console.print()
    if report.status is ReportStatus.CANCELLED:
        for section in report.sections:
            _show_section(console, section)
        return
    console.print(Text(report.title, style="bold underline"))
    _show_answers(console, report.answers)
    for section in report.sections:
        console.print()
        _show_section(console, section)
        if report.figures and ends_body(section, report):
            console.print()
            console.print(_render_figures(report.figures))
    if report.sources:
        console.print()
        show_sources(console, report)
    for notice in report.notices:
        if notice not in noted:
            console.print(Text(f"\nNote: {notice}", style="cyan"))
    console.print(Text(f"\n{_format_footer(report)}", style="dim"))
    if more := _format_hint(report, talking=talking):
        console.print(Text(more, style="dim"))


def _show_section(console: Console, section: Section) -> None:
    if section.title:
        console.print(Text(section.title, style="bold"))
    for part in _render_paragraphs(section):
        console.print(part)


def _render_paragraphs(section: Section) -> Iterator[RenderableType]:
    for number, paragraph in enumerate(split_paragraphs(section.sentences)):
        flowing = Text(" ").join(_render_sentence(sentence) for sentence in paragraph)
        yield Padding(flowing, (1 if number else 0, 0, 0, 2))


def _show_answers(console: Console, answers: Sequence[ShortAnswer]) -> None:
    """What is asserted first, then what sources disagree on."""
    for heading, disputed in (("Answer", False), ("Sources disagree", True)):
        chosen = [answer for answer in answers if answer.disputed is disputed]
        if chosen:
            console.print(Text(f"\n{heading}", style="bold"))
        for answer in chosen:
            console.print(Padding(_render_answer(answer), (0, 0, 0, 2)))


def _render_answer(answer: ShortAnswer) -> Text:
    about = f" ({answer.about})" if answer.about else ""
    mark = str(answer.mark or "⚠")
    cited = "".join(f"[{source}]" for source in answer.citations)
    return Text.assemble((answer.text, "bold"), about, " ", (mark, _COLOURS[mark]), " ", (cited, "blue"))


def _render_figures(figures: Sequence[KeyFigure]) -> Table:
    rows = Table(title=Text("Key figures", style="bold"), title_justify="left", box=None, padding=(0, 2, 0, 0))
    for heading in ("", "what", "value", "when", ""):
        rows.add_column(Text(heading, style="dim"))
    for figure in figures:
        mark = str(figure.mark or "⚠")
        disputed = " (disputed)" if figure.disputed else ""
        cited = "".join(f"[{source}]" for source in figure.citations)
        rows.add_row("", Text(figure.what), Text(figure.value + disputed), Text(figure.when),
                     Text.assemble((mark, _COLOURS[mark]), " ", (cited, "blue")))  # fmt: skip
    return rows


def make_list_item(head: str, text: Text, width: int = 1) -> Table:
    """Lines after the first stand under the first."""
    row = Table.grid(padding=(0, 1))
    row.add_column(width=1)
    row.add_column(width=width)
    row.add_row("", Text(head, style="blue"), text)
    return row


def make_usage_table(meanings: Mapping[str, str]) -> Table:
    """What can be said, and what it does."""
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True)
    for usage, meaning in meanings.items():
        rows.add_row(f"  {usage}", meaning)
    return rows


def _render_sentence(sentence: Sentence) -> Text:
    if sentence.kind == "frame":
        return Text(sentence.text, style="italic")
    mark = str(sentence.mark)
    cited = "".join(f"[{source}]" for source in sentence.citations)
    return Text.assemble(
        sentence.text, " ", (mark, _COLOURS[mark]), " ", (cited, "blue"), (f" {','.join(sentence.claims)}", "dim")
    )


def show_sources(console: Console, report: Report) -> None:
    console.print(Text("Sources", style="bold"))
    widest = max(len(card.id) for card in report.sources)
    for card in report.sources:
        link = f"\n{card.url}" if card.url.startswith(("https://", "http://")) else ""
        console.print(
            make_list_item(
                card.id, Text.assemble(card.title, (f"  {_format_facts(card)}", "dim"), (link, "dim")), widest
            )
        )
    console.print(Text("\n" + " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items()), style="dim"))


def _format_facts(card: SourceCard) -> str:
    hand = "primary" if card.primary else "secondary"
    return f"{card.published or 'undated'}, {hand}, group {card.group}, credibility {card.credibility:.2f}"


def _format_footer(report: Report) -> str:
    checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
    spent = f" · {format_dollars(report.spend.usd)} spent" if report.spend.usd else ""
    return f"{checked} · confidence {report.confidence}{spent} · thread {report.provenance.thread}"


def _format_hint(report: Report, *, talking: bool) -> str:
    """How to look behind the report."""
    first = next((claim.id for claim in report.claims if claim.spans), None)
    if talking:
        behind = f"/claim {first} or /source 1 opens the passages behind it · " if first else ""
        return f"{behind}/export FILE keeps it · /help"
    thread = report.provenance.thread
    return f"Open the passage behind a statement: openassay passage {thread} {first}" if first else ""
