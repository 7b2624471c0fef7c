"""Where a text speaks of companies.

A wrong company is worse than none. What can only be a company's name counts however it is written ("google"); a name
that is a word as well counts where it is written as a name, which a capital at the start of a sentence does not show.
"""

import re
from bisect import bisect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from openassay.companies import names
from openassay.companies.names import (
    FORMS,
    MOST_LETTERS,
    CompanyName,
    CompanyProfile,
    NameToken,
    fold_name,
    is_common,
    is_word,
    names_outside_register,
    normalize_words,
    parse_name,
    strip_possessive,
    to_singular,
    tokenize_text,
)
from openassay.models.evidence import Mention
from openassay.text.words import STOP_WORDS, words

if TYPE_CHECKING:
    from openassay.companies.register import CompanyRegister


# Companies by what they are known for: "the electric car company", "the maker of the iPhone", "Tim Cook's company".

_WORD = re.compile(r"[^\W_]+(?:['’]s\b)?")
_THE = frozenset("the that this".split())
_WHO = frozenset(
    "company maker manufacturer giant firm business corporation producer builder brand owner creator developer "
    "inventor parent platform provider seller chain group startup".split()
)
_LINKS = (
    "of", "behind", "making", "selling", "owning", "run by", "led by", "founded by", "headed by", "started by",
    *(
        f"{which} {does}"
        for which in ("that", "which", "who")
        for does in "makes made make sells sold owns owned created creates builds built runs develops developed "
        "produces produced invented operates launched".split()
    ),
    "that is behind", "that came up with", "that brought us", "who brought us",
)  # fmt: skip
_LINK_WORDS = sorted((tuple(link.split()) for link in _LINKS), key=len, reverse=True)
_ARTICLES = frozenset("the a an its their".split())
_MOST_DESCRIPTION_WORDS = 5


class DescriptionWord(NamedTuple):
    said: str
    one: str  # as a singular, without a possessive
    start: int
    end: int


class CompanySpan(NamedTuple):
    start: int
    end: int
    place: int


PhraseTable = dict[tuple[str, ...], int]


class Descriptions:
    def __init__(self, known: Mapping[int, CompanyProfile]) -> None:
        entries = known.items()
        self._makes = {_phrase_key(thing): place for place, entry in entries for thing in entry.makes}
        self._phrases = {_phrase_key(phrase): place for place, entry in entries for phrase in entry.phrases}
        self._people = {_phrase_key(person): place for place, entry in entries for person in entry.people}
        self._firsts = {key[0] for table in (self._makes, self._phrases, self._people) for key in table}

    def match_text(self, text: str) -> int | None:
        """The company that a whole text describes; its article may be missing."""
        for said in (text, f"the {text}"):
            words = _split_words(said)
            for found in self._match_at(words, 0) if words else ():
                if found.end == words[-1].end:
                    return found.place
        return None

    def find(self, text: str) -> Iterator[CompanySpan]:
        words = _split_words(text)
        for at in range(len(words)):
            yield from sorted(self._match_at(words, at), key=lambda found: -found.end)[:1]

    def _match_at(self, words: list[DescriptionWord], at: int) -> Iterator[CompanySpan]:
        """Descriptions that begin with a certain word."""
        start = words[at].start
        for end, place in self._match_longest(self._people, words, at):
            if end < len(words) and words[end].said in _WHO:
                yield CompanySpan(start, words[end].end, place)
        if words[at].said not in _THE or at + 1 == len(words):
            return
        for end, place in self._match_longest(self._makes, words, at + 1):
            if end < len(words) and words[end].said in _WHO:
                yield CompanySpan(start, words[end].end, place)
        for end, place in self._match_longest(self._phrases, words, at + 1):
            yield CompanySpan(start, words[end - 1].end, place)
        if words[at + 1].said in _WHO:
            begin = at + 2
            for link in _LINK_WORDS:
                if tuple(word.said for word in words[begin : begin + len(link)]) == link:
                    begin += len(link)
                    begin += begin < len(words) and words[begin].said in _ARTICLES
                    for table in (self._makes, self._people):
                        for end, place in self._match_longest(table, words, begin):
                            yield CompanySpan(start, words[end - 1].end, place)
                    return

    def _match_longest(self, table: PhraseTable, words: list[DescriptionWord], at: int) -> Iterator[tuple[int, int]]:
        if at >= len(words) or words[at].one not in self._firsts:
            return
        for end in range(min(len(words), at + _MOST_DESCRIPTION_WORDS), at, -1):
            place = table.get(tuple(word.one for word in words[at:end]))
            if place is not None:
                yield end, place
                return


