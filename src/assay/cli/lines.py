"""What stands on one line of a terminal: text of others, counts, money."""

import os
import sys
from datetime import timedelta
from textwrap import fill
from typing import TextIO

from assay.model.spend import Quote


def one_line(text: str) -> str:
    """File names and messages may hold line breaks and escape codes: they are shown, not obeyed."""
    return "".join(character if character.isprintable() else _shown(character) for character in text)


def _shown(character: str) -> str:
    return " " if character.isspace() and character not in "\n\r\v\f\x1c\x1d\x1e\x1f" else repr(character)[1:-1]


def fitted(line: str, indent: int, stream: TextIO | None = None) -> str:
    """Broken between words for a terminal, which would break it anywhere; what goes on stands indented. The lines of a
    log are not broken."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return line
    width = os.get_terminal_size(stream.fileno()).columns or len(line)
    return fill(line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def cut(line: str, stream: TextIO | None = None) -> str:
    """Ended with … where a terminal ends. The lines of a log are left as they are."""
    stream = stream or sys.stdout
    width = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    return line if not width or len(line) <= width else f"{line[: width - 1]}…"


def is_command(line: str) -> bool:
    """What begins with a slash is meant for Assay; two stand for one that is meant so."""
    line = line.lstrip()
    return line.startswith("/") and not line.startswith("//")


def said(line: str) -> str:
    """A line that is no command, as it was meant."""
    line = line.strip()
    return line[1:] if line.startswith("//") else line


def quoted(quote: Quote) -> str:
    """A quote as one line a person can decide by."""
    searching = f"up to {quote.searches} paid searches a round, {dollars(quote.search_usd)}" if quote.searches else ""
    if not quote.calls:
        return f"{quote.model}: " + (f"thinking costs nothing; {searching}" if searching else "costs nothing")
    price = f"about {dollars(quote.usd)}, never more than {dollars(quote.most_usd)}" if quote.usd else "costs nothing"
    if quote.usd > quote.most_usd:
        price = f"about {dollars(quote.usd)}, more than the cap of {dollars(quote.most_usd)}: it may end early"
    calls = f"about {quote.calls} calls, {quote.tokens:,} tokens, {_duration(quote.seconds)}"
    return "; ".join(part for part in (f"{quote.model}: {price}", calls, searching) if part)


def dollars(usd: float) -> str:
    """To the cent, or to the micro-dollar where a cent would hide it."""
    return f"${usd:.2f}" if usd == 0 or usd >= 0.1 else f"${usd:.4f}" if usd >= 0.0001 else f"${usd:.6f}"


def age(since: timedelta) -> str:
    """How long ago, in one unit."""
    seconds = max(since.total_seconds(), 0.0)
    for unit, size in (("day", 86400), ("hour", 3600), ("min", 60)):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'s' if number > 1 and unit != 'min' else ''}"
    return f"{int(seconds)} s"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
