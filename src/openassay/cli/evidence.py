"""`openassay verify` and `openassay threads bundle`: a report with all it rests on, in a file anybody can check.

Checking needs the file and nothing else: no settings, no data directory, no network, no model.
"""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import typer
from pydantic import ValidationError

from openassay.cli.export import load_report
from openassay.cli.options import RunId, ThreadId, json_option
from openassay.cli.runtime import find_run, find_thread, handle_signals, run_on_thread
from openassay.cli.screen import print_json, print_message, shorten, to_one_line, wrap_line
from openassay.errors import EvidenceError, NotFoundError, PathError, ReadError, UsageError
from openassay.export import bundles, open_atomically
from openassay.models.evidence import Document
from openassay.models.report import ReportData, SourceCard
from openassay.models.thread import Run
from openassay.models.user import SCHEME
from openassay.protocols import PageReader
from openassay.settings import load
from openassay.text.redaction import build_redactor
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.bootstrap import ServerResources
    from openassay.engine.checks import RereadResult, SourceCheck
    from openassay.engine.engine import Engine


State = Literal["ok", "FAILED", "note", "-"]  # -: not checked, since what comes before has failed
MAX_PROBLEMS = 20  # of one row that are listed
CHECKS = {
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
    "marks": "marks that match the independent sources",
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
    manifest: bundles.Manifest | None = None

    @property
    def refused(self) -> bool:
        return any(row.state == "FAILED" for row in self.rows)

    @property
    def reason(self) -> str:
        """The first thing that is wrong."""
        return next((problem for row in self.rows for problem in row.problems if row.state == "FAILED"), "")


# -- checking -----------------------------------------------------------------------------------------------


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A bundle: FILE.openassay.")],
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="FINGERPRINT", help="Who must have signed it; or a file with the fingerprint."),
    ] = None,
    json: Annotated[bool, json_option("every check, and the manifest,")] = False,
    show: Annotated[bool, typer.Option("--open", help="Then show it in the web UI, to be read only.")] = False,
    port: Annotated[
        int, typer.Option(metavar="N", help="With --open: the port; 0 for any that is free.", min=0, max=65_535)
    ] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="With --open: only print the address.")] = False,
) -> None:
    """Check every hash, passage and figure of a bundle again: offline, without a model, on any machine."""
    if show and json:
        raise UsageError("--json does not go with --open", help="Leave out one of them.")
    signer = bundles.resolve_fingerprint(key) if key is not None else None
    found = verify_bundle(file, signer)
    if show:
        return _show_bundle(file, found, port=port, browser=not no_browser)
    if json:
        manifest = found.manifest
        about = manifest.plain() if manifest else None
        if about and manifest and manifest.signature:
            about["fingerprint"] = bundles.compute_fingerprint(manifest.signature.key)
        checks = [row._asdict() for row in found.rows]
        result = {"file": str(file), "ok": not found.refused, "reason": found.reason or None, "checks": checks}
        print_json({**result, "manifest": about})
    else:
        typer.echo("\n".join(_format_verification(file, found)))
    if found.refused:
        raise typer.Exit(1)
    return None


def verify_bundle(path: Path, signer: str | None = None) -> Verification:
    """Check a bundle; `signer` is the fingerprint of who must have signed it. PathError where there is no file."""
    rows: dict[str, VerificationRow] = {}
    manifest: bundles.Manifest | None = None
    try:
        with bundles.open_bundle(path) as bundle:
            manifest = bundle.manifest
            members = len(bundle.names)
            # Each row before the next, so that a fault ends where it is.
            rows["zip"] = _make_row("zip", members, bundle.check_layout())
            rows["hashes"] = _make_row("hashes", members - 1, bundle.check_hashes())
            rows["manifest"] = _make_row("manifest", 1, bundle.check_digest())
            rows["signature"] = _check_signature(manifest, signer)
            if all(row.state != "FAILED" for row in rows.values()):
                for row in _check_report(bundle):
                    rows[row.name] = row
    except EvidenceError as error:  # what cannot even be opened, or read
        name = str(error.context.get("row") or list(CHECKS)[len(rows)])
        rows[name] = VerificationRow(name, "FAILED", 0, (error.message,))
    return Verification([rows.get(name, VerificationRow(name, "-")) for name in CHECKS], manifest)


