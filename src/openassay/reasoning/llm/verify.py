"""Prompts that verify: atomic claims from the evidence, then whether quotes support statements.

`baseline` is what the rules made of the same input.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

from pydantic import model_validator

from openassay.errors import ReasoningError
from openassay.models.evidence import Judgement, Verdict
from openassay.models.plan import Plan
from openassay.reasoning.base import ClaimExtraction, Conflict, DraftClaim, Evidence, SourceRating
from openassay.reasoning.llm import forms, read
from openassay.reasoning.llm.step import Job, ReasoningStep, wrap_tag
from openassay.text.relations import is_same_fact
from openassay.text.words import fold

CLAIMS_STEP = ReasoningStep("claims", stage="verify", role="judge", output="list of claims", purpose="finish")
JUDGE_STEP = ReasoningStep("judge", stage="verify", role="judge", output="verdicts", purpose="finish")
MAX_CLAIMS, MAX_CLAIMS_SMALL = 80, 8
MANY_QUOTES = 48  # from which on a capable model is asked for the claims of each sub-question by itself
MAX_PART_CLAIMS, MOST_CLAIMS = 36, 180  # of one of these, and of all together
MAX_QUOTES, MAX_QUOTES_SMALL = 6, 2  # behind a claim; a small model takes all it was shown for one vague claim
WORDS_PER_CLAIM = 20  # of an answer: a claim with its numbers
MAX_PAIRS, MAX_PAIRS_SMALL = 40, 8  # of a statement and its quotes, a call; a verdict takes up to 80 tokens
MIN_SURE = 2  # of 10; a verdict less sure than this is none, and the rules judge
MAX_QUOTE_TEXT = 4000  # characters of a passage
SUPPORT_WEIGHTS = {"supported": 1.0, "partly": 0.6}  # of the confidence; other verdicts lend no support
VERDICTS = ("not_found", "supported", "partly", "contradicted")
SHORT_VERDICTS = {"yes": "supported", "partly": "partly", "no": "not_found"}
CREDIBILITY = (
    "\n\nsources: for each source its number, a score from 0 (not to be relied on) to 10 (original study, official "
    "data), and the reason in a few words."
)
FULL_INSTRUCTIONS = """Each statement is followed by numbered passages [1], [2], ..., each under its document's title, \
publisher and date. Read it with these: "on Tuesday" is a day near that date, "the court" is the one it speaks of. For \
every number give:
- pair: the number
- verdict: supported (the document says all of it), partly (it says a part, or less exactly), contradicted (it gives \
another figure, date or name for the same thing, or says the opposite), not_found (it speaks of something else)
- sure: 0 to 10, how sure you are of this verdict
- unsaid: if it is not supported, the words of the statement that the document does not bear out, else empty
- narrower: only for partly, the statement without what the document does not say, else empty

What a document reports somebody to claim, doubts, refutes, calls a myth, supposes, plans or asks, it does not say \
itself: a statement of it is supported only if it says who claims it, or that it is planned, possible or refuted. \
"Rose by" is not "rose to"; a part is not the whole; a link is not a cause.

conflicts: numbers of two statements that cannot both be true, with what they differ about. An empty list if there are \
none."""
# A model of 1.5B parameters that was asked as above called each of 20 pairs contradicted, at 0 of 10. Asked like this
# it was right on 6 of 8; the checks see to the rest.
SHORT_INSTRUCTIONS = """For each number answer yes if the quote says what the statement says, partly if it says only a \
part of it, no if it says something else or gives another figure, date or name."""


class ClaimForm(forms.OutputForm):
    """The quotes come before the text: who has named one writes what it says."""

    quotes: forms.Numbers
    text: forms.Line
    question: forms.Number = 0
    relevance: forms.Score = 5.0


class SourceRatingForm(forms.OutputForm):
    source: forms.Number
    score: forms.Score
    reason: forms.Phrase = ""


class ClaimListForm(forms.OutputForm):
    claims: list[ClaimForm]
    sources: list[SourceRatingForm] = []


ClaimsJob = Job[ClaimListForm, Evidence, ClaimExtraction]


def split_evidence(plan: Plan, evidence: Sequence[Evidence]) -> list[list[Evidence]]:
    """The evidence of each sub-question, a span only where it is most relevant: a claim is drawn from it once."""
    best: dict[tuple[str, int], Evidence] = {}
    for item in sorted(evidence, key=lambda item: -item.finding.relevance):
        best.setdefault((item.finding.span.document, item.finding.span.start), item)
    parts = [[item for item in best.values() if item.finding.question == question.id] for question in plan.questions]
    return [part for part in parts if part]


def join_extractions(parts: Sequence[ClaimExtraction]) -> ClaimExtraction:
    """The claims of all, each part's most useful first."""
    rows = zip_longest(*(part.claims for part in parts))
    claims = {fold(claim.wordings[0]): claim for row in rows for claim in row if claim}
    ratings = {name: rating for part in parts for name, rating in part.credibility.items()}
    return ClaimExtraction(
        claims=tuple(sorted(claims.values(), key=lambda claim: -claim.relevance))[:MOST_CLAIMS], credibility=ratings
    )


