"""What the formats of catalogues have in common."""

from collections.abc import Sequence

from assay.model.inquiry import Found
from assay.testing.search_formats import Format
from assay.testing.wire import Request

OPENING = 300  # characters of an abstract that stand for a snippet


class Catalogue(Format):
    """Abstracts, names and dates, and where the whole is free; a hit shows how its abstract begins."""

    fields = frozenset({"snippet", "published", "author", "text", "fulltext"})

    def samples(self) -> Sequence[Found]:
        return [found.model_copy(update={"snippet": opening(found.text)}) for found in super().samples()]


def opening(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= OPENING else line[: OPENING + 1].rpartition(" ")[0]


def param(request: Request, name: str) -> str:
    """ "" where a request does not have it."""
    return request.query.get(name, [""])[0]


def within(longest: int, query: str) -> str:
    if not 0 < len(query) <= longest:
        raise ValueError(f"a query of {len(query)} characters is refused")
    return query


def number(request: Request, name: str) -> int | None:
    return int(param(request, name)) if param(request, name) else None
