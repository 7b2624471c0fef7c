"""A report on a terminal."""

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from assay.export.markdown import LEGEND
from assay.export.report import Report
from assay.model.report import Section, Sentence

_COLOURS = {"✓✓": "bold green", "✓": "green", "⚠": "yellow"}


def show_report(report: Report) -> None:
    console = Console(highlight=False)
    console.print()
    console.print(Text(report.title, style="bold underline"))
    for section in report.sections:
        _show_section(console, section)
    if report.sources:
        _show_sources(console, report)
    for notice in report.notices:
        console.print(Text(f"\nNote: {notice}", style="cyan"))
    console.print(Text(f"\n{_closing(report)}", style="dim"))


def _show_section(console: Console, section: Section) -> None:
    console.print()
    if section.title:
        console.print(Text(section.title, style="bold"))
    for sentence in section.sentences:
        console.print(Padding(_line(sentence), (0, 0, 0, 2)))


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
    for card in report.sources:
        facts = f"{card.published or 'undated'}, group {card.group}, credibility {card.credibility:.2f}"
        console.print(Padding(Text.assemble((f"{card.id:4}", "blue"), card.title, (f"  {facts}", "dim")), (0, 0, 0, 2)))
    console.print(Text("\n" + " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items()), style="dim"))


def _closing(report: Report) -> str:
    thread = report.provenance.thread
    first = next((claim.id for claim in report.claims if claim.spans), None)
    checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
    line = f"{checked} · confidence {report.confidence} · thread {thread}"
    return f"{line}\nOpen the passage behind a statement: assay passage {thread} {first}" if first else line
