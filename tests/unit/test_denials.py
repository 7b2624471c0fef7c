"""Sentences that deny a claim which its own passage bears out."""

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from openassay.context import ResearchContext
from openassay.models.evidence import Claim, Document, QuoteSpan, Verdict
from openassay.nodes.denials import MOST_PAIRS, find_denials
from openassay.nodes.verify import ClaimWording, apply_denials, read_contexts
from openassay.protocols import SupportScore
from openassay.reasoning.base import Conflict, DraftClaim
from openassay.reasoning.rules import RuleReasoner
from openassay.testing import make_document
from openassay.text.sentences import split_passages
from openassay.verification.corroboration import CorroborationIndex
from openassay.verification.denials import can_deny
from openassay.verification.sources import assess_credibility
from tests.fakes.reasoner import FakeCompanies
from tests.fakes.support import WordScorer
from tests.unit.test_embedded_reasoner import WordVectors

BLOG = make_document("Six people drowned when the ferry Aurora sank off Lindholm.", title="Ferry disaster")
PAPER = make_document(
    "The ferry Aurora sank off Lindholm on Tuesday with 52 people on board. No one died. The bow door had failed.",
    title="What is known of the Aurora",
)
MYTHS = make_document(
    "Boiling water removes lead. Wrong: boiling kills microbes, but metals stay behind.", title="Ten myths about water"
)


class DenyingScorer(WordScorer):
    """Takes evidence with one of some words for a denial, and bears out copies. It remembers what it was asked."""

    def __init__(self, *words: str) -> None:
        self._words = words
        self.asked: list[tuple[str, str]] = []

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[SupportScore]:
        self.asked += pairs
        return [
            SupportScore(0.1, 0.85) if any(word in evidence for word in self._words) and text not in evidence
            else SupportScore(0.9, 0.85 if any(word in evidence for word in self._words) else 0.0)
            for text, evidence in pairs
        ]  # fmt: skip


def reason(scorer: WordScorer) -> RuleReasoner:
    return RuleReasoner(WordVectors(), scorer, FakeCompanies({}))


def claim(id: str, text: str, document: Document) -> Claim:
    start = document.text.index(text)
    span = QuoteSpan(document=document.hash, start=start, end=start + len(text), quote=text)
    return Claim(id=id, text=text, questions=("Q1",), spans=(span,), verdict=Verdict.SUPPORTED, relevance=0.5)


def index_of(documents: Collection[Document]) -> CorroborationIndex:
    passages = [one for document in documents for one in split_passages(document.hash, document.text)]
    return CorroborationIndex(passages, {document.hash: document.title for document in documents})


async def decide(claims: Sequence[Claim], scorer: WordScorer, *read: Document) -> tuple[list[Claim], list[Conflict]]:
    """What becomes of claims when their denials have been looked for in all that was read."""
    documents = {document.hash: document for document in read}
    reasoner = reason(scorer)
    wordings = [
        ClaimWording(
            one.id,
            DraftClaim(wordings=(one.text,), findings=(), questions=("Q1",), relevance=0.5),
            one.text,
            read_contexts(one.spans, documents),
        )
        for one in claims
    ]
    denials = await find_denials(claims, index_of(read), documents, reasoner)
    credibility = {name: assess_credibility(document) for name, document in documents.items()}
    context = cast(ResearchContext, SimpleNamespace(reasoner=reasoner))
    return await apply_denials(claims, denials, wordings, documents, credibility, context)


@pytest.mark.requirement("W-09", "F-05")
async def test_a_denial_in_another_document_becomes_a_claim_that_disagrees() -> None:
    drowned = claim("C1", BLOG.text, BLOG)

    [first, added], conflicts = await decide([drowned], DenyingScorer("No one died"), BLOG, PAPER)

    assert first == drowned
    assert added.text.endswith("52 people on board. No one died.")
    assert added.verdict is Verdict.SUPPORTED
    assert {span.document for span in added.spans} == {PAPER.hash}
    assert conflicts == [Conflict(first=drowned.text, second=added.text)]
    [matter] = await reason(WordScorer()).find_disagreements([first, added], conflicts)
    assert {*matter.sides} == {("C1",), (added.id,)}


@pytest.mark.requirement("W-09", "F-05")
async def test_a_denial_that_is_a_claim_already_is_not_made_one_again() -> None:
    other = make_document("The ferry Aurora did not sink off Lindholm.", title="Denial")
    claims = [claim("C1", BLOG.text, BLOG), claim("C2", other.text, other)]

    decided, conflicts = await decide(claims, DenyingScorer("did not sink"), BLOG, other)

    assert decided == claims
    assert conflicts == [Conflict(first=BLOG.text, second=other.text)]


