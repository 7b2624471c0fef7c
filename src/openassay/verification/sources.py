"""Which documents are one source, and which passages one voice: copies, one publisher, or one origin count once."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from openassay.models.evidence import Document, QuoteSpan
from openassay.text.relations import find_main_figure
from openassay.text.sentences import containment, shingles, split_sentences
from openassay.text.urls import HostClass, host_class, is_official, registrable_domain
from openassay.text.words import find_names, fold, words

# How much a source can be relied on, and whether it speaks at first hand, with reasons a reader can check.

CREDIBLE = 0.6  # from here on one source alone earns a plain tick

_FILING = re.compile(r"\bform\s+(?:10-[qk]|8-k|20-f)\b|securities and exchange commission", re.I)
_REFERENCE = re.compile(
    r"\bdoi\b|10\.\d{4,9}/|arxiv|\b(?:journal|letters|nature|science|physical review|astrophysics)\b", re.I
)
_WIRE = re.compile(r"^.{0,200}?\((?:Reuters|AP|AFP|dpa|Xinhua|PTI|UPI|TASS|Kyodo|Yonhap)\)\s*[-–—]", re.S)
_BY_KIND = {"academic": 0.7, "news": 0.55, "document": 0.5, "code": 0.5, "web": 0.45, "demo": 0.4}
_BY_HOST: dict[HostClass, tuple[float, str]] = {
    "official": (0.2, "official or academic host"),
    "scholarly": (0.2, "publishes peer-reviewed work, or keeps it"),
    "standard": (0.2, "sets the standard or counts the figures others repeat"),
    "reference": (0.15, "edited work of reference"),
    "news": (0.1, "edited news"),
    "social": (-0.2, "anybody may write there and nobody edits"),
    "farm": (-0.25, "written to be found, or copied from elsewhere"),
}
# Of two that contradict each other, the one further up is believed (F-05): academic, then news, then the rest.
_RANKS: dict[HostClass, int] = {"official": 3, "scholarly": 3, "standard": 3, "reference": 2, "news": 2}
_KIND_RANKS = {"academic": 3, "news": 2}
LOWEST = 0


class Credibility(NamedTuple):
    score: float
    reasons: tuple[str, ...]
    primary: bool
    rank: int = 1
    title: str = ""  # as others would name it, in bare words
    origin: str = ""  # the publication whose facts it repeats, likewise
    publisher: str = ""  # likewise
    host: str = ""
    informants: frozenset[str] = frozenset()  # whom it names as having said something

    def with_lower_score(self, score: float, reason: str) -> "Credibility":
        """An opinion may take from what is known of a source, never add to it."""
        if score >= self.score:
            return self
        return self._replace(
            score=round(score, 2), reasons=(*self.reasons, f"judged lower: {reason or 'no reason given'}")
        )


def assess_credibility(document: Document) -> Credibility:
    score, reasons = _BY_KIND[document.kind], [f"kind: {document.kind}"]
    host = host_class(document.host)
    if host and not (host == "scholarly" and document.kind == "academic"):
        change, reason = _BY_HOST[host]
        score += change
        reasons.append(reason)
    if _is_filing(document):
        score += 0.3
        reasons.append("regulatory filing")
    if document.origin:
        score += 0.15 if _REFERENCE.search(document.origin) else 0.0
        reasons.append(f"names the publication behind its facts: {document.origin}")
    if document.author:
        score += 0.05
        reasons.append("has an author")
    score, dated = (score + 0.05, "is dated") if document.published else (score - 0.05, "is undated")
    # Primary: it made, measured or decided what it tells. Who names the publication behind its facts, or prints an
    # agency's report, is secondary wherever it stands.
    if document.origin:
        primary, hand = False, "secondary: repeats the publication it names"
    elif _WIRE.match(document.text):
        primary, hand = False, "secondary: prints a news agency's report"
    elif _is_filing(document):
        primary, hand = True, "primary: its own filing"
    elif document.kind == "academic":
        primary, hand = True, "primary: the study itself"
    elif host in ("official", "standard"):
        primary, hand = True, "primary: the body that decides or counts"
    else:
        primary, hand = False, "secondary: not known to speak at first hand"
    rank = max(_KIND_RANKS.get(document.kind, 1), _RANKS.get(host, 1) if host else 1, 3 if _is_filing(document) else 1)
    return Credibility(
        round(min(0.95, max(0.05, score)), 2),
        (*reasons, dated, hand),
        primary,
        LOWEST if host in ("social", "farm") else rank,
        title=" ".join(words(document.title)),
        origin=" ".join(words(document.origin or "")),
        publisher=" ".join(words(document.publisher or "")).removeprefix("the "),
        host=document.host,
        informants=find_attributions(document.text[:LOOKED_THROUGH]),
    )


NAMED_BY = 2  # sites that name a source, for it to go before pages of which nothing is known
NAMED_RANK = 2
LOOKED_THROUGH = 20_000  # characters of a document in which it may name its source
_SECONDARY: frozenset[HostClass | None] = frozenset({"reference", "news", "social", "farm"})


def rate_sources(documents: Mapping[str, Document], question: str = "") -> dict[str, Credibility]:
    """Assess each document alone, and by what the others say: whom they name as their source speaks at first hand on
    a site of that name, and so does whom the question is about. One page that names another raises nobody's rank."""
    rated = {name: assess_credibility(document) for name, document in documents.items()}
    named_by: dict[str, set[str]] = {}
    for name, document in documents.items():
        for informant in rated[name].informants:
            named_by.setdefault(informant, set()).add(registrable_domain(document.host))
    subjects = find_names(question)
    for name, document in documents.items():
        known, host = rated[name], document.host
        if known.primary or known.origin or not host or host_class(host) in _SECONDARY or _WIRE.match(document.text):
            continue
        sites = {site for informant, others in named_by.items() if is_site_of(host, informant) for site in others}
        others, asked = sites - {registrable_domain(host)}, any(is_site_of(host, subject) for subject in subjects)
        if others or asked:
            hand = "others name it as their source" if others else "the question is about whose site it is"
            rank = max(known.rank, NAMED_RANK) if len(others) + asked >= NAMED_BY else known.rank
            reasons = (*known.reasons[:-1], f"primary: {hand}")
            rated[name] = known._replace(primary=True, rank=rank, reasons=reasons)
    return rated


