"""The log: one JSON object a line, on a terminal a line for people. Every line names the request, and the run, that it
belongs to. Records of `logging` and events of structlog take the same way.

A request is told without its query and its headers: either may hold a secret.
"""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http import HTTPStatus
from queue import SimpleQueue
from threading import Thread
from time import sleep
from typing import Any, TextIO

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, Processor

from openassay.context import current_run
from openassay.models.event import Event, RunStatus
from openassay.settings import Settings
from openassay.telemetry import request_id, traceparent
from openassay.telemetry.traces import trace_id
from openassay.text.redaction import build_redactor

LOGGERS = ("openassay", "uvicorn", "procrastinate")  # whose level is settings.log_level
MOST_LINES = 10_000  # that wait to be written; a reader of the log who sleeps must not stop the server
GATHER = 0.02  # seconds lines are waited for: to wake the writer for each took as long as writing it down
CLOSING = 2.0  # seconds the last lines are given
_requests = logging.getLogger("openassay.requests")
_runs = logging.getLogger("openassay.runs")


@contextmanager
def configure_logs(settings: Settings, stream: TextIO | None = None, *, worker: str = "") -> Iterator[None]:
    """What is logged in here goes to `stream`, else to stderr. `worker`: the name of this one, if it is one."""
    out = stream or sys.stderr
    handler = BackgroundHandler(out)
    handler.setFormatter(_create_formatter(settings, worker, for_people=out.isatty()))
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger, logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(settings.log_level.upper())
        logger.propagate = False
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    try:
        yield
    finally:
        structlog.reset_defaults()
        for logger, level, propagated in before:
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagated
        handler.close()


class BackgroundHandler(logging.Handler):
    """Lines are written by a thread of its own, as many at once as there are: nobody waits for a disk or a pipe. Those
    for which there is no room are counted, and told when there is."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: SimpleQueue[str | None] = SimpleQueue()  # None: the end
        self._lost = 0
        self._writer = Thread(target=self._write_lines, name="log", daemon=True)
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        if self._lines.qsize() >= MOST_LINES:
            self._lost += 1
            return
        try:
            self._lines.put(self.format(record))
            if self._lost:
                lost, self._lost = self._lost, 0
                self.handle(_make_loss_record(lost))
        except Exception:  # noqa: BLE001  # a line that cannot be written down never takes its caller with it
            self.handleError(record)

    def close(self) -> None:
        """What nobody reads in time is lost: a pipe that is full must not keep the server from ending."""
        self._lines.put(None)
        self._writer.join(CLOSING)
        super().close()

    def _write_lines(self) -> None:
        lines: list[str | None] = []
        while None not in lines:
            lines = [self._lines.get()]
            sleep(GATHER)
            while not self._lines.empty():
                lines.append(self._lines.get())
            with suppress(OSError, ValueError):  # a disk that is full now may not be later; ValueError: it was closed
                self._stream.write("".join(f"{line}\n" for line in lines if line is not None))
                self._stream.flush()


def _make_loss_record(lines: int) -> logging.LogRecord:
    text = f"{lines:,} lines of the log were lost: nobody read them"
    return logging.makeLogRecord({"name": "openassay", "levelno": logging.WARNING, "levelname": "WARNING", "msg": text})


# A line ----------------------------------------------------------------------------------------------


def _create_formatter(settings: Settings, worker: str, *, for_people: bool) -> ProcessorFormatter:
    clean, is_traced = build_redactor(settings), settings.telemetry.traces != "off"

    def line(_: object, __: str, said: EventDict) -> EventDict:
        record: logging.LogRecord = said.pop("_record")
        del said["_from_structlog"]
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": said.pop("event"),
            "worker": worker,
            **_get_run_context(),
            "trace": _get_trace() if is_traced else "",
            **getattr(record, "told", {}),
            **said,
        }
        return {name: value for name, value in told.items() if value != ""}

    def rendered(_: object, __: str, line: EventDict) -> str:
        """Redacted as a whole, which is a third of the work, unless something is escaped: what follows that is no word
        of its own, and no secret would be seen in it."""
        if not for_people and "\\" not in (text := json.dumps(line, default=str)):
            return clean.redact_text(text)
        plain = clean.redact_data({name: _to_plain(value) for name, value in line.items()})
        return _format_for_terminal(plain) if for_people else json.dumps(plain)

    processors: list[Processor] = [
        structlog.processors.format_exc_info,
        line,
        rendered,
    ]
    return ProcessorFormatter(processors=processors, foreign_pre_chain=[_use_clean_traceback])


def _to_plain(value: object) -> object:
    """What can be looked through for secrets."""
    if isinstance(value, dict):
        return {str(name): _to_plain(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(held) for held in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _use_clean_traceback(_: object, __: str, said: EventDict) -> EventDict:
    """An exception that a filter has taken a secret out of is text by now."""
    if text := said["_record"].exc_text:
        said["exception"] = text
        said.pop("exc_info", None)
    return said


def _get_run_context() -> dict[str, str]:
    """A run goes on long after the request that began it."""
    run = current_run.get()
    if run is None:
        return {"request": request_id.get()}
    return {"request": request_id.get() or str(run.options.get("request") or ""), "thread": run.thread, "run": run.id}


def _get_trace() -> str:
    """Where the line belongs in what a collector is told."""
    run = current_run.get()
    return f"{trace_id(run.id):032x}" if run else traceparent.get()[3:35]


def _format_for_terminal(line: dict[str, Any]) -> str:
    """What others have written is shown on a terminal, and not obeyed by it."""
    time, level, message = (line.pop(name) for name in ("time", "level", "message"))
    trace = line.pop("exception", "")
    told = " ".join(f"{name}={value}" for name, value in line.items())
    text = f"{time[11:19]} {level:7} {message}  {told}" + (f"\n{trace}" if trace else "")
    return "".join(
        character if character.isprintable() or character == "\n" else repr(character)[1:-1] for character in text
    )


# What is told ----------------------------------------------------------------------------------------


def should_log_request(status: int) -> bool:
    """Whether a request that was answered so is told."""
    return _requests.isEnabledFor(_choose_level(status))


def log_request(status: int, **told: object) -> None:
    _requests.log(_choose_level(status), "request", extra={"told": {**told, "status": status}})


def _choose_level(status: int) -> int:
    return logging.WARNING if status >= HTTPStatus.INTERNAL_SERVER_ERROR else logging.INFO


def log_event(event: Event) -> None:
    """A run that came to another status; the rest is in the run's own events."""
    if event.kind == "run":
        status = event.data.get("status")
        level = logging.WARNING if status == RunStatus.FAILED else logging.INFO
        if _runs.isEnabledFor(level):
            told = {"run": event.run, "status": status, "error": event.data.get("error") or ""}
            _runs.log(level, "run", extra={"told": told})
