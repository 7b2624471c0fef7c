"""Which requirement is proved by which tests: `python tests/traceability.py [--strict] [--all]`.

Reads the ids of docs/requirements.md and the outcomes the last whole test run left in .requirements.json.
A requirement is covered when one of its tests ran and none failed; skipped tests prove nothing. Exits 1 for a
mark with an unknown id, and with --strict also when anything is not covered.
"""

import argparse
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
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


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Which requirement is proved by which tests.")
    parser.add_argument("--strict", action="store_true", help="exit 1 unless every requirement is covered")
    parser.add_argument("--all", action="store_true", help="name every test")
    parser.add_argument("--list", type=Path, default=ROOT / "docs" / "requirements.md", help="the requirements")
    parser.add_argument("--record", type=Path, default=ROOT / ".requirements.json", help="what the tests left")
    options = parser.parse_args(arguments)
    if not options.record.is_file():
        print("no record of a test run yet: run make test first", file=sys.stderr)
        return int(options.strict)
    try:
        requirements = trace(read_ids(options.list), options.record)
    except RecordError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for requirement in requirements:
        print(requirement.row(names_shown=None if options.all else NAMES_SHOWN))
    print(summary(requirements))
    return int(options.strict and any(requirement.state != "covered" for requirement in requirements))


def _short(test: str) -> str:
    """tests/unit/test_x.py::TestY::test_z[case] -> test_z"""
    return test.split("[")[0].rsplit("::", 1)[-1]


if __name__ == "__main__":
    sys.exit(main())
