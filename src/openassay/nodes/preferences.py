"""Which sources and hosts a person prefers or avoids: what is remembered of them, and what the question itself says.

What a question or the command line names is wanted now, whatever was said once. A name with a dot is a host and stands
for its subdomains too; any other is a source. As at search engines, `site:host` in a question confines it to that host,
and `-site:host` rules it out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple

from openassay.models.evidence import Hit
from openassay.models.thread import ResearchOptions
from openassay.protocols import Source
from openassay.text.questions import Period, parse_period
from openassay.text.urls import canonicalize_url, host_of, is_within_domain, registrable_domain, unwrap_url

# A page passes this many others at most: recency is worth seven places at the top of a list and authority nine, so a
# preference decides between equals and outweighs neither; of eight pages fetched for a sub-question it changes three.
LIFT = 3
MAX_HOSTS = 5  # in one request: each takes words or characters from the query where a provider has no filter

# As people write hosts, in small letters: ASP.NET is none. A few endings are those of files far more often.
_HOST = re.compile(r"(?<![\w@./-])(https?://|www\.)?((?:[a-z0-9-]+\.)+[a-z]{2,})(?![\w.-]*\w)")
_SITE = re.compile(r"(?<!\S)(-?)site:([\w.-]+\w)", re.I)
_FILE = re.compile(r"\.(?:py|md|rs|js|ts|sh|pl|cc|so|ps|zip|mov|app|exe|txt|pdf|doc|csv|json|yaml|toml|io)$")


class SourcePreferences(NamedTuple):
    prefer: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    named: tuple[str, ...] = ()  # by the question or on the command line: never avoided
    only: tuple[str, ...] = ()  # the hosts the question is confined to

    @property
    def sites(self) -> list[str]:
        """The preferred hosts, which are worth a search of their own."""
        return [name for name in self.prefer if "." in name and not self.avoid_rule_for(name)][:MAX_HOSTS]

    @property
    def without(self) -> list[str]:
        """The hosts a provider need not search. One below which something is wanted is searched all the same."""
        return [
            host
            for host in self.avoid
            if "." in host
            and self.avoid_rule_for(host)
            and not any(is_within_domain(name, host) for name in self.named)
        ][:MAX_HOSTS]

    def avoid_rule_for(self, name: str) -> str | None:
        """Return the name that rules out a host or a source, if any does."""
        if any(_covers(one, name) for one in self.named):
            return None
        return next((one for one in self.avoid if _covers(one, name)), None)

    def prefers(self, hit: Hit) -> bool:
        return any(_covers(one, name) for one in self.prefer for name in (hit.provider, *_hosts_of(hit)))

    def filter_hits(self, hits: Iterable[Hit]) -> tuple[list[Hit], Counter[str]]:
        """Return the hits that may be read, and how many hits of which host may not."""
        kept, avoided = [], Counter[str]()
        if not self.avoid and not self.only:
            return list(hits), avoided
        for hit in hits:
            if self.only and not self.is_within(hit):
                avoided[hit.host or hit.provider] += 1
            elif name := next((name for host in _hosts_of(hit) if (name := self.avoid_rule_for(host))), None):
                avoided[name] += 1
            elif hit.fulltext and self.avoid_rule_for(host_of(hit.fulltext)):
                kept.append(hit.model_copy(update={"fulltext": None}))
            else:
                kept.append(hit)
        return kept, avoided

    def is_within(self, hit: Hit) -> bool:
        """Whether a hit is of the hosts the question is confined to. What is not of the web is the person's own."""
        hosts = _hosts_of(hit)
        return not hosts or any(is_within_domain(host, one) for host in hosts for one in self.only)

    def promote_hits(self, hits: Sequence[Hit]) -> list[Hit]:
        """Move preferred hits up by a few places."""
        if not self.prefer:
            return list(hits)
        preferred = [self.prefers(hit) for hit in hits]
        order = sorted(range(len(hits)), key=lambda rank: (rank - LIFT * preferred[rank], not preferred[rank]))
        return [hits[rank] for rank in order]


def source_preferences(question: str, options: ResearchOptions) -> SourcePreferences:
    prefer, avoid = (
        tuple(name.strip().lower().removeprefix("www.") for name in names)
        for names in (options.preferences.prefer, options.preferences.avoid)
    )
    scopes = [(minus, host.lower().removeprefix("www.")) for minus, host in _SITE.findall(question)]
    avoid = (*avoid, *(host for minus, host in scopes if minus))
    chosen = [*options.source.split(","), *(["documents"] if options.docs else [])]
    named = (*find_sites(question), *(name.strip() for name in chosen)) if avoid else ()
    return SourcePreferences(prefer, avoid, named, tuple(host for minus, host in scopes if not minus))


def asked_period(question: str, scope: str | None, today: date) -> Period:
    """Return the period a question confines itself to, in its own words or by what was said of it later."""
    return parse_period(f"{question} {scope or ''}", today)


def find_sites(question: str) -> list[str]:
    """List the hosts a question names."""
    wanted = _SITE.sub(lambda scope: " " if scope[1] else scope[0], question)
    hosts = [host for prefix, host in _HOST.findall(wanted) if prefix or not _FILE.search(host)]
    return list(dict.fromkeys(host for host in hosts if registrable_domain(host)))


def select_sources(sources: Sequence[Source], planned: Sequence[str], preferences: SourcePreferences) -> list[Source]:
    """Return the sources a plan names; where it names none, all that are not avoided. A plan is made without those:
    one that names them was changed by a person who wants them now."""
    if planned:
        return [source for source in sources if source.name in planned]
    return [source for source in sources if not preferences.avoid_rule_for(source.name)]


def _covers(rule: str, name: str) -> bool:
    return is_within_domain(name, rule) if "." in rule else rule == name


def _hosts_of(hit: Hit) -> list[str]:
    """List every host of an address: behind a redirect, and youtube.com for youtu.be."""
    urls = (unwrap_url(hit.url), canonicalize_url(hit.url))
    return list(dict.fromkeys(host for url in urls if (host := host_of(url))))
