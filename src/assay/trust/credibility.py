"""How much a source can be relied on, with the reasons a reader can check."""

import re
from typing import NamedTuple

from assay.model.source import Document
from assay.text.hosts import is_official

CREDIBLE = 0.6  # from here on one source alone earns a plain tick

_FILING = re.compile(r"\bform\s+(?:10-[qk]|8-k|20-f)\b|securities and exchange commission", re.I)
_REFERENCE = re.compile(
    r"\bdoi\b|10\.\d{4,9}/|arxiv|\b(?:journal|letters|nature|science|physical review|astrophysics)\b", re.I
)
_BY_KIND = {"academic": 0.7, "news": 0.55, "document": 0.5, "code": 0.5, "web": 0.45, "demo": 0.4}


class Credibility(NamedTuple):
    score: float
    reasons: tuple[str, ...]
    primary: bool

    def lowered(self, score: float, reason: str) -> "Credibility":
        """An opinion may take from what is known of a source, never add to it."""
        if score >= self.score:
            return self
        return self._replace(
            score=round(score, 2), reasons=(*self.reasons, f"judged lower: {reason or 'no reason given'}")
        )


def assess(document: Document) -> Credibility:
    score, reasons, primary = _BY_KIND[document.kind], [f"kind: {document.kind}"], document.kind == "academic"
    if is_official(document.host):
        score, primary = score + 0.2, True
        reasons.append("official or academic host")
    if _is_filing(document):
        score, primary = score + 0.3, True
        reasons.append("regulatory filing")
    if document.origin and _REFERENCE.search(document.origin):
        score += 0.15
        reasons.append(f"names the publication behind its facts: {document.origin}")
    if document.author:
        score += 0.05
        reasons.append("has an author")
    score, dated = (score + 0.05, "is dated") if document.published else (score - 0.05, "is undated")
    return Credibility(round(min(0.95, max(0.05, score)), 2), (*reasons, dated), primary)


def _is_filing(document: Document) -> bool:
    """A page that mentions a filing is none; a person's own copy, or one at the regulator's, is."""
    own = document.kind == "document" or is_official(document.host)
    return own and _FILING.search(document.text[:4000]) is not None
