"""Whether quotes support statements, and which statements contradict each other: the second of two calls."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import model_validator

from openassay.errors import ReasoningError
from openassay.models.evidence import Judgement, Verdict
from openassay.models.plan import Plan
from openassay.reasoning.base import ClaimExtraction, Conflict, DraftClaim, Evidence, SourceRating
from openassay.reasoning.llm.forms import (
    Line,
    Number,
    Numbers,
    OutputForm,
    Phrase,
    Score,
    Text,
    build_schema,
    choice_field,
    match_option,
)
from openassay.reasoning.llm.read import (
    EvidenceList,
    balance_evidence,
    format_questions,
    format_sources,
    halve_quote,
    list_evidence,
)
from openassay.reasoning.llm.step import Job, ReasoningStep, wrap_tag
from openassay.text.relations import is_same_fact
from openassay.text.words import fold

# Atomic claims from the evidence, and how far each source can be relied on: the first of two calls that verify.

CLAIMS_STEP = ReasoningStep("claims", stage="verify", role="judge", thing="list of claims",
            variables=("questions", "sources", "most", "credibility"), purpose="finish")  # fmt: skip
MOST_CLAIMS, MOST_CLAIMS_SMALL = 40, 8
MOST_QUOTES, MOST_QUOTES_SMALL = 6, 2  # a small model takes all it was shown for one vague claim
WORDS_EACH = 20  # of an answer: a claim with its numbers
CREDIBILITY = (
    "\n\nsources: for each source its number, a score from 0 (not to be relied on) to 10 (original study, official "
    "data), and the reason in a few words."
)


class ClaimForm(OutputForm):
    """The quotes come before the text: who has named one writes what it says."""

    quotes: Numbers
    text: Line
    question: Number = 0
    relevance: Score = 5.0


class SourceRatingForm(OutputForm):
    source: Number
    score: Score
    reason: Phrase = ""


class ClaimListForm(OutputForm):
    claims: list[ClaimForm]
    sources: list[SourceRatingForm] = []


def build_claims_job(
    plan: Plan, evidence: Sequence[Evidence], small: bool, words: int
) -> Job[ClaimListForm, Evidence, ClaimExtraction]:
    most = MOST_CLAIMS_SMALL if small else max(MOST_CLAIMS_SMALL, min(MOST_CLAIMS, words // WORDS_EACH))

    def build(shown: Sequence[Evidence]) -> dict[str, str]:
        credibility = "" if small else CREDIBILITY
        return {"questions": format_questions(plan), "sources": format_sources(shown, plan), "most": str(most),
                "credibility": credibility}  # fmt: skip

    quotes = MOST_QUOTES_SMALL if small else MOST_QUOTES
    documents = len({item.finding.span.document for item in evidence})
    lists = {"claims": most, "quotes": quotes, "sources": 0 if small else min(documents, 30)}
    return Job(
        CLAIMS_STEP, ClaimListForm, build_schema(ClaimListForm, "Claims", lists), build,
        lambda answer, shown: convert_claims(answer, list_evidence(shown), plan, evidence, quotes),
        sources=balance_evidence(evidence), shorten=halve_quote,
    )  # fmt: skip


def convert_claims(
    answer: ClaimListForm, shown: EvidenceList, plan: Plan, evidence: Sequence[Evidence], quotes: int
) -> ClaimExtraction:
    made: dict[str, DraftClaim] = {}
    for item in answer.claims:
        behind = shown.find(item.quotes)[:quotes]
        if item.text and behind:
            made.setdefault(fold(item.text), _to_draft_claim(item, behind, plan, evidence))
    if not made:
        raise ReasoningError(f"no claim names a quote; quotes are numbered 1 to {len(shown.items)}")
    credibility = {
        shown.documents[item.source - 1]: SourceRating(score=item.score / 10, reason=item.reason)
        for item in answer.sources
        if 1 <= item.source <= len(shown.documents)
    }
    return ClaimExtraction(claims=tuple(made.values())[:MOST_CLAIMS], credibility=credibility)


def _to_draft_claim(
    item: ClaimForm, behind: Sequence[Evidence], plan: Plan, evidence: Sequence[Evidence]
) -> DraftClaim:
    """Evidence elsewhere that says the same bears witness too, whether or not the model named it."""
    witnesses = [other for other in evidence if is_same_fact(item.text, other.finding.span.quote)]
    asked = [plan.questions[item.question - 1].id] if 1 <= item.question <= len(plan.questions) else []
    return DraftClaim(
        wordings=(item.text,),
        findings=tuple(dict.fromkeys(other.finding.id for other in (*behind, *witnesses))),
        questions=tuple(dict.fromkeys([*asked, *(other.finding.question for other in behind)])),
        relevance=item.relevance / 10,
    )


def add_missing_claims(made: ClaimExtraction, floor: ClaimExtraction, small: bool) -> ClaimExtraction:
    """Sub-questions the model left out keep the claims the floor draws from their evidence; in little room so does all
    evidence that no claim of the model's speaks of."""
    spoken = {question for claim in made.claims for question in claim.questions}
    said = [claim.wordings[0] for claim in made.claims]
    missing = [
        claim
        for claim in floor.claims
        if not spoken & set(claim.questions)
        or (small and not any(is_same_fact(text, claim.wordings[0]) for text in said))
    ]
    return made.model_copy(update={"claims": (*made.claims, *missing)[: max(MOST_CLAIMS, len(made.claims))]})


