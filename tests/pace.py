"""Which tests `make test` leaves to `make thorough`: `python tests/pace.py` writes tests/long.txt, from the times of
the last whole run.

The functions that take longest go first, until the rest takes no longer than BUDGET. A requirement keeps at least one
test that proves it. Names of functions, since the cases of one belong together.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
TIMES = ROOT / ".reports" / "junit.xml"
LONG = ROOT / "tests" / "long.txt"
BUDGET = (
    1000.0  # seconds of all tests together, half of that on two cores; checks and starting up take two minutes more
)
HEAD = "# Left to `make thorough`; written by tests/pace.py from the times of a whole run, longest first.\n"


class Function(NamedTuple):
    name: str
    seconds: float
    proves: frozenset[str]  # requirements, where it passed


def functions(report: Path) -> list[Function]:
    """From a report in JUnit's format, with requirements as properties of test cases."""
    seconds, proves = defaultdict[str, float](float), defaultdict[str, set[str]](set)
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314  # our own file
        name = _function(case.get("classname", ""), case.get("name", ""))
        seconds[name] += float(case.get("time", 0))
        if not any(case.find(fault) is not None for fault in ("failure", "error", "skipped")):
            properties = case.iter("property")
            proves[name] |= {str(one.get("value")) for one in properties if one.get("name") == "requirement"}
    return [Function(name, taken, frozenset(proves[name])) for name, taken in seconds.items()]


def _function(classname: str, name: str) -> str:
    """tests/unit/test_a.py::TestB::test_c"""
    parts = classname.split(".")
    end = next((number for number, part in enumerate(parts, 1) if part.startswith("test_")), len(parts))
    return "::".join([f"{'/'.join(parts[:end])}.py", *parts[end:], name.partition("[")[0]])


def long(found: Iterable[Function], budget: float) -> list[Function]:
    left = sorted(found, key=lambda one: (-one.seconds, one.name))
    proofs = Counter(id for one in left for id in one.proves)
    total, chosen = sum(one.seconds for one in left), list[Function]()
    for one in left:
        if total <= budget:
            break
        if all(proofs[id] > 1 for id in one.proves):
            proofs.subtract(one.proves)
            total -= one.seconds
            chosen.append(one)
    return chosen


def main() -> int:
    if not TIMES.is_file():
        print(f"{TIMES.relative_to(ROOT)} is not there: run make thorough first", file=sys.stderr)
        return 1
    found = functions(TIMES)
    chosen = long(found, BUDGET)
    LONG.write_text(HEAD + "".join(f"{one.name}\n" for one in chosen), encoding="utf-8")
    rest = sum(one.seconds for one in found) - sum(one.seconds for one in chosen)
    print(f"{len(chosen)} of {len(found)} functions are left to make thorough; the others take {rest:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
