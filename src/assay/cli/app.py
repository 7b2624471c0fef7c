"""Every command, with its options. What a command needs is imported when it runs, so that --help is quick.

Plain help, too: Rich panels cost 0.1 s, and 0.4 s where nothing has been compiled yet.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer(
    name="assay",
    help="Research a question; every sentence of the answer opens the passage that supports it.",
    epilog='Start with: assay research "How did X change?" --docs FOLDER',
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
threads_app = typer.Typer(help="List, show and delete threads.", invoke_without_command=True, rich_markup_mode=None)
app.add_typer(threads_app, name="threads")

# As in assay.model.question and the settings; written out because importing those takes longer than --help may.
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
    typer.Option("--source", metavar="NAME", help="auto, or sources by name, as tavily,arxiv (see assay sources)."),
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
    Path | None, typer.Option("--out", help="Write the report to a file: .md, .json or .html.", dir_okay=False)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Never ask back: take the defaults and say so in the report.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
OnThread = Annotated[str | None, typer.Option("--thread", metavar="ID", help="Go on with this thread.")]
ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")]


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"assay {installed('assay')}")
        raise typer.Exit


@app.command()
def research(
    question: Question,
    docs: Docs = None,
    depth: Annotated[DepthName | None, typer.Option(help="How far to go.")] = None,
    mode: Annotated[ModeName | None, typer.Option(help="auto goes ahead, plan asks first.")] = None,
    style: Annotated[StyleName | None, typer.Option(help="How the report is written.")] = None,
    words: Annotated[
        int | None, typer.Option(metavar="N", help="Target length of the report.", min=50, max=20_000)
    ] = None,
    source: Source = None,
    web: Web = False,
    model: Model = None,
    budget: Usd = None,
    context: Context = None,
    domain: Domains = None,
    thread: OnThread = None,
    out: Out = None,
    json: Json = False,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Research a question and print a cited report."""
    from assay.cli.research import Wishes, research

    research(
        question,
        Wishes(
            docs=docs, depth=depth, mode=mode, style=style, words=words, source=source, web=web, model=model,
            budget=budget, context=context, domains=domain, thread=thread, out=out, json=json, yes=yes, quiet=quiet,
        ),
    )  # fmt: skip


@app.command()
def ask(
    question: Question,
    docs: Docs = None,
    source: Source = None,
    web: Web = False,
    model: Model = None,
    budget: Usd = None,
    thread: OnThread = None,
    out: Out = None,
    json: Json = False,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Ask for a short answer (depth quick)."""
    from assay.cli.research import Wishes, research

    research(
        question,
        Wishes(
            docs=docs, depth="quick", source=source, web=web, model=model, budget=budget, thread=thread, out=out,
            json=json, yes=yes, quiet=quiet,
        ),
    )  # fmt: skip


@app.command()
def quote(
    question: Question,
    docs: Docs = None,
    depth: Annotated[DepthName | None, typer.Option(help="How far to go.")] = None,
    source: Source = None,
    web: Web = False,
    model: Model = None,
    budget: Usd = None,
    json: Json = False,
) -> None:
    """What a question will probably cost and how long it will take. Nothing is spent."""
    from assay.cli.quote import quote
    from assay.cli.research import Wishes

    quote(question, Wishes(docs=docs, depth=depth, source=source, web=web, model=model, budget=budget, json=json))


@app.command()
def chat(
    docs: Docs = None,
    source: Source = None,
    web: Web = False,
    model: Model = None,
    budget: Usd = None,
    thread: OnThread = None,
) -> None:
    """A conversation: follow-up questions keep the subject. /exit or Ctrl-D ends it."""
    from assay.cli.chat import chat
    from assay.cli.research import Wishes

    chat(Wishes(docs=docs, source=source, web=web, model=model, budget=budget), thread)


@app.command()
def resume(thread: ThreadId, json: Json = False, out: Out = None, quiet: Quiet = False) -> None:
    """Go on with a stopped run; nothing is done twice."""
    from assay.cli.research import Wishes, resume

    resume(thread, Wishes(out=out, json=json, quiet=quiet))


@threads_app.callback()
def threads(context: typer.Context, limit: Annotated[int, typer.Option(min=1, max=1000)] = 20) -> None:
    if context.invoked_subcommand is None:
        from assay.cli.threads import listing

        listing(limit)


@threads_app.command("show")
def threads_show(thread: ThreadId, json: Json = False) -> None:
    """A thread with its runs, and its report if there is one."""
    from assay.cli.threads import show

    show(thread, json)


@threads_app.command("log")
def threads_log(thread: ThreadId) -> None:
    """Everything that happened in the thread's last run."""
    from assay.cli.threads import log

    log(thread)


@threads_app.command("delete")
def threads_delete(thread: ThreadId) -> None:
    """Delete a thread with its runs and events."""
    from assay.cli.threads import delete

    delete(thread)


@app.command()
def passage(
    thread: ThreadId, claim: Annotated[str, typer.Argument(metavar="CLAIM", help="A claim's id, such as C3.")]
) -> None:
    """Show the passages behind a statement in context."""
    from assay.cli.threads import passage

    passage(thread, claim)


@app.command()
def document(
    hash: Annotated[str, typer.Argument(metavar="HASH", help="The snapshot's sha256, or the start of it.")],
) -> None:
    """Print a snapshot's text exactly as it was read."""
    from assay.cli.threads import document

    document(hash)


@app.command()
def sources(json: Json = False) -> None:
    """Every source: whether it can be asked, what it serves, its price and its limits."""
    from assay.cli.sources import sources

    sources(json)


@app.command()
def fetch(
    url: Annotated[str, typer.Argument(metavar="URL", help="A page of the open web.")], json: Json = False
) -> None:
    """Read one page as research would, and say why if it cannot be read."""
    from assay.cli.sources import fetch

    fetch(url, json)


@app.command()
def graph() -> None:
    """Draw the research graph as Mermaid."""
    from assay.graph import drawing

    typer.echo(drawing())


@app.command()
def doctor(json: Json = False) -> None:
    """Check what this machine has and lacks."""
    from assay.cli.doctor import doctor

    doctor(json)