JUDGE_STEP = ReasoningStep("judge", stage="verify", role="judge", thing="verdicts",
            variables=("pairs", "wanted"), purpose="finish")  # fmt: skip
FULL_INSTRUCTIONS = """Each statement is followed by numbered quotes: [1], [2], ... For every number give:
- pair: the number
- verdict: supported (the quote says all of it), partly (it says a part, or less exactly), contradicted (it gives \
another figure, date or name for the same thing, or says the opposite), not_found (it speaks of something else)
- sure: 0 to 10, how sure you are of this verdict

conflicts: numbers of two statements that cannot both be true, with what they differ about. An empty list if there are \
none."""
# A model of 1.5B parameters that was asked as above called each of 20 pairs contradicted, at 0 of 10. Asked like this
# it was right on 6 of 8; the checks see to the rest.
SHORT_INSTRUCTIONS = """For each number answer yes if the quote says what the statement says, partly if it says only a \
part of it, no if it says something else or gives another figure, date or name."""
SHORT_VERDICTS = {"yes": "supported", "partly": "partly", "no": "not_found"}
VERDICTS = ("not_found", "supported", "partly", "contradicted")
MOST_PAIRS, MOST_PAIRS_SMALL = 60, 8  # pairs a call
UNSURE = 2  # of 10; a verdict less sure than this is none, and the floor judges
LONGEST_QUOTE = 1200  # characters of all quotes of a pair
WEIGHT = {"supported": 1.0, "partly": 0.6}  # of the confidence, as support; other verdicts lend none


class StatementQuotes(NamedTuple):
    number: int  # among all that are to be judged
    statement: str
    quotes: tuple[str, ...]


class VerdictForm(OutputForm):
    # A field for what differs, before the verdict, made a small model contradict everything it was shown.
    pair: Number
    verdict: Text = choice_field(VERDICTS)
    sure: Score = 7.0


class ConflictForm(OutputForm):
    first: Number
    second: Number
    about: Phrase = ""


class VerdictsForm(OutputForm):
    verdicts: list[VerdictForm]
    conflicts: list[ConflictForm] = []

    @model_validator(mode="before")
    @classmethod
    def _expand_short_answers(cls, data: Any) -> Any:
        """answer1: yes, answer2: no, ... as a small model is asked."""
        if not isinstance(data, dict) or "verdicts" in data:
            return data
        answers = {name.removeprefix("answer"): str(said).lower() for name, said in data.items()}
        given = [
            {"pair": int(number), "verdict": SHORT_VERDICTS[said]}
            for number, said in answers.items()
            if number.isdecimal() and said in SHORT_VERDICTS
        ]
        return {"verdicts": given} if given else data


class JudgementPart(NamedTuple):
    """What one call has judged, by the numbers of the pairs."""

    judgements: Mapping[int, Judgement] = {}
    conflicts: tuple[Conflict, ...] = ()
    failed: bool = False


def build_judge_job(
    pairs: Sequence[StatementQuotes], task: str, others: Sequence[str] = (), *, small: bool = False
) -> Job[VerdictsForm, StatementQuotes, JudgementPart]:
    """`others` are statements judged elsewhere, told so that contradictions are found across calls."""
    if small:
        return _build_short_job(pairs, task)
    statements = len({pair.statement for pair in pairs}) + len(others)
    most = {"verdicts": len(pairs), "conflicts": 0 if statements < 2 else min(10, statements)}
    return Job(
        JUDGE_STEP,
        VerdictsForm,
        build_schema(VerdictsForm, "Verdicts", most),
        lambda shown: {"pairs": _format_statements(shown, others), "wanted": FULL_INSTRUCTIONS},
        lambda answer, shown: convert_verdicts(answer, shown, others),
        sources=tuple(pairs),
        shorten=_halve_quotes,
        task=task,
    )


