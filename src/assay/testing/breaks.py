"""Ways in which a response breaks between a provider and who waits for it."""

from collections.abc import Callable
from dataclasses import replace

from assay.testing.formats import Format, Problem
from assay.testing.wire import Piece, Response, Wire

OVERLOADED = Problem(529, "Overloaded")


def without(*kinds: str) -> Callable[[tuple[Piece, ...], Format], tuple[Piece, ...]]:
    return lambda pieces, _: tuple(piece for piece in pieces if piece.kind not in kinds)


def error_first(pieces: tuple[Piece, ...], format: Format) -> tuple[Piece, ...]:
    return (Piece("text", format.error_event(OVERLOADED)),)


def error_midway(pieces: tuple[Piece, ...], format: Format) -> tuple[Piece, ...]:
    return (*pieces[: max(1, len(pieces) // 2)], Piece("text", format.error_event(OVERLOADED)))


def bad_event(pieces: tuple[Piece, ...], format: Format) -> tuple[Piece, ...]:
    middle = len(pieces) // 2
    kind, data = pieces[middle]
    return (*pieces[:middle], Piece(kind, data.replace(b'"', b"", 3)), *pieces[middle + 1 :])


def bad_bytes(pieces: tuple[Piece, ...], format: Format) -> tuple[Piece, ...]:
    """Bytes that are no UTF-8, inside a text of the JSON."""
    middle = len(pieces) // 2
    before, mark, after = pieces[middle].data.rpartition(b': "')
    spoiled = Piece(pieces[middle].kind, before + mark + b"\xff\xfe\x80" + after)
    return (*pieces[:middle], spoiled, *pieces[middle + 1 :])


def commented(pieces: tuple[Piece, ...], format: Format) -> tuple[Piece, ...]:
    return tuple(Piece(kind, data if kind == "body" else b": still processing\n\n" + data) for kind, data in pieces)


def as_html(response: Response, format: Format) -> Response:
    headers = {**response.headers, "Content-Type": "text/html"}
    return replace(response, headers=headers)


async def closed(wire: Wire, response: Response) -> None:
    wire.close()


async def reset(wire: Wire, response: Response) -> None:
    wire.reset()


async def closed_in_head(wire: Wire, response: Response) -> None:
    await wire.bytes(b"HTTP/1.1 200 OK\r\nContent-Ty")
    wire.close()


async def no_http(wire: Wire, response: Response) -> None:
    await wire.bytes(b"SSH-2.0-OpenSSH_9.6\r\n")
    wire.close()


async def begun(wire: Wire, response: Response) -> None:
    """The first half."""
    await wire.head(response)
    body = response.body
    await wire.piece(response, body[: len(body) // 2])


async def cut(wire: Wire, response: Response) -> None:
    await begun(wire, response)
    wire.close()


async def cut_before_usage(wire: Wire, response: Response) -> None:
    await wire.head(response)
    for piece in response.pieces:
        if piece.kind == "usage":
            break
        await wire.piece(response, piece.data if piece.kind != "body" else piece.data[:-40])
    wire.close()


async def hung(wire: Wire, response: Response) -> None:
    await wire.gone()


async def hung_midway(wire: Wire, response: Response) -> None:
    await begun(wire, response)
    await wire.gone()


async def dripped(wire: Wire, response: Response) -> None:
    await wire.head(response)
    for byte in response.body:
        await wire.piece(response, bytes([byte]))
        if await wire.gone(within=1.0):
            return
    await wire.end(response)


async def byte_by_byte(wire: Wire, response: Response) -> None:
    """In such small pieces that events and characters come in parts."""
    await wire.head(response)
    body = response.body
    for start in range(0, len(body), 7):
        await wire.piece(response, body[start : start + 7])
    await wire.end(response)
