"""Writes corpora of dated documents from clones of public repositories, a file for each document.

    python -m benchmarks.corpora CLONES DATA [NAME ...]

CLONES has a clone (or a bare one) of each repository under its own name (the table `CORPORA`); DATA gets NAME/docs.
The first three are those of benchmarks/data/replay, at the commits that the claims of the set were drawn from; a claim
knows the hash of the file it quotes. Two speeches whose dates are broken in the repository have none here; no claim
quotes them. The others serve benchmarks/reading.

Licences: speeches of presidents in office are works of the United States government, in the public domain; EIPs CC0;
PEPs public domain or CC0; Foreign Relations of the United States public domain and CC0; the blogs of rOpenSci and
Kubernetes CC BY 4.0; Rust's RFCs MIT or Apache-2.0; articles of Godot MIT; the blog of
Home Assistant CC BY-NC-SA 4.0 (read here, and neither shipped nor learned from); proposals and visions of Swift
Apache-2.0 (with its runtime library exception); the blogs of Rust and IPFS MIT or Apache-2.0; the blog of 18F public
domain and CC0;
Wikinews (English and French) CC BY 2.5; the blog of the Carpentries CC BY 4.0; newsletters of Bitcoin Optech MIT;
the blog of Matrix CC BY-SA (only read); that of Istio, with its announcements, Apache-2.0; the blog of Jenkins CC BY-SA
4.0 (only read); news of the Galaxy community CC BY 4.0.
"""

import csv
import html
import re
import subprocess
import sys
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import yaml
from lxml import etree

MOST_BYTES = 59_500  # of a text
SPEECHES, EIPS, POSTS = (
    "7cc60babb0795b716947978145c82d2da482f2ba",
    "f767a1e8078e17c9b381a91d35a09492189ede1b",
    "d84b7eb675f82b6282411055374bd1a7c16b4b5a",
)
PEPS, KUBERNETES, DIPLOMATIC = (
    "ba4deeb7969588d937da609008d05bb83a47b1ab",
    "56464fe6c846523da555b49fbb012f0e270871ae",
    "d3dff1508b3ee55c20d3ad0ae9b9ef3cc7736d76",
)
RFCS, GODOT = "354518a8c9025f40be6f730452c1bfe71a12dc22", "b9206defa2c4ca4c3aa79f793a7dc8921549b663"
WIKINEWS = "a2dbd33e757f75a61d68d22d1a29e840bdffa711"
RUST_BLOG, IPFS = "0243724c2e50ad2b7ebd3d9dbc7cd88aed7605a3", "dd1ed22384f8b944e46a2324a6b4a1dc3a948bd1"
HOME_ASSISTANT = "b711f6b8ec0b30aae368470600d166e9c836e9c9"
FRENCH_NEWS = "0fe35f0d68"
SWIFT, EIGHTEEN_F = "0105e139a22938561c700cfbb89ddc3ebe402f0c", "0a55c75e6d9bc71c80136a3867dac52356177443"
CARPENTRIES, OPTECH = "68751fe788b156b50ef911539aef3d0cb876a3e0", "082bd77bb8008b8a31df390d0a515f4b6413b082"
MATRIX, ISTIO = "a4591cda845a8b57d19f41c133293f04c82c9153", "8e87ee7fa81916bbff19cc8e264cce29a1d394ea"
JENKINS, GALAXY = "2973826aa6faa40ac1c100deb38ce8bd473614ca", "9b5f60735756058fc91197ac0979819d80a9de23"
EIGHTEEN_F_AUTHORS = "40da2c9b0b85912801a178b0738638f9437c41a5"  # the last with the names of those who posts name by id
LEAST_WORDS = {
    "speeches": 80, "eips": 120, "posts": 150, "peps": 200, "kubernetes": 200, "diplomatic": 200, "rfcs": 150,
    "godot": 150, "home assistant": 150, "swift": 150, "18f": 150,
    "rust blog": 150, "ipfs": 150, "wikinews": 120, "french": 170,
    "carpentries": 150, "optech": 150, "matrix": 200, "istio": 100,
    "jenkins": 200, "galaxy": 200,
}  # fmt: skip
PRESIDENTS = {
    "lbjohnson": "Lyndon B. Johnson", "reagan": "Ronald Reagan", "fdroosevelt": "Franklin D. Roosevelt",
    "obama": "Barack Obama", "kennedy": "John F. Kennedy", "gwbush": "George W. Bush", "clinton": "Bill Clinton",
    "wilson": "Woodrow Wilson", "grant": "Ulysses S. Grant", "johnson": "Andrew Johnson",
    "cleveland": "Grover Cleveland", "hoover": "Herbert Hoover", "jackson": "Andrew Jackson", "polk": "James K. Polk",
    "jefferson": "Thomas Jefferson", "nixon": "Richard Nixon", "bush": "George H. W. Bush",
    "roosevelt": "Theodore Roosevelt", "madison": "James Madison", "carter": "Jimmy Carter",
    "washington": "George Washington", "truman": "Harry S. Truman", "tyler": "John Tyler",
    "harding": "Warren G. Harding", "hayes": "Rutherford B. Hayes", "bharrison": "Benjamin Harrison",
    "pierce": "Franklin Pierce", "lincoln": "Abraham Lincoln", "mckinley": "William McKinley", "ford": "Gerald Ford",
    "buchanan": "James Buchanan", "coolidge": "Calvin Coolidge", "taft": "William Howard Taft",
    "arthur": "Chester A. Arthur", "vanburen": "Martin Van Buren", "monroe": "James Monroe", "adams": "John Adams",
    "jqadams": "John Quincy Adams", "fillmore": "Millard Fillmore", "eisenhower": "Dwight D. Eisenhower",
    "taylor": "Zachary Taylor", "harrison": "William Henry Harrison", "garfield": "James A. Garfield",
}  # fmt: skip
# In office, where the corpus has speeches of other times too: those are no works of the government.
TERMS = {
    "Franklin D. Roosevelt": ("1933-03-04", "1945-04-12"), "Harry S. Truman": ("1945-04-12", "1953-01-20"),
    "Dwight D. Eisenhower": ("1953-01-20", "1961-01-20"), "John F. Kennedy": ("1961-01-20", "1963-11-22"),
    "Lyndon B. Johnson": ("1963-11-22", "1969-01-20"), "Richard Nixon": ("1969-01-20", "1974-08-09"),
    "Gerald Ford": ("1974-08-09", "1977-01-20"), "Jimmy Carter": ("1977-01-20", "1981-01-20"),
    "Ronald Reagan": ("1981-01-20", "1989-01-20"), "George H. W. Bush": ("1989-01-20", "1993-01-20"),
    "Bill Clinton": ("1993-01-20", "2001-01-20"), "George W. Bush": ("2001-01-20", "2009-01-20"),
    "Barack Obama": ("2009-01-20", "2017-01-20"),
}  # fmt: skip
_PARTY = re.compile(r"\bdebate|convention|nomination|campaign|acceptance", re.I)
_MARKUP = re.compile(
    r"</?(p|div|a|img|span|br|em|strong|h\d|ul|ol|li|blockquote|figure|figcaption|center|table|tr|td|th|sup|b|i|hr|pre|"
    r"code)\b[^>]*>",
    re.I,
)

