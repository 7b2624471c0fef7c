"""Writes corpora of dated documents from clones of public repositories, a file for each document.

    python -m benchmarks.corpora CLONES DATA [NAME ...]

CLONES has a clone (or a bare one) of each repository under its own name (the table `CORPORA`); DATA gets NAME/docs.
The first three are those of benchmarks/data/replay, at the commits that the claims of the set were drawn from; a claim
knows the hash of the file it quotes. Two speeches whose dates are broken in the repository have none here; no claim
quotes them. The other three serve benchmarks/reading.

Licences: speeches of presidents in office are works of the United States government, in the public domain; EIPs CC0;
PEPs public domain or CC0; Foreign Relations of the United States public domain and CC0; the blogs of rOpenSci and
Kubernetes CC BY 4.0.
"""

import html
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
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
LEAST_WORDS = {"speeches": 80, "eips": 120, "posts": 150, "peps": 200, "kubernetes": 200, "diplomatic": 200}
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
}
_TEI = {"t": "http://www.tei-c.org/ns/1.0"}


def list_diplomatic_documents(clone: Path) -> Iterator[CorpusFile]:
    """Memoranda, telegrams and minutes on the Panama Canal treaties, without the editors' notes."""
    for match, raw in read_repository(clone, DIPLOMATIC, rf"volumes/({'|'.join(DIPLOMATIC_VOLUMES)})\.xml$"):
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


CORPORA: dict[str, tuple[str, Callable[[Path], Iterator[CorpusFile]]]] = {
    "presidential_speeches": ("Presidential-Speeches", list_speeches),
    "ethereum_eips": ("EIPs", list_proposals),
    "ropensci_blog": ("roweb3", list_posts),
    "python_peps": ("peps", list_peps),
    "kubernetes_blog": ("website", list_kubernetes_posts),
    "panama_treaties": ("frus", list_diplomatic_documents),
}


def main() -> None:
    clones, data = map(Path, sys.argv[1:3])
    for name in sys.argv[3:] or CORPORA:
        repository, list_files = CORPORA[name]
        print(f"{name}: {write_corpus(list_files(clones / repository), data / name / 'docs')} documents")


if __name__ == "__main__":
    main()
