"""One sub-question's reading: passages in, verbatim findings out. What is not found verbatim is no evidence."""

import hashlib
from collections.abc import Mapping, Sequence

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.evidence import Document, Finding, Passage, QuoteSpan
from openassay.models.plan import SubQuestion
from openassay.reasoning.base import Quote, ReadRequest
from openassay.state import State, Task
from openassay.verification.quotes import find_quote

FINDINGS = 16  # per sub-question and round


async def read(task: Task, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    question = SubQuestion.model_validate(task["question"])
    documents = await _load_documents(task, deps)
    passages = _load_passages(task, documents)
    titles = {name: document.title for name, document in documents.items()}
    quotes = await deps.reasoner.read(
        ReadRequest(question=question, passages=passages, limit=FINDINGS, titles=titles, share=task["share"])
    )
    findings = [finding for quote in quotes if (finding := _build_finding(question, quote, passages))]
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


async def _load_documents(task: Task, deps: ResearchContext) -> dict[str, Document]:
    """Each document is loaded once, however many of its passages were chosen."""
    names = dict.fromkeys(place["document"] for place in task["passages"])
    return {name: await deps.documents.get(name) for name in names}


def _load_passages(task: Task, documents: Mapping[str, Document]) -> tuple[Passage, ...]:
    return tuple(
        Passage(**place, text=documents[place["document"]].text[place["start"] : place["end"]])
        for place in task["passages"]
    )


def _build_finding(question: SubQuestion, quote: Quote, passages: Sequence[Passage]) -> Finding | None:
    if not 0 <= quote.passage < len(passages):
        return None
    passage = passages[quote.passage]
    place = find_quote(quote.text, passage.text)
    if place is None:
        return None
    start, end = place
    span = QuoteSpan(
        document=passage.document, start=passage.start + start, end=passage.start + end, quote=passage.text[start:end]
    )
    name = hashlib.sha256(f"{question.id} {span.document} {span.start} {span.end}".encode()).hexdigest()[:12]
    return Finding(id=name, question=question.id, span=span, relevance=quote.relevance)
