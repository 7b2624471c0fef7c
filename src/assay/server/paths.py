"""Where files stand on the server's machine is not told: of a document only its name is."""

import re
from collections.abc import Callable
from typing import Any

from assay.model.event import Event

_FILE = re.compile(r"file://[^\s\"'<>]*/")
_BARE = re.compile(r"(?<![^\s\"'(“‘])/(?:[^\s/][^/\n\"'<>:]*/)+(?=[^\s/])")  # a path, and no part of an address
_OF_FILES = frozenset({"run", "skip", "error", "notice"})  # kinds of events that may speak of files


def hidden(value: Any) -> Any:
    """Plain data with every file's address cut down to its name."""
    return _mapped(value, lambda text: _FILE.sub("file:", text) if "file://" in text else text)


def unplaced(value: Any) -> Any:
    """As `hidden`, and without the folders of paths that are no addresses; for what is said of a run, and not for what
    sources say, which stays as it is."""
    return _mapped(hidden(value), lambda text: _BARE.sub("", text) if "/" in text else text)


def shown_event(event: Event) -> Event:
    data = unplaced(event.data) if event.kind in _OF_FILES else hidden(event.data)
    return event.model_copy(update={"data": data})


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(held, change) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(held, change) for held in value]
    return value
