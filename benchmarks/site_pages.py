"""Real pages for a local web: the texts of public websites, read from git clones of the repositories that hold them.

A folder holds the clones, as owner+name or owner+name/repo:

    git clone --bare https://github.com/18F/handbook 18F+handbook

`SITES` has the repository, its commit, the host of the site and where its pages lie. The licences allow copies (public
domain, CC0, CC BY, MIT, Apache 2.0, MPL, OGL); nothing of it is committed here.
"""

import hashlib
import re
import subprocess
from datetime import date
from html import escape
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from tests.fakes.local_web import LocalPage

PER_SITE = 60  # pages; those whose path has the lowest hash
SHORTEST, LONGEST = 1_200, 60_000  # characters of a page that is one and takes no minute to read

SITES = (  # repository, commit, host, folder of its pages
    ("18F/18f.gsa.gov", "0a55c75e6d9b", "18f.gsa.gov", "content/"),
    ("18F/content-guide", "1b1723d3d5b8", "content-guide.18f.gov", ""),
    ("18F/handbook", "1e4955634d03", "handbook.tts.gsa.gov", "pages/"),
    ("18F/methods", "f9305795b101", "methods.18f.gov", ""),
    ("GSA/data.gov", "83ac9717b350", "data.gov", ""),
    ("GSA/digitalgov.gov", "4979583206d9", "digital.gov", "content/"),
    ("GSA/https", "8271c9045820", "https.cio.gov", "pages/"),
    ("GSA/plainlanguage.gov", "43230773bd7c", "plainlanguage.gov", "_pages/"),
    ("alphagov/government-service-design-manual", "4efa105e0dde", "gov.uk", "service-manual/"),
    ("alphagov/govuk-design-system", "efb0d77d38b7", "design-system.service.gov.uk", "src/"),
    ("carpentries/carpentries.org", "68751fe788b1", "carpentries.org", "content/posts/"),
    ("cisagov/getgov-home", "8443167472f9", "get.gov", ""),
    ("cncf/glossary", "ca1dc4034529", "glossary.cncf.io", "content/en/"),
    ("datacarpentry/R-ecology-lesson", "d90cb443251f", "datacarpentry.github.io", ""),
    ("electron/website", "a48e1042b756", "electronjs.org", "blog/"),
    ("etcd-io/website", "824597935df6", "etcd.io", "content/en/"),
    ("ethereum/EIPs", "f767a1e8078e", "eips.ethereum.org", "EIPS/"),
    ("github/choosealicense.com", "aed28f9933c9", "choosealicense.com", ""),
    ("github/government.github.com", "1d5af7e6db60", "government.github.com", ""),
    ("github/opensource.guide", "ebc9678e39b5", "opensource.guide", "_articles/"),
    ("grpc/grpc.io", "028a1d2a6d59", "grpc.io", "content/en/"),
    ("helm/helm-www", "227f41447a68", "helm.sh", "blog/"),
    ("jekyll/jekyll", "202df571314b", "jekyllrb.com", "docs/"),
    ("kubernetes/website", "56464fe6c846", "kubernetes.io", "content/en/blog/"),
    ("letsencrypt/website", "b89871ef735c", "letsencrypt.org", "content/en/"),
    ("nodejs/nodejs.org", "6f94c8a6ab64", "nodejs.org", "apps/site/pages/en/"),
    ("okfn/opendatahandbook", "5523489da2ba", "opendatahandbook.org", "guide/en/"),
    ("ooni/ooni.org", "a10db92e9973", "ooni.org", "content/"),
    ("open-contracting/standard", "0871878dcc89", "standard.open-contracting.org", "docs/"),
    ("open-telemetry/opentelemetry.io", "dd5997c8b9fa", "opentelemetry.io", "content/en/"),
    ("ossu/computer-science", "acf1cc774628", "cs.ossu.dev", ""),
    ("programminghistorian/jekyll", "a1b7b29fa800", "programminghistorian.org", "en/lessons/"),
    ("project-open-data/project-open-data.github.io", "f136070aa9fe", "project-open-data.cio.gov", ""),
    ("prometheus/docs", "c105550aad07", "prometheus.io", ""),
    ("ropensci/roweb3", "d84b7eb675f8", "ropensci.org", "content/blog/"),
    ("ruby/www.ruby-lang.org", "76ac65935704", "ruby-lang.org", "en/"),
    ("rust-lang/blog.rust-lang.org", "0243724c2e50", "blog.rust-lang.org", "content/"),
    ("rust-lang/book", "917544888a55", "doc.rust-lang.org", "src/"),
    ("swcarpentry/git-novice", "3e9bb3c8b01f", "swcarpentry.github.io", "episodes/"),
    ("the-turing-way/the-turing-way", "c98a0e6ca474", "book.the-turing-way.org", "book/"),
    ("usds/playbook", "50523b853eb6", "playbook.cio.gov", ""),
    ("uswds/uswds-site", "284e0976332d", "designsystem.digital.gov", "pages/"),
)

