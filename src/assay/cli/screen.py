"""A report on a terminal."""

from collections.abc import Container, Iterator, Mapping, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assay.cli.lines import dollars
from assay.export.parts import LEGEND, ends_body, paragraphs
from assay.export.report import Report
from assay.model.report import Answer, KeyFigure, ReportStatus, Section, Sentence, SourceCard

WIDEST = 100  # columns; longer lines are hard to follow
_COLOURS = {"✓✓": "bold green", "✓": "green", "⚠": "yellow"}


def open_console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    console.width = min(console.width, WIDEST)
    return console


def tell(line: str, style: str = "") -> None:
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
            console.print(_figures(report.figures))
    if report.sources:
        console.print()
        show_sources(console, report)
    for notice in report.notices:
        if notice not in noted:
            console.print(Text(f"\nNote: {notice}", style="cyan"))
    console.print(Text(f"\n{_closing(report)}", style="dim"))
    if more := _more(report, talking=talking):
        console.print(Text(more, style="dim"))


def _show_section(console: Console, section: Section) -> None:
    if section.title:
        console.print(Text(section.title, style="bold"))
    for part in _parts(section):
        console.print(part)


def _parts(section: Section) -> Iterator[RenderableType]:
    for number, paragraph in enumerate(paragraphs(section.sentences)):
        flowing = Text(" ").join(_line(sentence) for sentence in paragraph)
        yield Padding(flowing, (1 if number else 0, 0, 0, 2))


def _show_answers(console: Console, answers: Sequence[Answer]) -> None:
    """What is asserted first, then what sources disagree on."""
    for heading, disputed in (("Answer", False), ("Sources disagree", True)):
        chosen = [answer for answer in answers if answer.disputed is disputed]
        if chosen:
            console.print(Text(f"\n{heading}", style="bold"))
        for answer in chosen:
            console.print(Padding(_answer(answer), (0, 0, 0, 2)))


def _answer(answer: Answer) -> Text:
    about = f" ({answer.about})" if answer.about else ""
    mark = str(answer.mark or "⚠")
    cited = "".join(f"[{source}]" for source in answer.citations)
    return Text.assemble((answer.text, "bold"), about, " ", (mark, _COLOURS[mark]), " ", (cited, "blue"))


def _figures(figures: Sequence[KeyFigure]) -> Table:
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


def item(head: str, text: Text, width: int = 1) -> Table:
    """Lines after the first stand under the first."""
    row = Table.grid(padding=(0, 1))
    row.add_column(width=1)
    row.add_column(width=width)
    row.add_row("", Text(head, style="blue"), text)
    return row


def listed(meanings: Mapping[str, str]) -> Table:
    """What can be said, and what it does."""
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True)
    for usage, meaning in meanings.items():
        rows.add_row(f"  {usage}", meaning)
    return rows


def _line(sentence: Sentence) -> Text:
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
        console.print(item(card.id, Text.assemble(card.title, (f"  {_facts(card)}", "dim"), (link, "dim")), widest))
    console.print(Text("\n" + " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items()), style="dim"))


def _facts(card: SourceCard) -> str:
    hand = "primary" if card.primary else "secondary"
    return f"{card.published or 'undated'}, {hand}, group {card.group}, credibility {card.credibility:.2f}"


def _closing(report: Report) -> str:
    checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
    spent = f" · {dollars(report.spend.usd)} spent" if report.spend.usd else ""
    return f"{checked} · confidence {report.confidence}{spent} · thread {report.provenance.thread}"


def _more(report: Report, *, talking: bool) -> str:
    """How to look behind the report."""
    first = next((claim.id for claim in report.claims if claim.spans), None)
    if talking:
        behind = f"/claim {first} or /source 1 opens the passages behind it · " if first else ""
        return f"{behind}/export FILE keeps it · /help"
    thread = report.provenance.thread
    return f"Open the passage behind a statement: assay passage {thread} {first}" if first else ""
