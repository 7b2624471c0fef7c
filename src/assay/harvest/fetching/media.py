"""What kind of thing a body is, by its header, or by its first bytes where the header does not say."""

import re

BEGINNING = 512  # bytes that are looked at
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([\w.:+-]{1,40})""", re.IGNORECASE)
_TYPE = re.compile(r"[\w.+*-]+/[\w.+*-]+")
_UNSAID = {"", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown", "*/*"}
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|title|meta|script|style|div|p|h1|table|a|!--)\b|<!--", re.I)
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SIGNS = {
    b"%PDF-": "application/pdf",
    b"PK\x03\x04": "application/zip",
    b"\x1f\x8b": "application/gzip",
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
}


def declared(header: str) -> tuple[str, str | None]:
    """The media type and the charset; the type is empty where the header has none."""
    found = _TYPE.match(header.strip().lower())
    charset = _CHARSET.search(header)
    return found[0] if found else "", charset[1].lower() if charset else None


def says_nothing(media_type: str) -> bool:
    """Whether this is what servers say of anything that they do not know."""
    return media_type in _UNSAID


def sniffed(beginning: bytes) -> str:
    """The media type of bytes that nobody has named."""
    for sign, kind in _SIGNS.items():
        if beginning.startswith(sign):
            return kind
    if beginning.startswith(_BOMS[1:]):
        return "text/plain"
    text = beginning.removeprefix(_BOMS[0]).lstrip()
    if _BINARY.search(text):
        return "application/octet-stream"
    if _HTML.match(text):
        return "text/html"
    if text.startswith(b"<?xml"):
        return "application/xhtml+xml" if b"<html" in text else "application/xml"
    return "text/plain"
