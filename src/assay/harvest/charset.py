"""The characters of a page, from bytes that may say one thing and be another."""

import codecs
import re

_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_META = re.compile(
    rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w:.-]+)|<\?xml[^>]{0,100}?encoding=[\"']([\w:.-]+)", re.I
)
_PRESCAN = 4096
_FEW = 50  # a broken character in so many others is a slip, not another encoding

# What browsers read under these names: each is a superset of what the name once meant.
_SUPERSETS = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "big5": "big5hkscs",
}


def decode(data: bytes, declared: str = "") -> str:
    """A byte order mark counts most, then UTF-8 that is valid (no other encoding looks like it by chance), then what
    the server and the page say; what is left undecided is Western."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            return data.decode(name, errors="replace")
    server = _known(declared)
    if server.startswith(("utf-16", "utf-32")):
        return data.decode(server, errors="replace")
    if not data.isascii() and (text := _utf8(data)) is not None:
        return text
    name = server or _stated(data)
    return data.decode(name, errors="replace") if name else _guessed(data)


def _utf8(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _stated(data: bytes) -> str:
    found = _META.search(data, 0, _PRESCAN)
    name = _known((found[1] or found[2]).decode("ascii", "replace")) if found else ""
    return "utf-8" if name.startswith("utf-16") else name  # who can read the tag is not reading UTF-16


def _known(label: str) -> str:
    """Python's name for the encoding a browser would use; empty where there is none."""
    label = label.strip().strip("\"'").lower().removeprefix("x-")
    try:
        info = codecs.lookup({"sjis": "shift_jis", "gbk": "gb18030"}.get(label, label))
    except (LookupError, ValueError):
        return ""
    # hex, zip, idna and the like are codecs too, but no encodings of a page
    return _SUPERSETS.get(info.name, info.name) if info._is_text_encoding and info.name != "idna" else ""


def _guessed(data: bytes) -> str:
    text = data.decode("utf-8", errors="replace")
    letters = sum(character > "\x7f" for character in text)
    if text.count("\ufffd") * _FEW <= letters:
        return text
    return data.decode("cp1252", errors="replace")
