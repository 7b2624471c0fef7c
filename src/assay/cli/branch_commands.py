"""`assay history`, `fork`, `replay`, `branches` and `diff`: going back, and going on differently."""

from typing import Annotated

import typer

from assay.cli.parameters import (
    DepthName,
    Docs,
    Json,
    Model,
    Out,
    Quiet,
    Source,
    StyleName,
    ThreadId,
    Usd,
    Web,
    Yes,
)

At = Annotated[
    str, typer.Option("--at", metavar="CHECKPOINT", help="A number of `assay history`, or the start of an id.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print it as JSON.")]


def history(
    thread: ThreadId,
    everything: Annotated[bool, typer.Option("--all", help="From the beginning on, not only the last 30.")] = False,
    json: AsJson = False,
) -> None:
    """Every moment of a thread that can be gone back to: what was done, what had come of it, what it had cost."""
    from assay.cli.branches import history

    history(thread, everything=everything, json=json)


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
    from assay.cli.branches import Fork, fork

    given = Fork(
        question=question, plan=plan, deliverable=deliverable, style=style, words=words, source=source, docs=docs,
        web=web, without=without, depth=depth, model=model, budget=budget,
    )  # fmt: skip
    fork(thread, at, given, yes=yes, out=out, json=json, quiet=quiet)


def replay(
    thread: ThreadId, at: At, yes: Yes = False, out: Out = None, json: Json = False, quiet: Quiet = False
) -> None:
    """Go on from a moment of a thread once more, on a thread of its own, with nothing changed."""
    from assay.cli.branches import Fork, fork

    fork(thread, at, Fork(), yes=yes, out=out, json=json, quiet=quiet)


def branches(thread: ThreadId, json: AsJson = False) -> None:
    """The thread a thread was forked from, and all that were forked from it, as a tree."""
    from assay.cli.branches import branches

    branches(thread, json=json)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A thread, or THREAD@CHECKPOINT for the draft of a moment.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The one it is held against.")],
    json: AsJson = False,
) -> None:
    """What B states that A does not, and the other way round, with the sources on both sides."""
    from assay.cli.branches import diff

    diff(a, b, json=json)
