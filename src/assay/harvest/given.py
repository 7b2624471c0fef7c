"""A file somebody gives: what it is called and what kind it is. Its content decides, or else its name."""

import re
import unicodedata
from pathlib import Path

from assay.errors import ReadError
from assay.harvest.files import SUFFIXES
from assay.harvest.formats import MEDIA_TYPES, Format, recognise

LONGEST = 120  # characters of a name
_MOST_BYTES = 200  # of a name on a disk; 255 is what disks take
_KINDS: dict[Format, tuple[str, ...]] = {
    Format.HTML: (".html", ".htm"), Format.PLAIN: (".txt",), Format.MARKDOWN: (".md", ".markdown"),
    Format.CSV: (".csv",), Format.PDF: (".pdf",), Format.DOCX: (".docx",),
}  # fmt: skip
_MEDIA = {kind: media for media, kind in reversed(MEDIA_TYPES.items())}


def named(name: str, body: bytes) -> tuple[str, str]:
    """What the file is called from now on, and its media type; ReadError, with the reason, for what is not read."""
    clean = clean_name(name)
    suffix = Path(clean).suffix.lower()
    kind = _kind(clean, suffix, body)
    return (clean if suffix in _KINDS[kind] else clean + _KINDS[kind][0]), _MEDIA[kind]


def clean_name(name: str) -> str:
    """Of what somebody calls a file, what can be the name of one anywhere, and can be read."""
    last = re.split(r"[/\\]", name)[-1]
    seen = "".join(mark if unicodedata.category(mark)[0] != "C" else " " for mark in last)
    plain = re.sub(r"[<>:\"|?*\s]+", " ", unicodedata.normalize("NFC", seen)).strip(" .")
    suffix = Path(plain).suffix if len(Path(plain).suffix) <= 10 else ""
    stem = plain.removesuffix(suffix)[: LONGEST - len(suffix)]
    while len(stem.encode()) + len(suffix.encode()) > _MOST_BYTES:
        stem = stem[:-1]
    return (stem.strip(" .") or "untitled") + suffix


def _kind(name: str, suffix: str, body: bytes) -> Format:
    expected = next((kind for kind, suffixes in _KINDS.items() if suffix in suffixes), None)
    try:
        return recognise(_MEDIA[expected] if expected else "", name, body)
    except ReadError as error:
        if expected in (Format.PDF, Format.DOCX):
            raise ReadError(f"{name}: it is called {suffix}, but is none", help=error.help) from error
        known = ", ".join(sorted(SUFFIXES))
        raise ReadError(f"{name}: not a kind of file Assay reads", help=f"It reads {known}.") from error
