"""Demo data on five companies: works on any machine, says the same every time, and says that it is a demo."""

import hashlib
import json
import re
from datetime import UTC, date, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Literal, Self

from pydantic import Field

from openassay.models.base import Record
from openassay.models.evidence import Document, Hit
from openassay.protocols import DocumentStore
from openassay.search.registry import SourceContext
from openassay.text.words import fold, words

Topic = Literal["recent_news", "stock_info", "key_developments"]
TITLES: dict[Topic, str] = {
    "recent_news": "recent news",
    "stock_info": "stock information",
    "key_developments": "key developments",
}
_LEGAL_FORM = re.compile(r"\b(?:inc|incorporated|corp|corporation|ltd|limited|llc|plc|co|company|com)\b")


class DemoCompany(Record):
    key: str
    name: str
    ticker: str
    aliases: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    as_of: date
    recent_news: tuple[str, ...] = ()
    stock_info: tuple[str, ...] = ()
    key_developments: tuple[str, ...] = ()


class DemoFindings(Record):
    """What the demo data know of a company; `confidence` (0-10) follows how complete they are."""

    company: str | None = None
    recent_news: tuple[str, ...] = ()
    stock_info: tuple[str, ...] = ()
    key_developments: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    confidence: int = Field(default=0, ge=0, le=10)


@lru_cache(maxsize=1)
def load_companies() -> dict[str, DemoCompany]:
    raw = json.loads(files("openassay.search").joinpath("demo_companies.json").read_text("utf-8"))
    return {company.key: company for company in map(DemoCompany.model_validate, raw["companies"])}


def normalise(name: str) -> str:
    """'Apple, Inc.' -> 'apple'."""
    return " ".join(_LEGAL_FORM.sub(" ", " ".join(words(fold(name).replace(".", " ")))).split())


@lru_cache(maxsize=1)
def load_aliases() -> dict[str, str]:
    """Every spelling that stands for a company -> the short name people use for it."""
    found = {}
    for company in load_companies().values():
        short = company.key.capitalize()
        for alias in (company.key, company.name, company.ticker, *company.aliases):
            found[fold(alias)] = short
            found[normalise(alias)] = short
    return {alias: name for alias, name in found.items() if alias}


def look_up(name: str) -> DemoFindings:
    """Findings for a company by any of its spellings; an unknown one has none and confidence 0."""
    short = load_aliases().get(fold(name).strip()) or load_aliases().get(normalise(name))
    if short is None:
        return DemoFindings()
    company = load_companies()[short.lower()]
    held = [topic for topic in TITLES if getattr(company, topic)]
    return DemoFindings(
        company=company.name,
        recent_news=company.recent_news,
        stock_info=company.stock_info,
        key_developments=company.key_developments,
        sources=tuple(demo_url(company, topic) for topic in held),
        confidence=3 * len(held) + bool(held),
    )


def demo_url(company: DemoCompany, topic: Topic) -> str:
    return f"demo:{company.key}/{topic}"


class DemoSource:
    """Implements `ports.Source` and `ports.Assessed` over the demo data."""

    name = "demo"

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents

    @classmethod
    def build(cls, bench: SourceContext) -> Self:
        return cls(bench.store)

    def is_available(self) -> bool:
        return True

    def confidence(self, subject: str) -> float | None:
        found = look_up(subject)
        return found.confidence / 10 if found.company else None

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        hits: list[Hit] = []
        for company in find_companies(query):
            for topic, title in TITLES.items():
                document = _to_document(company, topic, title)
                if document is not None:
                    await self._documents.put(document)
                    hits.append(_to_hit(document, query, len(hits) + 1))
        return hits[:limit]


def find_companies(text: str) -> list[DemoCompany]:
    """Companies a text names, in order of appearance."""
    tokens = [token.removesuffix("'s").removesuffix("’s") for token in words(text)]
    at: dict[str, int] = {}
    for alias, short in load_aliases().items():
        parts = alias.split()
        for start in range(len(tokens) - len(parts) + 1):
            if tokens[start : start + len(parts)] == parts:
                at[short] = min(start, at.get(short, start))
    return [load_companies()[short.lower()] for short in sorted(at, key=lambda short: at[short])]


def _to_document(company: DemoCompany, topic: Topic, title: str) -> Document | None:
    lines: tuple[str, ...] = getattr(company, topic)
    if not lines:
        return None
    text = "\n".join(lines)
    return Document(
        hash=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
        url=demo_url(company, topic),
        title=f"{company.name}: {title} (demo data)",
        host="demo",
        published=company.as_of,
        fetched=datetime.combine(company.as_of, datetime.min.time(), UTC),
        kind="demo",
    )


def _to_hit(document: Document, query: str, rank: int) -> Hit:
    return Hit(
        provider="demo", query=query, rank=rank, url=document.url, title=document.title, snippet=document.text[:200],
        host=document.host, kind="demo", published=document.published, score=1.0,
        document=document.hash, start=0, end=len(document.text),
    )  # fmt: skip
