"""`openassay verify FILE`: everything in a bundle of evidence checked again, and told as a table.

Needs the file and nothing else: no settings, no data directory, no network, no model.
"""

import asyncio
import json as jsonlib
import sys
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import typer
from pydantic import ValidationError

from openassay.bootstrap import ServerResources, open_engine, open_pages, open_server_resources
from openassay.cli import threads
from openassay.cli.research import check_place, load_report, write_report
from openassay.cli.runtime import handle_signals
from openassay.cli.screen import print_message, to_one_line, wrap_line
from openassay.engine.watch import PassageCheck, RereadResult, SourceCheck, from_page
from openassay.engine.watch import check_sources as watched
from openassay.errors import EvidenceError, NotFoundError, PathError, ReadError, UsageError
from openassay.export import (
    FORMATS,
    ZIP,
    ExportFormat,
    get_file_format,
    get_format,
    make_write_error,
    open_atomically,
    to_file_stem,
)
from openassay.export.evidence import (
    EvidenceBundle,
    Manifest,
    Signer,
    build_members,
    compute_fingerprint,
    is_valid_signature,
    list_document_hashes,
    load_signer,
    open_bundle,
    pack_members,
    resolve_fingerprint,
)
from openassay.export.report import Report
from openassay.models.evidence import Document
from openassay.models.report import ReportData, SourceCard
from openassay.models.thread import Run
from openassay.models.user import SCHEME
from openassay.protocols import PageReader
from openassay.server.redact import redact_report
from openassay.settings import Settings, load
from openassay.storage.cache import NullCache
from openassay.storage.index_store import make_private_folder
from openassay.text.redaction import Redactor, build_redactor
from openassay.text.words import pluralize
from openassay.verification.recheck import recheck_report

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


class VerificationRow(NamedTuple):
    name: str
    state: State
    checked: int = 0
    problems: tuple[str, ...] = ()
    note: str = ""


class Verification(NamedTuple):
    rows: list[VerificationRow]
    manifest: Manifest | None = None

    @property
    def refused(self) -> bool:
        return any(row.state == "FAILED" for row in self.rows)

    @property
    def reason(self) -> str:
        """The first thing that is wrong."""
        return next((problem for row in self.rows for problem in row.problems if row.state == "FAILED"), "")


def show_verification(path: Path, *, key: str | None, json: bool) -> None:
    signer = resolve_fingerprint(key) if key is not None else None
    found = verify_bundle(path, signer)
    typer.echo(
        jsonlib.dumps(_verification_to_dict(path, found), indent=2)
        if json
        else "\n".join(_format_verification(path, found))
    )
    if found.refused:
        raise typer.Exit(1)


def verify_bundle(path: Path, signer: str | None = None) -> Verification:
    """`signer` is the fingerprint of who must have signed it. PathError where there is no such file."""
    rows: dict[str, VerificationRow] = {}
    manifest: Manifest | None = None
    try:
        with open_bundle(path) as bundle:
            manifest = bundle.manifest
            for row in _check_seal(bundle, signer):
                rows[row.name] = row
            if all(row.state != "FAILED" for row in rows.values()):
                for row in _check_report(bundle):
                    rows[row.name] = row
    except EvidenceError as error:  # what cannot even be opened, or read
        name = str(error.context.get("row") or ROWS[len(rows)])
        rows[name] = VerificationRow(name, "FAILED", 0, (error.message,))
    return Verification([rows.get(name, VerificationRow(name, "-")) for name in ROWS], manifest)


def _check_seal(bundle: EvidenceBundle, signer: str | None) -> Iterator[VerificationRow]:
    """Whether it is what was written; each row before the next, so that a fault ends where it is."""
    members = len(bundle.names)
    yield _make_row("zip", members, bundle.check_layout())
    yield _make_row("hashes", members - 1, bundle.check_hashes())
    yield _make_row("manifest", 1, bundle.check_digest())
    yield _check_signature(bundle.manifest, signer)


