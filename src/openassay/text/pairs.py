"""Questions about two things: which came first, how long lay between them, which has more of something.

Each side is asked by itself, and the answer is worked out of what is found on both. The forms are those of English.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from openassay.text.negation import COMPARATIVES, find_directions, has_negation
from openassay.text.words import IRREGULAR

PairKind = Literal["order", "span", "more"]


class PairQuestion(NamedTuple):
    """`asked` is what is asked of each side alone, `names` what the sides are called; `rises` tells whether it is the
    earlier or the greater one that is wanted. A question that can be answered by yes holds if the first is that one."""

    kind: PairKind
    asked: tuple[str, str]
    names: tuple[str, str]
    rises: bool = True
    by_yes: bool = False
    difference: Literal["", "alone", "besides"] = ""  # whether it is asked by how much


_IS = r"(?:did|does|do|is|was|are|were|has|had|have|will)"
_COMPARED = rf"\b(?:(?:an?|the) )?(?P<more>{'|'.join(sorted(COMPARATIVES))})\b"
_WHICH_OF = re.compile(r"^(?P<ask>(?:which|who|what)\b[^,:;]*)[,:] (?P<a>.+?),? or (?P<b>.+)$", re.I)
_OF_WHICH = re.compile(
    r"^(?:(?:of|between) )?(?P<a>.+?),? (?:or|and) (?P<b>[^,:;]+)[,:] (?P<ask>(?:which|who|what)\b[^,:;]*)$", re.I
)
_OR = re.compile(
    rf"^{_IS} (?:there )?(?P<ask>.*?{_COMPARED}.*?) (?P<a>(?P<joint>\w+) .+?),? or (?P<b>(?P=joint) .+)$", re.I
)
_DID_BEFORE = re.compile(rf"^(?P<is>{_IS}) (?P<a>.+?) (?P<order>before|after) (?P<b>.+)$", re.I)
_IS_MORE = re.compile(rf"^(?P<is>{_IS}) (?P<a>.+?) {_COMPARED}(?P<of>.*?) than (?P<b>.+)$", re.I)
_HOW_MANY_MORE = re.compile(
    rf"^how (?P<many>many|much) (?P<more>more|less|fewer) (?P<of>.+?) (?P<is>{_IS}) (?P<a>.+?) than (?P<b>.+)$", re.I
)
_SPAN = r"^how (?:long|much time|many (?:days|weeks|months|years))\b"
_SPAN_BETWEEN = re.compile(rf"{_SPAN}.*? (?:between (?P<a>.+?) and|from (?P<c>.+?) (?:to|until)) (?P<b>.+)$", re.I)
_SPAN_AFTER = re.compile(rf"{_SPAN} (?:was it )?(?P<order>after|before) (?P<a>.+?) (?P<b>(?:{_IS}) .+)$", re.I)
_APART = re.compile(rf"{_SPAN} apart {_IS} (?P<a>.+) and (?P<b>.+)$", re.I)
# "..., and by how much?": how far apart the two are is asked besides.
_BESIDES = re.compile(r",? and (?:by )?how (?:much|many|long)\b[^,:;]*$", re.I)
# What stands ahead of the question and holds of both sides: "On 4 May 2009, did ...", "According to the AP, which ..."
_AHEAD = re.compile(
    rf"^(?!(?:which|who|what|how|of|between)\b|{_IS}\b)(?P<of>[^,:;?]+), (?=(?:which|who|how|{_IS})\b)", re.I
)
_OR_HAS = re.compile(
    rf"^(?P<is>{_IS}) (?P<a>.+?) or (?P<b>.+?) (?P<verb>[a-z]+) (?:the )?{_COMPARED} (?P<of>.+)$", re.I
)
_OF_THE_TWO = re.compile(rf"^of the .+?(?= {_IS} )", re.I)
_PREPOSITION = re.compile(r"^(?:aboard|at|by|during|for|from|in|of|on|to|under|with)\b", re.I)


@lru_cache(maxsize=256)
def parse_pair(question: str) -> PairQuestion | None:
    """None for any other question, and where what is asked of a side alone cannot be told."""
    plain = " ".join(question.split()).rstrip("?!. ")
    if found := _AHEAD.match(plain):
        of, pair = found["of"], parse_pair(plain[found.end() :])
        first, second = (f"{of}, {one[0].lower()}{one[1:]}" for one in pair.asked) if pair else ("", "")
        return pair and pair._replace(asked=(first, second))
    if found := _BESIDES.search(plain):
        pair = parse_pair(plain[: found.start()])
        return pair._replace(difference="besides") if pair and pair.kind != "span" else None
    if found := _HOW_MANY_MORE.match(plain):
        return _parse_difference(found)
    if found := _APART.match(plain):
        return PairQuestion("span", (_ask_when(found["a"]), _ask_when(found["b"])), (found["a"], found["b"]))
    if found := _OR_HAS.match(plain):
        rises, a, b = _rises(found["more"]), found["a"], found["b"]
        each = [
            f"{_ask_amount(found['more'], found['of'])} {found['is'].lower()} {one} {found['verb']}?" for one in (a, b)
        ]
        return PairQuestion("more", (each[0], each[1]), (a, b), rises) if rises is not None else None
    if found := _SPAN_BETWEEN.match(plain):
        a, b = found["a"] or found["c"], found["b"]
        if b.split()[0].endswith("ing"):  # "between Germany beating X and knocking out Y": by whom is told once
            return None
        return PairQuestion("span", (_ask_when(a), _ask_when(b)), (a, b))
    if found := _SPAN_AFTER.match(plain):
        return PairQuestion("span", (_ask_when(found["a"]), _ask_when(found["b"])), (found["a"], found["b"]))
    if found := _WHICH_OF.match(plain) or _OF_WHICH.match(plain) or _OR.match(plain):
        return _parse_choice(found["ask"], found["a"], found["b"])
    if found := _IS_MORE.match(plain):
        asked = _ask_amount(found["more"], found["of"].strip())
        rises = _rises(found["more"])
        if asked is None or rises is None:
            return None
        a, b = found["a"], found["b"]
        return PairQuestion("more", (f"{asked} {a}?", f"{asked} {b}?"), (a, b), rises, by_yes=True)
    if (found := _DID_BEFORE.match(plain)) and not has_negation(found["a"]):  # "not long before" asks for more
        a, b = found["a"], found["b"]
        earlier = found["order"].lower() == "before"
        return PairQuestion("order", (f"When {found['is'].lower()} {a}?", _ask_when(b)), (a, b), earlier, by_yes=True)
    return None


def _ask_when(event: str) -> str:
    """Ask when something was that is told by a question's verb ("did it end"), a clause ("it ended") or a name ("its
    end"). A person reads it; to the reader of answers all forms are alike."""
    if re.match(rf"{_IS}\b", event, re.I):
        return f"When {event}?"
    said = event.lower().split()[1:]
    is_clause = any(word.endswith("ed") or word in IRREGULAR or re.fullmatch(_IS, word) for word in said)
    return f"When was it that {event}?" if is_clause else f"When was {event}?"


