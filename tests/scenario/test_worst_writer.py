"""A writer at its worst: it makes a third of its sentences false, invents, cites wrongly and keeps to no form.

Material that nobody here wrote, changed by programs that know nothing of the checks; the judge believes everything.
All of it: benchmarks/bench_writer.py.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks import bench_writer as bench
from benchmarks.corruption import CITATION, OTHERS, STRICT, Around
from benchmarks.material import Source, sources
from openassay.bootstrap import open_engine
from openassay.export import Report
from openassay.models.evidence import Claim, Document, Hit, Judgement, Verdict
from openassay.models.plan import Plan
from openassay.models.report import Critique
from openassay.models.thread import ResearchOptions
from openassay.reasoning.base import (
    ClaimExtraction,
    CritiqueRequest,
    Draft,
    DraftAnswer,
    DraftClaim,
    DraftSection,
    DraftSentence,
    Evidence,
    JudgementBatch,
    Quote,
    ReadRequest,
    WriteRequest,
)
from openassay.settings import load
from openassay.testing import FakeSource, make_document
from openassay.text.sentences import split_passages
from tests.fakes import model_answers as sensible
from tests.fakes.llm_api import ModelPrompt
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel
from tests.scenario.checking import check_report, stored_texts
from tests.scenario.conftest import Lab
from tests.scenario.material import LAKE, QUESTION

Make = Callable[..., Lab]
ROOMY = {"reading": {"documents_per_question": 50, "passages_per_question": 200}, "results_per_query": 50}
DOCUMENTS, FULL = 24, 10  # of so many sentences


def believes(real: object, statements: Sequence[object]) -> JudgementBatch:
    yes = Judgement(verdict=Verdict.SUPPORTED, score=1.0, reason="if you say so")
    return JudgementBatch(judgements=(yes,) * len(statements))


def approves(real: object, request: CritiqueRequest) -> Critique:
    return Critique(scores={"accuracy": 9.0}, score=9.0, recommendation="approve")


def published(report: Report) -> set[str]:
    return {sentence.text for section in report.sections for sentence in section.sentences}


@pytest.fixture(scope="module")
def material(eval_data: Path) -> list[Source]:
    """Documents that no rule was tuned on."""
    return sources(eval_data, half=1, filings=False)


@pytest.fixture(scope="module")
def seen(material: list[Source]) -> list[bench.Seen]:
    return bench.run(material, 1000)


@pytest.mark.slow
@pytest.mark.requirement("X-01", "X-03")
def test_of_what_is_made_false_nothing_is_published_and_what_is_true_is(seen: list[bench.Seen]) -> None:
    """Of 5,000 sentences of this half 1 leaks, a part of another name; of the true ones .991 stand as written."""
    assert sum(item.line.false for item in seen) >= 300
    assert bench.leaked(seen) == []
    assert len(bench.leaked(seen, OTHERS)) <= 8
    any_way, as_written = bench.shares(seen)
    assert any_way >= 0.99
    assert as_written >= 0.95


@pytest.mark.slow
@pytest.mark.requirement("X-01")
def test_a_sentence_under_another_claims_name_is_bound_to_the_claim_that_says_it(seen: list[bench.Seen]) -> None:
    cited = [item for item in seen if item.line.kind == CITATION]
    assert len(cited) >= 10
    assert not any(set(item.bound) & set(item.line.claims) for item in cited if item.told == item.line.text)
    assert sum(item.fate == "re-bound" for item in cited) >= 0.7 * len(cited)


# Through the engine -----------------------------------------------------------------------------------


class Everything(FakeSource):
    """All it holds, whatever is asked."""

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        self.queries.append(query)
        hits: list[Hit] = []
        for document in self._documents:
            await self._store.put(document)
            for passage in split_passages(document.hash, document.text):
                hit = self._build_hit(query, len(hits) + 1, 1, document, passage)
                hits.append(hit.model_copy(update={"url": f"{hit.url}?part={passage.start}"}))
        return hits


async def reads_all(real: object, request: ReadRequest) -> list[Quote]:
    """Every line of every passage is a finding of the first sub-question."""
    if request.question.id != "Q1":
        return []
    return [
        Quote(passage=at, text=line, relevance=1.0)
        for at, passage in enumerate(request.passages)
        for line in passage.text.split("\n")
        if line.strip()
    ]


async def claims_all(real: object, plan: Plan, evidence: Sequence[Evidence]) -> ClaimExtraction:
    return ClaimExtraction(
        claims=tuple(
            DraftClaim(wordings=(item.finding.span.quote,), findings=(item.finding.id,), questions=("Q1",), relevance=1)
            for item in evidence
            if not item.finding.id.startswith("W")
        )
    )


class Hand:
    """Writes each document's claims as the worst writer does, once and for all versions."""

    def __init__(self, chosen: Sequence[Source]) -> None:
        self.lines: list[bench.Line] = []
        self.claims: dict[str, str] = {}
        self._chosen = chosen

    async def __call__(self, real: Any, request: WriteRequest) -> Draft:
        if not self.lines:
            self.claims = {claim.id: claim.text for claim in request.claims}
            self.lines = list(self._written(request.claims))
        sentences = tuple(DraftSentence(text=line.text, claims=line.claims) for line in self.lines)
        section = DraftSection(title=request.plan.sections[0], sentences=sentences)
        return Draft(title=request.plan.goal, sections=(section,))

    def _written(self, claims: Sequence[Claim]) -> Iterator[bench.Line]:
        writer = bench.WorstWriter(self._chosen, 7)
        for source in self._chosen:
            own = [c for c in claims if c.verdict is Verdict.SUPPORTED and c.text in source.sentences]
            yield from writer.writes(own, source)


