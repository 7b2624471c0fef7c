"""The reasoner that needs no language model: rules, word statistics and a small sentence encoder.

It is the default without a key and the floor under a language model. It never composes a statement about
the world: findings, claims and report sentences are sentences of the sources.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from openassay.models.evidence import Analysis, Claim, Disagreement, Judgement, Verdict
from openassay.models.plan import Depth, Plan, PlannerQuestion, ThreadMessage, Understanding
from openassay.models.report import Critique
from openassay.protocols import CompanyResolver, Embedder, SupportScore, SupportScorer
from openassay.reasoning import base
from openassay.reasoning.rules.analyse import analyse, extract_claims, find_disagreements
from openassay.reasoning.rules.critique import critique_draft
from openassay.reasoning.rules.followups import condense
from openassay.reasoning.rules.other_languages import read_in_language
from openassay.reasoning.rules.pair_answers import find_pair, find_pair_answer
from openassay.reasoning.rules.phrases import is_company
from openassay.reasoning.rules.plan import POINTED_VARIATIONS, build_planner_questions, make_plan, vary_queries
from openassay.reasoning.rules.read import could_answer, read_passages
from openassay.reasoning.rules.rival_figures import find_rivals
from openassay.reasoning.rules.short_answers import add_answer_quotes, discount_unanswering, find_answers
from openassay.reasoning.rules.table_answers import (
    add_row_quotes,
    are_other_cells,
    asks_for_row,
    bind_cells,
    find_table_answer,
    is_cell_borne_out,
    is_from_row,
    is_to_be_calculated,
    write_table_answer,
)
from openassay.reasoning.rules.themes import keep_likely_disputes
from openassay.reasoning.rules.understand import understand
from openassay.reasoning.rules.write import write
from openassay.text.answer_reader import AnswerReader
from openassay.text.other_languages import find_other_language, is_in_other_language
from openassay.text.questions import is_pointed, state_question
from openassay.text.sentences import is_table_row
from openassay.text.words import stems

# Probabilities, chosen on 120 statements that the verifier had not learned from: .25 of the false ones and .12 of the
# true ones are on the wrong side of the first (docs/decisions/0042).
SUPPORTED, PARTLY, REFUTED = 0.62, 0.45, 0.5
# Of a sentence that draws claims together: of 1,564 false ones that it had not learned from .10 pass, boldly worded as
# they are, and .53 of as many true ones are refused; of 392 others nobody looked at .08, and .42.
FOLLOWS = 0.95
# That a sentence denies a claim. What does, in 25 folders made to mislead, has .77 to .88; of 2,455 statements of
# Wikipedia articles, ten to a question, that do not contradict each other .2% are taken for denied, and of 60 true
# statements on one passage none.
DENIED = 0.77
IN_ROW, NOT_IN_ROW = SupportScore(0.95, 0.0), SupportScore(0.0, 0.0)  # a figure of a table, as its row has it
# Of a question that is answered by yes or no: what bears it out or denies it so surely decides, if nothing says
# otherwise more than a little. Of 15 such questions on news with known answers 4 are decided, all of them rightly; by
# .6 alone 8 are, 2 of them wrongly.
SURELY_SO, SURELY_NOT, OTHERWISE = 0.75, 0.62, 0.4
MOST_ASKED = 6  # quotes that are read for it
ONE_VOICE = 0.55  # how likely two documents are one voice to be taken for one; of 40 pairs 9 are wrong


VERBATIM = 0.9  # how sure it is that a passage says what it says


def _judge_verbatim(text: str, passages: Sequence[str]) -> Judgement:
    """A judgement on a statement that is not in English."""
    plain = " ".join(text.split())
    if any(plain in " ".join(passage.split()) for passage in passages):
        reason = "stands there word for word"
        return Judgement(verdict=Verdict.SUPPORTED, score=VERBATIM, reason=reason, embedded=True)
    reason = "not in English, and does not stand there word for word"
    return Judgement(verdict=Verdict.NOT_FOUND, score=0.0, reason=reason, embedded=True)


class RuleReasoner:
    """Implements `reasoning.base.Reasoner`. Work on the processor runs in a thread."""

    name = base.EMBEDDED

    def __init__(
        self,
        embedder: Embedder,
        support: SupportScorer,
        companies: CompanyResolver,
        reader: AnswerReader | None = None,
    ) -> None:
        self._embedder = embedder
        self._reader = reader or AnswerReader()  # its files are read when it is first asked
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
        pointed = request.depth is not Depth.COMPREHENSIVE and is_pointed(request.understanding.question)
        count = min(request.count, POINTED_VARIATIONS) if pointed else request.count
        return [base.TypedQuery(text=text) for text in vary_queries(request.question, request.understanding, count)]

    async def read(self, request: base.ReadRequest) -> Sequence[base.Quote]:
        asked, passages, limit = request.question.text, request.passages, request.limit
        if language := find_other_language(asked):
            titles = [request.titles.get(passage.document, "") for passage in passages]
            return await asyncio.to_thread(read_in_language, request.question, passages, titles, limit, language)
        quotes = await asyncio.to_thread(
            read_passages, request.question, passages, limit, self._embedder, request.titles
        )
        borne = await asyncio.to_thread(add_answer_quotes, asked, passages, quotes, limit, self._reader)
        borne = await asyncio.to_thread(discount_unanswering, asked, passages, borne, request.titles, self._reader)
        plain = [quote for quote in borne if could_answer(asked, quote.text)]
        found = await asyncio.to_thread(
            find_table_answer, request.question.in_context, request.texts, request.titles, self._embedder
        )
        return add_row_quotes(found, request.texts, plain, passages)

    async def analyse(self, request: base.AnalysisRequest) -> Analysis:
        return await asyncio.to_thread(analyse, request)

    async def extract_claims(self, plan: Plan, evidence: Sequence[base.Evidence]) -> base.ClaimExtraction:
        return base.ClaimExtraction(claims=tuple(await asyncio.to_thread(extract_claims, plan, evidence)))

    async def judge(self, statements: Sequence[tuple[str, Sequence[str]]]) -> base.JudgementBatch:
        """The verifier reads English. In another language a sentence is borne out by a passage that has it word for
        word; of any other nothing can be said. Whether a row has a figure is compared."""
        others = {text for text, passages in statements if is_in_other_language(" ".join((text, *passages)))}
        pairs = [(text, passage) for text, passages in statements if text not in others for passage in passages]
        exact = [is_cell_borne_out(text, passage) for text, passage in pairs]
        open_pairs = [pair for pair, known in zip(pairs, exact, strict=True) if known is None]
        weighed = iter(await asyncio.to_thread(self._support.scores, open_pairs))
        each = (next(weighed) if known is None else IN_ROW if known else NOT_IN_ROW for known in exact)
        judgements = []
        for text, passages in statements:
            if text in others:
                judgements.append(_judge_verbatim(text, passages))
                continue
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
        """The verifier reads the claims as one text."""
        texts = [(pair.text, "\n".join((*(pair.short or pair.claims), *pair.figures))) for pair in pairs]
        found = await asyncio.to_thread(self._support.follows, texts)
        return [
            Judgement(
                verdict=Verdict.SUPPORTED if chance >= FOLLOWS else Verdict.PARTLY,
                score=round(chance, 4),
                reason=f"support {chance:.2f} by the verifier",
                embedded=True,
            )
            for chance in found
        ]

    async def compare_voices(self, pairs: Sequence[base.VoicePair]) -> Sequence[bool]:
        """Two in another language than English are taken for one voice: the verifier could not tell."""
        chances = await asyncio.to_thread(self._support.dependence, [(pair.first, pair.second) for pair in pairs])
        told = zip(pairs, chances, strict=True)
        return [chance >= ONE_VOICE or is_in_other_language(f"{pair.first} {pair.second}") for pair, chance in told]

    async def find_denials(self, pairs: Sequence[tuple[str, str]]) -> Collection[tuple[str, str]]:
        pairs = [pair for pair in pairs if not is_in_other_language(" ".join(pair))]
        found = await asyncio.to_thread(self._support.scores, pairs)
        return {pair for pair, chance in zip(pairs, found, strict=True) if chance.refuted >= DENIED}

    async def find_disagreements(
        self, claims: Sequence[Claim], conflicts: Sequence[base.Conflict] = (), known: base.DisputeContext | None = None
    ) -> Sequence[Disagreement]:
        claims = [claim for claim in claims if not is_in_other_language(claim.text)]
        rivals = await asyncio.to_thread(find_rivals, claims, self._support.scores)
        found = await asyncio.to_thread(find_disagreements, claims, conflicts, known, rivals, self._reader)
        by_id = {claim.id: claim for claim in claims}
        found = [matter for matter in found if not are_other_cells([by_id[id] for side in matter.sides for id in side])]
        if known is None or is_pointed(known.question):
            return found
        # What a judge has named is no chance meeting of a word with its opposite.
        judged = {text for conflict in conflicts for text in (conflict.first, conflict.second)}
        named = [one for one in found if all({by_id[id].text for id in side} & judged for side in one.sides)]
        likely = await asyncio.to_thread(keep_likely_disputes, found, claims, self._embedder)
        return [one for one in found if one in named or one in likely]

    async def write(self, request: base.WriteRequest) -> base.Draft:
        if told := await asyncio.to_thread(self._write_from_tables, request):
            return told
        if find_pair(request.plan):
            return await asyncio.to_thread(self._write_pair, request)
        known = request.titles, request.passages
        asked: Sequence[Claim] = () if find_other_language(request.plan.goal) else request.claims  # it reads English
        answers = await asyncio.to_thread(find_answers, request.plan.goal, asked, self._reader, *known)
        if not answers and asked and (statement := state_question(request.plan.goal)):
            answers = await asyncio.to_thread(self._answer_by_yes, statement, request)
        draft = await asyncio.to_thread(write, request, self._embedder)
        rows = any(is_table_row(span.quote) for claim in request.claims for span in claim.spans)
        if rows and is_to_be_calculated(request.plan.goal):  # the tables did not answer, and words cannot
            answers = ()
        kept = tuple(answer for answer in answers if not is_from_row(answer, request.claims))
        return draft.model_copy(update={"answers": kept})

    def _answer_by_yes(self, statement: str, request: base.WriteRequest) -> tuple[base.DraftAnswer, ...]:
        """Yes or no, where the verifier is sure of one and sees nothing for the other."""
        usable = [one for one in request.claims if one.verdict is Verdict.SUPPORTED and not one.superseded_by]
        ranked = sorted(usable, key=lambda claim: -claim.relevance)
        read = [(claim, span) for claim in ranked for span in claim.spans][:MOST_ASKED]
        passages = [f"{request.titles.get(span.document, '')}\n{span.quote}" for _, span in read]
        found = self._support.scores([(statement, passage) for passage in passages])
        yes, no = (max((getattr(one, way) for one in found), default=0.0) for way in ("supported", "refuted"))
        text, way = ("Yes", "supported") if yes >= SURELY_SO else ("No", "refuted")
        if (no if text == "Yes" else yes) > OTHERWISE or (text == "No" and no < SURELY_NOT):
            return ()
        claim, span = read[max(range(len(read)), key=lambda at: getattr(found[at], way))]
        return (base.DraftAnswer(text=text, claims=(claim.id,), chosen=True, documents=(span.document,)),)

    def _write_pair(self, request: base.WriteRequest) -> base.Draft:
        """The draft that begins with what decides between two things, where anything does."""
        found = find_pair_answer(
            request.plan, request.claims, self._reader, request.titles, request.dates, request.passages
        )
        if found is None:
            return write(request, self._embedder)
        first = [
            claim.model_copy(update={"relevance": 1.0}) if claim.id in found.told else claim for claim in request.claims
        ]
        draft = write(request.model_copy(update={"claims": tuple(first)}), self._embedder)
        body = next((at for at, section in enumerate(draft.sections) if section.role == "body"), None)
        sections = [
            section.model_copy(update={"sentences": (*section.sentences, found.note)}) if at == body else section
            for at, section in enumerate(draft.sections)
        ]
        return draft.model_copy(update={"answers": (found.answer,), "sections": tuple(sections)})

    def _write_from_tables(self, request: base.WriteRequest) -> base.Draft | None:
        """The draft that begins with what tables answer; None where they answer nothing whose figures were verified."""
        if not any(is_table_row(span.quote) for claim in request.claims for span in claim.spans):
            return None
        found = find_table_answer(request.plan.goal, request.texts, request.titles, self._embedder)
        bound = bind_cells(found, request.claims, request.texts) if found else []
        if found is None or not bound:
            return None
        told = {one.claim.id for one in bound}
        others = tuple(claim for claim in request.claims if claim.id not in told)
        draft = write(request.model_copy(update={"claims": others}), self._embedder)
        is_told = not found.is_row or asks_for_row(request.plan.goal, found, bound, self._reader)
        return write_table_answer(draft, found, bound, is_told=is_told)

    async def edit(self, request: base.EditRequest) -> Mapping[int, Sequence[base.DraftSentence]]:
        """Nothing is written freely here, so nothing is edited."""
        return {}

    async def write_verbatim(self, request: base.WriteRequest) -> base.Draft:
        return await asyncio.to_thread(write, request, self._embedder)

    async def critique(self, request: base.CritiqueRequest) -> Critique:
        return await asyncio.to_thread(critique_draft, request)

    score_draft = critique

    async def condense(self, turns: Sequence[ThreadMessage], summary: str) -> str:
        return condense(turns, summary)
