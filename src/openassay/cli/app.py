"""The commands. Each stands beside its code and is imported when it is called, so that --help is quick.

Plain help, too: Rich panels cost 0.1 s, and 0.4 s where nothing has been compiled yet.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

if TYPE_CHECKING:
    from typer._click import Command, Context

COMMANDS = {
    "research": ("research:research", "Research a question and print a cited report."),
    "ask": ("research:ask", "Ask for a short answer: research at depth quick."),
    "chat": ("chat:chat", "Have a conversation; follow-up questions keep the subject."),
    "resume": ("research:resume", "Resume a run that was stopped; nothing is done twice."),
    "threads": ("threads:app", "List, show, follow, change, fork, export and delete threads."),
    "review": ("review:app", "List, show and answer what waits for a person."),
    "sources": ("sources:app", "List what can be searched; index folders, fetch pages."),
    "memory": ("memory:app", "Show, change and forget what is remembered about you."),
    "verify": ("evidence:verify", "Check a bundle of evidence again, or open it in a browser."),
    "serve": ("serve:serve", "Serve the web UI and the API until stopped."),
    "worker": ("serve:worker", "Work on queued runs until stopped."),
    "mcp": ("serve:mcp", "Serve OpenAssay's tools to MCP clients."),
    "doctor": ("admin:doctor", "Check what this machine has and lacks."),
    "admin": ("admin:app", "Look after the database, what is stored, and users."),
}


def load_command(name: str) -> Command:
    """Import a command: a group of them, or a function with typer's annotations."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    target = getattr(import_module(f"openassay.cli.{module}"), attribute)
    if not isinstance(target, typer.Typer):
        function, target = target, typer.Typer(add_completion=False, rich_markup_mode=None)
        target.command(name)(function)
    return get_command(target)


class LazyGroup(TyperGroup):
    """A group that knows the names and summaries of its commands, and imports the one that is called."""

    commands: dict[str, Command]

    def list_commands(self, ctx: Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name][1], rich_markup_mode=None)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        if args[0] in COMMANDS:
            self.add_command(load_command(args[0]), args[0])
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="openassay",
    cls=LazyGroup,
    help="Research a question; every sentence of the answer opens the passage that supports it.",
    epilog='Start with: openassay research "How did X change?" --docs FOLDER',
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"openassay {installed('openassay')}")
        raise typer.Exit
