"""Where a text speaks of companies.

A wrong company is worse than none. What can only be a company's name counts however it is written ("google"); a name
that is a word as well counts where it is written as a name, which a capital at the start of a sentence does not show.
"""

import re
from bisect import bisect
from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.companies import tickers
from assay.companies.compared import BUSINESS, compared
from assay.companies.described import Stretch
from assay.companies.known import strangers
from assay.companies.names import FORMS, Name, loose, parse
from assay.companies.tokens import MOST_LETTERS, Token, bare, tokens
from assay.companies.words import is_common, is_word
from assay.model.company import Mention
from assay.text.words import STOP_WORDS, words

if TYPE_CHECKING:
    from assay.companies.register import Register

LONGEST = 100_000  # characters that are read
MOST_WORDS = 7
_WITHIN = re.compile(r"\s+|\s?[&-]\s?|\.\s?|,\s")
_SMALL = frozenset("of and the de for".split())
_UNSETTLED = _SMALL | FORMS | frozenset(("class", "public"))  # what stands behind says if it belongs to the name
_TWO_NAMES = re.compile(r"\w\w[\w.]* (?:and|&) [A-Z]\.? ?[A-Z]\.?$")  # "Smith and A O"
_ASKING = STOP_WORDS | frozenset(
    "compare analyze analyse research show explain describe summarize summarise find list investigate check assess "
    "evaluate review versus vs buy sell discuss contrast is are was".split()
)
# Words around the names of some that show that something else is meant.
_ELSEWHERE = {
    "apple": ("a an the big one each every this that", "pie pies juice tree trees cider sauce orchard orchards fruit"),
    "amazon": ("", "rainforest rainforests river basin forest forests jungle region deforestation"),
    "tesla": ("nikola one", "coil coils"),
    "alphabet": ("the an latin greek phonetic cyrillic english", "soup letters"),
}


def mentions(register: "Register", text: str) -> list[Mention]:
    text = text[:LONGEST]
    taken: list[Stretch] = []
    for found in (*_answer(register, text), *_marked(register, text), *register.descriptions.find(text)):
        _take(taken, found)
    for found in (*_Names(register, text).find(), *compared(register, text), *_bare(register, text)):
        _take(taken, found)
    return [
        Mention(text=text[start:end], start=start, end=end, company=register.company(place))
        for start, end, place in taken
    ]


def _take(taken: list[Stretch], found: Stretch) -> None:
    """What was found first stays; `taken` is in order."""
    at = bisect(taken, found)
    if (not at or taken[at - 1].end <= found.start) and (at == len(taken) or found.end <= taken[at].start):
        taken.insert(at, found)


def _answer(register: "Register", text: str) -> Iterator[Stretch]:
    """A text that is a name and nothing else."""
    said = text.strip(' \n\t"“”.,;:!?')
    if said and len(said.split()) <= 5 and not said.isupper() and (place := register.place(said)) is not None:
        start = text.index(said)
        yield Stretch(start, start + len(said), place)


def _marked(register: "Register", text: str) -> Iterator[Stretch]:
    for start, end, symbol in tickers.marked(text):
        if (place := register.ticker(symbol)) is not None:
            yield Stretch(start, end, place)


def _bare(register: "Register", text: str) -> Iterator[Stretch]:
    """Capitals are a smaller company's ticker only where the text speaks of business."""
    if text.isupper():
        return
    business = not BUSINESS.isdisjoint(words(text))
    for start, end, symbol in tickers.bare(text):
        place = register.ticker(symbol)
        if place is not None and (register.is_large(place) or (business and register.is_well_known(place))):
            yield Stretch(start, end, place)


# Names -----------------------------------------------------------------------------------------------


