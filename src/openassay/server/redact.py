"""Where files stand on the server's machine is not told: of a document only its name is."""

import re
from collections.abc import Callable
from typing import Any

from openassay.export.report import Report
from openassay.models.event import Event
from openassay.nodes.approve import REVIEWER_PREFIX
from openassay.nodes.report import CONSIDERATION_PREFIX
from openassay.text.redaction import Redactor

_FILE = re.compile(r"file://[^\s\"'<>]*/")
_BARE = re.compile(r"(?<![^\s\"'(“‘])/(?:[^\s/][^/\n\"'<>:]*/)+(?=[^\s/])")  # a path, and no part of an address
_OF_FILES = frozenset({"run", "skip", "error", "notice"})  # kinds of events that may speak of files


def hide_file_urls(value: Any) -> Any:
    """Plain data with every file's address cut down to its name."""
    return _map_text(value, lambda text: _FILE.sub("file:", text) if "file://" in text else text)


def hide_paths(value: Any) -> Any:
    """As `hidden`, and without the folders of paths that are no addresses; for what is said of a run, and not for what
    sources say, which stays as it is."""
    return _map_text(hide_file_urls(value), lambda text: _BARE.sub("", text) if "/" in text else text)


def redact_event(event: Event) -> Event:
    data = hide_paths(event.data) if event.kind in _OF_FILES else hide_file_urls(event.data)
    return event.model_copy(update={"data": data})


def _map_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _map_text(held, change) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_map_text(held, change) for held in value]
    return value


# A thread's report as it leaves the server.

_OF_THE_PERSON = (CONSIDERATION_PREFIX, REVIEWER_PREFIX)


def redact_report(report: Report, redaction: Redactor) -> Report:
    """Of files on the server's disk, only their names; of secrets nothing. Before it is written out: Markdown escapes
    what a secret would be known by."""
    return Report.model_validate(redaction.redact_data(hide_file_urls(report.plain())))


def redact_report_for_link(report: Report, redaction: Redactor) -> Report:
    """For whoever has a link: nothing of how it was asked and looked for, and nothing of the person who did."""
    shown = redact_report(report, redaction)
    made = shown.provenance.model_copy(update={"queries": (), "checkpoints": ()})
    notices = tuple(notice for notice in shown.notices if not notice.startswith(_OF_THE_PERSON))
    return shown.model_copy(update={"plan": None, "errors": (), "notices": notices, "provenance": made})