_MORE_MARKUP = re.compile(
    r"</?(tbody|thead|caption|dl|dt|dd|section|aside|figure|small|g-emoji|details|summary|picture|source|del|ins|u|s|"
    r"video|kbd|tt)\b[^>]*>"
)


class CorpusFile(NamedTuple):
    name: str
    head: tuple[str, ...]  # title, author, publisher, date
    text: str

    def write(self, folder: Path) -> None:
        cut = self.text.encode()[:MOST_BYTES].decode("utf-8", "ignore")
        (folder / self.name).write_text("\n".join(self.head) + f"\n\n{cut}\n", encoding="utf-8")


def read_repository(clone: Path, commit: str, pattern: str) -> Iterator[tuple[re.Match[str], str]]:
    """The files of a commit whose paths match, with their texts."""

    def git(*args: str) -> bytes:
        return subprocess.run(["git", "-C", str(clone), *args], capture_output=True, check=True).stdout

    for path in git("ls-tree", "-r", commit, "--name-only").decode().splitlines():
        if match := re.match(pattern, path):
            raw = git("show", f"{commit}:{path}")
            try:
                yield match, raw.decode("utf-8")
            except UnicodeDecodeError:
                yield match, raw.decode("cp1252", "replace")


def list_speeches(clone: Path) -> Iterator[CorpusFile]:
    seen = set[str]()
    for match, raw in read_repository(clone, SPEECHES, r"Dataset/Fine-Tune/(\w+)/(.+)\.txt$"):
        title = re.search(r'<title=\s*"?(.*?)"?\s*>', raw)
        day = re.search(r'<date=\s*"?(.*?)"?\s*>', raw)
        text = re.sub(r"</?[a-zA-Z][^>\n]{0,40}>", "", re.sub(r"<(title|date)=.*?>", "", raw)).strip()
        known = text[:300] in seen or len(text.split()) < LEAST_WORDS["speeches"]
        if match[1] not in PRESIDENTS or not title or not title[1].strip() or known:
            continue
        seen.add(text[:300])
        author, date = PRESIDENTS[match[1]], read_day(day[1]) if day else ""
        begin, end = TERMS.get(author, ("", "9"))
        party = date >= "1930" and _PARTY.search(title[1]) and "United Nations" not in title[1]
        if (date and not begin <= date <= end) or party:
            continue
        head = (title[1].strip(), f"Author: {author}", "Publisher: President of the United States")
        text = re.sub(r"\n(?=\S)", "\n\n", re.sub(r"\n{2,}", "\n", text))
        yield CorpusFile(f"{match[2]}.txt", (*head, *([f"Date: {date}"] if date else [])), text)


def read_day(told: str) -> str:
    for form in ("%B %d, %Y", "%b %d, %Y", "%B %d %Y", "%B, %d, %Y", "%d-%b-%Y", "%d-%B-%Y"):
        try:
            return datetime.strptime(told.strip().rstrip("."), form).date().isoformat()
        except ValueError:
            continue
    return ""


def list_proposals(clone: Path) -> Iterator[CorpusFile]:
    for match, raw in read_repository(clone, EIPS, r"EIPS/(eip-\d+)\.md$"):
        parts = re.match(r"---\s*\n(.*?)\n---\s*\n(.*)", raw, re.S)
        fields = dict(re.findall(r"^([\w-]+):\s*(.*)$", parts[1], re.M)) if parts else {}
        if not parts or len(parts[2].split()) < LEAST_WORDS["eips"] or fields.get("status") == "Moved":
            continue
        head = [f"{match[1].upper()}: {fields['title'].strip().strip(chr(34))}"]
        if fields.get("author"):
            head.append("Author: " + re.sub(r"\s*(\(@[^)]*\)|<[^>]*>)", "", fields["author"]))
        head.append("Publisher: Ethereum Improvement Proposals")
        head += [f"Date: {fields['created'].strip()[:10]}"] if fields.get("created") else []
        lead = [fields["description"].strip()] if fields.get("description") else []
        names = [name for name in ("status", "type", "category", "requires") if fields.get(name)]
        lead.append(" ".join(f"{name.capitalize()}: {fields[name]}." for name in names))
        text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", parts[2].strip())
        yield CorpusFile(f"{match[1]}.md", tuple(head), "\n\n".join([*lead, text]))


def list_posts(clone: Path) -> Iterator[CorpusFile]:
    seen = set[str]()
    for match, raw in read_repository(clone, POSTS, r"content/blog/((20[^/]*)\.md|(20[^/]*)/index(\.en)?\.md)$"):
        parts = re.match(r"\ufeff?---\s*\n(.*?)\n---\s*\n(.*)", raw, re.S)
        if not parts or re.search(r"\.(es|pt|fr)\.md$", match[0]):
            continue
        title = re.search(r"^title:[^\n]*((?:\n[ \t]+[^\n]+)*)", parts[1], re.M)
        text = clean_post(parts[2])
        if not title or len(text.split()) < LEAST_WORDS["posts"] or text[:200] in seen:
            continue
        seen.add(text[:200])
        told = unquote(re.sub(r"\s+", " ", re.sub(r"^title:\s*([>|]-?)?\s*", "", title[0]))).replace("''", "'")
        authors = ", ".join(list_authors(parts[1]))
        day = re.search(r"^date:\s*[\"']?(\d{4}-\d{2}-\d{2})", parts[1], re.M)
        day = day or re.search(r"/(\d{4}-\d{2}-\d{2})", match[0])
        head = [told, *([f"Author: {authors}"] if authors else []), "Publisher: rOpenSci"]
        yield CorpusFile(f"{match[2] or match[3]}.md", (*head, *([f"Date: {day[1]}"] if day else [])), text)


