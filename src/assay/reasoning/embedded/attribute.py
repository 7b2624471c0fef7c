"""What of its subject a question asks for: the population in "What is the population of Broken Bow?"."""

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from assay.reasoning.embedded.context import KIND_OF
from assay.reasoning.embedded.focus import GENERIC, focus
from assay.text.names import names
from assay.text.words import STOP_WORDS, content_words, fold, stem, stems, words

# Words of asking, which no text need have.
ASKING = GENERIC | frozenset(
    stems(
        "what's who's value amount figure change happen compare difference overview summary explain latest recent main "
        "known know given information detail background important name type kind many much long regard news "
        "development update event story situation happening matter"
    )
)
# Words that stand for each other in question and answer: a stock's price is what shares trade at.
_SAME = tuple(
    frozenset(stems(group))
    for group in (
        "stock share price trade trading",
        "revenue sales turnover",
        "profit earnings income",
        "ceo boss chief executive head",
        "population people inhabitants residents census",
        "born birth birthplace native",
        "die death died dead killed",
        "founder founded founding established formed created started begun",
        "headquarters headquartered based seat located",
        "location located lies situated",
        "employees staff workers workforce employs headcount",
        "area size covers covered large square",
        "height tall high elevation",
        "director directed filmmaker",
        "author wrote written writer novelist",
        "artist singer recorded performed band",
        "wife husband spouse married marriage",
        "cost price expensive",
        "cause reason because due",
        "opened opening inaugurated",
        "built constructed construction completed",
        "genre style",
        "profession occupation career",
        "party political member",
        "sport played player plays",
        "release released published",
        "shrink shrank shrunk decline dried fell",
        "repurchase repurchased buyback",
        "lawsuit litigation sued proceedings",
    )
)
# Short forms that are capitalised and yet no names.
_COMMON = frozenset("high national royal new north south east west saint great old flight general".split())
_ROLES = frozenset("ceo cfo cto coo gdp eps ipo roi hq ebitda".split())


class Name(NamedTuple):
    """A name of a question: the phrase where it is in quotation marks, else stems that tell it from others; and its
    initials."""

    phrase: str
    stems: frozenset[str]
    short: str = ""

    def told(self, text: str, said: Collection[str]) -> bool:
        if self.phrase:
            return self.phrase in text
        return self.stems <= set(said) or (len(self.short) > 1 and self.short in text.replace(".", "").split())


class Asked(NamedTuple):
    """The names a question is about, and for each word of what it asks the stems that will do."""

    names: tuple[Name, ...]
    matter: tuple[frozenset[str], ...]

    def speaks(self, said: Iterable[str]) -> float:
        """How much of what is asked a sentence with these stems speaks to; all of it where nothing is."""
        have = set(said)
        return sum(bool(word & have) for word in self.matter) / len(self.matter) if self.matter else 1.0

    def named(self, text: str) -> bool:
        """Whether a text names any of what is asked about."""
        plain, said = _plain(text), set(stems(text))
        return not self.names or any(name.told(plain, said) for name in self.names)


def asked(question: str, context: str) -> Asked:
    """`context` is the question with its topic, which may name what the question does not."""
    quoted = [match[1] for match in _QUOTED.finditer(context)]
    called = [name for name in names(_QUOTED.sub(" ", context)) if fold(name) not in _ROLES]
    of_names = {part for name in [*quoted, *called] for part in stems(name)}
    own = dict.fromkeys(stem(word) for word in content_words(focus(question)) if not word.isdigit())
    told = [Name(_plain(phrase), frozenset()) for phrase in quoted] + [_name(name) for name in called]
    return Asked(
        tuple(name for name in told if name.phrase or name.stems),
        tuple(alike(word) for word in own if word not in of_names | ASKING),
    )


_QUOTED = re.compile(r"[\"“]([^\"”]{3,80})[\"”]")


def _plain(text: str) -> str:
    return " ".join(words(text))


def _name(name: str) -> Name:
    return Name("", _telling(name), "".join(part[0] for part in words(name) if part not in STOP_WORDS))


def _telling(name: str) -> frozenset[str]:
    """ "Zook" of "Zook House", the last of a person's names, all else of the rest."""
    parts = [part for part in words(name) if part not in STOP_WORDS]
    own = [part for part in parts if part not in KIND_OF and part not in _COMMON]
    chosen = own[-1:] if own == parts and len(parts) <= 3 else own
    return frozenset(stem(part) for part in chosen) - ASKING


def alike(word: str) -> frozenset[str]:
    """A stem with those that may stand in its place."""
    return frozenset({word}).union(*(group for group in _SAME if word in group))
