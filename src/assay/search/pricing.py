"""What searching will cost at most, beside what a model's thinking does."""

from collections.abc import Sequence

from assay.model.question import Depth
from assay.model.spend import Quote
from assay.ports import Remote, Source
from assay.settings import Settings

QUESTIONS = {Depth.QUICK: 3, Depth.STANDARD: 5, Depth.COMPREHENSIVE: 7}  # the most sub-questions of a plan, by anyone


def with_searches(quote: Quote, sources: Sequence[Source], depth: Depth, settings: Settings) -> Quote:
    """Every query of a sub-question goes to each web source; providers of papers, news and code get one of them."""
    searches, usd = 0, 0.0
    for source in sources:
        if isinstance(source, Remote) and source.terms.usd:
            asked = QUESTIONS[depth] * (settings.max_search_iterations if "web" in source.types else 1)
            searches, usd = searches + asked, usd + asked * source.terms.usd
    return quote.model_copy(update={"searches": searches, "search_usd": round(usd, 4)})
