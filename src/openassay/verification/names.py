"""Are the names of a statement those of its passages? Acronyms, demonyms and possessives count as the same name."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from openassay.text.quantities import find_quantities
from openassay.text.words import STOP_WORDS, fold
from openassay.verification.polarity import StatementProblem

_TOKEN = re.compile(r"[^\W_](?:\w|[’'&.-](?=\w))*")
_OPENS = re.compile(r"(?:^|[:.!?…]\s|[“\"‘(\[]|[-–—•*]\s)\s*$")
_ORDINARY_END = re.compile(r"(?:tion|sion|ment|ness|ity|ing|ism|ance|ence|ship|ed|ly)s?$")
_LOWER = re.compile(r"[,']?\s+[^\W\d_A-Z]")
_PLURAL_END = re.compile(r"[^su]s$")
_VERB = re.compile(r"\s+(?:is|was|are|were|has|had|have|will|would|did|does|can|could|says|said|won|led|made|\w+ed)\b")
_ORDINARY = frozenset(
    "revenue profit income growth demand supply trade output price inflation unemployment research work study "
    "data evidence people everyone someone anyone life water energy power oil gas food music art history science "
    "health cancer treatment support use access safety security education society culture industry business "
    "capital debt cash total overall net gross average cost wage labour labor land air weather climate warming "
    "today yesterday tomorrow early late recent new old most many several some few half both each every all "
    "another other such one two three four five six seven eight nine ten researcher scientist critic police "
    "government parliament congress management staff production construction travel tourism traffic crime war "
    "peace hydrogen oxygen carbon steel gold silver copper lithium nuclear solar wind coal according despite "
    "although though since because unlike like given based compared only even still then thus hence therefore "
    "moreover furthermore nevertheless instead meanwhile later earlier further first second third last next "
    "together here there yet nearly almost about roughly around approximately additionally finally also neither "
    "either nothing none nobody yes officials analysts researchers scientists experts investors companies workers "
    "students patients women men children families sales shares prices results findings studies figures costs "
    "profits losses earnings revenues exports imports rates taxes voters residents critics authors members "
    "leaders users customers employees teachers doctors engineers farmers players fans visitors passengers "
    "soldiers prosecutors lawyers judges lawmakers ministers regulators economists historians archaeologists "
    "astronomers physicists biologists firms banks schools hospitals cities countries nations states governments "
    "authorities police temperatures levels species animals plants cells models systems products services "
    "vehicles cars ships aircraft buildings houses reports sources documents records data statistics estimates "
    "forecasts tests trials experiments surveys using following including during throughout within alongside "
    "besides toward towards regarding concerning production consumption investment spending borrowing lending "
    "measured released published founded located born known built made written directed produced starring overall "
    "eventually previously originally subsequently".split()
)
# Words that are capitalised only by their place; "Tell", "May" and "Will" are names as well.
GRAMMAR = STOP_WORDS - frozenset("tell may will give further down like came made make go get us own please".split())
_SAME_NAME = tuple(
    frozenset(group.split("/"))
    for group in (
        "us/usa/united states/america/american/americans",
        "uk/united kingdom/britain/british",
        "eu/european union/europe",
        "un/united nations",
        "france/french",
        "netherlands/dutch/holland",
        "spain/spanish",
        "greece/greek/greeks",
        "switzerland/swiss",
        "poland/polish",
        "denmark/danish",
        "sweden/swedish",
        "finland/finnish",
        "ireland/irish",
        "scotland/scottish/scots",
        "wales/welsh",
        "england/english",
        "turkey/turkish/turkiye",
        "thailand/thai",
        "philippines/filipino/philippine",
        "norway/norwegian/norwegians",
        "portugal/portuguese",
        "belgium/belgian/belgians",
        "czechia/czech republic/czech/czechs",
        "slovakia/slovak/slovaks",
        "iceland/icelandic",
        "peru/peruvian",
        "lebanon/lebanese",
        "afghanistan/afghan/afghans",
        "cyprus/cypriot/cypriots",
        "soviet union/ussr/soviet/soviets",
        "fed/federal reserve",
        "ceo/chief executive officer",
    )
)
_SHOUTED = frozenset("us un eu uk fed ceo".split())  # in small letters they are other words


_HONORIFIC = frozenset(
    "mr mrs ms dr prof sir lady lord president sen senator rep gov governor professor doctor judge king queen "
    "pope".split()
)


def check_names(
    statement: str, quotes: Sequence[str], known: Collection[str], *, strict: bool = True
) -> Iterator[StatementProblem]:
    """Find names of a statement that its passages do not have. `strict`: a word that only the beginning of its sentence
    may have capitalised is taken for a name as well, and no name is made of two."""
    vocabulary = _build_vocabulary((*quotes, *known))
    figures = find_quantities(statement)
    tokens = [
        match
        for match in _TOKEN.finditer(statement)
        if not any(figure.start <= match.start() < figure.end for figure in figures)
    ]
    for index, match in enumerate(tokens):
        if not _is_name(statement, tokens, index, strict) or vocabulary.has(match.group()):
            continue
        # The capitalised words around it together may be what an acronym stands for.
        first = last = index
        while first and tokens[first - 1].group()[0].isupper() and _are_adjacent(statement, tokens, first - 1):
            first -= 1
        while (
            last + 1 < len(tokens) and tokens[last + 1].group()[0].isupper() and _are_adjacent(statement, tokens, last)
        ):
            last += 1
        if not vocabulary.has_acronym([token.group() for token in tokens[first : last + 1]]):
            yield StatementProblem("name", f"the name {_strip_possessive(match.group())} is not in the quoted passage")
    # Two words of different names put together: "Sanford Carolina" of "Sanford" and "North Carolina".
    for index in range(len(tokens) - 1 if strict else 0):
        one, two = tokens[index], tokens[index + 1]
        if statement[one.end() : two.start()] != " " or not _is_name(statement, tokens, index):
            continue
        if one.group() != _strip_possessive(one.group()):  # "Johnson's Trade Bill" is no name of his
            continue
        if two.group()[0].isupper() and fold(_strip_possessive(one.group())) not in _HONORIFIC:
            first_name, second = (fold(_strip_possessive(match.group())).replace(".", "") for match in (one, two))
            if vocabulary.are_separate_names(first_name, second):
                yield StatementProblem("name", f"{one.group()} {two.group()} is no name of the quoted passage")


def _is_name(statement: str, tokens: Sequence[re.Match[str]], index: int, strict: bool = True) -> bool:
    """Any capitalised word that is no word of grammar; at the beginning of a sentence also no ordinary one."""
    token = tokens[index].group()
    if not any(part[:1].isupper() for part in token.split("-")) or token in ("I", "A"):
        return False
    plain = fold(_strip_possessive(token))
    if token.istitle() and (plain in GRAMMAR or plain.rstrip(".") in _HONORIFIC):
        return False
    if not begins_sentence(statement, tokens[index].start()):
        return True
    if any(letter.isupper() or letter.isdigit() for letter in token[1:]) or token != _strip_possessive(token):
        return True
    following = statement[tokens[index].end() :]
    if re.match(r"\s[^\W\d_]", following) and following[1].isupper():
        return plain not in _ORDINARY
    if plain in _ORDINARY or _ORDINARY_END.search(plain):
        return False
    if strict or not _LOWER.match(following):
        return True
    return not _PLURAL_END.search(plain) and bool(_VERB.match(following))


def begins_sentence(text: str, place: int) -> bool:
    """Whether what stands in a place begins a sentence, a quotation or an item, and has its capital for that."""
    return bool(_OPENS.search(text[max(0, place - 8) : place]))


def _strip_possessive(token: str) -> str:
    return re.sub(r"(?:['’]s|['’])$", "", token)


def _are_adjacent(statement: str, tokens: Sequence[re.Match[str]], index: int) -> bool:
    between = statement[tokens[index].end() : tokens[index + 1].start()]
    return between in (" ", ". ", " of ", " of the ", " for ", " and ")


_RUN = re.compile(r"[A-Z][\w’'.&-]*(?: (?:of |de |van |von |the |and |for |& )?\(?[A-Z“\"][\w’'.&-]*)*")


STEM = 6  # letters that a name and its adjective have in common


class _Vocabulary:
    """The words of the passages, as far as a name may be told by them."""

    def __init__(self, texts: Sequence[str]) -> None:
        found = [_strip_possessive(match.group()) for text in texts for match in _TOKEN.finditer(text)]
        folded = [fold(word) for word in found]
        self.initials = "".join(word[:1] for word in folded)
        self.main_initials = "".join(word[:1] for word in folded if word not in STOP_WORDS)
        self.words = {
            form for word in set(folded) for form in (word, word.replace(".", ""), *re.split(r"[-’'&.]", word))
        }
        shown = (word if word.isupper() else plain for word, plain in zip(found, folded, strict=True))
        self.text = " ".join(("", *shown, "")).replace(".", "")
        # Names with all that is joined to them: words of one run are not compared with each other.
        self.runs: list[list[str]] = []
        for text in texts:
            bare = re.sub(r"\s?\([^()]*\)", "", text)
            for match in (*_RUN.finditer(text), *(_RUN.finditer(bare) if bare != text else ())):
                run = re.sub(r"['’]s\b|[,()“\"]", "", match.group())
                self.runs.append(fold(run).replace("’", "'").replace(".", "").split())

    def has(self, token: str) -> bool:
        token = _strip_possessive(token)
        if len(token) > 3 and token[-1] == "s" and token[:-1].isupper():  # several FAQs
            return self.has(token[:-1]) or self._has_word(fold(token))
        token = re.sub(r"^(?:mid|early|late)-(?=[A-Z])", "", token)  # mid-April
        if self._has_word(fold(token).replace(".", "")):
            return True
        parts = [part for part in re.split(r"[-’'&./]", token) if part]
        whole = token[0].islower()  # "anti-Pistols" is not told by the Pistols, "Pistols-like" is
        if (
            not whole
            and len(parts) > 1
            and all(p[0].islower() or p.isdigit() or self._has_word(fold(p)) for p in parts)
        ):
            return True
        if not token.isupper():
            return False
        # Initials of words that follow each other; two letters only of a name, as any two words have some.
        short = fold(token).replace(".", "")
        if len(short) == 2:
            return any(short == "".join(word[0] for word in run) for run in self.runs)
        return 3 <= len(short) <= 6 and (short in self.initials or short in self.main_initials)

    def are_separate_names(self, first: str, second: str) -> bool:
        """Whether both stand in the passages as names and never in one name."""
        if {first, second} & GRAMMAR or f" {first} {second} " in self.text.casefold():
            return False
        if first == second:
            return True
        with_first = [run[run.index(first) + 1 :] for run in self.runs if first in run]
        # "South Australian" is of South Australia.
        joined = any(word[:STEM] == second[:STEM] for run in with_first for word in run)
        return bool(with_first) and any(second in run for run in self.runs) and not joined

    def _has_word(self, word: str) -> bool:
        if word in self.words or (len(word) == 1 and any(other.startswith(word) for other in self.words)):
            return True
        for group in _SAME_NAME:
            written = (f" {name.upper() if name in _SHOUTED else name} " for name in group)
            if word in " ".join(group).split() and any(name in self.text for name in written):
                return True
        return any(_is_demonym(word, other) for other in self.words if other[:4] == word[:4])

    def has_acronym(self, run: Sequence[str]) -> bool:
        # "US Geological Survey" is USGS: what is an acronym itself stands in it whole.
        run = [word for word in run if fold(word) not in GRAMMAR]
        letters = "".join(fold(word)[:1] for word in run)
        whole = "".join(fold(word) if word.isupper() else fold(word)[:1] for word in run)
        return len(letters) > 1 and (letters in self.words or whole in self.words)


# Every title and every sentence about the research is held against the same question, plan and titles.
_build_vocabulary = lru_cache(maxsize=128)(_Vocabulary)


@lru_cache(maxsize=65_536)
def is_same_name(word: str, other: str) -> bool:
    """One word, or a country and its people."""
    if word == other or any(word in group and other in group for group in _SAME_NAME):
        return True
    return word[:4] == other[:4] and _is_demonym(word, other)


def has_name(texts: Sequence[str], word: str) -> bool:
    """Whether texts have a name, an acronym of it, or its adjective."""
    return _build_vocabulary(tuple(texts)).has(word)


_DEMONYM = ("ians", "ian", "ans", "an", "ese", "ish", "i", "n", "s")


def _is_demonym(left: str, right: str) -> bool:
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
