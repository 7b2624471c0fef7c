"""Search queries: variations of a sub-question, and other words or another kind of source when results were poor."""

import re
from collections.abc import Sequence

from assay.errors import ReasoningError
from assay.reasoning.language.answer import Answer, Phrase, Text, nearest, schema
from assay.reasoning.language.prompt import numbered, tagged
from assay.reasoning.language.step import Job, Step
from assay.reasoning.protocol import Query, QueryRequest
from assay.text.words import fold

STEP = Step("queries", stage="search", role="searcher", thing="search queries",
            variables=("question", "topic", "tried", "task", "count", "types"))  # fmt: skip
LONGEST_QUERY = 200  # characters
_ADDRESS = re.compile(r"https?:|www\.|\bsite:", re.I)


class Asked(Answer):
    text: Phrase
    type: Text = "web"


class Queries(Answer):
    queries: list[Asked]


def job(request: QueryRequest, count: int) -> Job[Queries, None, Sequence[Query]]:
    asked = request.understanding

    def build(_: Sequence[None]) -> dict[str, str]:
        about = [asked.question, *asked.subjects, asked.temporal_scope or ""]
        return {
            "question": tagged("message", request.question.in_context),
            "topic": tagged("message", "\n".join(line for line in about if line)),
            "tried": tagged("asked", _tried(request)),
            "task": "The queries so far brought too little: use other words, or another type."
            if request.tried
            else "Vary the words: synonyms, technical terms, names, the words an answer would use.",
            "count": str(count),
            "types": ", ".join(request.types),
        }

    form = schema(Queries, "Queries", {"queries": count}, {"type": request.types})
    return Job(STEP, Queries, form, build, lambda answer, _: convert(answer, request, count), task=request.question.id,
               share=request.share)  # fmt: skip


def _tried(request: QueryRequest) -> str:
    tried = [f"{item.query.text} ({item.query.type}): {item.hits} results" for item in request.tried]
    lines = [*tried, *(text for text in request.planned if all(text != item.query.text for item in request.tried))]
    return numbered(lines) or "none"


def convert(answer: Queries, request: QueryRequest, count: int) -> Sequence[Query]:
    known = {(fold(item.query.text), item.query.type) for item in request.tried}
    planned = {fold(text) for text in request.planned}
    made: dict[tuple[str, str], Query] = {}
    for item in answer.queries:
        kind = nearest(item.type, request.types, request.types[0])
        key = (fold(item.text), kind)
        if searchable(item.text) and key not in known and (request.tried or key[0] not in planned):
            made.setdefault(key, Query(text=item.text, type=kind))
    if not made:
        raise ReasoningError("no query differs from those already asked")
    return tuple(made.values())[:count]


def searchable(text: str) -> bool:
    """Words to look for: an address is nothing that a model may have fetched, and markup nothing that is looked for."""
    return 0 < len(text) <= LONGEST_QUERY and not _ADDRESS.search(text) and not set(text) & set("<>{}[]|\\`")
