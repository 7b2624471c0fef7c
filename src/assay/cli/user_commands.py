"""`assay users ...`: who may use the server, and how much of it."""

from typing import Annotated

import typer

from assay.cli.parameters import Json

users_app = typer.Typer(
    help="Who may use the server (assay serve): people, their tokens and their limits.",
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
        from assay.cli.users import listing

        listing(json)


@users_app.command("list")
def users_list(json: Json = False) -> None:
    """Everybody, with their limits and tokens; of a token its id, never its secret."""
    from assay.cli.users import listing

    listing(json)


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
    from assay.cli.users import add

    add(name, usd, requests, scopes=scope, expires=expires, label=label, json=json)


@users_app.command("token")
def users_token(
    name: Name, scope: Scopes = None, expires: Expires = None, label: Label = "", json: Json = False
) -> None:
    """Print another token for somebody, which is shown this once."""
    from assay.cli.users import token

    token(name, scopes=scope, expires=expires, label=label, json=json)


@users_app.command("revoke")
def users_revoke(id: Annotated[str, typer.Argument(metavar="TOKEN_ID", help="As in: assay users list")]) -> None:
    """Make a token worthless, at once and for good."""
    from assay.cli.users import revoke

    revoke(id)


@users_app.command("limit")
def users_limit(name: Name, usd: Dollars = None, requests: Requests = None) -> None:
    """Change what somebody may have; none leaves it to the settings."""
    from assay.cli.users import limit

    limit(name, usd, requests)


@users_app.command("disable")
def users_disable(name: Name) -> None:
    """Let somebody in no more, whatever token they have; their threads stay."""
    from assay.cli.users import set_disabled

    set_disabled(name, disabled=True)


@users_app.command("enable")
def users_enable(name: Name) -> None:
    """Let somebody in again."""
    from assay.cli.users import set_disabled

    set_disabled(name, disabled=False)
