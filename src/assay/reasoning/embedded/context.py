"""A sentence with its context: whether it can be understood alone, how far back the words reach that explain it, and
what its "it" or "the company" stands for. Where that is not certain nothing is put in its place."""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from assay.text.names import names
from assay.text.sentences import Piece, is_row, is_statement, sentences
from assay.text.words import fold, stem, words

MOST_BACK = 2  # sentences before one that may be needed to explain it
LONGEST = 500  # characters of a sentence with those that explain it

# What kind of thing "the ..." speaks of again. Each word of a name tells its kind by one of these too.
_KINDS = {
    "company": "company firm group business corporation manufacturer retailer carmaker bank airline chain startup inc "
    "corp corporation ltd plc llc ag gmbh holdings co",
    "place": "city town village county district municipality suburb borough neighbourhood neighborhood province state "
    "country island",
    "water": "lake river reservoir bay sea glacier creek",
    "building": "station school building bridge house museum airport hotel church castle tower stadium theatre theater "
    "hospital library cathedral palace temple mill dam plant mall",
    "work": "film movie album song single book novel series show episode game play opera magazine newspaper",
    "body": "agency organisation organization association university college institute club team band party ministry "
    "department society union committee foundation council office",
    "event": "battle festival tournament war competition election conference",
    "other": "mountain ship vessel aircraft telescope satellite mission project road highway railway line "
    "species genus",
}
KIND_OF = {noun: kind for kind, nouns in _KINDS.items() for noun in nouns.split()}
_NOUN = "|".join(sorted(KIND_OF, key=len, reverse=True))
_AHEAD = (
    r"(?P<ahead>(?i:(?:in|by|during|since|at|on|as of|after|before|for|from|until) [^,;]{2,40}, )?"
    r"(?i:(?:today|now|currently|later|then|initially|originally|eventually|recently), )?)"
)
_POINTS = re.compile(
    rf"^{_AHEAD}(?P<word>(?i:it|its|he|his|she|her)|[Tt]h(?:e|is) (?P<noun>{_NOUN}))(?P<own>['’]s)?(?=[ ,])"
)
# "It is likely that" and "it took two years to" stand for nothing.
_NOTHING = re.compile(
    r"^it (?:is|was|has been|had been|will be|would be|may be|seems|appears|remains|takes|took|follows|turns out)\b"
    r"[^.;]{0,60}?\b(?:that|to|whether|how|who|when|until)\b",
    re.I,
)
# What needs its neighbour but is never put into other words.
_LEANS = re.compile(
    r"^(?:they|their|them|these|those|this|that|such|both|either|neither|another|the (?:latter|former|same)|"
    r"here|the (?:study|team|paper|survey|researchers|authors|report|result|results|difference|figure|increase|"
    r"decrease|decline|rise|move|deal|two|three|other|others))\b|"
    r"\b(?:in|during|at|of|on|by) (?:the same|that) (?:year|month|quarter|period|week|day|time|decade)\b|"
    r"^(?:the )?(?:following|next|previous|same) (?:year|month|quarter|week|day)\b",
    re.I,
)
_VERB = (
    r"(?:is|was|are|were|has|had|have|will|would|can|could|may|might|did|does|do|rose|fell|grew|made|won|led|said|says|"
    r"became|becomes|began|lies|lay|stands|stood|runs|ran|took|takes|gave|gives|held|holds|sold|sells|built|cut|sits|"
    r"makes|owns|employs|operates|covers|contains|consists|serves|offers|provides|produces|[a-z]+ed)"
)
_BETWEEN = re.compile(
    rf"^\.?(?: \([^)]{{0,80}}\))?(?:, [^,;]{{1,90}},)? (?:(?:also|now|currently|first|still|then|[a-z]+ly) )?{_VERB}\b"
)
_PLACED = re.compile(r"\b(?:in|near|at|of|on|within|outside|around|since|until|during)(?: the)? $")
_ARTICLE = re.compile(r"^(?:the|a|an)\b", re.I)
_SUFFIX = re.compile(r"\s*(?:[|–—]|\s-\s).*$|\s*\([^)]*\)\s*$")
# Words that open a sentence without an article and are no names: "Revenue rose."
_COMMON = re.compile(
    r"(?:tion|sion|ment|ness|ity|ing|ism|ance|ence|ship|ers|ors|ists|ies|sales|exports|imports)$|"
    r"^(?:revenue|income|profit|growth|demand|supply|output|inflation|unemployment|research|work|data|evidence|water|"
    r"energy|oil|gas|trade|traffic|people|many|some|most|several|one|each|all|total|net|gross|average|critics|"
    r"officials|researchers|scientists|experts|today|yesterday)$"
)


class Statement(NamedTuple):
    """A sentence as it may be told; `stands` unless a reader would have to ask what it speaks of."""

    text: str
    stands: bool


def leans(sentence: str) -> bool:
    """Whether a sentence needs another to be understood."""
    return bool(_LEANS.search(sentence)) or _pointer(sentence) is not None


def begin(text: str, pieces: Sequence[Piece], at: int) -> int:
    """Where the words begin that explain `pieces[at]`: at the nearest sentence before it that stands alone. The
    sentence's own start where it needs none, or has none in its paragraph."""
    if not leans(pieces[at].text):
        return pieces[at].start
    for back in range(at - 1, max(-1, at - 1 - MOST_BACK), -1):
        between = text[pieces[back].end : pieces[back + 1].start]
        whole = is_statement(pieces[back].text) and not is_row(pieces[back].text)
        if between.strip() or "\n\n" in between or not whole or pieces[at].end - pieces[back].start > LONGEST:
            break
        if not leans(pieces[back].text):
            return pieces[back].start
    return pieces[at].start


