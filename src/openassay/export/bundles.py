"""Makes and reads evidence bundles: a report with everything it rests on, in one file that anybody can check.

docs/reference/bundle.md describes the format. `build_members` makes the members of a bundle, `pack_members` writes
them, and `open_bundle` reads them without trusting anything in them, without settings, database or network.
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

T = TypeVar("T")

FORMAT: Literal["openassay-evidence"] = "openassay-evidence"
EDITION: Literal[1] = 1
KEY_FILE = "evidence.key"
_PURPOSE = b"openassay evidence 1\n"  # a signature under a bundle is good for nothing else
_FINGERPRINT_DIGITS = 32
_MAX_FINGERPRINT_FILE = 4_096  # bytes that are read of it
_HASH = r"^[0-9a-f]{64}$"
_ANOTHER_COPY = "Ask the sender for another copy."

MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
README = "README.txt"
REPORT = "report.json"
SOURCES = "sources.json"
PAGE, TEXT = "report.html", "report.md"
SNAPSHOT = re.compile(r"snapshots/([0-9a-f]{64})\.txt")
MB = 1_000_000
MOST_BYTES = 1_000 * MB  # of a bundle
MOST_MEMBERS = 10_000
# Members that every bundle has. What is parsed as a whole is bounded more closely than a snapshot.
_MAX_SIZES = {
    MANIFEST: 4 * MB,
    SUMS: 2 * MB,
    README: MB,
    REPORT: 8 * MB,
    SOURCES: 16 * MB,
    PAGE: 64 * MB,
    TEXT: 64 * MB,
}
_MAX_SNAPSHOT = 100 * MB
# Of a source, as its report has them.
_CARD_FIELDS = ("url", "title", "host", "kind", "author", "publisher", "published")
_MAX_NAME = 200  # characters that are shown of one
_CHUNK = 1 << 20

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
    """A signature and the public key of its signer, both in hexadecimal digits."""

    algorithm: Literal["ed25519"] = "ed25519"
    key: str = Field(pattern=_HASH)
    value: str = Field(pattern=r"^[0-9a-f]{128}$")


class Manifest(Record):
    """Who made a bundle and with what. `digest` covers everything else in it but the signature, which signs it."""

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
        """Return the SHA-256 of everything but the digest and the signature."""
        plain = self.model_dump(mode="json", exclude={"digest", "signature"})
        return hashlib.sha256(to_canonical_json(plain)).hexdigest()


class SourceRecord(Record):
    document: str = Field(pattern=_HASH)
    url: str
    title: str
    host: str = ""
    kind: str
    author: str | None = None
    publisher: str | None = None
    published: str | None = None
    fetched: str
    origin: str | None = None
    language: str | None = None
    characters: int = Field(ge=0)


_SOURCE_RECORDS = TypeAdapter(tuple[SourceRecord, ...])


# Signing: a data directory has an Ed25519 key of its own. Its fingerprint is half of the SHA-256 of the public key, and
# people give it to each other by another way than the bundle.


def sign_digest(digest: str, key: Ed25519PrivateKey) -> Signature:
    public = key.public_key().public_bytes_raw()
    return Signature(key=public.hex(), value=key.sign(_PURPOSE + digest.encode()).hex())


def load_key(folder: Path) -> Ed25519PrivateKey:
    """Load the key of a data directory; it is made where there is none yet."""
    file = folder / KEY_FILE
    try:
        if not file.exists():
            part = file.with_name(f".{KEY_FILE}.{os.getpid()}")
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as opened:
                opened.write(Ed25519PrivateKey.generate().private_bytes_raw().hex() + "\n")
                opened.flush()
                os.fsync(opened.fileno())
            with suppress(FileExistsError):  # of two processes at once, one is first
                os.link(part, file)
            part.unlink()
        secret = bytes.fromhex(file.read_text("ascii").strip())
        return Ed25519PrivateKey.from_private_bytes(secret)
    except OSError as error:
        raise ConfigurationError(
            f"cannot use {file}: {error.strerror}", help="Check its permissions, or omit the signature: --unsigned."
        ) from error
    except ValueError as error:
        raise ConfigurationError(
            f"{file} does not hold a key", help="Restore it from a copy; if you delete it, a new one is made."
        ) from error


def is_valid_signature(signature: Signature, digest: str) -> bool:
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.key))
        key.verify(bytes.fromhex(signature.value), _PURPOSE + digest.encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def compute_fingerprint(key: str) -> str:
    """Return the fingerprint of a public key: 8 groups of 4 digits."""
    return _group_digits(hashlib.sha256(bytes.fromhex(key)).hexdigest()[:_FINGERPRINT_DIGITS])


def resolve_fingerprint(text_or_file: str) -> str:
    """Return a fingerprint that is written out, or the first one in a file."""
    text = text_or_file
    if not _parse_fingerprint(text):
        try:
            with open(text_or_file, encoding="utf-8", errors="replace") as file:
                text = file.read(_MAX_FINGERPRINT_FILE)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{text_or_file!r} is neither a fingerprint nor a file",
                help="A fingerprint is 8 groups of 4 digits or letters.",
            ) from error
    if found := _parse_fingerprint(text) or next(filter(None, map(_parse_fingerprint, text.split())), ""):
        return _group_digits(found)
    raise UsageError(f"there is no fingerprint in {text_or_file}", help="It is 8 groups of 4 digits or letters.")


def _parse_fingerprint(text: str) -> str:
    digits = re.sub(r"[\s-]", "", text).lower()
    return digits if re.fullmatch(rf"[0-9a-f]{{{_FINGERPRINT_DIGITS}}}", digits) else ""


def _group_digits(digits: str) -> str:
    return "-".join(digits[at : at + 4] for at in range(0, len(digits), 4))


# Making a bundle.


def build_members(
    report: ReportData, documents: Iterable[Document], key: Ed25519PrivateKey | None = None
) -> dict[str, bytes]:
    snapshots = {document.hash: document for document in documents}
    if absent := [name for name in list_document_hashes(report) if name not in snapshots]:
        raise EvidenceError(f"snapshot {absent[0][:12]} is missing", help="Without it the report cannot be checked.")
    plain = to_canonical_json(report.plain())
    report = ReportData.model_validate_json(plain)  # so that the copies are rendered as a reader would render them
    cards = {card.document: card.model_dump(mode="json") for card in report.sources}
    records = []
    for hash, document in sorted(snapshots.items()):
        fields = document.model_dump(mode="json", exclude={"hash", "text"})
        # The store has no names for files that a person has uploaded: the report does.
        named = {name: cards[hash][name] for name in _CARD_FIELDS} if hash in cards else {}
        records.append({**fields, **named, "document": hash, "characters": len(document.text)})
    files = {
        README: _README.format(title=" ".join(report.title.split())).encode(),
        **render_copies(report),
        REPORT: plain,
        SOURCES: to_canonical_json([record.plain() for record in _SOURCE_RECORDS.validate_python(records)]),
        **{f"snapshots/{name}.txt": document.text.encode() for name, document in snapshots.items()},
    }
    files[SUMS] = format_sums({name: digest_content(content).sha256 for name, content in files.items()})
    members = {name: digest_content(content) for name, content in files.items()}
    bare = Manifest(openassay=version("openassay"), members=members, **extract_report_fields(report))
    digest = bare.compute_digest()
    manifest = bare.model_copy(update={"digest": digest, "signature": sign_digest(digest, key) if key else None})
    return files | {MANIFEST: to_canonical_json(manifest.plain())}


def list_document_hashes(report: ReportData) -> list[str]:
    spans = (span.document for claim in report.claims for span in (*claim.spans, *claim.against))
    return sorted({*spans, *(card.document for card in report.sources)})


def render_copies(report: ReportData) -> dict[str, bytes]:
    """Render the report for people without OpenAssay."""
    return {PAGE: html.render_page(report).encode(), TEXT: markdown.render_markdown(report).encode()}


def digest_content(content: bytes) -> MemberContent:
    return MemberContent(sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def format_sums(hashes: Mapping[str, str]) -> bytes:
    """Write hashes as sha256sum writes and reads them."""
    return "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes)).encode()


def extract_report_fields(report: ReportData) -> dict[str, Any]:
    """Return the fields of a report that its manifest repeats."""
    made, data = report.provenance, report.metadata
    return {
        "thread": made.thread,
        "run": made.run,
        "question": made.question,
        "finished": data.finished,
        "settings": data.settings,
        "spend": report.spend,
    }


def to_canonical_json(value: object) -> bytes:
    """Write JSON in the one way a bundle has it: sorted names, one space a level, UTF-8, a final line break."""
    return (json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=1) + "\n").encode()


# The zip: every byte of it follows from what it holds. Members stand in the order of their names, uncompressed, dated
# 1 January 1980, with nothing before, between or after them. So the same content is the same file on every machine,
# nothing is inflated when it is read, and a changed byte shows, wherever it is.

# Signature, then what is always so: versions, flags, method (stored), time and date; then checksum and sizes.
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_ENTRY = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_VERSION, _MADE_BY, _DAY, _MODE = 20, 0x0314, 0x21, 0o100644 << 16  # 2.0; Unix; 1980-01-01; readable by everybody
_STORED = 0


class ZipMember(NamedTuple):
    """A member of the zip; its content begins at `start`."""

    name: str
    size: int
    crc: int
    start: int

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


def pack_members(contents: Mapping[str, bytes]) -> Iterator[bytes]:
    """Yield the bytes of a bundle, part by part. EvidenceError for what could not be read again."""
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


def _read_members(file: IO[bytes]) -> list[ZipMember]:
    """Return the members that the directory lists, if the file is laid out as it says and in no other way."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END.size))
    tail = file.read(_END.size)
    if len(tail) < _END.size or not tail.startswith(b"PK\x05\x06"):
        raise _make_zip_error(
            "it does not end as a bundle does: it is no bundle, was cut off, or something was added to it"
        )
    _, _, _, _, count, length, at, _ = _END.unpack(tail)
    if at + length + _END.size != size:
        raise _make_zip_error("its directory is not where it says: something was added to it, or taken from it")
    _check_totals(count, size)
    file.seek(at)
    directory = file.read(size - at)
    members = list(_parse_directory(directory, count))
    end = members[-1].start + members[-1].size if members else 0
    if end != at or directory != _build_directory(members, at):
        raise _make_zip_error("its directory does not fit what comes before it")
    for member in members:
        file.seek(member.start - len(member.header))
        if file.read(len(member.header)) != member.header:
            raise _make_zip_error(f"the header of {member.name} is not what its directory says")
    return members


