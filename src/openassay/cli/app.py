"""Every command, with its options. What a command needs is imported when it runs, so that --help is quick.

Plain help, too: Rich panels cost 0.1 s, and 0.4 s where nothing has been compiled yet.
"""

from pathlib import Path
from typing import Annotated

import typer

from openassay.cli.commands import (
    branches,
    db_app,
    diff,
    fork,
    history,
    memory_app,
    replay,
    review_app,
    storage_app,
    threads_app,
    users_app,
)
from openassay.cli.options import (
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

# `openassay eval`: how well it does on data of others.


def evaluate(
    measures: Annotated[
        list[str] | None,
        typer.Argument(metavar="MEASURE...", help="Which to take; all unless said.", show_default=False),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The data; OPENASSAY_EVAL_DATA unless said.", file_okay=False)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Samples that take seconds each; they have own floors.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Keep the figures as they come: a .json record, or a .md page with its record beside it."),
    ] = None,
    render: Annotated[
        bool, typer.Option("--render", help="Measure nothing: write the page of --out again from its record.")
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="Show the measures, and take none.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Measure quality on third-party data. Ends with 1 where a figure is worse than it may be."""
    from benchmarks.evaluation import cli

    wishes = cli.EvalOptions(data=data, quick=quick, out=out, json=json)
    if listing:
        cli.show_measures(wishes)
    elif render:
        cli.rewrite_page(wishes)
    else:
        cli.evaluate(measures or [], wishes)


# `openassay bundle`, `verify` and `open`: a report that others can check, with its options.

File = Annotated[Path, typer.Argument(metavar="FILE", help="A bundle: FILE.openassay.")]


def bundle(
    thread: ThreadId,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="One of its runs; the last that is finished unless said.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file to write; THREAD.openassay unless said.")
    ] = None,
    unsigned: Annotated[
        bool, typer.Option("--unsigned", help="Do not sign it with this data directory's key.")
    ] = False,
) -> None:
    """A report with everything it rests on in one file, which anybody can check: openassay verify."""
    from openassay.cli.evidence import create_bundle

    create_bundle(thread, run=run, out=out, unsigned=unsigned)


def verify(
    file: File,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="FINGERPRINT", help="Who must have signed it; or a file with the fingerprint."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Check every hash, passage and figure of a bundle again: offline, without a model, on any machine."""
    from openassay.cli.evidence import show_verification

    show_verification(file, key=key, json=json)


def open_bundle(
    file: File,
    port: Annotated[int, typer.Option(metavar="N", help="0: any that is free.", min=0, max=65_535)] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only say the address.")] = False,
) -> None:
    """Check a bundle, then show it in the web UI of this machine, to be looked at and nothing else."""
    from openassay.cli.evidence import show_bundle

    show_bundle(file, port=port, browser=not no_browser)


# `openassay export`: a report as a file for elsewhere.


def export(
    thread: ThreadId,
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", metavar="NAME", show_default=False,
            help="md, obsidian, quarto, html, pdf, docx, json, bibtex, ris, csl, csv, or zip (everything of the "
            "thread); unless said, what the ending of --out says, else md.",
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="One of its runs; the latest report unless said.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Where to; - is stdout. Named after the report unless said."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
) -> None:  # fmt: skip
    """Write a thread's report to a file: for a paper, a memo, a vault, a reference manager."""
    from openassay.cli.evidence import export_report

    export_report(thread, format, run, out, force=force)


# `openassay index`: folders made ready for questions.


def index(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH...", help="Folders or files.", show_default=False)
    ] = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Make a vector of each passage, too: found by meaning, not only by words.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Files read at once; all processors unless said.", min=1, max=64)
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="Show what is indexed, and change nothing.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Delete the index of each PATH; its files stay.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Index folders ahead of time. It can be stopped at any moment, and goes on where it was."""
    from openassay.cli import index

    if status or not paths:
        index.show_indexes(paths or [], as_json=json)
    elif forget:
        index.forget_indexes(paths)
    else:
        index.index_folders(paths, index.IndexOptions(vectors=vectors, jobs=jobs, json=json, quiet=quiet))


# `openassay mcp`: OpenAssay as tools of other programs.


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Over HTTP at /mcp, instead of stdin and stdout.")] = False,
    host: Annotated[str | None, typer.Option(help="With --http: where to listen.")] = None,
    port: Annotated[
        int | None, typer.Option(metavar="N", help="With --http: the port; 0 for any that is free.", min=0, max=65_535)
    ] = None,
) -> None:
    """Serve research, search, fetch, verify and threads to MCP clients, such as desktop assistants and editors."""
    from openassay.cli.serve import serve_mcp_http, serve_mcp_stdio
    from openassay.errors import UsageError

    if not http and (host is not None or port is not None):
        raise UsageError("--host and --port go with --http", help="Without it, stdin and stdout are used.")
    if http:
        serve_mcp_http(host, port)
    else:
        serve_mcp_stdio()


# `openassay follow` and `openassay stop`: runs that another process may work on.


