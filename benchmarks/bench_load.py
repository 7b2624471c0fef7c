"""Many threads started at once over HTTP: python benchmarks/bench_load.py [THREADS]

The server, the provider of models (0.2 s an answer) and whoever asks are processes of their own. Counted are the runs
that finished, the requests that failed, the server's own CPU a run, the most memory it had, and how long /healthz took
to answer while all that went on, asked every 50 ms. A warm-up run comes first: imports are paid once.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.figures import keep

MANY = 300
AT_ONCE = os.environ.get("RUNS_AT_ONCE", "")  # another number than the server's own
QUESTION = "What's happening with Tesla and its stock?"
LATENCY = 0.2
LOOK = 0.05  # seconds between two looks at /healthz
LONGEST = 900.0
TICKS = os.sysconf("SC_CLK_TCK")
PROVIDER = """
import asyncio
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel

async def main():
    async with FakeLlmServer(FakeModel(), latency={latency}, connections=5000) as provider:
        print(provider.url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@dataclass
class Load:
    started: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0
    peak_mb: float = 0.0


@contextmanager
def process(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()


def server_environment(folder: str, provider: str) -> dict[str, str]:
    own = {
        "OPENASSAY_DATA_DIR": folder,
        "OPENASSAY_SOURCE": "demo",
        "OPENASSAY_OFFLINE": "true",
        "OPENASSAY_LOG_LEVEL": "error",
        "OPENASSAY_LLM__MODEL": "openai:gpt-4o",
        "OPENASSAY_LLM__ENDPOINTS": f'{{"openai": "{provider}/v1"}}',
        "OPENAI_API_KEY": "sk-bench-not-a-key",
        "OPENASSAY_SERVER__PORT": "0",
        "OPENASSAY_SERVER__RUNS_PER_USER": "10000",
        "OPENASSAY_SERVER__REQUESTS_PER_MINUTE": "1000000",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENASSAY_")}
    return {**kept, **own, **({"OPENASSAY_SERVER__RUNS_AT_ONCE": AT_ONCE} if AT_ONCE else {})}


def cpu_seconds(pid: int) -> float:
    """User and system, of the process and of children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(value) for value in fields[11:15]) / TICKS


def peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


async def started(client: httpx2.AsyncClient, number: int, load: Load) -> None:
    body = {"goal": f"{QUESTION} (number {number})", "interactive": False}
    try:
        answer = await client.post("/api/threads/start", json=body)
    except httpx2.TransportError as error:
        load.failed.append(f"start {number}: {type(error).__name__}")
        return
    if answer.is_success:
        load.started += 1
    else:
        load.failed.append(f"start {number}: {answer.status_code} {answer.text[:200]}")


async def watched(client: httpx2.AsyncClient, load: Load) -> None:
    """How long /healthz takes, over a connection of its own."""
    while True:
        begun = time.perf_counter()
        try:
            answer = await client.get("/healthz")
            load.health.append(time.perf_counter() - begun)
            if not answer.is_success:
                load.failed.append(f"healthz: {answer.status_code}")
        except httpx2.TransportError as error:
            load.failed.append(f"healthz: {type(error).__name__}")
        await asyncio.sleep(LOOK)


async def statuses(client: httpx2.AsyncClient) -> dict[str, int]:
    counted: dict[str, int] = {}
    cursor = None
    while True:
        params = {"limit": 100, **({"cursor": cursor} if cursor else {})}
        page = (await client.get("/api/threads", params=params)).json()
        for thread in page["threads"]:
            counted[str(thread["status"])] = counted.get(str(thread["status"]), 0) + 1
        cursor = page.get("nextCursor")
        if not cursor:
            return counted


async def finished(client: httpx2.AsyncClient, count: int) -> dict[str, int]:
    ends = time.monotonic() + LONGEST
    while True:
        found = await statuses(client)
        if sum(found.get(status, 0) for status in ("done", "failed", "cancelled")) >= count:
            return found
        if time.monotonic() > ends:
            return found
        await asyncio.sleep(3)  # a list of all is work that no run needs


async def loaded(url: str, pid: int, count: int) -> Load:
    load = Load()
    many = httpx2.Limits(max_connections=count + 50)
    async with (
        httpx2.AsyncClient(base_url=url, timeout=120, limits=many, trust_env=False) as client,
        httpx2.AsyncClient(base_url=url, timeout=30, trust_env=False) as other,
    ):
        await started(client, 0, load)
        await finished(other, 1)
        cpu, begun = cpu_seconds(pid), time.monotonic()
        watching = asyncio.create_task(watched(other, load))
        await asyncio.gather(*(started(client, number, load) for number in range(1, count + 1)))
        load.statuses = await finished(client, count + 1)
        load.seconds = time.monotonic() - begun
        watching.cancel()
    load.cpu, load.peak_mb = cpu_seconds(pid) - cpu, peak_mb(pid)
    return load


def address(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    for line in server.stdout:
        if "http://" in line:
            return "http://" + line.partition("http://")[2].split()[0]
    raise SystemExit("the server did not start")


def shown(load: Load, count: int) -> None:
    health = sorted(1000 * seconds for seconds in load.health)
    p99 = health[int(len(health) * 0.99)]
    lines = {
        "threads started at once": f"{load.started - 1} of {count}",
        "runs by status, with one to warm up": ", ".join(f"{number} {name}" for name, number in load.statuses.items()),
        "errors": f"**{len(load.failed)}**",
        "seconds": f"{load.seconds:.0f}",
        "CPU of the server a run": f"{load.cpu / count:.3f} s",
        "most memory": f"{load.peak_mb:.0f} MB",
        f"`/healthz` meanwhile, asked {len(health):,} times": (
            f"{statistics.median(health):.0f} ms median, {p99:.0f} ms at the 99th percentile, "
            f"{health[-1]:.0f} ms at the most"
        ),
    }
    for name, value in lines.items():
        print(f"{name:36} {value}")
    for failure in load.failed[:3]:
        print(f"    {failure}")
    keep("load", ("", ""), lines.items())


def main(count: int) -> None:
    openassay = str(Path(sys.executable).with_name("openassay"))
    with (
        tempfile.TemporaryDirectory() as folder,
        process([sys.executable, "-c", PROVIDER.format(latency=LATENCY)]) as provider,
    ):
        assert provider.stdout is not None
        environment = server_environment(folder, provider.stdout.readline().strip())
        with process([openassay, "serve"], env=environment) as server:
            load = asyncio.run(loaded(address(server), server.pid, count))
    shown(load, count)
    if load.failed or load.statuses != {"done": count + 1}:
        sys.exit("not everything was done")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MANY)
