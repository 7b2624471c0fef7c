"""Names as they stand in running text: capitalised runs, freed from what only stands beside them."""

import re
from collections.abc import Iterator

from assay.reasoning.embedded.pointed.kinds import TONGUES, said
from assay.text.words import fold

NAME = re.compile(
    r"(?<![\w’'-])(?:The )?[A-ZÀ-ÖØ-Þ][\w’'.&/-]*"
    r"(?: (?:of the|of|de la|de|da|del|di|van der|van|von|al-|bin|ibn|the|and the|&)(?= [A-ZÀ-Ý])|"
    r" [A-ZÀ-ÖØ-Þ0-9][\w’'.&/-]*)*"
)
PLACE = re.compile(
    r"(?<![\w’'-])[A-ZÀ-Ý][\w’'.-]*(?:(?: of| and| upon| the)? [A-ZÀ-Ý][\w’'.-]*)*"
    r"(?: ?, [A-ZÀ-Ý][\w’'.-]*(?: (?:of |and )?[A-ZÀ-Ý][\w’'.-]*)*){0,3}"
)
_NO_NAME = frozenset(
    "the a an it he she they this that these those in on at of by for from to with and or but as if is was are were "
    "his her its their when where who what which after before during since until retrieved archived external "
    "references history edit see also wikipedia main article categories category january february march april may june "
    "july august september october november december sunday monday tuesday wednesday thursday friday saturday".split()
)


# Labels of a box beside an article run into the names around them.
_LABEL = (
    r"(?:Directed|Written|Produced|Starring|Released|Recorded|Genre|Genres|Label|Length|Studio|Producer|Producers|"
    r"Hidden|Categories|Category|Retrieved|Archived|Screenplay|Story|Cinematography|Edited|Distributed|Country|"
    r"Language|Born|Died|Occupation|Nationality|Personnel|Track|References|External|See|Quick|Facts|Singles|Studios|"
    r"Films|Albums|Statements|Articles|Pages|Website|Writer|Writers|Director|Directors)\b"
)
_CUT = re.compile(
    rf" (?={_LABEL})|(?<=[a-zà-ÿ0-9]{{2}})\. |"
    r" (?=(?:The|It|He|She|In|This|As|On|At|And|With|After|For|From|A|An|I)\b(?! ?[.]))(?<!of )"
)


def capitalised(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Capitalised stretches without the small words, months and labels at their ends, or possessive endings."""
    for found in pattern.finditer(text):
        for start, end in _parts(text, found.start(), found.end()):
            while start < end and _opens_no_name(text[start:end]):
                rest = text[start:end].split(" ", 1)
                start = end - len(rest[1]) if len(rest) > 1 else end
            kept = text[start:end].rstrip(" .,’'&/-")
            for tail in ("'s", "’s"):
                kept = kept.removesuffix(tail)
            if kept and fold(kept) not in _NO_NAME and not kept.isdigit() and not said(TONGUES).fullmatch(kept):
                yield start, start + len(kept)


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A run ends where a sentence does, and where the next one or a label begins."""
    for cut in _CUT.finditer(text, start, end):
        if cut.start() > start:
            yield start, cut.start()
            start = cut.end()
    yield start, end


def _opens_no_name(run: str) -> bool:
    first, _, rest = run.partition(" ")
    titled = first == "The" and rest[:1].isupper()
    return (fold(first.strip(".,")) in _NO_NAME and not titled) or bool(re.match(_LABEL, first))


def without_nation(text: str, start: int, end: int) -> tuple[int, int]:
    words = text[start:end].split(" ")
    if len(words) > 2 and said(TONGUES).fullmatch(words[0]):
        return start + len(words[0]) + 1, end
    return start, end


def apart_from(subject: str, text: str, start: int, end: int) -> tuple[int, int]:
    """A run without the subject's name at its end: an artist and his album may stand side by side."""
    first = subject.split(",")[0].split(" ")[0]
    at = re.search(rf" {re.escape(first)}\b", text[start:end]) if len(first) > 2 else None
    return (start, start + at.start()) if at and at.start() > 2 else (start, end)
