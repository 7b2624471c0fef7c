"""Dates that may be what a question wants."""

import re
from collections.abc import Iterator

from assay.reasoning.embedded.pointed.view import Read, Stretch
from assay.reasoning.embedded.pointed.wanted import Wanted
from assay.text.words import stem

MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|"
    r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_YEAR = r"(?:1[0-9]\d\d|20\d\d)(?![\d,]\d|\d| ?%)"
_DAY = r"[0-3]?\d(?:st|nd|rd|th)?"
_KIN = re.compile(r"\b(father|mother|wife|husband|brother|sister|son|daughter|widow|parents)\b[^.(]*$")
DATE = re.compile(
    rf"(?<![\w.,/-])(?:"
    rf"{_DAY} (?:of )?{MONTH} ?,? {_YEAR}|{MONTH} {_DAY} ?, {_YEAR}|{MONTH} {_DAY} {_YEAR}|\d{{4}}-\d\d-\d\d|"
    rf"(?:the )?(?:(?:early|mid|late)[ -](?:the )?)?\d{{3}}0['’]?s\b|"
    rf"(?:(?:about|around|circa|between|c\.|ca\.|late|early|mid) ?-?)?(?:{MONTH},? )?"
    rf"{_YEAR}(?:(?: ?[–—-] ?| to | and ){_YEAR}|[–-]\d\d\b)?)"
)


def dates(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    born, died = "born" in wanted.near, "die" in wanted.near
    text = read.text
    for found in DATE.finditer(text):
        start, end = found.span()
        if read.of_another_matter(start, end):
            continue
        ahead, behind = text[max(0, start - 60) : start], text[end : end + 12]
        score = 0.75 * max(read.cued(start, end), 0.5 * read.near(start, end, read.loose))
        if re.search(r"\b(?:in|on|since|from|about|around|circa|of|between) $", ahead):
            score += 0.08
        if born or died:
            score -= 0.4 if _of_kin(wanted, ahead) else 0.0
            start, end, score = _of_a_life(text, start, end, score, died=died)
        elif re.search(r"\( ?$", ahead) and re.match(r" ?\)", behind):
            score -= 0.2  # a year in brackets tells which thing is meant, or how long it was
        if re.search(r"(?:Retrieved|Archived|accessed|UPDATED|Date:)(?!\w)[^.]{0,12}$", ahead):
            score -= 0.4
        if re.search(r"\b[Rr]e-?(?:issue|release|built|build|open|establish|found|form)\w*[^.]*$", ahead):
            score -= 0.2
        score += read.early(start) + 0.04 * min(2, len(found.group().split()) - 1) + 0.15 * read.named(start, end)
        yield Stretch(start, end, min(1.0, max(0.0, score + read.early(start))))


def _of_a_life(text: str, start: int, end: int, score: float, *, died: bool) -> tuple[int, int, float]:
    """Dates in brackets after a name are those of birth and death; "1850 births" is a category."""
    if re.match(r" (?:deaths|births)\b", text[end : end + 8]):
        return start, end, 0.8 if ("deaths" in text[end : end + 8]) == died else 0.0
    ahead, behind = text[max(0, start - 60) : start], text[end : end + 4]
    opened = ahead.rfind("(")
    inside = ahead[opened:] if opened >= 0 and ")" not in ahead[opened:] else ""
    if not inside:
        return start, end, score
    if years := re.fullmatch(r"(\d{3,4}) ?[–—-] ?(\d{3,4})", text[start:end]):
        return (start + years.start(2), end, 0.72) if died else (start, start + years.end(1), 0.72)
    second = bool(re.search(r"\d ?[–—-] ?[^()]{0,12}$", inside)) or re.search(r"\bdied|\bd\.", inside) is not None
    spans = bool(re.match(r" ?[–—-]", behind)) or re.search(r"\bborn|\bb\.", inside) is not None
    if died:
        return start, end, 0.9 if second else min(score, 0.3)
    return start, end, 0.9 if spans and not second else min(score, 0.3)


def _of_kin(wanted: Wanted, ahead: str) -> bool:
    """ "His father died in 1685" is no answer on himself."""
    kin = _KIN.search(ahead)
    return kin is not None and stem(kin[1]) not in wanted.asks