def _check_signature(manifest: bundles.Manifest, signer: str | None) -> VerificationRow:
    signed = manifest.signature
    if signed is None:
        missing = ("nobody has signed it",) if signer else ()
        return VerificationRow("signature", "FAILED" if signer else "note", 0, missing, "none: nobody has signed it")
    who = bundles.compute_fingerprint(signed.key)
    if not bundles.is_valid_signature(signed, manifest.digest):
        return _make_row("signature", 1, [f"the signature of {who} is not under this digest"])
    if signer and who != signer:
        return _make_row("signature", 1, [f"{who} has signed it, and not {signer}"])
    return VerificationRow("signature", "ok", 1, note=f"{who}{'' if signer else ', unconfirmed (see --key)'}")


def _check_report(bundle: bundles.EvidenceBundle) -> Iterator[VerificationRow]:
    """Check whether the report is what its snapshots say."""
    from openassay.engine.report_check import recheck_report

    report = bundle.read_report()
    wrong = bundle.check_agreement(report)
    for record in bundle.read_sources():
        with suppress(EvidenceError):  # that it is missing is said already
            if len(bundle.read_snapshot(record.document)) != record.characters:
                wrong.append(f"sources.json gives another length for {record.document[:12]}")
    yield _make_row("report", sum(name.startswith("snapshots/") for name in bundle.names), wrong)
    for check in recheck_report(report, bundle.read_snapshot):
        yield _make_row(check.name, check.checked, check.problems)
    note = ""
    if differing := bundle.find_stale_copies(report):
        made = f"made by OpenAssay {bundle.manifest.openassay}; {version('openassay')} would write them in another way"
        note = f"{' and '.join(differing)} were {made}"
    yield VerificationRow("renderings", "note" if note else "ok", 2, note=note)


def _make_row(name: str, checked: int, problems: Sequence[str]) -> VerificationRow:
    return VerificationRow(name, "FAILED" if problems else "ok", checked, tuple(problems))


def _format_verification(path: Path, found: Verification) -> Iterator[str]:
    for row in found.rows:
        count = f"{row.checked:,}" if row.state != "-" else ""
        yield f"{row.state:6}  {row.name:10}  {count:>6}  {to_one_line(row.note) or CHECKS[row.name]}"
        yield from (f"{'':8}{to_one_line(problem)}" for problem in row.problems[:MAX_PROBLEMS])
        if len(row.problems) > MAX_PROBLEMS:
            yield f"{'':8}and {len(row.problems) - MAX_PROBLEMS:,} more"
    yield ""
    if found.refused:
        yield f"Refused: {path} is damaged or was altered: {to_one_line(found.reason)}"
        return
    if manifest := found.manifest:
        spend, made = manifest.spend, f"thread {manifest.thread}, run {manifest.run}, OpenAssay {manifest.openassay}"
        for label, text in (
            ("question", manifest.question),
            ("made", f"{manifest.finished}, {made}"),
            ("settings", manifest.settings),
            ("spent", f"${spend.usd:.4f}, {spend.tokens:,} tokens, {spend.requests:,} requests"),
            ("digest", manifest.digest),
        ):
            yield f"{label:9} {to_one_line(text)}"
    yield f"{path} is intact."


# -- making -------------------------------------------------------------------------------------------------