def clean_post(text: str) -> str:
    for pattern in (r"<!--.*?-->", r"\{\{[<%].*?[>%]\}\}"):
        text = re.sub(pattern, "", text, flags=re.S)
    text = re.sub(r"<(script|style|svg|iframe).*?</\1>", "", text, flags=re.S | re.I)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]+)\]\[[^\]]*\]", r"\1", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text))
    return re.sub(r"\n{3,}", "\n\n", _MARKUP.sub("", text)).strip()


def list_authors(fields: str) -> list[str]:
    if found := re.search(r"^authors?:[ \t]*(\S.*)$", fields, re.M):
        return [unquote(name) for name in found[1].strip("[] ").split(",")]
    found = re.search(r"^authors?:[ \t]*\n((?:[ \t]*-.*\n?)+)", fields, re.M)
    lines = found[1].splitlines() if found else []
    return [unquote(re.sub(r"^\s*-\s*(name:)?", "", line)) for line in lines if line.strip()]


def unquote(text: str) -> str:
    return text.strip().strip("\"'").strip()


def list_peps(clone: Path) -> Iterator[CorpusFile]:
    for match, raw in read_repository(clone, PEPS, r"peps/(pep-(\d{4}))\.rst$"):
        fields, body = read_pep(raw)
        text = clean_restructured(body)
        free = re.search(r"public\s+domain|CC0", raw, re.I)  # 31 PEPs tell no licence or another
        if match[2] == "0000" or not free or len(text.split()) < LEAST_WORDS["peps"]:
            continue
        head = [f"PEP {int(match[2])}: {fields['Title'].replace('``', '`')}"]
        if authors := re.sub(r"\s*(<[^>]*>|\([^)]*\))", "", fields.get("Author", "")).strip(" ,"):
            head.append("Author: " + re.sub(r"\s*,\s*", ", ", authors))
        head.append("Publisher: Python Enhancement Proposals")
        if day := read_day(fields.get("Created", "")):
            head.append(f"Date: {day}")
        names = [name for name in ("Status", "Type", "Python-Version", "Replaces", "Superseded-By") if fields.get(name)]
        lead = " ".join(f"{name}: {fields[name]}." for name in names)
        yield CorpusFile(f"{match[1]}.md", tuple(head), f"{lead}\n\n{text}")


def read_pep(raw: str) -> tuple[dict[str, str], str]:
    """The fields at the top of a PEP (a line that begins with a space goes on with the field before) and its text."""
    top, _, body = raw.lstrip("\ufeff").replace("\r\n", "\n").partition("\n\n")
    fields = re.findall(r"^([\w-]+):[ \t]*(.*)$", re.sub(r"\n[ \t]+", " ", top), re.M)
    return {name: value.strip() for name, value in fields}, body


_RULE = r"([=\-~^\"'*+#.`])\{0}{{2,}}[ \t]*"
_HEADING = re.compile(rf"(?m)^(?:{_RULE.format(1)}\n[ \t]*)?(\S[^\n]*)\n{_RULE.format(3)}$")


