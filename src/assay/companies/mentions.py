"""Where a text speaks of companies.

A wrong company is worse than none. What can only be a company's name counts however it is written ("google"); a name
that is a word as well counts where it is written as a name, which a capital at the start of a sentence does not show.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from assay.companies import tickers
from assay.companies.described import Stretch
from assay.companies.known import strangers
from assay.companies.names import FORMS, Name, loose, parse, plain
from assay.companies.words import is_common, is_word
from assay.model.company import Mention
from assay.text.words import STOP_WORDS, words

if TYPE_CHECKING:
    from assay.companies.register import Register

LONGEST = 100_000  # characters that are read
MOST_WORDS = 7
MOST_LETTERS = 3  # alone, one after the other: "A O Smith", and no alphabet
_TOKEN = re.compile(r"(?:[^\W_]|[\u0300-\u036f])+(?:[&'’.+](?:[^\W_]|[\u0300-\u036f])+)*")
_ENDS = re.compile(r"[.!?\n]")
_WITHIN = re.compile(r"\s+|\s?[&-]\s?|\.\s?|,\s")
_POSSESSIVE = re.compile(r"['’]s$")
_SMALL = frozenset("of and the de for".split())
_BUSINESS = frozenset(
    "stock stocks shares share price market ticker trading revenue revenues earnings sales profit profits results "
    "dividend valuation financials quarter ceo cfo reported reports announced announces said says stores invest "
    "investment investors portfolio shareholders competitors buy sell".split()
)


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


class Token(NamedTuple):
    text: str
    start: int
    end: int
    first: bool  # of a sentence, where a capital says nothing

    @property
    def capital(self) -> bool:
        return self.text[0].isupper() or self.text[0].isdigit()


def mentions(register: "Register", text: str) -> list[Mention]:
    text = text[:LONGEST]
    taken: list[Stretch] = []
    for found in (*_answer(register, text), *_marked(register, text), *register.descriptions.find(text)):
        _take(taken, found)
    for found in _names(register, text):
        _take(taken, found)
    for found in _bare(register, text):
        _take(taken, found)
    return [
        Mention(text=text[start:end], start=start, end=end, company=register.company(place))
        for start, end, place in sorted(taken)
    ]


def _take(taken: list[Stretch], found: Stretch) -> None:
    """What was found first stays."""
    if not any(found.start < other.end and other.start < found.end for other in taken):
        taken.append(found)


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
    business = not _BUSINESS.isdisjoint(words(text))
    for start, end, symbol in tickers.bare(text):
        place = register.ticker(symbol)
        if place is not None and (register.is_large(place) or (business and register.is_well_known(place))):
            yield Stretch(start, end, place)


# Names -----------------------------------------------------------------------------------------------


def _names(register: "Register", text: str) -> Iterator[Stretch]:
    tokens = _tokens(text)
    at = 0
    while at < len(tokens):
        found = _longest(register, text, tokens, at) if _may_begin(register, tokens[at]) else None
        if found:
            yield Stretch(*found[1:])
        at = found[0] if found else at + 1


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        first = not found or bool(_ENDS.search(text, found[-1].end, match.start()))
        found.append(Token(match.group(), *match.span(), first))
    long = [token for token in found if len(token.text) > 3]
    if len(long) > 6 and sum(token.capital for token in long) > 0.8 * len(long):  # a headline: no capital says anything
        found = [token._replace(first=True) for token in found]
    return found


def _may_begin(register: "Register", token: Token) -> bool:
    return (
        token.capital
        or plain(_POSSESSIVE.sub("", token.text)) in register.nicknames.first_words
        or not is_word(token.text)
    )


def _longest(register: "Register", text: str, tokens: list[Token], at: int) -> tuple[int, int, int, int] | None:
    """The longest name that begins here: the token behind it, where it stands and whose it is."""
    for end in range(_reach(register, text, tokens, at), at, -1):
        window = tokens[at:end]
        written = text[window[0].start : window[-1].end]
        bare = _POSSESSIVE.sub("", written)
        whole = _meant(register, written, tokens, at, end)
        place = whole if bare == written else _meant(register, bare, tokens, at, end)
        if place is not None and whole in (None, place):
            return end, window[0].start, window[0].start + len(bare), place
        if whole is not None:  # "McDonald's" has its own
            return end, window[0].start, window[-1].end, whole
    return None


def _reach(register: "Register", text: str, tokens: list[Token], at: int) -> int:
    """Behind the last token that may belong to the same name."""
    end = at + 1
    while end < len(tokens) and end - at < MOST_WORDS and not tokens[end - 1].text.endswith(("'s", "’s")):
        between = text[tokens[end - 1].end : tokens[end].start]
        if not _WITHIN.fullmatch(between) or ("," in between and plain(tokens[end].text) not in FORMS):
            break
        small = tokens[end].text.islower() and plain(tokens[end].text)
        if small and small not in _SMALL and small not in FORMS and small not in register.nicknames.later_words:
            break
        if between.startswith(".") and len(tokens[end - 1].text) > 5:
            break
        if end - at >= MOST_LETTERS and all(len(token.text) == 1 for token in tokens[end - MOST_LETTERS : end + 1]):
            break
        end += 1
    return end


def _meant(register: "Register", written: str, tokens: list[Token], at: int, end: int) -> int | None:
    window = tokens[at:end]
    if plain(window[-1].text) in _SMALL or (len(window) > 1 and plain(window[0].text) in _SMALL | FORMS):
        return None
    name = parse(written)
    capitals = all(token.capital or plain(token.text) in _SMALL for token in window)
    place = register.called(name)
    if place is None:
        return _slip(register, name, capitals)
    if register.nicknames.is_unmistakable(name):
        return place if _unmistakable(name, written) and not _is_elsewhere(name, tokens, at, end) else None
    if not capitals:
        alone = len(name.core) == 1 and not name.forms and len(name.squashed) > 3
        return place if alone and register.is_well_known(place) and not _is_any_word(name) else None
    if len(name.core) > 1 or name.forms:
        known = name.key in register.nicknames.places or name.forms or register.is_well_known(place)
        return place if known or not all(map(is_common, name.core)) else None
    return place if _alone(register, name, tokens, at, end) else None


def _unmistakable(name: Name, written: str) -> bool:
    """ "GE" in small letters may be anything."""
    return len(name.squashed) > 2 or (written.isupper() and "." not in written)


def _is_elsewhere(name: Name, tokens: list[Token], at: int, end: int) -> bool:
    """ "An apple", "the Amazon basin"."""
    before, behind = _ELSEWHERE.get(name.key, ("", ""))
    small = tokens[at].text.islower() or name.key == "tesla"
    return (small and at > 0 and plain(tokens[at - 1].text) in before.split()) or (
        end < len(tokens) and plain(tokens[end].text) in behind.split()
    )


def _alone(register: "Register", name: Name, tokens: list[Token], at: int, end: int) -> bool:
    """Whether one capitalised word is a company's name and no part of another: "Ford", but not "Gerald Ford"."""
    token, before = tokens[at], tokens[at - 1] if at else None
    behind = tokens[end] if end < len(tokens) and not tokens[end].first else None
    business = behind is not None and (plain(behind.text) in _BUSINESS or _is_paired(register, tokens[end : end + 2]))
    if name.key not in register.nicknames.ordinary and (len(name.squashed) < 4 or _is_any_word(name)):
        return False
    if (
        before
        and plain(before.text) in ("a", "an", "the")
        and name.key in register.nicknames.ordinary - register.nicknames.articled
    ):
        return False
    adjoins = before is not None and token.start - before.end == 1 and before.capital
    if (
        adjoins
        and before
        and plain(_POSSESSIVE.sub("", before.text)) not in _ASKING
        and not (before.first and token.first)
    ):
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
    joined = len(behind) == 2 and plain(behind[0].text) in ("and", "or", "vs", "versus") and behind[1].capital
    return joined and parse(_POSSESSIVE.sub("", behind[1].text)).key in register.nicknames.places


def _slip(register: "Register", name: Name, capitals: bool) -> int | None:
    """A known company's name with a slip in it: where the word is none, and several words are written as a name."""
    wrong = [word for word in name.core if not is_word(word)]
    if not wrong or len(name.squashed) < 4 or name.key in strangers() or any(map(str.isdigit, name.squashed)):
        return None
    if len(name.core) > 1 and (not capitals or any(len(word) < 2 for word in name.core)):
        return None
    near = register.nicknames.misspelt(name)
    return near.pop() if len(near) == 1 else None