def _split_words(text: str) -> list[DescriptionWord]:
    found = ((match.group(), *match.span()) for match in _WORD.finditer(text))
    return [
        DescriptionWord(
            said := fold_name(word), to_singular(said.removesuffix("'s").removesuffix("’s"), least=4), start, end
        )
        for word, start, end in found
    ]


def _phrase_key(text: str) -> tuple[str, ...]:
    return tuple(word.one for word in _split_words(text))


# Companies that are compared. Beside each other their names need no capitals: "compare ford and gm".

BUSINESS = frozenset(
    "stock stocks shares share price market ticker trading revenue revenues earnings sales profit profits results "
    "dividend valuation financials quarter ceo cfo reported reports announced announces said says stores invest "
    "investment investors portfolio shareholders competitors buy sell".split()
)
_ANYTHING = "between"  # "the gap between target and visa": not without a name that can be nothing else
_CUES = frozenset((_ANYTHING, *"compare comparing contrast".split()))
_BETWEEN = frozenset("vs versus compared".split())
_JOINS = _BETWEEN | frozenset("and or with to against than".split())
_MOST_SIDE_WORDS = 4  # of a name


def find_comparisons(register: "CompanyRegister", text: str) -> Iterator[CompanySpan]:
    words = tokenize_text(text)
    read = 0
    for at in range(len(words)):
        if at < read:
            continue
        # Where the first of those that are compared begins, if a word compares any.
        starts = range(max(0, at - _MOST_SIDE_WORDS), at) if words[at].word in _BETWEEN else ()
        start = next((start for start in starts if _match_nickname(register, text, words[start:at]) is not None), None)
        start = at + 1 if words[at].word in _CUES else start
        if start is not None:
            found, read = _read_sides(register, text, words, max(start, read))
            if words[at].word != _ANYTHING or any(
                register.nicknames.is_unmistakable(parse_name(text[side.start : side.end])) for side in found
            ):
                yield from found


def _read_sides(
    register: "CompanyRegister", text: str, words: list[NameToken], at: int
) -> tuple[list[CompanySpan], int]:
    """All that are named one after the other, or nothing where one of them is no well-known company; and where they
    end."""
    found: list[CompanySpan] = []
    while True:
        for end in range(min(len(words), at + _MOST_SIDE_WORDS), at, -1):  # the longest name first
            if (place := _match_nickname(register, text, words[at:end])) is not None:
                start = words[at].start
                stop = start + len(strip_possessive(text[start : words[end - 1].end]))
                found.append(CompanySpan(start, stop, place))
                break
        else:
            return [], at
        at = end
        while at < len(words) and words[at].word in _JOINS:
            at += 1
        if at == end and not (end < len(words) and text[words[end - 1].end : words[end].start].strip() == ","):
            # "Compare target and block sizes" speaks of sizes.
            ends = end == len(words) or words[end - 1].text != strip_possessive(words[end - 1].text)
            ends = ends or not text[words[end - 1].end : words[end].start].isspace()
            ends = ends or words[end].word in STOP_WORDS or words[end].word in BUSINESS
            return found if len(found) > 1 and ends else [], end


def _match_nickname(register: "CompanyRegister", text: str, words: list[NameToken]) -> int | None:
    """Which well-known company people call so."""
    if words[-1].word in _JOINS:  # "ford and": no part of a name counts at its end
        return None
    return register.nicknames.places.get(parse_name(strip_possessive(text[words[0].start : words[-1].end])).key)


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


