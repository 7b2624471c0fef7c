"""Pages that mean harm: bombs, bodies without an end, servers that drip."""

import asyncio
import zlib

from assay.testing.web import Play, Visit
from assay.testing.wire import Wire

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


def bomb(encoding: str, megabytes: int) -> bytes:
    """So many megabytes of nothing, packed: gzip, deflate, br or zstd; `gzip, gzip` packs twice."""
    first, *rest = [name.strip() for name in encoding.split(",")]
    packed = _pack(first, megabytes)
    for name in rest:
        packed = _packed(name, packed)
    return packed


def endless(fields: bytes = b"", piece: bytes = b"a" * 65_536, *, head: bytes = _HEAD) -> Play:
    """A body that never stops, as fast as it is read; `head` replaces the head without its end."""

    async def play(wire: Wire, visit: Visit) -> None:
        await wire.bytes(head + fields + b"\r\n")
        while True:
            await wire.bytes(piece)
            await asyncio.sleep(0)  # a drain that need not wait gives nobody else a turn

    return play


def drip(data: bytes, pause: float, *, head: bytes = _HEAD + b"\r\n") -> Play:
    """The head at once and then a byte now and then; with an empty head the data may be the head itself."""

    async def play(wire: Wire, visit: Visit) -> None:
        await wire.bytes(head)
        for position in range(len(data)):
            await wire.bytes(data[position : position + 1])
            await asyncio.sleep(pause)
        wire.close()

    return play


def raw(data: bytes) -> Play:
    """These bytes, whatever they are, and then the end."""

    async def play(wire: Wire, visit: Visit) -> None:
        await wire.bytes(data)
        await wire.closed()

    return play


async def reset(wire: Wire, visit: Visit) -> None:
    wire.reset()


async def silence(wire: Wire, visit: Visit) -> None:
    await wire.gone()


def _pack(encoding: str, megabytes: int) -> bytes:
    block = bytes(2**20)
    if encoding in ("gzip", "deflate"):
        packer = zlib.compressobj(9, wbits=31 if encoding == "gzip" else 15)
        return b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()
    if encoding == "br":
        import brotli

        stream = brotli.Compressor(quality=5)
        return b"".join(stream.process(block) for _ in range(megabytes)) + bytes(stream.finish())
    import zstandard

    frames = zstandard.ZstdCompressor(level=3).compressobj()
    return b"".join(frames.compress(block) for _ in range(megabytes)) + frames.flush()


def _packed(encoding: str, data: bytes) -> bytes:
    if encoding == "gzip":
        return zlib.compress(data, 9, wbits=31)
    if encoding == "deflate":
        return zlib.compress(data, 9)
    if encoding == "br":
        import brotli

        return bytes(brotli.compress(data))
    import zstandard

    return zstandard.ZstdCompressor().compress(data)
