"""What became of pages read before, and whether it still counts."""

from datetime import datetime, timedelta
from hashlib import sha256

from assay.harvest.freshness import Freshness
from assay.model.record import Record
from assay.model.source import Document
from assay.ports import Cache

_EDITION = 1  # raised when readers change so much that texts kept before should be read again
_REFUSED = 600.0  # seconds a refusal is remembered
_STALE = 7 * 86_400.0  # how long a page that can be asked for changes is kept after it was fresh


class Kept(Record):
    """A page's document or the reason why there is none, with what asks the server whether it has changed."""

    until: datetime
    document: Document | None = None
    reason: str = ""
    place: str = ""  # where it was found in the end: what validates it holds there alone
    etag: str = ""
    modified: str = ""

    @property
    def freshness(self) -> Freshness:
        return Freshness(0.0, self.etag, self.modified)


class KeptPages:
    """Pages by address. `terms` are the settings a reading depends on: under others nothing is found."""

    def __init__(self, cache: Cache, *terms: object) -> None:
        self._cache = cache
        self._terms = repr((_EDITION, *terms))

    async def find(self, url: str) -> Kept | None:
        value = await self._cache.get(self._key(url))
        if value is None:
            return None
        try:
            return Kept.model_validate_json(value)
        except ValueError:  # written by another version
            return None

    async def keep(self, url: str, document: Document, place: str, fresh: Freshness, now: datetime) -> None:
        if fresh.seconds is None:
            return
        kept = fresh.seconds + (_STALE if fresh.validators else 0.0)
        if kept > 0:
            until = now + timedelta(seconds=fresh.seconds)
            entry = Kept(until=until, document=document, place=place, etag=fresh.etag, modified=fresh.modified)
            await self._put(url, entry, kept)

    async def refuse(self, url: str, reason: str, now: datetime) -> None:
        await self._put(url, Kept(until=now + timedelta(seconds=_REFUSED), reason=reason), _REFUSED)

    async def _put(self, url: str, entry: Kept, seconds: float) -> None:
        await self._cache.put(self._key(url), entry.model_dump_json().encode(), seconds=seconds)

    def _key(self, url: str) -> str:
        return "page:" + sha256(f"{self._terms} {url}".encode()).hexdigest()
