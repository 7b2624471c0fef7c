"""Statements written by hand to deceive a careless checker, judged as MCP's `verify` does, and pairs of documents that
are one voice or two.

The statements were written by editors who had not seen the checks: for each of eight kinds of mistake as many true
ones as false ones, the false ones as close to their passage as the true. `dev` may be looked at, `test` never was.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure, load_rows
from openassay.bootstrap import ServerResources
from openassay.companies.register import LazyCompanyRegister
from openassay.engine.checks import find_candidates, judge_statement
from openassay.fetch.formats import parse_day
from openassay.models.evidence import Document, Judgement, Verdict
from openassay.nodes.verify import ClaimWording, find_dependent, read_contexts, weigh_wordings
from openassay.reasoning.base import DraftClaim, JudgementBatch, Reasoner, VoicePair
from openassay.reasoning.rules import RuleReasoner
from openassay.text.embeddings import CrossEncoder, MiniLM
from openassay.verification.sources import assess_credibility, group_by_origin, group_documents
from openassay.verification.support import CrossEncoderScorer

STATEMENTS = Path(__file__).parents[1] / "data" / "statements"
# How many may be wrong of each kind, false and true: what was measured, and one or two of the 21 or 22 more.
KINDS = {
    "refuted": (0.3, 0.45),
    "myth": (0.2, 0.3),
    "quoted": (0.25, 0.45),
    "hypothetical": (0.35, 0.3),
    "negated": (0.5, 0.35),
    "quantity": (0.7, 0.55),
    "condition": (0.45, 0.3),
    "roles": (0.75, 0.35),
}
QUICK = 4  # of a quick run: every fourth pair


def make_document(row: dict[str, Any]) -> Document:
    text = row["passage"]
    return Document(
        hash=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
        url=row["title"],
        title=row["title"],
        publisher=row.get("publisher"),
        published=date.fromisoformat(row["date"]),
        fetched=datetime.now(UTC),
    )


class RecordedJudge(RuleReasoner):
    """Says of every statement what a capable model has said of it."""

    def __init__(self, verdict: str, resources: ServerResources) -> None:
        super().__init__(resources.embedder, resources.support, LazyCompanyRegister())
        self._judgement = Judgement(verdict=Verdict(verdict), score=0.9)

    async def judge(self, statements: Sequence[tuple[str, Sequence[str]]]) -> JudgementBatch:
        return JudgementBatch(judgements=tuple(self._judgement for _ in statements))


def is_supported(rows: Sequence[dict[str, Any]], recording: Mapping[str, str] | None = None) -> list[bool]:
    """Whether each statement is found to be supported by its passage, with the embedded judge or with a recorded one,
    as MCP's `verify` finds it."""
    found = SimpleNamespace(embedder=MiniLM(), support=CrossEncoderScorer(CrossEncoder()))
    resources = cast(ServerResources, found)

    async def is_one_supported(row: dict[str, Any]) -> bool:
        document = make_document(row)
        judge = RecordedJudge(recording[row["id"]], resources) if recording else None
        judged = await judge_statement(resources, row["statement"], {document.hash: document}, judge)
        return judged.verdict is Verdict.SUPPORTED

    async def judge_all() -> list[bool]:
        return [await is_one_supported(row) for row in rows]

    return asyncio.run(judge_all())


def count_errors(rows: Sequence[dict[str, Any]], said: Sequence[bool]) -> tuple[float, float]:
    """The shares of the false statements that pass and of the true ones that are refused."""
    false = [passed for row, passed in zip(rows, said, strict=True) if not row["supported"]]
    true = [passed for row, passed in zip(rows, said, strict=True) if row["supported"]]
    return sum(false) / len(false), sum(not passed for passed in true) / len(true)


def _measure(data: Path, quick: bool) -> EvalValues:
    rows = load_rows(STATEMENTS / "test.jsonl")[:: QUICK if quick else 1]
    said = is_supported(rows)
    passed, refused = count_errors(rows, said)
    values = {"false, supported": EvalValue(passed), "true, refused": EvalValue(refused)}
    recording = json.loads((STATEMENTS / "test_judged.json").read_text(encoding="utf-8"))
    passed, refused = count_errors(rows, is_supported(rows, recording))
    values |= {"capable judge: false, supported": EvalValue(passed), "capable judge: true, refused": EvalValue(refused)}
    for kind in KINDS if not quick else ():
        own = [(row, one) for row, one in zip(rows, said, strict=True) if row["kind"] == kind]
        passed, refused = count_errors([row for row, _ in own], [one for _, one in own])
        values[f"{kind}: false, supported"] = EvalValue(passed)
        values[f"{kind}: true, refused"] = EvalValue(refused)
    return values


INDEPENDENCE = STATEMENTS.parent / "independence"


