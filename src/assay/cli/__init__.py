"""The command line. Answers go to stdout, progress and errors to stderr.

Exit codes: 0 complete · 1 error · 2 usage · 3 a question is open · 4 budget refused · 5 partial report or no data ·
130 stopped by Ctrl-C.
"""

import sys


def main() -> None:
    """Run the command; an error made on purpose is one line and a hint, never a traceback."""
    import logging

    from assay.cli.app import app
    from assay.errors import AssayError

    logging.basicConfig(format="assay: %(message)s", stream=sys.stderr, level=logging.WARNING)
    try:
        app()
    except AssayError as error:
        print(f"assay: {error.message}", file=sys.stderr)  # noqa: T201
        if error.help:
            print(f"       {error.help}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone, as in `assay research ... | head`.
        sys.stderr.close()
        sys.exit(0)
