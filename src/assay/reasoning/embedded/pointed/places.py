"""Places that may be what a question wants."""

import re
from collections.abc import Iterator

from assay.reasoning.embedded.pointed.kinds import COUNTRIES, STATES, said
from assay.reasoning.embedded.pointed.runs import PLACE, capitalised
from assay.reasoning.embedded.pointed.view import Read, Stretch
from assay.reasoning.embedded.pointed.wanted import Wanted
from assay.text.words import stems

_SITED = re.compile(
    r"\b(?:located|situated|based|published|lies|stands|headquartered|serving)\b[^.]*"
    r"\b(?:in|at|near)(?: the)?(?: [a-z]+){0,3} $"
)


def places(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    text, own = read.text, set(stems(wanted.subject))
    listed = said(wanted.words) if wanted.words else None
    found = ((m.start(), m.end()) for m in listed.finditer(text)) if listed else capitalised(text, PLACE)
    for start, end in found:
        if set(stems(text[start:end])) <= own or not text[start].isupper():
            continue
        ahead = text[max(0, start - 40) : start]
        score = 0.3 * read.cued(start, end) + 0.25 * read.named(start, end) + read.early(start)
        score += 0.1 if listed else 0.0
        score += 0.15 if re.search(r"\b(?:in|at|near|of)(?: the)?(?: \w+){0,2} $", ahead) else 0.0
        score += 0.25 if _SITED.search(ahead) else 0.0
        last = text[start:end].split(",")[-1].strip()
        named = said(STATES).fullmatch(last) or said(COUNTRIES).fullmatch(last)
        score += 0.2 if named and "," in text[start:end] else 0.0
        yield Stretch(_republic(text, start) if listed else start, end, min(1.0, score))


def _republic(text: str, start: int) -> int:
    full = re.search(r"(?:Republic|Kingdom|Commonwealth|State) of (?:the )?$", text[max(0, start - 30) : start])
    return start - len(full.group()) if full else start
