"""Published works by number: one paper has many addresses, but one DOI, arXiv, PubMed or PMC number."""

import re
from urllib.parse import parse_qs, unquote

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


def work_named(text: str) -> str | None:
    """The identity in a text that is nothing but a work's number: "doi:10.1000/XYZ", "arXiv:2401.01234v2"."""
    arxiv = _ARXIV_NAMED.fullmatch(text)
    if arxiv:
        return _arxiv(arxiv[1])
    number = _NUMBER_NAMED.fullmatch(text)
    if number:
        return f"{number[1].lower()}:{int(number[2])}"
    doi = _DOI_NAMED.fullmatch(text)
    return _doi(unquote(doi[1])) if doi else None


def work_at(host: str, path: str, query: str) -> str | None:
    """The identity of the work that a page shows; `host` without www."""
    if host in _DOI_HOSTS:
        return _doi(unquote(path).strip("/"))
    if _ARXIV_HOST.fullmatch(host) and (found := _ARXIV_PATH.fullmatch(unquote(path))):
        return _arxiv(found[1])
    return _at_pubmed(host, path) or _at_publisher(host, unquote(path), query)


def _at_pubmed(host: str, path: str) -> str | None:
    if host in ("pubmed.ncbi.nlm.nih.gov", "ncbi.nlm.nih.gov") and (found := _PUBMED.fullmatch(path)):
        return f"pmid:{int(found[1])}" if host.startswith("pubmed") or path.startswith("/pubmed") else None
    if host in ("pmc.ncbi.nlm.nih.gov", "ncbi.nlm.nih.gov") and (found := _PMC.fullmatch(path)):
        return f"pmc:{int(found[1])}"
    if host == "europepmc.org" and (found := _EUROPE_PMC.fullmatch(path)):
        return f"pmid:{int(found[2])}" if (found[1] or "").lower() == "med" else f"pmc:{int(found[2] or found[3])}"
    return None


def _at_publisher(host: str, path: str, query: str) -> str | None:
    found = _DOI_IN_PATH.search(path)
    if found:
        return _doi(_PREPRINT_VERSION.sub(r"\1", _FORM.sub("", found[1])))
    if host == "journals.plos.org" and path.endswith(("/article", "/article/file")):
        return _doi(parse_qs(query).get("id", [""])[0])
    if host == "nature.com" and (number := _NATURE.fullmatch(_FORM.sub("", path))):
        return _doi(f"10.1038/{number[1]}")
    return None


def _doi(number: str) -> str | None:
    number = number.lower()
    if not _DOI.fullmatch(number):
        return None
    arxiv = _ARXIV_DOI.fullmatch(number)
    return _arxiv(arxiv[1]) if arxiv else f"doi:{number}"


def _arxiv(number: str) -> str:
    return f"arxiv:{_OLD_CLASS.sub('', number.lower())}"