@pytest.mark.requirement("W-09", "X-03")
async def test_a_claim_that_its_own_document_denies_is_refused() -> None:
    [decided], conflicts = await decide(
        [claim("C1", "Boiling water removes lead.", MYTHS)], DenyingScorer("Wrong:"), MYTHS
    )

    assert decided.verdict is Verdict.CONTRADICTED
    assert decided.mark is None
    assert ["Wrong:" in span.quote for span in decided.against] == [True]
    assert conflicts == []


@pytest.mark.requirement("W-09", "X-03")
async def test_a_claim_keeps_the_documents_that_do_not_deny_it() -> None:
    other = make_document("Boiling water removes lead. It takes ten minutes.", title="Pure water")
    myth = claim("C1", "Boiling water removes lead.", MYTHS)
    both = myth.model_copy(update={"spans": (*myth.spans, *claim("C1", myth.text, other).spans)})

    [kept, added], conflicts = await decide([both], DenyingScorer("Wrong:"), MYTHS, other)

    assert kept.verdict is Verdict.SUPPORTED
    assert {span.document for span in kept.spans} == {other.hash}
    assert added.text == MYTHS.text
    assert conflicts == [Conflict(first=kept.text, second=added.text)]


@pytest.mark.requirement("X-03")
async def test_a_claim_with_its_denial_in_it_stands() -> None:
    whole = claim("C1", MYTHS.text, MYTHS)

    assert await decide([whole], DenyingScorer("Wrong:"), MYTHS) == ([whole], [])


@pytest.mark.requirement("X-03")
@pytest.mark.parametrize(
    "other",
    [
        "Nobody drowned when the ferry Aurora ran aground off Lindholm in 2019.",  # another year
        "Nobody drowned when the ferry Aurora ran aground off Lindholm in March.",  # another month
        "Nobody drowned when the ferry Borealis was lost near Ostrey.",  # another ferry
        "Four passengers of the ferry Aurora, bound for Lindholm, were not found.",  # another figure
        "The ferry Aurora was built for Lindholm and is loved by many people.",  # denies nothing
        "The number of people who drowned off Lindholm with the Aurora is not falling.",  # says the same
    ],
)
async def test_other_times_and_other_things_are_no_denial(other: str) -> None:
    told = make_document(
        "Six people drowned off Lindholm with the ferry Aurora in May 2024, and their number rises.", title="Report"
    )
    document, scorer = make_document(other, title="News"), DenyingScorer("")
    drowned = claim("C1", told.text, told)

    assert await decide([drowned], scorer, told, document) == ([drowned], [])
    assert not scorer.asked, "no pair is read that cannot be one"


@pytest.mark.requirement("X-03")
async def test_who_tells_what_others_say_need_not_agree_with_them() -> None:
    document = make_document(
        "Trellis says that it never sold the data of its users to brokers. The users allege that Trellis sold their "
        "data to brokers.",
        title="Trellis in court",
    )
    said = claim("C1", document.text.split(". ")[0] + ".", document)

    assert await decide([said], DenyingScorer("allege"), document) == ([said], [])


@pytest.mark.requirement("W-09")
async def test_the_number_of_pairs_is_bounded_and_the_best_go_first() -> None:
    texts = [f"The ferry Aurora number {number} sank off Lindholm harbour." for number in range(200)]
    told = make_document(" ".join(texts), title="Aurora")
    denials = make_document(
        "The ferry Aurora never sank off Lindholm harbour. It is false that the ferry Aurora sank off Lindholm. No "
        "ferry sank off Lindholm harbour.",
        title="No ferry Aurora sank",
    )
    scorer = DenyingScorer("never", "false", "No ferry")
    documents = {document.hash: document for document in (told, denials)}
    claims = [claim(f"C{number}", text, told) for number, text in enumerate(texts)]

    await find_denials(claims, index_of([denials]), documents, reason(scorer))

    assert len(scorer.asked) == MOST_PAIRS
    assert len({text for text, _ in scorer.asked}) == MOST_PAIRS, "one of each claim before two of any"


@pytest.mark.requirement("X-03")
async def test_a_document_does_not_take_back_what_it_only_goes_on_to_tell() -> None:
    document = make_document(
        "The church of Ostrey, built by the two parishes of the town, was sold to a school. The two parishes of Ostrey "
        "did not unite until much later, and then went to another house.",
        title="The church of Ostrey",
    )
    sold = claim("C1", document.text.split(". ")[0] + ".", document)

    assert await decide([sold], DenyingScorer("did not unite"), document) == ([sold], [])


@pytest.mark.requirement("X-03")
def test_a_not_of_the_statement_alone_is_denied_by_what_repeats_it() -> None:
    statement = "The supernovae give the Hubble constant directly, without a model of the early universe."
    assert not can_deny(statement, other := "A longer sound horizon changes the Hubble constant.", other)
    assert can_deny("Boiling does not remove lead.", other := "Boiling water removes lead.", other)
