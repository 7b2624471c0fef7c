"""Content-Encoding undone a piece at a time: a bomb costs no more than what was allowed before it is noticed."""

import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from assay.errors import FetchError

ACCEPTED = "gzip, deflate, br, zstd"
_PIECE = 64 * 1024
_MOST = 2  # encodings on top of each other
_MEMBERS = 1_000  # of one gzip stream; a body may hold half a million empty ones, and unpacking them takes seconds
_WINDOW = 8 * 2**20  # of zstd; RFC 9659


class Decoder(Protocol):
    """Raises ValueError for damaged data."""

    def feed(self, data: bytes) -> Iterator[bytes]: ...

    def end(self) -> Iterator[bytes]: ...


class Decoding:
    """All encodings of one body. Raises FetchError when one is unknown, damaged, or gives more than `limit` bytes."""

    def __init__(self, header: str, *, limit: int) -> None:
        names = [name for name in (part.strip().lower() for part in header.split(",")) if name not in ("", "identity")]
        if len(names) > _MOST or not all(name in _DECODERS for name in names):
            raise FetchError(f"is compressed in a way that is not read: {header[:60]}", help=f"Read are {ACCEPTED}.")
        self._stages = [_Stage(_DECODERS[name](), limit) for name in reversed(names)]

    def feed(self, data: bytes) -> Iterator[bytes]:
        pieces: Iterable[bytes] = (data,)
        for stage in self._stages:
            pieces = stage.through(pieces)
        yield from pieces

    def end(self) -> Iterator[bytes]:
        """What is left when the body has ended."""
        pieces: Iterable[bytes] = ()
        for stage in self._stages:
            pieces = stage.through(pieces, last=True)
        yield from pieces


class TooLargeError(FetchError):
    """A body went over its limit; the client says so in its own words."""


class _Stage:
    """Each stage has the limit: in between, too, nothing may swell without being counted."""

    def __init__(self, decoder: Decoder, limit: int) -> None:
        self._decoder = decoder
        self._left = limit

    def through(self, pieces: Iterable[bytes], *, last: bool = False) -> Iterator[bytes]:
        try:
            for piece in pieces:
                yield from self._counted(self._decoder.feed(piece))
            if last:
                yield from self._counted(self._decoder.end())
        except ValueError as error:
            raise FetchError("has a damaged body", help="The site sent data that do not unpack.") from error

    def _counted(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            yield piece  # first, so that a reader who wants only the beginning gets all he may have
            self._left -= len(piece)
            if self._left < 0:
                raise TooLargeError("has more than is read")


class _Inflate:
    """gzip and deflate; what follows the last gzip member is ignored, as browsers do."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._unpack: zlib._Decompress | None = None  # until the first byte has come
        self._members = 1

    def feed(self, data: bytes) -> Iterator[bytes]:
        full = False  # then there may be more without any more data
        while data or full:
            unpack = self._opened(data)
            if unpack.eof:
                return
            try:
                piece = unpack.decompress(data, _PIECE)
            except zlib.error as error:
                raise ValueError("damaged") from error
            full = len(piece) == _PIECE
            data = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
            if piece:
                yield piece

    def end(self) -> Iterator[bytes]:
        if self._unpack is not None and not self._unpack.eof:
            raise ValueError("broken off")
        return iter(())

    def _opened(self, data: bytes) -> "zlib._Decompress":
        if self._unpack is None:
            self._unpack = zlib.decompressobj(31 if self._gzip else _deflated(data))
        elif self._unpack.eof and self._gzip and data.startswith(b"\x1f\x8b"):
            self._members += 1
            if self._members > _MEMBERS:
                raise ValueError("too many members")
            self._unpack = zlib.decompressobj(31)
        return self._unpack


def _deflated(data: bytes) -> int:
    """Servers send deflate with and without the header of zlib."""
    has_header = data[0] & 0x0F == 8 and (len(data) < 2 or int.from_bytes(data[:2], "big") % 31 == 0)
    return 15 if has_header else -15


class _Brotli:
    def __init__(self) -> None:
        import brotli

        self._unpack = brotli.Decompressor()
        self._error: type[Exception] = brotli.error
        self._fed = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._fed = True
        try:
            while not self._unpack.is_finished():
                piece = self._unpack.process(data, output_buffer_limit=_PIECE)
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


class _Zstandard:
    """Unpacked at the end: its incremental interface has no bound on what one piece may become."""

    def __init__(self) -> None:
        self._packed = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._packed += data
        return iter(())

    def end(self) -> Iterator[bytes]:
        import zstandard

        unpack = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        try:
            with unpack.stream_reader(io.BytesIO(self._packed), read_across_frames=True) as reader:
                while piece := reader.read(_PIECE):
                    yield piece
        except zstandard.ZstdError as error:
            raise ValueError("damaged") from error


_DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": lambda: _Inflate(gzip=True),
    "x-gzip": lambda: _Inflate(gzip=True),
    "deflate": lambda: _Inflate(gzip=False),
    "br": _Brotli,
    "zstd": _Zstandard,
}
