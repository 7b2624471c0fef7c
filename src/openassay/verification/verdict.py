"""From spans to a verdict: the quote exists, the figures agree, the passage supports, the sources are independent.

Deterministic checks may overrule a judgement towards doubt, never the other way.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from itertools import combinations
from typing import NamedTuple

from openassay.models.evidence import Claim, Document, Finding, Judgement, Mark, QuoteSpan, Verdict
from openassay.models.plan import SubQuestion
from openassay.text.other_languages import find_other_language
from openassay.text.questions import (
    answer_kinds,
    distinctive_stems,
    find_question_names,
    find_year_range,
    has_answer_kind,
    has_name,
    topic_words,
)
from openassay.text.relations import find_years, relate
from openassay.text.words import interleave_groups, stems
from openassay.verification.context import OPPOSED, EvidenceContext
from openassay.verification.polarity import StatementProblem
from openassay.verification.sources import CREDIBLE, Credibility, group_by_origin
from openassay.verification.statement_check import check_statement
from openassay.verification.wording import content_share, is_grounded

# Which claims bear a sentence out: those it names, or, where the writer named the wrong ones, those that say it.

CANDIDATES = 4  # claims that are tried where those named do not bear a sentence out
ELSEWHERE = 0.6  # of its words; a sentence that has more of them in the claim it names speaks of that claim
IDLE = 0.25  # of a sentence's words; a claim that has fewer, where others have the rest, is not what it rests on
WORD_FOR_WORD = 0.9  # of its words; a claim that a sentence does not name must have almost all of them
# What points at something said before is understood only beside its own claim.
_POINTS = re.compile(r"(?:this|that|these|those|it|its|he|she|his|her|they|their|such|there)\b", re.I)
SOMEWHERE = "There, "  # stands for a source that was named: what follows does not begin the sentence
_ATTRIBUTED = re.compile(r"^(?:according to|as reported by|as stated in) ([^,]{2,120}), (?=\S)", re.I)
_SOME_SOURCE = re.compile(
    r"(?:the|this|that|its|one|a) (?:\w+ )?(?:source|report|article|study|document|page|filing|author)s?", re.I
)
_SAYING = re.compile(
    r"\b(?:according|say|says|said|state[ds]?|report(?:s|ed)|told|tells|writes|wrote|announced|found|claim(?:s|ed)|shows?)\b",
    re.I,
)


class ClaimMatcher:
    """The supported claims of a run. `titles` are the documents' by hash: a sentence may say where it is from."""

    def __init__(self, claims: Iterable[Claim], titles: Mapping[str, str]) -> None:
        self._claims = {claim.id: claim for claim in claims if claim.verdict is Verdict.SUPPORTED and claim.spans}
        self._stems = {name: set(stems(claim.text)) for name, claim in self._claims.items()}
        self._titles = titles

    def get_claims(self, names: Iterable[str]) -> tuple[Claim, ...]:
        return tuple(self._claims[name] for name in dict.fromkeys(names) if name in self._claims)

    def can_support(self, text: str, bound: Sequence[Claim]) -> bool:
        """Whether every check holds of the sentence against what these claims say and quote."""
        if not bound:
            return False
        said, passages = self._strip_attribution(text, bound), _evidence_texts(bound)
        if said.removeprefix(SOMEWHERE) in passages:
            return True
        # A sentence that is attributed to somebody wants a passage that attributes something to them.
        if match := _ATTRIBUTED.match(said):
            whom = set(stems(match[1]))
            if not any(whom <= set(stems(passage)) and _SAYING.search(passage) for passage in passages):
                return False
        return is_grounded(said, passages) and check_statement(said, passages).agrees

    def find_claims(self, text: str, names: Sequence[str]) -> tuple[Claim, ...]:
        """Return the claims that support the sentence, those named before others; none where no claim does."""
        bound = self.get_claims(names)
        if self.can_support(text, bound):
            # Without those that have nothing to do with it: they would lend it citations.
            kept = tuple(claim for claim in bound if content_share(text, _evidence_texts([claim])) >= IDLE)
            return kept if len(bound) > 1 and len(kept) < len(bound) and self.can_support(text, kept) else bound
        # What speaks of the claim named and says it wrongly is not what another claim says.
        if (bound and content_share(text, _evidence_texts(bound)) >= ELSEWHERE) or _POINTS.match(text):
            return ()
        said = set(stems(text))
        ranked = sorted(self._stems, key=lambda name: -len(said & self._stems[name]))
        for claim in (self._claims[name] for name in ranked[:CANDIDATES]):
            share = content_share(self._strip_attribution(text, [claim]), _evidence_texts([claim]))
            if share >= WORD_FOR_WORD and self.can_support(text, [claim]):
                return (claim,)
        return ()

    def _strip_attribution(self, text: str, bound: Sequence[Claim]) -> str:
        """Without "According to …," where that is a source of these claims, or no source in particular."""
        match = _ATTRIBUTED.match(text)
        # A figure of a sentence has to stand in its spans, and a title does not.
        if not match or text in _evidence_texts(bound) or any(character.isdigit() for character in match[1]):
            return text
        titles = {self._titles.get(span.document, "") for claim in bound for span in claim.spans}
        if not _SOME_SOURCE.fullmatch(match[1]) and match[1] not in titles:
            return text
        return SOMEWHERE + text[match.end() :]


