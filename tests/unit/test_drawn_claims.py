"""What sentences of a composed draft rest on beside the claims that they name."""

import hashlib
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

from openassay.context import ResearchContext
from openassay.models.evidence import Claim, Document, QuoteSpan, Verdict
from openassay.nodes.binding import choose_documents, draw_claims, find_named_documents, find_sentences, read_labels
from openassay.reasoning.base import Draft, DraftSection, DraftSentence
from openassay.text.sentences import split_sentences
from openassay.verification.context import EvidenceContext

TEXTS = {
    "PEP 298: The Locked Buffer Interface": "Status: Withdrawn. Type: Standards.\n\nThis PEP proposes locked buffers.",
    "PEP 3118: Revising the buffer protocol": "PEP 3118 leaves the locking of buffers to users.",
}
DOCUMENTS = {
    title: Document(
        hash=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
        url="file:///pep.md",
        title=title,
        fetched=datetime.now(UTC),
    )
    for title, text in TEXTS.items()
}
OLD, NEW = DOCUMENTS.values()


def make_claim(name: str, document: Document, quote: str) -> Claim:
    start = document.text.index(quote)
    span = QuoteSpan(document=document.hash, start=start, end=start + len(quote), quote=quote)
    return Claim(id=name, text=quote, questions=("Q1",), spans=(span,), verdict=Verdict.SUPPORTED, confidence=0.9)


CLAIMS = {
    "C1": make_claim("C1", OLD, "This PEP proposes locked buffers."),
    "C2": make_claim("C2", NEW, "PEP 3118 leaves the locking of buffers to users."),
}


async def draw(sentence: DraftSentence) -> tuple[DraftSentence, dict[str, Claim]]:
    draft = Draft(title="Buffers", sections=(DraftSection(title="Buffers", sentences=(sentence,)),))
    by_hash = {document.hash: document for document in DOCUMENTS.values()}
    context = cast(ResearchContext, SimpleNamespace(reasoner=None))
    drawn, claims = await draw_claims(draft, CLAIMS, by_hash, context)
    return drawn.sections[0].sentences[0], claims


async def test_what_became_of_a_document_that_a_sentence_names_is_drawn_from_it() -> None:
    text = "PEP 298's locked buffers were withdrawn; PEP 3118 left the locking of buffers to users."
    sentence, drawn = await draw(DraftSentence(text=text, claims=("C2",)))

    assert sentence.claims == ("C2", "C3")
    assert "Withdrawn" in drawn["C3"].text
    assert drawn["C3"].spans[0].document == OLD.hash


async def test_a_document_that_adds_nothing_is_not_cited_for_being_named() -> None:
    text = "After PEP 298, PEP 3118 leaves the locking of buffers to users."
    sentence, drawn = await draw(DraftSentence(text=text, claims=("C2",)))
    assert (sentence.claims, drawn) == (("C2",), {})


def test_a_line_of_place_and_date_is_not_drawn() -> None:
    text = "Washington, October 14, 1969.\n\nMr. Roe asked on 14 October for wider margins. He saw no hurry."
    passage = EvidenceContext("d", (), "Memo", tuple(split_sentences(text)), whole=text)
    [span] = find_sentences("On 14 October 1969 Roe asked in Washington for wider margins.", passage)
    assert span.quote == "Mr. Roe asked on 14 October for wider margins."


def test_a_label_has_a_number_and_is_of_one_document() -> None:
    titles = {
        "a": "PEP 298: The Locked Buffer Interface",
        "b": "Covid-19: what we know",
        "c": "Covid-19: a year on",
        "d": "Apple: a history",
        "e": "EIP-1559 changed fees",
        "f": "Kubernetes v1.29: Mandala",
    }
    labels = read_labels(titles)
    assert labels == {"a": "PEP 298", "f": "Kubernetes v1.29"}
    assert find_named_documents("Of PEP 298, in Kubernetes v1.29.1 and PEP 2981", labels) == ["a"]


def test_a_drawn_sentence_cites_the_documents_that_have_its_words() -> None:
    texts = {
        "a": "The mark rose by 9 per cent.",
        "b": "France kept the gold price.",
        "c": "The mark rose.",
        "d": "Rules for aircraft noise were signed.",
    }
    claims = [
        Claim(id=name, text=text, questions=("Q1",), verdict=Verdict.SUPPORTED,
              spans=(QuoteSpan(document=name, start=0, end=len(text), quote=text),))
        for name, text in texts.items()
    ]  # fmt: skip
    said = "The mark rose by 9 per cent while France kept the price of gold."
    assert choose_documents(said, claims, 5) == ["a", "b"]
    assert choose_documents(said, claims, 1) == ["a"]
    assert choose_documents("So it went.", claims[:1], 5) == ["a"], "one at least"
    assert choose_documents(said, [], 5) == []
