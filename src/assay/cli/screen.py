"""A report on a terminal."""

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assay.cli.lines import dollars
from assay.export.markdown import LEGEND
from assay.export.report import Report
from assay.model.report import Section, Sentence, SourceCard

WIDEST = 100  # columns; longer lines are hard to follow
_COLOURS = {"✓✓": "bold green", "✓": "green", "⚠": "yellow"}


def open_console() -> Console:
    console = Console(highlight=False, markup=False, emoji=False)
    console.width = min(console.width, WIDEST)
    return console


def show_report(report: Report) -> None:
    console = open_console()
    console.print()
    console.print(Text(report.title, style="bold underline"))
    for section in report.sections:
        console.print()
        if section.title:
            console.print(Text(section.title, style="bold"))
        for part in _parts(section):
            console.print(part)
    if report.sources:
        _show_sources(console, report)
    for notice in report.notices:
        console.print(Text(f"\nNote: {notice}", style="cyan"))
    console.print(Text(f"\n{_closing(report)}", style="dim"))


def _parts(section: Section) -> Iterator[RenderableType]:
    """Summaries flow; elsewhere a statement has a line of its own, so that its mark can be found."""
    if section.role in ("abstract", "conclusion"):
        yield Padding(Text(" ").join(_line(sentence) for sentence in section.sentences), (0, 0, 0, 2))
        return
    for sentence in section.sentences:
        line = _line(sentence)
        yield _item("•", line) if sentence.kind == "fact" else Padding(line, (0, 0, 0, 2))


def _item(head: str, text: Text, width: int = 1) -> Table:
    """Lines after the first stand under the first."""
    item = Table.grid(padding=(0, 1))
    item.add_column(width=1)
    item.add_column(width=width)
    item.add_row("", Text(head, style="blue"), text)
    return item


def _line(sentence: Sentence) -> Text:
    if sentence.kind == "frame":
        return Text(sentence.text, style="italic")
    mark = str(sentence.mark)
    cited = "".join(f"[{source}]" for source in sentence.citations)
    return Text.assemble(
        sentence.text, " ", (mark, _COLOURS[mark]), " ", (cited, "blue"), (f" {','.join(sentence.claims)}", "dim")
    )


def _show_sources(console: Console, report: Report) -> None:
    console.print()
    console.print(Text("Sources", style="bold"))
    widest = max(len(card.id) for card in report.sources)
    for card in report.sources:
        link = f"\n{card.url}" if card.url.startswith(("https://", "http://")) else ""
        console.print(_item(card.id, Text.assemble(card.title, (f"  {_facts(card)}", "dim"), (link, "dim")), widest))
    console.print(Text("\n" + " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items()), style="dim"))


def _facts(card: SourceCard) -> str:
    return f"{card.published or 'undated'}, group {card.group}, credibility {card.credibility:.2f}"


def _closing(report: Report) -> str:
    thread = report.provenance.thread
    first = next((claim.id for claim in report.claims if claim.spans), None)
    checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
    spent = f" · {dollars(report.spend.usd)} spent" if report.spend.usd else ""
    line = f"{checked} · confidence {report.confidence}{spent} · thread {thread}"
    return f"{line}\nOpen the passage behind a statement: assay passage {thread} {first}" if first else line
