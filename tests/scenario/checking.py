"""What every report must satisfy, checked twice: by rules of our own, and by the checker kept outside the project."""

import hashlib
import importlib.util
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from openassay.export import Report

CHECKER = Path(__file__).resolve().parents[3] / "shared" / "check" / "check_report.py"


def check_report(report: Report, texts: Mapping[str, str]) -> None:
    """`texts` are the stored snapshots by hash. Where the outside checker is absent, test_outside_check says so."""
    plain = json.loads(report.model_dump_json())
    found = faults(plain, texts)
    assert not found, found
    checker = outside_checker()
    if checker is not None:
        facts, _, wrong = checker.check(plain, texts.__getitem__)
        assert not wrong, wrong
        assert facts == sum(sentence.kind != "frame" for section in report.sections for sentence in section.sentences)


def outside_checker() -> ModuleType | None:
    if not CHECKER.is_file():
        return None
    spec = importlib.util.spec_from_file_location("check_report", CHECKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stored_texts(data_dir: Path) -> dict[str, str]:
    """The snapshots of a data directory, read past all of OpenAssay's code."""
    connection = sqlite3.connect(data_dir / "openassay.sqlite3")
    try:
        return dict(connection.execute("SELECT hash, text FROM documents"))
    finally:
        connection.close()


def faults(report: dict[str, Any], texts: Mapping[str, str]) -> list[str]:
    """X-01 and X-02 by the letter: what is published is bound to verbatim spans of snapshots that are their hash."""
    found = []
    claims = {claim["id"]: claim for claim in report["claims"]}
    cards = {card["id"]: card for card in report["sources"]}
    for claim in claims.values():
        for span in (*claim["spans"], *claim["against"]):
            text = texts[span["document"]]
            if hashlib.sha256(text.encode()).hexdigest() != span["document"]:
                found.append(f"{span['document'][:8]} is not the hash of its text")
            if text[span["start"] : span["end"]] != span["quote"] or not span["quote"].strip():
                found.append(f"{claim['id']} quotes what is not there: {span['quote']!r}")
            if cards[span["source"]]["document"] != span["document"]:
                found.append(f"{claim['id']} names {span['source']} for another document")
    for section in report["sections"]:
        for sentence in section["sentences"]:
            if sentence["kind"] == "fact":
                found += _unbound(sentence, claims)
    covered = report["coverage"]
    if not 0 <= covered["checked"] <= covered["total"]:
        found.append(f"coverage of {covered}")
    supported = sum(claim["verdict"] == "supported" for claim in claims.values())
    if covered["checked"] < supported or covered["total"] < len(claims):
        found.append(f"{covered} leaves claims out: {supported} supported of {len(claims)}")
    return found


def _unbound(sentence: dict[str, Any], claims: Mapping[str, Any]) -> list[str]:
    bound = [claims[name] for name in sentence["claims"]]
    if not bound or not sentence["citations"] or not sentence["mark"]:
        return [f"published without claim, citation or mark: {sentence['text']}"]
    return [f"published though {claim['verdict']}: {sentence['text']}" for claim in bound if not _usable(claim)]


def _usable(claim: dict[str, Any]) -> bool:
    return claim["verdict"] == "supported" and bool(claim["spans"])
