"""Redaction of what leaves the server: of files on its disk only their names are shown."""

import re
from collections.abc import Callable
from typing import Any

from openassay.engine.services import CONSIDERATION_PREFIX, REVIEWER_PREFIX
from openassay.export.report import Report
from openassay.models.event import Event
from openassay.text.redaction import Redactor

_FILE_URL = re.compile(r"file://[^\s\"'<>]*/")
_PATH = re.compile(r"(?<![^\s\"'(“‘])/(?:[^\s/][^/\n\"'<>:]*/)+(?=[^\s/])")  # that is no part of an address
_WITH_PATHS = frozenset({"run", "skip", "error", "notice"})  # kinds of events that may mention files
_PERSONAL_NOTICES = (CONSIDERATION_PREFIX, REVIEWER_PREFIX)


def hide_file_urls(value: Any) -> Any:
    """Return plain data with every file URL cut down to the file's name."""
    return _map_text(value, lambda text: _FILE_URL.sub("file:", text) if "file://" in text else text)


def hide_paths(value: Any) -> Any:
    """Hide the folders of file URLs and of paths. For messages about runs; what sources say stays as it is."""
    return _map_text(hide_file_urls(value), lambda text: _PATH.sub("", text) if "/" in text else text)


def redact_event(event: Event) -> Event:
    data = hide_paths(event.data) if event.kind in _WITH_PATHS else hide_file_urls(event.data)
    return event.model_copy(update={"data": data})


def redact_report(report: Report, redaction: Redactor) -> Report:
    """Hide file URLs and secrets, before it is rendered: Markdown escapes what a secret would be recognised by."""
    return Report.model_validate(redaction.redact_data(hide_file_urls(report.plain())))


def redact_report_for_link(report: Report, redaction: Redactor) -> Report:
    """Redact a report for anyone with a link: without how it was researched, and without the person who asked."""
    shown = redact_report(report, redaction)
    provenance = shown.provenance.model_copy(update={"queries": (), "checkpoints": ()})
    notices = tuple(notice for notice in shown.notices if not notice.startswith(_PERSONAL_NOTICES))
    return shown.model_copy(update={"plan": None, "errors": (), "notices": notices, "provenance": provenance})


def _map_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _map_text(item, change) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_text(item, change) for item in value]
    return value
