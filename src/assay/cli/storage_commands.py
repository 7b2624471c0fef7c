"""`assay storage ...`: whether what is stored is what was written, and with which key."""

from typing import Annotated

import typer

storage_app = typer.Typer(help="Check what is stored, and seal it with a key.", rich_markup_mode=None)


@storage_app.command("check")
def storage_check() -> None:
    """Look into every row of every thread; what is wrong is named, and the exit code is 1."""
    from assay.cli.storage import check

    check(None)


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
    """Seal everything with ASSAY_STORAGE_KEY; the key before it, if there was one, is ASSAY_STORAGE_KEY_BEFORE."""
    from assay.cli.storage import seal

    seal(encrypt, trust_unsealed=trust_unsealed)
