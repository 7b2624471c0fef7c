"""One sub-question's reading: passages in, verbatim findings out. What is not found verbatim is no evidence."""

import hashlib
from collections.abc import Mapping, Sequence

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.evidence import Finding, Span
from assay.model.plan import SubQuestion
from assay.model.source import Document, Passage
from assay.reasoning.protocol import Quote, ReadRequest
from assay.state import State, Task
from assay.trust.quotes import find

FINDINGS = 16  # per sub-question and round


async def read(task: Task, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    question = SubQuestion.model_validate(task["question"])
    documents = await _documents(task, deps)
    passages = _passages(task, documents)
    titles = {name: document.title for name, document in documents.items()}
    quotes = await deps.reasoner.read(
        ReadRequest(question=question, passages=passages, limit=FINDINGS, titles=titles, share=task["share"])
    )
    findings = [finding for quote in quotes if (finding := _finding(question, quote, passages))]
    if lost := len(quotes) - len(findings):
        await deps.emit(
            "notice", "read", text=f"{lost} quotes for {question.id} do not stand in their passage and were dropped"
        )
    await deps.emit(
        "finding", "read", question=question.id, text=question.text, documents=len(documents), findings=len(findings)
    )
    return {
        "read": {task["key"]: [finding.plain() for finding in findings]},
        "perused": {task["key"]: [[place["document"], place["start"]] for place in task["passages"]]},
    }


async def _documents(task: Task, deps: Deps) -> dict[str, Document]:
    """Each document is loaded once, however many of its passages were chosen."""
    names = dict.fromkeys(place["document"] for place in task["passages"])
    return {name: await deps.documents.get(name) for name in names}


def _passages(task: Task, documents: Mapping[str, Document]) -> tuple[Passage, ...]:
    return tuple(
        Passage(**place, text=documents[place["document"]].text[place["start"] : place["end"]])
        for place in task["passages"]
    )


def _finding(question: SubQuestion, quote: Quote, passages: Sequence[Passage]) -> Finding | None:
    if not 0 <= quote.passage < len(passages):
        return None
    passage = passages[quote.passage]
    place = find(quote.text, passage.text)
    if place is None:
        return None
    start, end = place
    span = Span(
        document=passage.document, start=passage.start + start, end=passage.start + end, quote=passage.text[start:end]
    )
    name = hashlib.sha256(f"{question.id} {span.document} {span.start} {span.end}".encode()).hexdigest()[:12]
    return Finding(id=name, question=question.id, span=span, relevance=quote.relevance)
