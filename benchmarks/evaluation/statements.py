"""Statements written by hand to deceive a careless checker, judged as MCP's `verify` does, and pairs of documents that
are one voice or two.

The statements were written by editors who had not seen the checks: for each of eight kinds of mistake as many true
ones as false ones, the false ones as close to their passage as the true. `dev` may be looked at, `test` never was.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure, load_rows
from openassay.bootstrap import ServerResources
from openassay.engine.checks import find_candidates, judge_statement
from openassay.fetch.formats import parse_day
from openassay.models.evidence import Document, Judgement, Verdict
from openassay.nodes.verify import ClaimWording, find_dependent, read_contexts, weigh_evidence
from openassay.protocols import SupportScorer
from openassay.reasoning.base import DraftClaim
from openassay.text.embeddings import CrossEncoder, MiniLM
from openassay.verification.sources import assess_credibility, group_by_origin, group_documents
from openassay.verification.support import CrossEncoderScorer

STATEMENTS = Path(__file__).parents[1] / "data" / "statements"
KINDS = ("refuted", "myth", "quoted", "hypothetical", "negated", "quantity", "condition", "roles")
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


def is_supported(rows: Sequence[dict[str, Any]]) -> list[bool]:
    """Whether each statement is found to be supported by its passage, with the embedded judge."""
    embedder = MiniLM()
    found = SimpleNamespace(embedder=embedder, support=CrossEncoderScorer(CrossEncoder()))
    resources = cast(ServerResources, found)

    async def judge_all() -> list[bool]:
        return [
            (await judge_statement(resources, row["statement"], {document.hash: document})).verdict is Verdict.SUPPORTED
            for row in rows
            for document in [make_document(row)]
        ]

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


def count_voices(row: dict[str, Any], support: SupportScorer) -> int:
    """How many independent voices two documents are that both bear a statement out."""
    documents = {one.hash: one for one in (read_document(row["a"]), read_document(row["b"]))}
    spans = [span for one in documents.values() for span in find_candidates(row["statement"], {one.hash: one})[:2]]
    draft = DraftClaim(wordings=(row["statement"],), findings=(), questions=(), relevance=1.0)
    wordings = [ClaimWording("C1", draft, row["statement"], read_contexts(spans, documents))]
    sure = [Judgement(verdict=Verdict.SUPPORTED, score=0.9) for _ in wordings[0].contexts]
    known = {name: assess_credibility(document) for name, document in documents.items()}
    groups = group_documents(documents.values())
    weighed = [
        weigh_evidence(row["statement"], found, one) for found, one in zip(wordings[0].contexts, sure, strict=True)
    ]
    [dependent] = find_dependent([weighed], groups, support)
    return len(group_by_origin(spans, groups, known, dependent))


def _measure_independence(data: Path, quick: bool) -> EvalValues:
    rows = load_rows(INDEPENDENCE / "test.jsonl")[:: 2 if quick else 1]
    support = CrossEncoderScorer(CrossEncoder())
    found = [(row["independent"], count_voices(row, support) == 2) for row in rows]
    return {
        "one voice, taken for two": EvalValue(sum(said and not true for true, said in found), {"of": len(rows)}),
        "two voices, taken for one": EvalValue(sum(true and not said for true, said in found), {"of": len(rows)}),
    }


MEASURES = {
    "independence": EvalMeasure(
        name="independence",
        about="Pairs of documents that bear out one statement: one voice, or two?",
        needs=(),
        licence="ours",
        whole="44 pairs",
        quick="22 pairs",
        figures=(
            Figure("one voice, taken for two", floor=4, quick=4, less_is_better=True, form=".0f"),
            Figure("two voices, taken for one", floor=9, quick=6, less_is_better=True, form=".0f"),
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
            Figure("false, supported", floor=0.45, quick=0.5, less_is_better=True),
            Figure("true, refused", floor=0.33, quick=0.37, less_is_better=True),
            *(
                Figure(f"{kind}: {what}", floor=1.0, less_is_better=True)
                for kind in KINDS
                for what in ("false, supported", "true, refused")
            ),
        ),
        run=_measure,
        notes="Nothing was tuned on these; 120 others by another hand (benchmarks/data/statements/dev.jsonl) may be.",
    ),
}
