"""Demo data on five companies: works on any machine, says the same every time, and is marked as a demo."""

import hashlib
import json
import re
from datetime import UTC, date, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Literal, Self

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

    @property
    def topics(self) -> list[Topic]:
        """The topics there is something on."""
        return [topic for topic in TITLES if getattr(self, topic)]

    @property
    def confidence(self) -> int:
        """How complete the data are, of 10: three for each topic, one for the sources behind them."""
        return 3 * len(self.topics) + bool(self.topics)


@lru_cache(maxsize=1)
def load_companies() -> dict[str, DemoCompany]:
    raw = json.loads(files("openassay.search").joinpath("demo_companies.json").read_text("utf-8"))
    return {company.key: company for company in map(DemoCompany.model_validate, raw["companies"])}


def normalise(name: str) -> str:
    """Reduce a name to its words without legal forms: 'Apple, Inc.' -> 'apple'."""
    return " ".join(_LEGAL_FORM.sub(" ", " ".join(words(fold(name).replace(".", " ")))).split())


@lru_cache(maxsize=1)
def load_aliases() -> dict[str, str]:
    """Map every spelling of a company to the short name people use for it."""
    aliases = {}
    for company in load_companies().values():
        short = company.key.capitalize()
        for alias in (company.key, company.name, company.ticker, *company.aliases):
            aliases[fold(alias)] = short
            aliases[normalise(alias)] = short
    return {alias: name for alias, name in aliases.items() if alias}


def find_company(name: str) -> DemoCompany | None:
    """Return a company by any of its spellings."""
    short = load_aliases().get(fold(name).strip()) or load_aliases().get(normalise(name))
    return load_companies()[short.lower()] if short else None


class DemoSource:
    """A `protocols.Source` over the demo data that knows how confident it is."""

    name = "demo"

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents

    @classmethod
    def build(cls, context: SourceContext) -> Self:
        return cls(context.store)

    def is_available(self) -> bool:
        return True

    def confidence(self, subject: str) -> float | None:
        company = find_company(subject)
        return company.confidence / 10 if company else None

    async def search(self, query: str, *, limit: int) -> list[Hit]:
        hits: list[Hit] = []
        for company in find_companies(query):
            for topic in company.topics:
                text = "\n".join(getattr(company, topic))
                document = Document(
                    hash=hashlib.sha256(text.encode()).hexdigest(),
                    text=text,
                    url=f"demo:{company.key}/{topic}",
                    title=f"{company.name}: {TITLES[topic]} (demo data)",
                    host="demo",
                    published=company.as_of,
                    fetched=datetime.combine(company.as_of, datetime.min.time(), UTC),
                    kind="demo",
                )
                await self._documents.put(document)
                hits.append(
                    Hit(
                        provider="demo",
                        query=query,
                        rank=len(hits) + 1,
                        url=document.url,
                        title=document.title,
                        snippet=text[:200],
                        host="demo",
                        kind="demo",
                        published=company.as_of,
                        score=1.0,
                        document=document.hash,
                        start=0,
                        end=len(text),
                    )
                )
        return hits[:limit]


def find_companies(text: str) -> list[DemoCompany]:
    """Return the companies that a text names, in order of appearance."""
    tokens = [token.removesuffix("'s").removesuffix("’s") for token in words(text)]
    positions: dict[str, int] = {}
    for alias, short in load_aliases().items():
        parts = alias.split()
        for start in range(len(tokens) - len(parts) + 1):
            if tokens[start : start + len(parts)] == parts:
                positions[short] = min(start, positions.get(short, start))
    return [load_companies()[short.lower()] for short in sorted(positions, key=lambda short: positions[short])]