def _check_signature(manifest: Manifest, signer: str | None) -> VerificationRow:
    signed = manifest.signature
    if signed is None:
        missing = ("nobody has signed it",) if signer else ()
        return VerificationRow("signature", "FAILED" if signer else "note", 0, missing, "none: nobody vouches for it")
    who = compute_fingerprint(signed.key)
    if not is_valid_signature(signed, manifest.digest):
        return VerificationRow("signature", "FAILED", 1, (f"the signature of {who} is not under this digest",))
    if signer and who != signer:
        return VerificationRow("signature", "FAILED", 1, (f"{who} has signed it, and not {signer}",))
    return VerificationRow(
        "signature", "ok", 1, note=f"{who}{'' if signer else ', who says so themselves (see --key)'}"
    )


def _check_report(bundle: EvidenceBundle) -> Iterator[VerificationRow]:
    """Whether the report is what its snapshots say."""
    report = bundle.read_report()
    yield _make_row(
        "report", sum(name.startswith("snapshots/") for name in bundle.names), _find_mismatches(bundle, report)
    )
    for check in recheck_report(report, bundle.read_snapshot):
        yield _make_row(check.name, check.checked, check.problems)
    if differing := bundle.find_stale_copies(report):
        made = f"made by OpenAssay {bundle.manifest.openassay}; {version('openassay')} would write them in another way"
        yield VerificationRow("renderings", "note", 2, note=f"{' and '.join(differing)} were {made}")
    else:
        yield VerificationRow("renderings", "ok", 2)


def _find_mismatches(bundle: EvidenceBundle, report: ReportData) -> list[str]:
    wrong = bundle.check_agreement(report)
    for record in bundle.read_sources():
        with suppress(EvidenceError):  # that it is missing is told already
            if len(bundle.read_snapshot(record.document)) != record.characters:
                wrong.append(f"sources.json gives another length for {record.document[:12]}")
    return wrong


def _make_row(name: str, checked: int, problems: "list[str] | tuple[str, ...]") -> VerificationRow:
    return VerificationRow(name, "FAILED" if problems else "ok", checked, tuple(problems))


# -- telling ----------------------------------------------------------------------------------------------


def _format_verification(path: Path, found: Verification) -> Iterator[str]:
    for row in found.rows:
        count = f"{row.checked:,}" if row.state != "-" else ""
        yield f"{row.state:6}  {row.name:10}  {count:>6}  {to_one_line(row.note) or MEANS[row.name]}"
        yield from (f"{'':8}{to_one_line(problem)}" for problem in row.problems[:SHOWN])
        if more := len(row.problems) - SHOWN:
            yield from [f"{'':8}and {more:,} more"] * (more > 0)
    yield ""
    if found.refused:
        yield f"Refused: {path} is not what was made: {to_one_line(found.reason)}"
        return
    manifest = found.manifest
    if manifest is not None:
        yield from (f"{label:9} {to_one_line(text)}" for label, text in _describe_manifest(manifest))
    yield f"{path} holds."


def _describe_manifest(manifest: Manifest) -> Iterator[tuple[str, str]]:
    spend = manifest.spend
    yield "question", manifest.question
    yield "made", f"{manifest.finished}, thread {manifest.thread}, run {manifest.run}, OpenAssay {manifest.openassay}"
    yield "settings", manifest.settings
    yield "spent", f"${spend.usd:.4f}, {spend.tokens:,} tokens, {spend.requests:,} requests"
    yield "digest", manifest.digest


def _verification_to_dict(path: Path, found: Verification) -> dict[str, Any]:
    manifest = found.manifest
    about = manifest.plain() if manifest else None
    if about and manifest and manifest.signature:
        about["fingerprint"] = compute_fingerprint(manifest.signature.key)
    return {
        "file": str(path), "ok": not found.refused, "reason": found.reason or None,
        "checks": [row._asdict() for row in found.rows], "manifest": about,
    }  # fmt: skip


# `openassay bundle THREAD`: a report with everything it rests on, in one file that anybody can check.


