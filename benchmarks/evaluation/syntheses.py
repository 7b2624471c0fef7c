"""Sentences that draw claims together, judged as those of a report are: how many false ones pass, how many true ones
are refused?

Written by editors who had not seen the checks. `dev` may be looked at, `test` and `test2` never were: they were
counted, `test` with four models and three thresholds, `test2` with two of each. The model that is shipped was chosen
before, its threshold by sentences of `dev` and `train3`, of which it learned nothing.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure, load_rows
from openassay.companies.register import LazyCompanyRegister
from openassay.context import ResearchContext
from openassay.models.evidence import Claim, Document, Judgement, QuoteSpan, Verdict
from openassay.nodes.draft_checker import DraftChecker
from openassay.nodes.settle import find_failures
from openassay.nodes.verify import add_context, read_contexts
from openassay.reasoning.base import DraftSentence, SynthesisPair
from openassay.reasoning.llm.compose import NumberedClaims
from openassay.reasoning.llm.prose import SentenceMarks, build_sentence
from openassay.reasoning.rules import RuleReasoner
from openassay.text.embeddings import CrossEncoder, MiniLM
from openassay.verification.context import describe_document
from openassay.verification.support import CrossEncoderScorer
from openassay.verification.synthesis import settle_figures
from openassay.verification.terms import KnownTerms
from openassay.verification.verdict import ClaimMatcher

SYNTHESES = Path(__file__).parents[1] / "data" / "syntheses"
QUICK = 4  # of a quick run: every fourth group


class SynthesisCase(NamedTuple):
    """The claims of a group, and its sentences under their ids."""

    claims: dict[str, Claim]
    documents: dict[str, Document]
    sentences: dict[str, DraftSentence]
    true: dict[str, bool]


def load_case(group: dict[str, Any]) -> SynthesisCase:
    documents, claims = {}, {}
    for number, row in enumerate(group["claims"], 1):
        # The editors' quotes have other words than their claims; a passage behind a claim of ours has its names too.
        text = f"{row['text']} {row['quote']}"
        document = Document(
            hash=hashlib.sha256(f"{row['title']}\n{text}".encode()).hexdigest(),
            text=text,
            url=f"file:///{number}",
            title=row["title"],
            publisher=row["publisher"],
            published=date.fromisoformat(row["date"]),
            fetched=datetime.now(UTC),
        )
        documents[document.hash] = document
        span = QuoteSpan(document=document.hash, start=0, end=len(text), quote=text)
        claim = Claim(
            id=f"C{number}", text=row["text"], questions=(), spans=(span,), verdict=Verdict.SUPPORTED, confidence=0.9
        )
        claims[claim.id] = add_context(claim, read_contexts([span], documents))
    numbered = NumberedClaims(list(claims.values()), {})
    sentences = {}
    for row in group["sentences"]:
        named = numbered.find(row["uses"])
        sentence = build_sentence(
            row["text"], SentenceMarks(tuple(row["uses"]), True, tuple(row.get("derived") or ())), numbered
        )
        assert sentence is not None, row["id"]
        figures = settle_figures(row["text"], sentence.derived, named)
        sentences[row["id"]] = sentence.model_copy(update={"derived": figures})
    return SynthesisCase(claims, documents, sentences, {row["id"]: row["true"] for row in group["sentences"]})


class RecordedFollows(RuleReasoner):
    """Says of a sentence what a capable model has said of it."""

    def __init__(self, said: Mapping[str, str]) -> None:
        super().__init__(MiniLM(), CrossEncoderScorer(CrossEncoder()), LazyCompanyRegister())
        self._said = said

    async def judge_syntheses(self, pairs: Sequence[SynthesisPair]) -> Sequence[Judgement]:
        return [Judgement(verdict=Verdict(self._said[pair.text]), score=0.9) for pair in pairs]


async def find_passing(cases: Sequence[SynthesisCase], reasoner: RuleReasoner) -> dict[str, str]:
    """Why each sentence would not be published; empty for those that would."""
    reasons = dict[str, str]()
    for case in cases:
        heads = {name: describe_document(document) for name, document in case.documents.items()}
        matcher = ClaimMatcher(case.claims.values(), {})
        checker = DraftChecker(case.claims, case.documents, matcher, KnownTerms([]))
        context = cast(ResearchContext, SimpleNamespace(reasoner=reasoner))
        found = await find_failures(case.sentences.values(), checker, heads, context)
        reasons |= {id: found.reasons.get(sentence, "") for id, sentence in case.sentences.items()}
    return reasons


def count_errors(cases: Sequence[SynthesisCase], reasons: Mapping[str, str]) -> tuple[float, float]:
    """The shares of the false sentences that pass and of the true ones that are refused."""
    true = [bool(reasons[id]) for case in cases for id, is_true in case.true.items() if is_true]
    false = [not reasons[id] for case in cases for id, is_true in case.true.items() if not is_true]
    return sum(false) / len(false), sum(true) / len(true)


def _measure(data: Path, quick: bool) -> EvalValues:
    embedded = RuleReasoner(MiniLM(), CrossEncoderScorer(CrossEncoder()), LazyCompanyRegister())
    values = {}
    for name, before in (("test", ""), ("test2", "second set, ")):
        cases = [load_case(group) for group in load_rows(SYNTHESES / f"{name}.jsonl")[:: QUICK if quick else 1]]
        recording = json.loads((SYNTHESES / f"{name}_judged.json").read_text(encoding="utf-8"))
        said = {case.sentences[id].text: recording[id] for case in cases for id in case.sentences}
        for judge, reasoner in (("", embedded), ("capable judge: ", RecordedFollows(said))):
            passed, refused = count_errors(cases, asyncio.run(find_passing(cases, reasoner)))
            values[f"{before}{judge}false, published"] = EvalValue(passed)
            values[f"{before}{judge}true, refused"] = EvalValue(refused)
    return values


MEASURES = {
    "syntheses": EvalMeasure(
        name="syntheses",
        about="How many sentences that do not follow from their claims pass, and how many that do are refused?",
        needs=(),
        licence="ours",
        whole="400 sentences, and 384 of a second set",
        quick="100 sentences of each",
        figures=(
            Figure("false, published", floor=0.15, quick=0.18, less_is_better=True),
            Figure("true, refused", floor=0.42, quick=0.52, less_is_better=True),
            Figure("capable judge: false, published", floor=0.03, quick=0.05, less_is_better=True),
            Figure("capable judge: true, refused", floor=0.12, quick=0.16, less_is_better=True),
            Figure("second set, false, published", floor=0.06, quick=0.1, less_is_better=True),
            Figure("second set, true, refused", floor=0.54, quick=0.62, less_is_better=True),
            Figure("second set, capable judge: false, published", floor=0.03, quick=0.05, less_is_better=True),
            Figure("second set, capable judge: true, refused", floor=0.12, quick=0.2, less_is_better=True),
        ),
        run=_measure,
        notes="The capable judge is a recording of readers who had not seen the checks; its answers are kept by id.",
    )
}
