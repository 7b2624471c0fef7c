"""The reasoner that needs no language model: rules, word statistics and a small sentence encoder.

It is the default without a key and the floor under a language model. It never composes a statement about
the world: findings, claims and report sentences are sentences of the sources.
"""

import asyncio
from collections.abc import Mapping, Sequence

from assay.model.claim import Claim, Judgement, Verdict
from assay.model.evidence import Analysis, Disagreement
from assay.model.plan import Plan
from assay.model.question import PlannerQuestion, Turn, Understanding
from assay.model.report import Critique
from assay.ports import Companies, Embedder, SupportScorer
from assay.reasoning.embedded.analysing import analyse
from assay.reasoning.embedded.answering import answers, with_bearing
from assay.reasoning.embedded.asking import planner_questions
from assay.reasoning.embedded.claiming import claims
from assay.reasoning.embedded.conversation import condense
from assay.reasoning.embedded.critique import critique
from assay.reasoning.embedded.disagreeing import disagreements
from assay.reasoning.embedded.planning import plan, queries
from assay.reasoning.embedded.reading import could_answer, read
from assay.reasoning.embedded.subjects import is_company
from assay.reasoning.embedded.understanding import understand
from assay.reasoning.embedded.writing import write
from assay.reasoning.protocol import (
    AnalysisRequest,
    Claimed,
    Conflict,
    Conversation,
    CritiqueRequest,
    Draft,
    Evidence,
    Judged,
    Known,
    PlanRequest,
    Query,
    QueryRequest,
    Quote,
    ReadRequest,
    WriteRequest,
)

# Probabilities, chosen on claims and passages nobody here wrote (benchmarks/bench_support.py, cross-validated). From
# the first on, 81% of short claims and 77% of long ones are borne out by their quote; the second leaves 96% of the
# pairs below it in which a claim stands beside other sentences of its page.
SUPPORTED, PARTLY = 0.60, 0.25


class EmbeddedReasoner:
    """Implements `reasoning.protocol.Reasoner`. Work on the processor runs in a thread."""

    name = "embedded"

    def __init__(self, embedder: Embedder, support: SupportScorer, companies: Companies) -> None:
        self._embedder = embedder
        self._support = support
        self._companies = companies

    async def understand(self, message: str, conversation: Conversation) -> Understanding:
        return await asyncio.to_thread(understand, message, conversation, self._companies)

    async def questions(
        self, understanding: Understanding, known: Mapping[str, str] | None = None
    ) -> Sequence[PlannerQuestion]:
        return planner_questions(understanding, known, company=self._on_a_company(understanding))

    async def plan(self, request: PlanRequest) -> Plan:
        return plan(request, company=self._on_a_company(request.understanding))

    def _on_a_company(self, asked: Understanding) -> bool:
        """Whether what is asked for is an overview of one company."""
        one = len(asked.subjects) == 1 and asked.query_class == "overview"
        return one and is_company(asked.subjects[0], self._companies)

    async def queries(self, request: QueryRequest) -> Sequence[Query]:
        """Variations of the question's own words; there are no others to offer once these were tried."""
        if request.tried:
            return ()
        return [Query(text=text) for text in queries(request.question, request.understanding, request.count)]

    async def read(self, request: ReadRequest) -> Sequence[Quote]:
        return await asyncio.to_thread(self._read, request)

    def _read(self, request: ReadRequest) -> Sequence[Quote]:
        asked = request.question.text
        quotes = read(request.question, request.passages, request.limit, self._embedder, request.titles)
        borne = with_bearing(asked, request.passages, quotes, request.limit)
        return [quote for quote in borne if could_answer(asked, quote.text)]

    async def analyse(self, request: AnalysisRequest) -> Analysis:
        return await asyncio.to_thread(analyse, request)

    async def claims(self, plan: Plan, evidence: Sequence[Evidence]) -> Claimed:
        return Claimed(claims=tuple(await asyncio.to_thread(claims, plan, evidence)))

    async def judge(self, statements: Sequence[tuple[str, Sequence[str]]]) -> Judged:
        pairs = [(text, quote) for text, quotes in statements for quote in quotes]
        each = iter(await asyncio.to_thread(self._support.scores, pairs))
        return Judged(judgements=tuple(_judgement([next(each) for _ in quotes]) for _, quotes in statements))

    async def disagreements(
        self, claims: Sequence[Claim], conflicts: Sequence[Conflict] = (), known: Known | None = None
    ) -> Sequence[Disagreement]:
        return await asyncio.to_thread(disagreements, claims, conflicts, known)

    async def write(self, request: WriteRequest) -> Draft:
        return await asyncio.to_thread(_written, request)

    async def critique(self, request: CritiqueRequest) -> Critique:
        return await asyncio.to_thread(critique, request)

    async def condense(self, turns: Sequence[Turn], summary: str) -> str:
        return condense(turns, summary)


def _written(request: WriteRequest) -> Draft:
    given = answers(request.plan.goal, request.claims, request.titles)
    return write(request).model_copy(update={"answers": given})


def _judgement(scores: Sequence[float]) -> Judgement:
    """By the quote that supports most."""
    score = max(scores, default=0.0)
    verdict = Verdict.SUPPORTED if score >= SUPPORTED else Verdict.PARTLY if score >= PARTLY else Verdict.NOT_FOUND
    return Judgement(verdict=verdict, score=round(score, 4), reason=f"support {score:.2f} by words and meaning")