def create_bundle(thread: str, *, run: str | None, out: Path | None, unsigned: bool) -> None:
    settings = load()
    target = out or Path(f"{thread}.openassay")
    if target.is_dir():
        raise PathError(f"{target} is a folder", help="Name a file in it for --out.")
    files = asyncio.run(
        _collect_files(settings, thread, run, None if unsigned else load_signer(make_private_folder(settings.data_dir)))
    )
    made = _write_and_verify(target, files)
    print_message(f"Bundle written to {target}")
    if made.manifest is not None:
        print_message(f"digest {made.manifest.digest}")
        if made.manifest.signature is not None:
            print_message(f"signed by {compute_fingerprint(made.manifest.signature.key)}")


async def _collect_files(settings: Settings, thread: str, run: str | None, key: Signer | None) -> dict[str, bytes]:
    clean = build_redactor(settings)
    async with open_engine(settings) as engine:
        report = await load_report(engine, thread, run)
        documents = [await engine.document(name) for name in list_document_hashes(report)]
    for document in documents:
        _refuse_secrets(document, clean)
    return await asyncio.to_thread(build_members, _redact_report(report, clean), documents, key)


def _redact_report(report: Report, clean: Redactor) -> Report:
    """Of files on this machine only their names. What sources say stays as it is: it is held against the snapshots."""
    return redact_report(report, clean).model_copy(update={"claims": report.claims})


def _refuse_secrets(document: Document, clean: Redactor) -> None:
    if clean.redact_secrets(document.text) != document.text:
        raise EvidenceError(
            f"the snapshot of {document.title!r} holds a secret of the settings, and would not be itself without it",
            help="Take the source out of the report first: openassay veto THREAD SOURCE.",
        )


def _write_and_verify(path: Path, files: Mapping[str, bytes]) -> Verification:
    """Complete and checked, or not there at all."""
    try:
        with open_atomically(path) as file:
            file.writelines(pack_members(files))
            file.flush()
            made = verify_bundle(Path(file.name))
            if made.refused:
                raise EvidenceError(
                    f"the report does not hold: {made.reason}",
                    help="Whether what is stored was altered says: openassay threads check.",
                )
    except OSError as error:
        raise make_write_error(path, error) from error
    return made


# `openassay export`: which report it is, where it goes, and what is refused.

STDOUT = "-"


def export_report(thread: str, name: str | None, run: str | None, out: str | None, *, force: bool) -> None:
    """What can be refused is refused before anything is read or made."""
    target = None if out in (None, STDOUT) else Path(str(out))
    if name == ZIP:
        _export_zip(thread, run, out, target, force)
        return
    format = _select_format(name, target)
    format.need()
    if target is not None:
        _refuse_target(target, force)
    if out == STDOUT:
        _refuse_bytes(format)
    report = asyncio.run(_load_for_export(thread, run))
    if out == STDOUT:
        _print_report(report, format)
        return
    if target is None:
        target = Path(f"{to_file_stem(report.title)}{format.ending}")
        _refuse_target(target, force)
    write_report(report, format, target)


def _export_zip(thread: str, run: str | None, out: str | None, target: Path | None, force: bool) -> None:
    """As `openassay threads export`."""
    if run is not None or out == STDOUT:
        what = "--run" if run is not None else "--out -"
        raise UsageError(f"{what} is not for zip, which has all of a thread", help="Name a file: --out FILE.zip")
    target = target or Path(f"{thread}.zip")
    _refuse_target(target, force)
    threads.export_thread(thread, target)


def _select_format(name: str | None, target: Path | None) -> ExportFormat:
    if name is not None:
        return get_format(name.lower())
    return FORMATS["md"] if target is None else get_file_format(target)


def _refuse_target(path: Path, force: bool) -> None:
    check_place(path)
    if path.is_file() and not force:
        raise PathError(f"{path} exists", help="Choose another --out, or replace it with --force.")


def _refuse_bytes(format: ExportFormat) -> None:
    if not format.is_text and sys.stdout.isatty():
        raise UsageError(f"{format.name} is nothing a terminal can show", help="Name a file: --out FILE")


def _print_report(report: Report, format: ExportFormat) -> None:
    content = format.write(report)
    for caveat in format.caveats(report):
        print_message(caveat)
    if sys.stdout.isatty():  # which would obey what sources have written
        lines = content.decode().replace("\r\n", "\n").split("\n")
        typer.echo("\n".join(map(to_one_line, lines)), nl=False)
    else:
        typer.echo(content, nl=False)


