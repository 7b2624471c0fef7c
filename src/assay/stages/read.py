"""One sub-question's reading: passages in, verbatim findings out. What is not found verbatim is no evidence."""

import hashlib
from collections.abc import Sequence

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.evidence import Finding, Span
from assay.model.plan import SubQuestion
from assay.model.source import Passage
from assay.reasoning.protocol import Quote
from assay.state import State, Task
from assay.trust.quotes import find

FINDINGS = 16  # per sub-question and round


async def read(task: Task, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    question = SubQuestion.model_validate(task["question"])
    passages = await _passages(task, deps)
    quotes = await deps.reasoner.read(question, passages, FINDINGS)
    findings = [finding for quote in quotes if (finding := _finding(question, quote, passages))]
    if lost := len(quotes) - len(findings):
        await deps.emit(
            "notice", "read", text=f"{lost} quotes for {question.id} do not stand in their passage and were dropped"
        )
    documents = len({passage.document for passage in passages})
    await deps.emit(
        "finding", "read", question=question.id, text=question.text, documents=documents, findings=len(findings)
    )
    return {"read": {task["key"]: [finding.plain() for finding in findings]}}


async def _passages(task: Task, deps: Deps) -> list[Passage]:
    """Each document is loaded once, however many of its passages were chosen."""
    names = dict.fromkeys(place["document"] for place in task["passages"])
    texts = {name: (await deps.documents.get(name)).text for name in names}
    return [
        Passage(**place, text=texts[place["document"]][place["start"] : place["end"]]) for place in task["passages"]
    ]


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
