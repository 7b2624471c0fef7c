"""The scripted model gives every step of the language reasoner an answer it can use."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from openassay.models.evidence import Claim, Document, Finding, Mark, QuoteSpan, Verdict
from openassay.models.plan import Depth, ThreadMessage
from openassay.models.spend import ModelPrompt, ModelReply, ModelRole
from openassay.protocols import Stream, SupportScore
from openassay.reasoning.base import (
    AnalysisRequest,
    Conversation,
    CritiqueRequest,
    Evidence,
    PlanRequest,
    QueryRequest,
    ReadRequest,
    WriteRequest,
)
from openassay.reasoning.llm import LLMReasoner
from openassay.reasoning.rules import RuleReasoner
from openassay.testing import make_document
from openassay.text.sentences import split_passages, split_sentences
from tests.fakes.llm_api import ModelPrompt as LlmApiModelPrompt
from tests.fakes.model import FakeModel
from tests.fakes.reasoner import FakeCompanies

QUESTION = "How do urban heat islands affect the health of older people?"
PAGES = (
    "Urban heat islands raise night temperatures by 3 °C in large cities. Their effects on older people are severe: "
    "mortality rose by 12% in heat waves of the last decade.",
    "The history of research on urban heat goes back to Luke Howard, who measured London in 1818. Older people in "
    "dense cities visit hospitals more often when urban heat islands keep nights warm.",
)


class Vectors:
    name = "none"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.full((len(texts), 4), 0.5, dtype=np.float32)


class Agreeable:
    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[SupportScore]:
        return [SupportScore(0.9, 0.0) for _ in pairs]

    def follows(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [one.supported for one in self.scores(pairs)]

    def dependence(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [0.0 for _ in pairs]


class Direct:
    """A ports.LanguageModel that is the scripted model itself, without a provider in between."""

    def __init__(self, model: FakeModel, room: int) -> None:
        self._model = model
        self._room = room

    def max_prompt_tokens(self, role: ModelRole) -> int:
        return self._room

    def max_words(self, role: ModelRole) -> int:
        return 1000

    async def ask(self, prompt: ModelPrompt, stream: Stream | None = None) -> ModelReply:
        seen = LlmApiModelPrompt("m", prompt.system, prompt.text, prompt.form["title"], prompt.form)
        text = self._model(seen)
        assert text == self._model(seen)
        return ModelReply(text=text, model="scripted")


class Trial:
    """A language reasoner on the scripted model, and what it has told."""

    def __init__(self, room: int, **script: Any) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []
        floor = RuleReasoner(Vectors(), Agreeable(), FakeCompanies({}))
        self.reasoner = LLMReasoner(Direct(FakeModel(**script), room), floor, self._emit, today=date(2025, 1, 1))

    async def _emit(self, kind: str, stage: str, data: dict[str, object]) -> None:
        self.events.append((kind, data))

    @property
    def steps(self) -> set[object]:
        """The steps the model answered at once; one that fell to the floor fails the test."""
        assert not [data for kind, data in self.events if kind == "notice"]
        thoughts = [data for kind, data in self.events if kind == "think"]
        assert {data["by"] for data in thoughts} == {"scripted"}
        assert not any(data["repaired"] for data in thoughts)
        return {data["step"] for data in thoughts}


def evidence_of(
    documents: Sequence[Document], question: str, quotes: Sequence[tuple[int, str]]
) -> tuple[Evidence, ...]:
    made = []
    for number, (at, quote) in enumerate(quotes, 1):
        document = documents[at]
        start = document.text.index(quote)
        span = QuoteSpan(document=document.hash, start=start, end=start + len(quote), quote=quote)
        finding = Finding(id=f"F{number}", question=question, span=span, relevance=0.8)
        made.append(Evidence(finding=finding, title=document.title))
    return tuple(made)


@pytest.mark.parametrize("room", [24_000, 3_000], ids=["large", "small"])
async def test_every_step_has_a_usable_answer(room: int) -> None:
    trial = Trial(room, questions=3, queries=3)
    reasoner = trial.reasoner
    understanding = await reasoner.understand(QUESTION, Conversation())
    assert (understanding.intent, understanding.question) == ("research", QUESTION)
    assert await reasoner.propose_questions(understanding)

    plan = await reasoner.plan(PlanRequest(understanding=understanding, depth=Depth.STANDARD))
    assert [question.section for question in plan.questions] == ["History", "Effects", "Causes"]
    assert all(len({q.text for q in plan.queries if q.question == part.id}) == 3 for part in plan.questions)
    effects = plan.questions[1]
    more = await reasoner.propose_queries(QueryRequest(question=effects, understanding=understanding, count=3))
    assert len({query.text for query in more}) == 3

    documents = [make_document(text) for text in PAGES]
    shown = tuple(passage for document in documents for passage in split_passages(document.hash, document.text))
    quotes = await reasoner.read(ReadRequest(question=effects, passages=shown, limit=6))
    assert "older people" in quotes[0].text.lower()
    evidence = evidence_of(documents, effects.id, [(quote.passage, quote.text) for quote in quotes])

    coverage = {question.id: 0.2 for question in plan.questions}
    analysis = await reasoner.analyse(AnalysisRequest(plan=plan, evidence=evidence, coverage=coverage))
    assert analysis.key_findings or room == 3_000
    claimed = await reasoner.extract_claims(plan, evidence)
    assert {quote.text for quote in quotes} <= {text for claim in claimed.claims for text in claim.wordings}
    judged = await reasoner.judge([(f"We read: {claim.wordings[0]}", claim.wordings) for claim in claimed.claims])
    assert {judgement.verdict for judgement in judged.judgements} == {Verdict.SUPPORTED}

    claims = tuple(
        Claim(
            id=f"C{n}", text=claim.wordings[0], questions=claim.questions, relevance=claim.relevance,
            spans=tuple(item.finding.span for item in evidence if item.finding.id in claim.findings),
            verdict=Verdict.SUPPORTED, mark=Mark.SINGLE, confidence=0.8,
        )
        for n, claim in enumerate(claimed.claims, 1)
    )  # fmt: skip
    draft = await reasoner.write(WriteRequest(plan=plan, claims=claims))
    written = {sentence.text for section in draft.sections for sentence in section.sentences if sentence.claims}
    pieces = {piece.text for claim in claims for piece in split_sentences(claim.text)}
    assert pieces <= {piece.text for text in written for piece in split_sentences(text)}
    assert any(section.role == "conclusion" for section in draft.sections)
    critique = await reasoner.critique(CritiqueRequest(plan=plan, draft=draft, claims=claims))
    assert 7.5 <= critique.score < 8, "single sources, truly told"
    assert "urban heat islands" in await reasoner.condense([ThreadMessage(role="user", content=QUESTION)], "")
    writing = {"write"} if room == 3_000 else {"compose"}
    assert trial.steps == writing | {
        "understand", "questions", "plan", "queries", "read", "analyse", "claims", "judge", "critique", "condense",
    }  # fmt: skip


@pytest.mark.parametrize(("rounds", "gaps"), [(1, [0]), (2, [3, 0]), (3, [3, 3, 0])])
async def test_gaps_are_found_until_the_rounds_are_done(rounds: int, gaps: list[int]) -> None:
    """How many of its queries were asked tells the round; it remembers nothing."""
    trial = Trial(24_000, rounds=rounds)
    understanding = await trial.reasoner.understand(QUESTION, Conversation())
    plan = await trial.reasoner.plan(PlanRequest(understanding=understanding, depth=Depth.STANDARD))
    documents = [make_document(text) for text in PAGES]
    evidence = tuple(
        item.model_copy(
            update={"finding": item.finding.model_copy(update={"id": question.id, "question": question.id})}
        )
        for question in plan.questions
        for item in evidence_of(documents, question.id, [(0, PAGES[0][:40])])
    )
    asked = tuple(query.text for query in plan.queries)
    seen = []
    for _ in range(rounds):
        request = AnalysisRequest(
            plan=plan, evidence=evidence, coverage={question.id: 0.9 for question in plan.questions}, asked=asked
        )
        analysis = await trial.reasoner.analyse(request)
        own = [texts[0] for texts in analysis.refinements.values() if texts[0].endswith(("details", "evidence"))]
        seen.append(len(own))
        assert not set(own) & set(asked)
        asked += tuple(own)
    assert seen == gaps


async def test_a_follow_up_is_about_what_was_spoken_of() -> None:
    trial = Trial(24_000)
    understood = await trial.reasoner.understand("What does it cost?", Conversation(subject="Fusion power"))
    assert (understood.intent, understood.question) == ("follow_up", "What does Fusion power cost?")


async def test_answers_can_be_replaced_one_by_one() -> None:
    trial = Trial(24_000, answers={"Understood": lambda prompt: {"question": "Why is the sky blue?"}})
    understood = await trial.reasoner.understand("Sky?", Conversation())
    assert understood.question == "Why is the sky blue?"
