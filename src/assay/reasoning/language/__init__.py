"""The reasoner that asks language models: one prompt file and one flat form a step.

Nothing it says is trusted: numbers point at what was shown, code counts and bounds, and a step without a usable answer
falls to the floor, with a notice.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TypeVar

from assay.model.claim import Claim
from assay.model.evidence import Analysis, Disagreement
from assay.model.plan import Plan
from assay.model.question import PlannerQuestion, Turn, Understanding
from assay.model.report import Critique
from assay.ports import Emit, LanguageModel
from assay.reasoning.embedded.critique import count
from assay.reasoning.language import (
    analysing,
    asking,
    claiming,
    conversation,
    judging,
    planning,
    querying,
    reading,
    reviewing,
    understanding,
    writing,
)
from assay.reasoning.language.judging import Pair, Part
from assay.reasoning.language.step import Steps
from assay.reasoning.language.stream import Tokens
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
    Reasoner,
    WriteRequest,
)

T = TypeVar("T")

STEPS = tuple(
    module.STEP
    for module in (understanding, asking, planning, querying, reading, analysing, claiming, judging, writing,
                   reviewing, conversation)
)  # fmt: skip


class LanguageReasoner:
    """Implements `reasoning.protocol.Reasoner` for one run. `today` is the day the run began, so that a resumed run
    asks the same and is not charged twice."""

    name = "language"

    def __init__(self, models: LanguageModel, floor: Reasoner, emit: Emit, *, today: date) -> None:
        self._floor = floor
        self._emit = emit
        self._today = today
        self._steps = Steps(models, emit, STEPS)

    async def understand(self, message: str, conversation: Conversation) -> Understanding:
        """Nothing is spent on an empty message or on one that only calls the question off."""
        floor = await self._floor.understand(message, conversation)
        if floor.intent in ("empty", "cancel"):
            return floor
        small = self._steps.small(understanding.STEP)
        return await self._steps.take(
            understanding.job(message, conversation, self._today, floor, small),
            lambda: _ready(floor),
        )

    async def questions(
        self, understanding: Understanding, known: Mapping[str, str] | None = None
    ) -> Sequence[PlannerQuestion]:
        floor = await self._floor.questions(understanding, known)
        job = asking.job(understanding, known or {}, floor, self._steps.small(asking.STEP))
        return await self._steps.take(job, lambda: _ready(floor))

    async def plan(self, request: PlanRequest) -> Plan:
        floor = await self._floor.plan(request)
        job = planning.job(request, floor, self._today.isoformat(), self._steps.small(planning.STEP))
        return await self._steps.take(job, lambda: _ready(floor))

    async def queries(self, request: QueryRequest) -> Sequence[Query]:
        count = request.count if request.tried else request.count - len(request.planned)
        if count <= 0:
            return ()
        return await self._steps.take(querying.job(request, count), lambda: self._floor.queries(request))

    async def read(self, request: ReadRequest) -> Sequence[Quote]:
        small = self._steps.small(reading.STEP)
        shortlist = await self._floor.read(request) if small else ()
        job = reading.job(request, shortlist, small)
        if not job.sources:
            return ()
        quotes = await self._steps.take(job, lambda: _ready(shortlist) if small else self._floor.read(request))
        if not quotes:
            told = f"The model chose nothing from {len(request.passages)} passages for {request.question.id}"
            stands_in = ", so the embedded reasoner's choice stands" if shortlist else ""
            await self._steps.notice(reading.STEP, f"{told}{stands_in}")
        return quotes or shortlist

    async def analyse(self, request: AnalysisRequest) -> Analysis:
        floor = await self._floor.analyse(request)
        if not request.evidence:
            return floor
        job = analysing.job(request, floor, self._steps.small(analysing.STEP))
        return await self._steps.take(job, lambda: _ready(floor))

    async def claims(self, plan: Plan, evidence: Sequence[Evidence]) -> Claimed:
        floor = await self._floor.claims(plan, evidence)
        if not evidence:
            return floor
        small = self._steps.small(claiming.STEP)
        job = claiming.job(plan, evidence, small, self._steps.words(claiming.STEP))
        return claiming.completed(await self._steps.take(job, lambda: _ready(floor)), floor, small)

    async def judge(self, statements: Sequence[tuple[str, Sequence[str]]]) -> Judged:
        """What the model leaves out is the floor's to judge; with a small one, also what stands in its quote word for
        word."""
        small = self._steps.small(judging.STEP)
        pairs = [
            Pair(at, text, tuple(quotes))
            for at, (text, quotes) in enumerate(statements)
            if quotes and not (small and judging.verbatim(text, quotes))
        ]
        parts = await asyncio.gather(
            *(
                self._steps.take(
                    judging.job(batch, str(number), others, small=small), lambda: _ready(Part(failed=True))
                )
                for number, (batch, others) in enumerate(self._batches(pairs), 1)
            )
        )
        given = {at: judgement for part in parts for at, judgement in part.judgements.items()}
        if len(given) < len(pairs) and not any(part.failed for part in parts):
            told = f"The model judged {len(given)} of {len(pairs)} statements with their quotes"
            await self._steps.notice(judging.STEP, f"{told}, the embedded reasoner the others")
        counted = await self._floor.judge(statements)
        judgements = tuple(
            judging.doubted(given[at], floor) if small and at in given else given.get(at, floor)
            for at, floor in enumerate(counted.judgements)
        )
        conflicts = [conflict for part in parts for conflict in part.conflicts]
        return Judged(judgements=judgements, conflicts=(*conflicts, *counted.conflicts))

    def _batches(self, pairs: Sequence[Pair]) -> list[tuple[list[Pair], list[str]]]:
        """As few calls as there is room for; the first is told the statements of the others, as far as they fit."""
        small = self._steps.small(judging.STEP)
        most = judging.MOST_IN_LITTLE_ROOM if small else judging.MOST
        batches: list[list[Pair]] = []
        for pair in pairs:
            grown = [*batches[-1], pair] if batches else [pair]
            if batches and len(grown) <= most and self._steps.fits(judging.job(grown, "", small=small), grown):
                batches[-1].append(pair)
            else:
                batches.append([pair])
        later = [] if small else list(dict.fromkeys(pair.statement for batch in batches[1:] for pair in batch))
        while later and not self._steps.fits(judging.job(batches[0], "", later), batches[0]):
            later = later[: len(later) // 2]
        return [(batch, [] if number else later) for number, batch in enumerate(batches)]

    async def disagreements(
        self, claims: Sequence[Claim], conflicts: Sequence[Conflict] = (), known: Known | None = None
    ) -> Sequence[Disagreement]:
        return await self._floor.disagreements(claims, conflicts, known)

    async def write(self, request: WriteRequest) -> Draft:
        floor = await self._floor.write(request)
        if not writing.usable(request):
            return floor
        step, tokens = writing.STEP, Tokens(self._emit)
        job = writing.job(request, floor, self._steps.small(step), self._steps.words(step))
        draft = await self._steps.take(job, lambda: _ready(floor), tokens.start)
        await tokens.flush()
        return draft

    async def critique(self, request: CritiqueRequest) -> Critique:
        floor = await self._floor.critique(request)
        if not any(sentence.claims for section in request.draft.sections for sentence in section.sentences):
            return floor
        counted = await asyncio.to_thread(count, request)
        job = reviewing.job(request, counted, self._steps.small(reviewing.STEP))
        return await self._steps.take(job, lambda: _ready(floor))

    async def condense(self, turns: Sequence[Turn], summary: str) -> str:
        return await self._steps.take(conversation.job(turns, summary), lambda: self._floor.condense(turns, summary))


async def _ready(value: T) -> T:
    return value