def clean_restructured(text: str) -> str:
    text = re.sub(r"(?m)^Copyright\n=+\n.*\Z", "", text, flags=re.S)
    text = re.sub(r"(?m)^\.\. (contents|sectnum|_[^\n]*:|image|raw|highlight)[^\n]*(\n[ \t]+[^\n]*)*\n?", "", text)
    text = re.sub(r"(?m)^\.\.[ \t]+(code-block|code|note|warning|figure|table|list-table)::[^\n]*$", "", text)
    text = re.sub(r":pep:`(\d+)(#[^`]*)?`", r"PEP \1", text)
    text = re.sub(r":[\w:.+-]+:`~?([^`<]+?)(\s*<[^`>]*>)?`", r"\1", text)
    text = re.sub(r"`([^`<\n]+?)\s*<[^`>]*>`__?", r"\1", re.sub(r"``", "`", text))
    text = re.sub(r"(?<!`)`([^`\n]+)`__?(?!\w)", r"\1", text)
    text = re.sub(r"\[#?[\w-]+\]_", "", text)
    text = _HEADING.sub(lambda found: f"## {found[2].strip()}", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def list_kubernetes_posts(clone: Path) -> Iterator[CorpusFile]:
    seen = set[str]()
    for match, raw in read_repository(clone, KUBERNETES, r"content/en/blog/_posts/(\d{4})/(.+?)(/index)?\.md$"):
        parts = re.match(r"\ufeff?---\s*\n(.*?)\n---\s*\n(.*)", raw, re.S)
        fields = yaml.safe_load(parts[1]) if parts else {}
        text = html.unescape(clean_post(parts[2])) if parts else ""
        if fields.get("draft") or len(text.split()) < LEAST_WORDS["kubernetes"] or text[:200] in seen:
            continue
        seen.add(text[:200])
        head = [re.sub(r"\s+", " ", str(fields["title"])).strip()]
        if told := fields.get("author"):
            bare = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", re.sub(r"\*|_", "", str(told)))
            head.append("Author: " + re.sub(r"\s+", " ", bare).strip())
        head += ["Publisher: Kubernetes blog", f"Date: {str(fields['date'])[:10]}"]
        yield CorpusFile(f"{match[1]}-{match[2].replace('/', '-')}.md", tuple(head), text)


DIPLOMATIC_VOLUMES = {
    "frus1969-76v22": "Foreign Relations of the United States, 1969–1976, Volume XXII, Panama, 1973–1976",
    "frus1977-80v29": "Foreign Relations of the United States, 1977–1980, Volume XXIX, Panama",
    "frus1969-76v01": "Foreign Relations of the United States, 1969–1976, Volume I, Foundations of Foreign Policy",
    "frus1969-76v19p1": "Foreign Relations of the United States, 1969–1976, Volume XIX, Part 1, Korea, 1969–1972",
    "frus1969-76v19p2": "Foreign Relations of the United States, 1969–1976, Volume XIX, Part 2, Japan, 1969–1972",
    "frus1961-63v06": "Foreign Relations of the United States, 1961–1963, Volume VI, Kennedy-Khrushchev Exchanges",
    "frus1969-76v03": "Foreign Relations of the United States, 1969–1976, Volume III, Foreign Economic Policy; "
    "International Monetary Policy, 1969–1972",
    "frus1964-68v34": "Foreign Relations of the United States, 1964–1968, Volume XXXIV, Energy Diplomacy and Global "
    "Issues",
    "frus1977-80v17p1": "Foreign Relations of the United States, 1977–1980, Volume XVII, Part 1, Horn of Africa",
    "frus1977-80v17p2": "Foreign Relations of the United States, 1977–1980, Volume XVII, Part 2, Sub-Saharan Africa",
    "frus1977-80v17p3": "Foreign Relations of the United States, 1977–1980, Volume XVII, Part 3, North Africa",
    "frus1961-63v15": "Foreign Relations of the United States, 1961–1963, Volume XV, Berlin Crisis, 1962–1963",
    "frus1977-80v27": "Foreign Relations of the United States, 1977–1980, Volume XXVII, Western Europe",
    "frus1964-68v17": "Foreign Relations of the United States, 1964–1968, Volume XVII, Eastern Europe",
    "frus1969-76v12": "Foreign Relations of the United States, 1969–1976, Volume XII, Soviet Union, January "
    "1969–October 1970",
    "frus1969-76ve15p1": "Foreign Relations of the United States, 1969–1976, Volume E–15, Part 1, Documents on Eastern "
    "Europe, 1973–1976",
    "frus1977-80v21": "Foreign Relations of the United States, 1977–1980, Volume XXI, Cyprus; Turkey; Greece",
}
PANAMA, EAST_ASIA = r"frus1969-76v22|frus1977-80v29", r"frus1969-76v(?:01|19p[12])"
BERLIN, ECONOMY = r"frus1961-63v(?:06|15)", r"frus1969-76v03|frus1964-68v34"
AFRICA, WESTERN_EUROPE = r"frus1977-80v17p[123]", r"frus1977-80v2[17]"
EASTERN_EUROPE = r"frus1964-68v17|frus1969-76(?:v12|ve15p1)"
_TEI = {"t": "http://www.tei-c.org/ns/1.0"}


def list_diplomatic_documents(clone: Path, volumes: str) -> Iterator[CorpusFile]:
    """Memoranda, telegrams and minutes, without the editors' notes."""
    for match, raw in read_repository(clone, DIPLOMATIC, rf"volumes/({volumes})\.xml$"):
        volume = etree.fromstring(raw.encode())
        etree.strip_elements(volume, f"{{{_TEI['t']}}}note", with_tail=False)
        for part in volume.iterfind(".//t:div[@subtype='historical-document']", _TEI):
            title, *lines = list_lines(part)
            day = part.find(".//t:dateline//t:date", _TEI)
            first = part.get("{http://history.state.gov/frus/ns/1.0}doc-dateTime-min", "")
            date = (day.get("when", "") if day is not None else "")[:10]
            date = date if len(date) == len("1977-10-01") else first[:10]
            text = "\n\n".join(lines)
            if not date or len(text.split()) < LEAST_WORDS["diplomatic"]:
                continue
            # A telegram's or a memorandum's title names who wrote it; a conversation has no author.
            author = re.search(r"\bFrom (?:the )?(.+?)(?<!Assistant)(?<!Ambassador)(?<!Mission)(?<!Adviser) to ", title)
            head = [title, *([f"Author: {author[1]}"] if author else []), f"Publisher: {DIPLOMATIC_VOLUMES[match[1]]}"]
            yield CorpusFile(f"{match[1]}-d{int(part.get('n', '0')):03}.md", (*head, f"Date: {date}"), text)


def list_rfcs(clone: Path) -> Iterator[CorpusFile]:
    for match, raw in read_repository(clone, RFCS, r"text/(\d{4})-([^/]+)\.md$"):
        told = dict(re.findall(r"^[-*] *(Feature Name|Start Date)[^:]*: *(.*)$", raw[:2_000], re.M))
        body = re.sub(r"\A(?:\s*(?:[-*] .*|\{.*\}|  .*)?\n)*", "", raw)
        text = clean_post(re.sub(r"(?m)^\[[^\]]+\]: #.*$", "", body))
        if len(text.split()) < LEAST_WORDS["rfcs"]:
            continue
        head = [f"RFC {int(match[1])}: {match[2].replace('-', ' ')}", "Publisher: Rust RFCs"]
        day = re.search(r"\d{4}-\d{2}-\d{2}", told.get("Start Date", ""))
        yield CorpusFile(f"{match[1]}-{match[2]}.md", (*head, *([f"Date: {day[0]}"] if day else [])), text)


def list_godot_articles(clone: Path) -> Iterator[CorpusFile]:
    for match, raw in read_repository(clone, GODOT, r"collections/_article/(.+)\.md$"):
        parts = re.match(r"---\s*\n(.*?)\n---\s*\n(.*)", raw, re.S)
        fields = yaml.safe_load(parts[1]) if parts else {}
        text = html.unescape(clean_post(re.sub(r"\{%.*?%\}", "", parts[2], flags=re.S))) if parts else ""
        snapshot = re.match(r"(dev-snapshot|release-candidate|maintenance-release)", match[1])  # lists of changes
        if snapshot or len(text.split()) < LEAST_WORDS["godot"]:
            continue
        author = [f"Author: {fields['author']}"] if fields.get("author") else []
        head = (str(fields["title"]).strip(), *author, "Publisher: Godot Engine")
        yield CorpusFile(f"{match[1]}.md", (*head, f"Date: {str(fields['date'])[:10]}"), text)


def list_home_assistant_posts(clone: Path) -> Iterator[CorpusFile]:
    for match, raw in read_repository(
        clone, HOME_ASSISTANT, r"source/_posts/(\d{4}-\d{2}-\d{2})-(.+)\.(?:markdown|md)$"
    ):
        parts = re.match(r"---\s*\n(.*?)\n---\s*\n(.*)", raw, re.S)
        fields = yaml.safe_load(parts[1]) if parts else {}
        text = html.unescape(clean_post(re.sub(r"\{%.*?%\}", "", parts[2], flags=re.S))) if parts else ""
        if len(text.split()) < LEAST_WORDS["home assistant"]:
            continue
        author = [f"Author: {fields['author']}"] if fields.get("author") else []
        head = (str(fields["title"]).strip(), *author, "Publisher: Home Assistant", f"Date: {match[1]}")
        yield CorpusFile(f"{match[1]}-{match[2]}.md", head, text)


def list_rust_posts(clone: Path) -> Iterator[CorpusFile]:
    """Posts of both blogs, without announcements of tests before a release, which nobody wrote."""
    for match, raw in read_repository(clone, RUST_BLOG, r"content/(?:inside-rust/)?([^/]+)\.md$"):
        parts = re.match(r"\+\+\+\s*\n(.*?)\n\+\+\+\s*\n(.*)", raw, re.S)
        fields = tomllib.loads(parts[1]) if parts else {}
        day = re.search(r"(\d{4})/(\d{2})/(\d{2})/", fields.get("path", ""))
        text = html.unescape(clean_post(re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "", parts[2], flags=re.S))) if parts else ""
        if not day or "prerelease" in match[1] or len(text.split()) < LEAST_WORDS["rust blog"]:
            continue
        author = [f"Author: {', '.join(fields['authors'])}"] if fields.get("authors") else []
        when = "-".join(day.groups())
        head = (fields["title"].strip(), *author, "Publisher: Rust", f"Date: {when}")
        yield CorpusFile(f"{when}-{match[1]}.md", head, text)


