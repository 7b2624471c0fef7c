"""`assay verify FILE`: everything in a bundle of evidence checked again, and told as a table.

Needs the file and nothing else: no settings, no data directory, no network, no model.
"""

import json as jsonlib
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import typer

from assay.cli.lines import one_line
from assay.errors import EvidenceError
from assay.export.evidence import Manifest
from assay.export.evidence_reading import Bundle, opened
from assay.export.evidence_signing import fingerprint, is_good, wanted
from assay.model.report import ReportData
from assay.trust.recheck import recheck

State = Literal["ok", "FAILED", "note", "-"]  # -: not looked at, since what comes before has failed
SHOWN = 20  # problems of one row that are listed
ROWS = (
    "zip", "hashes", "manifest", "signature", "report", "spans", "claims", "statements", "figures", "citations",
    "marks", "frames", "totals", "renderings",
)  # fmt: skip
MEANS = {
    "zip": "members, laid out as they must be",
    "hashes": "members that are what the manifest says",
    "manifest": "digest over the manifest",
    "signature": "signature under the digest",
    "report": "snapshots, each named by the report and by its own hash",
    "spans": "passages, verbatim at their place in a snapshot",
    "claims": "claims, each with its passages",
    "statements": "statements, each on supported claims",
    "figures": "statements whose figures stand in their passages",
    "citations": "statements that cite what they rest on",
    "marks": "marks that the independent sources bear out",
    "frames": "headings and sentences that only speak of the research",
    "totals": "totals of the report",
    "renderings": "copies for people",
}


class Row(NamedTuple):
    name: str
    state: State
    checked: int = 0
    problems: tuple[str, ...] = ()
    note: str = ""


class Verification(NamedTuple):
    rows: list[Row]
    manifest: Manifest | None = None

    @property
    def refused(self) -> bool:
        return any(row.state == "FAILED" for row in self.rows)

    @property
    def reason(self) -> str:
        """The first thing that is wrong."""
        return next((problem for row in self.rows for problem in row.problems if row.state == "FAILED"), "")


def verify(path: Path, *, key: str | None, json: bool) -> None:
    signer = wanted(key) if key is not None else None
    found = verified(path, signer)
    typer.echo(jsonlib.dumps(_plain(path, found), indent=2) if json else "\n".join(_table(path, found)))
    if found.refused:
        raise typer.Exit(1)


def verified(path: Path, signer: str | None = None) -> Verification:
    """`signer` is the fingerprint of who must have signed it. PathError where there is no such file."""
    rows: dict[str, Row] = {}
    manifest: Manifest | None = None
    try:
        with opened(path) as bundle:
            manifest = bundle.manifest
            for row in _sealed(bundle, signer):
                rows[row.name] = row
            if all(row.state != "FAILED" for row in rows.values()):
                for row in _held(bundle):
                    rows[row.name] = row
    except EvidenceError as error:  # what cannot even be opened, or read
        name = str(error.context.get("row") or ROWS[len(rows)])
        rows[name] = Row(name, "FAILED", 0, (error.message,))
    return Verification([rows.get(name, Row(name, "-")) for name in ROWS], manifest)


def _sealed(bundle: Bundle, signer: str | None) -> Iterator[Row]:
    """Whether it is what was written; each row before the next, so that a fault ends where it is."""
    members = len(bundle.names)
    yield _row("zip", members, bundle.layout())
    yield _row("hashes", members - 1, bundle.hashes())
    yield _row("manifest", 1, bundle.seal())
    yield _signature(bundle.manifest, signer)


def _signature(manifest: Manifest, signer: str | None) -> Row:
    signed = manifest.signed
    if signed is None:
        missing = ("nobody has signed it",) if signer else ()
        return Row("signature", "FAILED" if signer else "note", 0, missing, "none: nobody vouches for it")
    who = fingerprint(signed.key)
    if not is_good(signed, manifest.digest):
        return Row("signature", "FAILED", 1, (f"the signature of {who} is not under this digest",))
    if signer and who != signer:
        return Row("signature", "FAILED", 1, (f"{who} has signed it, and not {signer}",))
    return Row("signature", "ok", 1, note=f"{who}{'' if signer else ', who says so themselves (see --key)'}")


def _held(bundle: Bundle) -> Iterator[Row]:
    """Whether the report is what its snapshots say."""
    report = bundle.report()
    yield _row("report", sum(name.startswith("snapshots/") for name in bundle.names), _whole(bundle, report))
    for check in recheck(report, bundle.snapshot):
        yield _row(check.name, check.checked, check.problems)
    if differing := bundle.rendered(report):
        made = f"made by Assay {bundle.manifest.assay}; {version('assay')} would write them in another way"
        yield Row("renderings", "note", 2, note=f"{' and '.join(differing)} were {made}")
    else:
        yield Row("renderings", "ok", 2)


def _whole(bundle: Bundle, report: ReportData) -> list[str]:
    wrong = bundle.agreement(report)
    for record in bundle.sources():
        with suppress(EvidenceError):  # that it is missing is told already
            if len(bundle.snapshot(record.document)) != record.characters:
                wrong.append(f"sources.json gives another length for {record.document[:12]}")
    return wrong


def _row(name: str, checked: int, problems: "list[str] | tuple[str, ...]") -> Row:
    return Row(name, "FAILED" if problems else "ok", checked, tuple(problems))


# -- telling ----------------------------------------------------------------------------------------------


def _table(path: Path, found: Verification) -> Iterator[str]:
    for row in found.rows:
        count = f"{row.checked:,}" if row.state != "-" else ""
        yield f"{row.state:6}  {row.name:10}  {count:>6}  {one_line(row.note) or MEANS[row.name]}"
        yield from (f"{'':8}{one_line(problem)}" for problem in row.problems[:SHOWN])
        if more := len(row.problems) - SHOWN:
            yield from [f"{'':8}and {more:,} more"] * (more > 0)
    yield ""
    if found.refused:
        yield f"Refused: {path} is not what was made: {one_line(found.reason)}"
        return
    manifest = found.manifest
    if manifest is not None:
        yield from (f"{label:9} {one_line(text)}" for label, text in _about(manifest))
    yield f"{path} holds."


def _about(manifest: Manifest) -> Iterator[tuple[str, str]]:
    spend = manifest.spend
    yield "question", manifest.question
    yield "made", f"{manifest.finished}, thread {manifest.thread}, run {manifest.run}, Assay {manifest.assay}"
    yield "settings", manifest.settings
    yield "spent", f"${spend.usd:.4f}, {spend.tokens:,} tokens, {spend.requests:,} requests"
    yield "digest", manifest.digest


def _plain(path: Path, found: Verification) -> dict[str, Any]:
    manifest = found.manifest
    about = manifest.plain() if manifest else None
    if about and manifest and manifest.signed:
        about["fingerprint"] = fingerprint(manifest.signed.key)
    return {
        "file": str(path), "ok": not found.refused, "reason": found.reason or None,
        "checks": [row._asdict() for row in found.rows], "manifest": about,
    }  # fmt: skip
