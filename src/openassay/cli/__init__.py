"""The command line. Answers go to stdout, progress and errors to stderr.

Exit codes: 0 complete · 1 error · 2 usage · 3 a question is open · 4 the budget does not allow it ·
5 partial report or no data · 6 a watched passage has changed · 7 one could not be checked · 130 stopped by Ctrl-C.
"""

import contextlib
import gc
import io
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable

from openassay.errors import ConfigurationError, OpenAssayError

STOPPED = 130


# Objects made before those not in use any more are looked for. Nearly all that a command makes stays in use, and at
# Python's 2,000 looking takes an eighth of the 1.8 s of processor time in which everything is imported.
MADE_BEFORE_SEARCH = 50_000


def main() -> None:
    def run() -> None:
        gc.set_threshold(MADE_BEFORE_SEARCH, 20, 50)
        from openassay.cli.app import app

        logging.basicConfig(format="openassay: %(message)s", stream=sys.stderr, level=logging.WARNING)
        app()

    report_errors(run)


def report_errors(command: Callable[[], object]) -> None:
    """Run a command; whatever goes wrong is one line and a hint, never a traceback."""
    # A terminal that cannot show ✓ shows a question mark; a file name that is not UTF-8 is shown escaped.
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "replace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)
    try:
        command()
    except OpenAssayError as error:
        _print_error(error.message, error.help)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone, as in `openassay research ... | head`.
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except Exception as error:  # noqa: BLE001  # the last line of defence
        _print_error(
            f"{type(error).__name__}: {error}",
            "This is a fault in OpenAssay: please report it. OPENASSAY_LOG_LEVEL=debug shows where it happened.",
        )
        from openassay.settings import load

        with contextlib.suppress(ConfigurationError):  # the fault has been reported already
            if load().log_level == "debug":
                traceback.print_exc()
        sys.exit(1)
    finally:
        # From here on Python only waits for threads that end: Ctrl-C shows no traceback of that.
        signal.signal(signal.SIGINT, lambda *_: os._exit(STOPPED))


def _print_error(message: str, help: str) -> None:
    from openassay.cli.screen import to_one_line, wrap_line

    with contextlib.suppress(BrokenPipeError):
        print(wrap_line(f"openassay: {to_one_line(message)}", 7, sys.stderr), file=sys.stderr)  # noqa: T201
        if help:
            print(wrap_line(f"       {to_one_line(help)}", 7, sys.stderr), file=sys.stderr)  # noqa: T201
