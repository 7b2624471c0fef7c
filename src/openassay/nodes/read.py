"""Read for one sub-question: passages in, verbatim findings out. What is not found verbatim is no evidence."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.evidence import Document, Finding, Passage, QuoteSpan
from openassay.models.plan import SubQuestion
from openassay.reasoning.base import Quote, ReadRequest
from openassay.state import State, Task
from openassay.text.sentences import split_passages
from openassay.verification.quotes import find_quote

# Per sub-question and round. A language model makes the 80 claims of a report of them; those of the embedded reasoner
# are compared pair by pair, which takes time.
MAX_FINDINGS, MAX_FINDINGS_EMBEDDED, MAX_FINDINGS_BROAD = 32, 16, 24
LEAD_LENGTH = 2_000  # characters at the beginning of a document in which its first passage stands


async def read(task: Task, runtime: Runtime[ResearchContext]) -> State:
    context, question = runtime.context, SubQuestion.model_validate(task["question"])
    documents = await context.load_documents(place["document"] for place in task["passages"])
    passages = load_passages(task["passages"], documents)
    embedded = context.reasoner.name == "embedded"
    if not embedded:
        passages = add_leads(passages, documents)
    limit = MAX_FINDINGS_BROAD if question.broad else MAX_FINDINGS_EMBEDDED
    quotes = await context.reasoner.read(
        ReadRequest(
            question=question,
            passages=passages,
            limit=limit if embedded else MAX_FINDINGS,
            titles={name: document.title for name, document in documents.items()},
            dates={name: document.published.isoformat() for name, document in documents.items() if document.published},
            texts={name: document.text for name, document in documents.items()},
            share=task["share"],
        )
    )
    findings = []
    for quote in quotes:
        span = locate_quote(quote, passages, documents)
        if span is not None:
            key = f"{question.id} {span.document} {span.start} {span.end}"
            id = hashlib.sha256(key.encode()).hexdigest()[:12]
            findings.append(
                Finding(id=id, question=question.id, span=span, relevance=quote.relevance, cells=quote.cells)
            )
    if lost := len(quotes) - len(findings):
        text = f"{lost} quotes for {question.id} do not stand in their passage and were dropped"
        await context.emit("notice", "read", text=text)
    counts = {"documents": len(documents), "findings": len(findings)}
    await context.emit("finding", "read", question=question.id, text=question.text, **counts)
    return {
        "read": {task["key"]: [finding.plain() for finding in findings]},
        "perused": {task["key"]: [[place["document"], place["start"]] for place in task["passages"]]},
    }


def locate_quote(quote: Quote, passages: Sequence[Passage], documents: Mapping[str, Document]) -> QuoteSpan | None:
    """Where a quote stands in its document; None where it does not."""
    if quote.document in documents:
        text = documents[quote.document].text
        start = text.find(quote.text) if quote.text else -1
        end = start + len(quote.text)
        return QuoteSpan(document=quote.document, start=start, end=end, quote=quote.text) if start >= 0 else None
    passage = passages[quote.passage] if 0 <= quote.passage < len(passages) else None
    place = find_quote(quote.text, passage.text) if passage else None
    if passage is None or place is None:
        return None
    start, end = passage.start + place.start, passage.start + place.end
    return QuoteSpan(document=passage.document, start=start, end=end, quote=passage.text[place.start : place.end])


def load_passages(places: Iterable[Mapping[str, Any]], documents: Mapping[str, Document]) -> tuple[Passage, ...]:
    return tuple(
        Passage(**place, text=documents[place["document"]].text[place["start"] : place["end"]]) for place in places
    )


def add_leads(passages: Sequence[Passage], documents: Mapping[str, Document]) -> tuple[Passage, ...]:
    """Add how each document begins, after the best passage of each: it says who and when, which others leave out."""
    best = {passage.document: passage for passage in reversed(passages)}
    leads = [lead for name, one in documents.items() for lead in split_passages(name, one.text[:LEAD_LENGTH])[:1]]
    firsts = [passage for passage in passages if best[passage.document] is passage]
    return tuple({(passage.document, passage.start): passage for passage in (*firsts, *leads, *passages)}.values())
