"""Names in a text: runs of capitalised words, as they stand."""

import re

from assay.text.words import STOP_WORDS, fold

_NAME = re.compile(
    r"(?<!\w)[A-Z][\w’'&.-]*[\w](?:\s+(?:of|de|van|von|the|for)(?=\s+[A-Z])|\s+[A-Z0-9][\w’'&.-]*[\w]|\s+[A-Z]\b)*",
    re.UNICODE,
)
_PERIOD = re.compile(r"[QH][1-4]|FY\d+|(?:19|20)\d{2}|10-[QK]s?")
# Words that open a question or an order and are capitalised only for that.
_OPENERS = frozenset(
    "what who when where why how which whose is are was were do does did can could should would will has have had tell "
    "give show explain describe compare list find summarize summarise write please the a an in on at for from by and "
    "or but if as now also then let i me my we our you your it its this that these those research investigate report "
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday latest recent about hello hi hey thanks thank ok okay yes no never nevermind "
    "more".split()
)


def names(text: str) -> list[str]:
    """Distinct names in order of appearance, without words that are capitalised only by position."""
    found: dict[str, None] = {}
    for match in _NAME.finditer(text.replace("’", "'")):
        for run in re.split(r"(?<='s)\s+", match.group()):  # "NVIDIA's Q3" names NVIDIA
            if name := _without_openers(run):
                found.setdefault(name)
    return list(found)


def _without_openers(run: str) -> str:
    words = run.split()
    while words and (fold(words[0].removesuffix("'s")) in _OPENERS | STOP_WORDS or _PERIOD.fullmatch(words[0])):
        words.pop(0)
    while words and (fold(words[-1]) in STOP_WORDS or _PERIOD.fullmatch(words[-1])):
        words.pop()
    return " ".join(words).removesuffix("'s").removesuffix("'").rstrip(".")
