"""Addresses, parsed as browsers parse them, and what makes two of them the same page.

An identity is for comparing, not for fetching: it has lost what the page does not depend on.
"""

import base64
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import parse_qs, quote, unquote, unquote_to_bytes

from openassay.models.evidence import DocumentKind

if TYPE_CHECKING:
    from tldextract import TLDExtract


# What the name of a host tells: who registered it, whether it is official, how far it is trusted when ranking.

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
_BY_KIND: dict[DocumentKind, float] = {"academic": 0.85, "news": 0.55}


@lru_cache(maxsize=4_096)
def registrable_domain(host: str) -> str:
    """The name somebody registered: "bbc.co.uk" for "news.bbc.co.uk". A number is its own; a bare suffix has none."""
    host = host.lower().rstrip(".")
    if _ADDRESS.fullmatch(host) or "." not in host:
        return host
    found = _load_suffixes().extract_str(host)
    if found.suffix:
        return found.top_domain_under_public_suffix
    return ".".join(host.split(".")[-2:])  # a suffix nobody has listed is one label, says the list


@lru_cache(maxsize=1)
def _load_suffixes() -> "TLDExtract":
    # Imported at first use: it takes 0.3 s. The snapshot in the package is read, and nothing is fetched or written.
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


def is_official(host: str) -> bool:
    """A government, a university or an international body."""
    return bool(_OFFICIAL.search(host.lower()))


@lru_cache(maxsize=4_096)
def host_authority(host: str, kind: DocumentKind = "web") -> float:
    """How far a host is trusted before anything of it was read, 0 to 1: for ranking, never for a verdict."""
    listed = host_class(host)
    return max(_BY_KIND.get(kind, 0.0) if listed != "official" else 0.0, _AUTHORITY[listed] if listed else NEUTRAL)


@lru_cache(maxsize=4_096)
def host_class(host: str) -> HostClass | None:
    """What sort of publisher a host is known to be."""
    if is_official(host):
        return "official"
    labels = host.lower().rstrip(".").split(".")
    names = {".".join(labels[at:]) for at in range(len(labels) - 1)}
    return next((name for name, listed in _LISTS if names & listed), None)


def is_within_domain(host: str, domain: str) -> bool:
    """Whether a host is a domain or lies below it."""
    host, domain = (name.lower().rstrip(".").removeprefix("www.") for name in (host, domain))
    return host == domain or host.endswith(f".{domain}")


# Addresses that only lead to another one: redirects in search results, and copies kept by AMP caches.

_GOOGLE = re.compile(r"(?:[a-z0-9-]+\.)*google\.(?:com|[a-z]{2}|com?\.[a-z]{2})")
_AMP_CACHE = re.compile(r"/[a-z]/(s/)?(?=[^/]+\.)")  # /c/s/host/path; `s` stands for https
_AMP_VIEWER = re.compile(r"/amp/(s/)?(?=[^/]+\.)")
_YAHOO = re.compile(r"/RU=([^/]+)")
# Host -> path -> the parameter that holds the target.
_PARAMETERS = {
    "duckduckgo.com": {"/l/": "uddg", "/l": "uddg"},
    "l.facebook.com": {"/l.php": "u"},
    "lm.facebook.com": {"/l.php": "u"},
    "youtube.com": {"/redirect": "q"},
}


def redirect_target(host: str, path: str, query: str) -> str | None:
    """Where such an address leads, as it says itself; nothing is asked."""
    host = host.removeprefix("www.").rstrip(".")
    if _GOOGLE.fullmatch(host):
        return _query_target(query, "q", "url") if path == "/url" else _amp_target(_AMP_VIEWER, path, query)
    if host == "cdn.ampproject.org" or host.endswith(".cdn.ampproject.org"):
        return _amp_target(_AMP_CACHE, path, query)
    if host == "bing.com":
        if path != "/ck/a":
            return _amp_target(_AMP_VIEWER, path, query)
        # `u` is "a1" and the target in base64 without its padding.
        code = parse_qs(query).get("u", [""])[0]
        try:
            target = base64.urlsafe_b64decode(code[2:] + "=" * (-len(code[2:]) % 4)).decode()
        except ValueError:  # no base64, or no text in it
            return None
        return _web_url_or_none(target) if code.startswith("a1") else None
    if host == "r.search.yahoo.com":
        found = _YAHOO.search(path)
        return _web_url_or_none(unquote(found[1])) if found else None
    name = _PARAMETERS.get(host, {}).get(path)
    return _query_target(query, name) if name else None


def _query_target(query: str, *names: str) -> str | None:
    given = parse_qs(query)
    return next((found for name in names if name in given and (found := _web_url_or_none(given[name][0]))), None)


