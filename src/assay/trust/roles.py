"""Do the figures and names of a statement stand where they stand in the passage? "A beat B" is not "B beat A".

Each figure or name is looked for by the words beside it. Where they are beside another of its kind in the passage
rather than beside itself, the two have changed places. This doubts, it never vouches.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Literal, NamedTuple

from assay.text.dates import When
from assay.text.opposites import OPPOSITES
from assay.text.quantities import Quantity, quantities
from assay.text.sentences import sentences
from assay.text.words import STOP_WORDS, fold, stem
from assay.trust.naming import GRAMMAR, alike
from assay.trust.problem import Kind, Problem

Sort = Literal["figure", "name", "word"]
MOST, MOST_BEHIND, MOST_LINES = 100, 200, 100  # words of a sentence, words of a passage's sentence, sentences
REACH = 6  # words beside it, on either side
LEAST, LEAST_OF_FREE_WORDS = 2, 5  # a like stop word alone is chance; in a free wording two words are
PLAIN, TELLING = 1, 2  # what a stop word beside it and any other word beside it count
_TOKEN = re.compile(r"[^\W_]+(?:[-’'.&][^\W_]+)*|[,;:()]")
_BE = frozenset("is was are were been being be".split())
_COMMA = re.compile(r",(?!\s\d{4}|\d)|\s[–—-]\s")
_MOST_ASIDES = 12
_BRACKETS = re.compile(r"\s?\([^()]*\)")
_FINE = re.compile(r"[,;:()]")


class Token(NamedTuple):
    key: str  # a word's stem, a figure's value, a name's folded words
    sort: Sort
    shown: str
    when: When | None = None

    @property
    def opposites(self) -> frozenset[str]:
        return OPPOSITES.get(self.shown.lower(), frozenset())


def role_problems(statement: str, passages: Sequence[str], *, strict: bool = True) -> Iterator[Problem]:
    least = LEAST if strict else LEAST_OF_FREE_WORDS
    lines = [line[:MOST_BEHIND] for passage in passages for line in _lines(passage)][:MOST_LINES]
    for piece in _sentences(statement):
        ours = _active(_tokens(piece))
        if len(ours) > MOST:
            yield Problem("scope", "the sentence is too long to be checked word by word")
            return
        for at, token in enumerate(ours):
            if (token.sort != "word" or token.opposites) and (rival := _rival(ours, at, lines, least)):
                kind = _KINDS.get(token.sort) or ("date" if token.when else "figure")
                yield Problem(kind, f"{token.shown} stands where the quoted passage has {rival}")


_KINDS: dict[Sort, Kind] = {"name": "name", "word": "direction"}


def _rival(ours: Sequence[Token], at: int, lines: Sequence[Sequence[Token]], least: int) -> str:
    """Who stands in this place in the passage, if its own place is less like it. What has no place there at all is
    for other checks to see."""
    slot = ours[at]
    own, other, shown = -1 if slot.sort == "figure" else 0, least - 1, ""
    for line in lines:
        for place, token in enumerate(line):
            itself = _same(slot, token) if token.sort == slot.sort else _plainly(slot, token)
            if not itself and not _vies(slot, token):
                continue
            like = _beside(ours, at, line, place)
            if itself:
                own = max(own, like)
            elif like > other:
                other, shown = like, token.shown
    return shown if -1 < own < other else ""


def _vies(slot: Token, token: Token) -> bool:
    """Whether one may have taken the other's place: of a word only its opposites."""
    return token.sort == slot.sort and (slot.sort != "word" or token.shown.lower() in slot.opposites)


def _plainly(name: Token, word: Token) -> bool:
    """Whether a name is this plain word of the passage: "Village" at the beginning, "village" there."""
    return name.sort == "name" and word.sort == "word" and word.shown.lower() in name.key.split()


def _same(one: Token, other: Token) -> bool:
    if one.when and other.when:
        return all(a == b for a, b in zip(one.when[:4], other.when[:4], strict=True) if a and b)
    if one.sort != "name":
        return one.key == other.key
    mine, theirs = one.key.split(), other.key.split()
    if _initials(mine) == other.key or _initials(theirs) == one.key or alike(one.key, other.key):
        return True
    return _part(mine, theirs) or _part(theirs, mine)


