"""A report with everything it rests on, in one file that anybody can check: what is in it (docs/reference/bundle.md).

`contents` makes the members from a report and its snapshots; `evidence_zip` writes them down, `evidence_reading` reads
them again.
"""

import hashlib
import json
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import Field, TypeAdapter, ValidationError

from openassay.errors import ConfigurationError, EvidenceError, PathError, UsageError
from openassay.export import html, markdown
from openassay.models.base import Record
from openassay.models.evidence import Document
from openassay.models.report import ReportData
from openassay.models.spend import Spend

# Who vouches for a bundle: an Ed25519 key that a data directory has of its own, and its fingerprint.
#
# The key is made when it is first needed. Its fingerprint is what people tell each other on another way than the bundle
# went: half of the SHA-256 of the public key, in groups of four.

FILE = "evidence.key"
_PURPOSE = b"openassay evidence 1\n"  # a signature under a bundle is good for nothing else
_HEX = 32  # digits of a fingerprint
_LONGEST = 4_096  # bytes of a file with a fingerprint that are looked at


class RawSignature(NamedTuple):
    """Both in hexadecimal digits."""

    key: str
    value: str


class Signer:
    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    def sign(self, digest: str) -> RawSignature:
        public = self._key.public_key().public_bytes_raw()
        return RawSignature(public.hex(), self._key.sign(_PURPOSE + digest.encode()).hex())


def load_signer(folder: Path) -> Signer:
    """The one of a data directory; made where it has none yet."""
    file = folder / FILE
    try:
        if not file.exists():
            _create_key(file)
        secret = bytes.fromhex(file.read_text("ascii").strip())
        return Signer(Ed25519PrivateKey.from_private_bytes(secret))
    except OSError as error:
        raise ConfigurationError(
            f"cannot use {file}: {error.strerror}",
            help="See to its permissions, or leave the signature out: --unsigned.",
        ) from error
    except ValueError as error:
        raise ConfigurationError(
            f"{file} does not hold a key", help="Put it back from a copy; if you delete it, a new one is made."
        ) from error


def _create_key(file: Path) -> None:
    """Complete or not there at all; of two processes at once, one is first."""
    part = file.with_name(f".{FILE}.{os.getpid()}")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as opened:
        opened.write(Ed25519PrivateKey.generate().private_bytes_raw().hex() + "\n")
        opened.flush()
        os.fsync(opened.fileno())
    with suppress(FileExistsError):
        os.link(part, file)
    part.unlink()


def is_valid_signature(signed: RawSignature, digest: str) -> bool:
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signed.key))
        key.verify(bytes.fromhex(signed.value), _PURPOSE + digest.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def compute_fingerprint(key: str) -> str:
    digits = hashlib.sha256(bytes.fromhex(key)).hexdigest()[:_HEX]
    return "-".join(digits[at : at + 4] for at in range(0, _HEX, 4))


def resolve_fingerprint(named: str) -> str:
    """The fingerprint that somebody names, or the one that stands in the file they name."""
    text = named
    if not _parse_fingerprint(named):
        try:
            with open(named, encoding="utf-8", errors="replace") as file:
                text = file.read(_LONGEST)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{named!r} is neither a fingerprint nor a file",
                help="A fingerprint is 8 groups of 4 digits or letters.",
            ) from error
    if found := _parse_fingerprint(text) or next(filter(None, map(_parse_fingerprint, text.split())), ""):
        return "-".join(found[at : at + 4] for at in range(0, _HEX, 4))
    raise UsageError(f"no fingerprint stands in {named}", help="It is 8 groups of 4 digits or letters.")


def _parse_fingerprint(text: str) -> str:
    digits = re.sub(r"[\s-]", "", text).lower()
    return digits if re.fullmatch(rf"[0-9a-f]{{{_HEX}}}", digits) else ""


# A bundle of evidence as a file: a zip of which every byte is settled by what it holds.
#
# Members stand in the order of their names, uncompressed, dated 1 January 1980, one behind the other, with nothing
# before, between or after them. So the same content is the same file on every machine, whatever compressor that has;
# nothing is inflated when it is read; and a byte that is not as it would be written here shows, wherever it stands.

