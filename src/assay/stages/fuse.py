"""Choosing what to read: the best passages of each sub-question, counted before anything is read."""

import asyncio
from collections.abc import Iterable, Sequence

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.question import Understanding
from assay.model.source import Hit
from assay.search.fuse import fuse as fuse_hits
from assay.settings import Reading
from assay.state import Plain, State
from assay.text.words import words
from assay.trust.aboutness import on_subject


async def fuse(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    by_question: dict[str, list[list[Hit]]] = {}
    for key in sorted(state["searched"]):
        result = state["searched"][key]
        by_question.setdefault(result["question"], []).append([Hit.model_validate(hit) for hit in result["hits"]])
    fused = {question: fuse_hits(lists) for question, lists in sorted(by_question.items())}
    subjects = Understanding.model_validate(state["understanding"]).subjects
    off_subject = await _off_subject(fused.values(), subjects, deps)
    asked = state["original_query"]
    selected = {
        question: choose(named([hit for hit in hits if hit.document not in off_subject], asked), deps.settings.reading)
        for question, hits in fused.items()
    }
    documents = {passage["document"] for passages in selected.values() for passage in passages}
    await deps.emit("search", "fuse", documents=len(documents), passages=sum(map(len, selected.values())))
    return {"selected": selected, "current_agent": "research"}


async def _off_subject(lists: Iterable[Sequence[Hit]], subjects: Sequence[str], deps: Deps) -> set[str]:
    """Documents that are about somebody else: their "we" and "the company" would be taken for the subject's."""
    names = dict.fromkeys(hit.document for hits in lists for hit in hits if hit.document)
    documents = [await deps.documents.get(name) for name in names]
    kept = await asyncio.to_thread(on_subject, documents, subjects)
    for document in documents:
        if document.hash not in kept:
            await deps.emit("skip", "fuse", path=document.title, reason=f"is not about {' or '.join(subjects)}")
    return {document.hash for document in documents} - kept


def named(hits: Sequence[Hit], asked: str) -> list[Hit]:
    """Documents whose titles carry the figures a question names come first; two or more ("Q3 2023") name the document
    itself, and then only those with all of them are read."""
    labels = {word for word in words(asked) if any(character.isdigit() for character in word)}
    carried = {hit.title: len(labels & set(words(hit.title))) for hit in hits}
    most = max(carried.values(), default=0)
    kept = [hit for hit in hits if most < 2 or carried[hit.title] == most]
    return sorted(kept, key=lambda hit: -carried[hit.title])


def choose(hits: Sequence[Hit], limits: Reading) -> list[Plain]:
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
