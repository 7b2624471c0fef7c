"""True sentences as a model writes them: a claim's words, lightly changed so that they still say no more than it does.

Written without any of the checks in view: it imports nothing of OpenAssay.
"""

import re
from collections.abc import Callable, Mapping
from random import Random

_SYNONYMS = dict(
    pair.split("=")
    for pair in (
        "began=started founded=established purchased=bought film=movie films=movies located=situated largest=biggest "
        "approximately=about stated=said announced=revealed said=stated began=started received=got obtained=received "
        "large=big major=important primarily=mainly numerous=many assist=help assisted=helped show=display "
        "children=kids physician=doctor automobile=car attempted=tried required=needed resides=lives "
        "situated=located commenced=began created=made developed=built release=launch famous=well-known "
        "former=previous entire=whole company=firm author=writer wrote=penned featured=included "
        "various=different difficult=hard usually=normally frequently=often currently=now city=town "
        "killed=slain agreement=deal additional=further portion=part rapidly=quickly "
        "completed=finished constructed=built assisted=helped also=additionally main=principal "
        "opened=launched won=took collaborated=worked demonstrates=shows utilized=used using=employing"
    ).split()
)
_LEADING = re.compile(
    r"^((?:In|On|At|During|After|Before|Since|By|From|As of|Under|For|Throughout) [^,;()“\"]{3,60}), ([^,].{20,})\.$"
)
_BRACKETS = re.compile(r"\s*\((?!no\b|not\b)[^()]{2,80}\)")
_ASIDE = re.compile(
    r",\s(?:who|which|where|whose|a|an|the|including|led|based|known|located|founded|such as)\s"
    r"[^,;:“”\"]{8,90},(?=\s[a-z])"
)
_TAIL = re.compile(
    r"^(.{30,}?),\s(?:who|which|where|whose|including|making|leaving|giving|while|with|a|an|the)\s[^“”\"]{8,}\.$"
)
# What must not be cut off: it carries the truth of the rest.
_CARRIES = re.compile(
    r"\b(?:not|no|never|none|if|unless|according|said|says|may|might|could|would|only|except|without|but|although|neither|nor)\b|n[’']t\b",
    re.I,
)
_PASSIVE = re.compile(
    r"^((?:[A-Z]|The [a-z])[^,;:“”\"()]{2,60}?) (?:was|were) (\w{3,}ed) by ((?:[A-Z]|the )[^,;:“”\"()]{2,60}?)\.$"
)
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_OPENERS = frozenset(
    "The A An In On At It He She They This These Those As After Before During For From By While When His Her Its "
    "Their There Some Many Most Several Such With Under Although Both Other Without But".split()
)
_SHORTENED = {"did not": "didn't", "does not": "doesn't", "is not": "isn't", "was not": "wasn't", "were not": "weren't",
              "has not": "hasn't", "had not": "hadn't", "are not": "aren't", "do not": "don't"}  # fmt: skip


def verbatim(text: str, title: str, dice: Random) -> str:
    return text


def without_brackets(text: str, title: str, dice: Random) -> str:
    return _BRACKETS.sub("", text)


def without_aside(text: str, title: str, dice: Random) -> str:
    aside = _ASIDE.search(text)
    return text if not aside or _CARRIES.search(aside.group()) else text[: aside.start()] + text[aside.end() :]


def without_tail(text: str, title: str, dice: Random) -> str:
    tail = _TAIL.match(text)
    return text if not tail or _CARRIES.search(text[tail.end(1) :]) else f"{tail[1]}."


def without_lead(text: str, title: str, dice: Random) -> str:
    lead = _LEADING.match(text)
    return text if not lead or _CARRIES.search(lead[1]) else f"{lead[2][0].upper()}{lead[2][1:]}."


def reordered(text: str, title: str, dice: Random) -> str:
    lead = _LEADING.match(text)
    if not lead or " and " in lead[2] or "," in lead[2] or ";" in lead[2]:
        return text
    return f"{lead[2][0].upper()}{lead[2][1:]} {lead[1][0].lower()}{lead[1][1:]}."


def synonyms(text: str, title: str, dice: Random) -> str:
    left = 3
    told = []
    for word in text.split(" "):
        bare = word.rstrip(".,;")
        if left and bare in _SYNONYMS and dice.random() < 0.8:
            word, left = _SYNONYMS[bare] + word[len(bare) :], left - 1
        told.append(word)
    return " ".join(told)


def attributed(text: str, title: str, dice: Random) -> str:
    if text.startswith("According"):
        return text
    named = title if re.fullmatch(r"[A-Z][\w’' .&-]{3,60}", title) else ""
    opening = dice.choice(
        ["According to the report, ", "According to the source, ", f"According to {named or 'the article'}, "]
    )
    return opening + lowered(text)


def passive(text: str, title: str, dice: Random) -> str:
    found = _PASSIVE.match(text)
    if not found:
        return text
    return f"{found[3][0].upper()}{found[3][1:]} {found[2]} {lowered(found[1])}."


def shortened(text: str, title: str, dice: Random) -> str:
    return re.sub(rf"\b(?:{'|'.join(_SHORTENED)})\b", lambda match: _SHORTENED[match.group()], text)


def respelled(text: str, title: str, dice: Random) -> str:
    """Dates and percentages in another manner."""
    text = re.sub(rf"\b({_MONTHS}) (\d{{1,2}}), (\d{{4}})\b,?", r"\2 \1 \3", text)
    return re.sub(r"(?<=\d) percent\b", "%", text)


ALONE: Mapping[str, Callable[[str, str, Random], str]] = {
    "verbatim": verbatim, "without brackets": without_brackets, "without an aside": without_aside,
    "without its tail": without_tail, "without its lead": without_lead, "reordered": reordered,
    "synonyms": synonyms, "attributed": attributed, "active for passive": passive, "shortened": shortened,
    "respelled": respelled,
}  # fmt: skip
COMMON = ("synonyms", "attributed")  # they suit most sentences, so the others are tried first


def lowered(text: str) -> str:
    """As the words stand after a beginning: names keep their capital."""
    first = text.split(" ", 1)[0]
    return text[0].lower() + text[1:] if first in _OPENERS else text


def joined(first: str, second: str) -> str:
    return f"{first.rstrip('.')}, and {lowered(second)}"


def reworded(text: str, title: str, dice: Random) -> tuple[str, str]:
    """One way that changes something, chosen at random, and its name; the words as they are where none does."""
    names = [name for name in ALONE if name not in ("verbatim", *COMMON)]
    dice.shuffle(names)
    common = list(COMMON)
    dice.shuffle(common)
    names = [*common[:1], *names, *common[1:]] if dice.random() < 0.3 else [*names, *common]
    for name in names:
        told = ALONE[name](text, title, dice)
        if told != text and len(told.split()) >= 5:
            return name, told
    return "verbatim", text
