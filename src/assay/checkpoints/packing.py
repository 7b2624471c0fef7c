"""Values of the state as bytes: LangGraph's serialiser, and compressed."""

import zlib
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

_LEVEL = 1  # of compression: 350 KB of state in 5 ms, to a fifth; level 6 takes four times as long for a tenth more

Typed = tuple[str, bytes]


class Packing:
    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde

    def typed(self, value: Any) -> Typed:
        import numpy  # noqa: F401  # waits for a thread that is importing it: half-way, the serialiser refuses exceptions

        return self._serde.dumps_typed(value)

    def pack(self, value: Any) -> bytes:
        return packed(self.typed(value))

    def unpack(self, payload: bytes) -> Any:
        kind, _, content = zlib.decompress(payload).partition(b"\n")
        return self._serde.loads_typed((kind.decode(), content))


def packed(typed: Typed) -> bytes:
    kind, content = typed
    return zlib.compress(kind.encode() + b"\n" + content, _LEVEL)
