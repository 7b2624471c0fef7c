"""Demo data on five companies: works on any machine, says the same every time, and says that it is a demo."""

import hashlib
import json
import re
from datetime import UTC, date, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Literal, Self

from pydantic import Field

from assay.model.record import Record
from assay.model.source import Document, Hit
from assay.ports import DocumentStore
from assay.search.registry import Bench
from assay.text.words import fold, words

Topic = Literal["recent_news", "stock_info", "key_developments"]
TITLES: dict[Topic, str] = {
    "recent_news": "recent news",
    "stock_info": "stock information",
    "key_developments": "key developments",
}
_LEGAL_FORM = re.compile(r"\b(?:inc|incorporated|corp|corporation|ltd|limited|llc|plc|co|company|com)\b")


class Company(Record):
    key: str
    name: str
    ticker: str
    aliases: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    as_of: date
    recent_news: tuple[str, ...] = ()
    stock_info: tuple[str, ...] = ()
    key_developments: tuple[str, ...] = ()


class CompanyFindings(Record):
    """What the demo data know of a company; `confidence` (0-10) follows how complete they are."""

    company: str | None = None
    recent_news: tuple[str, ...] = ()
    stock_info: tuple[str, ...] = ()
    key_developments: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    confidence: int = Field(default=0, ge=0, le=10)


@lru_cache(maxsize=1)
def companies() -> dict[str, Company]:
    raw = json.loads(files("assay.search").joinpath("demo_companies.json").read_text("utf-8"))
    return {company.key: company for company in map(Company.model_validate, raw["companies"])}


def normalise(name: str) -> str:
    """'Apple, Inc.' -> 'apple'."""
    return " ".join(_LEGAL_FORM.sub(" ", " ".join(words(fold(name).replace(".", " ")))).split())


@lru_cache(maxsize=1)
def aliases() -> dict[str, str]:
    """Every spelling that stands for a company -> the short name people use for it."""
    found = {}
    for company in companies().values():
        short = company.key.capitalize()
        for alias in (company.key, company.name, company.ticker, *company.aliases):
            found[fold(alias)] = short
            found[normalise(alias)] = short
    return {alias: name for alias, name in found.items() if alias}


def lookup(name: str) -> CompanyFindings:
    """Findings for a company by any of its spellings; an unknown one has none and confidence 0."""
    short = aliases().get(fold(name).strip()) or aliases().get(normalise(name))
    if short is None:
        return CompanyFindings()
    company = companies()[short.lower()]
    held = [topic for topic in TITLES if getattr(company, topic)]
    return CompanyFindings(
        company=company.name,
        recent_news=company.recent_news,
        stock_info=company.stock_info,
        key_developments=company.key_developments,
        sources=tuple(url(company, topic) for topic in held),
        confidence=3 * len(held) + bool(held),
    )


def url(company: Company, topic: Topic) -> str:
    return f"demo:{company.key}/{topic}"


class DemoSource:
    """Implements `ports.Source` and `ports.Assessed` over the demo data."""

    name = "demo"

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents

    @classmethod
    def build(cls, bench: Bench) -> Self:
        return cls(bench.store)

    def is_available(self) -> bool:
        return True

    def confidence(self, subject: str) -> float | None:
        found = lookup(subject)
        return found.confidence / 10 if found.company else None

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        hits: list[Hit] = []
        for company in mentioned(query):
            for topic, title in TITLES.items():
                document = _document(company, topic, title)
                if document is not None:
                    await self._documents.put(document)
                    hits.append(_hit(document, query, len(hits) + 1))
        return hits[:limit]


def mentioned(text: str) -> list[Company]:
    """Companies a text names, in order of appearance."""
    tokens = [token.removesuffix("'s").removesuffix("’s") for token in words(text)]
    at: dict[str, int] = {}
    for alias, short in aliases().items():
        parts = alias.split()
        for start in range(len(tokens) - len(parts) + 1):
            if tokens[start : start + len(parts)] == parts:
                at[short] = min(start, at.get(short, start))
    return [companies()[short.lower()] for short in sorted(at, key=lambda short: at[short])]


def _document(company: Company, topic: Topic, title: str) -> Document | None:
    lines: tuple[str, ...] = getattr(company, topic)
    if not lines:
        return None
    text = "\n".join(lines)
    return Document(
        hash=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
        url=url(company, topic),
        title=f"{company.name}: {title} (demo data)",
        host="demo",
        published=company.as_of,
        fetched=datetime.combine(company.as_of, datetime.min.time(), UTC),
        kind="demo",
    )


def _hit(document: Document, query: str, rank: int) -> Hit:
    return Hit(
        provider="demo", query=query, rank=rank, url=document.url, title=document.title, snippet=document.text[:200],
        host=document.host, kind="demo", published=document.published, score=1.0,
        document=document.hash, start=0, end=len(document.text),
    )  # fmt: skip
