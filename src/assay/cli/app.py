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
review_app = typer.Typer(
    help="What waits for a person: list, show and answer it.", invoke_without_command=True, rich_markup_mode=None
)
app.add_typer(review_app, name="review")
memory_app = typer.Typer(
    help="What is remembered of you across threads: show, change and forget it.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
app.add_typer(memory_app, name="memory")

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
Ask = Annotated[
    bool,
    typer.Option("--ask", help="Leave questions open for `assay review` where there is no terminal."),
]
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
    ask: Ask = False,
    quiet: Quiet = False,
) -> None:
    """Research a question and print a cited report."""
    from assay.cli.research import Wishes, research

    research(
        question,
        Wishes(
            docs=docs, depth=depth, mode=mode, style=style, words=words, source=source, web=web, model=model,
            budget=budget, context=context, domains=domain, thread=thread, out=out, json=json, yes=yes, ask=ask,
            quiet=quiet,
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
) -> None:
    """Ask for a short answer (depth quick)."""
    from assay.cli.research import Wishes, research

    research(
        question,
        Wishes(
            docs=docs, depth="quick", source=source, web=web, model=model, budget=budget, thread=thread, out=out,
            json=json, yes=yes, ask=ask, quiet=quiet,
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


@threads_app.command("state")
def threads_state(thread: ThreadId, json: Json = False) -> None:
    """What a thread holds right now: plan, queries, finds, evidence, draft, issues."""
    from assay.cli.threads import state

    state(thread, json)


@app.command()
def mode(thread: ThreadId, mode: Annotated[ModeName, typer.Argument(help="auto goes ahead, plan asks first.")]) -> None:
    """Change a thread's mode, at once: open planning questions are dropped when it turns to auto."""
    from assay.cli.mode import set_mode

    set_mode(thread, mode)


@review_app.callback()
def review(context: typer.Context, json: Json = False) -> None:
    if context.invoked_subcommand is None:
        from assay.cli.review import listing

        listing(json)


@review_app.command("show")
def review_show(thread: ThreadId, json: Json = False) -> None:
    """Everything there is to decide by, and what an answer looks like."""
    from assay.cli.review import show

    show(thread, json)


@review_app.command("answer")
def review_answer(
    thread: ThreadId,
    words: Annotated[
        list[str], typer.Argument(metavar="ANSWER...", help="approve, reject, skip, modify; an option's number; words.")
    ],
    edits: Annotated[
        str | None, typer.Option("--edits", metavar="FILE", help="What to change, as JSON; - reads it from stdin.")
    ] = None,
    comment: Annotated[str, typer.Option("--comment", metavar="TEXT", help="Why.")] = "",
    question: Annotated[
        str | None, typer.Option("--question", metavar="ID", help="Refuse if another question is open by now.")
    ] = None,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer what a thread waits for, and go on with it."""
    from assay.cli.review import answer

    answer(thread, " ".join(words), edits=edits, comment=comment, question_id=question, json=json, quiet=quiet, out=out)


@review_app.command("timers")
def review_timers(
    once: Annotated[bool, typer.Option("--once", help="Settle what is overdue, and leave.")] = False,
) -> None:
    """Answer by the clock what nobody answers in time, until Ctrl-C."""
    from assay.cli.clock import timers

    timers(once)


@memory_app.callback()
def memory(context: typer.Context, json: Json = False) -> None:
    if context.invoked_subcommand is None:
        from assay.cli.memory import show

        show(json)


@memory_app.command("set")
def memory_set(
    key: Annotated[str, typer.Argument(metavar="KEY", help="style, words, prefer, avoid, region or language.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Several hosts or sources with commas between them.")],
) -> None:
    """Remember a preference."""
    from assay.cli.memory import set

    set(key, value)


@memory_app.command("remember")
def memory_remember(text: Annotated[str, typer.Argument(metavar="TEXT")]) -> None:
    """Remember a fact, such as "We report in euros"."""
    from assay.cli.memory import remember

    remember(text)


@memory_app.command("edit")
def memory_edit(
    id: Annotated[str, typer.Argument(metavar="ID", help="Of a fact, such as M2.")],
    text: Annotated[str, typer.Argument(metavar="TEXT")],
) -> None:
    """Put a fact in other words."""
    from assay.cli.memory import edit

    edit(id, text)


@memory_app.command("forget")
def memory_forget(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="A fact's id, a preference's name, or all.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether all is meant.")] = False,
) -> None:
    """Forget it for good."""
    from assay.cli.memory import forget

    forget(what, yes=yes)


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