MB = 1_000_000
MOST_BYTES = 1_000 * MB  # of a bundle
MOST_MEMBERS = 10_000
MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
README = "README.txt"
REPORT = "report.json"
SOURCES = "sources.json"
PAGE, TEXT = "report.html", "report.md"
SNAPSHOT = re.compile(r"snapshots/([0-9a-f]{64})\.txt")
_FIXED = frozenset({MANIFEST, SUMS, README, REPORT, SOURCES, PAGE, TEXT})
# What is parsed as a whole is bounded more closely than what is only looked into.
_MOST = {MANIFEST: 4 * MB, SUMS: 2 * MB, README: MB, REPORT: 8 * MB, SOURCES: 16 * MB, PAGE: 64 * MB, TEXT: 64 * MB}
_MOST_SNAPSHOT = 100 * MB
_LONGEST_NAME = 200
_CHUNK = 1 << 20

# Signature, then what is always so: versions, flags, method (stored), time and date; then checksum and sizes.
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_ENTRY = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_VERSION, _MADE_BY, _DAY, _MODE = 20, 0x0314, 0x21, 0o100644 << 16  # 2.0; Unix; 1980-01-01; a file everybody may read
_STORED = 0


class ZipMember(NamedTuple):
    name: str
    size: int
    crc: int
    start: int  # of its content

    @property
    def header(self) -> bytes:
        name = self.name.encode("ascii")
        fixed = (_VERSION, 0, _STORED, 0, _DAY, self.crc, self.size, self.size, len(name), 0)
        return _LOCAL.pack(b"PK\x03\x04", *fixed) + name

    @property
    def entry(self) -> bytes:
        name = self.name.encode("ascii")
        fixed = (_MADE_BY, _VERSION, 0, _STORED, 0, _DAY, self.crc, self.size, self.size, len(name), 0, 0, 0, 0, _MODE)
        return _ENTRY.pack(b"PK\x01\x02", *fixed, self.start - len(self.header)) + name


class MemberDigest(NamedTuple):
    """What the content of a member comes to."""

    sha256: str
    size: int


def digest_content(content: bytes) -> MemberDigest:
    return MemberDigest(hashlib.sha256(content).hexdigest(), len(content))


def pack_members(contents: Mapping[str, bytes]) -> Iterator[bytes]:
    """The bytes of a bundle, part by part. EvidenceError for what would not be read again."""
    members, at = [], 0
    for name in sorted(contents):
        content = contents[name]
        _check_name(name)
        _check_size(name, len(content))
        member = ZipMember(name, len(content), zlib.crc32(content), at + _LOCAL.size + len(name))
        members.append(member)
        yield member.header
        yield content
        at = member.start + member.size
    directory = _build_directory(members, at)
    _check_totals(len(members), at + len(directory))
    yield directory


