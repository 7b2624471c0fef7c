"""`assay bundle THREAD`: a report with everything it rests on, in one file that anybody can check."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from assay.bootstrap import open_engine
from assay.cli.finished import finished
from assay.cli.screen import tell
from assay.cli.verifying import Verification, verified
from assay.errors import EvidenceError, PathError
from assay.export.bundle import unwritable
from assay.export.evidence import contents, needed
from assay.export.evidence_signing import Signer, fingerprint, signer
from assay.export.evidence_zip import packed
from assay.export.report import Report
from assay.export.whole import whole
from assay.model.source import Document
from assay.server.shown import shown_report
from assay.settings import Settings, load
from assay.storage.shelf import private
from assay.text.redaction import Redaction, redaction


def bundle(thread: str, *, run: str | None, out: Path | None, unsigned: bool) -> None:
    settings = load()
    target = out or Path(f"{thread}.assay")
    if target.is_dir():
        raise PathError(f"{target} is a folder", help="Name a file in it for --out.")
    files = asyncio.run(_gathered(settings, thread, run, None if unsigned else signer(private(settings.data_dir))))
    made = _write(target, files)
    tell(f"Bundle written to {target}")
    if made.manifest is not None:
        tell(f"digest {made.manifest.digest}")
        if made.manifest.signed is not None:
            tell(f"signed by {fingerprint(made.manifest.signed.key)}")


async def _gathered(settings: Settings, thread: str, run: str | None, key: Signer | None) -> dict[str, bytes]:
    clean = redaction(settings)
    async with open_engine(settings) as engine:
        report = await finished(engine, thread, run)
        documents = [await engine.document(name) for name in needed(report)]
    for document in documents:
        _refuse_secrets(document, clean)
    return await asyncio.to_thread(contents, _shown(report, clean), documents, key)


def _shown(report: Report, clean: Redaction) -> Report:
    """Of files on this machine only their names. What sources say stays as it is: it is held against the snapshots."""
    return shown_report(report, clean).model_copy(update={"claims": report.claims})


def _refuse_secrets(document: Document, clean: Redaction) -> None:
    if clean.secrets(document.text) != document.text:
        raise EvidenceError(
            f"the snapshot of {document.title!r} holds a secret of the settings, and would not be itself without it",
            help="Take the source out of the report first: assay veto THREAD SOURCE.",
        )


def _write(path: Path, files: Mapping[str, bytes]) -> Verification:
    """Complete and checked, or not there at all."""
    try:
        with whole(path) as file:
            file.writelines(packed(files))
            file.flush()
            made = verified(Path(file.name))
            if made.refused:
                raise EvidenceError(
                    f"the report does not hold: {made.reason}",
                    help="Whether what is stored was altered says: assay threads check.",
                )
    except OSError as error:
        raise unwritable(path, error) from error
    return made
