"""Words for matching: folded, without stop words, stemmed."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from typing import TypeVar

import Stemmer

# Text without invisible characters: what a reader cannot see, a model must not either.

_SPACES = "\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"

# What a reader cannot see but a model obeys: controls, soft hyphen, zero-width and bidirectional marks,
# invisible operators, interlinear notes, tags and supplementary variation selectors. U+200C and U+200D stay:
# Persian, Indic scripts and emoji are misspelt without them.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_GAP = re.compile(f"[ {_SPACES}]+")
_BLANKS = re.compile(r"\n{3,}")


def clean_text(text: str) -> str:
    """Sanitise; a second pass changes nothing, so offsets into the result are stable."""
    text = _LINE_END.sub("\n", text)
    text = _INVISIBLE.sub("", _SURROGATE.sub("\ufffd", text))
    text = unicodedata.normalize("NFC", _GAP.sub(" ", text))
    lines = "\n".join(line.strip(" ") for line in text.split("\n"))
    return _BLANKS.sub("\n\n", lines).strip("\n")


def is_readable(text: str) -> bool:
    """No control codes, no bytes that were not UTF-8. Format characters are text: Persian joins with U+200C, Arabic
    and Hebrew are marked with U+200F, emoji joined with U+200D."""
    broken = ("Cc", "Cs")
    return "\ufffd" not in text and not any(
        unicodedata.category(mark) in broken and not mark.isspace() for mark in text
    )


_WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*", re.UNICODE)

STOP_WORDS = frozenset(
    "a about above after again against all also am an and any are as at be became because been before being below "
    "between both but by came can could did do does doing down during each either else ever every few for from "
    "further get give go had has have having he her here hers him his how however i if in into is it its itself just "
    "like made make many may me might more most much must my no nor not of off on once only or other our ours out "
    "over own per please s same shall she should since so some such t tell than that the their theirs them then "
    "there these they this those though through to too under until up upon us very was we were what whatever when "
    "where which while who whom whose why will with within without would you your yours".split()
)


# Forms no suffix rule can know; those of verbs that reports are made of.
_PAIRS = (
    "found:find rose:rise risen:rise fell:fall fallen:fall grew:grow grown:grow shrank:shrink shrunk:shrink "
    "began:begin begun:begin became:become brought:bring bought:buy built:build came:come chose:choose "
    "chosen:choose drew:draw drawn:draw drove:drive driven:drive gave:give given:give went:go gone:go "
    "held:hold kept:keep knew:know known:know led:lead left:leave lost:lose made:make meant:mean met:meet "
    "paid:pay ran:run said:say saw:see seen:see sent:send sold:sell showed:show shown:show spent:spend "
    "spoke:speak spoken:speak stood:stand struck:strike took:take taken:take taught:teach told:tell "
    "thought:think understood:understand withdrew:withdraw won:win wrote:write written:write broke:break "
    "broken:break sank:sink sunk:sink flew:fly flown:fly sought:seek caught:catch"
)
IRREGULAR = dict(pair.split(":") for pair in _PAIRS.split())


_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


# Hyphens that are no ASCII, and the dash that some print within a designation: "F‑16", "OV–10"; not "1990–91".
_HYPHEN = re.compile(r"[\u2010\u2011]|(?<=[^\W\d_])\u2013(?=\d)")


def spell_hyphens(text: str) -> str:
    """Return the text with all hyphens spelled alike; nothing moves."""
    return text if text.isascii() else _HYPHEN.sub("-", text)


def fold(text: str) -> str:
    """Case and diacritics removed, hyphens spelled alike."""
    if text.isascii():  # of English nearly every word, thirty times as fast
        return text.lower()
    text = spell_hyphens(text)
    return _BEYOND_ASCII.sub(_strip_accents, unicodedata.normalize("NFKD", text.casefold()))


def _strip_accents(run: re.Match[str]) -> str:
    return "".join(character for character in run[0] if not unicodedata.combining(character))


# Scripts that put no spaces between words: Chinese and Japanese. Two characters in a row stand for a word there, those
# of a text and those of a question alike, so that nobody has to agree on where words end.
UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")


def words(text: str) -> list[str]:
    found: list[str] = _WORD.findall(split_unspaced(fold(text)))
    return found


def split_unspaced(text: str) -> str:
    """Put spaces between the words of a text that has none: 石桥建成 becomes 石桥 桥建 建成."""
    return text if text.isascii() else UNSPACED.sub(_pair_characters, text)


def _pair_characters(run: re.Match[str]) -> str:
    said = run[0]
    return f" {' '.join(said[at : at + 2] for at in range(max(1, len(said) - 1)))} "


def content_words(text: str) -> list[str]:
    """Words that carry meaning, in order. Figures count; single letters do not."""
    return [word for word in words(text) if word not in STOP_WORDS and (len(word) > 1 or word.isdigit())]


def stems(text: str) -> list[str]:
    return [stem(word) for word in content_words(text)]


_ENGLISH = Stemmer.Stemmer("english")


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Snowball's English stem: matches plural, tense and derivation; for comparing, never to display."""
    word = word.removesuffix("'s").removesuffix("’s")
    stemmed: str = _ENGLISH.stemWord(IRREGULAR.get(word, word))
    return stemmed