class _Names:
    """The names in one text. What the register is asked it is asked once, and only of words that begin a name."""

    def __init__(self, register: "Register", text: str) -> None:
        self._register = register
        self._text = text
        self._tokens = tokens(text)
        self._parsed: dict[str, Name] = {}
        self._called: dict[Name, int | None] = {}

    def find(self) -> Iterator[Stretch]:
        at = 0
        while at < len(self._tokens):
            found = self._longest(at) if self._may_begin(self._tokens[at]) else None
            if found:
                yield found[1]
            at = found[0] if found else at + 1

    def _may_begin(self, token: Token) -> bool:
        known = token.word in self._register.nicknames.first_words
        return not token.spelt and (token.capital or known or not is_word(token.text))

    def _longest(self, at: int) -> tuple[int, Stretch] | None:
        """The longest name that begins here, and the token behind it."""
        for end in self._ends(at):
            start, stop = self._tokens[at].start, self._tokens[end - 1].end
            written = self._text[start:stop]
            whole = self._meant(written, at, end)
            place = whole if bare(written) == written else self._meant(bare(written), at, end)
            if place is not None and whole in (None, place):
                return end, Stretch(start, start + len(bare(written)), place)
            if whole is not None:  # "McDonald's" has its own
                return end, Stretch(start, stop, whole)
        return None

    def _ends(self, at: int) -> Iterator[int]:
        """Where a name that begins here may end, the longest first."""
        furthest = self._reach(at)
        known = self._known(at, furthest)
        yield from (end for end in range(furthest, known, -1) if self._may_be_slip(at, end))
        yield from range(known, at, -1)

    def _reach(self, at: int) -> int:
        """Behind the last token that may belong to the same name."""
        end = at + 1
        while end < len(self._tokens) and end - at < MOST_WORDS and self._goes_on(end):
            end += 1
        return end

    def _goes_on(self, end: int) -> bool:
        last, token = self._tokens[end - 1], self._tokens[end]
        between = self._text[last.end : token.start]
        if not _WITHIN.fullmatch(between) or ("," in between and token.word not in FORMS):
            return False
        if token.spelt or last.text != bare(last.text) or (between.startswith(".") and len(last.text) > 5):
            return False
        small = token.text.islower() and token.word not in _SMALL and token.word not in FORMS
        return not small or token.word in self._register.nicknames.later_words

    def _known(self, at: int, furthest: int) -> int:
        """Behind the last token with which the words still begin a name. A letter may be one of several initials."""
        start, settled = self._tokens[at].start, at + 1
        for end in range(at + 2, furthest + 1):
            last = self._tokens[end - 1]
            if len(last.text) == 1 or last.word in _UNSETTLED:
                if end - settled > MOST_LETTERS:
                    return end - 1
            elif self._register.begins(self._parse(bare(self._text[start : last.end]))):
                settled = end
            else:
                return end - 1
        return furthest

    def _may_be_slip(self, at: int, end: int) -> bool:
        """Of several words a slip leaves the first or the last as it was. Asked so often that a name is not taken apart
        for it."""
        words = [token.word for token in self._tokens[at:end] if token.word not in FORMS]
        nicknames = self._register.nicknames
        if not words or not (
            len(words[0]) == 1 or words[0] in nicknames.first_words or words[-1] in nicknames.later_words
        ):
            return False
        return nicknames.is_near("".join(filter(str.isalnum, "".join(words))))

    def _parse(self, written: str) -> Name:
        if written not in self._parsed:
            self._parsed[written] = parse(written)
        return self._parsed[written]

    def _place(self, name: Name) -> int | None:
        if name not in self._called:
            self._called[name] = self._register.called(name)
        return self._called[name]

    def _meant(self, written: str, at: int, end: int) -> int | None:
        window, register = self._tokens[at:end], self._register
        if window[-1].word in _SMALL or (len(window) > 1 and window[0].word in _SMALL | FORMS):
            return None
        name = self._parse(written)
        capitals = all(token.capital or token.word in _SMALL for token in window)
        place = self._place(name)
        if place is None:
            return _slip(register, name, capitals)
        if register.nicknames.is_unmistakable(name):
            elsewhere = _is_elsewhere(name, self._tokens, at, end)
            return place if _unmistakable(name, written) and not elsewhere else None
        if not capitals:
            alone = len(name.core) == 1 and not name.forms and len(name.squashed) > 3
            return place if alone and register.is_well_known(place) and not _is_any_word(name) else None
        if _TWO_NAMES.search(written):
            return None
        if len(name.core) > 1 or name.forms:
            known = name.key in register.nicknames.places or name.forms or register.is_well_known(place)
            return place if known or not all(map(is_common, name.core)) else None
        return place if _alone(register, name, self._tokens, at, end) else None


def _unmistakable(name: Name, written: str) -> bool:
    """ "GE" in small letters may be anything."""
    return len(name.squashed) > 2 or (written.isupper() and "." not in written)


def _is_elsewhere(name: Name, tokens: list[Token], at: int, end: int) -> bool:
    """ "An apple", "the Amazon basin"."""
    before, behind = _ELSEWHERE.get(name.key, ("", ""))
    small = tokens[at].text.islower() or name.key == "tesla"
    return (small and at > 0 and tokens[at - 1].word in before.split()) or (
        end < len(tokens) and tokens[end].word in behind.split()
    )


def _alone(register: "Register", name: Name, tokens: list[Token], at: int, end: int) -> bool:
    """Whether one capitalised word is a company's name and no part of another: "Ford", but not "Gerald Ford"."""
    token, before = tokens[at], tokens[at - 1] if at else None
    behind = tokens[end] if end < len(tokens) and not tokens[end].first else None
    business = behind is not None and (behind.word in BUSINESS or _is_paired(register, tokens[end : end + 2]))
    if name.key not in register.nicknames.ordinary and (len(name.squashed) < 4 or _is_any_word(name)):
        return False
    if (
        before
        and before.word in ("a", "an", "the")
        and name.key in register.nicknames.ordinary - register.nicknames.articled
    ):
        return False
    adjoins = before is not None and token.start - before.end == 1 and before.capital
    if adjoins and before and before.word not in _ASKING and not (before.first and token.first):
        return False
    if behind and behind.capital and not business:
        return False
    owns = tokens[end - 1].text.endswith(("'s", "’s"))
    shouted = token.text.isupper() and len(token.text) > 1
    return not token.first or shouted or business or owns or name.key not in register.nicknames.ordinary


def _is_any_word(name: Name) -> bool:
    return any(map(is_word, (*name.core, *loose(name.core))))


def _is_paired(register: "Register", behind: list[Token]) -> bool:
    """ "Visa and Mastercard": a word beside a company's name is a name too."""
    joined = len(behind) == 2 and behind[0].word in ("and", "or", "vs", "versus") and behind[1].capital
    return joined and parse(bare(behind[1].text)).key in register.nicknames.places


def _slip(register: "Register", name: Name, capitals: bool) -> int | None:
    """A known company's name with a slip in it: where the word is none, and several words are written as a name."""
    wrong = [word for word in name.core if not is_word(word)]
    if not wrong or len(name.squashed) < 4 or name.key in strangers() or any(map(str.isdigit, name.squashed)):
        return None
    if len(name.core) > 1 and (not capitals or any(len(word) < 2 for word in name.core)):
        return None
    near = register.nicknames.misspelt(name)
    return near.pop() if len(near) == 1 else None
