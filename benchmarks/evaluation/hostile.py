"""Lists of hostile text and addresses: read or refused, never alive, never followed to a private place."""

import asyncio
import json
import re
from collections.abc import Sequence
from html import escape
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from lxml import html as lxml_html

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure
from openassay.errors import FetchError, ReadError
from openassay.export.html import render_fragment
from openassay.fetch.client import FetchClient
from openassay.fetch.html import extract
from openassay.models.evidence import Mark, Verdict
from openassay.models.report import (
    Coverage,
    Provenance,
    ReportClaim,
    ReportData,
    ReportSpan,
    ReportStatus,
    Section,
    Sentence,
    SourceCard,
)
from openassay.settings import HarvestSettings
from openassay.text.sentences import split_passages
from openassay.text.urls import canonicalize_url, parse_url
from tests.fakes.web import PUBLIC_ADDRESS, FakeWeb, send_raw

PROSE = "The harbour office measured a tide of 14.5 metres, and nobody has explained it so far. " * 5
QUICK = 5  # every fifth payload of a quick run
SITE = "stage.example.org"
FETCH_LIMITS: dict[str, Any] = {"seconds": 5.0, "max_bytes": 10_000}
_ADDRESS = re.compile(r"(?:url=)?([a-z0-9]+:(?://|(?=http)|(?=\d)).*)")


def load_payloads(data: Path) -> list[str]:
    scripts = (data / "hostile/xss.txt").read_text("utf-8", "replace").splitlines()
    naughty = json.loads((data / "hostile/naughty-strings.json").read_text("utf-8"))
    return [text for text in [*scripts, *naughty] if isinstance(text, str) and text.strip()]


# As a page -------------------------------------------------------------------------------------------


def build_pages(payload: str) -> tuple[str, ...]:
    return (
        f"<html><title>{payload}</title><body><article><p>{PROSE}</p><p>{payload}</p></article></body></html>",
        f"<html><body><article><p>{PROSE}</p><p>{escape(payload)}</p></article></body></html>",
        payload,
    )


def survives(payload: str) -> bool:
    try:
        for page in build_pages(payload):
            text = extract_text(page)
            list(split_passages("0" * 64, text))
        canonicalize_url(payload)
    except Exception:  # noqa: BLE001  # a crash, of whatever kind, is what is counted
        return False
    return True


def extract_text(page: str) -> str:
    """Nothing where it is refused."""
    try:
        return extract(page.encode("utf-8", "replace"), "https://port.example/").text
    except ReadError:
        return ""


# As a report -----------------------------------------------------------------------------------------


def find_active_content(payload: str) -> list[str]:
    """What a browser would run, or follow to elsewhere than the web."""
    page: Any = lxml_html.fromstring(render_fragment(build_report(payload.encode("utf-8", "replace").decode())))
    found = [element.tag for element in page.xpath("//script|//img|//iframe|//object|//embed|//form|//svg|//base")]
    found += page.xpath("//@*[starts-with(name(), 'on')]")
    return found + [link for link in page.xpath("//@href") if not link.startswith(("https://", "http://"))]


def build_report(text: str) -> ReportData:
    """A report that has it in every field."""
    fact = Sentence(text=text, kind="fact", claims=("C1",), citations=("S1",), mark=Mark.SINGLE)
    span = ReportSpan(source="S1", document="0" * 64, start=0, end=len(text), quote=text)
    card = SourceCard(id="S1", title=text, url=text, document="0" * 64, group=text, why_used=text, published=text)
    return ReportData(
        question=text, title=text, status=ReportStatus.COMPLETE, notices=(text,),
        coverage=Coverage(checked=1, total=1), sections=(Section(title=text, sentences=(fact,)),),
        claims=(ReportClaim(id="C1", text=text, verdict=Verdict.SUPPORTED, confidence=0.9, spans=(span,)),),
        sources=(card, card.model_copy(update={"url": f"https://port.example/{text}"})),
        provenance=Provenance(question=text),
    )  # fmt: skip


# As an address ---------------------------------------------------------------------------------------


def load_addresses(data: Path) -> list[str]:
    """What stands in code in the lists of attacks."""
    text = "".join((data / "hostile" / name).read_text(encoding="utf-8") for name in ("ssrf.md", "ssrf-cloud.md"))
    blocks = re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    words = [found[1] for block in blocks for word in block.split() if (found := _ADDRESS.search(word))]
    hosts = [f"http://{name}/" for name in inline if re.fullmatch(r"[\w-]+(?:\.[\w-]+)+|[\da-f:]*:[\da-f:]+", name)]
    attacks = {*words, *(word for word in inline if "://" in word), *hosts}
    return sorted(
        vector for vector in attacks if not is_public(address_host(vector))
    )  # 1.1.1.1 stands there as an example


def address_host(vector: str) -> str:
    parsed = parse_url(vector)
    return parsed.host.strip("[]").rstrip(".") if parsed and not parsed.userinfo else ""


def is_public(host: str) -> bool:
    """As the standard library has it, which is not what the guard goes by."""
    try:
        ip = ip_address(host)
    except ValueError:
        return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved) and host != "168.63.129.16"


async def probe_addresses(asked: Sequence[str], options: HarvestSettings | None = None) -> list[str]:
    """Private addresses that were called, by the address itself or by a redirect from a public site. Every name but
    the site's stands for this machine."""
    private: list[str] = []

    async def resolve(name: str) -> Sequence[str]:
        return [PUBLIC_ADDRESS] if name == SITE else ["127.0.0.1"]

    async with FakeWeb() as site:

        async def dial(address: str, port: int) -> Any:
            if not is_public(address):
                private.append(address)
                raise OSError("a private address was called")
            return await site.dial(address, port)

        async with FetchClient(options or HarvestSettings(), resolve=resolve, dial=dial) as client:
            for vector in asked:
                target = vector.encode("utf-8", "replace")
                site.add_handler(
                    f"http://{SITE}/go", send_raw(b"HTTP/1.1 302 Found\r\nLocation: " + target + b"\r\n\r\n")
                )
                for url in (vector, f"http://{SITE}/go"):
                    try:
                        await client.get(url, **FETCH_LIMITS)
                    except FetchError:
                        continue
    return private


def measure_hostile(data: Path, quick: bool) -> EvalValues:
    texts = load_payloads(data)[:: QUICK if quick else 1]
    return {
        "payloads that crash a reader": EvalValue(sum(not survives(text) for text in texts)),
        "payloads alive in a report": EvalValue(sum(bool(find_active_content(text)) for text in texts)),
        "private addresses called": EvalValue(len(asyncio.run(probe_addresses(load_addresses(data))))),
    }


MEASURES = {
    "hostile": EvalMeasure(
        name="hostile",
        about="XSS payloads, naughty strings and SSRF addresses: as pages, in every field of a report, fetched.",
        needs=("hostile",),
        licence="MIT",
        whole="all payloads and addresses",
        quick="every fifth payload, all addresses",
        figures=(
            Figure("payloads that crash a reader", floor=0, quick=0, less_is_better=True, form=".0f"),
            Figure("payloads alive in a report", floor=0, quick=0, less_is_better=True, form=".0f"),
            Figure("private addresses called", floor=0, quick=0, less_is_better=True, form=".0f"),
        ),
        run=measure_hostile,
        notes="Addresses are fetched as they are and through a redirect; tests go through every other door "
        "(`tests/system/test_ssrf.py`) and into every screen of a real browser (`tests/browser/ui/test_hostile.py`).",
    )
}