def pluralize(number: int, noun: str, plural: str = "") -> str:
    """As in "1 source", "2,000 sources"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


# Names in a text: runs of capitalised words, as they stand.

_NAME = re.compile(
    r"(?<!\w)[A-Z][\w’'&.-]*[\w](?:\s+(?:of|de|van|von|the|for)(?=\s+[A-Z])|\s+[A-Z0-9][\w’'&.-]*[\w]|\s+[A-Z]\b)*",
    re.UNICODE,
)
_PERIOD = re.compile(r"[QH][1-4]|FY\d+|(?:19|20)\d{2}|10-[QK]s?")
# Words that open a question or an order and are capitalised only for that.
_OPENERS = frozenset(
    "what who when where why how which whose is are was were do does did can could should would will has have had tell "
    "give show explain describe compare list find summarize summarise write please the a an in on at for from by and "
    "or but if as now also then let i me my we our you your it its this that these those research investigate report "
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday latest recent about hello hi hey thanks thank ok okay yes no never nevermind "
    "more".split()
)


def find_names(text: str) -> list[str]:
    """Distinct names in order of appearance, without words that are capitalised only by position."""
    found: dict[str, None] = {}
    for match in _NAME.finditer(text.replace("’", "'")):
        for run in re.split(r"(?<='s)\s+", match.group()):  # "NVIDIA's Q3" names NVIDIA
            words = run.split()
            while words and (fold(words[0].removesuffix("'s")) in _OPENERS | STOP_WORDS or _PERIOD.fullmatch(words[0])):
                words.pop(0)
            while words and (fold(words[-1]) in STOP_WORDS or _PERIOD.fullmatch(words[-1])):
                words.pop()
            if name := " ".join(words).removesuffix("'s").removesuffix("'").rstrip("."):
                found.setdefault(name)
    return list(found)


# How many words two texts share.


def jaccard(left: str, right: str) -> float:
    a, b = stem_set(left), stem_set(right)
    return len(a & b) / len(a | b) if a or b else 0.0


# Statements are compared with each other, pair by pair: 240 claims were stemmed 27 s long.
@lru_cache(maxsize=8_192)
def stem_set(text: str) -> frozenset[str]:
    return frozenset(stems(text))


# When two search queries ask the same: by their words, whatever the order, the case or the ending.
#
# What search engines act on is kept apart: quoted phrases, filters (`site:`), and words left out (`-word`). So are
# small
# words that turn a question round.

QueryKey = frozenset[str]

_QUOTED = re.compile(r"[\"“”]([^\"“”]+)[\"“”]")
_AROUND = ".,;:!?()[]{}'’‘"
_TELLING = frozenset("no not nor without before after since until above below over under against between".split())


def query_key(query: str) -> QueryKey:
    """Queries with the same sense are one query; empty only for a query without any word."""
    phrases = {f'"{" ".join(fold(phrase).split())}"' for phrase in _QUOTED.findall(query)}
    tokens = [token for part in _QUOTED.sub(" ", query).split() if (token := part.strip(_AROUND))]
    kept = set()
    for position, token in enumerate(tokens):
        plain = fold(token)
        # "Vitamin A" is no article; a capital at the start may be.
        is_letter = len(token) == 1 and token.isupper() and position > 0
        if ":" in token or token.startswith("-"):
            kept.add(plain)
        elif is_letter or plain in _TELLING or plain not in STOP_WORDS:
            kept.add(stem(plain))
    kept.discard("")
    return frozenset(phrases | kept or {fold(token) for token in tokens})


# Several groups served in turn, so that whatever room there is, none is left out.

T = TypeVar("T")


def interleave_groups(items: Iterable[T], group: Callable[[T], Hashable]) -> list[T]:
    """The first of every group, then the second of each, and so on; else in the order they came."""
    seen: Counter[Hashable] = Counter()
    ranked = []
    for item in items:
        seen[group(item)] += 1
        ranked.append((seen[group(item)], item))
    return [item for _, item in sorted(ranked, key=lambda pair: pair[0])]
