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
from openassay.engine.checks import judge_statement
from openassay.models.evidence import Document, Verdict
from openassay.text.embeddings import CrossEncoder, MiniLM
from openassay.verification.support import FeatureSupportScorer

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
        published=date.fromisoformat(row["date"]),
        fetched=datetime.now(UTC),
    )


def is_supported(rows: Sequence[dict[str, Any]]) -> list[bool]:
    """Whether each statement is found to be supported by its passage, with the embedded judge."""
    embedder = MiniLM()
    found = SimpleNamespace(embedder=embedder, support=FeatureSupportScorer(embedder, CrossEncoder()))
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


MEASURES = {
    "statements": EvalMeasure(
        name="statements",
        about="How many false statements, written to deceive, pass, and how many true ones are refused?",
        needs=(),
        licence="ours",
        whole="340 pairs",
        quick="85 pairs",
        figures=(
            Figure("false, supported", floor=0.18, quick=0.12, less_is_better=True),
            Figure("true, refused", floor=0.9, quick=0.86, less_is_better=True),
            *(
                Figure(f"{kind}: {what}", floor=1.0, less_is_better=True)
                for kind in KINDS
                for what in ("false, supported", "true, refused")
            ),
        ),
        run=_measure,
        notes="Nothing was tuned on these; 120 others by another hand (benchmarks/data/statements/dev.jsonl) may be.",
    )
}