def _evidence_texts(bound: Sequence[Claim]) -> list[str]:
    """What a sentence may draw on: the quotes, and the claims themselves, which name what a quote calls "it"."""
    return [*(span.quote for claim in bound for span in claim.spans), *(claim.text for claim in bound)]


# Of a claim's words: a document that has fewer speaks of something else, whatever a model says of it. Of 4,230 true
# statements in free wording .4% have fewer, of statements on other documents 81%.
FLOOR = 0.1


class DocumentEvidence(NamedTuple):
    """What one document says of a claim, in its context, with what was found about it."""

    context: EvidenceContext
    objections: Sequence[StatementProblem]  # that are certain
    judgement: Judgement
    shared: float  # of the claim's words

    @property
    def verdict(self) -> Verdict:
        opposed = any(problem.kind in OPPOSED for problem in self.objections)
        if opposed and self.judgement.verdict in (Verdict.SUPPORTED, Verdict.PARTLY):
            return Verdict.CONTRADICTED
        if self.judgement.verdict is not Verdict.SUPPORTED:
            return self.judgement.verdict
        return Verdict.PARTLY if self.objections or self.shared < FLOOR else Verdict.SUPPORTED


def decide_verdict(
    claim: Claim,
    weighed: Sequence[DocumentEvidence],
    groups: Mapping[str, str],
    credibility: Mapping[str, Credibility],
    dependent: Collection[frozenset[str]] = (),
) -> Claim:
    """The claim with its verdict, the spans that carry it, confidence, mark and reasons. `dependent` are pairs of
    documents of different groups that are one voice in this matter."""
    supporting = [item for item in weighed if item.verdict is Verdict.SUPPORTED]
    # Who speaks at first hand is cited first, then the better kind, then the newest.
    supporting.sort(key=lambda item: _citation_order(item.context, credibility[item.context.document]))
    against = [item for item in weighed if item.verdict is Verdict.CONTRADICTED]
    if not supporting:
        partly = [item for item in weighed if item.verdict is Verdict.PARTLY]
        problems = [problem.text for item in weighed for problem in item.objections]
        return claim.model_copy(
            update={
                "spans": _distinct_spans(partly or against),
                "against": _distinct_spans(against),
                "verdict": Verdict.CONTRADICTED if against else Verdict.PARTLY if partly else Verdict.NOT_FOUND,
                "confidence": round(max((item.judgement.score for item in partly), default=0.0) * 0.5, 4),
                "mark": None,
                "reasons": tuple(dict.fromkeys(problems)) or ("no passage says this",),
            }
        )
    voices = group_by_origin(
        [span for item in supporting for span in item.context.spans], groups, credibility, dependent
    )
    strengths = {
        item.context.document: item.judgement.score * (0.5 + 0.5 * credibility[item.context.document].score)
        for item in supporting
    }
    best = [max(strength for document, strength in strengths.items() if document in voice) for voice in voices.values()]
    # How many say so, and how many of them count: a copy, or a second report on one publication, does not.
    documents = set(strengths)
    independent = f"{len(voices)} independent" if len(documents) > 1 else "no other says so"
    first_hand = sum(credibility[document].primary for document in documents)
    alone = Mark.VERIFIED if any(credibility[name].score >= CREDIBLE for name in documents) else Mark.SINGLE
    return claim.model_copy(
        update={
            "spans": _distinct_spans(supporting),
            "against": _distinct_spans(against),
            "verdict": Verdict.SUPPORTED,
            "confidence": combine_strengths(best),
            "mark": Mark.CORROBORATED if len(voices) >= 2 else alone,
            "reasons": (
                f"{len(documents)} source{'s' * (len(documents) != 1)}, {independent}",
                f"{first_hand} at first hand" if first_hand else "none at first hand",
            ),
        }
    )


