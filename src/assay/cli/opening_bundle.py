"""`assay open FILE`: a bundle checked, then shown in the web UI, to be looked at and nothing else."""

import asyncio
import webbrowser
from pathlib import Path

import typer
from pydantic import ValidationError

from assay.cli.ending import heeded
from assay.cli.lines import one_line
from assay.cli.screen import tell
from assay.cli.verifying import verified
from assay.errors import EvidenceError
from assay.export.evidence_reading import Bundle, opened
from assay.export.evidence_signing import fingerprint
from assay.model.report import ReportData
from assay.model.source import Document


def open_bundle(path: Path, *, port: int, browser: bool) -> None:
    found = verified(path)
    if found.refused:
        raise EvidenceError(
            f"{path} is not what was made: {one_line(found.reason)}", help=f"See all of it with: assay verify {path}"
        )
    if found.manifest is not None:
        signed = found.manifest.signed
        tell(f"Checked: digest {found.manifest.digest[:16]}…, {_signed(signed.key if signed else None)}.")
    report, documents = read_bundle(path)
    asyncio.run(_shown(report, documents, port=port, browser=browser))


def read_bundle(path: Path) -> tuple[ReportData, list[Document]]:
    with opened(path) as bundle:
        return bundle.report(), _documents(bundle)


def _signed(key: str | None) -> str:
    return f"signed by {fingerprint(key)}" if key else "not signed"


def _documents(bundle: Bundle) -> list[Document]:
    documents = []
    for record in bundle.sources():
        facts = record.model_dump(exclude={"document", "characters"})
        try:
            documents.append(
                Document.model_validate({**facts, "hash": record.document, "text": bundle.snapshot(record.document)})
            )
        except ValidationError as error:
            raise EvidenceError(f"sources.json does not say what {record.document[:12]} is") from error
    return documents


async def _shown(report: ReportData, documents: list[Document], *, port: int, browser: bool) -> None:
    from assay.server.reading_room import open_reading_room

    stopping = asyncio.Event()
    with heeded(stopping.set, stopping.set):
        async with open_reading_room(report, documents, port) as address:
            typer.echo(address)
            tell("To be looked at alone: nothing can be asked or changed there. Ctrl-C ends it.")
            if browser:
                await asyncio.to_thread(webbrowser.open, address)
            await stopping.wait()
    tell("Closed; nothing of it is left on this machine but the file.")
