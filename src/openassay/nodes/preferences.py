"""Whom a person wants searched and whom not: what is remembered of them, and what the question itself says.

What a question or the command line names is wanted now, whatever was said once. A name with a dot is a host and stands
for its subdomains too; any other is a source.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from openassay.models.evidence import Hit
from openassay.models.thread import ResearchOptions
from openassay.models.user import Preferences
from openassay.protocols import Source
from openassay.text.urls import canonicalize_url, host_of, is_within_domain, registrable_domain, unwrap_url

# A page passes this many others at most: recency is worth seven places at the top of a list and authority nine, so a
# wish decides between equals and outweighs neither; of eight pages fetched for a sub-question it changes three.
LIFT = 3
MOST_HOSTS = 5  # in one request: each takes words or characters from the query where a provider has no filter

# As people write hosts, in small letters: ASP.NET is none. A few endings are those of files far more often.
_HOST = re.compile(r"(?<![\w@./-])(https?://|www\.)?((?:[a-z0-9-]+\.)+[a-z]{2,})(?![\w.-]*\w)")
_FILE = re.compile(r"\.(?:py|md|rs|js|ts|sh|pl|cc|so|ps|zip|mov|app|exe|txt|pdf|doc|csv|json|yaml|toml|io)$")

_LANGUAGES = (
    "ar arabic · bg bulgarian · ca catalan · cs czech · da danish dansk · de german deutsch · el greek · en english · "
    "es spanish español castellano · et estonian · fa persian farsi · fi finnish suomi · fr french français · "
    "he hebrew · hi hindi · hr croatian · hu hungarian magyar · id indonesian · it italian italiano · ja japanese · "
    "ko korean · lt lithuanian · lv latvian · nl dutch nederlands · no norwegian norsk · pl polish polski · "
    "pt portuguese português · ro romanian · ru russian · sk slovak · sl slovene slovenian · sr serbian · "
    "sv swedish svenska · th thai · tr turkish türkçe · uk ukrainian · vi vietnamese · zh chinese"
)
LANGUAGES = {name: entry.split()[0] for entry in _LANGUAGES.split(" · ") for name in entry.split()}


class SourcePreferences(NamedTuple):
    prefer: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    named: tuple[str, ...] = ()  # by the question or on the command line: never avoided

    @property
    def sites(self) -> list[str]:
        """Hosts worth a search of their own."""
        return [name for name in self.prefer if "." in name and not self.avoid_rule_for(name)][:MOST_HOSTS]

    @property
    def without(self) -> list[str]:
        """Hosts a provider need not look at. One below which something is wanted is looked at all the same."""
        wanted = [
            name for name in self.avoid if "." in name and not any(is_within_domain(one, name) for one in self.named)
        ]
        return [name for name in wanted if self.avoid_rule_for(name)][:MOST_HOSTS]

    def avoid_rule_for(self, name: str) -> str | None:
        """What was said that rules out a host or a source."""
        if any(_covers(one, name) for one in self.named):
            return None
        return next((one for one in self.avoid if _covers(one, name)), None)

    def prefers(self, hit: Hit) -> bool:
        return any(_covers(one, name) for one in self.prefer for name in (hit.provider, *_hosts_of(hit)))

    def filter_hits(self, hits: Iterable[Hit]) -> tuple[list[Hit], Counter[str]]:
        """The hits that may be read, and how many of which host may not."""
        kept, left_out = [], Counter[str]()
        if not self.avoid:
            return list(hits), left_out
        for hit in hits:
            if name := next((name for host in _hosts_of(hit) if (name := self.avoid_rule_for(host))), None):
                left_out[name] += 1
                continue
            elsewhere = hit.fulltext and self.avoid_rule_for(host_of(hit.fulltext))
            kept.append(hit.model_copy(update={"fulltext": None}) if elsewhere else hit)
        return kept, left_out

    def promote_hits(self, hits: Sequence[Hit]) -> list[Hit]:
        """What is preferred comes a few places earlier."""
        if not self.prefer:
            return list(hits)
        liked = [self.prefers(hit) for hit in hits]
        order = sorted(range(len(hits)), key=lambda place: (place - LIFT * liked[place], not liked[place]))
        return [hits[place] for place in order]


def source_preferences(question: str, options: ResearchOptions) -> SourcePreferences:
    prefer, avoid = (
        tuple(map(_normalize_name, names)) for names in (options.preferences.prefer, options.preferences.avoid)
    )
    given = [*options.source.split(","), *(["documents"] if options.docs else [])]
    return SourcePreferences(prefer, avoid, (*find_sites(question), *(name.strip() for name in given)) if avoid else ())


def find_sites(question: str) -> list[str]:
    """Hosts a question names."""
    found = _HOST.findall(question)
    return list(
        dict.fromkeys(host for named, host in found if (named or not _FILE.search(host)) and registrable_domain(host))
    )


def language_code(preferences: Preferences) -> str | None:
    """The two letters of the language a person prefers; None for one that is not known here."""
    name = (preferences.language or "").strip().lower()
    return LANGUAGES.get(name) or LANGUAGES.get(re.split("[-_]", name)[0])


def select_sources(sources: Sequence[Source], planned: Sequence[str], taste: SourcePreferences) -> list[Source]:
    """The sources a plan names; where it names none, all that are not avoided. A plan is made without those: one that
    names them was changed by a person who wants them now."""
    if planned:
        return [source for source in sources if source.name in planned]
    return [source for source in sources if not taste.avoid_rule_for(source.name)]


def _normalize_name(name: str) -> str:
    return name.strip().lower().removeprefix("www.")


def _covers(said: str, name: str) -> bool:
    return is_within_domain(name, said) if "." in said else said == name


def _hosts_of(hit: Hit) -> list[str]:
    """By every name of its address: behind a redirect, and as youtube.com for youtu.be."""
    return list(
        dict.fromkeys(host for url in (unwrap_url(hit.url), canonicalize_url(hit.url)) if (host := host_of(url)))
    )
