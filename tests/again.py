"""The few tests that failed in the last whole run, once more, one after the other and with nothing beside them.

Python's own test runner does the same: of thousands of tests that start processes, browsers and servers on two busy
cores, one may fail for want of time. What passes now is named as unsteady, at the end, for somebody to look into; what
fails again has failed. Many failures are no accident: they are not tried again.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
RECORD = ROOT / ".requirements.json"
AGAIN = ROOT / ".reports" / "again.json"
MOST = 5


def main() -> int:
    failed = sorted(json.loads(FAILED.read_text(encoding="utf-8"))) if FAILED.is_file() else []
    if not 0 < len(failed) <= MOST:
        print(f"{len(failed)} failed: they are not tried again")
        return 1
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", f"--requirements-record={AGAIN}", *failed]
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        return 1
    settle(RECORD, AGAIN)
    for test in failed:
        print(f"UNSTEADY {test}: it failed beside the others and passed alone")
    return 0


def settle(record: Path, again: Path) -> None:
    """Requirements are proved by the second attempt, too."""
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (record, again))
    before["tests"].update(after["tests"])
    record.write_text(json.dumps(before, indent=1, sort_keys=True), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
