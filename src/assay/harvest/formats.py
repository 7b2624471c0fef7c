"""What kind of content an answer holds: by what the server says, and by its first bytes where the two differ."""

import re
from enum import StrEnum
from urllib.parse import urlsplit

from assay.errors import ReadError


class Format(StrEnum):
    HTML = "html"
    PLAIN = "plain"
    MARKDOWN = "markdown"
    CSV = "csv"
    PDF = "pdf"
    DOCX = "docx"


_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MEDIA_TYPES = {
    "text/html": Format.HTML,
    "application/xhtml+xml": Format.HTML,
    "text/plain": Format.PLAIN,
    "text/markdown": Format.MARKDOWN,
    "text/x-markdown": Format.MARKDOWN,
    "text/csv": Format.CSV,
    "application/pdf": Format.PDF,
    "application/x-pdf": Format.PDF,
    _DOCX: Format.DOCX,
}
# Servers that do not know what they serve say one of these; the first bytes decide.
UNDECIDED = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "application/x-download", "unknown/unknown"}
)
_MARKUP = frozenset({"application/xml", "text/xml"})  # XHTML, or a feed
# What is fetched at all: a DOCX may arrive as an archive, and XHTML as XML.
ACCEPTED = frozenset({*MEDIA_TYPES, *(UNDECIDED - {""}), *_MARKUP, "application/zip"})

_SUFFIXES = {
    ".txt": Format.PLAIN, ".md": Format.MARKDOWN, ".markdown": Format.MARKDOWN, ".csv": Format.CSV,
    ".pdf": Format.PDF, ".docx": Format.DOCX, ".htm": Format.HTML, ".html": Format.HTML,
}  # fmt: skip

_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html|head|body|title|meta|script)\b",
    re.I | re.S,
)
_BINARY = (
    b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"RIFF", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"ID3",
    b"OggS", b"\x1aE\xdf\xa3", b"\x7fELF", b"MZ\x90", b"\x00\x00\x01\x00", b"wOFF", b"wOF2", b"\xd0\xcf\x11\xe0",
)  # fmt: skip
_START = 1024


def recognise(media_type: str, url: str, body: bytes) -> Format:
    """Raises ReadError, with the reason, for what is not read."""
    media_type, start = media_type.lower(), body[:_START].removeprefix(b"\xef\xbb\xbf")
    shown = _shown(start, body)
    if shown is not None:
        return shown
    if start.startswith((b"PK\x03\x04", *_BINARY)) or start[4:8] == b"ftyp":
        raise _refused(media_type if media_type not in MEDIA_TYPES else "", "a picture, a recording or an archive")
    declared = MEDIA_TYPES.get(media_type)
    if declared in (Format.PDF, Format.DOCX):
        raise ReadError(f"served as {declared.upper()}, but it is none", help="Open it in a browser.")
    if declared is Format.PLAIN or media_type in UNDECIDED:
        return _by_suffix(url, declared)
    if declared is None:
        raise _refused(media_type, "no page")
    return declared


def _shown(start: bytes, body: bytes) -> Format | None:
    """What the content itself says beyond doubt."""
    if b"%PDF-" in start[:_START] and not _HTML.match(start):
        return Format.PDF
    if start.startswith(b"PK\x03\x04") and b"word/document.xml" in body:
        return Format.DOCX
    return Format.HTML if _HTML.match(start) else None


def _by_suffix(url: str, declared: Format | None) -> Format:
    path = urlsplit(url).path.lower()
    found = next((kind for suffix, kind in _SUFFIXES.items() if path.endswith(suffix)), declared)
    if found in (Format.PLAIN, Format.MARKDOWN, Format.CSV):
        return found
    if declared is None:
        raise ReadError("the server does not say what it is", help="Open it in a browser.")
    return declared


def _refused(media_type: str, otherwise: str) -> ReadError:
    known = "a feed or data in XML" if media_type in _MARKUP or media_type.endswith("+xml") else ""
    named = known or (media_type if media_type not in UNDECIDED else "") or otherwise
    return ReadError(f"is {named}, which is not read", help="Pages, PDF, DOCX, CSV and text are read.")
