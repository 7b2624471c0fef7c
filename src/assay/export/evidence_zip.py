"""A bundle of evidence as a file: a zip of which every byte is settled by what it holds.

Members stand in the order of their names, uncompressed, dated 1 January 1980, one behind the other, with nothing
before, between or after them. So the same content is the same file on every machine, whatever compressor that has;
nothing is inflated when it is read; and a byte that is not as it would be written here shows, wherever it stands.
"""

import hashlib
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, NamedTuple

from assay.errors import EvidenceError

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


class Member(NamedTuple):
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


class Sum(NamedTuple):
    """What the content of a member comes to."""

    sha256: str
    size: int


def summed(content: bytes) -> Sum:
    return Sum(hashlib.sha256(content).hexdigest(), len(content))


def packed(contents: Mapping[str, bytes]) -> Iterator[bytes]:
    """The bytes of a bundle, part by part. EvidenceError for what would not be read again."""
    members, at = [], 0
    for name in sorted(contents):
        content = contents[name]
        _check_name(name)
        _check_size(name, len(content))
        member = Member(name, len(content), zlib.crc32(content), at + _LOCAL.size + len(name))
        members.append(member)
        yield member.header
        yield content
        at = member.start + member.size
    directory = _directory(members, at)
    _check_whole(len(members), at + len(directory))
    yield directory


class Zip:
    """A bundle that is open. Nothing of it is believed: EvidenceError says what is not as it would be written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._known: dict[str, tuple[str, int]] = {}
        self.members = {member.name: member for member in _members(file)}

    def read(self, name: str) -> bytes:
        member = self.members[name]
        self._file.seek(member.start)
        return self._file.read(member.size)

    def sum(self, name: str) -> Sum:
        """Without having all of it in memory."""
        return Sum(self._digests(name)[0], self.members[name].size)

    def changed(self, name: str) -> bool:
        """Whether the content does not have the checksum that the zip itself gives for it."""
        return self._digests(name)[1] != self.members[name].crc

    def _digests(self, name: str) -> tuple[str, int]:
        if name not in self._known:
            self._known[name] = self._counted(self.members[name])
        return self._known[name]

    def _counted(self, member: Member) -> tuple[str, int]:
        self._file.seek(member.start)
        left, digest, crc = member.size, hashlib.sha256(), 0
        while left and (chunk := self._file.read(min(left, _CHUNK))):
            digest.update(chunk)
            crc = zlib.crc32(chunk, crc)
            left -= len(chunk)
        return digest.hexdigest(), crc


def _members(file: IO[bytes]) -> list[Member]:
    """As the directory lists them, if the file is laid out as it says and in no other way."""
    size = file.seek(0, 2)
    count, at = _end(file, size)
    _check_whole(count, size)
    file.seek(at)
    directory = file.read(size - at)
    members = list(_listed(directory, count))
    end = members[-1].start + members[-1].size if members else 0
    if end != at or directory != _directory(members, at):
        raise _broken("its directory does not fit what stands before it")
    for member in members:
        file.seek(member.start - len(member.header))
        if file.read(len(member.header)) != member.header:
            raise _broken(f"the header of {member.name} is not what its directory says")
    return members


def _end(file: IO[bytes], size: int) -> tuple[int, int]:
    """How many members there are, and where the directory begins."""
    file.seek(max(0, size - _END.size))
    tail = file.read(_END.size)
    if len(tail) < _END.size or not tail.startswith(b"PK\x05\x06"):
        raise _broken("it does not end as a bundle does: it is no bundle, was cut off, or something was added to it")
    _, _, _, _, count, length, at, _ = _END.unpack(tail)
    if at + length + _END.size != size:
        raise _broken("its directory is not where it says: something was added to it, or taken from it")
    return count, at


def _listed(directory: bytes, count: int) -> Iterator[Member]:
    at, start, last = 0, 0, ""
    for _ in range(count):
        if len(directory) < at + _ENTRY.size:
            raise _broken("its directory is cut off")
        _, _, _, flags, method, _, _, crc, packed_size, size, length, *_ = _ENTRY.unpack_from(directory, at)
        name = _name(directory[at + _ENTRY.size : at + _ENTRY.size + length])
        if name == last:
            raise _broken(f"{name} stands in it twice")
        if name < last:
            raise _broken(f"{name} stands in it twice, or not in the order of the names")
        if flags & 1:
            raise _broken(f"{name} is encrypted")
        if method != _STORED or packed_size != size:
            raise _broken(f"{name} is compressed, which nothing in a bundle is: it was not inflated")
        _check_size(name, size)
        member = Member(name, size, crc, start + _LOCAL.size + len(name))
        if directory[at : at + len(member.entry)] != member.entry:
            raise _broken(f"what its directory says of {name} is not as it would be written")
        yield member
        at, start, last = at + len(member.entry), member.start + size, name


def _name(raw: bytes) -> str:
    try:
        name = raw.decode("ascii")
    except UnicodeDecodeError as error:
        raise _broken("a name in it is not one that a bundle has") from error
    _check_name(name)
    return name


def _check_name(name: str) -> None:
    if name in _FIXED or SNAPSHOT.fullmatch(name):
        return
    parts = re.split(r"[/\\]", name)
    if ".." in parts or name.startswith(("/", "\\")) or ":" in name:
        raise _broken(f"{name[:_LONGEST_NAME]!r} leads out of the folder it would be unpacked in")
    raise _broken(f"{name[:_LONGEST_NAME]!r} is no part of a bundle")


def _check_size(name: str, size: int) -> None:
    most = _MOST.get(name, _MOST_SNAPSHOT)
    if size > most:
        raise _broken(f"{name} has {size / MB:,.0f} MB, and {most / MB:,.0f} MB is the most")


def _check_whole(count: int, size: int) -> None:
    if size > MOST_BYTES:
        raise _broken(f"it has {size / MB:,.0f} MB, and {MOST_BYTES / MB:,.0f} MB is the most")
    if count > MOST_MEMBERS:
        raise _broken(f"it has {count:,} members, and {MOST_MEMBERS:,} is the most")


def _directory(members: list[Member], at: int) -> bytes:
    entries = b"".join(member.entry for member in members)
    return entries + _END.pack(b"PK\x05\x06", 0, 0, len(members), len(members), len(entries), at, 0)


def _broken(what: str) -> EvidenceError:
    return EvidenceError(f"the zip itself: {what}", help="Ask whoever sent it for another copy.")
