"""Arguments and options that several commands share. Light: every command, --help too, imports this."""

from pathlib import Path
from typing import Annotated, Literal

import typer

# As in openassay.model.question and the settings; written out because importing those takes longer than --help may.
DepthName = Literal["quick", "standard", "comprehensive"]
ModeName = Literal["auto", "plan"]
StyleName = Literal["academic", "technical", "executive"]

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
Source = Annotated[
    str | None,
    typer.Option("--source", metavar="NAME", help="auto, or sources by name, as tavily,arxiv (see openassay sources)."),
]
Web = Annotated[bool, typer.Option("--web", help="Search the open web beside the documents.")]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="Who thinks: VENDOR:NAME, local:PATH.gguf, or embedded (no model)."),
]
Usd = Annotated[
    float | None, typer.Option("--budget", metavar="USD", help="The most this question may cost.", min=0, max=10_000)
]
Context = Annotated[
    str | None, typer.Option("--context", metavar="TEXT", help="What the planner should know besides the question.")
]
Domains = Annotated[
    list[str] | None, typer.Option("--domain", metavar="NAME", help="A field it belongs to; may be repeated.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Write the report to a file: .md, .html, .pdf, .docx, .json, ...", dir_okay=False),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Never ask back: take the defaults and say so in the report.")]
Ask = Annotated[
    bool,
    typer.Option("--ask", help="Leave questions open for `openassay review` where there is no terminal."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Detach = Annotated[
    bool, typer.Option("--detach", help="Work in a process of its own, and return at once; see `openassay follow`.")
]
OnThread = Annotated[str | None, typer.Option("--thread", metavar="ID", help="Go on with this thread.")]
ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")]
