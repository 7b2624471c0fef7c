"""What comes back from a request: judged by its head, then taken in up to a limit."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from httpcore2 import Response

from assay.errors import FetchError
from assay.harvest.fetching.decoding import Decoding, TooLargeError
from assay.harvest.fetching.guard import Address
from assay.harvest.fetching.media import BEGINNING, declared, says_nothing, sniffed
from assay.text.retry import retry_after

OnRedirect = Callable[[str], Awaitable[None]]  # asked before an address is followed; raises FetchError to stop there

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})  # another day may help
_AGAIN = frozenset({429, 502, 503, 504})  # another second may
_PAUSE = 1.0  # where the site names none
_LONGEST_PAUSE = 5.0
_FIELDS = 200  # of a head; its size is bounded at 100 KiB by the parser
_CONDITIONS = {"if-none-match", "if-modified-since"}


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer. `headers` are in lower case and without cookies; `whole` is False where the body was clipped."""

    url: str  # where it was found in the end
    status: int
    headers: Mapping[str, str]
    media_type: str
    charset: str | None
    body: bytes
    redirects: tuple[str, ...] = ()  # the addresses before this one
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for, and how much of it is taken."""

    method: str
    max_bytes: int
    accept: frozenset[str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""
    redirects: int = 10
    on_redirect: OnRedirect | None = None
    clip: bool = False

    def welcomes(self, kind: str) -> bool:
        return self.accept is None or kind in self.accept

    def check(self, kind: str) -> None:
        if not self.welcomes(kind):
            raise FetchError(f"is {kind}, which is not read", help="Only text and documents are.")

    def conditional(self) -> bool:
        return any(name.lower() in _CONDITIONS for name in self.headers)


class AgainError(FetchError):
    """A failure that may be over after a pause."""

    pause = 0.2


class RedirectsError(FetchError):
    """Redirects that lead nowhere."""


def fields(raw: Sequence[tuple[bytes, bytes]], address: Address) -> dict[str, str]:
    """Headers by their names in lower case; those that came more than once are joined."""
    if len(raw) > _FIELDS:
        raise FetchError("sends too many headers", help=f"At most {_FIELDS} are read.", url=address.url)
    found: dict[str, str] = {}
    for key, value in raw:
        name, text = key.decode("latin-1").lower(), _text(value)
        if name in ("content-type", "location"):
            found.setdefault(name, text)
        elif name != "set-cookie":
            found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def redirected(status: int, headers: Mapping[str, str]) -> str | None:
    return headers.get("location") if status in _REDIRECTS else None


async def received(
    response: Response, headers: Mapping[str, str], wish: Wish, address: Address, passed: tuple[str, ...]
) -> Fetched:
    """The body behind a good head; raises FetchError."""
    _check_status(response.status, headers, wish, address)
    kind, charset = declared(headers.get("content-type", ""))
    taking = _Taking(wish, headers, kind if response.status != 304 else None)
    async for data in response.aiter_stream():
        if not taking.take(data):
            break
    body = taking.ended()
    return Fetched(address.url, response.status, headers, taking.kind or "", charset, body, passed, taking.whole)


class _Taking:
    """A body on its way in. Neither what arrives nor what is unpacked may go over the limit."""

    def __init__(self, wish: Wish, headers: Mapping[str, str], kind: str | None) -> None:
        self.whole = True
        self.kind = kind  # None: of no body; empty: the first bytes will tell
        self._wish = wish
        self._arrived = 0
        self._body = bytearray()
        if kind and says_nothing(kind) and not wish.welcomes(kind):
            self.kind = ""
        if self.kind:
            wish.check(self.kind)
        length = headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > wish.max_bytes and not wish.clip:
            raise self._too_large()
        self._decoding = Decoding(headers.get("content-encoding", ""), limit=wish.max_bytes)

    def take(self, data: bytes) -> bool:
        """Whether more is wanted."""
        self._arrived += len(data)
        if self._arrived > self._wish.max_bytes:
            data = data[: len(data) - (self._arrived - self._wish.max_bytes)]
            self._add(self._decoding.feed(data))
            return self._over()
        return self._add(self._decoding.feed(data))

    def ended(self) -> bytes:
        if self.whole:
            self._add(self._decoding.end())
        self._look()
        return bytes(self._body[: self._wish.max_bytes])

    def _add(self, pieces: Iterable[bytes]) -> bool:
        try:
            for piece in pieces:
                self._body += piece
                if len(self._body) > self._wish.max_bytes:
                    return self._over()
        except TooLargeError:
            return self._over()
        if len(self._body) >= BEGINNING:
            self._look()
        return True

    def _look(self) -> None:
        if self.kind == "" and self._body:
            self.kind = sniffed(bytes(self._body[:BEGINNING]))
            self._wish.check(self.kind)

    def _over(self) -> bool:
        if not self._wish.clip:
            raise self._too_large()
        self.whole = False
        return False

    def _too_large(self) -> FetchError:
        return FetchError(f"has more than {self._wish.max_bytes / 1e6:g} MB", help="Larger pages are not read.")


def _check_status(status: int, headers: Mapping[str, str], wish: Wish, address: Address) -> None:
    if (200 <= status < 300 and status != 206) or (status == 304 and wish.conditional()):
        return
    help = "The site may be busy; try later." if status in _PASSING else "The page is gone, or not for robots."
    pause = _pause(headers.get("retry-after", "")) if status in _AGAIN else None
    if pause is None:
        raise FetchError(f"answered {status}", help=help, retryable=status in _PASSING, status=status, url=address.url)
    error = AgainError(f"answered {status}", help=help, retryable=True, status=status, url=address.url)
    error.pause = pause
    raise error


def _pause(header: str) -> float | None:
    """What Retry-After asks for, in seconds; None when that is too long to wait for."""
    seconds = retry_after(header)
    if seconds is None:
        return _PAUSE
    return seconds if seconds <= _LONGEST_PAUSE else None


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
