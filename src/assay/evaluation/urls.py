"""Addresses parsed as the web platform's own test data say."""

import json
from pathlib import Path
from typing import Any

from assay.evaluation.measure import Figure, Measure, Measured, Values
from assay.text.urls import host_of, parse

PARTS = ("href", "protocol", "hostname", "port", "pathname", "search", "hash")
WEB = ("http:", "https:")


def cases(file: Path) -> list[dict[str, Any]]:
    """Between them stand comments, which are strings."""
    return [case for case in json.loads(file.read_text(encoding="utf-8")) if isinstance(case, dict)]


def parts(url: str, base: str | None) -> dict[str, object] | None:
    found = parse(url, base)
    return found and {
        "href": found.href,
        "protocol": f"{found.scheme}:",
        "hostname": found.host,
        "port": "" if found.port is None else str(found.port),
        "pathname": found.path,
        "search": f"?{found.query}" if found.query else "",
        "hash": f"#{found.fragment}" if found.fragment else "",
        "userinfo": found.userinfo,
    }


def expected(case: dict[str, Any]) -> dict[str, object] | None:
    if case.get("failure"):
        return None
    return {**{name: case[name] for name in PARTS}, "userinfo": bool(case["username"] or case["password"])}


def is_web(case: dict[str, Any]) -> bool:
    """About http(s): by what comes out, or where nothing may, by what goes in."""
    if case.get("failure"):
        return any(str(text or "").lower().startswith(("http:", "https:")) for text in (case["input"], case["base"]))
    return case["protocol"] in WEB


def measured(data: Path, quick: bool) -> Values:
    every = cases(data / "urls/urltestdata.json")
    alike = [parts(case["input"], case["base"]) == expected(case) for case in every]
    web = [right for case, right in zip(every, alike, strict=True) if is_web(case)]
    hosts = cases(data / "urls/toascii.json")
    same = [host_of(f"https://{case['input']}/x") == (case["output"] or "") for case in hosts]
    return {
        "http(s) addresses parsed alike": Measured(sum(web) / len(web)),
        "all addresses parsed alike": Measured(sum(alike) / len(alike)),
        "international hosts alike": Measured(sum(same) / len(same)),
    }


MEASURES = {
    "urls": Measure(
        name="urls",
        about="Addresses parsed as browsers do: the test data of the web platform.",
        needs=("urls",),
        licence="BSD-3",
        whole="891 addresses and the list of international hosts",
        quick="the same",
        figures=(
            Figure(
                "http(s) addresses parsed alike",
                floor=1.0,
                quick=1.0,
                published={"ada-url": 1.0, "httpx": 0.405, "urllib": 0.368},
            ),
            Figure("all addresses parsed alike", floor=1.0, quick=1.0),
            Figure("international hosts alike", floor=1.0, quick=1.0),
        ),
        run=measured,
        notes="The parser is ada-url, which this measures as we call it.",
    )
}