def _amp_target(form: re.Pattern[str], path: str, query: str) -> str | None:
    found = form.match(path)
    if not found:
        return None
    return f"{'https' if found[1] else 'http'}://{path[found.end() :]}{'?' if query else ''}{query}"


def _web_url_or_none(url: str) -> str | None:
    return url if url.lower().startswith(("http://", "https://")) else None


# What the header Retry-After asks for.

MOST_DIGITS = 12  # characters of a number that is meant


def parse_retry_after(value: str) -> float | None:
    """Seconds from now; the header holds them, or a date, of UTC where no zone is told. None for anything else."""
    value = value.strip()
    if len(value) <= MOST_DIGITS and value.isascii() and value.replace(".", "", 1).isdecimal():
        return float(value)
    try:
        then = parsedate_to_datetime(value)
        return max((then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError, IndexError):  # no date, or an impossible one
        return None


# Published works by number: one paper has many addresses, but one DOI, arXiv, PubMed or PMC number.

_DOI = re.compile(r"10\.\d{4,9}/\S+")
_DOI_NAMED = re.compile(r"(?:doi:\s*|info:doi/|urn:doi:)?(10\.\d{4,9}/\S+)", re.I)
_DOI_HOSTS = frozenset("doi.org dx.doi.org doi.dx.org hdl.handle.net".split())
# A publisher's page of a work; its figures, supplements and reviews are pages of their own.
_DOI_IN_PATH = re.compile(
    r"/(?:doi(?:/(?:abs|abstract|full|fullhtml|pdf|epdf|pdfplus|pdfdirect|epub|reader|book))?|articles?|content(?:/(?:pdf|early))?"
    r"|chapter|book|pdf|full|abs)/(10\.\d{4,9}/[^?#]+)",
    re.I,
)
_FORM = re.compile(  # abstract, full text or file: forms of one work
    r"(?:/(?:abstract|full|fulltext|full-text|pdf|epdf|pdfft|epub|html|xml|meta|summary|references|citations|metrics)"
    r"|(?<=.)\.(?:full|full-text|abstract|pdf|html?|xml|epub)|/)+$",
    re.I,
)
_PREPRINT_VERSION = re.compile(r"^(10\.(?:1101|64898)/[\d.]+)v\d+$")  # bioRxiv and medRxiv
_NATURE = re.compile(r"/articles/(s\d{5}-\d{3}-\d{4,5}-[\dxyzw]|(?:nature|ncomms|srep)\d+)", re.I)

_ARXIV_ID = r"(\d{4}\.\d{4,5}|[a-z][a-z-]+(?:\.[a-z]{2})?/\d{7})(?:v\d+)?"
_ARXIV_NAMED = re.compile(r"arxiv:\s*" + _ARXIV_ID, re.I)
_ARXIV_DOI = re.compile(r"10\.48550/arxiv\." + _ARXIV_ID)
_ARXIV_PATH = re.compile(r"/(?:abs|pdf|html|format|ps|src|e-print)/" + _ARXIV_ID + r"(?:\.pdf)?/?", re.I)
_ARXIV_HOST = re.compile(r"(?:(?:[a-z0-9-]+\.)*arxiv|ar5iv)\.org")
_OLD_CLASS = re.compile(r"\.[a-z]{2}(?=/)")  # math.GT/0309136 is math/0309136

_PUBMED = re.compile(r"(?:/pubmed)?/(\d{1,8})/?")
_PMC = re.compile(r"(?:/pmc)?/articles/pmc(\d{1,9})(?:/pdf(?:/[^/]*)?)?/?", re.I)
_EUROPE_PMC = re.compile(r"/(?:article|abstract)/(med|pmc)/(?:pmc)?(\d{1,9})/?|/articles/pmc(\d{1,9})/?", re.I)
_NUMBER_NAMED = re.compile(r"(pmid|pmc):\s*(?:pmc)?(\d{1,9})", re.I)


def parse_work_id(text: str) -> str | None:
    """The identity in a text that is nothing but a work's number: "doi:10.1000/XYZ", "arXiv:2401.01234v2"."""
    arxiv = _ARXIV_NAMED.fullmatch(text)
    if arxiv:
        return _format_arxiv_id(arxiv[1])
    number = _NUMBER_NAMED.fullmatch(text)
    if number:
        return f"{number[1].lower()}:{int(number[2])}"
    doi = _DOI_NAMED.fullmatch(text)
    return _normalize_doi(unquote(doi[1])) if doi else None


def work_id_at(host: str, path: str, query: str) -> str | None:
    """The identity of the work that a page shows; `host` without www."""
    if host in _DOI_HOSTS:
        return _normalize_doi(unquote(path).strip("/"))
    if _ARXIV_HOST.fullmatch(host) and (found := _ARXIV_PATH.fullmatch(unquote(path))):
        return _format_arxiv_id(found[1])
    if host in ("pubmed.ncbi.nlm.nih.gov", "ncbi.nlm.nih.gov") and (found := _PUBMED.fullmatch(path)):
        if host.startswith("pubmed") or path.startswith("/pubmed"):
            return f"pmid:{int(found[1])}"
    elif host in ("pmc.ncbi.nlm.nih.gov", "ncbi.nlm.nih.gov") and (found := _PMC.fullmatch(path)):
        return f"pmc:{int(found[1])}"
    elif host == "europepmc.org" and (found := _EUROPE_PMC.fullmatch(path)):
        return f"pmid:{int(found[2])}" if (found[1] or "").lower() == "med" else f"pmc:{int(found[2] or found[3])}"
    path = unquote(path)
    if found := _DOI_IN_PATH.search(path):
        return _normalize_doi(_PREPRINT_VERSION.sub(r"\1", _FORM.sub("", found[1])))
    if host == "journals.plos.org" and path.endswith(("/article", "/article/file")):
        return _normalize_doi(parse_qs(query).get("id", [""])[0])
    if host == "nature.com" and (found := _NATURE.fullmatch(_FORM.sub("", path))):
        return _normalize_doi(f"10.1038/{found[1]}")
    return None


def _normalize_doi(number: str) -> str | None:
    number = number.lower()
    if not _DOI.fullmatch(number):
        return None
    arxiv = _ARXIV_DOI.fullmatch(number)
    return _format_arxiv_id(arxiv[1]) if arxiv else f"doi:{number}"


def _format_arxiv_id(number: str) -> str:
    return f"arxiv:{_OLD_CLASS.sub('', number.lower())}"


LONGEST_URL = 8_192  # characters; what is longer is no address anybody would type, and costs more than it is worth


class UrlParts(NamedTuple):
    """The parts of an address; `query` and `fragment` come without their sign."""

    scheme: str
    host: str
    port: int | None
    path: str
    query: str
    fragment: str
    userinfo: bool
    href: str

    @property
    def is_web(self) -> bool:
        return self.scheme in ("http", "https")


def parse_url(url: str, base: str | None = None) -> UrlParts | None:
    """By the WHATWG standard; None where that knows no address."""
    # Imported at first use: it takes 0.1 s, and a run on one's own documents needs no addresses.
    from ada_url import URL

    try:
        found = URL(_replace_surrogates(url), None if base is None else _replace_surrogates(base))
    except ValueError:
        return None
    return UrlParts(
        scheme=found.protocol[:-1],
        host=found.hostname,
        port=int(found.port) if found.port else None,
        path=found.pathname,
        query=found.search[1:],
        fragment=found.hash[1:],
        userinfo=bool(found.username or found.password),
        href=found.href,
    )


def _replace_surrogates(text: str) -> str:
    """Half of a surrogate pair stands for no character; browsers put U+FFFD there."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def host_of(url: str) -> str:
    """Empty where there is none."""
    address = parse_url(url)
    return address.host if address else ""


def unwrap_url(url: str) -> str:
    """The address behind a search engine's redirect or an AMP cache; any other is returned as it is."""
    while len(url) <= LONGEST_URL:
        address = parse_url(url)
        inner = redirect_target(address.host, address.path, address.query) if address and address.is_web else None
        behind = parse_url(inner) if inner else None
        if behind is None or not behind.is_web:
            break
        url = behind.href
    return url


@lru_cache(maxsize=4_096)
def canonicalize_url(url: str) -> str:
    """The identity of the page at an address: `https://host/path?query`, or `doi:`, `arxiv:`, `pmid:`, `pmc:` and a
    number where it shows a published work. Anything that is no web address is returned stripped.

    >>> canonical("http://www.example.org:80/a/index.html?utm_source=x&b=2&a=1#top")
    'https://example.org/a?a=1&b=2'
    """
    found = url.strip()
    if len(found) > LONGEST_URL:
        return found
    # What one pass takes away may uncover more, as in /story/amp/index.html; every later pass only shortens.
    while (simpler := _simplify_url(found)) != found:
        found = simpler
    return found


def _simplify_url(text: str) -> str:
    named = parse_work_id(text)
    if named:
        return named
    if not text.lower().startswith(("http:", "https:")):
        return text.strip()
    address = parse_url(unwrap_url(text))
    if address is None:
        return text.strip()
    host, query = _MOBILE_WIKI.sub(".", address.host.rstrip(".")), _normalize_query(address.query)
    first, _, rest = host.partition(".")
    # m.co.uk is a name of its own, as m.me is.
    mobile = first in ("m", "mobile", "amp") and "." in rest and registrable_domain(rest)
    if mobile or (first == "www" and "." in rest):
        host = rest
    path = _ENCODED.sub(lambda found: _DECODED.get(found[0].upper(), found[0].upper()), address.path)
    path = _INDEX.sub("/", _SESSION_IN_PATH.sub("", path))
    work = work_id_at(host, path, query)
    if work:
        return work
    if host == "youtu.be" and path.strip("/") and "/" not in path.strip("/"):
        host, path, query = "youtube.com", "/watch", _normalize_query(f"{query}&v={path.strip('/')}")
    path = path if host in _NAMES_LAST else _AMP_START.sub("", _AMP_END.sub("", path))
    port = "" if address.port in (None, 80, 443) else f":{address.port}"
    fragment = f"#{address.fragment}" if address.fragment.startswith("!") else ""  # the address of a page in a script
    return f"https://{host}{port}{path.rstrip('/')}{'?' if query else ''}{query}{fragment}"


# Hosts -----------------------------------------------------------------------------------------------

_MOBILE_WIKI = re.compile(
    r"\.m\.(?=(?:wikipedia|wiktionary|wikimedia|wikiquote|wikisource|wikibooks|wikinews|wikiversity|wikivoyage|wikidata)\.org$)"
)


# Paths -----------------------------------------------------------------------------------------------

# Signs that mean the same encoded and plain; / ? # % ; & = + do not.
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$'()*,:@")
_DECODED = {f"%{code:02X}": chr(code) for code in _PLAIN}
_ENCODED = re.compile("%[0-9A-Fa-f]{2}")
_SESSION_IN_PATH = re.compile(r";(?:jsessionid|phpsessid|sid)=[^/;?]*", re.I)
_INDEX = re.compile(r"/(?:index\.(?:html?|php|aspx?|jsp|shtml)|default\.(?:aspx?|html?))$", re.I)
_AMP_END = re.compile(r"(?<=[^/])/amp/?$|\.amp(?=\.html?$|/?$)")
_AMP_START = re.compile(r"^/amp(?=/.)")
# Where the last part of a path is a name somebody chose, "amp" may be that name.
_NAMES_LAST = frozenset("github.com gitlab.com npmjs.com pypi.org crates.io bitbucket.org reddit.com".split())


# Queries ---------------------------------------------------------------------------------------------

# What tells a site where a reader came from, or who that is: the page is the same without. Names that mean something
# else elsewhere ("ref" is a branch, "source" and "cid" may be anything) are left alone.
_TRACKING = re.compile(
    # campaigns
    r"utm_\w+|pk_\w+|mtm_\w+|matomo_\w+|hsa_\w+|at_(?:medium|campaign|custom\d|link_\w+|bbc_team|format|ptr_name)"
    r"|ns_(?:source|mchannel|campaign|linkname|fee)|ncid|cmpid|smid|s_cid|icid|ito|spm|scm|wickedid"
    # clicks on a search result or an advertisement
    r"|gclid|gclsrc|dclid|gbraid|wbraid|gad_source|gad_campaignid|srsltid|_ga|_gl|ved|usg|sca_esv|msclkid|yclid|_openstat"
    # clicks in a social network
    r"|fbclid|fb_(?:action_ids|action_types|source|ref)|igshid|igsh|twclid|ttclid|li_fat_id|rdt_cid|epik|s_kwcid"
    r"|ref_(?:src|url)|referrer|guce_referrer\w*|guccounter|__twitter_impression|sharetype"
    # clicks in a mail
    r"|mc_[ce]id|mkt_tok|_hs(?:enc|mi)|__hs(?:sc|tc|fp)|hsctatracking|vero_(?:id|conv)|oly_(?:anon|enc)_id|_kx"
    # viewers of AMP pages
    r"|amp_(?:js_v|gsa|ct|latest_update_time)|usqp"
    # one visit, not one page
    r"|phpsessid|jsessionid|aspsessionid\w*|session_?id|cfid|cftoken|oscsid|zenid",
    re.I,
)
_AMP_VALUES = {"amp": ("", "1", "true", "amp"), "outputtype": ("amp",), "output": ("amp",)}
_SESSION = re.compile(r"[0-9a-f]{32}", re.I)  # what `sid` holds where it is no story's number


def _normalize_query(query: str) -> str:
    kept = []
    for pair in query.split("&"):
        name, value = (
            quote(unquote_to_bytes(part.replace("+", " ")), safe="-._~!$'()*,:@/") for part in pair.partition("=")[::2]
        )
        is_tracking = bool(_TRACKING.fullmatch(name)) or value.lower() in _AMP_VALUES.get(name.lower(), ())
        if name.lower() == "sid":
            is_tracking = bool(_SESSION.fullmatch(value))
        if (name or value) and not is_tracking:
            kept.append((name, value))
    # Sorted by name alone: where one comes twice, its values may have a meaning in their order.
    return "&".join(f"{name}={value}" if value else name for name, value in sorted(kept, key=lambda pair: pair[0]))