def _part(some: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether a name is a part of another, as a surname is; not "BC Beroe" of "BC Bulgaria", nor America of South
    America."""
    if (set(whole) & _QUALIFYING) - set(some):
        return False
    return all(any(alike(word, other) for other in whole) for word in some)


_QUALIFYING = frozenset(
    "north south east west northern southern eastern western central new old upper lower great greater".split()
)


def _initials(words: Sequence[str]) -> str:
    return "".join(word[0] for word in words) if len(words) > 1 else ""


def _beside(ours: Sequence[Token], at: int, line: Sequence[Token], place: int) -> int:
    """What the runs of like words to the left and to the right of the two places count."""
    return sum(
        _run(ours[start::step][:REACH] if start >= 0 else (), line[begin::step][:REACH] if begin >= 0 else ())
        for step, start, begin in ((-1, at - 1, place - 1), (1, at + 1, place + 1))
    )


def _run(ours: Sequence[Token], theirs: Sequence[Token]) -> int:
    count = 0
    for one, other in zip(ours, theirs, strict=False):
        if one.sort != other.sort or not _same(one, other):
            break
        count += PLAIN if one.sort == "word" and (one.key in STOP_WORDS or _FINE.match(one.key)) else TELLING
    return count


@lru_cache(maxsize=512)
def _lines(passage: str) -> tuple[tuple[Token, ...], ...]:
    """Each sentence of the passage, and again without each of its asides: a statement may leave one out."""
    plain = _BRACKETS.sub("", passage)  # "(b. 1960)" may look like the end of a sentence
    found = [_tokens(sentence) for sentence in _sentences(passage)] if plain != passage else []
    for sentence in _sentences(plain):
        placed = _placed(sentence)
        found.append(_named(placed))
        found += [_named([item for item in placed if not start <= item[0] < end]) for start, end in _asides(sentence)]
    return tuple(dict.fromkeys(form for tokens in found for form in (tuple(tokens), tuple(_active(tokens)))))


def _asides(text: str) -> list[tuple[int, int]]:
    """What stands between two commas or dashes, or two such stretches."""
    marks = [(match.start(), match.end()) for match in _COMMA.finditer(text)]
    pairs = [(at, at + far) for far in (1, 2) for at in range(len(marks) - far)]
    return [(marks[first][0], marks[last][1]) for first, last in pairs[:_MOST_ASIDES]]


def _sentences(text: str) -> list[str]:
    return [piece.text for piece in sentences(text)] or [text]


def _tokens(text: str) -> list[Token]:
    return _named(_placed(text))


def _placed(text: str) -> list[tuple[int, Token]]:
    """Words and figures with their places."""
    figures = quantities(text)
    words = [
        (match.start(), _word(match.group()))
        for match in _TOKEN.finditer(text)
        if not any(item.start < match.end() and match.start() < item.end for item in figures)
    ]
    told = [(item.start, _figure(item, text[item.start : item.end])) for item in figures]
    return sorted([*words, *told], key=lambda placed: placed[0])


def _figure(item: Quantity, shown: str) -> Token:
    return Token(item.label or str(item.value), "figure", shown, item.when)


def _word(text: str) -> Token:
    bare = re.sub(r"['’]s$|['’]$", "", text)
    plain = fold(bare)
    titled = any(part[:1].isupper() for part in bare.split("-"))
    if titled and (plain not in GRAMMAR or (bare.isupper() and len(bare) > 1)):
        return Token(plain.replace(".", ""), "name", bare)
    return Token(stem(plain), "word", bare)


def _named(placed: Sequence[tuple[int, Token]]) -> list[Token]:
    """Neighbouring capitalised words are one name."""
    found: list[Token] = []
    for sort, group in groupby((token for _, token in placed), key=lambda token: token.sort):
        run = list(group)
        joined = Token(" ".join(token.key for token in run), "name", " ".join(token.shown for token in run))
        found += [joined] if sort == "name" else run
    return found


def _active(tokens: Sequence[Token]) -> list[Token]:
    """ "B was beaten by A" as "A beaten B", where a name stands on both sides."""
    for at in range(1, len(tokens) - 3):
        be, verb, by = tokens[at : at + 3]
        done, doer = tokens[at - 1], tokens[at + 3]
        passive = be.shown in _BE and by.shown == "by" and verb.sort == "word"
        if passive and done.sort == doer.sort == "name":
            return [*tokens[: at - 1], doer, verb, done, *tokens[at + 4 :]]
    return list(tokens)
