"""The reasoner that asks language models: one prompt file and one flat form a step.

Nothing it says is trusted: numbers point at what was shown, code counts and bounds, and a step without a usable answer
falls to the floor, with a notice.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TypeVar

from openassay.models.evidence import Analysis, Claim, Disagreement
from openassay.models.plan import Plan, PlannerQuestion, ThreadMessage, Understanding
from openassay.models.report import Critique
from openassay.protocols import Emit, LanguageModel
from openassay.reasoning.base import (
    AnalysisRequest,
    ClaimExtraction,
    Conflict,
    Conversation,
    CritiqueRequest,
    DisputeContext,
    Draft,
    Evidence,
    JudgementBatch,
    PlanRequest,
    QueryRequest,
    Quote,
    ReadRequest,
    Reasoner,
    TypedQuery,
    WriteRequest,
)
from openassay.reasoning.llm import plan, read, verify, write
from openassay.reasoning.llm.step import StepRunner, TokenStream
from openassay.reasoning.llm.verify import JudgementPart, StatementQuotes
from openassay.reasoning.rules.critique import run_checks

T = TypeVar("T")

STEPS = (
    plan.UNDERSTAND_STEP, plan.QUESTIONS_STEP, plan.PLAN_STEP, plan.QUERIES_STEP, read.READ_STEP, read.ANALYSE_STEP,
    verify.CLAIMS_STEP, verify.JUDGE_STEP, write.WRITE_STEP, write.REVIEW_STEP, plan.CONDENSE_STEP,
)  # fmt: skip


class LLMReasoner:
    """Implements `reasoning.protocol.Reasoner` for one run. `today` is the day the run began, so that a resumed run
    asks the same and is not charged twice."""

    name = "language"

    def __init__(self, models: LanguageModel, floor: Reasoner, emit: Emit, *, today: date) -> None:
        self._floor = floor
        self._emit = emit
        self._today = today
        self._steps = StepRunner(models, emit, STEPS)

    async def understand(self, message: str, conversation: Conversation) -> Understanding:
        """Nothing is spent on an empty message or on one that only calls the question off."""
        floor = await self._floor.understand(message, conversation)
        if floor.intent in ("empty", "cancel"):
            return floor
        small = self._steps.is_small(plan.UNDERSTAND_STEP)
        return await self._steps.run(
            plan.build_understand_job(message, conversation, self._today, floor, small),
            lambda: _as_awaitable(floor),
        )

    async def propose_questions(
        self, understanding: Understanding, known: Mapping[str, str] | None = None
    ) -> Sequence[PlannerQuestion]:
        floor = await self._floor.propose_questions(understanding, known)
        job = plan.build_questions_job(understanding, known or {}, floor, self._steps.is_small(plan.QUESTIONS_STEP))
        return await self._steps.run(job, lambda: _as_awaitable(floor))

    async def plan(self, request: PlanRequest) -> Plan:
        floor = await self._floor.plan(request)
        job = plan.build_plan_job(request, floor, self._today.isoformat(), self._steps.is_small(plan.PLAN_STEP))
        return await self._steps.run(job, lambda: _as_awaitable(floor))

    async def propose_queries(self, request: QueryRequest) -> Sequence[TypedQuery]:
        count = request.count if request.tried else request.count - len(request.planned)
        if count <= 0:
            return ()
        return await self._steps.run(
            plan.build_queries_job(request, count), lambda: self._floor.propose_queries(request)
        )

    async def read(self, request: ReadRequest) -> Sequence[Quote]:
        small = self._steps.is_small(read.READ_STEP)
        shortlist = await self._floor.read(request) if small else ()
        job = read.build_read_job(request, shortlist, small)
        if not job.sources:
            return ()
        quotes = await self._steps.run(job, lambda: _as_awaitable(shortlist) if small else self._floor.read(request))
        if not quotes:
            told = f"The model chose nothing from {len(request.passages)} passages for {request.question.id}"
            stands_in = ", so the embedded reasoner's choice stands" if shortlist else ""
            await self._steps.send_notice(read.READ_STEP, f"{told}{stands_in}")
        return quotes or shortlist

    async def analyse(self, request: AnalysisRequest) -> Analysis:
        floor = await self._floor.analyse(request)
        if not request.evidence:
            return floor
        job = read.build_analysis_job(request, floor, self._steps.is_small(read.ANALYSE_STEP))
        return await self._steps.run(job, lambda: _as_awaitable(floor))

    async def extract_claims(self, plan: Plan, evidence: Sequence[Evidence]) -> ClaimExtraction:
        floor = await self._floor.extract_claims(plan, evidence)
        if not evidence:
            return floor
        small = self._steps.is_small(verify.CLAIMS_STEP)
        job = verify.build_claims_job(plan, evidence, small, self._steps.max_words(verify.CLAIMS_STEP))
        return verify.add_missing_claims(await self._steps.run(job, lambda: _as_awaitable(floor)), floor, small)

    async def judge(self, statements: Sequence[tuple[str, Sequence[str]]]) -> JudgementBatch:
        """What the model leaves out is the floor's to judge; with a small one, also what stands in its quote word for
        word."""
        small = self._steps.is_small(verify.JUDGE_STEP)
        pairs = [
            StatementQuotes(at, text, tuple(quotes))
            for at, (text, quotes) in enumerate(statements)
            if quotes and not (small and verify.is_verbatim(text, quotes))
        ]
        parts = await asyncio.gather(
            *(
                self._steps.run(
                    verify.build_judge_job(batch, str(number), others, small=small),
                    lambda: _as_awaitable(JudgementPart(failed=True)),
                )
                for number, (batch, others) in enumerate(self._split_batches(pairs), 1)
            )
        )
        given = {at: judgement for part in parts for at, judgement in part.judgements.items()}
        if len(given) < len(pairs) and not any(part.failed for part in parts):
            told = f"The model judged {len(given)} of {len(pairs)} statements with their quotes"
            await self._steps.send_notice(verify.JUDGE_STEP, f"{told}, the embedded reasoner the others")
        counted = await self._floor.judge(statements)
        judgements = tuple(
            verify.discount_judgement(given[at], floor) if small and at in given else given.get(at, floor)
            for at, floor in enumerate(counted.judgements)
        )
        conflicts = [conflict for part in parts for conflict in part.conflicts]
        return JudgementBatch(judgements=judgements, conflicts=(*conflicts, *counted.conflicts))

    def _split_batches(self, pairs: Sequence[StatementQuotes]) -> list[tuple[list[StatementQuotes], list[str]]]:
        """As few calls as there is room for; the first is told the statements of the others, as far as they fit."""
        small = self._steps.is_small(verify.JUDGE_STEP)
        most = verify.MOST_PAIRS_SMALL if small else verify.MOST_PAIRS
        batches: list[list[StatementQuotes]] = []
        for pair in pairs:
            grown = [*batches[-1], pair] if batches else [pair]
            if (
                batches
                and len(grown) <= most
                and self._steps.fits(verify.build_judge_job(grown, "", small=small), grown)
            ):
                batches[-1].append(pair)
            else:
                batches.append([pair])
        later = [] if small else list(dict.fromkeys(pair.statement for batch in batches[1:] for pair in batch))
        while later and not self._steps.fits(verify.build_judge_job(batches[0], "", later), batches[0]):
            later = later[: len(later) // 2]
        return [(batch, [] if number else later) for number, batch in enumerate(batches)]

    async def find_disagreements(
        self, claims: Sequence[Claim], conflicts: Sequence[Conflict] = (), known: DisputeContext | None = None
    ) -> Sequence[Disagreement]:
        return await self._floor.find_disagreements(claims, conflicts, known)

    async def write(self, request: WriteRequest) -> Draft:
        floor = await self._floor.write(request)
        if not write.select_usable_claims(request):
            return floor
        step, tokens = write.WRITE_STEP, TokenStream(self._emit)
        job = write.build_write_job(request, floor, self._steps.is_small(step), self._steps.max_words(step))
        draft = await self._steps.run(job, lambda: _as_awaitable(floor), tokens.start)
        await tokens.flush()
        return draft

    async def write_verbatim(self, request: WriteRequest) -> Draft:
        return await self._floor.write_verbatim(request)

    async def score_draft(self, request: CritiqueRequest) -> Critique:
        return await self._floor.score_draft(request)

    async def critique(self, request: CritiqueRequest) -> Critique:
        floor = await self._floor.critique(request)
        if not any(sentence.claims for section in request.draft.sections for sentence in section.sentences):
            return floor
        counted = await asyncio.to_thread(run_checks, request)
        job = write.build_review_job(request, counted, self._steps.is_small(write.REVIEW_STEP))
        return await self._steps.run(job, lambda: _as_awaitable(floor))

    async def condense(self, turns: Sequence[ThreadMessage], summary: str) -> str:
        return await self._steps.run(
            plan.build_condense_job(turns, summary), lambda: self._floor.condense(turns, summary)
        )


async def _as_awaitable(value: T) -> T:
    return value