def _parse_directory(directory: bytes, count: int) -> Iterator[ZipMember]:
    at, start, last = 0, 0, ""
    for _ in range(count):
        if len(directory) < at + _ENTRY.size:
            raise _make_zip_error("its directory is cut off")
        _, _, _, flags, method, _, _, crc, packed_size, size, length, *_ = _ENTRY.unpack_from(directory, at)
        try:
            name = directory[at + _ENTRY.size : at + _ENTRY.size + length].decode("ascii")
        except UnicodeDecodeError as error:
            raise _make_zip_error("a name in it is not one that a bundle has") from error
        _check_name(name)
        if name == last:
            raise _make_zip_error(f"{name} is in it twice")
        if name < last:
            raise _make_zip_error(f"{name} is in it twice, or not in the order of the names")
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


def _check_name(name: str) -> None:
    if name in _MAX_SIZES or SNAPSHOT.fullmatch(name):
        return
    parts = re.split(r"[/\\]", name)
    if ".." in parts or name.startswith(("/", "\\")) or ":" in name:
        raise _make_zip_error(f"{name[:_MAX_NAME]!r} leads out of the folder it would be unpacked in")
    raise _make_zip_error(f"{name[:_MAX_NAME]!r} is no part of a bundle")


def _check_size(name: str, size: int) -> None:
    most = _MAX_SIZES.get(name, _MAX_SNAPSHOT)
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