class BundleZip:
    """A bundle that is open. Nothing of it is believed: EvidenceError says what is not as it would be written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._known: dict[str, tuple[str, int]] = {}
        self.members = {member.name: member for member in _read_members(file)}

    def read(self, name: str) -> bytes:
        member = self.members[name]
        self._file.seek(member.start)
        return self._file.read(member.size)

    def get_digest(self, name: str) -> MemberDigest:
        """Without having all of it in memory."""
        return MemberDigest(self._get_checksums(name)[0], self.members[name].size)

    def is_corrupt(self, name: str) -> bool:
        """Whether the content does not have the checksum that the zip itself gives for it."""
        return self._get_checksums(name)[1] != self.members[name].crc

    def _get_checksums(self, name: str) -> tuple[str, int]:
        if name not in self._known:
            self._known[name] = self._compute_checksums(self.members[name])
        return self._known[name]

    def _compute_checksums(self, member: ZipMember) -> tuple[str, int]:
        self._file.seek(member.start)
        left, digest, crc = member.size, hashlib.sha256(), 0
        while left and (chunk := self._file.read(min(left, _CHUNK))):
            digest.update(chunk)
            crc = zlib.crc32(chunk, crc)
            left -= len(chunk)
        return digest.hexdigest(), crc


def _read_members(file: IO[bytes]) -> list[ZipMember]:
    """As the directory lists them, if the file is laid out as it says and in no other way."""
    size = file.seek(0, 2)
    count, at = _read_end_record(file, size)
    _check_totals(count, size)
    file.seek(at)
    directory = file.read(size - at)
    members = list(_parse_directory(directory, count))
    end = members[-1].start + members[-1].size if members else 0
    if end != at or directory != _build_directory(members, at):
        raise _make_zip_error("its directory does not fit what stands before it")
    for member in members:
        file.seek(member.start - len(member.header))
        if file.read(len(member.header)) != member.header:
            raise _make_zip_error(f"the header of {member.name} is not what its directory says")
    return members


def _read_end_record(file: IO[bytes], size: int) -> tuple[int, int]:
    """How many members there are, and where the directory begins."""
    file.seek(max(0, size - _END.size))
    tail = file.read(_END.size)
    if len(tail) < _END.size or not tail.startswith(b"PK\x05\x06"):
        raise _make_zip_error(
            "it does not end as a bundle does: it is no bundle, was cut off, or something was added to it"
        )
    _, _, _, _, count, length, at, _ = _END.unpack(tail)
    if at + length + _END.size != size:
        raise _make_zip_error("its directory is not where it says: something was added to it, or taken from it")
    return count, at


def _parse_directory(directory: bytes, count: int) -> Iterator[ZipMember]:
    at, start, last = 0, 0, ""
    for _ in range(count):
        if len(directory) < at + _ENTRY.size:
            raise _make_zip_error("its directory is cut off")
        _, _, _, flags, method, _, _, crc, packed_size, size, length, *_ = _ENTRY.unpack_from(directory, at)
        name = _decode_name(directory[at + _ENTRY.size : at + _ENTRY.size + length])
        if name == last:
            raise _make_zip_error(f"{name} stands in it twice")
        if name < last:
            raise _make_zip_error(f"{name} stands in it twice, or not in the order of the names")
        if flags & 1:
            raise _make_zip_error(f"{name} is encrypted")
        if method != _STORED or packed_size != size:
            raise _make_zip_error(f"{name} is compressed, which nothing in a bundle is: it was not inflated")
        _check_size(name, size)
        member = ZipMember(name, size, crc, start + _LOCAL.size + len(name))
        if directory[at : at + len(member.entry)] != member.entry:
            raise _make_zip_error(f"what its directory says of {name} is not as it would be written")
        yield member
        at, start, last = at + len(member.entry), member.start + size, name


def _decode_name(raw: bytes) -> str:
    try:
        name = raw.decode("ascii")
    except UnicodeDecodeError as error:
        raise _make_zip_error("a name in it is not one that a bundle has") from error
    _check_name(name)
    return name


def _check_name(name: str) -> None:
    if name in _FIXED or SNAPSHOT.fullmatch(name):
        return
    parts = re.split(r"[/\\]", name)
    if ".." in parts or name.startswith(("/", "\\")) or ":" in name:
        raise _make_zip_error(f"{name[:_LONGEST_NAME]!r} leads out of the folder it would be unpacked in")
    raise _make_zip_error(f"{name[:_LONGEST_NAME]!r} is no part of a bundle")


def _check_size(name: str, size: int) -> None:
    most = _MOST.get(name, _MOST_SNAPSHOT)
    if size > most:
        raise _make_zip_error(f"{name} has {size / MB:,.0f} MB, and {most / MB:,.0f} MB is the most")


def _check_totals(count: int, size: int) -> None:
    if size > MOST_BYTES:
        raise _make_zip_error(f"it has {size / MB:,.0f} MB, and {MOST_BYTES / MB:,.0f} MB is the most")
    if count > MOST_MEMBERS:
        raise _make_zip_error(f"it has {count:,} members, and {MOST_MEMBERS:,} is the most")


def _build_directory(members: list[ZipMember], at: int) -> bytes:
    entries = b"".join(member.entry for member in members)
    return entries + _END.pack(b"PK\x05\x06", 0, 0, len(members), len(members), len(entries), at, 0)


def _make_zip_error(what: str) -> EvidenceError:
    return EvidenceError(f"the zip itself: {what}", help="Ask whoever sent it for another copy.")


FORMAT: Literal["openassay-evidence"] = "openassay-evidence"
EDITION: Literal[1] = 1
_HASH = r"^[0-9a-f]{64}$"
_README = """Evidence for the report "{title}"

