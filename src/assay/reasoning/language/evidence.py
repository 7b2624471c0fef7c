"""Evidence as a prompt shows it: by source, each quote with a number."""

from collections.abc import Sequence
from typing import NamedTuple

from assay.model.plan import Plan
from assay.reasoning.language.prompt import numbered, tagged
from assay.reasoning.protocol import Evidence
from assay.text.turns import in_turn

LONGEST_QUOTE = 600  # characters


class Listed(NamedTuple):
    """The evidence in the order of its numbers, and the documents in theirs."""

    items: list[Evidence]
    documents: list[str]

    def find(self, numbers: Sequence[int]) -> list[Evidence]:
        return [self.items[number - 1] for number in numbers if 1 <= number <= len(self.items)]


def balanced(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The best of every sub-question first, then the second best of each: whatever room there is, none is left out."""
    best = sorted(evidence, key=lambda item: (-item.finding.relevance, item.finding.id))
    return tuple(in_turn(best, lambda item: item.finding.question))


def listed(shown: Sequence[Evidence]) -> Listed:
    documents = list(dict.fromkeys(item.finding.span.document for item in shown))
    place = {document: number for number, document in enumerate(documents)}
    return Listed(sorted(shown, key=lambda item: place[item.finding.span.document]), documents)


def sources(shown: Sequence[Evidence], plan: Plan) -> str:
    """Each document between tags of its own; a quote names the sub-question it was found for."""
    number_of = {question.id: number for number, question in enumerate(plan.questions, 1)}
    items, documents = listed(shown)
    blocks = []
    for at, document in enumerate(documents, 1):
        mine = [(n, item) for n, item in enumerate(items, 1) if item.finding.span.document == document]
        head = mine[0][1]
        date = f" ({head.published})" if head.published else ""
        lines = [f"Source {at}: {head.title}{date}"]
        lines += [f"[{n}] (question {number_of.get(item.finding.question, 0)}) {_quote(item)}" for n, item in mine]
        blocks.append(tagged("source", "\n".join(lines)))
    return "\n".join(blocks)


def _quote(item: Evidence) -> str:
    return " ".join(item.finding.span.quote.split())[:LONGEST_QUOTE]


def halved(item: Evidence) -> Evidence:
    """Half the words for the prompt; what is kept as evidence is the whole quote, found by the finding's id."""
    span = item.finding.span
    kept = max(1, len(span.quote) // 2)
    short = span.model_copy(update={"quote": span.quote[:kept], "end": span.start + kept})
    return item.model_copy(update={"finding": item.finding.model_copy(update={"span": short})})


def questions(plan: Plan) -> str:
    return tagged("message", f"{plan.goal}\n{numbered(question.in_context for question in plan.questions)}")