def _build_short_job(pairs: Sequence[StatementQuotes], task: str) -> Job[VerdictsForm, StatementQuotes, JudgementPart]:
    """A field for each pair: a small model keeps to names better than to the order of a list."""
    names = [f"answer{number}" for number in range(1, len(pairs) + 1)]
    form = {
        "title": "Verdicts",
        "type": "object",
        "properties": {name: {"type": "string", "enum": list(SHORT_VERDICTS)} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    return Job(
        JUDGE_STEP,
        VerdictsForm,
        form,
        lambda shown: {"pairs": _format_pairs(shown), "wanted": SHORT_INSTRUCTIONS},
        _convert_short_verdicts,
        sources=tuple(pairs),
        shorten=_halve_quotes,
        task=task,
    )


def _format_pairs(pairs: Sequence[StatementQuotes]) -> str:
    blocks = [
        wrap_tag("source", f"[{number}] Statement: {pair.statement}\nQuote: {_format_quotes(pair)}")
        for number, pair in enumerate(pairs, 1)
    ]
    return "\n".join([*blocks, "Does each quote say what its statement says?"])


def _convert_short_verdicts(answer: VerdictsForm, shown: Sequence[StatementQuotes]) -> JudgementPart:
    judged = {
        shown[item.pair - 1].number: _to_judgement(item) for item in answer.verdicts if 1 <= item.pair <= len(shown)
    }
    if not judged:
        raise ReasoningError(f"no answer names a pair; pairs are numbered 1 to {len(shown)}")
    return JudgementPart(judged)


def _format_quotes(pair: StatementQuotes) -> str:
    return " … ".join(" ".join(quote.split()) for quote in pair.quotes)[:LONGEST_QUOTE]


def _group_by_statement(pairs: Iterable[StatementQuotes]) -> dict[str, list[StatementQuotes]]:
    """Pairs by statement: each statement is told once."""
    groups: dict[str, list[StatementQuotes]] = {}
    for pair in pairs:
        groups.setdefault(pair.statement, []).append(pair)
    return groups


def _format_statements(pairs: Sequence[StatementQuotes], others: Sequence[str]) -> str:
    blocks, number = [], 0
    for at, (statement, group) in enumerate(_group_by_statement(pairs).items(), 1):
        lines = [f"Statement {at}: {statement}"]
        for pair in group:
            number += 1
            lines.append(f"[{number}] {_format_quotes(pair)}")
        blocks.append(wrap_tag("source", "\n".join(lines)))
    if others:
        first = len(blocks) + 1
        lines = [f"Statement {at}: {statement}" for at, statement in enumerate(others, first)]
        blocks.append("Only for conflicts:\n" + wrap_tag("source", "\n".join(lines)))
    return "\n".join(blocks)


def _halve_quotes(pair: StatementQuotes) -> StatementQuotes:
    return pair._replace(quotes=tuple(quote[: max(1, len(quote) // 2)] for quote in pair.quotes))


def convert_verdicts(
    answer: VerdictsForm, shown: Sequence[StatementQuotes], others: Sequence[str] = ()
) -> JudgementPart:
    groups = _group_by_statement(shown)
    in_order = [pair for group in groups.values() for pair in group]
    judged = {
        in_order[item.pair - 1].number: _to_judgement(item)
        for item in reversed(answer.verdicts)  # of two verdicts on a pair the first counts
        if 1 <= item.pair <= len(in_order) and item.sure >= UNSURE
    }
    if not judged:
        raise ReasoningError(f"no verdict is sure and names a pair; pairs are numbered 1 to {len(in_order)}")
    return JudgementPart(judged, tuple(_find_conflicts(answer, [*groups, *others])))


def _to_judgement(item: VerdictForm) -> Judgement:
    verdict = match_option(item.verdict, VERDICTS, "not_found")
    score = round(WEIGHT.get(verdict, 0.0) * item.sure / 10, 4)
    return Judgement(verdict=Verdict(verdict), score=score, reason=f"judged {verdict} by the model")


def is_verbatim(statement: str, quotes: Iterable[str]) -> bool:
    """Whether a statement is a quote's own words, so that nobody has to be asked."""
    said = " ".join(statement.split()).rstrip(" .")
    return any(said in " ".join(quote.split()) for quote in quotes)


def discount_judgement(given: Judgement, counted: Judgement) -> Judgement:
    """A small model's word together with the floor's: it is not believed where no words of the statement stand in the
    quote, and half as sure as it says."""
    if given.verdict is not Verdict.SUPPORTED:
        return given
    verdict = Verdict.PARTLY if counted.verdict is Verdict.NOT_FOUND else Verdict.SUPPORTED
    score = round((given.score + counted.score) / 2, 4)
    return Judgement(verdict=verdict, score=score, reason=f"{given.reason}; {counted.reason}")


def _find_conflicts(answer: VerdictsForm, statements: Sequence[str]) -> Iterable[Conflict]:
    for item in answer.conflicts:
        if 1 <= item.first <= len(statements) and 1 <= item.second <= len(statements) and item.first != item.second:
            yield Conflict(first=statements[item.first - 1], second=statements[item.second - 1], about=item.about)