def find_mentions(register: "CompanyRegister", text: str) -> list[Mention]:
    text = text[:LONGEST]
    spans: list[CompanySpan] = []
    whole = text.strip(' \n\t"“”.,;:!?')  # a text that is a name and nothing else
    if whole and len(whole.split()) <= 5 and not whole.isupper() and (place := register.find_place(whole)) is not None:
        spans.append(CompanySpan(text.index(whole), text.index(whole) + len(whole), place))
    for start, end, symbol in names.find_explicit_tickers(text):
        if (place := register.find_ticker(symbol)) is not None:
            spans.append(CompanySpan(start, end, place))
    spans += register.descriptions.find(text)
    spans += _NameScanner(register, text).find()
    spans += find_comparisons(register, text)
    # Capitals are a smaller company's ticker only where the text speaks of business.
    business = not BUSINESS.isdisjoint(words(text))
    for start, end, symbol in () if text.isupper() else names.find_bare_tickers(text):
        place = register.find_ticker(symbol)
        if place is not None and (register.is_large(place) or (business and register.is_well_known(place))):
            spans.append(CompanySpan(start, end, place))
    taken: list[CompanySpan] = []
    for found in spans:  # what was found first stays; `taken` is in order
        at = bisect(taken, found)
        if (not at or taken[at - 1].end <= found.start) and (at == len(taken) or found.end <= taken[at].start):
            taken.insert(at, found)
    return [
        Mention(text=text[start:end], start=start, end=end, company=register.company_at(place))
        for start, end, place in taken
    ]


# Names -----------------------------------------------------------------------------------------------