def as_documents(chosen: Sequence[Source]) -> list[Document]:
    return [
        make_document("\n".join(source.sentences), title=source.title or f"Page {number}")
        for number, source in enumerate(chosen)
    ]


@pytest.mark.slow
@pytest.mark.requirement("X-01", "X-03", "S-10")
async def test_no_false_sentence_comes_through_the_engine(lab: Make, material: list[Source]) -> None:
    chosen = Random(5).sample([source for source in material if len(source.sentences) >= FULL], DOCUMENTS)
    hand = Hand(chosen)
    here = lab(settings=ROOMY, read=reads_all, extract_claims=claims_all, judge=believes, write=hand,
               find_disagreements=lambda real, claims, *conflicts: (), critique=approves)  # fmt: skip
    here.sources = [Everything(here.documents, as_documents(chosen))]

    report = await here.report("What is reported about people, towns, films and companies?")

    told = published(report)
    false = [line for line in hand.lines if line.false and line.kind in STRICT]
    true = [line for line in hand.lines if not line.false]
    assert len(hand.lines) >= 200
    assert len(false) >= 30
    assert [line for line in false if line.text in told] == []
    kept = [line for line in true if line.text in told or all(hand.claims[name] in told for name in line.claims)]
    assert len(kept) >= 0.9 * len(true)
    assert sum(line.text in told for line in true) >= 0.9 * len(true)
    assert report.hallucination_score > 0, "what had to be replaced is counted"


# Over HTTP --------------------------------------------------------------------------------------------


class Liar:
    """A model that makes every third sentence of its report false."""

    def __init__(self, elsewhere: Sequence[str]) -> None:
        self.false: list[str] = []
        self._elsewhere = elsewhere
        self._dice = Random(11)

    def __call__(self, prompt: ModelPrompt) -> dict[str, Any]:
        drafted = sensible.compose_report(prompt)
        for section in drafted["sections"]:
            pieces = re.findall(r"(.*?) (\[\d+\])\s*", section["text"])
            texts = [text for text, _ in pieces]
            lines = []
            for at, (text, mark) in enumerate(pieces):
                around = Around([other for other in texts if other != text], self._elsewhere)
                kinds = list(STRICT)
                self._dice.shuffle(kinds)
                told = next((t for kind in kinds if (t := STRICT[kind](text, around, self._dice))), None)
                if at % 3 == 0 and told and told not in texts:
                    self.false.append(told)
                    text = told
                lines.append(f"{text} {mark}")
            section["text"] = " ".join(lines)
        return drafted


def picks_all(prompt: ModelPrompt) -> dict[str, Any]:
    numbers = [int(line[1 : line.index("]")]) for line in prompt.text.split("\n") if line.startswith("[")]
    return {"picks": [{"first": number, "last": number, "score": 8} for number in numbers[:16]]}