def follow(
    thread: ThreadId,
    new: Annotated[bool, typer.Option("--new", help="Only what happens from now on.")] = False,
    json: Json = False,
    out: Out = None,
    quiet: Quiet = False,
) -> None:
    """Show how a run goes, in whatever process, and then its report. Ctrl-C leaves the run alone."""
    from openassay.cli.research import CommandOptions, follow_thread

    follow_thread(thread, CommandOptions(out=out, json=json, quiet=quiet), new=new)


def stop(
    thread: ThreadId,
    drain: Annotated[bool, typer.Option("--drain", help="Let it end the step it is at.")] = False,
) -> None:
    """Stop a run, whatever process works on it. It can be resumed."""
    from openassay.cli.research import stop_thread

    stop_thread(thread, drain=drain)


# `openassay serve`, with its options.


def serve(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Listen here; other machines only once somebody has a token.")
    ] = None,
    port: Annotated[int | None, typer.Option(metavar="N", help="0: any that is free.", min=0, max=65_535)] = None,
    public_url: Annotated[
        str | None, typer.Option("--public-url", metavar="URL", help="As people reach it, for links and webhooks.")
    ] = None,
) -> None:
    """Serve the API until it is stopped; runs under way go on at the next start."""
    from openassay.cli.serve import run_server

    run_server({"host": host, "port": port, "public_url": public_url})


# `openassay watch`, with its options.


def watch(thread: ThreadId, json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Read the sources of a report again: which statements rest on passages that have changed or vanished?"""
    from openassay.cli.evidence import show_changes

    show_changes(thread, json=json)


# `openassay worker`, with its options.


def worker(
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="Runs it is at together.", min=1, max=200)
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Stop as soon as nothing waits and nothing is at work.")
    ] = False,
) -> None:
    """Work on runs that a server has put in line, until it is stopped; others go on with what was under way."""
    from openassay.cli.serve import run_worker

    run_worker(concurrency, until_idle=until_idle)


app = typer.Typer(
    name="openassay",
    help="Research a question; every sentence of the answer opens the passage that supports it.",
    epilog='Start with: openassay research "How did X change?" --docs FOLDER',
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

        typer.echo(f"openassay {installed('openassay')}")
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
    from openassay.cli.research import CommandOptions, run_research

    run_research(
        question,
        CommandOptions(
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
    from openassay.cli.research import CommandOptions, run_research

    run_research(
        question,
        CommandOptions(
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
    from openassay.cli.research import CommandOptions, show_estimate

    show_estimate(
        question, CommandOptions(docs=docs, depth=depth, source=source, web=web, model=model, budget=budget, json=json)
    )


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
    from openassay.cli.chat import run_chat
    from openassay.cli.research import CommandOptions

    run_chat(
        CommandOptions(docs=docs, source=source, web=web, model=model, budget=budget, depth=depth, mode=mode), thread
    )


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
    from openassay.cli.research import CommandOptions, restore_journal, resume_thread
    from openassay.errors import UsageError

    wishes = CommandOptions(out=out, json=json, quiet=quiet, detach=detach)
    if bool(thread) + (journal is not None) + every != 1:
        raise UsageError("give one of THREAD, --from DIR and --all, and only one", help="See: openassay threads")
    if every:
        from openassay.cli.resume import resume_all

        resume_all()
    elif journal is not None:
        restore_journal(journal, wishes)
    else:
        resume_thread(thread, wishes, queued=queued)


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
    from openassay.cli.research import set_mode

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
    from openassay.cli.research import show_consequences, veto_sources

    if what_if:
        show_consequences(thread, sources, json)
    else:
        veto_sources(thread, sources, json=json, out=out, quiet=quiet)


@app.command()
def company(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name, a ticker, or a description.")],
    json: Json = False,
) -> None:
    """Which company a name, a ticker or a description stands for."""
    from openassay.cli.index import show_company

    show_company(name, json)


@app.command()
def passage(
    thread: ThreadId, claim: Annotated[str, typer.Argument(metavar="CLAIM", help="A claim's id, such as C3.")]
) -> None:
    """Show the passages behind a statement in context."""
    from openassay.cli.threads import show_passages

    show_passages(thread, claim)


@app.command()
def document(
    hash: Annotated[str, typer.Argument(metavar="HASH", help="The snapshot's sha256, or the start of it.")],
) -> None:
    """Print a snapshot's text exactly as it was read."""
    from openassay.cli.threads import print_document

    print_document(hash)


@app.command()
def sources(json: Json = False) -> None:
    """Every source: whether it can be asked, what it serves, its price and its limits."""
    from openassay.cli.index import list_sources

    list_sources(json)


@app.command()
def fetch(
    url: Annotated[str, typer.Argument(metavar="URL", help="A page of the open web.")], json: Json = False
) -> None:
    """Read one page as research would, and say why if it cannot be read."""
    from openassay.cli.index import fetch_page

    fetch_page(url, json)


@app.command()
def graph() -> None:
    """Draw the research graph as Mermaid."""
    from openassay.graph import draw_mermaid

    typer.echo(draw_mermaid())


@app.command()
def doctor(json: Json = False) -> None:
    """Check what this machine has and lacks."""
    from openassay.cli.admin import run_doctor

    run_doctor(json)
