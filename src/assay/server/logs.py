"""The server's log: one JSON object a line. Every line names the request, and the run, that it belongs to.

A request is told without its query and its headers: either may hold a secret.
"""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from queue import SimpleQueue
from threading import Thread
from time import sleep
from typing import TextIO

from assay.deps import working
from assay.model.event import Event, RunStatus
from assay.server.requests import request_id
from assay.settings import Settings
from assay.text.redaction import Redaction, redaction

LOGGERS = ("assay", "uvicorn")  # whose level is settings.log_level
MOST_LINES = 10_000  # that wait to be written; a reader of the log who sleeps must not stop the server
GATHER = 0.02  # seconds lines are waited for: to wake the writer for each took as long as writing it down
CLOSING = 2.0  # seconds the last lines are given
_requests = logging.getLogger("assay.requests")
_runs = logging.getLogger("assay.runs")


@contextmanager
def structured(settings: Settings, stream: TextIO | None = None) -> Iterator[None]:
    """What is logged in here goes to `stream`, else to stderr."""
    handler = Handover(stream or sys.stderr)
    handler.setFormatter(Lines(redaction(settings)))
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger, logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(settings.log_level.upper())
        logger.propagate = False
    try:
        yield
    finally:
        for logger, level, propagated in before:
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagated
        handler.close()


class Handover(logging.Handler):
    """Lines are written by a thread of its own, as many at once as there are: nobody waits for a disk or a pipe. Those
    for which there is no room are counted, and told when there is."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: SimpleQueue[str | None] = SimpleQueue()  # None: the end
        self._lost = 0
        self._writer = Thread(target=self._write, name="log", daemon=True)
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        if self._lines.qsize() >= MOST_LINES:
            self._lost += 1
            return
        try:
            self._lines.put(self.format(record))
            if self._lost:
                lost, self._lost = self._lost, 0
                self.handle(_lost(lost))
        except Exception:  # noqa: BLE001  # a line that cannot be written down never takes its caller with it
            self.handleError(record)

    def close(self) -> None:
        """What nobody reads in time is lost: a pipe that is full must not keep the server from ending."""
        self._lines.put(None)
        self._writer.join(CLOSING)
        super().close()

    def _write(self) -> None:
        lines: list[str | None] = []
        while None not in lines:
            lines = [self._lines.get()]
            sleep(GATHER)
            while not self._lines.empty():
                lines.append(self._lines.get())
            self._stream.write("".join(f"{line}\n" for line in lines if line is not None))
            self._stream.flush()


def _lost(lines: int) -> logging.LogRecord:
    text = f"{lines:,} lines of the log were lost: nobody read them"
    return logging.makeLogRecord({"name": "assay", "levelno": logging.WARNING, "levelname": "WARNING", "msg": text})


class Lines(logging.Formatter):
    def __init__(self, redaction: Redaction) -> None:
        super().__init__()
        self._redaction = redaction

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_whose(),
            **getattr(record, "told", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        elif record.exc_text:
            line["trace"] = record.exc_text
        # Of the line as a whole: that is a third of the work, and nothing that is taken out holds a quote.
        return self._redaction.text(
            json.dumps({name: value for name, value in line.items() if value != ""}, default=str)
        )


def _whose() -> dict[str, str]:
    """A run goes on long after the request that began it."""
    run = working.get()
    if run is None:
        return {"request": request_id.get()}
    return {"request": request_id.get() or run.request, "thread": run.thread, "run": run.run}


def wants(status: int) -> bool:
    """Whether a request that was answered so is told."""
    return _requests.isEnabledFor(_level(status))


def request(status: int, **told: object) -> None:
    _requests.log(_level(status), "request", extra={"told": {**told, "status": status}})


def _level(status: int) -> int:
    return logging.WARNING if status >= HTTPStatus.INTERNAL_SERVER_ERROR else logging.INFO


def event(event: Event) -> None:
    """A run that came to another status; the rest is in the run's own events."""
    if event.kind == "run":
        status = event.data.get("status")
        level = logging.WARNING if status == RunStatus.FAILED else logging.INFO
        if _runs.isEnabledFor(level):
            told = {"run": event.run, "status": status, "error": event.data.get("error") or ""}
            _runs.log(level, "run", extra={"told": told})
