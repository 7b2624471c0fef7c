"""`assay memory ...`: what is remembered of a person."""

from typing import Annotated

import typer

from assay.cli.parameters import Json

memory_app = typer.Typer(
    help="What is remembered of you across threads: show, change and forget it.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


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