def bundle(
    thread: ThreadId,
    run: RunId = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file to write; THREAD.openassay by default.")
    ] = None,
    unsigned: Annotated[
        bool, typer.Option("--unsigned", help="Do not sign it with this data directory's key.")
    ] = False,
) -> None:
    """Write a report with all it rests on to one file, which anybody can check: openassay verify."""
    from openassay.server.bodies import redact_report

    settings = load()
    if out is not None and out.is_dir():
        raise PathError(f"{out} is a folder", help="Name a file in it for --out.")
    clean = build_redactor(settings)

    async def collect(engine: Engine, thread: str) -> tuple[Path, dict[str, bytes]]:
        report = await load_report(engine, thread, await find_run(engine, thread, run))
        documents = [await engine.document(name) for name in bundles.list_document_hashes(report)]
        for document in documents:
            if clean.redact_secrets(document.text) != document.text:
                raise EvidenceError(
                    f"the snapshot of {document.title!r} holds a secret of the settings, "
                    "and would not be itself without it",
                    help="Take the source out of the report first: openassay threads veto THREAD SOURCE.",
                )
        # Of files on this machine only their names. What sources say stays: it is compared with the snapshots.
        shown = redact_report(report, clean).model_copy(update={"claims": report.claims})
        key = None if unsigned else bundles.load_key(settings.data_dir)
        members = await asyncio.to_thread(bundles.build_members, shown, documents, key)
        return out or Path(f"{thread}.openassay"), members

    target, members = run_on_thread(thread, collect)
    with open_atomically(target) as file:  # complete and checked, or not there at all
        file.writelines(bundles.pack_members(members))
        file.flush()
        made = verify_bundle(Path(file.name))
        if made.refused:
            raise EvidenceError(
                f"the report fails its own checks: {made.reason}",
                help="See whether what is stored was altered: openassay admin check.",
            )
    print_message(f"Bundle written to {target}")
    if made.manifest is not None:
        print_message(f"digest {made.manifest.digest}")
        if made.manifest.signature is not None:
            print_message(f"signed by {bundles.compute_fingerprint(made.manifest.signature.key)}")


# -- showing ------------------------------------------------------------------------------------------------


def _show_bundle(path: Path, found: Verification, *, port: int, browser: bool) -> None:
    """Show a bundle that holds in the web UI of this machine."""
    if found.refused:
        raise EvidenceError(
            f"{path} is damaged or was altered: {to_one_line(found.reason)}",
            help=f"See all of it with: openassay verify {path}",
        )
    if found.manifest is not None:
        signed = found.manifest.signature
        signature = f"signed by {bundles.compute_fingerprint(signed.key)}" if signed else "not signed"
        print_message(f"Checked: digest {found.manifest.digest[:16]}…, {signature}.")
    report, documents = read_bundle(path)

    async def serve() -> None:
        from openassay.server.app import open_viewer

        stopping = asyncio.Event()
        with handle_signals(stopping.set, stopping.set):
            async with open_viewer(report, documents, port) as address:
                typer.echo(address)
                print_message("It can be read, and nothing asked or changed. Ctrl-C ends it.")
                if browser:
                    await asyncio.to_thread(webbrowser.open, address)
                await stopping.wait()
        print_message("Closed; nothing of it is left on this machine but the file.")

    asyncio.run(serve())


def read_bundle(path: Path) -> tuple[ReportData, list[Document]]:
    with bundles.open_bundle(path) as bundle:
        documents = []
        for record in bundle.read_sources():
            facts: dict[str, Any] = record.model_dump(exclude={"document", "characters"})
            text = bundle.read_snapshot(record.document)
            try:
                documents.append(Document.model_validate({**facts, "hash": record.document, "text": text}))
            except ValidationError as error:
                raise EvidenceError(f"sources.json does not say what {record.document[:12]} is") from error
        return bundle.read_report(), documents


# `openassay threads watch`: whether the sources of a report still say what it quotes.

CHANGED, UNCHECKED = 6, 7  # exit codes
MAX_QUOTE = 300  # characters of a passage that are shown
_LABELS = {"stands": "ok", "moved": "ok", "changed": "CHANGED", "vanished": "GONE", "unchecked": "unknown"}


