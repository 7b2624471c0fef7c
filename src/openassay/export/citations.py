"""Writes the sources of a report for reference managers: BibTeX, RIS and CSL-JSON, from one bibliography."""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple
from urllib.parse import quote

from openassay.export.layout import get_web_address, to_printable
from openassay.models.report import ReportData


class EntryType(NamedTuple):
    """What each format calls a kind of source."""

    bibtex: str
    ris: str
    csl: str


_TYPES = {
    "academic": EntryType("article", "JOUR", "article-journal"),
    "news": EntryType("online", "NEWS", "article-newspaper"),
    "web": EntryType("online", "ELEC", "webpage"),
    "code": EntryType("online", "COMP", "webpage"),
    "document": EntryType("techreport", "RPRT", "report"),
}
_OTHER_TYPE = EntryType("misc", "GEN", "webpage")
_PUBLISHER_FIELDS = {"article": "journal", "techreport": "institution"}  # which BibTeX requires
# A name with one of these words is no person's; what is not surely a person's is kept as it stands.
_BODIES = frozenset(
    "after agencies agency and association bank board bureau centre center collaboration collaborations college "
    "colleagues commission committee company consortium contributors corporation council courier daily department desk "
    "editorial editors et foundation from gazette government group guardian herald inc institute institution journal "
    "laboratory library limited ltd magazine ministry museum national news newspaper observatory of office "
    "organization organisation post press project report reporter research science service society staff survey team "
    "teams the times today union university wire".split()
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*\.?|(?:[^\W\d_]\.-?){1,4}")
_PARTICLES = frozenset("van von der den de la le du di da dos del bin ibn al ter ten".split())
_STOP = frozenset("a an the on of in for and to what why how is are does do from with at by as its der die das".split())
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_DOI = re.compile(r"https?://(?:dx\.)?doi\.org/(10\.\d{4,9}/\S+)", re.I)
# An unpaired brace would end the field, with a backslash before it or not.
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\textbraceleft{}", "}": r"\textbraceright{}", "$": r"\$", "&": r"\&",
    "#": r"\#", "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
}  # fmt: skip


class AuthorName(NamedTuple):
    """The name of a person, or with `given` empty the whole text."""

    family: str
    given: str = ""


class BibliographyEntry(NamedTuple):
    """A source as reference managers know it. Dates are a year, a month and a day, as far as they are known."""

    key: str
    id: str
    type: EntryType
    title: str
    authors: tuple[AuthorName, ...]
    issued: tuple[int, ...]
    url: str
    doi: str
    host: str
    accessed: tuple[int, ...]
    note: str


def to_bibtex(report: ReportData) -> str:
    entries = []
    for work in build_bibliography(report):
        publisher = _PUBLISHER_FIELDS.get(work.type.bibtex, "organization")
        fields = {
            "title": f"{{{_escape_latex(work.title)}}}",  # a second pair of braces keeps its capitals
            "author": " and ".join(
                f"{_escape_latex(name.family)}, {_escape_latex(name.given)}"
                if name.given
                else f"{{{_escape_latex(name.family)}}}"
                for name in work.authors
            ),
            publisher: _escape_latex(work.host),
            "year": f"{work.issued[0]:04}" if work.issued else "",
            "month": str(work.issued[1]) if len(work.issued) > 1 else "",
            "date": _format_date(work.issued),
            "doi": _escape_latex(work.doi),
            "url": work.url,
            "urldate": _format_date(work.accessed),
            "annote": _escape_latex(f"{to_printable(work.id)}. {work.note}"),
        }
        lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
        entries.append(f"@{work.type.bibtex}{{{work.key},\n{lines}}}\n")
    return "\n".join(entries)


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _format_date(parts: Sequence[int], separator: str = "-") -> str:
    return separator.join(f"{part:0{4 if position == 0 else 2}}" for position, part in enumerate(parts))


def to_ris(report: ReportData) -> str:
    records = []
    for work in build_bibliography(report):
        fields = [("TY", work.type.ris), ("ID", work.key), ("TI", work.title)]
        fields += [("AU", f"{name.family}, {name.given}" if name.given else name.family) for name in work.authors]
        fields += [
            ("PY", f"{work.issued[0]:04}" if work.issued else ""),
            ("DA", _format_date(work.issued, "/")),
            ("JO" if work.type.ris == "JOUR" else "PB", work.host),
            ("DO", work.doi),
            ("UR", work.url),
            ("Y2", _format_date(work.accessed, "/")),
            ("N1", f"{to_printable(work.id)}. {work.note}"),
        ]
        records.append("".join(f"{tag}  - {value}\r\n" for tag, value in fields if value) + "ER  - \r\n\r\n")
    return "".join(records)


def to_csl(report: ReportData) -> str:
    return json.dumps(to_csl_items(report), ensure_ascii=False, indent=2) + "\n"