def is_site_of(host: str, name: str) -> bool:
    """Whether a host bears a name: its registered part is words of it in a row, at least half of it, or its
    initials."""
    label = registrable_domain(host).partition(".")[0].replace("-", "")
    parts = [part for part in words(name) if part not in _JOINTS]
    rows = {"".join(parts[start:end]) for start in range(len(parts)) for end in range(start + 1, len(parts) + 1)}
    initials = "".join(part[0] for part in parts)
    return len(label) > 2 and (initials == label or (label in rows and 2 * len(label) >= len("".join(parts))))


_JOINTS = frozenset("of for the and de".split())


def _is_filing(document: Document) -> bool:
    """A page that mentions a filing is none; a person's own copy, or one at the regulator's, is."""
    own = document.kind == "document" or is_official(document.host)
    return own and _FILING.search(document.text[:4000]) is not None


T = TypeVar("T")

# Unrelated pages stay below .3, full copies above .8; half a document in common is not two independent witnesses.
COPIED = 0.5
# Two passages of so many words do not come to say the same in the same words by chance; shorter ones may.
LONG, SAME_WORDS = 10, 0.8
# With a figure fewer will do, word for word: of 385 pairs of independent documents none has such a sentence.
SHORT = 5
A_TITLE = 2  # words; one alone names too much

_NAME = r"((?:[A-Z][\w&’'-]+|[A-Z]{2,})(?:\s+(?:of|for|the|and|de|[A-Z][\w&’'-]+|[A-Z]{2,})){0,6})"
_ATTRIBUTED = (
    re.compile(rf"\b(?:[Aa]ccording to|[Cc]iting|[Rr]eported by|[Aa]nnounced by|[Pp]ublished by)\s+(?:the\s+)?{_NAME}"),
    re.compile(
        rf"\b(?:[Tt]he\s+)?{_NAME}(?:\s(?:Inc|Corp|Ltd|Co|plc|AG|SE|GmbH)\b\.?)?,?\s+(?:(?:has|have|had|today|also|now)\s+)*(?:said|says|told|reported|reports|announced|stated|estimates|estimated)\b"
    ),
    re.compile(rf"\b[Ss]ources?:\s+(?:the\s+)?{_NAME}"),
    re.compile(r"\(((?:Reuters|AP|AFP|dpa|Xinhua|Bloomberg|PTI|ANI|UPI|TASS|Kyodo|Yonhap))\)"),
)
_FILLING = re.compile(r"(?:\s+(?:of|for|the|and|de))+$")


def group_documents(documents: Iterable[Document]) -> dict[str, str]:
    """Document hash -> group id (G1, G2, ...), numbered in the order given. One publisher is one witness too.

    A digest of two documents joins them: it is independent of neither, and a group can say no more than that."""
    known = [(document, shingles(document.text)) for document in documents]
    heads = _cluster_items(
        known, lambda one, other: _is_one_source(one[0], other[0]) or containment(one[1], other[1]) >= COPIED
    )
    names = {head: f"G{n}" for n, head in enumerate(dict.fromkeys(heads), 1)}
    return {document.hash: names[head] for (document, _), head in zip(known, heads, strict=True)}


def _is_one_source(one: Document, other: Document) -> bool:
    """Whether two documents have a site, a publisher or an author in common. Studies of other people are independent
    though one journal prints them."""
    authors, others = _split_names(one.author), _split_names(other.author)
    if authors & others:
        return True
    if authors and others and _is_study(one) and _is_study(other):
        return False
    site, publisher = (registrable_domain(one.host) if one.host else ""), fold(one.publisher or "").strip(" .")
    same_site = bool(site) and site == registrable_domain(other.host)
    return same_site or (bool(publisher) and publisher == fold(other.publisher or "").strip(" ."))


