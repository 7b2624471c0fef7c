"""Words for matching: folded, without stop words, stemmed."""

import re
import unicodedata
from functools import lru_cache
from threading import Lock
from typing import Any

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


def fold(text: str) -> str:
    """Case and diacritics removed."""
    if text.isascii():  # of English nearly every word, thirty times as fast
        return text.lower()
    return _BEYOND_ASCII.sub(_without_marks, unicodedata.normalize("NFKD", text.casefold()))


def _without_marks(run: re.Match[str]) -> str:
    return "".join(character for character in run[0] if not unicodedata.combining(character))


def words(text: str) -> list[str]:
    return _WORD.findall(fold(text))


def content_words(text: str) -> list[str]:
    """Words that carry meaning, in order. Figures count; single letters do not."""
    return [word for word in words(text) if word not in STOP_WORDS and (len(word) > 1 or word.isdigit())]


def stems(text: str) -> list[str]:
    return [stem(word) for word in content_words(text)]


_STEMMING = Lock()  # the stemmer keeps its word in itself: two threads at once get wrong stems or an IndexError


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Snowball's English stem: matches plural, tense and derivation; for comparing, never to display."""
    word = word.removesuffix("'s").removesuffix("’s")
    with _STEMMING:
        stemmed: str = _snowball().stemWord(IRREGULAR.get(word, word))
    return stemmed


@lru_cache(maxsize=1)
def _snowball() -> Any:
    # Imported at first use: the package loads all its languages, which takes 0.3 s.
    from snowballstemmer import stemmer

    return stemmer("english")


def counted(number: int, noun: str, plural: str = "") -> str:
    """As in "1 source", "2,000 sources"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
