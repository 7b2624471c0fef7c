"""A bundle of evidence, read by somebody who believes nothing of it. Needs no settings, no database and no network."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from assay.errors import EvidenceError, PathError
from assay.export.evidence import (
    EDITION,
    FORMAT,
    Content,
    Manifest,
    SourceRecord,
    canonical,
    needed,
    of_report,
    readable,
    sums,
)
from assay.export.evidence_zip import MANIFEST, PAGE, README, REPORT, SNAPSHOT, SOURCES, SUMS, TEXT, Zip
from assay.model.report import ReportData

_ALWAYS = (MANIFEST, SUMS, README, REPORT, SOURCES, PAGE, TEXT)
_SOURCES = TypeAdapter(tuple[SourceRecord, ...])
_AGAIN = "Ask whoever sent it for another copy."
T = TypeVar("T")


class Bundle:
    """A bundle whose layout is in order. What a check returns is what is wrong, a line each."""

    def __init__(self, zip: Zip) -> None:
        self._zip = zip
        self.manifest = _manifest(zip)

    @property
    def names(self) -> list[str]:
        return list(self._zip.members)

    def layout(self) -> list[str]:
        """What is there, against what the manifest says is there."""
        there, said = set(self.names), {MANIFEST, *self.manifest.members}
        return [
            *(f"{name} is missing" for name in sorted({*said, *_ALWAYS} - there)),
            *(f"{name} is not in the manifest" for name in sorted(there - said)),
            *(f"{name}: the zip gives another checksum for it" for name in self.names if self._zip.changed(name)),
        ]

    def hashes(self) -> list[str]:
        """Every member against the manifest, and the list for people against both."""
        said = self.manifest.members
        wrong = [name for name in said if name in self._zip.members and self._zip.sum(name) != _sum(said[name])]
        listed = sums({name: content.sha256 for name, content in said.items() if name != SUMS})
        lists = SUMS in self._zip.members and self._zip.read(SUMS) == listed
        return [
            *(f"{name} was changed: its SHA-256 is not the one in the manifest" for name in wrong),
            *([] if lists else [f"{SUMS} does not list what the manifest lists"]),
        ]

    def seal(self) -> list[str]:
        own = self.manifest.digested()
        return [] if own == self.manifest.digest else [f"{MANIFEST} was changed: its digest is {own[:16]}…"]

    def report(self) -> ReportData:
        """EvidenceError where it cannot be read."""
        return _validated(REPORT, self._zip, ReportData.model_validate)

    def sources(self) -> tuple[SourceRecord, ...]:
        return _validated(SOURCES, self._zip, _SOURCES.validate_python)

    def snapshot(self, document: str) -> str:
        """Its text; EvidenceError where there is none that has this hash."""
        name = f"snapshots/{document}.txt"
        if name not in self._zip.members:
            raise EvidenceError(f"{name} is missing", help=_AGAIN)
        if self._zip.sum(name).sha256 != document:
            raise EvidenceError(f"{name} is not the text that its name is the hash of", help=_AGAIN)
        try:
            return self._zip.read(name).decode()
        except UnicodeDecodeError as error:
            raise EvidenceError(f"{name} is not UTF-8", help=_AGAIN) from error

    def agreement(self, report: ReportData) -> list[str]:
        """The manifest and the list of sources against the report."""
        told = of_report(report)
        wrong = [name for name in told if getattr(self.manifest, name) != told[name]]
        records = {record.document: record for record in self.sources()}
        cards = {card.document: card.url for card in report.sources}
        there = {match[1] for name in self.names if (match := SNAPSHOT.fullmatch(name))}
        return [
            *(f"{MANIFEST} gives another {name} than the report" for name in wrong),
            *(f"snapshots/{name}.txt is missing" for name in needed(report) if name not in there),
            *(f"snapshots/{name}.txt is named by nothing in the report" for name in sorted(there - {*needed(report)})),
            *(f"{SOURCES} does not say what {name[:12]} is" for name in sorted(there - records.keys())),
            *(f"{SOURCES} gives another address for {name[:12]} than the report" for name, url in cards.items()
              if name in records and records[name].url != url),
        ]  # fmt: skip

    def rendered(self, report: ReportData) -> list[str]:
        """Those copies for people that this version would write in another way."""
        return [name for name, content in readable(report).items() if self._zip.read(name) != content]


@contextmanager
def opened(path: Path) -> Iterator[Bundle]:
    """PathError where there is no such file, EvidenceError where it is no bundle."""
    try:
        with path.open("rb") as file:
            yield Bundle(Zip(file))
    except OSError as error:
        raise PathError(f"cannot read {path}: {error.strerror}", help="Name a bundle: FILE.assay.") from error


def _manifest(zip: Zip) -> Manifest:
    try:
        plain = _parsed(MANIFEST, _read(MANIFEST, zip))
        if isinstance(plain, dict) and plain.get("format") == FORMAT and plain.get("edition") != EDITION:
            raise EvidenceError(
                f"it has edition {str(plain.get('edition'))[:20]} of the format, and this version reads {EDITION}",
                help="Use a newer version of Assay.",
            )
        return _known(MANIFEST, plain, Manifest.model_validate)
    except EvidenceError as error:
        error.context["row"] = "manifest"
        raise


def _validated(name: str, zip: Zip, model: Callable[[object], T]) -> T:
    return _known(name, _parsed(name, _read(name, zip)), model)


def _read(name: str, zip: Zip) -> bytes:
    if name not in zip.members:
        raise EvidenceError(f"{name} is missing", help=_AGAIN)
    return zip.read(name)


def _known(name: str, plain: object, model: Callable[[object], T]) -> T:
    try:
        return model(plain)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"])) or "all of it"
        raise EvidenceError(
            f"{name} does not hold what it should ({place[:80]})", help="It was changed, or made by a newer version."
        ) from error


def _parsed(name: str, content: bytes) -> object:
    """JSON in the one way it is written: what two programs could read differently is refused."""
    try:
        plain: object = json.loads(content)
        again = canonical(plain)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{name} cannot be read as JSON", help=_AGAIN) from error
    if again != content:
        raise EvidenceError(f"{name} was changed: it is not written as a bundle's JSON is", help=_AGAIN)
    return plain


def _sum(content: Content) -> tuple[str, int]:
    return content.sha256, content.size
