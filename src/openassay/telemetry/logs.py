"""The log: one JSON object a line, or a line for people on a terminal, with the request and the run it belongs to.

Records of `logging` and events of structlog are handled alike. A request is logged without its query and its headers:
either may hold a secret.
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
from openassay.telemetry import request_id, trace_id, traceparent
from openassay.text.redaction import build_redactor

LOGGERS = ("openassay", "uvicorn", "procrastinate")  # whose level is settings.log_level
MAX_LINES = 10_000  # that wait to be written; a slow reader of the log must not stop the server
BATCH_SECONDS = 0.02  # for which lines are collected: to wake the writer for each took as long as writing it
CLOSE_SECONDS = 2.0  # that the last lines are given
_requests = logging.getLogger("openassay.requests")
_runs = logging.getLogger("openassay.runs")


@contextmanager
def configure_logs(settings: Settings, stream: TextIO | None = None, *, worker: str = "") -> Iterator[None]:
    """Send what is logged in here to `stream`, else to stderr. `worker` is the name of this process, if it is a
    worker."""
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
    """Writes lines in a thread of its own, as many at once as there are: no caller waits for a disk or a pipe. Lines
    for which there is no room are counted, and the loss is logged when there is.

    Not a QueueListener, whose `stop` would wait forever for a pipe that nobody reads."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._lines: SimpleQueue[str | None] = SimpleQueue()  # None: the end
        self._lost = 0
        self._writer = Thread(target=self._write_lines, name="log", daemon=True)
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        if self._lines.qsize() >= MAX_LINES:
            self._lost += 1
            return
        try:
            self._lines.put(self.format(record))
            if self._lost:
                lost, self._lost = self._lost, 0
                text = f"{lost:,} lines of the log were lost: nobody read them"
                level = {"levelno": logging.WARNING, "levelname": "WARNING"}
                self.handle(logging.makeLogRecord({"name": "openassay", "msg": text, **level}))
        except Exception:  # noqa: BLE001  # a line that cannot be formatted must not fail its caller
            self.handleError(record)

    def close(self) -> None:
        """Write the last lines, but not for long: a full pipe must not keep the server from ending."""
        self._lines.put(None)
        self._writer.join(CLOSE_SECONDS)
        super().close()

    def _write_lines(self) -> None:
        lines: list[str | None] = []
        while None not in lines:
            lines = [self._lines.get()]
            sleep(BATCH_SECONDS)
            while not self._lines.empty():
                lines.append(self._lines.get())
            with suppress(OSError, ValueError):  # a disk that is full now may not be later; ValueError: it was closed
                self._stream.write("".join(f"{line}\n" for line in lines if line is not None))
                self._stream.flush()


def _create_formatter(settings: Settings, worker: str, *, for_people: bool) -> ProcessorFormatter:
    redactor, is_traced = build_redactor(settings), settings.telemetry.traces != "off"

    def keep_redacted_traceback(_: object, __: str, fields: EventDict) -> EventDict:
        """Use the text of an exception that a filter has taken a secret out of."""
        if text := fields["_record"].exc_text:
            fields["exception"] = text
            fields.pop("exc_info", None)
        return fields

    def add_fields(_: object, __: str, fields: EventDict) -> EventDict:
        record: logging.LogRecord = fields.pop("_record")
        del fields["_from_structlog"]
        run, request = current_run.get(), request_id.get()
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": fields.pop("event"),
            "worker": worker,
            "request": request,
        }
        if run is not None:  # which goes on long after the request that began it
            line |= {"request": request or run.options.request, "thread": run.thread, "run": run.id}
        if is_traced:
            line["trace"] = f"{trace_id(run.id):032x}" if run else traceparent.get()[3:35]
        line |= {**getattr(record, "fields", {}), **fields}
        return {name: value for name, value in line.items() if value != ""}

    def render(_: object, __: str, line: EventDict) -> str:
        """Redact a line as a whole, which is a third of the work, unless something is escaped: what follows an escape
        is no word of its own, and no secret would be seen in it."""
        text = json.dumps(line, default=str)
        if not for_people and "\\" not in text:
            return redactor.redact_text(text)
        plain = redactor.redact_data(json.loads(text))
        if not for_people:
            return json.dumps(plain)
        time, level, message = (plain.pop(name) for name in ("time", "level", "message"))
        trace = plain.pop("exception", "")
        shown = " ".join(f"{name}={value}" for name, value in plain.items())
        text = f"{str(time)[11:19]} {level:7} {message}  {shown}" + (f"\n{trace}" if trace else "")
        return "".join(one if one.isprintable() or one == "\n" else repr(one)[1:-1] for one in text)

    processors: list[Processor] = [structlog.processors.format_exc_info, add_fields, render]
    return ProcessorFormatter(processors=processors, foreign_pre_chain=[keep_redacted_traceback])


def log_request(status: int, **fields: object) -> None:
    level = logging.WARNING if status >= HTTPStatus.INTERNAL_SERVER_ERROR else logging.INFO
    _requests.log(level, "request", extra={"fields": {**fields, "status": status}})


def log_event(event: Event) -> None:
    """Log a run that came to another status; the rest is in the run's own events."""
    if event.kind == "run":
        status = event.data.get("status")
        level = logging.WARNING if status == RunStatus.FAILED else logging.INFO
        fields = {"run": event.run, "status": status, "error": event.data.get("error") or ""}
        _runs.log(level, "run", extra={"fields": fields})