def read_document(row: dict[str, Any]) -> Document:
    """A file as it would be read from a folder."""
    return Document(
        hash=hashlib.sha256((row["title"] + row["text"]).encode()).hexdigest(),
        text=row["text"],
        url=row.get("url") or f"file:///{row.get('file', row['title'])}",
        title=row["title"],
        author=row.get("author") or None,
        publisher=row.get("publisher") or None,
        published=parse_day(row.get("date") or ""),
        fetched=datetime.now(UTC),
        kind="document",
    )


async def count_voices(row: dict[str, Any], reasoner: Reasoner) -> int:
    """How many independent voices two documents are that both bear a statement out."""
    documents = {one.hash: one for one in (read_document(row["a"]), read_document(row["b"]))}
    spans = [span for one in documents.values() for span in find_candidates(row["statement"], {one.hash: one})[:2]]
    draft = DraftClaim(wordings=(row["statement"],), findings=(), questions=(), relevance=1.0)
    wordings = [ClaimWording("C1", draft, row["statement"], read_contexts(spans, documents))]
    sure = [Judgement(verdict=Verdict.SUPPORTED, score=0.9) for _ in wordings[0].contexts]
    known = {name: assess_credibility(document) for name, document in documents.items()}
    groups = group_documents(documents.values())
    [dependent] = await find_dependent(wordings, weigh_wordings(wordings, sure), groups, reasoner)
    return len(group_by_origin(spans, groups, known, dependent))


class RecordedVoices(RuleReasoner):
    """Says of every pair what a capable model has said of it."""

    def __init__(self, is_one: bool, embedded: RuleReasoner) -> None:
        self.__dict__.update(vars(embedded))
        self._is_one = is_one

    async def compare_voices(self, pairs: Sequence[VoicePair]) -> Sequence[bool]:
        return [self._is_one for _ in pairs]


def count_all_voices(rows: Sequence[dict[str, Any]], recording: Mapping[str, bool] | None = None) -> list[int]:
    """With the embedded verifier or with a recorded judge. What two documents say of themselves counts in any case."""
    embedded = RuleReasoner(MiniLM(), CrossEncoderScorer(CrossEncoder()), LazyCompanyRegister())

    async def count() -> list[int]:
        judges = [RecordedVoices(recording[row["id"]], embedded) if recording else embedded for row in rows]
        return [await count_voices(row, judge) for row, judge in zip(rows, judges, strict=True)]

    return asyncio.run(count())


def _measure_independence(data: Path, quick: bool) -> EvalValues:
    rows = load_rows(INDEPENDENCE / "test.jsonl")[:: 2 if quick else 1]
    recording = json.loads((INDEPENDENCE / "test_judged.json").read_text(encoding="utf-8"))
    values = {}
    for prefix, recorded in (("", None), ("capable judge: ", recording)):
        found = [
            (row["independent"], said == 2) for row, said in zip(rows, count_all_voices(rows, recorded), strict=True)
        ]
        ones, twos = sum(said and not true for true, said in found), sum(true and not said for true, said in found)
        values[f"{prefix}one voice, taken for two"] = EvalValue(ones, {"of": len(rows)})
        values[f"{prefix}two voices, taken for one"] = EvalValue(twos, {"of": len(rows)})
    return values


MEASURES = {
    "independence": EvalMeasure(
        name="independence",
        about="Pairs of documents that bear out one statement: one voice, or two?",
        needs=(),
        licence="ours",
        whole="44 pairs",
        quick="22 pairs",
        figures=(
            Figure("one voice, taken for two", floor=3, quick=2, less_is_better=True, form=".0f"),
            # On aarch64 it is 8: one pair is so close that the rounding of int8 products decides.
            Figure("two voices, taken for one", floor=9, quick=6, less_is_better=True, form=".0f"),
            Figure("capable judge: one voice, taken for two", floor=0, quick=0, less_is_better=True, form=".0f"),
            Figure("capable judge: two voices, taken for one", floor=2, quick=2, less_is_better=True, form=".0f"),
        ),
        run=_measure_independence,
        notes="Written by editors who had not seen the checks, and never looked at; half of them are two voices.",
    ),
    "statements": EvalMeasure(
        name="statements",
        about="How many false statements, written to deceive, pass, and how many true ones are refused?",
        needs=(),
        licence="ours",
        whole="340 pairs",
        quick="85 pairs",
        figures=(
            Figure("false, supported", floor=0.4, quick=0.5, less_is_better=True),
            Figure("true, refused", floor=0.35, quick=0.37, less_is_better=True),
            Figure("capable judge: false, supported", floor=0.01, quick=0.01, less_is_better=True),
            Figure("capable judge: true, refused", floor=0.02, quick=0.03, less_is_better=True),
            *(
                Figure(f"{kind}: {what}", floor=floor, less_is_better=True)
                for kind, floors in KINDS.items()
                for what, floor in zip(("false, supported", "true, refused"), floors, strict=True)
            ),
        ),
        run=_measure,
        notes="Nothing was tuned on these; 120 others by another hand (benchmarks/data/statements/dev.jsonl) may be.",
    ),
}
