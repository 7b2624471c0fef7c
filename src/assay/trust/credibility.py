"""How much a source can be relied on, and whether it speaks at first hand, with reasons a reader can check."""

import re
from typing import NamedTuple

from assay.model.source import Document
from assay.text.hosts import HostClass, class_of, is_official
from assay.text.words import words

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

    def lowered(self, score: float, reason: str) -> "Credibility":
        """An opinion may take from what is known of a source, never add to it."""
        if score >= self.score:
            return self
        return self._replace(
            score=round(score, 2), reasons=(*self.reasons, f"judged lower: {reason or 'no reason given'}")
        )


def assess(document: Document) -> Credibility:
    score, reasons = _BY_KIND[document.kind], [f"kind: {document.kind}"]
    host = class_of(document.host)
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
    primary, hand = _at_first_hand(document, host)
    return Credibility(
        round(min(0.95, max(0.05, score)), 2), (*reasons, dated, hand), primary, _rank(document, host),
        title=" ".join(words(document.title)), origin=" ".join(words(document.origin or "")),
    )  # fmt: skip


def _at_first_hand(document: Document, host: HostClass | None) -> tuple[bool, str]:
    """Primary: it made, measured or decided what it tells. Who names the publication behind its facts, or prints an
    agency's report, is secondary wherever it stands."""
    if document.origin:
        return False, "secondary: repeats the publication it names"
    if _WIRE.match(document.text):
        return False, "secondary: prints a news agency's report"
    if _is_filing(document):
        return True, "primary: its own filing"
    if document.kind == "academic":
        return True, "primary: the study itself"
    if host in ("official", "standard"):
        return True, "primary: the body that decides or counts"
    return False, "secondary: not known to speak at first hand"


def _rank(document: Document, host: HostClass | None) -> int:
    if host in ("social", "farm"):
        return LOWEST
    return max(_KIND_RANKS.get(document.kind, 1), _RANKS.get(host, 1) if host else 1, 3 if _is_filing(document) else 1)


def _is_filing(document: Document) -> bool:
    """A page that mentions a filing is none; a person's own copy, or one at the regulator's, is."""
    own = document.kind == "document" or is_official(document.host)
    return own and _FILING.search(document.text[:4000]) is not None