def watch(thread: ThreadId, json: Annotated[bool, json_option("every source and its passages")] = False) -> None:
    """Read a report's sources again: which statements rest on passages that changed or vanished?"""
    report, found = asyncio.run(_reread_sources(thread))
    if json:
        made = report.provenance
        print_json({"thread": made.thread, "run": made.run, "sources": [one.plain() for one in found]})
    else:
        for source in found:
            reason = f": {to_one_line(source.reason)}" if source.reason else ""
            head = f"{source.source} {to_one_line(source.title)} ({to_one_line(source.url)}){reason}"
            lines = [f"{_LABELS[source.state]:7}  {head}"]
            for passage in source.passages:
                if passage.state in ("stands", "moved"):
                    continue
                claims = ", ".join(passage.claims)
                lines.append(f"         {passage.state} {claims}: “{shorten(passage.quote, MAX_QUOTE)}”")
                if passage.now:
                    changes = shorten(_mark_changes(passage.quote, passage.now), MAX_QUOTE)
                    lines.append(f"         now ({passage.likeness:.0%} alike): “{changes}”")
                lines += [f"         rests on it: {to_one_line(statement)}" for statement in passage.statements]
            for line in lines:
                typer.echo(wrap_line(line, 9))
        passages = [passage.state for one in found for passage in one.passages]
        counts = ", ".join(f"{passages.count(state)} {state}" for state in _LABELS if state in passages)
        size = f"{pluralize(len(passages), 'passage')} of {pluralize(len(found), 'source')}"
        typer.echo(wrap_line(f"{size}: {counts or 'nothing to look at'}", 9))
    states = {one.state for one in found}
    if states & {"changed", "vanished"}:
        raise typer.Exit(CHANGED)
    if "unchecked" in states:
        raise typer.Exit(UNCHECKED)


async def _reread_sources(thread: str) -> tuple[ReportData, list[SourceCheck]]:
    from openassay.bootstrap import open_pages, open_server_resources
    from openassay.engine.checks import check_sources

    settings = load()
    async with open_server_resources(settings) as resources, open_pages(settings) as pages:
        engine = resources.engine
        thread = await find_thread(engine, thread)
        await engine.threads.get(thread)
        report = await engine.history.report(thread)
        run = await engine.threads.run(report.provenance.run)
        # Pages that were fetched for this question or before it; of others, a provider has given the text.
        fetched = {
            str(event.data.get("url"))
            for one in (run.id, *run.options.lineage)
            async for event in engine.events(one)
            if (event.kind, event.stage) == ("read", "harvest")
        }
        return report, await check_sources(report, SourceRereader(resources, pages, run, fetched))


class SourceRereader:
    """Reads sources as a run does: pages through the guarded client, files from the disk, uploads from the store."""

    def __init__(self, resources: ServerResources, pages: PageReader, run: Run, fetched: set[str]) -> None:
        self._resources = resources
        self._pages = pages
        self._docs = run.options.docs
        self._fetched = fetched

    async def __call__(self, card: SourceCard) -> RereadResult:
        from openassay.engine.checks import RereadResult, from_page

        if card.url.startswith(("http://", "https://")):
            if self._resources.engine.settings.offline:
                return RereadResult(reason="offline is set, so no page is fetched")
            return from_page(await self._pages.read(card.url), ours=card.url in self._fetched)
        if card.url.startswith("file:"):
            return await asyncio.to_thread(self._read_file, Path(url2pathname(urlsplit(card.url).path)))
        if card.url.startswith(SCHEME):
            return await asyncio.to_thread(self._read_upload, card.url)
        if card.kind == "demo":
            stored = await self._resources.engine.document(card.document)
            return RereadResult(stored.text, "is demo data, which are a part of OpenAssay and do not change")
        return RereadResult(reason="it has no address that could be asked again")

    def _read_file(self, path: Path) -> RereadResult:
        from openassay.engine.checks import RereadResult

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
        from openassay.engine.checks import RereadResult

        id, _, name = url.removeprefix(SCHEME).partition("/")
        for given in self._docs:
            if given.startswith(SCHEME) and given.endswith(f"/{id}"):
                try:
                    return self._read_file(self._resources.files.locate(given) / unquote(name))
                except NotFoundError:
                    break
        return RereadResult(reason="the upload was deleted", gone=True)


def _mark_changes(old: str, new: str) -> str:
    """Put what is new in brackets: [+added+], [-dropped-]."""
    before, after = old.split(), new.split()
    parts: list[str] = []
    for tag, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            parts += after[start:end]
            continue
        parts += [f"[-{' '.join(before[first:last])}-]"] * (last > first)
        parts += [f"[+{' '.join(after[start:end])}+]"] * (end > start)
    return " ".join(parts)