def _make_zip_error(problem: str) -> EvidenceError:
    return EvidenceError(f"the zip itself: {problem}", help=_ANOTHER_COPY)


# Reading a bundle.


@contextmanager
def open_bundle(path: Path) -> Iterator["EvidenceBundle"]:
    """Open a bundle. PathError where there is no such file, EvidenceError where it is no bundle."""
    try:
        with path.open("rb") as file:
            yield EvidenceBundle(file)
    except OSError as error:
        raise PathError(f"cannot read {path}: {error.strerror}", help="Name a bundle: FILE.openassay.") from error


class EvidenceBundle:
    """A bundle whose layout is in order: EvidenceError says what is not as `pack_members` would write it.

    Nothing in it is trusted; a check returns what is wrong, a line each."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._members = {member.name: member for member in _read_members(file)}
        self._checksums: dict[str, tuple[str, int]] = {}
        try:
            plain = self._read_json(MANIFEST)
            if isinstance(plain, dict) and plain.get("format") == FORMAT and plain.get("edition") != EDITION:
                raise EvidenceError(
                    f"it has edition {str(plain.get('edition'))[:20]} of the format, and this version reads {EDITION}",
                    help="Use a newer version of OpenAssay.",
                )
            self.manifest = _validate(MANIFEST, plain, Manifest.model_validate)
        except EvidenceError as error:
            error.context["row"] = "manifest"
            raise

    @property
    def names(self) -> list[str]:
        return list(self._members)

    def _compute_checksums(self, name: str) -> tuple[str, int]:
        """Return the SHA-256 and the CRC of a member, without having all of it in memory."""
        if name not in self._checksums:
            member = self._members[name]
            self._file.seek(member.start)
            left, digest, crc = member.size, hashlib.sha256(), 0
            while left and (chunk := self._file.read(min(left, _CHUNK))):
                digest.update(chunk)
                crc = zlib.crc32(chunk, crc)
                left -= len(chunk)
            self._checksums[name] = digest.hexdigest(), crc
        return self._checksums[name]

    def check_layout(self) -> list[str]:
        """Compare the members with those that the manifest lists."""
        present, listed = set(self._members), {MANIFEST, *self.manifest.members}
        corrupt = [name for name, member in self._members.items() if self._compute_checksums(name)[1] != member.crc]
        return [
            *(f"{name} is missing" for name in sorted({*listed, *_MAX_SIZES} - present)),
            *(f"{name} is not in the manifest" for name in sorted(present - listed)),
            *(f"{name}: the zip gives another checksum for it" for name in corrupt),
        ]

    def check_hashes(self) -> list[str]:
        """Compare every member with the manifest, and the list for people with both."""
        listed = self.manifest.members
        changed = [
            name
            for name, content in listed.items()
            if name in self._members
            and (content.sha256, content.size) != (self._compute_checksums(name)[0], self._members[name].size)
        ]
        sums = format_sums({name: content.sha256 for name, content in listed.items() if name != SUMS})
        problems = [f"{name} was changed: its SHA-256 is not the one in the manifest" for name in changed]
        if SUMS not in self._members or self._read_member(SUMS) != sums:
            problems.append(f"{SUMS} does not list what the manifest lists")
        return problems

    def check_digest(self) -> list[str]:
        own = self.manifest.compute_digest()
        return [] if own == self.manifest.digest else [f"{MANIFEST} was changed: its digest is {own[:16]}…"]

    def read_report(self) -> ReportData:
        """Read the report. EvidenceError where it cannot be read."""
        return _validate(REPORT, self._read_json(REPORT), ReportData.model_validate)

    def read_sources(self) -> tuple[SourceRecord, ...]:
        """Read the list of sources. EvidenceError where it cannot be read."""
        return _validate(SOURCES, self._read_json(SOURCES), _SOURCE_RECORDS.validate_python)

    def read_snapshot(self, document: str) -> str:
        """Read the text of a document. EvidenceError where there is none that has this hash."""
        name = f"snapshots/{document}.txt"
        content = self._read_member(name)
        if self._compute_checksums(name)[0] != document:
            raise EvidenceError(f"{name} is not the text that its name is the hash of", help=_ANOTHER_COPY)
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise EvidenceError(f"{name} is not UTF-8", help=_ANOTHER_COPY) from error

    def check_agreement(self, report: ReportData) -> list[str]:
        """Compare the manifest and the list of sources with the report."""
        fields = extract_report_fields(report)
        different = [name for name in fields if getattr(self.manifest, name) != fields[name]]
        records = {record.document: record for record in self.read_sources()}
        urls = {card.document: card.url for card in report.sources}
        named = list_document_hashes(report)
        present = {match[1] for name in self.names if (match := SNAPSHOT.fullmatch(name))}
        moved = [name for name, url in urls.items() if name in records and records[name].url != url]
        return [
            *(f"{MANIFEST} gives another {name} than the report" for name in different),
            *(f"snapshots/{name}.txt is missing" for name in named if name not in present),
            *(f"snapshots/{name}.txt is named by nothing in the report" for name in sorted(present - {*named})),
            *(f"{SOURCES} does not say what {name[:12]} is" for name in sorted(present - records.keys())),
            *(f"{SOURCES} gives another address for {name[:12]} than the report" for name in moved),
        ]

    def find_stale_copies(self, report: ReportData) -> list[str]:
        """Name the copies for people that this version would write in another way."""
        return [name for name, content in render_copies(report).items() if self._read_member(name) != content]

    def _read_json(self, name: str) -> object:
        """Read JSON in the one way it is written: what two programs could read differently is refused."""
        content = self._read_member(name)
        try:
            plain: object = json.loads(content)
            again = to_canonical_json(plain)
        except (ValueError, RecursionError) as error:
            raise EvidenceError(f"{name} cannot be read as JSON", help=_ANOTHER_COPY) from error
        if again != content:
            raise EvidenceError(f"{name} was changed: it is not written as a bundle's JSON is", help=_ANOTHER_COPY)
        return plain

    def _read_member(self, name: str) -> bytes:
        if name not in self._members:
            raise EvidenceError(f"{name} is missing", help=_ANOTHER_COPY)
        self._file.seek(self._members[name].start)
        return self._file.read(self._members[name].size)


def _validate(name: str, plain: object, validate: Callable[[object], T]) -> T:
    try:
        return validate(plain)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"])) or "all of it"
        raise EvidenceError(
            f"{name} does not hold what it should ({place[:80]})", help="It was changed, or made by a newer version."
        ) from error