def _parse_choice(ask: str, a: str, b: str) -> PairQuestion | None:
    turns = [one for one in find_directions(ask) if one.family == "order"]
    if turns:
        # "Which was launched first" of a side alone: "When was it that ... was launched"; what came first, came.
        said = " ".join(f"{ask[: turns[-1].start]} {ask[turns[-1].end :]}".split()[1:]).removesuffix("came")
        said = _OF_THE_TWO.sub("", said).strip()
        return PairQuestion(
            "order", (_ask_when(f"{a} {said}".strip()), _ask_when(f"{b} {said}".strip())), (a, b), turns[-1].rises
        )
    compared = re.search(_COMPARED, ask, re.I)
    if compared is None:
        return None
    of = ask[compared.end() :].strip()
    asked, rises = _ask_amount(compared["more"], of), _rises(compared["more"])
    if asked is None or rises is None:
        return None
    if asked.startswith("What "):
        return PairQuestion("more", (f"What is the {of} of {a}?", f"What is the {of} of {b}?"), (a, b), rises)
    return PairQuestion("more", (f"{asked}, {a}?", f"{asked}, {b}?"), (a, b), rises)


def _parse_difference(found: re.Match[str]) -> PairQuestion | None:
    """How many more of a thing one side has: with what is compared put in the place of the same joint, or of all that
    is said of the thing."""
    rises = _rises(found["more"])
    a, b, counted = found["a"], found["b"], f"How {found['many']} {found['of']}"
    joint = _PREPOSITION.match(b)
    if joint and (at := f" {a}".rfind(f" {joint[0]} ")) >= 0:
        other = f"{counted} {found['is']} {a[:at]}{b}?"
    elif joint or b[:1].isupper():
        return None
    else:
        other = f"{counted} {b}?"
    return PairQuestion(
        "more", (f"{counted} {found['is']} {a}?", other), (a, b), rises is not False, difference="alone"
    )


def _ask_amount(more: str, of: str) -> str | None:
    """More lives: how many lives; a greater age: what age."""
    if not of:
        return None
    return f"How many {of}" if more.lower() in ("more", "fewer", "less") else f"What {of}"


def _rises(more: str) -> bool | None:
    turns = find_directions(more)
    return turns[-1].rises if turns else None
