"""Runs a second with 1, 2 and 4 workers: python benchmarks/bench_workers.py [RUNS]

Real research runs (the demo source, quick) with a model whose provider takes 0.2 s an answer, from a queue that is full
from the start. Workers, provider and PostgreSQL share the machine's cores; the CPU of all workers says where it stops
growing. Starting up is not counted: time runs from the first run that is done to the last.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.bench_load import LATENCY, PROVIDER, cpu_seconds, process
from benchmarks.figures import keep, keep_curve
from benchmarks.fleet import Fleet
from benchmarks.postgres import server

RUNS, NUMBERS, CONCURRENCY = 120, (1, 2, 4), 4
LONGEST = 900.0


async def measured(address: str, provider: str, workers: int, runs: int) -> tuple[float, float]:
    """Runs a second, and the workers' CPU seconds a run."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(
            address, Path(folder), lease=15, concurrency=CONCURRENCY, OPENASSAY_LLM__MODEL="openai:gpt-4o",
            OPENASSAY_LLM__ENDPOINTS=f'{{"openai": "{provider}/v1"}}', OPENAI_API_KEY="sk-bench-not-a-key",
        )  # fmt: skip
        try:
            fleet.prepare()
            async with fleet.asking() as asker:
                await asker.ask(runs, people=10)
            for _ in range(workers):
                fleet.start()
            found = await fleet.done(LONGEST)
            assert found == {"done": runs}, found
            cpu = sum(cpu_seconds(worker) for worker in fleet.pids())
            return fleet.pace(), cpu / runs
        finally:
            fleet.close()


def provider_of(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def main(runs: int) -> None:
    print(f"{os.cpu_count()} cores, {runs} runs, {CONCURRENCY} at once a worker, a provider that takes {LATENCY} s")
    found: dict[int, tuple[float, float]] = {}
    with process([sys.executable, "-c", PROVIDER.format(latency=LATENCY)]) as child:
        provider = provider_of(child)
        for workers in NUMBERS:
            with server() as address:
                found[workers] = pace, cpu = asyncio.run(measured(address, provider, workers, runs))
            gained = pace / found[NUMBERS[0]][0]
            print(f"{workers} workers  {pace:.2f} runs/s  x{gained:.2f}  {cpu:.2f} s of CPU a run", flush=True)
    rows = [(workers, f"{pace:.2f}", f"{cpu:.2f} s") for workers, (pace, cpu) in found.items()]
    keep("workers", ("workers", "runs a second", "CPU of the workers a run"), rows)
    keep_curve(
        "workers", ("Runs with more workers", "workers", "runs a second"),
        {f"{os.cpu_count()} cores": [(workers, pace) for workers, (pace, _) in found.items()]}, log=False,
        note="Workers, PostgreSQL and the provider share them.",
    )  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
