"""A web of many pages on this machine, with a search provider that ranks them by BM25.

A `Fact` becomes a family of pages: the primary source, copies of it, a retelling, pages written to be found that give a
wrong figure, pages with an older figure, a page behind a paywall, and a list that names its source. Hosts end in
.example, or in .zz, which is nobody's.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from html import escape
from typing import Any, Literal, NamedTuple
from unittest.mock import patch
from urllib.parse import urlsplit

from openassay.fetch.client import FetchClient
from openassay.models.evidence import ProviderResult
from openassay.text.urls import is_within_domain
from openassay.text.words import content_words, stem
from tests.fakes.http_server import ServerConnection, ServerRequest
from tests.fakes.search_api import QueryParameters
from tests.fakes.search_web_formats import TAVILY
from tests.fakes.web import FakeWeb, WebVisit, build_reply

PageRole = Literal["real", "primary", "copy", "retelling", "spam", "stale", "paywall", "list"]


class LocalPage(NamedTuple):
    url: str
    title: str
    html: str
    published: date | None = None  # as the provider says; the page may say it too
    role: PageRole = "real"
    fact: str = ""

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""


@dataclass(frozen=True)
class Fact:
    """One figure, as it is now and as it was. `own` and `told` are sentences with {value} and {when}; `plain` has no
    {when}, as pages have it that go out of date."""

    id: str
    question: str
    who: str  # speaks at first hand
    host: str
    title: str
    own: str
    told: str
    plain: str
    background: tuple[str, ...]
    value: str
    when: str
    published: date
    old_value: str
    old_when: str
    old_published: date
    wrong_value: str
    allow: tuple[str, ...] = ()  # hosts the person confines the question to
    deny: tuple[str, ...] = ()  # hosts they will not have
    since: date | None = None  # what was published before or after does not count
    until: date | None = None

    @property
    def is_about_past(self) -> bool:
        """Whether the period asked for leaves only the older figure."""
        return self.until is not None and self.until < self.published

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Fact":
        days = {
            name: date.fromisoformat(fields[name])
            for name in ("published", "old_published", "since", "until")
            if name in fields
        }
        lists = {name: tuple(fields[name]) for name in ("background", "allow", "deny") if name in fields}
        return cls(**{**fields, **days, **lists})


# The pages of a fact ----------------------------------------------------------------------------------

NEWS = (
    "dailyharbour.example northpost.example thecourier-online.example wirebox.example cityledger.example "
    "eveningtimes.example theobserver-east.example regionalvoice.example".split()
)
FINDABLE = (
    "top10facts.example answer-hub.example quickstats-today.example bestanswers.example "
    "all-about-numbers.example factzilla.example".split()
)
WALLED = "premiumpost.example insider-briefing.example".split()


def make_family(fact: Fact, today: date) -> list[LocalPage]:
    """Make the pages of a fact. Copies and pages written to be found say what was asked in more of its words than the
    primary source does, and are newer."""
    seed = sum(map(ord, fact.id))
    now = fact.own.format(value=fact.value, when=fact.when)
    before = fact.own.format(value=fact.old_value, when=fact.old_when)
    slug = re.sub(r"\W+", "-", fact.title.lower()).strip("-")
    release = [now, *fact.background]
    asked = fact.question.rstrip("?")
    wrong = fact.plain.format(value=fact.wrong_value)
    paper, other, third = (NEWS[(seed + step) % len(NEWS)] for step in (0, 3, 5))
    farm, second_farm = (FINDABLE[(seed + step) % len(FINDABLE)] for step in (0, 2))

    def page(
        role: PageRole, host: str, path: str, title: str, text: Iterable[str], day: date | None, site: str = ""
    ) -> LocalPage:
        return LocalPage(
            f"http://{host}/{path}", title, render_page(title, text, day, site or host), day, role, fact.id
        )

    return [
        page("primary", fact.host, f"releases/{slug}-{fact.published:%Y-%m}", f"{fact.title}, {fact.when}",
             release, fact.published, fact.who),
        page("stale", fact.host, f"releases/{slug}-{fact.old_published:%Y-%m}", f"{fact.title}, {fact.old_when}",
             [before, *fact.background[:1]], fact.old_published, fact.who),
        page("copy", paper, f"news/{slug}", f"{asked}: the new figures", release, fact.published + timedelta(days=1)),
        page("copy", other, f"business/{slug}-explained", f"{fact.title}: what you need to know",
             [*release, "Our newsletter has more such stories every morning."], fact.published + timedelta(days=2)),
        page("retelling", third, f"story/{slug}", f"New figures on {fact.title[0].lower()}{fact.title[1:]}", [
            f"{fact.who} has brought its figures up to date, and they were awaited with some impatience.",
            f"According to {fact.who}, {_lower(fact.told.format(value=fact.value, when=fact.when))}",
            "Readers had written to this newspaper about the matter for months, and their letters were passed on.",
        ], fact.published + timedelta(days=3)),
        page("stale", NEWS[(seed + 6) % len(NEWS)], f"archive/{slug}", f"{fact.title}: the state of things", [
            fact.plain.format(value=fact.old_value), *fact.background[1:],
            "The matter was discussed at length at a public meeting that many residents attended.",
        ], fact.old_published + timedelta(days=9)),
        page("spam", farm, f"q/{slug}", f"{asked}? Best answer", [
            f"{asked}? Many people ask: {_lower(asked)}? Here is the answer you were looking for.", wrong,
            f"Now you know {_lower(asked)}. Share this page with your friends, and read our other amazing answers.",
            f"More on {_lower(asked)} can be found in our list of the ten most surprising numbers.",
        ], today - timedelta(days=5)),
        page("spam", second_farm, f"facts/{slug}", f"{fact.title} facts and figures", [
            f"Are you looking for {_lower(fact.title)}? Our team of experts has collected everything about it.", wrong,
            "These facts and figures were checked by our editors and will surprise you. "
            "Click on the next page for more.",
        ], None),
        LocalPage(
            f"http://{WALLED[seed % 2]}/analysis/{slug}", f"Analysis: {asked}",
            render_page(f"Analysis: {asked}", [
                f"{asked}? The new figures for {_lower(fact.title)} hold a surprise that few analysts had expected.",
                "Subscribe to continue reading. Already a subscriber? Sign in to read the full article.",
            ], fact.published + timedelta(days=1), WALLED[seed % 2]),
            fact.published + timedelta(days=1), "paywall", fact.id,
        ),
        page("list", "worldinfigures.example", f"list/{slug}", f"{fact.title} and other figures", [
            f"{fact.plain.format(value=fact.old_value)} Source: {fact.who}.",
            "The tallest lighthouse of the coast is open to visitors in summer. Source: the harbour office.",
            "The list is brought up to date when somebody finds the time for it.",
        ], None),
    ]  # fmt: skip


def _lower(text: str) -> str:
    """A sentence as a part of another one; a name keeps its capital."""
    first, _, rest = text.partition(" ")
    return f"{first.lower()} {rest}" if first.lower() in _LOWER else text


_LOWER = frozenset("the a an how what which when at in by on there about this".split())


def render_page(title: str, paragraphs: Iterable[str], day: date | None, site: str) -> str:
    dated = f"<meta property='article:published_time' content='{day}'>" if day else ""
    shown = f"<p class=date>Published on <time datetime='{day}'>{day:%d %B %Y}</time></p>" if day else ""
    body = "".join(f"<p>{escape(text)}</p>" for text in paragraphs)
    return (
        f"<html lang=en><head><title>{escape(title)}</title><meta property='og:site_name' content='{escape(site)}'>"
        f"{dated}</head><body><nav><a href=/>Home</a> <a href=/about>About</a></nav><article><h1>{escape(title)}</h1>"
        f"{shown}{body}</article><footer>Imprint</footer></body></html>"
    )


# A provider that ranks them ---------------------------------------------------------------------------

K1, B = 1.2, 0.75
TITLE_WEIGHT = 3  # times a title's words count
SNIPPET_LENGTH = 240
_TAG = re.compile(r"<(?:script|style|nav|footer|head)\b.*?</(?:script|style|nav|footer|head)>|<[^>]+>", re.S | re.I)


@dataclass
class PageSearch:
    """BM25 over titles and texts."""

    pages: Sequence[LocalPage]
    _holders: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))

    def __post_init__(self) -> None:
        self._texts = [" ".join(_TAG.sub(" ", page.html).split()) for page in self.pages]
        self._lengths = []
        for number, (page, text) in enumerate(zip(self.pages, self._texts, strict=True)):
            counts = Counter(map(stem, [*content_words(page.title) * TITLE_WEIGHT, *content_words(text)]))
            self._lengths.append(counts.total())
            for word, count in counts.items():
                self._holders[word][number] = count
        self._average = sum(self._lengths) / max(1, len(self._lengths))

    def search(self, asked: QueryParameters, *, careless: bool = False) -> list[ProviderResult]:
        """`careless`: hosts and dates of the request are not looked at."""
        scores: dict[int, float] = defaultdict(float)
        for word in set(map(stem, content_words(asked.query))):
            holders = self._holders.get(word, {})
            rarity = math.log(1 + (len(self.pages) - len(holders) + 0.5) / (len(holders) + 0.5))
            for number, count in holders.items():
                norm = K1 * (1 - B + B * self._lengths[number] / self._average)
                scores[number] += rarity * count * (K1 + 1) / (count + norm)
        best = sorted(scores, key=lambda number: (-scores[number], number))
        found = [number for number in best if careless or _is_wanted(self.pages[number], asked)]
        return [self._make_result(number, asked.query) for number in found[: asked.limit or 10]]

    def _make_result(self, number: int, query: str) -> ProviderResult:
        page, text = self.pages[number], self._texts[number]
        words = content_words(query)
        start = min((at for word in words if (at := text.lower().find(word)) >= 0), default=0)
        return ProviderResult(
            url=page.url, title=page.title, snippet=text[start : start + SNIPPET_LENGTH], published=page.published
        )


def _is_wanted(page: LocalPage, asked: QueryParameters) -> bool:
    if asked.sites and not any(is_within_domain(page.host, site) for site in asked.sites):
        return False
    if any(is_within_domain(page.host, site) for site in asked.without):
        return False
    if page.published is None:
        return True
    return (asked.since or page.published) <= page.published <= (asked.until or page.published)


class LocalWeb(NamedTuple):
    pages: Mapping[str, LocalPage]  # by address
    queries: list[QueryParameters]
    fetched: FakeWeb
    settings: dict[str, Any]  # of whoever is to search it


@asynccontextmanager
async def serve_local_web(pages: Sequence[LocalPage], *, careless: bool = False) -> AsyncIterator[LocalWeb]:
    """Serve pages under their own hosts, and a provider that finds them; an engine that is opened within reaches both.
    It wants TAVILY_API_KEY in the environment."""
    search, queries = PageSearch(pages), list[QueryParameters]()

    async def answer(wire: ServerConnection, visit: WebVisit) -> None:
        request = ServerRequest(visit.method, visit.path, visit.query, visit.headers, visit.body)
        queries.append(TAVILY.parse_query(request))
        found = search.search(queries[-1], careless=careless)
        await wire.send(build_reply(TAVILY.build_answer(request, found), type=TAVILY.content_type))

    async with FakeWeb() as web, FakeWeb() as provider:
        provider.add_handler("http://*/*", answer)
        for page in pages:
            web.add_page(page.url, page.html)
        settings = {
            "source": "tavily",
            "offline": False,
            "search": {
                "endpoints": {"tavily": f"http://127.0.0.1:{provider.port}"},
                "requests_per_minute": {"tavily": 3000},
            },
            "harvest": {"host_pause": 0, "browser": "off"},
        }
        client = partial(FetchClient, resolve=web.resolve_public, dial=web.dial)
        with patch("openassay.fetch.client.FetchClient", client):
            yield LocalWeb({page.url: page for page in pages}, queries, web, settings)


def iter_families(facts: Iterable[Fact], today: date) -> Iterator[LocalPage]:
    for fact in facts:
        yield from make_family(fact, today)


def make_question(fact: Fact) -> str:
    """The question as the person writes it, with the sites it is confined to."""
    return " ".join([fact.question, *(f"site:{host}" for host in fact.allow)])
