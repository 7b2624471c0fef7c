"""`assay serve`, with its options."""

from typing import Annotated

import typer


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
    from assay.cli.serving import serve

    serve({"host": host, "port": port, "public_url": public_url})
