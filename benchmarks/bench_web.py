"""How much longer a harvest takes than reading its pages: 200 pages of 50 hosts, 50 ms away, against the same pages
read from memory by the same workshop.

Data: the 181 pages of extraction from `OPENASSAY_EVAL_DATA`, by default ../shared/data, some of them twice. Hosts
are asked
twice at a time at most, with a quarter of a second between two starts; the server's log is held against that. At this
size the workshop is the narrow place and the pauses are longer than asked for; with 40 pages of 10 hosts they count.

Measured on 2 cores under a load of 7 to 8, which moves single rounds a lot; not yet on an idle machine:

    first run    1.11  0.97  1.42    the middle one 1.11
    second run   1.05  1.28  1.05    the middle one 1.05

Of the processor's time 1.2 s are spent outside the workshop, on requests and on serving them.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import cycle, islice, pairwise
from statistics import median

from benchmarks.evaluation.measure import require_data_folder
from benchmarks.evaluation.web_pages import load_truths, read_html
from openassay.fetch.client import FetchClient
from openassay.fetch.extractor import ExtractorPool
from openassay.fetch.formats import ContentFormat
from openassay.fetch.web_pages import WebPages
from openassay.protocols import PageResult
from openassay.settings import HarvestSettings
from openassay.storage.cache import LruCache
from tests.fakes.http_server import ServerConnection
from tests.fakes.web import FakeWeb, WebVisit, build_reply

PAGES, HOSTS, LATENCY, ROUNDS = 200, 50, 0.05, 3
ROBOTS = "User-agent: *\nDisallow: /private/\n"
SLACK = 0.12  # seconds by which a start may seem early: the log has when a request arrived, on a busy machine late


class Log:
    """What the hosts saw: when pages were asked for, and how many at once."""

    def __init__(self) -> None:
        self.starts: dict[str, list[float]] = defaultdict(list)
        self.most: Counter[str] = Counter()
        self._open: Counter[str] = Counter()

    def begins(self, visit: WebVisit) -> None:
        self.starts[visit.host].append(visit.time)
        self._open[visit.host] += 1
        self.most[visit.host] = max(self.most[visit.host], self._open[visit.host])

    def ends(self, visit: WebVisit) -> None:
        self._open[visit.host] -= 1

    def shortest_pause(self) -> float:
        gaps = [later - earlier for times in self.starts.values() for earlier, later in pairwise(times)]
        return min(gaps, default=float("inf"))


def host(number: int) -> str:
    return f"host{number}.example.org"


def serve(web: FakeWeb, bodies: Sequence[bytes], hosts: int, log: Log) -> list[str]:
    """Neighbours on one host, which is worst for whoever is polite; the address of each."""
    for number in range(hosts):
        web.add_page(f"http://{host(number)}/robots.txt", ROBOTS, type="text/plain", delay=LATENCY)
    addresses = [f"http://{host(number * hosts // len(bodies))}/page{number}" for number in range(len(bodies))]
    for address, body in zip(addresses, bodies, strict=True):

        async def play(wire: ServerConnection, visit: WebVisit, body: bytes = body) -> None:
            log.begins(visit)
            await asyncio.sleep(LATENCY)
            await wire.send(build_reply(body, type="text/html"))
            log.ends(visit)

        web.add_handler(address, play)
    return addresses


async def from_memory(workshop: ExtractorPool, bodies: Sequence[bytes]) -> float:
    began = time.perf_counter()
    read = (workshop.extract(body, format=ContentFormat.HTML, url="http://a.test/", seconds=60) for body in bodies)
    await asyncio.gather(*read)
    return time.perf_counter() - began


async def from_web(
    workshop: ExtractorPool, settings: HarvestSettings, bodies: Sequence[bytes], hosts: int
) -> tuple[float, Log, list[PageResult]]:
    log = Log()
    async with FakeWeb() as web, FetchClient(settings, resolve=web.resolve_public, dial=web.dial) as client:
        addresses = serve(web, bodies, hosts, log)
        pages = WebPages(settings, client=client, cache=LruCache(0), pool=workshop)
        began = time.perf_counter()
        found = await asyncio.gather(*map(pages.read, addresses))
        wall = time.perf_counter() - began
        await pages.close()
    return wall, log, found


async def measure(bodies: Sequence[bytes]) -> None:
    settings = HarvestSettings(least_quality=0.0)
    workshop = ExtractorPool()
    await from_memory(workshop, bodies[:8])  # warm
    ratios = []
    for number in range(1, ROUNDS + 1):
        memory = await from_memory(workshop, bodies)
        wall, log, found = await from_web(workshop, settings, bodies, HOSTS)
        read = sum(page.document is not None for page in found)
        ratios.append(wall / memory)
        print(
            f"round {number}: {memory:.2f} s from memory, {wall:.2f} s from the web ({read} of {len(found)} read), "
            f"ratio {wall / memory:.2f}; at most {max(log.most.values())} at once on a host, "
            f"shortest pause {log.shortest_pause():.3f} s"
        )
        assert max(log.most.values()) <= settings.at_once_per_host
        assert log.shortest_pause() >= settings.host_pause - SLACK
    await workshop.close()
    print(f"ratio {median(ratios):.2f} (the middle one of {ROUNDS})")


def main() -> None:
    data = require_data_folder() / "extraction"
    bodies = [read_html(data, name) for name in sorted(load_truths(data))]
    asyncio.run(measure(list(islice(cycle(bodies), PAGES))))


if __name__ == "__main__":
    main()
