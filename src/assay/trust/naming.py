"""Are the names of a statement those of its passages? Acronyms, demonyms and possessives count as the same name."""

import re
from collections.abc import Collection, Iterator, Sequence

from assay.text.quantities import quantities
from assay.text.words import STOP_WORDS, fold
from assay.trust.problem import Problem

_TOKEN = re.compile(r"[^\W_](?:\w|[’'&.-](?=\w))*")
_OPENS = re.compile(r"(?:^|[:.!?…]\s|[“\"‘(\[]|[-–—•*]\s)\s*$")
_ORDINARY_END = re.compile(r"(?:tion|sion|ment|ness|ity|ing|ism|ance|ence|ship|ers|ors|ists|ies|[^su]s|ed|ly)$")
_ORDINARY = frozenset(
    "revenue profit income growth demand supply trade output price inflation unemployment research "
    "work study data evidence people everyone someone anyone life water energy power oil gas food "
    "music art history science health cancer treatment support use access safety security education "
    "society culture industry business capital debt cash total overall net gross average cost wage "
    "labour labor land air weather climate warming today yesterday tomorrow early late recent new old "
    "most many several some few half both each every all another other such one two three four five "
    "six seven eight nine ten researcher scientist critic police government parliament congress "
    "management staff production construction travel tourism traffic crime war peace hydrogen oxygen "
    "carbon steel gold silver copper lithium nuclear solar wind coal according despite although though "
    "since because unlike like given based compared only even still then thus hence therefore moreover "
    "furthermore nevertheless instead meanwhile later earlier further first second third last next "
    "together here there yet nearly almost about roughly around approximately additionally finally "
    "also neither either nothing none nobody yes".split()
)
_VERB = re.compile(r"\s+(?:is|was|are|were|has|had|have|will|would|did|does|can|could|says|said|won|led|made|\w+ed)\b")
_SAME_NAME = tuple(
    frozenset(group.split())
    for group in (
        "us usa united states america american americans",
        "uk united kingdom britain british",
        "eu european union europe",
        "un united nations",
        "france french",
        "netherlands dutch holland",
        "spain spanish",
        "greece greek greeks",
        "switzerland swiss",
        "poland polish",
        "turkey turkish türkiye turkiye",
        "fed federal reserve",
        "ceo chief executive officer",
    )
)


def name_problems(statement: str, quotes: Sequence[str], known: Collection[str]) -> Iterator[Problem]:
    vocabulary = _Vocabulary([*quotes, *known])
    figures = [(quantity.start, quantity.end) for quantity in quantities(statement)]
    tokens = [match for match in _TOKEN.finditer(statement) if not _within(match, figures)]
    for index, match in enumerate(tokens):
        if not _is_name(statement, tokens, index) or vocabulary.has(match.group()):
            continue
        if not vocabulary.has_short(_run(statement, tokens, index)):
            yield Problem("name", f"the name {_bare(match.group())} is not in the quoted passage")


def _within(match: re.Match[str], figures: Sequence[tuple[int, int]]) -> bool:
    return any(start <= match.start() < end for start, end in figures)


def _is_name(statement: str, tokens: Sequence[re.Match[str]], index: int) -> bool:
    token = tokens[index].group()
    if not token[0].isupper() or token in ("I", "A"):
        return False
    if not _OPENS.search(statement[max(0, tokens[index].start() - 8) : tokens[index].start()]):
        return True
    plain = fold(_bare(token))
    if plain in STOP_WORDS | _ORDINARY:
        return False
    if any(letter.isupper() or letter.isdigit() for letter in token[1:]) or token != _bare(token):
        return True
    following = statement[tokens[index].end() :]
    if re.match(r"\s[^\W\d_]", following) and following[1].isupper():
        return True
    return bool(_VERB.match(following)) and not _ORDINARY_END.search(plain)


def _bare(token: str) -> str:
    return re.sub(r"(?:['’]s|['’])$", "", token)


def _run(statement: str, tokens: Sequence[re.Match[str]], index: int) -> list[str]:
    """The capitalised words around one, which together may be what an acronym stands for."""
    first = last = index
    while first and tokens[first - 1].group()[0].isupper() and _touch(statement, tokens, first - 1):
        first -= 1
    while last + 1 < len(tokens) and tokens[last + 1].group()[0].isupper() and _touch(statement, tokens, last):
        last += 1
    return [match.group() for match in tokens[first : last + 1]]


def _touch(statement: str, tokens: Sequence[re.Match[str]], index: int) -> bool:
    between = statement[tokens[index].end() : tokens[index + 1].start()]
    return between in (" ", ". ", " of ", " of the ", " for ", " and ")


class _Vocabulary:
    """The words of the passages, as far as a name may be told by them."""

    def __init__(self, texts: Sequence[str]) -> None:
        found = [_bare(match.group()) for text in texts for match in _TOKEN.finditer(text)]
        self.initials = "".join(fold(word)[:1] for word in found)
        self.main_initials = "".join(fold(word)[:1] for word in found if fold(word) not in STOP_WORDS)
        self.words = {form for word in found for form in _forms(word)}

    def has(self, token: str) -> bool:
        token = _bare(token)
        if self._has(fold(token).replace(".", "")):
            return True
        parts = [part for part in re.split(r"[-’'&./]", token) if part]
        if len(parts) > 1 and all(part[0].islower() or part.isdigit() or self._has(fold(part)) for part in parts):
            return True
        short = fold(token).replace(".", "")
        return token.isupper() and 2 <= len(short) <= 6 and (short in self.initials or short in self.main_initials)

    def _has(self, word: str) -> bool:
        if word in self.words or (len(word) == 1 and any(other.startswith(word) for other in self.words)):
            return True
        if any(word in group and group & self.words for group in _SAME_NAME):
            return True
        return any(_demonym(word, other) for other in self.words if other[:4] == word[:4])

    def has_short(self, run: Sequence[str]) -> bool:
        letters = "".join(fold(word)[:1] for word in run)
        return len(letters) > 1 and letters in self.words


def _forms(word: str) -> Iterator[str]:
    plain = fold(word)
    yield plain
    yield plain.replace(".", "")
    yield from re.split(r"[-’'&.]", plain)


_DEMONYM = ("ians", "ian", "ans", "an", "ese", "ish", "i", "n", "s")


def _demonym(left: str, right: str) -> bool:
    """German and Germany, Italy and Italian, Republican and Republicans; not Niger and Nigeria."""
    for word, place in ((left, right), (right, left)):
        if place == f"{word}y":
            return True
        for suffix in _DEMONYM:
            base = word.removesuffix(suffix)
            if base != word and len(base) >= 4 and place.startswith(base) and place[len(base) :] in _PLACE_ENDS:
                return suffix != "s" or place == base
    return False


_PLACE_ENDS = ("", "a", "e", "y", "o", "en", "ia")