def list_matrix_posts(clone: Path) -> Iterator[CorpusFile]:
    for match, raw in read_repository(clone, MATRIX, r"content/blog/\d{4}/\d{2}/(\d{4}-\d{2}-\d{2})[^/]*\.md$"):
        parts = re.match(r"\+\+\+\s*\n(.*?)\n\+\+\+[ \t]*\n(.*)", raw, re.S)
        try:
            fields = tomllib.loads(parts[1]) if parts else {}
        except tomllib.TOMLDecodeError:  # a title with quotation marks
            continue
        text = html.unescape(clean_post(re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "", parts[2], flags=re.S))) if parts else ""
        if not fields.get("title") or len(text.split()) < LEAST_WORDS["matrix"]:
            continue
        authors = fields.get("taxonomies", {}).get("author", [])
        head = [
            fields["title"].strip(),
            *([f"Author: {', '.join(authors)}"] if authors else []),
            "Publisher: Matrix.org",
        ]
        yield CorpusFile(Path(match[0]).name, (*head, f"Date: {match[1]}"), text)


def list_istio_posts(clone: Path) -> Iterator[CorpusFile]:
    """Posts and announcements, without those of patch releases, which list changes alone."""
    for match, raw in read_repository(clone, ISTIO, r"content/en/(?:blog|news)/(.+)/_?index\.md$"):
        parts = re.match(r"---\s*\n(.*?)\n---\s*\n(.*)", raw, re.S)
        fields = yaml.safe_load(parts[1]) if parts else {}
        text = html.unescape(clean_post(parts[2])) if parts else ""
        patch = re.search(r"announcing-\d+\.\d+\.[1-9]\d*$", match[1])
        if patch or not fields.get("publishdate") or len(text.split()) < LEAST_WORDS["istio"]:
            continue
        author = [f"Author: {fields['attribution']}"] if fields.get("attribution") else []
        head = (str(fields["title"]).strip(), *author, "Publisher: Istio", f"Date: {str(fields['publishdate'])[:10]}")
        yield CorpusFile(f"{match[1].replace('/', '-')}.md", head, text)


def list_jenkins_posts(clone: Path) -> Iterator[CorpusFile]:
    """Posts, in AsciiDoc, with the names of those who wrote them."""
    people = read_repository(clone, JENKINS, r"content/_data/authors/(.+)\.adoc$")
    names = {match[1]: (re.search(r"^:?name: *(.+)$", raw, re.M) or match)[1].strip(" \"'") for match, raw in people}
    for match, raw in read_repository(clone, JENKINS, r"content/blog/.*/(\d{4}-\d{2}-\d{2})-([^/]+)\.adoc$"):
        parts = re.match(r"---\s*\n(.*?)\n---\s*\n(.*)", raw, re.S)
        title = re.search(r"^:?title:[ \t]*(.+)$", parts[1], re.M) if parts else None
        text = clean_asciidoc(parts[2]) if parts else ""
        if not parts or not title or len(text.split()) < LEAST_WORDS["jenkins"]:
            continue
        told = re.search(r"^:?authors?:[ \t]*(.*(?:\n[ \t]*-.+)*)", parts[1], re.M)
        ids = re.findall(r"[\w.-]*\w", told[1]) if told else []
        author = [f"Author: {', '.join(names.get(one, one) for one in ids)}"] if ids else []
        head = (html.unescape(unquote(title[1])), *author, "Publisher: Jenkins", f"Date: {match[1]}")
        yield CorpusFile(f"{match[1]}-{match[2]}.md", head, text)


def clean_asciidoc(text: str) -> str:
    """Without comments, images, attributes and links; a macro that names something keeps the name."""
    text = re.sub(r"(?ms)^////.*?^////$|^\+{4}$.*?^\+{4}$", "", text)
    text = re.sub(r"\+{3}.*?\+{3}", "", text, flags=re.S)
    text = re.sub(r"(?m)^(?://(?!/)|:[\w-]+:|toc::|(?:image|video|include)::).*$", "", text)
    text = re.sub(r"(?m)^(?:\[[^\]\n]*\]|\.{4}|-{4}|={4}|\|={3})$", "", text)
    text = re.sub(r"image:[^\[\s]+\[[^\]]*\]", "", text)
    text = re.sub(r"(?:link:)?(?:https?://|mailto:|/)[^\[\]\s]+\[([^\]\n]+(?:\n[^\]\n]+)?)\]", tell_link, text)
    text = re.sub(r"(?:link|xref):[^\[\s]+\[([^\]]+)\]", tell_link, text)
    named = r"\b(?:plugin|jep|jira|user|footnote)(?::([\w-]+))?:?\[([^\]]*)\]"
    text = re.sub(named, lambda found: found[2] or found[1] or "", text)
    text = re.sub(r"(?m)^=+ ", "## ", text)
    return re.sub(r"\n{3,}", "\n\n", html.unescape(_MORE_MARKUP.sub("", _MARKUP.sub("", text)))).strip()


