"""Every command, with its options. What a command needs is imported when it runs, so that --help is quick.

Plain help, too: Rich panels cost 0.1 s, and 0.4 s where nothing has been compiled yet.
"""

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.branch_commands import branches, diff, fork, history, replay
from assay.cli.db_commands import db_app
from assay.cli.eval_commands import evaluate
from assay.cli.evidence_commands import bundle, open_bundle, verify
from assay.cli.export_commands import export
from assay.cli.index_commands import index
from assay.cli.mcp_commands import mcp
from assay.cli.memory_commands import memory_app
from assay.cli.parameters import (
    Ask,
    Context,
    DepthName,
    Detach,
    Docs,
    Domains,
    Json,
    Model,
    ModeName,
    OnThread,
    Out,
    Question,
    Quiet,
    Source,
    StyleName,
    ThreadId,
    Usd,
    Web,
    Yes,
)
from assay.cli.review_commands import review_app
from assay.cli.run_commands import follow, stop
from assay.cli.serve_commands import serve
from assay.cli.storage_commands import storage_app
from assay.cli.thread_commands import threads_app
from assay.cli.user_commands import users_app
from assay.cli.watch_commands import watch
from assay.cli.worker_commands import worker

app = typer.Typer(
    name="assay",
    help="Research a question; every sentence of the answer opens the passage that supports it.",
    epilog='Start with: assay research "How did X change?" --docs FOLDER',
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
GROUPS = {
    "threads": threads_app, "review": review_app, "memory": memory_app, "storage": storage_app, "users": users_app,
    "db": db_app,
}  # fmt: skip
for name, group in GROUPS.items():
    app.add_typer(group, name=name)


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
    ask: Ask = False,
    quiet: Quiet = False,
    detach: Detach = False,
) -> None:
    """Research a question and print a cited report."""
    from assay.cli.research import Wishes, research

    research(
        question,
        Wishes(
            docs=docs, depth=depth, mode=mode, style=style, words=words, source=source, web=web, model=model,
            budget=budget, context=context, domains=domain, thread=thread, out=out, json=json, yes=yes, ask=ask,
            quiet=quiet, detach=detach,
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
    ask: Ask = False,
    quiet: Quiet = False,
    detach: Detach = False,
) -> None:
    """Ask for a short answer (depth quick)."""
    from assay.cli.research import Wishes, research

    research(
        question,
        Wishes(
            docs=docs, depth="quick", source=source, web=web, model=model, budget=budget, thread=thread, out=out,
            json=json, yes=yes, ask=ask, quiet=quiet, detach=detach,
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
    depth: Annotated[DepthName | None, typer.Option(help="How far to go; quick unless you say otherwise.")] = None,
    mode: Annotated[ModeName | None, typer.Option(help="auto goes ahead, plan asks first.")] = None,
    thread: OnThread = None,
) -> None:
    """A conversation: follow-up questions keep the subject. /exit or Ctrl-D ends it."""
    from assay.cli.chat import chat
    from assay.cli.research import Wishes

    chat(Wishes(docs=docs, source=source, web=web, model=model, budget=budget, depth=depth, mode=mode), thread)


@app.command()
def resume(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.", show_default=False)] = "",
    journal: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="A run's journal: restore it, and go on.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every run whose process is gone, until all stand still.")
    ] = False,
    queued: Annotated[bool, typer.Option("--queued", help="Only if it still waits to be taken up.")] = False,
    json: Json = False,
    out: Out = None,
    quiet: Quiet = False,
    detach: Detach = False,
) -> None:
    """Go on with a stopped run; nothing is done twice."""
    from assay.cli.research import Wishes, restore, resume
    from assay.errors import UsageError

    wishes = Wishes(out=out, json=json, quiet=quiet, detach=detach)
    if bool(thread) + (journal is not None) + every != 1:
        raise UsageError("give one of THREAD, --from DIR and --all, and only one", help="See: assay threads")
    if every:
        from assay.cli.left import resume_all

        resume_all()
    elif journal is not None:
        restore(journal, wishes)
    else:
        resume(thread, wishes, queued=queued)


app.command()(mcp)
app.command()(stop)
app.command()(follow)
app.command()(index)
app.command()(export)
app.command("eval")(evaluate)
app.command()(serve)
app.command()(worker)
for evidence in (bundle, verify, watch):
    app.command()(evidence)
app.command("open")(open_bundle)
for going_back in (history, fork, replay, branches, diff):
    app.command()(going_back)


@app.command()
def mode(thread: ThreadId, mode: Annotated[ModeName, typer.Argument(help="auto goes ahead, plan asks first.")]) -> None:
    """Change a thread's mode, at once: open planning questions are dropped when it turns to auto."""
    from assay.cli.mode import set_mode

    set_mode(thread, mode)


@app.command()
def veto(
    thread: ThreadId,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE...", help="S3, an address, or a host.")],
    what_if: Annotated[bool, typer.Option("--what-if", help="Show what would change; change nothing.")] = False,
    json: Json = False,
    out: Out = None,
    quiet: Quiet = False,
) -> None:
    """Take sources out of a thread's report: only what rested on them is derived again."""
    from assay.cli.veto import veto, what_would_change

    if what_if:
        what_would_change(thread, sources, json)
    else:
        veto(thread, sources, json=json, out=out, quiet=quiet)


@app.command()
def company(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name, a ticker, or a description.")],
    json: Json = False,
) -> None:
    """Which company a name, a ticker or a description stands for."""
    from assay.cli.company import company

    company(name, json)


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