@asynccontextmanager
async def run_with(
    answers: dict[str, Any], tmp_path: Path, question: str = "What is known of it?", **options: Any
) -> AsyncIterator[Report]:
    """A run on documents by the language reasoner, its model behind real HTTP."""
    async with FakeLlmServer(FakeModel(answers)) as provider:
        models = {"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}}
        async with open_engine(load(data_dir=tmp_path / "data", llm=models)) as engine:
            given = {"depth": "standard", "docs": (str(tmp_path / "docs"),), "model": "openai:gpt-4o", **options}
            run = await engine.start(question, ResearchOptions.model_validate(given))
            outcome = await engine.wait(run.id)
            assert outcome.report is not None, outcome.run.error
            check_report(outcome.report, stored_texts(tmp_path / "data"))
            yield outcome.report


@pytest.fixture
def shelf(material: list[Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    folder = tmp_path / "docs"
    folder.mkdir()
    for number, source in enumerate(Random(2).sample([s for s in material if len(s.sentences) > 8], 8)):
        (folder / f"{number}.txt").write_text("\n\n".join(source.sentences), encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.requirement("X-01", "X-03")
async def test_nor_from_a_model_behind_http(shelf: Path, material: list[Source], tmp_path: Path) -> None:
    elsewhere = [sentence for source in material[:5] for sentence in source.sentences]
    liar = Liar(elsewhere)
    async with run_with({"Report": liar, "Picks": picks_all}, tmp_path, words=1500) as report:
        assert len(liar.false) >= 5
        assert [text for text in liar.false if text in published(report)] == []
        assert report.claims


FORMLESS: list[object] = [
    "The lake is 45 metres deep.",
    {"sentences": "The lake is 45 metres deep."},
    {"title": "It is 45", "sentences": [{"text": "The lake is 45 metres deep."}]},
    {"title": "It is 45", "sentences": [{"section": "X", "claims": ["C1"], "text": "The lake is 45 metres deep."}]},
    {"title": "It is 45", "sentences": [{"section": "X", "claims": [999], "text": "The lake is 45 metres deep."}]},
    {"title": "It is 45", "sections": "The lake is 45 metres deep."},
    {"title": "It is 45", "sections": [{"role": "section", "title": "45", "text": "The lake is 45 metres deep."}]},
    {"title": "It is 45", "sections": [{"role": "section", "title": "X", "text": "The lake is 45 metres deep. [999]"}]},
    {"title": "It is 45", "sections": [{"role": "abstract", "title": "X", "text": "The lake is 45 metres deep. [1]"}],
     "answers": [{"claims": [1], "text": "45 metres"}]},
    {"title": "It is 45", "sentences": [{"section": "X", "claims": [], "text": "The lake is 45 metres deep."}],
     "answers": [{"claims": [1], "text": "45 metres"}], "notes": ["It is 45 metres deep."]},
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.requirement("X-01")
async def test_a_model_that_ignores_the_form_publishes_nothing_of_its_own(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    (tmp_path / "docs").mkdir()
    for number, document in enumerate(LAKE):
        (tmp_path / "docs" / f"{number}.txt").write_text(document.text, encoding="utf-8")
    told = cycle(FORMLESS)
    for _ in range(4):
        forms = dict.fromkeys(("Report", "Draft", "Edited"), lambda prompt: next(told))
        async with run_with(forms, tmp_path) as report:
            assert published(report)
            assert "45" not in json.dumps([report.title, *published(report), *(a.text for a in report.answers)])


# Everything a writer could put somewhere ---------------------------------------------------------------


FALSE = "45"
FRAMES = (
    "No source gave a figure, but it is 45%.",
    "No source gave a figure, but it is falling fast.",
    "The sources agree that inflation ruined the fishermen.",
    "Of 45% of the lake nothing is known.",
    "As Professor Ilse Brandt found, no source answers this.",
    "Lake Marrow is shrinking.",
    "Research shows that the water is poisonous.",
    "45 sources were read, and the lake is dry.",
)


def spoiling(**parts: Any) -> Callable[..., Any]:
    """A writer that adds to a sound draft: title, section titles, frames, answers."""

    async def write(real: Any, request: WriteRequest) -> Draft:
        draft: Draft = await real(request)
        first = next(claim for claim in request.claims if claim.verdict is Verdict.SUPPORTED)
        own = DraftSentence(text=first.text, claims=(first.id,))
        frames = tuple(DraftSentence(text=text) for text in parts.get("frames", ()))
        added = [
            DraftSection(title=parts.get("heading", "Findings"), role=role, sentences=(own, *frames))
            for role in ("abstract", "body", "conclusion")
        ]
        answers = [DraftAnswer(text=text, claims=(first.id,)) for text in parts.get("answers", ())]
        answers += [DraftAnswer(text=first.text.split(".")[0][:40].rsplit(" ", 1)[0], claims=(first.id,), about=about)
                    for about in parts.get("about", ())]  # fmt: skip
        return draft.model_copy(
            update={
                "title": parts.get("title", draft.title),
                "sections": (*draft.sections, *added),
                "answers": tuple(answers),
            }
        )

    return write


@pytest.mark.slow
@pytest.mark.requirement("X-01", "S-10")
async def test_no_place_of_a_report_takes_a_fact_without_a_source(lab: Make) -> None:
    spoilt = spoiling(
        frames=FRAMES,
        title="Lake Marrow holds 45 monsters",
        heading="Ilse Brandt drained 45% of it",
        answers=("45 metres", "Ilse Brandt"),
        about=("drained by Ilse Brandt in 1945",),
    )
    here = lab(write=spoilt, judge=believes)
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    shown = [report.title, *(section.title for section in report.sections), *published(report)]
    shown += [f"{answer.text} {answer.about}" for answer in report.answers]
    assert [text for text in shown if "45" in text or "Brandt" in text] == []
    assert [text for text in FRAMES if text in shown] == []
    assert report.status == "complete"


# before and whatever any model says --------------------------------------------------------------

TRUE = (
    "Lake Marrow covered 412 square kilometres in 2019.",
    "Lake Marrow shrank because a long drought dried up the river Tamsel.",
    "The survey office did not detect any leak in the bed of Lake Marrow.",
    "The ferry on Lake Marrow runs from May to October and carries 60 passengers.",
)
WRONG = {
    "number": ("Lake Marrow covered 421 square kilometres in 2019.", 0),
    "number in words": ("Lake Marrow covered four hundred square kilometres in 2019.", 0),
    "magnitude": ("Lake Marrow covered 412 million square kilometres in 2019.", 0),
    "unit": ("Lake Marrow covered 412 square miles in 2019.", 0),
    "year": ("Lake Marrow covered 412 square kilometres in 2018.", 0),
    "month": ("The ferry on Lake Marrow runs from March to October and carries 60 passengers.", 3),
    "months exchanged": ("The ferry on Lake Marrow runs from October to May and carries 60 passengers.", 3),
    "name": ("Lake Marrow shrank because a long drought dried up the river Ostrey.", 1),
    "name at the beginning": ("Tamsel shrank because a long drought dried up the river Marrow.", 1),
    "denial left out": ("The survey office did detect a leak in the bed of Lake Marrow.", 2),
    "denial put in": ("Lake Marrow never shrank because a long drought dried up the river Tamsel.", 1),
    "opposite": ("Lake Marrow grew because a long drought dried up the river Tamsel.", 1),
}


@pytest.mark.slow
@pytest.mark.requirement("X-03", "X-02", "W-09")
async def test_a_judge_who_believes_everything_verifies_no_wrong_claim(lab: Make) -> None:
    async def claims(real: Any, plan: Plan, evidence: Sequence[Evidence]) -> ClaimExtraction:
        own = []
        for text, about in WRONG.values():
            findings = tuple(item.finding.id for item in evidence if TRUE[about] in item.finding.span.quote)
            own.append(DraftClaim(wordings=(text,), findings=findings, questions=("Q1",), relevance=1.0))
        return ClaimExtraction(claims=(*own, *(await real(plan, evidence)).claims))

    here = lab(read=reads_sentences, extract_claims=claims, judge=believes)
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    verdicts = {claim.text: claim.verdict for claim in report.claims}
    assert {name for name, (text, _) in WRONG.items() if verdicts[text] == "supported"} == set()
    assert not published(report) & {text for text, _ in WRONG.values()}


@pytest.mark.requirement("X-03", "S-10")
async def test_nor_publishes_a_wrong_sentence(lab: Make) -> None:
    async def write(real: Any, request: WriteRequest) -> Draft:
        by_text = {claim.text: claim.id for claim in request.claims}
        sentences = [DraftSentence(text=text, claims=(by_text[TRUE[about]],)) for text, about in WRONG.values()]
        section = DraftSection(title=request.plan.sections[0], sentences=tuple(sentences))
        return Draft(title=request.plan.goal, sections=(section,))

    here = lab(read=reads_sentences, extract_claims=claims_all, judge=believes, write=write)
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    assert not published(report) & {text for text, _ in WRONG.values()}
    assert set(TRUE) <= published(report), "each stands in the claim's own words instead"


async def reads_sentences(real: object, request: ReadRequest) -> list[Quote]:
    return [
        Quote(passage=at, text=text, relevance=1.0)
        for at, passage in enumerate(request.passages)
        for text in TRUE
        if text in passage.text
    ]
