"""Read for one sub-question: passages in, verbatim findings out. What is not found verbatim is no evidence."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.evidence import Document, Finding, Passage, QuoteSpan
from openassay.models.plan import SubQuestion
from openassay.reasoning.base import ReadRequest
from openassay.state import State, Task
from openassay.verification.quotes import find_quote

MAX_FINDINGS = 16  # per sub-question and round


async def read(task: Task, runtime: Runtime[ResearchContext]) -> State:
    context, question = runtime.context, SubQuestion.model_validate(task["question"])
    documents = await context.load_documents(place["document"] for place in task["passages"])
    passages = load_passages(task["passages"], documents)
    titles = {name: document.title for name, document in documents.items()}
    quotes = await context.reasoner.read(
        ReadRequest(question=question, passages=passages, limit=MAX_FINDINGS, titles=titles, share=task["share"])
    )
    findings = []
    for quote in quotes:
        passage = passages[quote.passage] if 0 <= quote.passage < len(passages) else None
        place = find_quote(quote.text, passage.text) if passage else None
        if passage is None or place is None:
            continue
        start, end = passage.start + place.start, passage.start + place.end
        span = QuoteSpan(document=passage.document, start=start, end=end, quote=passage.text[place.start : place.end])
        id = hashlib.sha256(f"{question.id} {span.document} {start} {end}".encode()).hexdigest()[:12]
        findings.append(Finding(id=id, question=question.id, span=span, relevance=quote.relevance))
    if lost := len(quotes) - len(findings):
        text = f"{lost} quotes for {question.id} do not stand in their passage and were dropped"
        await context.emit("notice", "read", text=text)
    counts = {"documents": len(documents), "findings": len(findings)}
    await context.emit("finding", "read", question=question.id, text=question.text, **counts)
    return {
        "read": {task["key"]: [finding.plain() for finding in findings]},
        "perused": {task["key"]: [[place["document"], place["start"]] for place in task["passages"]]},
    }


def load_passages(places: Iterable[Mapping[str, Any]], documents: Mapping[str, Document]) -> tuple[Passage, ...]:
    return tuple(
        Passage(**place, text=documents[place["document"]].text[place["start"] : place["end"]]) for place in places
    )
