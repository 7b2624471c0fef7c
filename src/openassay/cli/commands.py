"""`openassay threads ...`: what is kept."""

from pathlib import Path
from typing import Annotated

import typer

from openassay.cli.options import DepthName, Docs, Json, Model, Out, Quiet, Source, StyleName, ThreadId, Usd, Web, Yes

# `openassay history`, `fork`, `replay`, `branches` and `diff`: going back, and going on differently.

At = Annotated[
    str, typer.Option("--at", metavar="CHECKPOINT", help="A number of `openassay history`, or the start of an id.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


def history(
    thread: ThreadId,
    everything: Annotated[bool, typer.Option("--all", help="From the beginning on, not only the last 30.")] = False,
    json: AsJson = False,
) -> None:
    """Every moment of a thread that can be gone back to: what was done, what had come of it, what it had cost."""
    from openassay.cli.branches import show_history

    show_history(thread, everything=everything, json=json)


def fork(
    thread: ThreadId,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="CHECKPOINT", help="From this moment; else from where the change takes effect."),
    ] = None,
    question: Annotated[str | None, typer.Option(metavar="TEXT", help="Ask this in place of the question.")] = None,
    plan: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Edits of the plan, or a whole one, as JSON; - reads it from stdin."),
    ] = None,
    deliverable: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What you want to have, as in: a one-page briefing.")
    ] = None,
    style: Annotated[StyleName | None, typer.Option(help="How the report is written.")] = None,
    words: Annotated[
        int | None, typer.Option(metavar="N", help="Target length of the report.", min=50, max=20_000)
    ] = None,
    source: Source = None,
    docs: Docs = None,
    web: Web = False,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE", help="Do without it: S3, an address, or a host; may be repeated."),
    ] = None,
    depth: Annotated[DepthName | None, typer.Option(help="How far to go.")] = None,
    model: Model = None,
    budget: Usd = None,
    yes: Yes = False,
    out: Out = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on from a moment of a thread with something changed, on a thread of its own. Nothing paid for before is paid
    for again, and the thread itself stays as it is."""
    from openassay.cli.branches import ForkOptions, fork_thread

    given = ForkOptions(
        question=question, plan=plan, deliverable=deliverable, style=style, words=words, source=source, docs=docs,
        web=web, without=without, depth=depth, model=model, budget=budget,
    )  # fmt: skip
    fork_thread(thread, at, given, yes=yes, out=out, json=json, quiet=quiet)


def replay(
    thread: ThreadId, at: At, yes: Yes = False, out: Out = None, json: Json = False, quiet: Quiet = False
) -> None:
    """Go on from a moment of a thread once more, on a thread of its own, with nothing changed."""
    from openassay.cli.branches import ForkOptions, fork_thread

    fork_thread(thread, at, ForkOptions(), yes=yes, out=out, json=json, quiet=quiet)


def branches(thread: ThreadId, json: AsJson = False) -> None:
    """The thread a thread was forked from, and all that were forked from it, as a tree."""
    from openassay.cli.branches import show_branches

    show_branches(thread, json=json)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A thread, or THREAD@CHECKPOINT for the draft of a moment.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The one it is held against.")],
    json: AsJson = False,
) -> None:
    """What B states that A does not, and the other way round, with the sources on both sides."""
    from openassay.cli.branches import show_diff

    show_diff(a, b, json=json)


# `openassay db ...`: the database everything is kept in.

db_app = typer.Typer(
    help="The database: how it stands, bringing it up to date, and moving into it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@db_app.command("status")
def db_status(json: Json = False) -> None:
    """Which database, its version, what is missing, the size of its tables, and who is connected. Changes nothing."""
    from openassay.cli.admin import show_database_status

    show_database_status(json)


@db_app.command("migrate")
def db_migrate() -> None:
    """Bring it up to this version, all or nothing: before workers and servers of this version are started."""
    from openassay.cli.admin import migrate_database

    migrate_database()


@db_app.command("copy")
def db_copy(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The data directory of the machine to copy from, which stays.")
    ],
) -> None:
    """Everything one machine has kept so far, into the empty PostgreSQL database of the settings: all or nothing."""
    from openassay.cli.admin import copy_database

    copy_database(folder)


# `openassay memory ...`: what is remembered of a person.

memory_app = typer.Typer(
    help="What is remembered of you across threads: show, change and forget it.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@memory_app.callback()
def memory(context: typer.Context, json: Json = False) -> None:
    if context.invoked_subcommand is None:
        from openassay.cli.memory import show_memory

        show_memory(json)


@memory_app.command("set")
def memory_set(
    key: Annotated[str, typer.Argument(metavar="KEY", help="style, words, prefer, avoid, region or language.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Several hosts or sources with commas between them.")],
) -> None:
    """Remember a preference."""
    from openassay.cli.memory import set_preference

    set_preference(key, value)


@memory_app.command("remember")
def memory_remember(text: Annotated[str, typer.Argument(metavar="TEXT")]) -> None:
    """Remember a fact, such as "We report in euros"."""
    from openassay.cli.memory import remember_fact

    remember_fact(text)


@memory_app.command("edit")
def memory_edit(
    id: Annotated[str, typer.Argument(metavar="ID", help="Of a fact, such as M2.")],
    text: Annotated[str, typer.Argument(metavar="TEXT")],
) -> None:
    """Put a fact in other words."""
    from openassay.cli.memory import edit_fact

    edit_fact(id, text)


@memory_app.command("forget")
def memory_forget(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="A fact's id, a preference's name, or all.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether all is meant.")] = False,
) -> None:
    """Forget it for good."""
    from openassay.cli.memory import forget_entry

    forget_entry(what, yes=yes)


# `openassay review ...`: what waits for a person.

review_app = typer.Typer(
    help="What waits for a person: list, show and answer it.", invoke_without_command=True, rich_markup_mode=None
)


@review_app.callback()
def review(context: typer.Context, json: Json = False) -> None:
    if context.invoked_subcommand is None:
        from openassay.cli.review import list_reviews

        list_reviews(json)


@review_app.command("show")
def review_show(thread: ThreadId, json: Json = False) -> None:
    """Everything there is to decide by, and what an answer looks like."""
    from openassay.cli.review import show_review

    show_review(thread, json)


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
    from openassay.cli.review import answer_review

    answer_review(
        thread, " ".join(words), edits=edits, comment=comment, question_id=question, json=json, quiet=quiet, out=out
    )


@review_app.command("timers")
def review_timers(
    once: Annotated[bool, typer.Option("--once", help="Settle what is overdue, and leave.")] = False,
) -> None:
    """Answer by the clock what nobody answers in time, until Ctrl-C."""
    from openassay.cli.review import run_timers

    run_timers(once)


# `openassay storage ...`: whether what is stored is what was written, and with which key.

storage_app = typer.Typer(help="Check what is stored, and seal it with a key.", rich_markup_mode=None)


@storage_app.command("check")
def storage_check() -> None:
    """Look into every row of every thread; what is wrong is named, and the exit code is 1."""
    from openassay.cli.admin import check_storage

    check_storage(None)


@storage_app.command("seal")
def storage_seal(
    encrypt: Annotated[
        bool | None, typer.Option("--encrypt/--no-encrypt", help="Encrypt as well; unless said: as the settings say.")
    ] = None,
    trust_unsealed: Annotated[
        bool,
        typer.Option("--trust-unsealed", help="Seal rows that have no seals, though they may be altered."),
    ] = False,
) -> None:
    """Seal everything with OPENASSAY_STORAGE_KEY; the key before it, if there was one, is
    OPENASSAY_STORAGE_KEY_BEFORE."""
    from openassay.cli.admin import seal_storage

    seal_storage(encrypt, trust_unsealed=trust_unsealed)


threads_app = typer.Typer(help="List, show and manage threads.", invoke_without_command=True, rich_markup_mode=None)
ThreadIds = Annotated[list[str], typer.Argument(metavar="THREAD...", help="The threads' ids.")]


@threads_app.callback()
def threads(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    active: Annotated[bool, typer.Option("--active", help="Only those at work, or waiting for an answer.")] = False,
    json: Json = False,
) -> None:
    if context.invoked_subcommand is None:
        from openassay.cli.threads import list_threads

        list_threads(limit, active=active, json=json)


@threads_app.command("new")
def threads_new(title: Annotated[str, typer.Argument(metavar="[TITLE]", show_default=False)] = "") -> None:
    """Begin a thread on which nothing is asked yet; prints its id, for --thread."""
    from openassay.cli.threads import create_thread

    create_thread(title)


@threads_app.command("show")
def threads_show(
    thread: ThreadId,
    full: Annotated[bool, typer.Option("--full", help="Leave nothing out.")] = False,
    json: Json = False,
) -> None:
    """A thread with its runs, and its report if there is one; what is long is cut short."""
    from openassay.cli.threads import show_thread

    show_thread(thread, json, full=full)


@threads_app.command("rename")
def threads_rename(thread: ThreadId, title: Annotated[str, typer.Argument(metavar="TITLE")]) -> None:
    """Give a thread another title."""
    from openassay.cli.threads import rename_thread

    rename_thread(thread, title)


@threads_app.command("log")
def threads_log(thread: ThreadId) -> None:
    """Everything that happened in the thread's last run."""
    from openassay.cli.threads import show_log

    show_log(thread)


