"""Arguments and options that several commands share, and what a shell completes them with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from typer.models import OptionInfo

# As in openassay.models and the settings; written out because importing those takes longer than --help may.
DepthName = Literal["quick", "standard", "comprehensive"]
ModeName = Literal["auto", "plan"]
StyleName = Literal["academic", "technical", "executive"]


# -- completion: quick, and never an error where there is nothing to complete from ----------------------------


def complete_thread(incomplete: str) -> list[tuple[str, str]]:
    from openassay.engine.maintenance import list_recent_threads

    known = [*list_recent_threads(), ("last", "the newest of them")]
    return [(id, title) for id, title in known if id.startswith(incomplete)]


def complete_source(incomplete: str) -> list[str]:
    """Complete the last of several names with commas between them."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in ["auto", *list_source_names()] if name.startswith(last)]


def list_source_names() -> list[str]:
    """List the sources that are installed, and those that the settings name."""
    from importlib.metadata import entry_points

    from openassay.errors import OpenAssayError
    from openassay.settings import load

    try:
        named = set(load().search.mcp)
    except OpenAssayError:
        named = set()
    return sorted({point.name for point in entry_points(group="openassay.sources")} | named)


def complete_format(incomplete: str) -> list[str]:
    from openassay.export import FORMATS, ZIP

    return [name for name in [*FORMATS, ZIP] if name.startswith(incomplete)]


# -- options ----------------------------------------------------------------------------------------------------


def json_option(what: str) -> OptionInfo:
    option: OptionInfo = typer.Option("--json", help=f"Print {what} as JSON.")
    return option


def group(help: str, *, no_args_is_help: bool = False) -> typer.Typer:
    """A group of commands; one that does something without a command has a callback."""
    return typer.Typer(
        help=help,
        no_args_is_help=no_args_is_help,
        invoke_without_command=not no_args_is_help,
        add_completion=False,
        rich_markup_mode=None,
    )


Question = Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know, 10 to 2,000 characters.")]
Docs = Annotated[
    list[str] | None,
    typer.Option(
        "--docs",
        metavar="PATH",
        help="A folder or file to search; may be repeated. It stays on this machine unless you say --web or name a "
        "hosted model.",
    ),
]
Depth = Annotated[DepthName | None, typer.Option("--depth", help="How far to go.")]
Mode = Annotated[ModeName | None, typer.Option("--mode", help="auto goes ahead, plan asks first.")]
Style = Annotated[StyleName | None, typer.Option("--style", help="How the report is written.")]
Words = Annotated[
    int | None, typer.Option("--words", metavar="N", help="Target length of the report.", min=50, max=20_000)
]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="NAME",
        help="auto, or sources by name, as tavily,arxiv (see openassay sources).",
        autocompletion=complete_source,
    ),
]
Web = Annotated[bool, typer.Option("--web", help="Search the open web as well as the documents.")]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="VENDOR:NAME, local:PATH.gguf, or embedded (no model)."),
]
Usd = Annotated[
    float | None, typer.Option("--budget", metavar="USD", help="The most this question may cost.", min=0, max=10_000)
]
JsonReport = Annotated[bool, json_option("the report")]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Write the report to a file: .md, .html, .pdf, .docx, .json, ...", dir_okay=False),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Never ask back: take the defaults and say so in the report.")]
Ask = Annotated[
    bool, typer.Option("--ask", help="Leave questions open for `openassay review` where there is no terminal.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Detach = Annotated[
    bool,
    typer.Option("--detach", help="Work in the background and return at once; see `openassay threads follow`."),
]
_THREAD = "A thread: its id, the start of it, or last."
OnThread = Annotated[
    str | None,
    typer.Option("--thread", metavar="THREAD", help=f"Ask on this thread. {_THREAD}", autocompletion=complete_thread),
]
ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help=_THREAD, autocompletion=complete_thread)]
RunId = Annotated[
    str | None, typer.Option("--run", metavar="RUN", help="A run of the thread: its id, the start of it, or last.")
]