def to_csl_items(report: ReportData) -> list[dict[str, Any]]:
    """Return the sources as items of the Citation Style Language; empty fields are left out."""
    items = []
    for work in build_bibliography(report):
        is_report = work.type.csl == "report"
        fields = {
            "id": work.key,
            "type": work.type.csl,
            "title": work.title,
            "author": [
                {"family": name.family, "given": name.given} if name.given else {"literal": name.family}
                for name in work.authors
            ],
            "issued": {"date-parts": [list(work.issued)]} if work.issued else None,
            "container-title": "" if is_report else work.host,
            "publisher": work.host if is_report else "",
            "DOI": work.doi,
            "URL": work.url,
            "accessed": {"date-parts": [list(work.accessed)]} if work.accessed else None,
            "annote": f"{to_printable(work.id)}. {work.note}",
        }
        items.append({name: value for name, value in fields.items() if value})
    return items


def build_bibliography(report: ReportData) -> list[BibliographyEntry]:
    """Build an entry for each source, in their order, with unique keys."""
    accessed = _parse_date(report.metadata.finished)
    entries: list[BibliographyEntry] = []
    keys: set[str] = set()
    for card in report.sources:
        url = re.sub(r"[\s{}\\\"<>^`|]|[^\x21-\x7e]", lambda match: quote(match.group()), get_web_address(card))
        doi = found.group(1) if (found := _DOI.fullmatch(url)) else ""
        title, host = to_printable(card.title), to_printable(card.place)
        authors, issued = tuple(parse_authors(card.author or "")), _parse_date(card.published or "")
        type = _TYPES.get(card.kind, _OTHER_TYPE)
        if not host and type.bibtex in _PUBLISHER_FIELDS:
            type = type._replace(bibtex="misc")
        note = f"Text read by OpenAssay: SHA-256 {to_printable(card.document)}"
        if not url:
            note = f"File {to_printable(card.url).rpartition('/')[2]}. {note}"
        key = _make_key(authors, host, issued, title)
        endings = ["", *"bcdefghijklmnopqrstuvwxyz"]  # the second of the same key ends in b
        key = next((key + end for end in endings if key + end not in keys), f"{key}x{len(keys)}")
        keys.add(key)
        dates = accessed if url else ()
        entries.append(BibliographyEntry(key, card.id, type, title, authors, issued, url, doi, host, dates, note))
    return entries


def parse_authors(author: str) -> Iterator[AuthorName]:
    """Split "Family, Given; ..." or "Given Family, Given Family and ..." into persons, where that is sure."""
    author = to_printable(author)
    parts = [part.strip() for part in re.split(r"\s*;\s*|\s+(?:and|&)\s+", author) if part.strip()]
    persons = [_parse_person(part) for part in parts]
    if any(person is None for person in persons) and ";" not in author:
        parts = [part for part in re.split(r"\s*,\s*(?:and\s+|&\s+)?|\s+(?:and|&)\s+", author) if part]
        persons = [_parse_person(part) for part in parts]
    sure = [person for person in persons if person is not None]
    if sure and len(sure) == len(persons):
        yield from sure
    elif author:
        yield AuthorName(author)


def _parse_person(text: str) -> AuthorName | None:
    family, comma, given = (part.strip() for part in text.partition(","))
    if not comma:
        words = family.split()
        first = next((at for at, word in enumerate(words) if at and word.lower() in _PARTICLES), len(words) - 1)
        given, family = " ".join(words[:first]), " ".join(words[first:])
    elif len(family.split()) > 2:
        return None
    words = f"{given} {family}".split()
    is_name = all(_WORD.fullmatch(word) and (word[0].isupper() or word in _PARTICLES) for word in words)
    is_body = any(word.lower().rstrip(".") in _BODIES for word in words) or all(word.isupper() for word in words)
    return AuthorName(family, given) if given and 2 <= len(words) <= 5 and is_name and not is_body else None


def _parse_date(text: str) -> tuple[int, ...]:
    """Return the year, the month and the day, as far as they make a date."""
    found = _DATE.match(text)
    parts = tuple(int(part) for part in found.groups() if part) if found else ()
    while parts:
        try:
            date(*(*parts, 1, 1)[:3])
        except ValueError:
            parts = parts[:-1]
        else:
            return parts
    return ()


def _make_key(authors: Sequence[AuthorName], host: str, issued: Sequence[int], title: str) -> str:
    """Make a key such as riess2024webb: who (or where), when, and the first telling word of the title."""
    is_person = bool(authors and authors[0].given)
    who = authors[0].family if is_person else host.removeprefix("www.").partition(".")[0]
    if not who and authors:
        who = next((word for word in authors[0].family.split() if word.lower() not in _STOP), "")
    words = [word for word in _split_ascii(title) if word not in _STOP]
    parts = [*_split_ascii(who)[-1:], *map(str, issued[:1]), *words[:1]]
    if len(parts) < 2:
        parts += words[1:2]
    key = "".join(part[:24] for part in parts)
    return key if key[:1].isalpha() else f"source{key}"


def _split_ascii(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.findall(r"[a-z0-9]+", plain)