@threads_app.command("timings")
def threads_timings(
    thread: ThreadId,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="One of its runs; the last unless said.")
    ] = None,
    json: Json = False,
) -> None:
    """Where the time of a run went: its stages, whoever outside was asked, what the caches knew, and its waiting."""
    from openassay.cli.threads import show_timings

    show_timings(thread, run, json=json)


@threads_app.command("delete")
def threads_delete(
    threads: ThreadIds,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether I mean it.")] = False,
) -> None:
    """Delete threads for good, with everything that was said and found; what was spent stays in the books."""
    from openassay.cli.threads import delete_threads

    delete_threads(threads, yes=yes)


@threads_app.command("export")
def threads_export(
    thread: ThreadId,
    out: Annotated[
        Path | None, typer.Option("--out", help="The zip to write; THREAD.zip unless said.", dir_okay=False)
    ] = None,
) -> None:
    """Everything of a thread in one zip: runs, events, report, documents, ledger, journal."""
    from openassay.cli.threads import export_thread

    export_thread(thread, out)


@threads_app.command("check")
def threads_check(thread: Annotated[str, typer.Argument(metavar="[THREAD]", show_default=False)] = "") -> None:
    """Look into every row of a thread, or of all; what is not what was written is named, and the exit code is 1."""
    from openassay.cli.admin import check_storage

    check_storage(thread or None)


