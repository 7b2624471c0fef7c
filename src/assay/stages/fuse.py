"""Choosing what to read: the best passages of each sub-question, counted before anything is read."""

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.source import Hit
from assay.search.fuse import fuse as fuse_hits
from assay.settings import Reading
from assay.state import Plain, State


async def fuse(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    by_question: dict[str, list[list[Hit]]] = {}
    for key in sorted(state["searched"]):
        result = state["searched"][key]
        by_question.setdefault(result["question"], []).append([Hit.model_validate(hit) for hit in result["hits"]])
    selected = {
        question: choose(fuse_hits(lists), deps.settings.reading) for question, lists in sorted(by_question.items())
    }
    documents = {passage["document"] for passages in selected.values() for passage in passages}
    await deps.emit("search", "fuse", documents=len(documents), passages=sum(map(len, selected.values())))
    return {"selected": selected, "current_agent": "research"}


def choose(hits: list[Hit], limits: Reading) -> list[Plain]:
    """In order of rank, from a bounded number of documents."""
    chosen: list[Plain] = []
    documents: set[str] = set()
    for hit in hits:
        if hit.document is None or hit.start is None or hit.end is None:
            continue
        if hit.document not in documents and len(documents) >= limits.documents_per_question:
            continue
        if len(chosen) >= limits.passages_per_question:
            break
        documents.add(hit.document)
        chosen.append({"document": hit.document, "start": hit.start, "end": hit.end})
    return chosen
