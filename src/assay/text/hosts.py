"""What the name of a host tells: who registered it, whether it is official, how far it is trusted when ranking."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from assay.model.source import Kind

if TYPE_CHECKING:
    from tldextract import TLDExtract

_OFFICIAL = re.compile(
    r"(?:^|\.)(?:gov|edu|mil|int|(?:ac|gov|edu|mil)\.[a-z]{2}|europa\.eu"
    r"|gouv\.fr|bund\.de|gc\.ca|canada\.ca|admin\.ch|gv\.at|go\.(?:jp|kr)|gob\.[a-z]{2}|govt\.nz|nhs\.uk|un\.org)$"
)
_ADDRESS = re.compile(r"\[.*\]|\d+(?:\.\d+){3}")

# Peer review, or a library of what was reviewed.
_SCHOLARLY = frozenset(
    "doi.org arxiv.org biorxiv.org medrxiv.org nature.com science.org sciencedirect.com springer.com wiley.com "
    "cell.com plos.org pnas.org acm.org ieee.org aps.org acs.org rsc.org iop.org jstor.org oup.com cambridge.org "
    "tandfonline.com sagepub.com bmj.com thelancet.com nejm.org jamanetwork.com frontiersin.org mdpi.com "
    "biomedcentral.com semanticscholar.org europepmc.org openalex.org aclanthology.org openreview.net jmlr.org "
    "neurips.cc mlr.press".split()
)
# Bodies that set the standard or count the figures others repeat.
_STANDARD = frozenset(
    "w3.org whatwg.org ietf.org rfc-editor.org iso.org ieee802.org unicode.org python.org worldbank.org imf.org "
    "oecd.org ourworldindata.org iea.org ipcc.ch cern.ch destatis.de bundesbank.de cochranelibrary.com".split()
)
# Edited as reference, with sources named; not primary.
_REFERENCE = frozenset(
    "wikipedia.org wikidata.org wikimedia.org britannica.com merriam-webster.com scholarpedia.org mozilla.org "
    "archive.org".split()
)
# Edited, dated and answerable for mistakes; hurried.
_NEWS = frozenset(
    "reuters.com apnews.com afp.com bbc.co.uk bbc.com npr.org pbs.org nytimes.com washingtonpost.com wsj.com "
    "ft.com economist.com bloomberg.com theguardian.com dw.com spiegel.de zeit.de faz.net lemonde.fr elpais.com "
    "cnbc.com cnn.com propublica.org arstechnica.com quantamagazine.org scientificamerican.com newscientist.com".split()
)
# Anybody writes, under any name, and nobody edits.
_SOCIAL = frozenset(
    "reddit.com quora.com facebook.com instagram.com twitter.com x.com tiktok.com pinterest.com tumblr.com "
    "youtube.com linkedin.com threads.net t.me telegram.org discord.com 4chan.org vk.com weibo.com bsky.app "
    "medium.com substack.com blogspot.com wordpress.com livejournal.com fandom.com answers.com".split()
)
# Written to be found rather than read, or copied from elsewhere.
_FARM = frozenset(
    "ehow.com wikihow.com buzzfeed.com boredpanda.com hubpages.com ezinearticles.com coursehero.com studocu.com "
    "brainly.com scribd.com slideshare.net chegg.com ipl.org bartleby.com 123helpme.com gradesfixer.com "
    "studymode.com".split()
)
NEUTRAL = 0.5  # nothing is known for or against

HostClass = Literal["official", "scholarly", "standard", "reference", "news", "social", "farm"]
_LISTS: tuple[tuple[HostClass, frozenset[str]], ...] = (
    ("scholarly", _SCHOLARLY),
    ("standard", _STANDARD),
    ("reference", _REFERENCE),
    ("news", _NEWS),
    ("social", _SOCIAL),
    ("farm", _FARM),
)
_AUTHORITY: dict[HostClass, float] = {
    "official": 0.9, "scholarly": 0.9, "standard": 0.85, "reference": 0.75, "news": 0.6, "social": 0.25, "farm": 0.2,
}  # fmt: skip
_BY_KIND: dict[Kind, float] = {"academic": 0.85, "news": 0.55}


@lru_cache(maxsize=4_096)
def registered(host: str) -> str:
    """The name somebody registered: "bbc.co.uk" for "news.bbc.co.uk". A number is its own; a bare suffix has none."""
    host = host.lower().rstrip(".")
    if _ADDRESS.fullmatch(host) or "." not in host:
        return host
    found = _suffixes().extract_str(host)
    if found.suffix:
        return found.top_domain_under_public_suffix
    return ".".join(host.split(".")[-2:])  # a suffix nobody has listed is one label, says the list


@lru_cache(maxsize=1)
def _suffixes() -> "TLDExtract":
    # Imported at first use: it takes 0.3 s. The snapshot in the package is read, and nothing is fetched or written.
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


def is_official(host: str) -> bool:
    """A government, a university or an international body."""
    return bool(_OFFICIAL.search(host.lower()))


@lru_cache(maxsize=4_096)
def authority(host: str, kind: Kind = "web") -> float:
    """How far a host is trusted before anything of it was read, 0 to 1: for ranking, never for a verdict."""
    listed = class_of(host)
    return max(_BY_KIND.get(kind, 0.0) if listed != "official" else 0.0, _AUTHORITY[listed] if listed else NEUTRAL)


@lru_cache(maxsize=4_096)
def class_of(host: str) -> HostClass | None:
    """What sort of publisher a host is known to be."""
    if is_official(host):
        return "official"
    labels = host.lower().rstrip(".").split(".")
    names = {".".join(labels[at:]) for at in range(len(labels) - 1)}
    return next((name for name, listed in _LISTS if names & listed), None)


def within(host: str, domain: str) -> bool:
    """Whether a host is a domain or lies below it."""
    host, domain = (name.lower().rstrip(".").removeprefix("www.") for name in (host, domain))
    return host == domain or host.endswith(f".{domain}")