@threads_app.command("expire")
def threads_expire() -> None:
    """Delete threads that nobody has touched for persistence.ttl_hours."""
    from openassay.cli.threads import expire_threads

    expire_threads()


@threads_app.command("state")
def threads_state(
    thread: ThreadId,
    at: Annotated[
        str | None, typer.Option("--at", metavar="CHECKPOINT", help="As it was then; see `openassay history`.")
    ] = None,
    json: Json = False,
) -> None:
    """What a thread holds right now: plan, queries, finds, evidence, draft, issues."""
    from openassay.cli.threads import show_state

    show_state(thread, json, at)


# `openassay users ...`: who may use the server, and how much of it.

users_app = typer.Typer(
    help="Who may use the server (openassay serve): people, their tokens and their limits.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, hyphens and underscores.")]
Dollars = Annotated[
    str | None, typer.Option("--usd", metavar="USD", help="The most their runs may cost in a month, or none.")
]
Requests = Annotated[str | None, typer.Option("--requests", metavar="N", help="Requests a minute, or none.")]
Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", help="What the token is good for: read, write, share or metrics; repeat for several."),
]
Expires = Annotated[
    str | None, typer.Option("--expires", metavar="WHEN", help="After 12h, 30d or 8w, or on a date as 2027-01-31.")
]
Label = Annotated[str, typer.Option("--label", metavar="TEXT", help="What it is for, to know it again.")]


@users_app.callback()
def users(context: typer.Context, json: Json = False) -> None:
    if context.invoked_subcommand is None:
        from openassay.cli.users import list_users

        list_users(json)


@users_app.command("list")
def users_list(json: Json = False) -> None:
    """Everybody, with their limits and tokens; of a token its id, never its secret."""
    from openassay.cli.users import list_users

    list_users(json)


@users_app.command("add")
def users_add(
    name: Name,
    usd: Dollars = None,
    requests: Requests = None,
    scope: Scopes = None,
    expires: Expires = None,
    label: Label = "",
    json: Json = False,
) -> None:
    """Add somebody and print a token for them, which is shown this once."""
    from openassay.cli.users import add_user

    add_user(name, usd, requests, scopes=scope, expires=expires, label=label, json=json)


@users_app.command("token")
def users_token(
    name: Name, scope: Scopes = None, expires: Expires = None, label: Label = "", json: Json = False
) -> None:
    """Print another token for somebody, which is shown this once."""
    from openassay.cli.users import issue_token

    issue_token(name, scopes=scope, expires=expires, label=label, json=json)


@users_app.command("revoke")
def users_revoke(id: Annotated[str, typer.Argument(metavar="TOKEN_ID", help="As in: openassay users list")]) -> None:
    """Make a token worthless, at once and for good."""
    from openassay.cli.users import revoke_token

    revoke_token(id)


@users_app.command("limit")
def users_limit(name: Name, usd: Dollars = None, requests: Requests = None) -> None:
    """Change what somebody may have; none leaves it to the settings."""
    from openassay.cli.users import change_limits

    change_limits(name, usd, requests)


@users_app.command("disable")
def users_disable(name: Name) -> None:
    """Let somebody in no more, whatever token they have; their threads stay."""
    from openassay.cli.users import change_access

    change_access(name, disabled=True)


@users_app.command("enable")
def users_enable(name: Name) -> None:
    """Let somebody in again."""
    from openassay.cli.users import change_access

    change_access(name, disabled=False)
