"""How sure a report may call itself.

Without a language model, confidence is the chance that what a report shows first is right: its short answer, or else
its first statement. The chance was fitted on one half of questions with known answers, and docs/quality.md tells the
other half (benchmarks/bench_confidence.py). For a language model there is no such data: a plain rule decides, which is
meant to say too little.
"""

from collections.abc import Collection, Mapping, Sequence
from math import exp
from typing import NamedTuple

from openassay.models.evidence import Claim, Disagreement, Mark, Verdict
from openassay.models.plan import Plan
from openassay.models.report import Level, Section, SourceCard
from openassay.reasoning.base import DraftAnswer
from openassay.text import questions
from openassay.text.other_languages import find_other_language, find_stems
from openassay.text.words import stems

MOST_PASSAGES = 3  # that the verifier reads


class Lead(NamedTuple):
    """What a report shows first, the claims it rests on, and the documents that say so."""

    text: str
    claims: tuple[Claim, ...]
    documents: tuple[str, ...]

    def list_passages(self, sources: Mapping[str, SourceCard]) -> list[str]:
        """List what the verifier reads to tell whether the lead answers."""
        spans = {(span.document, span.start): span for claim in self.claims for span in claim.spans}
        return [f"{sources[document].title}\n{span.quote}" for (document, _), span in spans.items()][:MOST_PASSAGES]

    def as_answer_to(self, question: str) -> str:
        """Write the question and the lead as one text: if the lead answers, its passages bear that out."""
        # What is not in English is borne out word for word or not at all.
        return self.text if find_other_language(question) else f"{question} {self.text.rstrip('.')}."


def find_lead(sections: Sequence[Section], answers: Sequence[DraftAnswer], claims: Mapping[str, Claim]) -> Lead | None:
    """Find the first of `answers`, which are those that nobody disputes, or else the first statement."""
    for answer in answers:
        return Lead(answer.text, tuple(claims[name] for name in answer.claims), answer.documents)
    for section in sections:
        for sentence in section.sentences:
            if bound := tuple(claims[name] for name in sentence.claims if name in claims):
                return Lead(sentence.text, bound, tuple(span.document for claim in bound for span in claim.spans))
    return None


class LeadSigns(NamedTuple):
    """What speaks for a lead, each from 0 to 1."""

    borne_out: float  # by its passages, as an answer to the question: the verifier's word
    relevant: float  # the passage to the question, as it was read
    topical: float  # share of the question's words that stand in its passages or their titles
    simple: float  # the fewer words a question has, the fewer things have to be right at once
    agreed: float  # two or more independent sources say so


SIMPLE = 3  # words of a question, those of asking aside, that are as simple as can be


def describe_lead(question: str, lead: Lead, sources: Mapping[str, SourceCard], borne_out: float) -> LeadSigns:
    """`sources` are by document."""
    spans = [span for claim in lead.claims for span in claim.spans]
    told = [claim.text for claim in lead.claims] + [span.quote for span in spans]
    texts = " ".join((*told, *(sources[span.document].title for span in spans)))
    if language := find_other_language(question):
        known, wanted = set(find_stems(texts, language)), set(find_stems(question, language))
    else:
        known, wanted = set(stems(texts)), set(stems(" ".join(questions.topic_words(question))))
    return LeadSigns(
        borne_out=borne_out,
        relevant=max(claim.relevance for claim in lead.claims),
        topical=len(wanted & known) / len(wanted) if wanted else 0.0,
        simple=min(1.0, SIMPLE / len(wanted)) if wanted else 1.0,
        agreed=float(len({sources[name].group for name in lead.documents if name in sources}) > 1),
    )


# Fitted by logistic regression on one half of the questions of benchmarks/bench_confidence.py, 187 leads of which 68
# are right; cross-validated within that half, the area under the curve is .81. The thresholds were chosen there, too:
# of 9 leads from the first on 9 are right, of 58 in between .60, of the others .20. The other half is told in
# docs/quality.md.
INTERCEPT = -4.23
WEIGHTS = LeadSigns(borne_out=2.27, relevant=0.98, topical=1.21, simple=1.11, agreed=1.06)
HIGH, MEDIUM = 0.75, 0.4  # chances from which on a report says so


def rate_lead(signs: LeadSigns) -> float:
    """How likely a lead is right."""
    total = INTERCEPT + sum(weight * sign for weight, sign in zip(WEIGHTS, signs, strict=True))
    return round(1 / (1 + exp(-total)), 4)


def find_level(chance: float, lead: Lead) -> Level:
    """What no second independent source confirms is never of high confidence, however sure the verifier: two documents
    may be of two publishers and still be one voice, which only the claim's mark tells."""
    if chance >= HIGH and any(claim.mark is Mark.CORROBORATED for claim in lead.claims):
        return "high"
    return "medium" if chance >= MEDIUM else "low"


def find_level_by_rule(
    plan: Plan, claims: Sequence[Claim], disagreements: Sequence[Disagreement], first_hand: Collection[str]
) -> Level:
    """The level where a language model judged, or where a topic is reported on and no one answer can be right. It is
    not calibrated. High: each sub-question has a claim that two independent sources support or one at first hand, and
    nothing is in dispute. Low: half of the sub-questions or more have no claim. `first_hand` are documents."""
    kept = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED and not claim.superseded_by]

    def is_sure(claim: Claim) -> bool:
        return claim.mark is Mark.CORROBORATED or any(span.document in first_hand for span in claim.spans)

    own = [[claim for claim in kept if question.id in claim.questions] for question in plan.questions]
    if sum(not found for found in own) * 2 >= len(own):
        return "low"
    if all(any(map(is_sure, found)) for found in own) and all(matter.resolved for matter in disagreements):
        return "high"
    return "medium"