report.html   the report, for any browser: statements open the passages they rest on
report.md     the same as text
report.json   the same as data: every sentence with its claims, every claim with its spans
snapshots/    what was read, exactly; each file is named by the SHA-256 of its content
sources.json  what each snapshot is, where it was read and when
manifest.json who made this and with what, what it cost, and the SHA-256 of every other file

To check it with OpenAssay, on any machine, without a network and without a model:

    openassay verify FILE.openassay

To check it by hand: unpack it, and run this in its folder (macOS: shasum -a 256 -c SHA256SUMS):

    sha256sum -c SHA256SUMS

A span of a claim is the text between the characters `start` and `end` of its snapshot, counted from 0 in Unicode
code points.
"""


class MemberContent(Record):
    sha256: str = Field(pattern=_HASH)
    size: int = Field(ge=0)


class Signature(Record):
    algorithm: Literal["ed25519"] = "ed25519"
    key: str = Field(pattern=_HASH)
    value: str = Field(pattern=r"^[0-9a-f]{128}$")


class Manifest(Record):
    """`digest` is that of everything else in it but the signature, which is put under the digest."""

    format: Literal["openassay-evidence"] = FORMAT
    edition: Literal[1] = EDITION
    openassay: str  # the version that made it
    thread: str
    run: str
    question: str
    finished: str
    settings: str  # hash of those the run was made with
    spend: Spend
    members: dict[str, MemberContent]
    digest: str = Field(default="0" * 64, pattern=_HASH)
    signature: Signature | None = None

    def compute_digest(self) -> str:
        return hashlib.sha256(
            to_canonical_json(self.model_dump(mode="json", exclude={"digest", "signature"}))
        ).hexdigest()

    @property
    def signed(self) -> RawSignature | None:
        return RawSignature(self.signature.key, self.signature.value) if self.signature else None


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


def to_canonical_json(value: object) -> bytes:
    """JSON as there is one way to write it: sorted names, one space a level, plain UTF-8, a line break at the end.
    ValueError for what no JSON can say."""
    return (json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=1) + "\n").encode()


def list_document_hashes(report: ReportData) -> list[str]:
    """The hashes of all documents that a report names."""
    spans = (span.document for claim in report.claims for span in (*claim.spans, *claim.against))
    return sorted({*spans, *(card.document for card in report.sources)})


def build_members(report: ReportData, documents: Iterable[Document], signer: Signer | None = None) -> dict[str, bytes]:
    """The members of a bundle by their names."""
    texts = {document.hash: document for document in documents}
    if absent := [name for name in list_document_hashes(report) if name not in texts]:
        raise EvidenceError(f"snapshot {absent[0][:12]} is missing", help="Without it the report cannot be checked.")
    plain = to_canonical_json(report.plain())
    report = ReportData.model_validate_json(plain)  # rendered as whoever reads it again would
    cards = {card.document: card.model_dump(mode="json") for card in report.sources}
    records = [_build_source_record(document, cards.get(name, {})) for name, document in sorted(texts.items())]
    files = {
        README: _README.format(title=" ".join(report.title.split())).encode(),
        **render_copies(report),
        REPORT: plain,
        SOURCES: to_canonical_json([record.plain() for record in records]),
        **{f"snapshots/{name}.txt": document.text.encode() for name, document in texts.items()},
    }
    files[SUMS] = format_sums({name: digest_content(content).sha256 for name, content in files.items()})
    return files | {MANIFEST: to_canonical_json(_build_manifest(report, files, signer).plain())}


def render_copies(report: ReportData) -> dict[str, bytes]:
    """The report for people without OpenAssay."""
    return {PAGE: html.render_page(report).encode(), TEXT: markdown.render_markdown(report).encode()}


def format_sums(hashes: Mapping[str, str]) -> bytes:
    """As sha256sum writes and reads them."""
    return "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes)).encode()


def extract_report_fields(report: ReportData) -> dict[str, Any]:
    """What a manifest repeats of its report."""
    made, data = report.provenance, report.metadata
    return {
        "thread": made.thread, "run": made.run, "question": made.question, "finished": data.finished,
        "settings": data.settings, "spend": report.spend,
    }  # fmt: skip


def _build_manifest(report: ReportData, files: Mapping[str, bytes], signer: Signer | None) -> Manifest:
    members = {name: MemberContent(**digest_content(content)._asdict()) for name, content in files.items()}
    bare = Manifest(openassay=version("openassay"), members=members, **extract_report_fields(report))
    digest = bare.compute_digest()
    signed = signer.sign(digest) if signer else None
    signature = Signature(key=signed.key, value=signed.value) if signed else None
    return bare.model_copy(update={"digest": digest, "signature": signature})


def _build_source_record(document: Document, card: Mapping[str, Any]) -> SourceRecord:
    """Of what a person has given, the store knows no name: the report does."""
    kept = document.model_dump(mode="json", exclude={"hash", "text"})
    known = {name: card[name] for name in ("url", "title", "host", "kind", "author", "published") if name in card}
    return SourceRecord.model_validate({**kept, **known, "document": document.hash, "characters": len(document.text)})


# A bundle of evidence, read by somebody who believes nothing of it. Needs no settings, no database and no network.

_ALWAYS = (MANIFEST, SUMS, README, REPORT, SOURCES, PAGE, TEXT)
_SOURCES = TypeAdapter(tuple[SourceRecord, ...])
_AGAIN = "Ask whoever sent it for another copy."
T = TypeVar("T")


class EvidenceBundle:
    """A bundle whose layout is in order. What a check returns is what is wrong, a line each."""

    def __init__(self, zip: BundleZip) -> None:
        self._zip = zip
        self.manifest = _read_manifest(zip)

    @property
    def names(self) -> list[str]:
        return list(self._zip.members)

    def check_layout(self) -> list[str]:
        """What is there, against what the manifest says is there."""
        there, said = set(self.names), {MANIFEST, *self.manifest.members}
        return [
            *(f"{name} is missing" for name in sorted({*said, *_ALWAYS} - there)),
            *(f"{name} is not in the manifest" for name in sorted(there - said)),
            *(f"{name}: the zip gives another checksum for it" for name in self.names if self._zip.is_corrupt(name)),
        ]

    def check_hashes(self) -> list[str]:
        """Every member against the manifest, and the list for people against both."""
        said = self.manifest.members
        wrong = [
            name for name in said if name in self._zip.members and self._zip.get_digest(name) != _to_digest(said[name])
        ]
        listed = format_sums({name: content.sha256 for name, content in said.items() if name != SUMS})
        lists = SUMS in self._zip.members and self._zip.read(SUMS) == listed
        return [
            *(f"{name} was changed: its SHA-256 is not the one in the manifest" for name in wrong),
            *([] if lists else [f"{SUMS} does not list what the manifest lists"]),
        ]

    def check_digest(self) -> list[str]:
        own = self.manifest.compute_digest()
        return [] if own == self.manifest.digest else [f"{MANIFEST} was changed: its digest is {own[:16]}…"]

    def read_report(self) -> ReportData:
        """EvidenceError where it cannot be read."""
        return _read_model(REPORT, self._zip, ReportData.model_validate)

    def read_sources(self) -> tuple[SourceRecord, ...]:
        return _read_model(SOURCES, self._zip, _SOURCES.validate_python)

    def read_snapshot(self, document: str) -> str:
        """Its text; EvidenceError where there is none that has this hash."""
        name = f"snapshots/{document}.txt"
        if name not in self._zip.members:
            raise EvidenceError(f"{name} is missing", help=_AGAIN)
        if self._zip.get_digest(name).sha256 != document:
            raise EvidenceError(f"{name} is not the text that its name is the hash of", help=_AGAIN)
        try:
            return self._zip.read(name).decode()
        except UnicodeDecodeError as error:
            raise EvidenceError(f"{name} is not UTF-8", help=_AGAIN) from error

    def check_agreement(self, report: ReportData) -> list[str]:
        """The manifest and the list of sources against the report."""
        told = extract_report_fields(report)
        wrong = [name for name in told if getattr(self.manifest, name) != told[name]]
        records = {record.document: record for record in self.read_sources()}
        cards = {card.document: card.url for card in report.sources}
        there = {match[1] for name in self.names if (match := SNAPSHOT.fullmatch(name))}
        return [
            *(f"{MANIFEST} gives another {name} than the report" for name in wrong),
            *(f"snapshots/{name}.txt is missing" for name in list_document_hashes(report) if name not in there),
            *(
                f"snapshots/{name}.txt is named by nothing in the report"
                for name in sorted(there - {*list_document_hashes(report)})
            ),
            *(f"{SOURCES} does not say what {name[:12]} is" for name in sorted(there - records.keys())),
            *(
                f"{SOURCES} gives another address for {name[:12]} than the report"
                for name, url in cards.items()
                if name in records and records[name].url != url
            ),
        ]

    def find_stale_copies(self, report: ReportData) -> list[str]:
        """Those copies for people that this version would write in another way."""
        return [name for name, content in render_copies(report).items() if self._zip.read(name) != content]


@contextmanager
def open_bundle(path: Path) -> Iterator[EvidenceBundle]:
    """PathError where there is no such file, EvidenceError where it is no bundle."""
    try:
        with path.open("rb") as file:
            yield EvidenceBundle(BundleZip(file))
    except OSError as error:
        raise PathError(f"cannot read {path}: {error.strerror}", help="Name a bundle: FILE.openassay.") from error


def _read_manifest(zip: BundleZip) -> Manifest:
    try:
        plain = _parse_canonical_json(MANIFEST, _read_member(MANIFEST, zip))
        if isinstance(plain, dict) and plain.get("format") == FORMAT and plain.get("edition") != EDITION:
            raise EvidenceError(
                f"it has edition {str(plain.get('edition'))[:20]} of the format, and this version reads {EDITION}",
                help="Use a newer version of OpenAssay.",
            )
        return _validate_model(MANIFEST, plain, Manifest.model_validate)
    except EvidenceError as error:
        error.context["row"] = "manifest"
        raise


def _read_model(name: str, zip: BundleZip, model: Callable[[object], T]) -> T:
    return _validate_model(name, _parse_canonical_json(name, _read_member(name, zip)), model)


def _read_member(name: str, zip: BundleZip) -> bytes:
    if name not in zip.members:
        raise EvidenceError(f"{name} is missing", help=_AGAIN)
    return zip.read(name)


def _validate_model(name: str, plain: object, model: Callable[[object], T]) -> T:
    try:
        return model(plain)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"])) or "all of it"
        raise EvidenceError(
            f"{name} does not hold what it should ({place[:80]})", help="It was changed, or made by a newer version."
        ) from error


def _parse_canonical_json(name: str, content: bytes) -> object:
    """JSON in the one way it is written: what two programs could read differently is refused."""
    try:
        plain: object = json.loads(content)
        again = to_canonical_json(plain)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{name} cannot be read as JSON", help=_AGAIN) from error
    if again != content:
        raise EvidenceError(f"{name} was changed: it is not written as a bundle's JSON is", help=_AGAIN)
    return plain


def _to_digest(content: MemberContent) -> tuple[str, int]:
    return content.sha256, content.size
