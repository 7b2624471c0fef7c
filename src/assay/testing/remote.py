"""A search provider in this process: what it finds, what it costs, and how it fails are told to it."""

from collections.abc import Sequence

from assay.errors import SourceError
from assay.model.inquiry import Inquiry, Terms
from assay.model.plan import QueryType
from assay.model.source import Hit
from assay.model.spend import Fee
from assay.ports import Answer, Purse


class FakeRemote:
    """A ports.Remote that gives the same hits to every query; `asked` is what it was asked."""

    def __init__(
        self,
        name: str,
        hits: Sequence[Hit] = (),
        *,
        types: tuple[QueryType, ...] = ("web",),
        fails: SourceError | None = None,
        cached: bool = False,
        micros: int = 0,
        reachable: bool = True,
        stands_in: bool = False,
        one_site: bool = False,
    ) -> None:
        self.name = name
        self.types = types
        self.terms = Terms(per_minute=600, usd=micros / 1e6)
        self.stands_in = stands_in
        self.one_site = one_site
        self.asked: list[Inquiry] = []
        self._hits = hits
        self._fails = fails
        self._cached = cached
        self._micros = micros
        self._reachable = reachable

    def is_available(self) -> bool:
        return True

    def reachable(self) -> bool:
        return self._reachable

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        return self._found(Inquiry(query=query, limit=limit))

    async def ask(self, inquiry: Inquiry, purse: Purse) -> Answer:
        async def request() -> str:
            self.asked.append(inquiry)
            if self._fails is not None:
                raise self._fails
            return ""

        if not self._cached:
            await purse.buy(Fee(step="search", provider=self.name, request=inquiry.query, micros=self._micros), request)
        return Answer(self._found(inquiry), cached=self._cached)

    def _found(self, inquiry: Inquiry) -> list[Hit]:
        hits = self._hits[: inquiry.limit]
        given = {"provider": self.name, "query": inquiry.query}
        return [hit.model_copy(update={**given, "rank": rank}) for rank, hit in enumerate(hits, 1)]
