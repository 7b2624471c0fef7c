"""`assay mcp`: Assay as tools of other programs."""

from typing import Annotated

import typer


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Over HTTP at /mcp, instead of stdin and stdout.")] = False,
    host: Annotated[str | None, typer.Option(help="With --http: where to listen.")] = None,
    port: Annotated[
        int | None, typer.Option(metavar="N", help="With --http: the port; 0 for any that is free.", min=0, max=65_535)
    ] = None,
) -> None:
    """Serve research, search, fetch, verify and threads to MCP clients, such as desktop assistants and editors."""
    from assay.cli.mcp import over_http, over_stdio
    from assay.errors import UsageError

    if not http and (host is not None or port is not None):
        raise UsageError("--host and --port go with --http", help="Without it, stdin and stdout are used.")
    if http:
        over_http(host, port)
    else:
        over_stdio()
