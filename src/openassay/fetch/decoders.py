"""Decodes bodies: their compression a piece at a time, so that a bomb is noticed at the limit, and their charset."""

import codecs
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol

from openassay.errors import FetchError

ACCEPTED = "gzip, deflate, br, zstd"
_PIECE_BYTES = 64 * 1024
_MAX_ENCODINGS = 2  # on top of each other
_MAX_MEMBERS = 1_000  # of one gzip stream; a body may hold half a million empty ones, which takes seconds
_MAX_WINDOW = 8 * 2**20  # of zstd; RFC 9659


class Decoder(Protocol):
    """Decodes one encoding; raises ValueError for damaged data."""

    def feed(self, data: bytes) -> Iterator[bytes]: ...

    def end(self) -> Iterator[bytes]: ...


class BodyDecoder:
    """Decodes all encodings of a body; raises FetchError for an unknown, damaged or larger one than `limit` bytes."""

    def __init__(self, header: str, *, limit: int) -> None:
        names = [name for name in (part.strip().lower() for part in header.split(",")) if name not in ("", "identity")]
        if len(names) > _MAX_ENCODINGS or not all(name in _DECODERS for name in names):
            raise FetchError(f"has an unsupported compression: {header[:60]}", help=f"Supported: {ACCEPTED}.")
        self._steps = [_DecoderStep(_DECODERS[name](), limit) for name in reversed(names)]

    def feed(self, data: bytes) -> Iterator[bytes]:
        pieces: Iterable[bytes] = (data,)
        for step in self._steps:
            pieces = step.decode(pieces)
        yield from pieces

    def end(self) -> Iterator[bytes]:
        """Yield the rest when the body has ended."""
        pieces: Iterable[bytes] = ()
        for step in self._steps:
            pieces = step.decode(pieces, last=True)
        yield from pieces


class BodyLimitError(FetchError):
    """A body went over its limit; the client reports it in its own words."""


class _DecoderStep:
    """One encoding of several. Each step has the limit: in between, too, nothing may swell without being counted."""

    def __init__(self, decoder: Decoder, limit: int) -> None:
        self._decoder = decoder
        self._left = limit

    def decode(self, pieces: Iterable[bytes], *, last: bool = False) -> Iterator[bytes]:
        try:
            for piece in pieces:
                yield from self._count_bytes(self._decoder.feed(piece))
            if last:
                yield from self._count_bytes(self._decoder.end())
        except ValueError as error:
            raise FetchError("has a damaged body", help="The site sent data that do not unpack.") from error

    def _count_bytes(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            yield piece  # first, so that a reader who wants only the beginning gets all of it
            self._left -= len(piece)
            if self._left < 0:
                raise BodyLimitError("is larger than the limit")


class _InflateDecoder:
    """Decodes gzip and deflate; what follows the last gzip member is ignored, as browsers do."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._unpack: zlib._Decompress | None = None  # until the first byte has arrived
        self._members = 1

    def feed(self, data: bytes) -> Iterator[bytes]:
        full = False  # then there may be more without any more data
        while data or full:
            if self._unpack is None:
                # Servers send deflate with and without the header of zlib.
                has_header = data[0] & 0x0F == 8 and (len(data) < 2 or int.from_bytes(data[:2], "big") % 31 == 0)
                self._unpack = zlib.decompressobj(31 if self._gzip else 15 if has_header else -15)
            elif self._unpack.eof and self._gzip and data.startswith(b"\x1f\x8b"):
                self._members += 1
                if self._members > _MAX_MEMBERS:
                    raise ValueError("too many members")
                self._unpack = zlib.decompressobj(31)
            unpack = self._unpack
            if unpack.eof:
                return
            try:
                piece = unpack.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                raise ValueError("damaged") from error
            full = len(piece) == _PIECE_BYTES
            data = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
            if piece:
                yield piece

    def end(self) -> Iterator[bytes]:
        if self._unpack is not None and not self._unpack.eof:
            raise ValueError("broken off")
        return iter(())


class _BrotliDecoder:
    def __init__(self) -> None:
        import brotli

        self._unpack = brotli.Decompressor()
        self._error: type[Exception] = brotli.error
        self._fed = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._fed = True
        try:
            while not self._unpack.is_finished():
                piece = self._unpack.process(data, output_buffer_limit=_PIECE_BYTES)
                data = b""
                if piece:
                    yield piece
                if self._unpack.can_accept_more_data():
                    return
        except self._error as error:
            raise ValueError("damaged") from error

    def end(self) -> Iterator[bytes]:
        if self._fed and not self._unpack.is_finished():
            raise ValueError("broken off")
        return iter(())


class _ZstandardDecoder:
    """Decodes at the end: the incremental interface of zstandard has no bound on what one piece may become."""

    def __init__(self) -> None:
        self._packed = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._packed += data
        return iter(())

    def end(self) -> Iterator[bytes]:
        import zstandard

        unpack = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
        try:
            with unpack.stream_reader(io.BytesIO(self._packed), read_across_frames=True) as reader:
                while piece := reader.read(_PIECE_BYTES):
                    yield piece
        except zstandard.ZstdError as error:
            raise ValueError("damaged") from error


_DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": lambda: _InflateDecoder(gzip=True),
    "x-gzip": lambda: _InflateDecoder(gzip=True),
    "deflate": lambda: _InflateDecoder(gzip=False),
    "br": _BrotliDecoder,
    "zstd": _ZstandardDecoder,
}


# Character encodings -----------------------------------------------------------------------------------

_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_META = re.compile(
    rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w:.-]+)|<\?xml[^>]{0,100}?encoding=[\"']([\w:.-]+)", re.I
)
_PRESCAN_BYTES = 4096
_SLIP_SHARE = 50  # one broken character in so many others is a slip, not another encoding

# What browsers use for these names: each is a superset of what the name once meant.
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


def decode_page(data: bytes, declared: str = "") -> str:
    """Decode the text of a page.

    A byte order mark counts most, then UTF-8 that is valid (no other encoding looks like it by chance), then what the
    server and the page say; the rest is UTF-8 with slips, or else Western."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            return data.decode(name, errors="replace")
    server = _normalise_label(declared)
    if server.startswith(("utf-16", "utf-32")):
        return data.decode(server, errors="replace")
    if not data.isascii():
        with suppress(UnicodeDecodeError):
            return data.decode("utf-8")
    name = server
    if not name and (tag := _META.search(data, 0, _PRESCAN_BYTES)):
        name = _normalise_label((tag[1] or tag[2]).decode("ascii", "replace"))
        if name.startswith("utf-16"):
            name = "utf-8"  # the tag could not be read in UTF-16
    if name:
        return data.decode(name, errors="replace")
    text = data.decode("utf-8", errors="replace")
    if text.count("\ufffd") * _SLIP_SHARE <= sum(character > "\x7f" for character in text):
        return text
    return data.decode("cp1252", errors="replace")


def _normalise_label(label: str) -> str:
    """Return Python's name for the encoding a browser would use; empty where there is none."""
    label = label.strip().strip("\"'").lower().removeprefix("x-")
    try:
        info = codecs.lookup({"sjis": "shift_jis", "gbk": "gb18030"}.get(label, label))
    except (LookupError, ValueError):
        return ""
    # hex, zip, idna and the like are codecs too, but no encodings of a page
    return _SUPERSETS.get(info.name, info.name) if info._is_text_encoding and info.name != "idna" else ""