def build_claims_job(plan: Plan, evidence: Sequence[Evidence], small: bool, words: int, task: str = "") -> ClaimsJob:
    """Ask for atomic claims, and how far each source can be relied on."""
    most = MAX_CLAIMS_SMALL if small else max(MAX_CLAIMS_SMALL, min(MAX_CLAIMS, words // WORDS_PER_CLAIM))
    most = min(most, MAX_PART_CLAIMS) if task else most
    quotes = MAX_QUOTES_SMALL if small else MAX_QUOTES
    documents = len({item.finding.span.document for item in evidence})

    def build(shown: Sequence[Evidence]) -> dict[str, str]:
        return {
            "questions": read.format_questions(plan),
            "sources": read.format_sources(shown, plan),
            "most": str(most),
            "credibility": "" if small else CREDIBILITY,
        }

    lists = {"claims": most, "quotes": quotes, "sources": 0 if small else min(documents, 30)}
    return Job(
        CLAIMS_STEP,
        ClaimListForm,
        forms.build_schema(ClaimListForm, "Claims", lists),
        build,
        convert=lambda answer, shown: convert_claims(answer, read.list_evidence(shown), plan, evidence, quotes),
        sources=read.balance_evidence(evidence),
        shorten=read.halve_quote,
        task=task,
    )


def convert_claims(
    answer: ClaimListForm, shown: read.EvidenceList, plan: Plan, evidence: Sequence[Evidence], quotes: int
) -> ClaimExtraction:
    """Return the claims that name a quote; other evidence that says the same is added to them."""
    claims: dict[str, DraftClaim] = {}
    for item in answer.claims:
        behind = shown.find(item.quotes)[:quotes]
        if not item.text or not behind or fold(item.text) in claims:
            continue
        witnesses = [other for other in evidence if is_same_fact(item.text, other.finding.span.quote)]
        asked = [plan.questions[item.question - 1].id] if 1 <= item.question <= len(plan.questions) else []
        claims[fold(item.text)] = DraftClaim(
            wordings=(item.text,),
            findings=tuple(dict.fromkeys(other.finding.id for other in (*behind, *witnesses))),
            questions=tuple(dict.fromkeys([*asked, *(other.finding.question for other in behind)])),
            relevance=item.relevance / 10,
        )
    if not claims:
        raise ReasoningError(f"no claim names a quote; quotes are numbered 1 to {len(shown.items)}")
    credibility = {
        shown.documents[item.source - 1]: SourceRating(score=item.score / 10, reason=item.reason)
        for item in answer.sources
        if 1 <= item.source <= len(shown.documents)
    }
    return ClaimExtraction(claims=tuple(claims.values())[:MAX_CLAIMS], credibility=credibility)


def add_missing_claims(extraction: ClaimExtraction, baseline: ClaimExtraction, small: bool) -> ClaimExtraction:
    """Add the baseline's claims on sub-questions the model left out; for a small model all that it does not mention."""
    covered = {question for claim in extraction.claims for question in claim.questions}
    texts = [claim.wordings[0] for claim in extraction.claims]
    missing = [
        claim
        for claim in baseline.claims
        if not covered & set(claim.questions)
        or (small and not any(is_same_fact(text, claim.wordings[0]) for text in texts))
    ]
    most = max(MAX_CLAIMS, len(extraction.claims))
    return extraction.model_copy(update={"claims": (*extraction.claims, *missing)[:most]})


class StatementQuotes(NamedTuple):
    """A statement and its quotes; `number` is its place among all that are to be judged."""

    number: int
    statement: str
    quotes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The passages, each with the line that says what document it is."""
        heads = [quote.partition("\n") for quote in self.quotes]
        return "\n".join(f"{head}{mark}{' '.join(rest.split())}"[:MAX_QUOTE_TEXT] for head, mark, rest in heads)

    def halve(self) -> "StatementQuotes":
        return self._replace(quotes=tuple(quote[: max(1, len(quote) // 2)] for quote in self.quotes))


class VerdictForm(forms.OutputForm):
    # A field for what differs, before the verdict, made a small model contradict everything it was shown.
    pair: forms.Number
    verdict: forms.Text = forms.choice_field(VERDICTS)
    sure: forms.Score = 7.0
    unsaid: forms.Phrase = ""
    narrower: forms.Line = ""


class ConflictForm(forms.OutputForm):
    first: forms.Number
    second: forms.Number
    about: forms.Phrase = ""


class VerdictsForm(forms.OutputForm):
    verdicts: list[VerdictForm]
    conflicts: list[ConflictForm] = []

    @model_validator(mode="before")
    @classmethod
    def _expand_short_answers(cls, data: Any) -> Any:
        """Read answer1: yes, answer2: no, ... as a small model is asked."""
        if not isinstance(data, dict) or "verdicts" in data:
            return data
        answers = {name.removeprefix("answer"): str(value).lower() for name, value in data.items()}
        verdicts = [
            {"pair": int(number), "verdict": SHORT_VERDICTS[value]}
            for number, value in answers.items()
            if number.isdecimal() and value in SHORT_VERDICTS
        ]
        return {"verdicts": verdicts} if verdicts else data


class JudgementPart(NamedTuple):
    """What one call has judged, by the numbers of the pairs."""

    judgements: Mapping[int, Judgement]
    conflicts: tuple[Conflict, ...] = ()


JudgeJob = Job[VerdictsForm, StatementQuotes, JudgementPart]


def split_batches(
    pairs: Sequence[StatementQuotes], small: bool, fits: Callable[[JudgeJob, Sequence[StatementQuotes]], bool]
) -> list[tuple[list[StatementQuotes], list[str]]]:
    """Split pairs into as few calls as there is room for.

    The first is shown the statements of the others too, as far as they fit, so that contradictions are found.
    """
    most = MAX_PAIRS_SMALL if small else MAX_PAIRS
    batches: list[list[StatementQuotes]] = []
    for pair in pairs:
        grown = [*batches[-1], pair] if batches else [pair]
        if batches and len(grown) <= most and fits(build_judge_job(grown, "", small=small), grown):
            batches[-1].append(pair)
        else:
            batches.append([pair])
    later = [] if small else list(dict.fromkeys(pair.statement for batch in batches[1:] for pair in batch))
    while later and not fits(build_judge_job(batches[0], "", later), batches[0]):
        later = later[: len(later) // 2]
    return [(batch, [] if number else later) for number, batch in enumerate(batches)]


def build_judge_job(
    pairs: Sequence[StatementQuotes], task: str, others: Sequence[str] = (), *, small: bool = False
) -> JudgeJob:
    """Ask whether quotes support statements. `others` are statements of other calls, shown for contradictions."""
    if small:
        return _build_short_judge_job(pairs, task)

    def build(shown: Sequence[StatementQuotes]) -> dict[str, str]:
        blocks, number = [], 0
        for position, (statement, group) in enumerate(_group_by_statement(shown).items(), 1):
            lines = [f"Statement {position}: {statement}"]
            for pair in group:
                number += 1
                lines.append(f"[{number}] {pair.text}")
            blocks.append(wrap_tag("source", "\n".join(lines)))
        if others:
            lines = [f"Statement {position}: {text}" for position, text in enumerate(others, len(blocks) + 1)]
            blocks.append("Only for conflicts:\n" + wrap_tag("source", "\n".join(lines)))
        return {"pairs": "\n".join(blocks), "wanted": FULL_INSTRUCTIONS}

    statements = len({pair.statement for pair in pairs}) + len(others)
    most = {"verdicts": len(pairs), "conflicts": 0 if statements < 2 else min(10, statements)}
    return Job(
        JUDGE_STEP,
        VerdictsForm,
        forms.build_schema(VerdictsForm, "Verdicts", most),
        build,
        convert=lambda answer, shown: convert_verdicts(answer, shown, others),
        sources=tuple(pairs),
        shorten=StatementQuotes.halve,
        task=task,
    )


def _build_short_judge_job(pairs: Sequence[StatementQuotes], task: str) -> JudgeJob:
    """Ask with a field for each pair: a small model keeps to names better than to the order of a list."""
    names = [f"answer{number}" for number in range(1, len(pairs) + 1)]
    schema = {
        "title": "Verdicts",
        "type": "object",
        "properties": {name: {"type": "string", "enum": list(SHORT_VERDICTS)} for name in names},
        "required": names,
        "additionalProperties": False,
    }

    def build(shown: Sequence[StatementQuotes]) -> dict[str, str]:
        blocks = [
            wrap_tag("source", f"[{number}] Statement: {pair.statement}\nQuote: {pair.text}")
            for number, pair in enumerate(shown, 1)
        ]
        return {
            "pairs": "\n".join([*blocks, "Does each quote say what its statement says?"]),
            "wanted": SHORT_INSTRUCTIONS,
        }

    return Job(
        JUDGE_STEP,
        VerdictsForm,
        schema,
        build,
        convert=convert_short_verdicts,
        sources=tuple(pairs),
        shorten=StatementQuotes.halve,
        task=task,
    )


def _group_by_statement(pairs: Iterable[StatementQuotes]) -> dict[str, list[StatementQuotes]]:
    """Group pairs, so that each statement is shown once."""
    groups: dict[str, list[StatementQuotes]] = {}
    for pair in pairs:
        groups.setdefault(pair.statement, []).append(pair)
    return groups


def convert_short_verdicts(answer: VerdictsForm, shown: Sequence[StatementQuotes]) -> JudgementPart:
    """Return the judgements of a small model."""
    judgements = {
        shown[item.pair - 1].number: _to_judgement(item) for item in answer.verdicts if 1 <= item.pair <= len(shown)
    }
    if not judgements:
        raise ReasoningError(f"no answer names a pair; pairs are numbered 1 to {len(shown)}")
    return JudgementPart(judgements)


def convert_verdicts(
    answer: VerdictsForm, shown: Sequence[StatementQuotes], others: Sequence[str] = ()
) -> JudgementPart:
    """Return the judgements that are sure, and the conflicts between statements."""
    groups = _group_by_statement(shown)
    pairs = [pair for group in groups.values() for pair in group]
    judgements = {
        pairs[item.pair - 1].number: _to_judgement(item)
        for item in reversed(answer.verdicts)  # of two verdicts on a pair the first counts
        if 1 <= item.pair <= len(pairs) and item.sure >= MIN_SURE
    }
    if not judgements:
        raise ReasoningError(f"no verdict is sure and names a pair; pairs are numbered 1 to {len(pairs)}")
    statements, conflicts = [*groups, *others], []
    for item in answer.conflicts:
        if 1 <= item.first <= len(statements) and 1 <= item.second <= len(statements) and item.first != item.second:
            first, second = statements[item.first - 1], statements[item.second - 1]
            conflicts.append(Conflict(first=first, second=second, about=item.about))
    return JudgementPart(judgements, tuple(conflicts))


P = TypeVar("P")


def convert_pair_verdicts(answer: VerdictsForm, shown: Sequence[P]) -> dict[P, Judgement]:
    """Return the judgements that are sure, by what was judged."""
    found = {
        shown[item.pair - 1]: _to_judgement(item)
        for item in reversed(answer.verdicts)
        if 1 <= item.pair <= len(shown) and item.sure >= MIN_SURE
    }
    if not found:
        raise ReasoningError(f"no verdict is sure and names a pair; pairs are numbered 1 to {len(shown)}")
    return found


def _to_judgement(item: VerdictForm) -> Judgement:
    verdict = forms.match_option(item.verdict, VERDICTS, "not_found")
    score = round(SUPPORT_WEIGHTS.get(verdict, 0.0) * item.sure / 10, 4)
    narrower = item.narrower if verdict == "partly" else ""
    unsaid = f": not borne out is “{item.unsaid}”" if item.unsaid and verdict != "supported" else ""
    reason = f"judged {verdict.replace('_', ' ')} by the model{unsaid}"
    return Judgement(verdict=Verdict(verdict), score=score, reason=reason, narrower=narrower)


def is_verbatim(statement: str, quotes: Iterable[str]) -> bool:
    """Tell whether a statement is a quote's own words, so that no model has to be asked."""
    text = " ".join(statement.split()).rstrip(" .")
    return any(text in " ".join(quote.split()) for quote in quotes)


def discount_judgement(judgement: Judgement, counted: Judgement) -> Judgement:
    """Weigh a small model's support with what the rules count.

    It is not believed where no words of the statement are in the quote, and it is half as sure as it says.
    """
    if judgement.verdict is not Verdict.SUPPORTED:
        return judgement
    verdict = Verdict.PARTLY if counted.verdict is Verdict.NOT_FOUND else Verdict.SUPPORTED
    score = round((judgement.score + counted.score) / 2, 4)
    return Judgement(verdict=verdict, score=score, reason=f"{judgement.reason}; {counted.reason}")
