"""Addresses, parsed as browsers parse them, and what makes two of them the same page.

An identity is for comparing, not for fetching: it has lost what the page does not depend on.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from assay.text.redirects import target
from assay.text.works import work_at, work_named

LONGEST = 8_192  # characters; what is longer is no address anybody would type, and costs more than it is worth


class Address(NamedTuple):
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


def parse(url: str, base: str | None = None) -> Address | None:
    """By the WHATWG standard; None where that knows no address."""
    # Imported at first use: it takes 0.1 s, and a run on one's own documents needs no addresses.
    from ada_url import URL

    try:
        found = URL(_scalars(url), None if base is None else _scalars(base))
    except ValueError:
        return None
    return Address(
        scheme=found.protocol[:-1],
        host=found.hostname,
        port=int(found.port) if found.port else None,
        path=found.pathname,
        query=found.search[1:],
        fragment=found.hash[1:],
        userinfo=bool(found.username or found.password),
        href=found.href,
    )


def _scalars(text: str) -> str:
    """Half of a surrogate pair stands for no character; browsers put U+FFFD there."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def host_of(url: str) -> str:
    """Empty where there is none."""
    address = parse(url)
    return address.host if address else ""


def unwrap(url: str) -> str:
    """The address behind a search engine's redirect or an AMP cache; any other is returned as it is."""
    while len(url) <= LONGEST:
        address = parse(url)
        inner = target(address.host, address.path, address.query) if address and address.is_web else None
        behind = parse(inner) if inner else None
        if behind is None or not behind.is_web:
            break
        url = behind.href
    return url


@lru_cache(maxsize=4_096)
def canonical(url: str) -> str:
    """The identity of the page at an address: `https://host/path?query`, or `doi:`, `arxiv:`, `pmid:`, `pmc:` and a
    number where it shows a published work. Anything that is no web address is returned stripped.

    >>> canonical("http://www.example.org:80/a/index.html?utm_source=x&b=2&a=1#top")
    'https://example.org/a?a=1&b=2'
    """
    found = url.strip()
    if len(found) > LONGEST:
        return found
    # What one pass takes away may uncover more, as in /story/amp/index.html; every later pass only shortens.
    while (simpler := _simplified(found)) != found:
        found = simpler
    return found


def _simplified(text: str) -> str:
    named = work_named(text)
    if named:
        return named
    if not text.lower().startswith(("http:", "https:")):
        return text.strip()
    address = parse(unwrap(text))
    if address is None:
        return text.strip()
    host, path, query = _host(address.host), _path(address.path), _query(address.query)
    work = work_at(host, path, query)
    if work:
        return work
    host, path, query = _video(host, path, query)
    path = path if host in _NAMES_LAST else _without_amp(path)
    port = "" if address.port in (None, 80, 443) else f":{address.port}"
    fragment = f"#{address.fragment}" if address.fragment.startswith("!") else ""  # the address of a page in a script
    return f"https://{host}{port}{path.rstrip('/')}{'?' if query else ''}{query}{fragment}"


# Hosts -----------------------------------------------------------------------------------------------

_MOBILE_WIKI = re.compile(
    r"\.m\.(?=(?:wikipedia|wiktionary|wikimedia|wikiquote|wikisource|wikibooks|wikinews|wikiversity|wikivoyage|wikidata)\.org$)"
)


def _host(host: str) -> str:
    host = _MOBILE_WIKI.sub(".", host.rstrip("."))
    first, _, rest = host.partition(".")
    if first == "www" and "." in rest:
        return rest
    return rest if first in ("m", "mobile", "amp") and "." in rest and not _is_suffix(rest) else host


def _is_suffix(host: str) -> bool:
    """m.co.uk is a name of its own, as m.me is."""
    from assay.text.hosts import registered

    return not registered(host)


# Paths -----------------------------------------------------------------------------------------------

# Signs that mean the same encoded and plain; / ? # % ; & = + do not.
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$'()*,:@")
_ENCODED = re.compile("%[0-9A-Fa-f]{2}")
_SESSION_IN_PATH = re.compile(r";(?:jsessionid|phpsessid|sid)=[^/;?]*", re.I)
_INDEX = re.compile(r"/(?:index\.(?:html?|php|aspx?|jsp|shtml)|default\.(?:aspx?|html?))$", re.I)
_AMP_END = re.compile(r"(?<=[^/])/amp/?$|\.amp(?=\.html?$|/?$)")
_AMP_START = re.compile(r"^/amp(?=/.)")
# Where the last part of a path is a name somebody chose, "amp" may be that name.
_NAMES_LAST = frozenset("github.com gitlab.com npmjs.com pypi.org crates.io bitbucket.org reddit.com".split())


def _path(path: str) -> str:
    plain = _ENCODED.sub(lambda found: _decoded(found[0]), path)
    return _INDEX.sub("/", _SESSION_IN_PATH.sub("", plain))


def _decoded(code: str) -> str:
    value = int(code[1:], 16)
    return chr(value) if value in _PLAIN else code.upper()


def _without_amp(path: str) -> str:
    return _AMP_START.sub("", _AMP_END.sub("", path))


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


def _query(query: str) -> str:
    kept = [(name, value) for name, value in _pairs(query) if not _is_noise(name, value)]
    # Sorted by name alone: where one comes twice, its values may have a meaning in their order.
    return "&".join(f"{name}={value}" if value else name for name, value in sorted(kept, key=lambda pair: pair[0]))


def _pairs(query: str) -> Iterable[tuple[str, str]]:
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if name or value:
            yield _requoted(name), _requoted(value)


def _requoted(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe="-._~!$'()*,:@/")


def _is_noise(name: str, value: str) -> bool:
    low = name.lower()
    if low == "sid":
        return bool(_SESSION.fullmatch(value))
    return bool(_TRACKING.fullmatch(name)) or value.lower() in _AMP_VALUES.get(low, ())


def _video(host: str, path: str, query: str) -> tuple[str, str, str]:
    """youtu.be/X is youtube.com/watch?v=X."""
    if host != "youtu.be" or not path.strip("/") or "/" in path.strip("/"):
        return host, path, query
    return "youtube.com", "/watch", _query(f"{query}&v={path.strip('/')}")
