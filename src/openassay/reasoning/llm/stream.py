"""Sends the words of a draft to the people who watch, while its JSON is still arriving."""

import time
from collections.abc import Callable

from openassay.protocols import Emit, OnText

BATCH_CHARACTERS, BATCH_SECONDS = 40, 0.1
_ESCAPES = {"n": " ", "t": " ", "r": " ", "b": "", "f": ""}


class TextValueParser:
    """Takes a JSON text in pieces of any size and returns the values of one key, a line each."""

    def __init__(self, key: str = "text") -> None:
        self._key = key
        self._string: list[str] | None = None  # the string being read
        self._wanted = False  # whether it is a value of the key
        self._name = ""  # the last string, which may be a key
        self._after_colon = False
        self._escape = ""
        self._high: int | None = None  # the first half of a character that is written as two escapes

    def feed(self, piece: str) -> str:
        """Return what the next piece of JSON adds to the values."""
        values = []
        for character in piece:
            if self._string is None:
                if character == '"':
                    self._string, self._wanted = [], self._after_colon and self._name == self._key
                if not character.isspace():
                    self._after_colon = character == ":"
                continue
            if character == '"' and not self._escape:
                values.append("\n" if self._wanted else "")
                self._name = "" if self._wanted else "".join(self._string)
                self._string, self._wanted, self._high = None, False, None
                continue
            text = self._unescape(character) if self._escape or character == "\\" else character
            (values if self._wanted else self._string).append(text)
        return "".join(values)

    def _unescape(self, character: str) -> str:
        self._escape += character
        if len(self._escape) == 1 or (self._escape[1] == "u" and len(self._escape) < 6):
            return ""
        escape, self._escape = self._escape, ""
        if escape[1] != "u":
            return _ESCAPES.get(escape[1], escape[1])
        try:
            code = int(escape[2:], 16)
        except ValueError:
            return "\ufffd"
        if 0xD800 <= code < 0xDC00:
            self._high = code
            return ""
        if 0xDC00 <= code < 0xE000:
            high, self._high = self._high, None
            return "\ufffd" if high is None else chr(0x10000 + (high - 0xD800) * 0x400 + code - 0xDC00)
        return chr(code)


class TokenStream:
    """Emits what a draft says, in batches."""

    def __init__(self, emit: Emit, now: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._now = now
        self._waiting = ""
        self._sent_at = now()
        self._has_sent = self._again = False

    def start(self) -> OnText:
        """Begin an answer; a second attempt is a JSON text of its own, and voids what the first has said."""
        values = TextValueParser()
        self._waiting, self._again = "", self._has_sent

        async def on_text(piece: str) -> None:
            self._waiting += values.feed(piece)
            if len(self._waiting) >= BATCH_CHARACTERS or self._now() - self._sent_at >= BATCH_SECONDS:
                await self.flush()

        return on_text

    async def flush(self) -> None:
        """Emit what is waiting."""
        text, self._waiting, self._sent_at = self._waiting, "", self._now()
        if text:
            again = {"again": True} if self._again else {}
            self._has_sent, self._again = True, False
            await self._emit("token", "write", {"text": text, "draft": True, **again})
