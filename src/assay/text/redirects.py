"""Addresses that only lead to another one: redirects in search results, and copies kept by AMP caches."""

import base64
import re
from urllib.parse import parse_qs, unquote

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


def target(host: str, path: str, query: str) -> str | None:
    """Where such an address leads, as it says itself; nothing is asked."""
    host = host.removeprefix("www.").rstrip(".")
    if _GOOGLE.fullmatch(host):
        return _parameter(query, "q", "url") if path == "/url" else _embedded(_AMP_VIEWER, path, query)
    if host == "cdn.ampproject.org" or host.endswith(".cdn.ampproject.org"):
        return _embedded(_AMP_CACHE, path, query)
    if host == "bing.com":
        return _bing(query) if path == "/ck/a" else _embedded(_AMP_VIEWER, path, query)
    if host == "r.search.yahoo.com":
        found = _YAHOO.search(path)
        return _web(unquote(found[1])) if found else None
    name = _PARAMETERS.get(host, {}).get(path)
    return _parameter(query, name) if name else None


def _parameter(query: str, *names: str) -> str | None:
    given = parse_qs(query)
    return next((found for name in names if name in given and (found := _web(given[name][0]))), None)


def _embedded(form: re.Pattern[str], path: str, query: str) -> str | None:
    found = form.match(path)
    if not found:
        return None
    return f"{'https' if found[1] else 'http'}://{path[found.end() :]}{'?' if query else ''}{query}"


def _bing(query: str) -> str | None:
    """`u` is "a1" and the target in base64 without its padding."""
    code = parse_qs(query).get("u", [""])[0]
    if not code.startswith("a1"):
        return None
    try:
        return _web(base64.urlsafe_b64decode(code[2:] + "=" * (-len(code[2:]) % 4)).decode())
    except ValueError:  # no base64, or no text in it
        return None


def _web(url: str) -> str | None:
    return url if url.lower().startswith(("http://", "https://")) else None