def tell_link(found: re.Match[str]) -> str:
    """The words of a link without what it says of windows."""
    return re.sub(r"(?:\^|, *window=\S+|, *role=\S+)$", "", found[1]).strip('"')


def list_galaxy_news(clone: Path) -> Iterator[CorpusFile]:
    """News of the community, without those that only point to another page."""
    for match, raw in read_repository(clone, GALAXY, r"content/news/\d{4}/([^/]+)/index\.md$"):
        parts = re.match(r"\ufeff?---\s*\n(.*?)\n---\s*\n(.*)", raw, re.S)
        fields = yaml.safe_load(parts[1]) if parts else {}
        text = clean_page(re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "", parts[2], flags=re.S)) if parts else ""
        day = str(fields.get("date") or "")[:10]
        if not fields.get("title") or not day or len(text.split()) < LEAST_WORDS["galaxy"]:
            continue
        told = fields.get("authors") or fields.get("author")
        author = [f"Author: {told}"] if isinstance(told, str) and told.strip() else []
        head = (html.unescape(" ".join(str(fields["title"]).split())), *author, "Publisher: Galaxy Community Hub")
        yield CorpusFile(f"{day}-{match[1]}.md", (*head, f"Date: {day}"), text)


def list_ipfs_posts(clone: Path) -> Iterator[CorpusFile]:
    for match, raw in read_repository(clone, IPFS, r"src/_blog/([^/]+)\.md$"):
        parts = re.match(r"---\s*\n(.*?)\n---\s*\n(.*)", raw, re.S)
        fields = yaml.safe_load(parts[1]) if parts else {}
        text = html.unescape(clean_post(parts[2])) if parts else ""
        if not fields.get("title") or not fields.get("date") or len(text.split()) < LEAST_WORDS["ipfs"]:
            continue
        author = [f"Author: {fields['author']}"] if fields.get("author") else []
        day = str(fields["date"])[:10]
        head = (" ".join(str(fields["title"]).split()), *author, "Publisher: IPFS", f"Date: {day}")
        yield CorpusFile(f"{day}-{match[1]}.md", head, text)


def list_swift_proposals(clone: Path) -> Iterator[CorpusFile]:
    """Proposals and visions; their dates are those of the commits that brought them under their number."""
    begun = list_first_days(clone, SWIFT, "proposals", "visions")
    for match, raw in read_repository(clone, SWIFT, r"(proposals|proposals/testing|visions)/([^/]+)\.md$"):
        title = re.search(r"^# +(.+?)[ \t#]*$", raw, re.M)
        top, body = split_proposal(raw[title.end() :] if title else "")
        text = clean_around_code(body)
        if not title or len(text.split()) < LEAST_WORDS["swift"]:
            continue
        fields = {name.lower(): clean_post(value) for name, value in top}
        number = re.search(r"\b(SE|ST)-\d{4}", fields.get("proposal", ""))
        head = [f"{number[0]}: {title[1].strip()}" if number else title[1].strip()]
        if authors := fields.get("authors") or fields.get("author"):
            head.append("Author: " + authors)
        head += ["Publisher: Swift Evolution", f"Date: {begun[shorten(match[0])]}"]
        status = re.sub(r"\*\*|^Status:", "", fields.get("status", "")).strip()
        lead = [f"Status: {status}."] if status else []
        folder = {"proposals": "se", "proposals/testing": "st", "visions": "vision"}[match[1]]
        yield CorpusFile(f"{folder}-{match[2]}.md", tuple(head), "\n\n".join([*lead, text]))


def list_first_days(clone: Path, commit: str, *folders: str) -> dict[str, str]:
    """The day that a file first came; of a numbered one, the day that its number was first given (names change)."""
    kept = ["--reverse", "--first-parent", "-m", "--diff-filter=AR", "-M", "--name-status", "--format=@%cs"]
    command = ["git", "-C", str(clone), "log", *kept, commit, "--", *folders]
    log = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    days, day = dict[str, str](), ""
    for line in log.splitlines():
        day = line[1:] if line.startswith("@") else day
        if "\t" in line:
            days.setdefault(shorten(line.split("\t")[-1]), day)
    return days


def shorten(path: str) -> str:
    return re.sub(r"(/\d{4}-).*", r"\1", path)


def split_proposal(raw: str) -> tuple[list[tuple[str, str]], str]:
    """The fields below a proposal's title (a line that begins with a space goes on with one before) and its text."""
    top = re.match(r"(?:\s*\n)*((?:[*-] [A-Z][\w ]*:.*\n(?:[ \t]+\S.*\n)*)*)", raw)
    found = re.findall(r"^[*-] ([A-Z][\w ]*):[ \t]*(.*(?:\n[ \t]+\S.*)*)", top[1] if top else "", re.M)
    return [(name, re.sub(r"\s+", " ", value)) for name, value in found], raw[top.end() if top else 0 :]


def clean_around_code(text: str) -> str:
    """Swift writes `[Int](repeating: 0, count: 3)` and `Array<A>`, which are no links and no tags."""
    codes = list[str]()

    def hide(found: re.Match[str]) -> str:
        codes.append(found[0])
        return f"\0{len(codes) - 1}\0"

    text = re.sub(r"(?ms)^[ \t]*(```+|~~~+)[^\n]*\n.*?^[ \t]*\1[ \t]*$|(?<!`)(`+)(?!`)[^\n]+?(?<!`)\2(?!`)", hide, text)
    text = re.sub(r"(?m)^\[[^\]]+\]:[ \t]*(?:#|http|/|\d{4}).*$", "", text)
    text = html.unescape(_MORE_MARKUP.sub("", clean_post(text)))
    text = re.sub(r"\0(\d+)\0", lambda found: codes[int(found[1])], text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


_TITLE = re.compile(r"^title:[ \t]*(?:[>|]-?)?\s*(\"(?:[^\"\\]|\\.)*\"|.+(?:\n[ \t]+\S.*)*)", re.M)


def list_18f_posts(clone: Path) -> Iterator[CorpusFile]:
    ((_, table),) = read_repository(clone, EIGHTEEN_F_AUTHORS, r"_data/authors\.csv$")
    rows = csv.DictReader(table.splitlines())
    known = {row["id"]: row["full_name"] or f"{row['first_name']} {row['last_name']}".strip() for row in rows}
    for match, raw in read_repository(clone, EIGHTEEN_F, r"content/posts/(\d{4}-\d{2})-(\d{1,2})-(.+)\.md$"):
        parts = re.match(r"\ufeff?---\s*\n(.*?)\n---\s*\n(.*)", raw, re.S)
        title = _TITLE.search(parts[1]) if parts else None
        body = re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "", parts[2], flags=re.S) if parts else ""
        text = html.unescape(_MORE_MARKUP.sub("", clean_post(body)))
        if not parts or not title or len(text.split()) < LEAST_WORDS["18f"]:
            continue
        ids = [re.sub(r"\s*#.*", "", one) for one in list_authors(parts[1])]
        names = [known.get(one) or one.replace("-", " ").title() for one in ids if one]
        told = html.unescape(clean_post(unquote(re.sub(r"\s+", " ", title[1])).replace('\\"', '"').replace("''", "'")))
        head = [told, *([f"Author: {', '.join(names)}"] if any(names) else []), "Publisher: 18F"]
        day = f"{match[1]}-{int(match[2]):02}"
        yield CorpusFile(f"{day}-{match[3]}.md", (*head, f"Date: {day}"), text)