_BETWEEN_NAMES = re.compile(r"\s*(?:[;,&]|\band\b)\s*")
_ABSTRACT = re.compile(r"^\W*abstract\b", re.I | re.M)


def _split_names(author: str | None) -> frozenset[str]:
    """Whole names, as they are written; "Staff reporter" and a lone surname are anybody's."""
    names = [name.split() for name in _BETWEEN_NAMES.split(author or "")]
    whole = [name for name in names if len(name) > 1 and name[0] != "The" and all(w[0].isupper() for w in name)]
    return frozenset(" ".join(words(" ".join(name))) for name in whole)


def _is_study(document: Document) -> bool:
    return (
        document.kind == "academic"
        or host_class(document.host) == "scholarly"
        or _ABSTRACT.search(document.text[:600]) is not None
    )


def find_copies(documents: Iterable[Document], among: Iterable[Document]) -> list[Document]:
    """Find the documents that have half of their text, or more, in common with one of these."""
    known = [shingles(document.text) for document in documents]
    return [other for other in among if any(containment(own, shingles(other.text)) >= COPIED for own in known)]


def group_by_origin(
    spans: Sequence[QuoteSpan],
    together: Mapping[str, str],
    credibility: Mapping[str, Credibility],
    dependent: Collection[frozenset[str]] = (),
) -> dict[str, tuple[str, ...]]:
    """The independent voices behind one statement: the first document of each, and all documents that speak with it.

    Sources that are independent as a whole may still repeat each other in one matter: they use the same words, name the
    same informant, or report on the same publication. Such are one voice, whatever their groups, and so are pairs of
    documents that were found to be `dependent`."""
    said = [
        _SpanText(
            span,
            together[span.document],
            shingles(span.quote),
            find_attributions(span.quote),
            _find_figure_sentences(span.quote),
        )
        for span in spans
    ]

    def is_one(one: _SpanText, other: _SpanText) -> bool:
        pair = frozenset((one.span.document, other.span.document))
        return one.group == other.group or pair in dependent or _is_retelling(one, other, credibility)

    heads = _cluster_items(said, is_one)
    found: dict[int, list[str]] = {}
    for span, head in zip(spans, heads, strict=True):
        found.setdefault(head, []).append(span.document)
    return {documents[0]: tuple(dict.fromkeys(documents)) for documents in found.values()}


class _SpanText(NamedTuple):
    span: QuoteSpan
    group: str
    shingles: frozenset[int]
    named: frozenset[str]  # whom it names as its source
    figures: frozenset[tuple[str, ...]]  # the words of its sentences with a figure


def _find_figure_sentences(quote: str) -> frozenset[tuple[str, ...]]:
    said = (tuple(words(piece.text)) for piece in split_sentences(quote) if find_main_figure(piece.text))
    return frozenset(sentence for sentence in said if len(sentence) >= SHORT)


def _is_retelling(one: _SpanText, other: _SpanText, credibility: Mapping[str, Credibility]) -> bool:
    first, second = one.span, other.span
    long = min(len(first.quote.split()), len(second.quote.split())) >= LONG
    if (long and containment(one.shingles, other.shingles) >= SAME_WORDS) or one.figures & other.figures:
        return True
    if one.named & other.named:
        return True
    ours, theirs = credibility[first.document], credibility[second.document]
    if ours.origin and ours.origin == theirs.origin:
        return True
    # Who names another as a source anywhere speaks with its voice: the note may stand at the end of a page. Of 385
    # pairs of independent documents none does.
    return _is_origin_of(ours, theirs, other.named | theirs.informants) or _is_origin_of(
        theirs, ours, one.named | ours.informants
    )


def _is_origin_of(one: Credibility, other: Credibility, named: frozenset[str]) -> bool:
    """Whether one is the publication that the other repeats, is of whom the other names, or speaks at first hand for
    them."""
    title = f" {one.title} "
    if one.title and len(one.title.split()) >= A_TITLE and title in f" {other.origin} ":
        return True
    if any(_is_same_name(name, one.publisher) or (one.host and is_site_of(one.host, name)) for name in named):
        return True
    return one.primary and any(f" {name} " in title for name in named)


def _is_same_name(name: str, publisher: str) -> bool:
    """Whether one begins with the other, by two words or more: a name ends where its small words begin ("Centre for
    Research in Ageing"), or is told in short."""
    one, other = words(name), publisher.split()
    few = min(len(one), len(other))
    return one == other or (few >= A_TITLE and one[:few] == other[:few])


def find_attributions(quote: str) -> frozenset[str]:
    """Whom a passage names as having said what it says."""
    return frozenset(
        fold(_FILLING.sub("", match[1])).removeprefix("the ") for form in _ATTRIBUTED for match in form.finditer(quote)
    )


def _cluster_items(items: Sequence[T], same: Callable[[T, T], bool]) -> list[int]:
    """For each item the index of the first it belongs with, in whatever order they came."""
    heads: list[int] = []
    for at, item in enumerate(items):
        joined = {heads[before] for before in range(at) if same(item, items[before])}
        head = min(joined, default=at)
        heads = [head if known in joined else known for known in heads]
        heads.append(head)
    return heads
