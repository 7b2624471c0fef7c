"""Lines in a file, each sealed over the one before: none can be changed, moved or taken out of their middle."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from assay.journal.files import Growing
from assay.journal.lines import Plain, Sealing, opened, sealed


class End(NamedTuple):
    """Of a chain as far as it is whole."""

    lines: int = 0
    seal: str = ""
    length: int = 0  # in bytes


class Links(NamedTuple):
    """What was read of a chain."""

    contents: list[Plain]
    seals: list[str]
    end: End
    torn: bool  # a last line was cut off


class Chain:
    """A chain that goes on. It begins after `end`, whose seal for an empty file is that of what it hangs on."""

    def __init__(self, path: Path, seals: Sealing, place: str, end: End) -> None:
        self._seals = seals
        self._place = place
        self.file = Growing(path)
        self.end = end

    def add(self, content: Mapping[str, Any]) -> None:
        lines, before, length = self.end
        line, seal = sealed(self._seals, _place(self._place, lines + 1), content, before=before)
        self.file.add(line)
        self.end = End(lines + 1, seal, length + len(line))


def read_chain(path: Path, seals: Sealing, place: str, before: str = "") -> Links:
    """All whole lines; a last one without its end is what a crash leaves, and does not count."""
    *whole, rest = path.read_bytes().split(b"\n") if path.exists() else [b""]
    contents, made = [], []
    for number, line in enumerate(whole, 1):
        content, before = opened(seals, _place(place, number), line + b"\n", before=before)
        contents.append(content)
        made.append(before)
    return Links(contents, made, End(len(whole), before, sum(len(line) + 1 for line in whole)), bool(rest))


def _place(place: str, line: int) -> str:
    return f"{place} line {line}"