async def _load_for_export(thread: str, run: str | None) -> Report:
    async with open_engine(load()) as engine:
        report = await load_report(engine, thread, run)
        if damage := await threads.find_damage(engine, thread):
            print_message(f"Careful: {to_one_line(damage)}")
        return report


# `openassay open FILE`: a bundle checked, then shown in the web UI, to be looked at and nothing else.


def show_bundle(path: Path, *, port: int, browser: bool) -> None:
    found = verify_bundle(path)
    if found.refused:
        raise EvidenceError(
            f"{path} is not what was made: {to_one_line(found.reason)}",
            help=f"See all of it with: openassay verify {path}",
        )
    if found.manifest is not None:
        signed = found.manifest.signature
        print_message(
            f"Checked: digest {found.manifest.digest[:16]}…, {_describe_signature(signed.key if signed else None)}."
        )
    report, documents = read_bundle(path)
    asyncio.run(_serve_bundle(report, documents, port=port, browser=browser))


def read_bundle(path: Path) -> tuple[ReportData, list[Document]]:
    with open_bundle(path) as bundle:
        return bundle.read_report(), _load_documents(bundle)


def _describe_signature(key: str | None) -> str:
    return f"signed by {compute_fingerprint(key)}" if key else "not signed"


def _load_documents(bundle: EvidenceBundle) -> list[Document]:
    documents = []
    for record in bundle.read_sources():
        facts = record.model_dump(exclude={"document", "characters"})
        try:
            documents.append(
                Document.model_validate(
                    {**facts, "hash": record.document, "text": bundle.read_snapshot(record.document)}
                )
            )
        except ValidationError as error:
            raise EvidenceError(f"sources.json does not say what {record.document[:12]} is") from error
    return documents


async def _serve_bundle(report: ReportData, documents: list[Document], *, port: int, browser: bool) -> None:
    from openassay.server.bundle_viewer import open_viewer

    stopping = asyncio.Event()
    with handle_signals(stopping.set, stopping.set):
        async with open_viewer(report, documents, port) as address:
            typer.echo(address)
            print_message("To be looked at alone: nothing can be asked or changed there. Ctrl-C ends it.")
            if browser:
                await asyncio.to_thread(webbrowser.open, address)
            await stopping.wait()
    print_message("Closed; nothing of it is left on this machine but the file.")


# `openassay watch THREAD`: whether the sources of a report still say what it quotes.

CHANGED, UNCHECKED = 6, 7  # exit codes
_LABELS = {"stands": "ok", "moved": "ok", "changed": "CHANGED", "vanished": "GONE", "unchecked": "unknown"}
_LONGEST = 300  # characters of a passage that are shown
_WEB = ("http://", "https://")


def show_changes(thread: str, *, json: bool) -> None:
    report, found = asyncio.run(_reread_sources(thread))
    if json:
        typer.echo(jsonlib.dumps(_changes_to_dict(report, found), indent=2, ensure_ascii=False).encode())
    else:
        for line in _format_sources(found):
            typer.echo(wrap_line(line, 9))
    states = {one.state for one in found}
    if states & {"changed", "vanished"}:
        raise typer.Exit(CHANGED)
    if "unchecked" in states:
        raise typer.Exit(UNCHECKED)


async def _reread_sources(thread: str) -> tuple[ReportData, list[SourceCheck]]:
    settings = load()
    async with open_server_resources(settings) as resources, open_pages(settings, NullCache()) as pages:
        await resources.engine.threads.get(thread)
        report = await resources.engine.report(thread)
        run = await resources.engine.threads.run(report.provenance.run)
        rereading = SourceRereader(resources, pages, run, await _find_page_urls(resources, run))
        return report, await watched(report, rereading)


async def _find_page_urls(resources: ServerResources, run: Run) -> set[str]:
    """The pages that were read by us, for this question or before it; of others, a provider has told the text."""
    lineage = cast("list[str]", run.options.get("lineage", ()))
    return {
        str(event.data.get("url"))
        for one in (run.id, *lineage)
        async for event in resources.engine.events(one)
        if (event.kind, event.stage) == ("read", "harvest")
    }


