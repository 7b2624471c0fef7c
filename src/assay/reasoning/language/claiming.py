"""Atomic claims from the evidence, and how far each source can be relied on: the first of two calls that verify."""

from collections.abc import Sequence

from assay.errors import ReasoningError
from assay.model.plan import Plan
from assay.reasoning.language.answer import Answer, Line, Number, Numbers, Phrase, Score, schema
from assay.reasoning.language.evidence import Listed, balanced, halved, listed, questions, sources
from assay.reasoning.language.step import Job, Step
from assay.reasoning.protocol import Claimed, DraftClaim, Evidence, Opinion
from assay.text.relations import same
from assay.text.words import fold

STEP = Step("claims", stage="verify", role="judge", thing="list of claims",
            variables=("questions", "sources", "most", "credibility"), purpose="finish")  # fmt: skip
MOST, MOST_IN_LITTLE_ROOM = 40, 8
MOST_QUOTES, MOST_QUOTES_IN_LITTLE_ROOM = 6, 2  # a small model takes all it was shown for one vague claim
WORDS_EACH = 20  # of an answer: a claim with its numbers
CREDIBILITY = (
    "\n\nsources: for each source its number, a score from 0 (not to be relied on) to 10 (original study, official "
    "data), and the reason in a few words."
)


class Stated(Answer):
    """The quotes come before the text: who has named one writes what it says."""

    quotes: Numbers
    text: Line
    question: Number = 0
    relevance: Score = 5.0


class Rated(Answer):
    source: Number
    score: Score
    reason: Phrase = ""


class Claims(Answer):
    claims: list[Stated]
    sources: list[Rated] = []


def job(plan: Plan, evidence: Sequence[Evidence], small: bool, words: int) -> Job[Claims, Evidence, Claimed]:
    most = MOST_IN_LITTLE_ROOM if small else max(MOST_IN_LITTLE_ROOM, min(MOST, words // WORDS_EACH))

    def build(shown: Sequence[Evidence]) -> dict[str, str]:
        credibility = "" if small else CREDIBILITY
        return {"questions": questions(plan), "sources": sources(shown, plan), "most": str(most),
                "credibility": credibility}  # fmt: skip

    quotes = MOST_QUOTES_IN_LITTLE_ROOM if small else MOST_QUOTES
    documents = len({item.finding.span.document for item in evidence})
    lists = {"claims": most, "quotes": quotes, "sources": 0 if small else min(documents, 30)}
    return Job(
        STEP, Claims, schema(Claims, "Claims", lists), build,
        lambda answer, shown: convert(answer, listed(shown), plan, evidence, quotes),
        sources=balanced(evidence), shorten=halved,
    )  # fmt: skip


def convert(answer: Claims, shown: Listed, plan: Plan, evidence: Sequence[Evidence], quotes: int) -> Claimed:
    made: dict[str, DraftClaim] = {}
    for item in answer.claims:
        behind = shown.find(item.quotes)[:quotes]
        if item.text and behind:
            made.setdefault(fold(item.text), _claim(item, behind, plan, evidence))
    if not made:
        raise ReasoningError(f"no claim names a quote; quotes are numbered 1 to {len(shown.items)}")
    credibility = {
        shown.documents[item.source - 1]: Opinion(score=item.score / 10, reason=item.reason)
        for item in answer.sources
        if 1 <= item.source <= len(shown.documents)
    }
    return Claimed(claims=tuple(made.values())[:MOST], credibility=credibility)


def _claim(item: Stated, behind: Sequence[Evidence], plan: Plan, evidence: Sequence[Evidence]) -> DraftClaim:
    """Evidence elsewhere that says the same bears witness too, whether or not the model named it."""
    witnesses = [other for other in evidence if same(item.text, other.finding.span.quote)]
    asked = [plan.questions[item.question - 1].id] if 1 <= item.question <= len(plan.questions) else []
    return DraftClaim(
        wordings=(item.text,),
        findings=tuple(dict.fromkeys(other.finding.id for other in (*behind, *witnesses))),
        questions=tuple(dict.fromkeys([*asked, *(other.finding.question for other in behind)])),
        relevance=item.relevance / 10,
    )


def completed(made: Claimed, floor: Claimed, small: bool) -> Claimed:
    """Sub-questions the model left out keep the claims the floor draws from their evidence; in little room so does all
    evidence that no claim of the model's speaks of."""
    spoken = {question for claim in made.claims for question in claim.questions}
    said = [claim.wordings[0] for claim in made.claims]
    missing = [
        claim
        for claim in floor.claims
        if not spoken & set(claim.questions) or (small and not any(same(text, claim.wordings[0]) for text in said))
    ]
    return made.model_copy(update={"claims": (*made.claims, *missing)[: max(MOST, len(made.claims))]})