def _citation_order(found: EvidenceContext, credibility: Credibility) -> tuple[bool, int, int]:
    return not credibility.primary, -credibility.rank, -(found.published.toordinal() if found.published else 0)


def combine_strengths(strengths: Iterable[float]) -> float:
    """Independent witnesses add up as chances to be wrong multiply; nothing is ever certain."""
    doubt = 1.0
    for strength in strengths:
        doubt *= 1 - min(0.95, strength)
    return round(min(0.99, 1 - doubt), 4)


def _distinct_spans(items: Sequence[DocumentEvidence]) -> tuple[QuoteSpan, ...]:
    spans = [span for item in items for span in item.context.spans]
    return tuple({(span.document, span.start): span for span in spans}.values())


# How sure a sub-question is answered: counted, not judged, so it is the same whoever reasons. Independent sources that
# speak to it add up as chances to be wrong multiply. What a source adds depends on how well its best quote answers,
# whether that has the kind of answer and the years asked for, and how far the source can be relied on.

GOOD = 0.75  # relevance of a quote that answers outright
MOST_QUOTES = 8  # quotes weighed for a sub-question: pairs of them are compared
MOST_SOURCES = 3  # that count: many who are beside the point must not add up to an answer
# One undated page that answers outright reaches .58, a dated one .6, an official one .7; two that agree .85 and more.
RELIED_ON, BY_CREDIBILITY, AGREES = 0.38, 0.45, 0.1
DISPUTED = 0.8  # of what is left where sources contradict each other
# What is left of a quote without the kind of answer asked for; reasons go unmarked at times.
LACKS = {"figures": 0.2, "date": 0.2, "reason": 0.4}
# Where years are asked for: of one that names others; of one that names none, by whether it was written then.
OTHER_YEARS, WRITTEN_THEN, NO_YEARS = 0.2, 0.9, 0.35
NAMELESS, ABSENT = 0.5, 0.7  # what is left without any name of the question, and lost with a name that nobody has
OPENING, NEARBY = 1500, 400  # characters of a document that say what a quote in it speaks of


class FindingContext(NamedTuple):
    """A finding and what is known of where it stands."""

    finding: Finding
    group: str  # of documents that are one source
    credibility: float
    around: str  # title, opening and neighbourhood: what the quote need not say again
    year: int | None  # of publication


def build_finding_context(finding: Finding, document: Document, group: str, credibility: float) -> FindingContext:
    start, end = finding.span.start, finding.span.end
    nearby = document.text[max(0, start - NEARBY) : end + NEARBY]
    around = f"{document.title}\n{document.text[:OPENING]}\n{nearby}"
    return FindingContext(finding, group, credibility, around, document.published.year if document.published else None)


