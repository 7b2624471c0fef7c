"""A report with everything it rests on, in one file that anybody can check: what is in it (docs/reference/bundle.md).

`contents` makes the members from a report and its snapshots; `evidence_zip` writes them down, `evidence_reading` reads
them again.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any, Literal

from pydantic import Field

from assay.errors import EvidenceError
from assay.export import html, markdown
from assay.export.evidence_signing import Signed, Signer
from assay.export.evidence_zip import MANIFEST, PAGE, README, REPORT, SOURCES, SUMS, TEXT, summed
from assay.model.record import Record
from assay.model.report import ReportData
from assay.model.source import Document
from assay.model.spend import Spend

FORMAT: Literal["assay-evidence"] = "assay-evidence"
EDITION: Literal[1] = 1
_HASH = r"^[0-9a-f]{64}$"
_README = """Evidence for the report "{title}"

report.html   the report, for any browser: statements open the passages they rest on
report.md     the same as text
report.json   the same as data: every sentence with its claims, every claim with its spans
snapshots/    what was read, exactly; each file is named by the SHA-256 of its content
sources.json  what each snapshot is, where it was read and when
manifest.json who made this and with what, what it cost, and the SHA-256 of every other file

To check it with Assay, on any machine, without a network and without a model:

    assay verify FILE.assay

To check it by hand: unpack it, and run this in its folder (macOS: shasum -a 256 -c SHA256SUMS):

    sha256sum -c SHA256SUMS

A span of a claim is the text between the characters `start` and `end` of its snapshot, counted from 0 in Unicode
code points.
"""


class Content(Record):
    sha256: str = Field(pattern=_HASH)
    size: int = Field(ge=0)


class Signature(Record):
    algorithm: Literal["ed25519"] = "ed25519"
    key: str = Field(pattern=_HASH)
    value: str = Field(pattern=r"^[0-9a-f]{128}$")


class Manifest(Record):
    """`digest` is that of everything else in it but the signature, which is put under the digest."""

    format: Literal["assay-evidence"] = FORMAT
    edition: Literal[1] = EDITION
    assay: str  # the version that made it
    thread: str
    run: str
    question: str
    finished: str
    settings: str  # hash of those the run was made with
    spend: Spend
    members: dict[str, Content]
    digest: str = Field(default="0" * 64, pattern=_HASH)
    signature: Signature | None = None

    def digested(self) -> str:
        return hashlib.sha256(canonical(self.model_dump(mode="json", exclude={"digest", "signature"}))).hexdigest()

    @property
    def signed(self) -> Signed | None:
        return Signed(self.signature.key, self.signature.value) if self.signature else None


class SourceRecord(Record):
    """What a snapshot is."""

    document: str = Field(pattern=_HASH)
    url: str
    title: str
    host: str = ""
    kind: str
    author: str | None = None
    published: str | None = None
    fetched: str
    origin: str | None = None
    language: str | None = None
    characters: int = Field(ge=0)


def canonical(value: object) -> bytes:
    """JSON as there is one way to write it: sorted names, one space a level, plain UTF-8, a line break at the end.
    ValueError for what no JSON can say."""
    return (json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=1) + "\n").encode()


def needed(report: ReportData) -> list[str]:
    """The hashes of all documents that a report names."""
    spans = (span.document for claim in report.claims for span in (*claim.spans, *claim.against))
    return sorted({*spans, *(card.document for card in report.sources)})


def contents(report: ReportData, documents: Iterable[Document], signer: Signer | None = None) -> dict[str, bytes]:
    """The members of a bundle by their names."""
    texts = {document.hash: document for document in documents}
    if absent := [name for name in needed(report) if name not in texts]:
        raise EvidenceError(f"snapshot {absent[0][:12]} is missing", help="Without it the report cannot be checked.")
    plain = canonical(report.plain())
    report = ReportData.model_validate_json(plain)  # rendered as whoever reads it again would
    cards = {card.document: card.model_dump(mode="json") for card in report.sources}
    records = [_record(document, cards.get(name, {})) for name, document in sorted(texts.items())]
    files = {
        README: _README.format(title=" ".join(report.title.split())).encode(),
        **readable(report),
        REPORT: plain,
        SOURCES: canonical([record.plain() for record in records]),
        **{f"snapshots/{name}.txt": document.text.encode() for name, document in texts.items()},
    }
    files[SUMS] = sums({name: summed(content).sha256 for name, content in files.items()})
    return files | {MANIFEST: canonical(_manifest(report, files, signer).plain())}


def readable(report: ReportData) -> dict[str, bytes]:
    """The report for people without Assay."""
    return {PAGE: html.page(report).encode(), TEXT: markdown.render(report).encode()}


def sums(hashes: Mapping[str, str]) -> bytes:
    """As sha256sum writes and reads them."""
    return "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes)).encode()


def of_report(report: ReportData) -> dict[str, Any]:
    """What a manifest repeats of its report."""
    made, data = report.provenance, report.metadata
    return {
        "thread": made.thread, "run": made.run, "question": made.question, "finished": data.finished,
        "settings": data.settings, "spend": report.spend,
    }  # fmt: skip


def _manifest(report: ReportData, files: Mapping[str, bytes], signer: Signer | None) -> Manifest:
    members = {name: Content(**summed(content)._asdict()) for name, content in files.items()}
    bare = Manifest(assay=version("assay"), members=members, **of_report(report))
    digest = bare.digested()
    signed = signer.sign(digest) if signer else None
    signature = Signature(key=signed.key, value=signed.value) if signed else None
    return bare.model_copy(update={"digest": digest, "signature": signature})


def _record(document: Document, card: Mapping[str, Any]) -> SourceRecord:
    """Of what a person has given, the store knows no name: the report does."""
    kept = document.model_dump(mode="json", exclude={"hash", "text"})
    known = {name: card[name] for name in ("url", "title", "host", "kind", "author", "published") if name in card}
    return SourceRecord.model_validate({**kept, **known, "document": document.hash, "characters": len(document.text)})
