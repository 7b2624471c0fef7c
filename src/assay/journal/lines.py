"""Plain data as one line of JSON, or a file of it, with a seal at its end.

A seal is over the place of what it stands on, the seal before it where there is one, and every byte up to itself.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

from assay.errors import IntegrityError

Plain = dict[str, Any]

ALTERED = "It was altered or damaged. Take another copy of the folder; what is in the database is not touched."
_ENCRYPTED = "encrypted"
_encode = json.JSONEncoder(ensure_ascii=False).encode
_END = re.compile(rb', "seal": "([0-9a-f]{64})"}\n\Z')
_HALVES = re.compile("[\ud800-\udfff]")  # of surrogate pairs: no file in UTF-8 can hold one


class Sealing(Protocol):
    """How seals are made, and how what is stored is hidden (storage.seals.Seals)."""

    key_id: str
    encrypts: bool

    def seal_bytes(self, content: bytes) -> str: ...

    def hidden(self, place: str, value: Any) -> Any: ...

    def shown(self, place: str, value: Any) -> Any: ...


def sealed(
    seals: Sealing,
    place: str,
    content: Mapping[str, Any],
    *,
    before: str = "",
    clear: Mapping[str, Any] | None = None,
    levels: int = 0,
) -> tuple[bytes, str]:
    """The bytes to be written, and the seal they end with. `clear` stays readable where the rest is encrypted."""
    text = written({**(clear or {}), **content}, levels)
    if seals.encrypts:
        text = written({**(clear or {}), _ENCRYPTED: seals.hidden(place, written(content))})
    body = text.removesuffix("}").rstrip().encode()
    seal = seals.seal_bytes(_bound(place, before) + body)
    return body + f', "seal": "{seal}"}}\n'.encode(), seal


def opened(seals: Sealing, place: str, line: bytes, *, before: str = "") -> tuple[Plain, str]:
    """The content, and its seal. IntegrityError unless both are what was written there."""
    end = _END.search(line)
    if end is None:
        raise broken(place)
    body, seal = line[: end.start()], end[1].decode()
    if seals.seal_bytes(_bound(place, before) + body) != seal:
        raise broken(place)
    content = _read(place, body + b"}")
    if _ENCRYPTED in content and not seals.encrypts:
        raise IntegrityError(
            f"{place} is encrypted", help="Set persistence.encrypt, with the key it was made with.", place=place
        )
    if seals.encrypts:
        content |= _read(place, seals.shown(place, content.pop(_ENCRYPTED, "")))
    return content, seal


def written(content: Mapping[str, Any], levels: int = 0) -> str:
    """On one line, or with the keys of so many levels on lines of their own."""
    text = _spread(content, levels)
    return _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _spread(value: Any, levels: int, margin: str = "\n") -> str:
    """Only what holds more than plain values is laid out: the indentation of `json` is made in Python, twelve times as
    slow."""
    if not levels or not isinstance(value, dict) or not any(isinstance(held, dict | list) for held in value.values()):
        return _encode(value)
    inner = f"{margin} "
    lines = (f"{_encode(str(key))}: {_spread(held, levels - 1, inner)}" for key, held in value.items())
    return "{" + inner + f",{inner}".join(lines) + margin + "}"


def broken(place: str, why: str = "is not what was written") -> IntegrityError:
    return IntegrityError(f"{place} {why}", help=ALTERED, place=place)


def _read(place: str, text: str | bytes) -> Plain:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise broken(place) from error
    if not isinstance(content, dict):
        raise broken(place)
    return content


def _bound(place: str, before: str) -> bytes:
    return f"{place}\n{before}\n".encode()
