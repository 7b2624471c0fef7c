"""Which requirement is proved by which tests: `python tests/traceability.py [--strict] [--all] [--write]`.

Reads the ids of docs/requirements.md and the outcomes the last whole test run left in .requirements.json.
A requirement is covered when one of its tests ran and none failed; skipped tests prove nothing. Exits 1 for a
mark with an unknown id, and with --strict also when anything is not covered.

--write puts the marks of all tests into docs/traceability.md; that needs no run, only their collection.
"""

import argparse
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "traceability.md"
ROW = re.compile(r"^\| *([A-Z]-\d\d) *\|", re.MULTILINE)
NAMES_SHOWN = 3


class RecordError(Exception):
    """The list or a mark is wrong; the message says which."""


@dataclass(frozen=True)
class Requirement:
    id: str
    tests: dict[str, str]  # node id -> passed, failed or skipped

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.tests.values())

    @property
    def state(self) -> str:
        if self.counts["failed"]:
            return "failing"
        if self.counts["passed"]:
            return "covered"
        return f"uncovered (all {len(self.tests)} skipped)" if self.tests else "uncovered"

    def row(self, *, names_shown: int | None) -> str:
        counts = ", ".join(f"{self.counts[outcome]} {outcome}" for outcome in sorted(self.counts))
        names = list(dict.fromkeys(_short(test) for test in self.tests))
        shown = ", ".join(names[:names_shown])
        if names_shown is not None and len(names) > names_shown:
            shown += f", and {len(names) - names_shown} more"
        return f"{self.id}  {self.state:<26} {f'{counts}: {shown}' if counts else ''}".rstrip()


def read_ids(listing: Path) -> list[str]:
    ids = ROW.findall(listing.read_text(encoding="utf-8"))
    twice = sorted(name for name, count in Counter(ids).items() if count > 1)
    if twice:
        raise RecordError(f"{listing.name} lists {', '.join(twice)} more than once")
    return ids


def trace(ids: list[str], record: Path) -> list[Requirement]:
    requirements = {name: Requirement(name, {}) for name in ids}
    for test, result in json.loads(record.read_text(encoding="utf-8"))["tests"].items():
        for name in result["requirements"]:
            if name not in requirements:
                raise RecordError(f"{test} is marked {name}, which is no requirement")
            requirements[name].tests[test] = result["outcome"]
    return list(requirements.values())


def summary(requirements: list[Requirement]) -> str:
    states = Counter(requirement.state.split()[0] for requirement in requirements)
    failing = f"{states['failing']} failing, " if states["failing"] else ""
    covered, uncovered = states["covered"], states["uncovered"]
    return f"requirements: {covered} covered, {failing}{uncovered} uncovered of {len(requirements)}"


# The page --------------------------------------------------------------------------------------------


class Mark(NamedTuple):
    requirement: str
    file: str
    test: str  # without its cases; with its class, where it has one


def marked(items: Iterable[pytest.Item]) -> set[Mark]:
    """Of tests that were collected."""
    marks = set()
    for item in items:
        file, _, test = item.nodeid.partition("::")
        names = {str(name) for mark in item.iter_markers("requirement") for name in mark.args}
        marks |= {Mark(name, file, test.split("[")[0]) for name in names}
    return marks


def collect() -> set[Mark]:
    """Of all tests; none of them is run."""
    seen = Collection()
    with redirect_stdout(io.StringIO()) as told:
        code = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", str(ROOT / "tests")], plugins=[seen])
    if code != pytest.ExitCode.OK:
        raise RecordError(f"the tests could not be collected:\n{told.getvalue()}")
    return seen.marks


class Collection:
    """A plugin that looks at what pytest has found."""

    def __init__(self) -> None:
        self.marks: set[Mark] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.marks = marked(session.items)


HEAD = """\
# Which test proves what

Written by `make requirements` from the marks of the tests (`@pytest.mark.requirement("C-01")`) and from
[the requirements](requirements.md); do not edit it. A test fails where it does not name what the tests carry.
"""


def page(listing: str, marks: Iterable[Mark]) -> str:
    """Every requirement in the order of the list, with its tests by file."""
    places: dict[str, dict[str, list[str]]] = {}
    for mark in sorted(marks):
        places.setdefault(mark.requirement, {}).setdefault(mark.file, []).append(mark.test)
    return "\n".join([HEAD, *_parts(listing, places)])


def _parts(listing: str, places: dict[str, dict[str, list[str]]]) -> Iterator[str]:
    for line in listing.splitlines():
        if line.startswith("## "):
            yield f"{line}\n"
        if row := ROW.match(line):
            name = row[1]
            yield f"**{name}** {line[row.end() :].strip().removesuffix('|').strip()}\n"
            for file, tests in places.get(name, {}).items():
                yield f"- [{file}](../{file}): {', '.join(f'`{test}`' for test in tests)}"
            yield "" if name in places else "- no test\n"


def listed(text: str) -> set[Mark]:
    """What a page says."""
    marks, name = set(), ""
    for line in text.splitlines():
        if head := re.match(r"\*\*([A-Z]-\d\d)\*\*", line):
            name = head[1]
        elif place := re.match(r"- \[([^]]+)\]", line):
            marks |= {Mark(name, place[1], test) for test in re.findall(r"`([^`]+)`", line)}
    return marks


# The command -----------------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Which requirement is proved by which tests.")
    parser.add_argument("--strict", action="store_true", help="exit 1 unless every requirement is covered")
    parser.add_argument("--all", action="store_true", help="name every test")
    parser.add_argument("--write", action="store_true", help="write docs/traceability.md")
    parser.add_argument("--list", type=Path, default=ROOT / "docs" / "requirements.md", help="the requirements")
    parser.add_argument("--record", type=Path, default=ROOT / ".requirements.json", help="what the tests left")
    options = parser.parse_args(arguments)
    try:
        ids = read_ids(options.list)
        if options.write:
            PAGE.write_text(page(options.list.read_text(encoding="utf-8"), collect()), encoding="utf-8")
        if not options.record.is_file():
            print("no record of a test run yet: run make test first", file=sys.stderr)
            return int(options.strict)
        requirements = trace(ids, options.record)
    except RecordError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for requirement in requirements:
        print(requirement.row(names_shown=None if options.all else NAMES_SHOWN))
    print(summary(requirements))
    return _judged(requirements) if options.strict else 0


def _judged(requirements: list[Requirement]) -> int:
    unproved = [requirement for requirement in requirements if requirement.state != "covered"]
    for requirement in unproved:
        print(f"error: {requirement.id} is {requirement.state}", file=sys.stderr)
    return int(bool(unproved))


def _short(test: str) -> str:
    """tests/unit/test_x.py::TestY::test_z[case] -> test_z"""
    return test.split("[")[0].rsplit("::", 1)[-1]


if __name__ == "__main__":
    sys.exit(main())
