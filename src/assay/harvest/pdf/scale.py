"""The scale of a table (`in millions`), as its caption states it: never guessed, never for rows it excludes."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_NOTE = re.compile(r"\(([^()]{4,200})\)")
_STATED = re.compile(
    r"(?:unaudited[,;]?\s+)?(?:(?P<subject>[\w$€£.’'-]+(?: [\w$€£.’'-]+){0,3})\s+)?"
    r"in\s+(?P<scale>thousands|millions|billions)"
    r"(?:\s+of\s+(?:U\.?S\.?\s+)?(?:dollars|euros?|pounds|yen))?(?P<rest>[,;].*|\s+(?:and|except|unless)\b.*)?",
    re.IGNORECASE,
)
_BARE = re.compile(r"(?:[\w$€£.]+ ){0,2}in (?:thousands|millions|billions)(?:,? except [^()]+)?", re.IGNORECASE)
_ANY_AMOUNT = re.compile(
    r"(?:all |dollar )?amounts(?: are)?|figures|(?:u\.?s\.? )?dollars?|usd|(?:us)?\$|€|£|euros?|eur|pounds|gbp|yen",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W\d_]{4,}")
_SCALES = re.compile(r"\b(?:thousands|millions|billions)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<!\bU\.S)(?<!\bInc)(?<!\bCorp)(?<!\bCo)(?<!\bLtd)[.;]$", re.IGNORECASE)
_VAGUE = re.compile(r"\b(?:noted|indicated|otherwise|specified|stated)\b", re.IGNORECASE)
_SHARES = re.compile(r"\bshares?\b|\bbasic\b|\bdiluted\b|\bpar value\b", re.IGNORECASE)
_COUNTS = re.compile(r"\bper\b|\bnumber of\b|\byears\b(?! ended)", re.IGNORECASE)
_COUNTED = re.compile(
    r"\bper[ -]|%|\bpercent|\bratio\b|\bnumber of\b|\bheadcount\b|\bemployees\b|\bEPS\b|\bbasis points\b|"
    r"\((?:in )?(?:years|months|days|units|thousands|millions|billions|shares)\b",
    re.IGNORECASE,
)
_HAS_OWN_UNIT = re.compile(r"%|[a-z]|^[$€£()\s—\u2013*-]*$", re.IGNORECASE)
_FILLERS = frozenset("amount amounts data information number which reflected thousands millions except other".split())


class Scale(NamedTuple):
    words: str
    subject: str = ""
    exceptions: frozenset[str] | None = None  # words of what the caption excludes; None when it excludes nothing

    def holds_for(self, label: str, heading: str, values: Sequence[str]) -> bool:
        """Whether the figures of a row are on this scale, going by its label and the heading of its group."""
        text = f"{heading} {label}"
        if not label or _COUNTED.search(text) or all(_HAS_OWN_UNIT.search(value) for value in values):
            return False
        if self.subject and self.subject not in label.casefold():
            return False
        return self.exceptions is None or not (_SHARES.search(text) or self.exceptions & _stems(text))


def opens_percentages(label: str, values: Sequence[str]) -> bool:
    """Only the first row and the total of a group of percentages carry the sign."""
    return all(value.endswith("%") for value in values) and not _COUNTED.search(label)


def stated_above(lines: Sequence[str]) -> Scale | None:
    """What the nearest caption says; a sentence that ends between it and the table means there is none."""
    text = ""
    for line in reversed(lines):
        if _SENTENCE_END.search(line):
            return None
        text = f"{line} {text}"
        notes = [note for note in _NOTE.finditer(text) if _STATED.fullmatch(note[1].strip())]
        if notes:
            return _of_table(notes[-1][1], text[notes[-1].end() :])
        if _BARE.fullmatch(line):
            return _of_table(line, text[len(line) :])
    return None


def _of_table(note: str, below: str) -> Scale | None:
    """Columns of counts, or with units of their own, leave the rows of a table without a common scale."""
    return None if are_counts(below) else _parsed(note)


def are_counts(heads: str) -> bool:
    return bool(_SHARES.search(heads) or _SCALES.search(heads) or _COUNTS.search(heads))


def _parsed(note: str) -> Scale | None:
    found = _STATED.fullmatch(note.strip())
    if found is None:
        return None
    rest, subject = found["rest"] or "", found["subject"] or ""
    if _VAGUE.search(rest) or (_SCALES.search(rest) and not re.search("share|except", rest, re.IGNORECASE)):
        return None
    return Scale(
        words=f"in {found['scale'].lower()}",
        subject="" if _ANY_AMOUNT.fullmatch(subject) else subject.casefold(),
        exceptions=_stems(rest) if re.search("share|except", rest, re.IGNORECASE) else None,
    )


def _stems(text: str) -> frozenset[str]:
    words = {word for word in _WORDS.findall(text.casefold()) if word not in _FILLERS}
    return frozenset(word.removesuffix("s") for word in words)