def statements(quote: str, title: str = "", known: Collection[str] = ()) -> list[Statement]:
    """What a quote states, sentence by sentence, each naming what it speaks of. Sentences that only lead to one that
    could not be put so stay with it. `known` are names a single word may be taken for."""
    pieces = [piece.text for piece in sentences(quote)] or [quote]
    if is_row(quote) or not is_statement(pieces[-1]):
        return [Statement(quote, True)]
    if len(pieces) > 1 and leans(pieces[-1]):
        told = resolve(pieces[-1], pieces[:-1], title, known)
        first_stands = not leans(pieces[0]) and is_statement(pieces[0])
        return [Statement(told, True) if told else Statement(quote, first_stands)]
    return [_alone(piece, pieces[:at], title, known) for at, piece in enumerate(pieces) if is_statement(piece)]


def _alone(sentence: str, before: Sequence[str], title: str, known: Collection[str]) -> Statement:
    if not leans(sentence):
        return Statement(sentence, True)
    told = resolve(sentence, before, title, known)
    return Statement(told or sentence, bool(told))


def resolve(sentence: str, before: Sequence[str], title: str, known: Collection[str]) -> str:
    """The sentence with the name of what it points to; empty where that is not certain."""
    pointer = _pointer(sentence)
    if pointer is None or _LEANS.search(sentence):
        return ""
    kind = KIND_OF.get(fold(pointer["noun"])) if pointer["noun"] else None
    name = _from_before(pointer, kind, before, known) if before else _from_title(pointer, kind, title)
    if not name:
        return ""
    owned = pointer["own"] or pointer["word"].lower() in ("its", "his", "her")
    shown = f"{name}'{'' if name.endswith('s') else 's'}" if owned else name
    shown = shown if not pointer["ahead"] else re.sub(r"^The\b", "the", shown)
    return f"{pointer['ahead']}{shown}{sentence[pointer.end() :]}"


def _pointer(sentence: str) -> re.Match[str] | None:
    found = _POINTS.match(sentence)
    return None if found is None or _NOTHING.match(sentence) else found


def _from_before(pointer: re.Match[str], kind: str | None, before: Sequence[str], known: Collection[str]) -> str:
    """The subject of the nearest sentence that names one, if nothing else in between could be meant."""
    person = pointer["word"].lower() in ("he", "his", "she", "her")
    for sentence in reversed(before):
        if leans(sentence):
            continue
        name = _subject(sentence, known)
        if not name or person != _is_person(name) or (kind and not _of_kind(name, kind, pointer["noun"], sentence)):
            return ""
        return name if not _rivals(sentence, name, person) else ""
    return ""


def _subject(sentence: str, known: Collection[str]) -> str:
    """The name a sentence opens with as its subject, with its article."""
    article = "The " if sentence.startswith("The ") else ""
    for name in names(sentence)[:1]:
        bare = name.removeprefix("The ")
        if not sentence.startswith(article + bare) or not _BETWEEN.match(sentence[len(article + bare) :]):
            return ""
        return article + bare if _is_name(bare, article, known) else ""
    return ""


def _is_name(name: str, article: str, known: Collection[str]) -> bool:
    """One capital at the start of a sentence proves nothing; a second one does."""
    if len(name.split()) > 1 or any(letter.isupper() or letter.isdigit() for letter in name[1:]):
        return True
    return fold(name) in {fold(other) for other in known} or not (article or _COMMON.search(fold(name)))


def _is_person(name: str) -> bool:
    """Two or three capitalised words none of which tells another kind of thing."""
    parts = name.split()
    plain = all(part[0].isupper() for part in parts) and not any(c.isdigit() or c == "&" for c in name)
    return plain and 2 <= len(parts) <= 4 and not _ARTICLE.match(name) and not _kinds(name)


def _kinds(name: str) -> set[str]:
    return {kind for word in words(name) if (kind := KIND_OF.get(word.rstrip(".")) or KIND_OF.get(stem(word)))}


def _of_kind(name: str, kind: str, noun: str, sentence: str) -> bool:
    """The name tells its kind, or the sentence says what it is: "Orta is a lake"."""
    if told := _kinds(name):
        return kind in told
    after = sentence[len(name) :]
    said = {KIND_OF[word] for word in words(after) if word in KIND_OF}
    return kind in said or (not said and kind == "company" and not _is_person(name))


def _rivals(sentence: str, name: str, person: bool) -> bool:
    """Another name that could be meant: one that is no mere place, time or owner of something."""
    for other in names(sentence):
        if other in name or name.endswith(other) or (person and not _is_person(other)):
            continue
        at = sentence.find(other)
        if not _PLACED.search(sentence[:at]):
            return True
    return False


def _from_title(pointer: re.Match[str], kind: str | None, title: str) -> str:
    """A title that is nothing but a name, and tells that it is of the kind spoken of."""
    if kind is None or pointer["noun"] is None:
        return ""
    called = [word.lower().strip("().") for word in title.split()]
    bare = _SUFFIX.sub("", title).strip()
    if kind not in {KIND_OF.get(word) for word in called} or not 1 <= len(bare.split()) <= 5:
        return ""
    small = {"of", "the", "and", "de", "la", "on", "in", "for"}
    named = all(word[0].isupper() or word[0].isdigit() or word in small for word in bare.split())
    return bare if named and not re.search(r"[:;?!,\"]", bare) else ""