_LINK = r"\([^()]*(?:\([^()]*\)[^()]*)*\)"
_REFERENCE = re.compile(r"(?m)^[ \t]*\[([^\]^]+)\]:[ \t]*\S+[ \t]*(?:\n|\Z)")
_LESS_COMMON_MARKUP = re.compile(
    r"</?(abbr|button|link|sub|main|font|figurecaption|colgroup|iframe|noscript)\b[^>]*>|<time [^>]*>|</time>", re.I
)


def clean_page(text: str) -> str:
    """A page of a site whose template tags are filled in: no comments, links, images, attributes or tags."""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"[ \t]*\{(?::[^{}\n]*|[.#][\w-]+)\}", "", text)
    labels = {" ".join(label.lower().split()) for label in _REFERENCE.findall(text)}
    text = re.sub(rf"!\[[^\]]*\](?:{_LINK}|\[[^\]]*\])", "", _REFERENCE.sub("", text))
    text = re.sub(rf"\[([^\[\]]*)\]{_LINK}", r"\1", text)
    text = re.sub(r"(?m)^[ \t]*\[\^[^\]]+\]:[ \t]*", "Note: ", text)
    text = _LESS_COMMON_MARKUP.sub("", clean_around_code(re.sub(r"\[\^[^\]]+\]", "", text)))

    def show(found: re.Match[str]) -> str:
        return found[1] if " ".join(found[1].lower().split()) in labels else found[0]

    text = re.sub(r"<((?:https?://|mailto:)[^>\s]+)>", r"\1", re.sub(r"\[([^\[\]]+)\](?!\()", show, text))
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"(?m)[ \t]+$", "", text.replace("\xa0", " "))).strip()


def list_carpentries_posts(clone: Path) -> Iterator[CorpusFile]:
    """Posts in Markdown, from the end of 2014 on; what two of the sites behind this one posted is taken once."""
    ((_, told),) = read_repository(clone, CARPENTRIES, r"config/_default/params\.yaml$")
    known, seen = yaml.safe_load(told), set[tuple[str, str]]()
    posts = r"content/posts/\d{4}/\d{2}/(\d{4}-\d{2}-\d{2})?-?(.+)\.md$"
    for match, raw in read_repository(clone, CARPENTRIES, posts):
        parts = re.match(r"\ufeff?---\s*\n(.*?)\n---\s*\n(.*)", raw, re.S)
        if not parts:
            continue
        fields = {key.lower(): value for key, value in yaml.safe_load(parts[1].replace("\t", " ")).items()}
        body = re.sub(r"\{\{<\s*param (\S+)\s*>\}\}", lambda found: str(known.get(found[1], "")), parts[2])
        body = re.sub(r"(?m)^(?:<p><b>|\*+)This post originally appeared on the .*$", "", body)
        text = clean_page(re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "", body, flags=re.S))
        day = str(fields.get("date") or match[1] or "")[:10]
        said = {(day[:4], one) for one in re.split(r"(?<=[.!?:]) ", " ".join(text.split())) if one.count(" ") > 4}
        if not day or len(text.split()) < LEAST_WORDS["carpentries"] or 2 * len(said & seen) > len(said):
            continue
        seen |= said
        names = fields.get("authors") or []
        authors = ", ".join(map(str, names if isinstance(names, list) else [names]))
        head = (" ".join(_MARKUP.sub("", str(fields["title"])).split()), *([f"Author: {authors}"] if authors else []))
        name = f"{day}-{match[2].replace('/', '-')}.md"
        yield CorpusFile(name, (*head, "Publisher: The Carpentries", f"Date: {day}"), text)


def list_optech_newsletters(clone: Path) -> Iterator[CorpusFile]:
    """Newsletters, with the articles and the lists of questions that the site includes in them."""
    included = {match[1]: raw for match, raw in read_repository(clone, OPTECH, r"_includes/(specials/.+\.md)$")}
    for match, raw in read_repository(clone, OPTECH, r"_posts/en/newsletters/(\d{4}-\d{2}-\d{2})-(.+)\.md$"):
        parts = re.match(r"---\s*\n(.*?)\n---\s*\n(.*)", raw, re.S)
        fields = yaml.safe_load(parts[1]) if parts else {}
        text = clean_page(fill_in(parts[2], included, str(fields.get("excerpt", "")))) if parts else ""
        if len(text.split()) < LEAST_WORDS["optech"]:
            continue
        head = (str(fields["title"]).strip(), "Publisher: Bitcoin Optech", f"Date: {match[1]}")
        yield CorpusFile(f"{match[1]}-{match[2]}.md", head, text)


