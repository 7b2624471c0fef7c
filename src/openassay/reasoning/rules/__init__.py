"""The reasoner that needs no language model: rules, word statistics and a small sentence encoder.

It is the default without a key and the floor under a language model. It never composes a statement about
the world: findings, claims and report sentences are sentences of the sources.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from openassay.models.evidence import Analysis, Claim, Disagreement, Judgement, Verdict
from openassay.models.plan import Plan, PlannerQuestion, ThreadMessage, Understanding
from openassay.models.report import Critique
from openassay.protocols import CompanyResolver, Embedder, SupportScorer
from openassay.reasoning import base
from openassay.reasoning.rules.analyse import analyse, extract_claims, find_disagreements
from openassay.reasoning.rules.critique import critique_draft
from openassay.reasoning.rules.followups import condense
from openassay.reasoning.rules.phrases import is_company
from openassay.reasoning.rules.plan import build_planner_questions, make_plan, vary_queries
from openassay.reasoning.rules.read import could_answer, read_passages
from openassay.reasoning.rules.rival_figures import find_rivals
from openassay.reasoning.rules.short_answers import add_answer_quotes, find_answers
from openassay.reasoning.rules.understand import understand
from openassay.reasoning.rules.write import write
from openassay.text.words import stems

# Probabilities, chosen on 120 statements that the verifier had not learned from: .25 of the false ones and .12 of the
# true ones are on the wrong side of the first (docs/decisions/0042).
SUPPORTED, PARTLY, REFUTED = 0.62, 0.45, 0.5
# Of a sentence that draws claims together: of 60 false ones .10 pass, of 60 true ones .43 are refused.
FOLLOWS = 0.83
# That a sentence denies a claim. What does, in 25 folders made to mislead, has .77 to .88; of 2,455 statements of
# Wikipedia articles, ten to a question, that do not contradict each other .2% are taken for denied, and of 60 true
# statements on one passage none.
DENIED = 0.77
ONE_VOICE = 0.55  # how likely two documents are one voice to be taken for one; of 40 pairs 9 are wrong


class RuleReasoner:
    """Implements `reasoning.base.Reasoner`. Work on the processor runs in a thread."""

    name = base.EMBEDDED

    def __init__(self, embedder: Embedder, support: SupportScorer, companies: CompanyResolver) -> None:
        self._embedder = embedder
        self._support = support
        self._companies = companies

    async def understand(self, question: str, conversation: base.Conversation) -> Understanding:
        return await asyncio.to_thread(understand, question, conversation, self._companies)

    async def propose_questions(
        self, understanding: Understanding, known: Mapping[str, str] | None = None
    ) -> Sequence[PlannerQuestion]:
        return build_planner_questions(understanding, known, company=self._asks_about_company(understanding))

    async def plan(self, request: base.PlanRequest) -> Plan:
        return make_plan(request, company=self._asks_about_company(request.understanding))

    def _asks_about_company(self, asked: Understanding) -> bool:
        """Whether what is asked for is an overview of one company."""
        one = len(asked.subjects) == 1 and asked.query_class == "overview"
        return one and is_company(asked.subjects[0], self._companies)

    async def propose_queries(self, request: base.QueryRequest) -> Sequence[base.TypedQuery]:
        """Variations of the question's own words; there are no others to offer once these were tried."""
        if request.tried:
            return ()
        return [
            base.TypedQuery(text=text) for text in vary_queries(request.question, request.understanding, request.count)
        ]

    async def read(self, request: base.ReadRequest) -> Sequence[base.Quote]:
        asked, passages, limit = request.question.text, request.passages, request.limit
        quotes = await asyncio.to_thread(
            read_passages, request.question, passages, limit, self._embedder, request.titles
        )
        borne = await asyncio.to_thread(add_answer_quotes, asked, passages, quotes, limit)
        return [quote for quote in borne if could_answer(asked, quote.text)]

    async def analyse(self, request: base.AnalysisRequest) -> Analysis:
        return await asyncio.to_thread(analyse, request)

    async def extract_claims(self, plan: Plan, evidence: Sequence[base.Evidence]) -> base.ClaimExtraction:
        return base.ClaimExtraction(claims=tuple(await asyncio.to_thread(extract_claims, plan, evidence)))

    async def judge(self, statements: Sequence[tuple[str, Sequence[str]]]) -> base.JudgementBatch:
        pairs = [(text, passage) for text, passages in statements for passage in passages]
        each = iter(await asyncio.to_thread(self._support.scores, pairs))
        judgements = []
        for text, passages in statements:
            found = [next(each) for _ in passages]
            score = max((one.supported for one in found), default=0.0)  # of the passage that supports most
            # What says otherwise speaks of the same: the verifier also takes what is plainly absurd for refuted.
            wanted = set(stems(text))
            refuted = max(
                (one.refuted for one, own in zip(found, passages, strict=True) if wanted & set(stems(own))), default=0.0
            )
            verdict = Verdict.CONTRADICTED if refuted >= REFUTED else Verdict.NOT_FOUND
            verdict = Verdict.PARTLY if score >= PARTLY and verdict is Verdict.NOT_FOUND else verdict
            verdict = Verdict.SUPPORTED if score >= SUPPORTED else verdict
            reason = f"support {score:.2f} by the verifier"
            judgements.append(Judgement(verdict=verdict, score=round(score, 4), reason=reason, embedded=True))
        return base.JudgementBatch(judgements=tuple(judgements))

    async def judge_syntheses(self, pairs: Sequence[base.SynthesisPair]) -> Sequence[Judgement]:
        """The verifier reads the claims as one text. To draw several together is harder, so it has to be surer."""
        texts = [(pair.text, "\n".join((*(pair.short or pair.claims), *pair.figures))) for pair in pairs]
        found = await asyncio.to_thread(self._support.scores, texts)
        return [
            Judgement(
                verdict=Verdict.SUPPORTED if one.supported >= FOLLOWS else Verdict.PARTLY,
                score=round(one.supported, 4),
                reason=f"support {one.supported:.2f} by the verifier",
                embedded=True,
            )
            for one in found
        ]

    async def compare_voices(self, pairs: Sequence[base.VoicePair]) -> Sequence[bool]:
        chances = await asyncio.to_thread(self._support.dependence, [(pair.first, pair.second) for pair in pairs])
        return [chance >= ONE_VOICE for chance in chances]

    async def find_denials(self, pairs: Sequence[tuple[str, str]]) -> Collection[tuple[str, str]]:
        found = await asyncio.to_thread(self._support.scores, pairs)
        return {pair for pair, chance in zip(pairs, found, strict=True) if chance.refuted >= DENIED}

    async def find_disagreements(
        self, claims: Sequence[Claim], conflicts: Sequence[base.Conflict] = (), known: base.DisputeContext | None = None
    ) -> Sequence[Disagreement]:
        rivals = await asyncio.to_thread(find_rivals, claims, self._support.scores)
        return await asyncio.to_thread(find_disagreements, claims, conflicts, known, rivals)

    async def write(self, request: base.WriteRequest) -> base.Draft:
        answers = await asyncio.to_thread(find_answers, request.plan.goal, request.claims, request.titles)
        draft = await asyncio.to_thread(write, request)
        return draft.model_copy(update={"answers": answers})

    async def mend(self, request: base.MendRequest) -> Mapping[base.FailedSentence, base.DraftSentence]:
        """Nothing is written freely here, so nothing can be mended."""
        return {}

    async def write_verbatim(self, request: base.WriteRequest) -> base.Draft:
        return await asyncio.to_thread(write, request)

    async def critique(self, request: base.CritiqueRequest) -> Critique:
        return await asyncio.to_thread(critique_draft, request)

    score_draft = critique

    async def condense(self, turns: Sequence[ThreadMessage], summary: str) -> str:
        return condense(turns, summary)
