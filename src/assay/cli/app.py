"""Every command, with its options. What a command needs is imported when it runs, so that --help is quick."""

from pathlib import Path
from typing import Annotated

import typer

from assay.model.question import Depth, Mode

app = typer.Typer(
    name="assay",
    help="Research a question; every sentence of the answer opens the passage that supports it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
threads_app = typer.Typer(help="List, show and delete threads.", invoke_without_command=True)
app.add_typer(threads_app, name="threads")

Question = Annotated[str, typer.Argument(help="What you want to know, 10 to 2,000 characters.")]
Docs = Annotated[
    list[str] | None,
    typer.Option("--docs", help="A folder or file to search; may be repeated. Nothing in it leaves the machine."),
]
Source = Annotated[str | None, typer.Option("--source", help="auto, documents, demo, or an installed source.")]
Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write the report to a file (.md or .json).", dir_okay=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Never ask back: take the defaults and say so in the report.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
OnThread = Annotated[str | None, typer.Option("--thread", help="Go on with this thread.")]
ThreadId = Annotated[str, typer.Argument(help="The thread's id.")]


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
    depth: Annotated[Depth | None, typer.Option(help="How far to go.")] = None,
    mode: Annotated[Mode | None, typer.Option(help="auto goes ahead, plan asks first.")] = None,
    style: Annotated[str | None, typer.Option(help="academic, technical or executive.")] = None,
    words: Annotated[int | None, typer.Option(help="Target length of the report.")] = None,
    source: Source = None,
    thread: OnThread = None,
    out: Out = None,
    json: Json = False,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Research a question and print a cited report."""
    from assay.cli.research import Wishes, research

    research(question, Wishes(docs, depth, mode, style, words, source, thread, out, json, yes, quiet))


@app.command()
def ask(
    question: Question,
    docs: Docs = None,
    source: Source = None,
    thread: OnThread = None,
    out: Out = None,
    json: Json = False,
    yes: Yes = False,
    quiet: Quiet = False,
) -> None:
    """Ask for a short answer (depth quick)."""
    from assay.cli.research import Wishes, research

    research(question, Wishes(docs, Depth.QUICK, None, None, None, source, thread, out, json, yes, quiet))


@app.command()
def chat(docs: Docs = None, source: Source = None, thread: OnThread = None) -> None:
    """A conversation: follow-up questions keep the subject. /exit or Ctrl-D ends it."""
    from assay.cli.chat import chat

    chat(docs, source, thread)


@app.command()
def resume(thread: ThreadId, json: Json = False, out: Out = None, quiet: Quiet = False) -> None:
    """Go on with a run that was stopped; what was finished is not done again."""
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
def passage(thread: ThreadId, claim: Annotated[str, typer.Argument(help="A claim's id, such as C3.")]) -> None:
    """Show the passages behind a statement, highlighted in their context."""
    from assay.cli.threads import passage

    passage(thread, claim)


@app.command()
def document(hash: Annotated[str, typer.Argument(help="The snapshot's sha256, or the start of it.")]) -> None:
    """Print a snapshot's text exactly as it was read."""
    from assay.cli.threads import document

    document(hash)


@app.command()
def graph() -> None:
    """Draw the research graph as Mermaid."""
    from assay.graph import drawing

    typer.echo(drawing())


@app.command()
def doctor(json: Json = False) -> None:
    """Check what Assay needs on this machine, and say what to do about what is missing."""
    from assay.cli.doctor import doctor

    doctor(json)
