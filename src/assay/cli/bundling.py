"""`assay bundle THREAD`: a report with everything it rests on, in one file that anybody can check."""

import asyncio
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from assay.bootstrap import open_engine
from assay.cli.screen import tell
from assay.cli.verifying import Verification, verified
from assay.engine import Engine
from assay.errors import EvidenceError, NotFoundError, PathError
from assay.export.evidence import contents, needed
from assay.export.evidence_signing import Signer, fingerprint, signer
from assay.export.evidence_zip import packed
from assay.export.report import Report
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
        report = await _finished(engine, thread, run)
        documents = [await engine.document(name) for name in needed(report)]
    for document in documents:
        _refuse_secrets(document, clean)
    return await asyncio.to_thread(contents, _shown(report, clean), documents, key)


async def _finished(engine: Engine, thread: str, run: str | None) -> Report:
    """Of a run that is done; where another is still at work, that is said."""
    await engine.threads.get(thread)
    try:
        report = await engine.report(thread, run)
    except NotFoundError as error:
        going = [one.id for one in await engine.threads.runs(thread) if one.active and run in (None, one.id)]
        if going:
            raise NotFoundError(
                f"run {going[-1]} is not finished, so there is nothing to bundle yet",
                help=f"See how it goes: assay follow {thread}",
            ) from error
        raise
    active = [one.id for one in await engine.threads.runs(thread) if one.active]
    if active and run is None:
        tell(f"Run {active[-1]} is not finished: this is the report of run {report.provenance.run}.")
    return report


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
        handle, part = tempfile.mkstemp(dir=path.absolute().parent, prefix=".assay-", suffix=".part")
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with open(handle, "wb") as file:
            file.writelines(packed(files))
            file.flush()
            os.fsync(file.fileno())
        made = verified(Path(part))
        if made.refused:
            raise EvidenceError(
                f"the report does not hold: {made.reason}",
                help="Whether what is stored was altered says: assay threads check.",
            )
        Path(part).chmod(0o666 & ~_umask())
        os.replace(part, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)
    return made


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _unwritable(path: Path, error: OSError) -> PathError:
    return PathError(f"cannot write {path}: {error.strerror}", help="Choose another file with --out.")
