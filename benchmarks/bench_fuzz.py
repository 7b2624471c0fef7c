"""20,000 generated requests to every route, with a token and with links between them: python benchmarks/bench_fuzz.py

The server is a process of its own, on its own documents, without a network; runs that the requests begin are real ones.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import keep
from benchmarks.fuzzing import Effort, fuzz

CASES = 20_000
SEEDS = 20  # more of the same with another seed, until there are enough


def environment(folder: str) -> dict[str, str]:
    own = {
        "OPENASSAY_DATA_DIR": folder,
        "OPENASSAY_SOURCE": "demo",
        "OPENASSAY_OFFLINE": "true",
        "OPENASSAY_LOG_LEVEL": "error",
        "OPENASSAY_DEPTH": "quick",
        "OPENASSAY_SERVER__PORT": "0",
        "OPENASSAY_SERVER__REQUESTS_PER_MINUTE": "1000000",
        "OPENASSAY_SERVER__RUNS_PER_USER": "3",
        "OPENASSAY_SERVER__START_SECONDS": "0",
    }
    return {**{name: value for name, value in os.environ.items() if not name.startswith("OPENASSAY_")}, **own}


def main(cases: int) -> None:
    openassay = str(Path(sys.executable).with_name("openassay"))
    with tempfile.TemporaryDirectory() as folder:
        given = environment(folder)
        made = subprocess.run(
            [openassay, "admin", "users", "add", "ada", "--json"], env=given, check=True, capture_output=True, text=True
        )
        token = _secret(made.stdout)
        server = subprocess.Popen([openassay, "serve"], env=given, stdout=subprocess.PIPE, text=True)
        try:
            _report(_address(server), token, cases)
        finally:
            server.terminate()
            server.wait(60)


def _report(url: str, token: str, cases: int) -> None:
    total, server_errors, begun = 0, 0, time.monotonic()
    failures: dict[str, str] = {}
    operations: set[str] = set()
    for seed in range(SEEDS):
        found = fuzz(url, token, Effort(examples=60, chains=150, cases=cases - total), seed)
        total += found.cases
        server_errors += found.server_errors
        failures |= found.failures
        operations |= found.operations
        print(f"seed {seed}: {found.cases} cases, {len(found.operations)} operations, {dict(found.statuses)}")
        if total >= cases:
            break
    print(f"cases {total}, server errors {server_errors}, kinds of failure {len(failures)}, "
          f"{time.monotonic() - begun:.0f} s")  # fmt: skip
    for place, shown in failures.items():
        print(f"- {place}\n    {shown}".replace("\n", "\n    "))
    keep("fuzz", ("requests", "operations", "server errors", "answers that are not as described"),
         [(total, len(operations), f"**{server_errors}**", len(failures))])  # fmt: skip
    if server_errors or failures:
        sys.exit("not as it should be")


def _secret(printed: str) -> str:
    return str(json.loads(printed)["secret"])


def _address(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        if "http://" in line:
            return "http://" + line.partition("http://")[2].split()[0].rstrip("/.")
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else CASES)