_NO_PAGE = re.compile(
    r"(?:^|/)(?:[._](?!pages|posts|articles|docs|plays)|node_modules|assets|vendor|tests?/|README|LICEN)"
)
_OTHER_LANGUAGE = re.compile(r"(?:^|/)(?:[a-z]{2}(?:[-_][a-zA-Z]{2,4})?)/|\.(?!en\.)[a-z]{2}\.md$")
_FRONT = re.compile(r"\A(?:---|\+\+\+)\n(.*?)\n(?:---|\+\+\+)\n", re.S)
_TEMPLATE = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.S)
_DAY = re.compile(r"(?<!\d)((?:19|20)\d\d)[-/](\d\d)[-/](\d\d)(?!\d)")
_TITLE = re.compile(r"^title\s*[:=]\s*[\"']?(.+?)[\"']?\s*$", re.M)
_DATED = re.compile(r"^date\s*[:=]\s*[\"']?((?:19|20)\d\d-\d\d-\d\d)", re.M)
_HEADING = re.compile(r"^#\s+(.+)$|<h1[^>]*>(.*?)</h1>", re.M)


class _File(NamedTuple):
    path: str
    text: str


def read_site_pages(folder: Path) -> list[LocalPage]:
    """Read up to so many pages of every site whose clone is in the folder."""
    markdown, pages = MarkdownIt("commonmark", {"html": True}).enable("table"), list[LocalPage]()
    for repository, commit, host, under in SITES:
        clone = folder / repository.replace("/", "+")
        clone = clone / "repo" if (clone / "repo").is_dir() else clone
        if clone.is_dir():
            made = (_make_page(file, host, under, markdown) for file in _read_files(clone, commit, under))
            pages += islice(filter(None, made), PER_SITE)
    return pages


def _read_files(clone: Path, commit: str, under: str) -> list[_File]:
    """Read the texts below a folder, those whose path has the lowest hash first."""
    listed = _run_git(clone, "ls-tree", "-r", "-z", "--name-only", commit).decode("utf-8", "replace").split("\0")
    names = [name for name in listed if name.startswith(under) and name.endswith((".md", ".markdown", ".html"))]
    names = [name for name in names if not _NO_PAGE.search(name) and not _OTHER_LANGUAGE.search(name[len(under) :])]
    chosen = sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[: PER_SITE * 3]
    asked = "".join(f"{commit}:{name}\n" for name in chosen)
    left, files = _run_git(clone, "cat-file", "--batch", given=asked), []
    for name in chosen:
        head, _, left = left.partition(b"\n")
        length = int(head.rpartition(b" ")[2])
        files.append(_File(name, left[:length].decode("utf-8", "replace")))
        left = left[length + 1 :]
    return files


def _run_git(clone: Path, *words: str, given: str = "") -> bytes:
    return subprocess.run(
        ["git", "-C", str(clone), *words], capture_output=True, check=True, input=given.encode()
    ).stdout


def _make_page(file: _File, host: str, under: str, markdown: MarkdownIt) -> LocalPage | None:
    front = _FRONT.match(file.text)
    head, body = (front[1], file.text[front.end() :]) if front else ("", file.text)
    body = _TEMPLATE.sub("", body)
    if not SHORTEST <= len(body) <= LONGEST:
        return None
    name = file.path[len(under) :].rsplit(".", 1)[0]
    titles = [match[1] or match[2] for match in (_TITLE.search(head), _HEADING.search(body)) if match]
    title = re.sub(r"<[^>]+>", "", titles[0] or "") if titles else name.rsplit("/", 1)[-1].replace("-", " ")
    dated = _DATED.search(head)
    day = _DAY.search(dated[1] if dated else file.path)
    published = _parse_day(day) if day else None
    html = body if file.path.endswith(".html") else markdown.render(body)
    meta = f"<meta property='article:published_time' content='{published}'>" if published else ""
    return LocalPage(
        url=f"http://{host}/{name}",
        title=title,
        html=f"<html lang=en><head><title>{escape(title)}</title>{meta}</head><body><article><h1>{escape(title)}</h1>"
        f"{html}</article></body></html>",
        published=published,
    )


def _parse_day(found: re.Match[str]) -> date | None:
    try:
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None
