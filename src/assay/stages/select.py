"""Choosing passages of the pages that were read: copies left out, the best for each sub-question kept."""

import asyncio
from collections.abc import Mapping, Sequence

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.plan import SubQuestion
from assay.model.source import Document, Passage
from assay.search.duplicates import duplicates
from assay.search.fuse import K
from assay.settings import Reading
from assay.state import Plain, State


async def select(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    wanted = dict.fromkeys(page["key"] for pages in state["pages"].values() for page in pages)
    outcomes = [state["harvested"][key] for key in wanted if key in state["harvested"]]
    names = list(dict.fromkeys(outcome["document"] for outcome in outcomes if outcome["document"]))
    before = [passage["document"] for passages in state["selected"].values() for passage in passages]
    documents = [await deps.documents.get(name) for name in dict.fromkeys([*names, *before])]
    copies = await _copies(documents, set(names), deps)
    questions = [SubQuestion.model_validate(task["question"]) for task in state["tasks"]]
    fresh = [document for document in documents if document.hash in names and document.hash not in copies]
    limits = deps.settings.reading
    ranked = await deps.ranker.rank(
        fresh, [question.in_context for question in questions], limit=limits.passages_per_question
    )
    chosen = {
        question.id: merged(_without(state["selected"].get(question.id, ()), copies), passages, limits)
        for question, passages in zip(questions, ranked, strict=True)
    }
    now = [outcome for outcome in outcomes if outcome["round"] == str(state["round"] - 1)]
    await deps.emit(
        "read", "select", pages=len(wanted) - len(outcomes) + len(now), read=sum(bool(o["document"]) for o in now),
        copies=len(copies.keys() & set(names)), cached=sum(o["cached"] and bool(o["document"]) for o in now),
        passages=sum(map(len, chosen.values())),
    )  # fmt: skip
    return {"selected": {**state["selected"], **chosen}, "current_agent": "research"}


async def _copies(documents: Sequence[Document], pages: set[str], deps: Deps) -> dict[str, str]:
    """Document -> the one it repeats. A person's own is kept before a page, and a page before its own summary."""
    own = [document.hash for document in documents if document.kind in ("document", "demo")]
    fetched = [document.hash for document in documents if document.hash in pages]
    texts = [(document.hash, document.text) for document in documents]
    found = await asyncio.to_thread(duplicates, texts, [*own, *fetched])
    kept = {copy: original for copy, original in found.items() if copy not in own}
    titles = {document.hash: document.title for document in documents}
    for copy, original in kept.items():
        if copy in pages:
            await deps.emit("skip", "select", path=titles[copy], reason=f"says the same as “{titles[original]}”")
    return kept


def _without(places: Sequence[Plain], copies: Mapping[str, str]) -> list[Plain]:
    return [place for place in places if place["document"] not in copies]


def merged(own: Sequence[Plain], ranked: Sequence[Passage], limits: Reading) -> list[Plain]:
    """Two rankings into one, by rank alone since their scores do not compare; from a bounded number of documents."""
    found = [{"document": p.document, "start": p.start, "end": p.end} for p in ranked]
    scores: dict[tuple[str, int], float] = {}
    places: dict[tuple[str, int], Plain] = {}
    for ranking in (own, found):
        for rank, place in enumerate(ranking, 1):
            key = place["document"], place["start"]
            scores[key] = scores.get(key, 0.0) + 1 / (K + rank)
            places.setdefault(key, dict(place))
    chosen: list[Plain] = []
    documents: set[str] = set()
    for key in sorted(scores, key=lambda key: (-scores[key], key)):
        if key[0] in documents or len(documents) < limits.documents_per_question:
            documents.add(key[0])
            chosen.append(places[key])
    return chosen[: limits.passages_per_question]
