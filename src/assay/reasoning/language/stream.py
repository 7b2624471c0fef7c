"""The words of a draft while its JSON is still arriving."""

import time
from collections.abc import Callable

from assay.ports import Emit, OnText

BATCH_CHARACTERS, BATCH_SECONDS = 40, 0.1

_ESCAPES = {"n": " ", "t": " ", "r": " ", "b": "", "f": ""}


class TextValues:
    """Takes a JSON text in pieces of any size and gives back the values of one key, a line each."""

    def __init__(self, key: str = "text") -> None:
        self._key = key
        self._string: list[str] | None = None  # the string being read
        self._wanted = False  # whether it is a value of the key
        self._name = ""  # the last string, which may be a key
        self._after_colon = False
        self._escape = ""
        self._high = ""  # the first half of a character given as two escapes

    def feed(self, piece: str) -> str:
        return "".join(map(self._next, piece))

    def _next(self, character: str) -> str:
        if self._string is None:
            self._outside(character)
            return ""
        if self._escape or character == "\\":
            return self._said(self._unescaped(character))
        if character == '"':
            return self._closed()
        return self._said(character)

    def _outside(self, character: str) -> None:
        if character == '"':
            self._string, self._wanted = [], self._after_colon and self._name == self._key
        if not character.isspace():
            self._after_colon = character == ":"

    def _closed(self) -> str:
        wanted, self._name = self._wanted, "" if self._wanted else "".join(self._string or ())
        self._string, self._wanted, self._high = None, False, ""
        return "\n" if wanted else ""

    def _said(self, text: str) -> str:
        if self._wanted:
            return text
        if self._string is not None:
            self._string.append(text)
        return ""

    def _unescaped(self, character: str) -> str:
        self._escape += character
        if len(self._escape) == 1 or (self._escape[1] == "u" and len(self._escape) < 6):
            return ""
        escape, self._escape = self._escape, ""
        return self._code(escape[2:]) if escape[1] == "u" else _ESCAPES.get(escape[1], escape[1])

    def _code(self, digits: str) -> str:
        try:
            code = int(digits, 16)
        except ValueError:
            return "\ufffd"
        if 0xD800 <= code < 0xDC00:
            self._high = digits
            return ""
        if 0xDC00 <= code < 0xE000:
            high, self._high = self._high, ""
            return chr(0x10000 + (int(high, 16) - 0xD800) * 0x400 + code - 0xDC00) if high else "\ufffd"
        return chr(code)


class Tokens:
    """Sends what a draft says to whoever watches, in batches."""

    def __init__(self, emit: Emit, now: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._now = now
        self._waiting = ""
        self._sent = now()
        self._told = self._again = False

    def start(self) -> OnText:
        """One answer; a second attempt begins a JSON of its own, and what the first has said is void."""
        values = TextValues()
        self._waiting, self._again = "", self._told

        async def on_text(piece: str) -> None:
            self._waiting += values.feed(piece)
            if len(self._waiting) >= BATCH_CHARACTERS or self._now() - self._sent >= BATCH_SECONDS:
                await self.flush()

        return on_text

    async def flush(self) -> None:
        text, self._waiting, self._sent = self._waiting, "", self._now()
        if text:
            again = {"again": True} if self._again else {}
            self._told, self._again = True, False
            await self._emit("token", "write", {"text": text, "draft": True, **again})