def select_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Those of one sub-question that its confidence is counted from: the best of every document, then the next."""
    best = sorted(findings, key=lambda finding: (-finding.relevance, finding.id))
    return interleave_groups(best, lambda finding: finding.span.document)[:MOST_QUOTES]


def answer_confidence(question: SubQuestion, witnesses: Sequence[FindingContext], today: date | None = None) -> float:
    """`today` is needed where a question says "in the last two years"."""
    if not witnesses:
        return 0.0
    worth = answer_scores(question, witnesses, today)
    # Sources of which another says the same, and whether any two contradict each other.
    agreeing: set[str] = set()
    disputed = False
    for one, other in combinations(witnesses, 2):
        if one.group != other.group:
            relation = relate(one.finding.span.quote, other.finding.span.quote)
            agreeing |= {one.group, other.group} if relation == "same" else set()
            disputed = disputed or relation == "disagree"
    best: dict[str, float] = {}
    for item, value in zip(witnesses, worth, strict=True):
        reliance = RELIED_ON + BY_CREDIBILITY * item.credibility + AGREES * (item.group in agreeing)
        best[item.group] = max(best.get(item.group, 0.0), value * reliance)
    sure = combine_strengths(sorted(best.values(), reverse=True)[:MOST_SOURCES])
    return round(sure * (DISPUTED if disputed else 1), 4)


def answer_scores(question: SubQuestion, witnesses: Sequence[FindingContext], today: date | None = None) -> list[float]:
    """How far each quote answers, 0 to 1. Rows whose figures were chosen for the company and the period that are asked
    for need not name them as the question does."""
    fit = _QuestionFit(question, today)
    known = fit.name_factor(witnesses)
    factors = [1.0 if item.finding.cells else known * fit.quote_factor(item) for item in witnesses]
    return [min(1.0, item.finding.relevance / GOOD) * factor for item, factor in zip(witnesses, factors, strict=True)]


class _QuestionFit:
    """What a quote has of what is asked for. Of another language than English only the years can be told."""

    def __init__(self, question: SubQuestion, today: date | None) -> None:
        foreign = find_other_language(question.text) is not None
        self.kinds = () if foreign else answer_kinds(question.text)
        # What the whole question is about need not be what this part of it is about.
        names = [] if foreign else find_question_names(question.text) or find_question_names(question.topic)[:1]
        self.names = [distinctive_stems(name) for name in names]
        self.words = frozenset() if foreign else frozenset(stems(" ".join(topic_words(question.text))))
        self.years = find_year_range(question.in_context, today)

    def name_factor(self, witnesses: Sequence[FindingContext]) -> float:
        """Less where a name of the question is found nowhere: what was found is of something else."""
        there = [_context_stems(item) for item in witnesses]
        absent = sum(not any(has_name(name, words) for words in there) for name in self.names)
        return 1 - ABSENT * absent / len(self.names) if self.names else 1.0

    def quote_factor(self, item: FindingContext) -> float:
        quote, there = item.finding.span.quote, _context_stems(item)
        fit = 1.0 if not self.names or any(has_name(name, there) for name in self.names) else NAMELESS
        for kind in self.kinds:
            fit *= 1.0 if has_answer_kind(kind, quote) else LACKS[kind]
        if self.words:
            fit *= min(1.0, 0.4 + len(self.words & there) / len(self.words))
        if not self.years:
            return fit
        # By the years the quote names, else by those around it, else by when it was published.
        if years := find_years(quote):
            return fit * (1.0 if self.years.overlaps(years) else OTHER_YEARS)
        if self.years.overlaps(find_years(item.around)):
            return fit
        written = item.year is not None and self.years.overlaps(frozenset({item.year, item.year - 1}))
        return fit * (WRITTEN_THEN if written else NO_YEARS)


def _context_stems(item: FindingContext) -> frozenset[str]:
    return frozenset(stems(f"{item.around}\n{item.finding.span.quote}"))
