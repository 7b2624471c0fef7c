"""`--detach`: a run in a process of its own, which goes on when the terminal is closed."""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

import typer

from assay.cli.screen import tell
from assay.errors import StorageError, UsageError
from assay.model.thread import Run
from assay.settings import Settings
from assay.threads.archive import log_file

if TYPE_CHECKING:
    from assay.cli.research import Wishes


def refuse_without_storage(settings: Settings) -> None:
    if settings.persistence.backend == "memory":
        raise UsageError(
            "a run of another process cannot be kept in the memory of this one",
            help="Leave out --detach, or set persistence.backend.",
        )


def launch(settings: Settings, run: Run, wishes: "Wishes") -> None:
    """Start the process, and say how to follow, stop and read what it does. Its own words go to a log, but not where
    what is stored is encrypted: they tell of it in the clear."""
    log = None if settings.persistence.encrypt else log_file(settings, run.thread)
    command = [sys.executable, "-m", "assay", "resume", run.thread, "--queued"]
    command += ["--out", str(wishes.out.absolute())] if wishes.out else []
    command += ["--json"] if wishes.json else []
    try:
        with _opened(log) as file:
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)
    except OSError as error:
        raise StorageError(
            f"a process of its own could not be started: {error.strerror}",
            help=f"The question is kept; go on with: assay resume {run.thread}",
        ) from error
    _tell_how(run, log)


def _opened(log: Path | None) -> IO[bytes]:
    if log is None:
        return open(os.devnull, "wb")
    log.parent.mkdir(parents=True, exist_ok=True)
    return log.open("ab")


def _tell_how(run: Run, log: Path | None) -> None:
    typer.echo(run.thread)
    tell("It works in a process of its own.")
    for what, command in (
        ("follow it", f"assay follow {run.thread}"), ("stop it", f"assay stop {run.thread}"),
        ("read it when it is done", f"assay threads show {run.thread}"),
        ("what it says", str(log or "is not written down, since storage is encrypted")),
    ):  # fmt: skip
        tell(f"  {what + ':':24} {command}")
