"""The reasoner that asks language models: one prompt file and one flat form a step.

Nothing a model says is trusted: numbers point at what was shown, code counts and bounds, and where a step has no usable
answer, the rules make it, with a notice.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from typing import TypeVar

from openassay.models.evidence import Analysis, Claim, Disagreement, Judgement
from openassay.models.plan import Depth, Plan, PlannerQuestion, ThreadMessage, Understanding
from openassay.models.report import Critique
from openassay.protocols import Emit, LanguageModel
from openassay.reasoning import base
from openassay.reasoning.llm import compose, edit, follows, plan, read, verify, voices, write
from openassay.reasoning.llm.forms import OutputForm
from openassay.reasoning.llm.step import Job, StepRunner, TokenStream
from openassay.reasoning.llm.verify import StatementQuotes
from openassay.reasoning.rules.critique import run_checks

STEPS = (
    plan.UNDERSTAND_STEP,
    plan.QUESTIONS_STEP,
    plan.PLAN_STEP,
    plan.QUERIES_STEP,
    read.READ_STEP,
    read.ANALYSE_STEP,
    verify.CLAIMS_STEP,
    verify.JUDGE_STEP,
    voices.VOICES_STEP,
    follows.FOLLOWS_STEP,
    write.WRITE_STEP,
    compose.COMPOSE_STEP,
    edit.EDIT_STEP,
    write.REVIEW_STEP,
    plan.CONDENSE_STEP,
)
# Which a small model is never asked for.
CAPABLE_STEPS = (
    voices.VOICES_STEP,
    follows.FOLLOWS_STEP,
    compose.COMPOSE_STEP,
    edit.EDIT_STEP,
)


A = TypeVar("A", bound=OutputForm)
S = TypeVar("S")
R = TypeVar("R")


class LLMReasoner:
    """Implements `Reasoner` with language models, for one run.

    `rules` is the reasoner that stands in for a model. `today` is the day the run began, so that a resumed run asks the
    same and is not charged twice.
    """

    name = "language"

    def __init__(self, models: LanguageModel, rules: base.Reasoner, emit: Emit, *, today: date) -> None:
        self._rules = rules
        self._emit = emit
        self._today = today
        self._steps = StepRunner(models, emit)
        # What was judged in this run: a draft that is written again has most of its sentences still.
        self._judged: dict[tuple[str, tuple[str, ...]], Judgement] = {}
        self._followed: dict[base.SynthesisPair, Judgement] = {}
        self._copies = frozenset[str]()  # claims of a quick answer: sentences of the sources, as they stand there

    async def understand(self, question: str, conversation: base.Conversation) -> Understanding:
        """Say what a question means; nothing is spent on one that is empty or only cancels."""
        baseline = await self._rules.understand(question, conversation)
        if baseline.intent in ("empty", "cancel"):
            return baseline
        small = self._steps.is_small(plan.UNDERSTAND_STEP)
        job = plan.build_understand_job(question, conversation, self._today, baseline, small)
        return await self._steps.run(job) or baseline

    async def propose_questions(
        self, understanding: Understanding, known: Mapping[str, str] | None = None
    ) -> Sequence[PlannerQuestion]:
        baseline = await self._rules.propose_questions(understanding, known)
        small = self._steps.is_small(plan.QUESTIONS_STEP)
        job = plan.build_questions_job(understanding, known or {}, baseline, small)
        return await self._steps.run(job) or baseline

    def _is_quick(self, depth: Depth) -> bool:
        """Tell whether a capable model gives a quick answer: it understands, reads, writes, and checks what it has
        written, in four calls one after the other. What it writes rests on sentences as they stand in the sources."""
        return depth is Depth.QUICK and self._steps.is_capable(compose.COMPOSE_STEP)

    async def plan(self, request: base.PlanRequest) -> Plan:
        baseline = await self._rules.plan(request)
        if self._is_quick(request.depth):
            return baseline
        job = plan.build_plan_job(request, baseline, self._today.isoformat(), self._steps.is_small(plan.PLAN_STEP))
        return await self._steps.run(job) or baseline

    async def propose_queries(self, request: base.QueryRequest) -> Sequence[base.TypedQuery]:
        """Propose search queries besides the planned ones; a model that has given two with its plan, or one if it is
        capable, is not asked again before they were tried."""
        count = request.count if request.tried else request.count - len(request.planned)
        capable = self._is_quick(request.depth) or not self._steps.is_small(plan.QUERIES_STEP)
        is_enough = len(request.planned) > 1 or (bool(request.planned) and capable)
        if count <= 0 or (not request.tried and is_enough):
            return ()
        queries = await self._steps.run(plan.build_queries_job(request, count))
        return queries or await self._rules.propose_queries(request)

    async def read(self, request: base.ReadRequest) -> Sequence[base.Quote]:
        """Choose quotes that answer a sub-question."""
        small = self._steps.is_small(read.READ_STEP)
        if small:  # the rules make a shortlist of it, which takes them as long as before
            request = request.model_copy(update={"passages": request.passages[:36], "limit": min(request.limit, 16)})
        shortlist = await self._rules.read(request) if small else ()
        job = read.build_read_job(request, shortlist, small)
        if not job.sources:
            return ()
        quotes = await self._steps.run(job)
        if quotes is None:
            return shortlist if small else await self._rules.read(request)
        if not quotes:
            text = f"The model chose nothing from {len(request.passages)} passages for {request.question.id}"
            stands_in = ", so the embedded reasoner's choice stands" if shortlist else ""
            await self._steps.send_notice(read.READ_STEP, f"{text}{stands_in}")
        return quotes or shortlist

    async def analyse(self, request: base.AnalysisRequest) -> Analysis:
        baseline = await self._rules.analyse(request)
        if not request.evidence or (self._is_quick(request.plan.depth) and not baseline.gaps):
            return baseline
        job = read.build_analysis_job(request, baseline, self._steps.is_small(read.ANALYSE_STEP))
        return await self._steps.run(job) or baseline

    async def extract_claims(self, plan: Plan, evidence: Sequence[base.Evidence]) -> base.ClaimExtraction:
        """Draw claims from the evidence, those of the rules added where the model left something out."""
        baseline = await self._rules.extract_claims(plan, evidence)
        self._copies = frozenset(
            text for claim in baseline.claims for text in claim.wordings if self._is_quick(plan.depth)
        )
        if not evidence or self._copies:
            return baseline
        small, words = self._steps.is_small(verify.CLAIMS_STEP), self._steps.max_words(verify.CLAIMS_STEP)
        parts: Sequence[Sequence[base.Evidence]] = [evidence]
        if self._steps.is_capable(verify.CLAIMS_STEP) and len(evidence) >= verify.MANY_QUOTES:
            parts = verify.split_evidence(plan, evidence)
        jobs = [
            verify.build_claims_job(plan, part, small, words, str(number) if len(parts) > 1 else "")
            for number, part in enumerate(parts, 1)
        ]
        found = [one for one in await asyncio.gather(*(self._steps.run(job) for job in jobs)) if one]
        extraction = verify.join_extractions(found) if found else baseline
        return verify.add_missing_claims(extraction, baseline, small)

    async def judge(self, statements: Sequence[tuple[str, Sequence[str]]]) -> base.JudgementBatch:
        """Judge whether quotes support statements.

        The rules judge what the model leaves out; with a small model also what stands in its quote word for word.
        """
        small = self._steps.is_small(verify.JUDGE_STEP)
        pairs = [
            StatementQuotes(number, text, tuple(quotes))
            for number, (text, quotes) in enumerate(statements)
            if quotes
            and text not in self._copies
            and not (small and verify.is_verbatim(text, quotes))
            and (text, tuple(quotes)) not in self._judged
        ]
        jobs = [
            verify.build_judge_job(batch, str(number), others, small=small)
            for number, (batch, others) in enumerate(verify.split_batches(pairs, small, self._steps.fits), 1)
        ]
        asked = [self._steps.run(job) for job in jobs]
        parts = [part for part in await asyncio.gather(*asked) if part is not None]
        judged = {number: judgement for part in parts for number, judgement in part.judgements.items()}
        if len(judged) < len(pairs) and len(parts) == len(jobs):
            text = f"The model judged {len(judged)} of {len(pairs)} statements with their quotes"
            await self._steps.send_notice(verify.JUDGE_STEP, f"{text}, the embedded reasoner the others")
        keys = {number: (text, tuple(quotes)) for number, (text, quotes) in enumerate(statements)}
        self._judged |= {keys[number]: judgement for number, judgement in judged.items()} if not small else {}
        judged |= {number: self._judged[key] for number, key in keys.items() if key in self._judged}
        # The verifier reads a pair for a third of a second, so what a model with room has judged is left to it.
        counting = [number for number in range(len(statements)) if small or number not in judged]
        counted = await self._rules.judge([statements[number] for number in counting])
        judgements = dict(judged)
        for number, baseline in zip(counting, counted.judgements, strict=True):
            judgements[number] = verify.discount_judgement(judged[number], baseline) if number in judged else baseline
        conflicts = [conflict for part in parts for conflict in part.conflicts]
        in_order = tuple(judgements[number] for number in range(len(statements)))
        return base.JudgementBatch(judgements=in_order, conflicts=(*conflicts, *counted.conflicts))

    async def judge_syntheses(self, pairs: Sequence[base.SynthesisPair]) -> Sequence[Judgement]:
        """A small model is not asked; what the model leaves out the rules judge."""
        if not pairs or self._steps.is_small(follows.FOLLOWS_STEP):
            return await self._rules.judge_syntheses(pairs)
        # The passages around are those of the call: a sentence is not judged again because they are longer.
        keys = {pair: pair._replace(passages=()) for pair in pairs}
        fresh = [pair for pair in keys if keys[pair] not in self._followed]
        found = await self._ask_in_parts(fresh, follows.MAX_PAIRS, follows.build_follows_job)
        self._followed |= {keys[pair]: judgement for pair, judgement in found.items()}
        said = {pair: self._followed[key] for pair, key in keys.items() if key in self._followed}
        left = [pair for pair in keys if pair not in said]
        said |= dict(zip(left, await self._rules.judge_syntheses(left), strict=True))
        return [said[pair] for pair in pairs]

    async def compare_voices(self, pairs: Sequence[base.VoicePair]) -> Sequence[bool]:
        """A small model is not asked; what the model leaves out the rules tell."""
        if self._copies or self._steps.is_small(voices.VOICES_STEP):
            return await self._rules.compare_voices(pairs)
        said = await self._ask_in_parts(pairs, voices.MAX_PAIRS, voices.build_voices_job)
        left = [pair for pair in pairs if pair not in said]
        said |= dict(zip(left, await self._rules.compare_voices(left), strict=True))
        return [said[pair] for pair in pairs]

    async def _ask_in_parts(
        self, items: Sequence[S], most: int, build: Callable[[Sequence[S], str], Job[A, S, dict[S, R]]]
    ) -> dict[S, R]:
        """Ask about items in as few calls as may be, side by side; what was not answered is not there."""
        parts = [items[start : start + most] for start in range(0, len(items), most)]
        found = await asyncio.gather(*(self._steps.run(build(part, str(at))) for at, part in enumerate(parts, 1)))
        return {item: answer for part in found if part for item, answer in part.items()}

    async def find_denials(self, pairs: Sequence[tuple[str, str]]) -> Collection[tuple[str, str]]:
        """The judge tells which statements contradict each other, so nobody is asked again."""
        return ()

    async def find_disagreements(
        self, claims: Sequence[Claim], conflicts: Sequence[base.Conflict] = (), known: base.DisputeContext | None = None
    ) -> Sequence[Disagreement]:
        return await self._rules.find_disagreements(claims, conflicts, known)

    async def write(self, request: base.WriteRequest) -> base.Draft:
        baseline = await self._rules.write(request)
        tokens = TokenStream(self._emit)
        # A short answer is written in the sections that the plan has for it.
        composes = self._steps.is_capable(compose.COMPOSE_STEP) and request.plan.depth is not Depth.QUICK
        if composes and compose.list_claims(request.claims):
            claims = compose.NumberedClaims(request.claims, request.heads)
            job = compose.build_report_job(request, claims, self._steps.max_prompt_tokens(compose.COMPOSE_STEP))
            composed = await self._steps.run(job, tokens.start)
            await tokens.flush()
            if composed:
                return compose.add_baseline(composed, baseline, request)
        if not write.select_usable_claims(request):
            return baseline
        step = write.WRITE_STEP
        draft_job = write.build_write_job(request, baseline, self._steps.is_small(step), self._steps.max_words(step))
        draft = await self._steps.run(draft_job, tokens.start) or baseline
        await tokens.flush()
        return draft

    async def edit(self, request: base.EditRequest) -> Mapping[int, Sequence[base.DraftSentence]]:
        claims = compose.NumberedClaims(request.claims, request.heads)
        return await self._steps.run(edit.build_edit_job(request, claims)) or {}

    async def write_verbatim(self, request: base.WriteRequest) -> base.Draft:
        return await self._rules.write_verbatim(request)

    async def score_draft(self, request: base.CritiqueRequest) -> Critique:
        return await self._rules.score_draft(request)

    async def critique(self, request: base.CritiqueRequest) -> Critique:
        baseline = await self._rules.critique(request)
        if self._is_quick(request.plan.depth):
            return baseline
        if not any(sentence.claims for section in request.draft.sections for sentence in section.sentences):
            return baseline
        counted = await asyncio.to_thread(run_checks, request)
        job = write.build_review_job(request, counted, self._steps.is_small(write.REVIEW_STEP))
        return await self._steps.run(job) or baseline

    async def condense(self, turns: Sequence[ThreadMessage], summary: str) -> str:
        job = plan.build_condense_job(turns, summary)
        return await self._steps.run(job) or await self._rules.condense(turns, summary)