class _NameScanner:
    """The names in one text. What the register is asked it is asked once, and only of words that begin a name."""

    def __init__(self, register: "CompanyRegister", text: str) -> None:
        self._register = register
        self._text = text
        self._tokens = tokenize_text(text)
        self._parsed: dict[str, CompanyName] = {}
        self._called: dict[CompanyName, int | None] = {}

    def find(self) -> Iterator[CompanySpan]:
        at = 0
        while at < len(self._tokens):
            token = self._tokens[at]
            known = token.word in self._register.nicknames.first_words
            can_begin = not token.spelt and (token.capital or known or not is_word(token.text))
            behind = at + 1
            for end in self._possible_ends(at) if can_begin else ():
                start, stop = token.start, self._tokens[end - 1].end
                written = self._text[start:stop]
                bare = strip_possessive(written)
                whole = self._resolve_place(written, at, end)
                place = whole if bare == written else self._resolve_place(bare, at, end)
                if place is not None and whole in (None, place):
                    stop = start + len(bare)
                elif whole is not None:  # "McDonald's" has its own
                    place = whole
                if place is not None:
                    yield CompanySpan(start, stop, place)
                    behind = end
                    break
            at = behind

    def _possible_ends(self, at: int) -> Iterator[int]:
        """Where a name that begins here may end, the longest first."""
        tokens, nicknames = self._tokens, self._register.nicknames
        furthest = at + 1
        while furthest < len(tokens) and furthest - at < MOST_WORDS:
            last, token = tokens[furthest - 1], tokens[furthest]
            between = self._text[last.end : token.start]
            if not _WITHIN.fullmatch(between) or ("," in between and token.word not in FORMS):
                break
            ends = last.text != strip_possessive(last.text) or (between.startswith(".") and len(last.text) > 5)
            small = token.text.islower() and token.word not in _SMALL and token.word not in FORMS
            if token.spelt or ends or (small and token.word not in nicknames.later_words):
                break
            furthest += 1
        # Behind the last token with which the words still begin a name. A letter may be one of several initials.
        known, settled = furthest, at + 1
        for end in range(at + 2, furthest + 1):
            last = tokens[end - 1]
            if len(last.text) > 1 and last.word not in _UNSETTLED:
                if self._register.is_prefix(self._parse(strip_possessive(self._text[tokens[at].start : last.end]))):
                    settled = end
                    continue
            elif end - settled <= MOST_LETTERS:
                continue
            known = end - 1
            break
        # Beyond that only with a slip, which leaves the first or the last of several words as it was. Asked so often
        # that a name is not taken apart for it.
        for end in range(furthest, known, -1):
            words = [token.word for token in tokens[at:end] if token.word not in FORMS]
            begins = words and (len(words[0]) == 1 or words[0] in nicknames.first_words)
            begins = begins or (words and words[-1] in nicknames.later_words)
            if begins and nicknames.spellings.find_near("".join(filter(str.isalnum, "".join(words)))):
                yield end
        yield from range(known, at, -1)

    def _parse(self, written: str) -> CompanyName:
        if written not in self._parsed:
            self._parsed[written] = parse_name(written)
        return self._parsed[written]

    def _resolve_place(self, written: str, at: int, end: int) -> int | None:
        window, register = self._tokens[at:end], self._register
        if window[-1].word in _SMALL or (len(window) > 1 and window[0].word in _SMALL | FORMS):
            return None
        name = self._parse(written)
        capitals = all(token.capital or token.word in _SMALL for token in window)
        if name not in self._called:
            self._called[name] = register.find_exact(name)
        place = self._called[name]
        if place is None:
            # A known company's name with a slip in it: where the word is none, and several words are written as
            # a name.
            wrong = [word for word in name.core if not is_word(word)]
            if (
                not wrong
                or len(name.squashed) < 4
                or name.key in names_outside_register()
                or any(map(str.isdigit, name.squashed))
            ):
                return None
            if len(name.core) > 1 and (not capitals or any(len(word) < 2 for word in name.core)):
                return None
            near = register.nicknames.match_typo(name)
            return near.pop() if len(near) == 1 else None
        if register.nicknames.is_unmistakable(name):
            # "An apple", "the Amazon basin".
            tokens = self._tokens
            before, behind = _ELSEWHERE.get(name.key, ("", ""))
            small = tokens[at].text.islower() or name.key == "tesla"
            elsewhere = (small and at > 0 and tokens[at - 1].word in before.split()) or (
                end < len(tokens) and tokens[end].word in behind.split()
            )
            is_whole = len(name.squashed) > 2 or (written.isupper() and "." not in written)
            return place if is_whole and not elsewhere else None
        if not capitals:
            alone = len(name.core) == 1 and not name.forms and len(name.squashed) > 3
            return place if alone and register.is_well_known(place) and not _has_dictionary_word(name) else None
        if _TWO_NAMES.search(written):
            return None
        if len(name.core) > 1 or name.forms:
            known = name.key in register.nicknames.places or name.forms or register.is_well_known(place)
            return place if known or not all(map(is_common, name.core)) else None
        return place if _is_standalone_name(register, name, self._tokens, at, end) else None


def _is_standalone_name(
    register: "CompanyRegister", name: CompanyName, tokens: list[NameToken], at: int, end: int
) -> bool:
    """Whether one capitalised word is a company's name and no part of another: "Ford", but not "Gerald Ford"."""
    token, before = tokens[at], tokens[at - 1] if at else None
    behind = tokens[end] if end < len(tokens) and not tokens[end].first else None
    # "Visa and Mastercard": a word beside a company's name is a name too.
    joined = end + 1 < len(tokens) and tokens[end].word in ("and", "or", "vs", "versus") and tokens[end + 1].capital
    beside = joined and parse_name(strip_possessive(tokens[end + 1].text)).key in register.nicknames.places
    business = behind is not None and (behind.word in BUSINESS or beside)
    if name.key not in register.nicknames.ordinary and (len(name.squashed) < 4 or _has_dictionary_word(name)):
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


def _has_dictionary_word(name: CompanyName) -> bool:
    return any(map(is_word, (*name.core, *normalize_words(name.core))))