class SourceRereader:
    """Sources as a run reads them: pages through the guarded client, files from the disk, uploads from the store."""

    def __init__(self, resources: ServerResources, pages: PageReader, run: Run, fetched: set[str]) -> None:
        self._resources = resources
        self._pages = pages
        self._docs = cast("list[str]", run.options.get("docs", ()))
        self._fetched = fetched

    async def __call__(self, card: SourceCard) -> RereadResult:
        if card.url.startswith(_WEB):
            if self._resources.engine.settings.offline:
                return RereadResult(reason="offline is set, so no page is fetched")
            return from_page(await self._pages.read(card.url), ours=card.url in self._fetched)
        if card.url.startswith("file:"):
            return await asyncio.to_thread(self._read_file, Path(url2pathname(urlsplit(card.url).path)))
        if card.url.startswith(SCHEME):
            return await asyncio.to_thread(self._read_upload, card.url)
        if card.kind == "demo":
            kept = await self._resources.engine.document(card.document)
            return RereadResult(kept.text, "is demo data, which are a part of OpenAssay and do not change")
        return RereadResult(reason="it has no address that could be asked again")

    def _read_file(self, path: Path) -> RereadResult:
        if not path.parent.is_dir():
            return RereadResult(reason=f"its folder {path.parent} is not there")
        if not path.exists():
            return RereadResult(reason="the file is no longer there", gone=True)
        try:
            return RereadResult(self._resources.sources.reader.read(path).text)
        except ReadError as error:
            return RereadResult(reason=error.message)

    def _read_upload(self, url: str) -> RereadResult:
        """`upload:ID/NAME` is what a report calls it, `upload:OWNER/ID` what the run was given."""
        id, _, name = url.removeprefix(SCHEME).partition("/")
        for given in self._docs:
            if given.startswith(SCHEME) and given.endswith(f"/{id}"):
                try:
                    return self._read_file(self._resources.files.locate(given) / unquote(name))
                except NotFoundError:
                    break
        return RereadResult(reason="the upload was deleted", gone=True)


# -- telling ----------------------------------------------------------------------------------------------


def _format_sources(found: Sequence[SourceCheck]) -> Iterator[str]:
    for one in found:
        reason = f": {to_one_line(one.reason)}" if one.reason else ""
        yield f"{_LABELS[one.state]:7}  {one.source} {to_one_line(one.title)} ({to_one_line(one.url)}){reason}"
        for passage in one.passages:
            if passage.state not in ("stands", "moved"):
                yield from _format_passage(passage)
    states = [passage.state for one in found for passage in one.passages]
    counts = ", ".join(f"{states.count(state)} {state}" for state in _LABELS if state in states)
    yield f"{pluralize(len(states), 'passage')} of {pluralize(len(found), 'source')}: {counts or 'nothing to look at'}"


def _format_passage(passage: PassageCheck) -> Iterator[str]:
    yield f"         {passage.state} {', '.join(passage.claims)}: “{_shorten_quote(passage.quote)}”"
    if passage.now:
        yield (
            f"         now ({passage.likeness:.0%} alike): "
            f"“{_shorten_quote(_mark_changes(passage.quote, passage.now))}”"
        )
    yield from (f"         rests on it: {to_one_line(statement)}" for statement in passage.statements)


def _mark_changes(old: str, new: str) -> str:
    """What is new in brackets: [+added+], [-dropped-]."""
    before, after = old.split(), new.split()
    parts: list[str] = []
    for tag, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            parts += after[start:end]
            continue
        parts += [f"[-{' '.join(before[first:last])}-]"] * (last > first)
        parts += [f"[+{' '.join(after[start:end])}+]"] * (end > start)
    return " ".join(parts)


def _shorten_quote(text: str) -> str:
    line = to_one_line(" ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _changes_to_dict(report: ReportData, found: Sequence[SourceCheck]) -> dict[str, Any]:
    made = report.provenance
    return {"thread": made.thread, "run": made.run, "sources": [one.plain() for one in found]}
