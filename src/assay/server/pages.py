"""Pages people open in a browser: one file each, without scripts, and nothing of them is fetched from anywhere."""

import hashlib
import re
from base64 import b64encode
from html import escape
from string import Template

from fastapi.responses import HTMLResponse

_STYLE = (
    "body{font:16px/1.6 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
)
_PAGE = Template(
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="robots" content="noindex, nofollow"><meta name="referrer" content="no-referrer">'
    "<title>$title</title>$style</head><body>$body</body></html>"
)
_STYLES = re.compile(r"<style>(.*?)</style>", re.S)


def page(title: str, body: str, status: int = 200) -> HTMLResponse:
    content = written(title, body)
    return HTMLResponse(content, status, headers=headers(content))


def written(title: str, body: str) -> str:
    """`body` is HTML of ours, in which everything others have written is escaped."""
    return _PAGE.substitute(title=escape(title), style=f"<style>{_STYLE}</style>", body=body)


def message(title: str, *lines: str, status: int = 200) -> HTMLResponse:
    text = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return page(title, f"<h1>{escape(title)}</h1>{text}", status)


def headers(content: str) -> dict[str, str]:
    """Nothing may be loaded or run but the styles that stand in it; nobody is told where a reader came from."""
    styles = " ".join(f"'sha256-{_digest(style)}'" for style in _STYLES.findall(content)) or "'none'"
    policy = f"default-src 'none'; style-src {styles}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return {
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-Robots-Tag": "noindex, nofollow",
        "Cache-Control": "private, no-store",
    }


def _digest(style: str) -> str:
    return b64encode(hashlib.sha256(style.encode()).digest()).decode()
