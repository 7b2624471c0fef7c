"""`assay review ...`: what waits for a person."""

from typing import Annotated

import typer

from assay.cli.parameters import Json, Out, Quiet, ThreadId

review_app = typer.Typer(
    help="What waits for a person: list, show and answer it.", invoke_without_command=True, rich_markup_mode=None
)


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
