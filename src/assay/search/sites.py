"""Filters by host in the query itself, for engines that know site: and -site:."""

from assay.model.inquiry import Inquiry
from assay.search.api import shortened


def narrowed(inquiry: Inquiry, *, characters: int, words: int = 1000) -> str:
    """The query with its hosts; where both do not fit, the query gives way."""
    only = " OR ".join(f"site:{site}" for site in inquiry.sites)
    parts = [f"({only})" if len(inquiry.sites) > 1 else only, *(f"-site:{site}" for site in inquiry.without)]
    filters = " ".join(part for part in parts if part)
    room = characters - len(filters) - 1
    query = " ".join(shortened(inquiry.query, max(room, 1)).split()[: max(words - len(filters.split()), 1)])
    return f"{query} {filters}".rstrip()