def fill_in(text: str, included: dict[str, str], excerpt: str) -> str:
    """A text in Liquid with its articles, questions with answers, and values; without other tags."""
    text = re.sub(r"\{%\s*include (specials/\S+)\s*%\}", lambda found: included.get(found[1], ""), text)
    text = re.sub(r"\{%-?\s*comment\s*-?%\}.*?\{%-?\s*endcomment\s*-?%\}", "", text, flags=re.S)

    def list_details(found: re.Match[str]) -> str:
        told = re.findall(r'\b([qa])\d="([^"]*)"', found[1])
        return "".join(f"- {said}\n\n" if kind == "q" else f"  {said}\n\n" for kind, said in told)

    text = re.sub(r"\{%\s*include functions/details-list\.md(.*?)%\}", list_details, text, flags=re.S)
    values = {"page.excerpt": excerpt, **dict(re.findall(r"\{%-?\s*assign ([\w-]+) *= *[\"'](.*?)[\"']\s*-?%\}", text))}
    text = re.sub(r"\{%.*?%\}", "", text, flags=re.S)
    return re.sub(r"\{\{\s*([^{}]*?)\s*\}\}", lambda found: values.get(found[1], ""), text)


def list_wikinews(clone: Path) -> Iterator[CorpusFile]:
    """Articles, without interviews and without short ones. Links and lists between paragraphs are left out."""
    for _, raw in read_repository(clone, WIKINEWS, r"out/news/autogum_news_doc\d+\.xml$"):
        told = dict(re.findall(r'(\w+)="([^"]*)"', raw.split(">", 1)[0]))
        title, day = html.unescape(told["title"]), told["dateCreated"]
        parts = (re.sub(r"<[^>]+>", "", one) for one in re.findall(r"<p>(.*?)</p>", raw, re.S))
        text = "\n\n".join(" ".join(html.unescape(one).split()) for one in parts)
        interviews = re.search(r"\binterview|\bwikinews (?:shorts?|interviews)", title, re.I)
        if len(text.split()) < LEAST_WORDS["wikinews"] or interviews:
            continue
        slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"['’]", "", title.lower())).strip("-")[:70].strip("-")
        first = re.match(r"\w+day, (\w+ \d+, \d{4})$", text.split("\n", 1)[0])
        day = (first and read_day(first[1])) or day
        text = text.removeprefix(first[0]).lstrip() if first else text
        yield CorpusFile(f"{day}_{slug}.md", (title, "Publisher: Wikinews", f"Date: {day}"), text)


def list_lines(part: etree._Element) -> list[str]:
    """The text of each element that stands on lines of its own, in order; of a table, each row."""
    own = {f"{{{_TEI['t']}}}{name}" for name in ("head", "p", "item", "dateline", "signed", "row", "salute", "label")}
    found = (one for one in part.iter() if one.tag in own and not any(up.tag in own for up in one.iterancestors()))
    told = (re.sub(r"\s+", " ", " ".join("".join(map(str, one.itertext())).split())) for one in found)
    return [line for line in told if line]


def write_corpus(files: Iterable[CorpusFile], folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for count, file in enumerate(files, 1):  # noqa: B007 - how many there were
        file.write(folder)
    return count


def list_french_news(clone: Path) -> Iterator[CorpusFile]:
    """Articles of Wikinews, named by date and title as benchmarks/data/news/french.jsonl names them."""
    for match, raw in read_repository(clone, FRENCH_NEWS, r"20\d\d/\d\d/(20\d\d)_(\d\d)_(\d\d)-(\d{3})\.txt$"):
        title, _, text = raw.partition("\n")
        if len(re.findall(r"\w+", text)) < LEAST_WORDS["french"]:
            continue
        year, month, day, number = match.groups()
        plain = unicodedata.normalize("NFKD", title.lower()).encode("ascii", "ignore").decode()
        name = f"{year}-{month}-{day}-{number}_{re.sub(r'[^a-z0-9]+', '-', plain).strip('-')[:60].strip('-')}.md"
        said = re.sub(r" (?=[.,])", "", text.strip())  # a link stands apart from the stop behind it
        yield CorpusFile(name, (title.strip(), "Publisher: Wikinews", f"Date: {year}-{month}-{day}"), said)


CORPORA: dict[str, tuple[str, Callable[[Path], Iterator[CorpusFile]]]] = {
    "presidential_speeches": ("Presidential-Speeches", list_speeches),
    "ethereum_eips": ("EIPs", list_proposals),
    "ropensci_blog": ("roweb3", list_posts),
    "python_peps": ("peps", list_peps),
    "kubernetes_blog": ("website", list_kubernetes_posts),
    "panama_treaties": ("frus", partial(list_diplomatic_documents, volumes=PANAMA)),
    "japan_and_korea": ("frus", partial(list_diplomatic_documents, volumes=EAST_ASIA)),
    "rust_rfcs": ("rfcs", list_rfcs),
    "home_assistant_blog": ("home-assistant.io", list_home_assistant_posts),
    "godot_articles": ("godot-website", list_godot_articles),
    "wikinews": ("amalgum", list_wikinews),
    "rust_blog": ("blog.rust-lang.org", list_rust_posts),
    "ipfs_blog": ("ipfs-blog", list_ipfs_posts),
    "economic_diplomacy": ("frus", partial(list_diplomatic_documents, volumes=ECONOMY)),
    "swift_evolution": ("swift-evolution", list_swift_proposals),
    "18f_blog": ("18f.gsa.gov", list_18f_posts),
    "berlin_and_khrushchev": ("frus", partial(list_diplomatic_documents, volumes=BERLIN)),
    "carter_and_africa": ("frus", partial(list_diplomatic_documents, volumes=AFRICA)),
    "french_news": ("WiNER-fr", list_french_news),
    "carpentries_blog": ("carpentries.org", list_carpentries_posts),
    "bitcoin_optech": ("bitcoinops.github.io", list_optech_newsletters),
    "western_europe": ("frus", partial(list_diplomatic_documents, volumes=WESTERN_EUROPE)),
    "matrix_blog": ("matrix.org", list_matrix_posts),
    "istio_blog": ("istio.io", list_istio_posts),
    "eastern_europe": ("frus", partial(list_diplomatic_documents, volumes=EASTERN_EUROPE)),
    "jenkins_blog": ("jenkins.io", list_jenkins_posts),
    "galaxy_news": ("galaxy-hub", list_galaxy_news),
}


def main() -> None:
    clones, data = map(Path, sys.argv[1:3])
    for name in sys.argv[3:] or CORPORA:
        repository, list_files = CORPORA[name]
        print(f"{name}: {write_corpus(list_files(clones / repository), data / name / 'docs')} documents")


if __name__ == "__main__":
    main()
