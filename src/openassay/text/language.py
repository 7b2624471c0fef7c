"""Which language a question is in, where that is plain; None where it is not.

A wrong language asks the wrong edition of an encyclopaedia, none asks in English: so a script must be nearly the only
one, and of the languages in Latin letters one must be told by its own small words, with no English word beside them.
Names are no evidence: what is quoted, and words with a capital, count for nothing ("La vie en rose", "Los Angeles").
"""

import re
from unicodedata import normalize

from openassay.text.words import STOP_WORDS

FEWEST = 8  # letters of another script: less may be a name
MOSTLY = 0.75  # of all letters
DENSE = 2  # letters that a character of Chinese, Japanese or Korean stands for, at least
SHARE = 0.2  # of the words
AHEAD = 2  # points before the next language
FEWEST_HAN = 3  # Chinese characters of a question that is in Chinese, though a name in it is not

_HAN, _KANA = r"\u3400-\u9fff\uf900-\ufaff", r"\u3041-\u30ff"
_SCRIPTS = {
    "ja": rf"[{_KANA}{_HAN}]", "zh": f"[{_HAN}]", "ko": r"[\uac00-\ud7a3\u1100-\u11ff]",
    "ru": r"[\u0400-\u052f]", "ar": r"[\u0621-\u064a\u066e-\u06d3]", "he": r"[\u05d0-\u05ea]",
    "el": r"[\u0370-\u03ff\u1f00-\u1fff]", "hi": r"[\u0904-\u0939\u0958-\u0961]", "th": r"[\u0e01-\u0e46]",
}  # fmt: skip
_DENSE = frozenset({"ja", "zh", "ko"})
# Letters and words of other languages in the same script: Serbian, Macedonian, Belarusian, the Turkic ones and
# Bulgarian; Persian and Urdu; Marathi.
_OTHERS = {
    "ru": r"[ђјљњћџѓќѕўәғқңөұүһҳҷ]|\b(?:какво|какъв|каква|какви|защо|къде|кога|които|колко|със|са|се|е)\b",
    "ar": r"[\u0679-\u06d3]",
    "hi": r"ळ|आहे",
}
_UKRAINIAN = re.compile(r"[їєґі]")
_RUSSIAN = re.compile(r"[ыэёъ]")

# Of each language the words that tell it from all others, and those it shares; an English question with a foreign name
# in it may have the latter ("Rio de la Plata").
_TELLING = {
    "de": "wie welche welcher welches welchen wer wo wann warum wieso ist sind wird werden wurde wurden haben und oder "
    "nicht für über zwischen durch eine einen einem einer kann können sich auf bei nach aus vom zum zur beim gibt",
    "fr": "quel quelle quels quelles est sont étaient était dans avec une pourquoi où qui les aux ce cette ces ont "
    "peut peuvent entre leur leurs être été pas combien depuis ils elles",
    "es": "qué cuál cuáles cómo dónde cuándo quién quiénes cuánto cuántos cuánta cuántas los las una más está están "
    "fue fueron hay desde según sus puede pueden cual cuales",
    "it": "quali quale che è sono gli della delle degli dei nel nella nelle dello perché quando dove chi più tra "
    "quanto quanti quante stato stata può possono alla alle sulla sul",
    "pt": "quais qual são é uma os dos das em não como onde quando quem quanto quantos pelo pela pelos pelas foi foram "
    "entre mais está estão num numa ao à",
    "nl": "het een zijn welke hoe waarom wanneer waar wie wordt worden werd werden niet voor naar bij tussen wat deze "
    "heeft hebben kan kunnen uit ook",
    "sv": "och är hur vad vilka vilken vilket varför när inte på från för att som mellan har hade kan blev finns ett "
    "vem var",
    "pl": "jest są jak jaki jaka jakie jakich który która które których czy nie się dlaczego kiedy gdzie kto przez "
    "oraz między dla jego był była było były ile od",
}
_SHARED = {
    "de": "der die das den dem des von zu im in mit an am um was war hat so man also als es wir",
    "fr": "le la de des du un et en au par pour sur que a on plus comment l d qu se sa son il y n s",
    "es": "el la de del y en con es son un por para que como a al o no se su lo me entre sobre era ha e",
    "it": "il la lo i di da del dal in un una e con per come a al si le su ha l d o no me",
    "pt": "a o e de do da no na as um com por para que se sua seu ou nos nas me",
    "nl": "de van en in op met te is of was die dat er om als aan over we had door",
    "sv": "en den det de av i till med om så man sig under efter vid",
    "pl": "w z na do i o to a co za we ze po u tym",
}
_WORDS = re.compile(r"[^\W\d_]+")
_APART = re.compile(r"https?://\S+|\"[^\"]*\"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»")
_ORDERS = frozenset(
    "analyze analyse assess compare contrast define describe discuss evaluate examine explain explore find identify "
    "investigate list name outline provide research review summarise summarize translate write".split()
)
_ENGLISH = (STOP_WORDS | _ORDERS) - {"s", "t"}
_OWN = {code: frozenset(told.split()) for code, told in _TELLING.items()}
_COMMON = {code: frozenset(told.split()) for code, told in _SHARED.items()}


def list_small_words(code: str) -> frozenset[str]:
    """The words of a language that carry no meaning, those by which a question begins among them."""
    openers = {opener for opener, language in _OPENERS.items() if language == code}
    return _OWN.get(code, frozenset()) | _COMMON.get(code, frozenset()) | openers


def detect_language(text: str) -> str | None:
    """Its two-letter code, as in "de"; None for what is short, mixed, or in a language not told apart here."""
    asked = _APART.sub(" ", normalize("NFC", text))
    folded = asked.casefold()
    for code, script in _SCRIPTS.items():
        if code == "ja" and not re.search(f"[{_KANA}]", folded):
            continue
        rest, characters = re.subn(script, "", folded)
        written = characters * (DENSE if code in _DENSE else 1)
        if written >= FEWEST and written >= MOSTLY * (written + sum(map(str.isalpha, rest))):
            # Of the languages that share a script the one it is taken for, unless there are signs of another.
            if code == "ru" and _UKRAINIAN.search(folded):
                if not _RUSSIAN.search(folded):
                    return "uk"
            elif code not in _OTHERS or not re.search(_OTHERS[code], folded):
                return code
            break
    words = _WORDS.findall(asked)
    said = [word.casefold() for place, word in enumerate(words) if place == 0 or word.islower()]
    english = [word for word in said if word in _ENGLISH]
    distinct = set(said)
    points = {code: 2 * len(distinct & own) + len(distinct & _COMMON[code] - own) for code, own in _OWN.items()}
    best = max(points, key=lambda code: points[code])
    next_best = max(points[code] for code in points if code != best)
    known = [word for word in said if word in _OWN[best] or word in _COMMON[best]]
    if any(word not in _OWN[best] and word not in _COMMON[best] for word in english):
        return "en" if len(english) >= 2 and len(english) >= SHARE * len(words) and len(english) > len(known) else None
    told = any(word in _OWN[best] for word in known)
    sure = points[best] >= 3 and points[best] >= next_best + AHEAD and len(known) >= SHARE * len(words)
    return best if told and sure else None


# How a question begins in languages told apart by little else, as in "Wie viele Grammys gewann Lady Gaga?". Words that
# begin one in English, or in another of these, are left out: "was", "comment", "que".
_OPENERS = {
    opener: code
    for code, openers in {
        "de": "wie wer wen wem wessen wo wohin woher wann warum wieso weshalb wofür womit woran worauf woraus worin "
        "worüber wovon wozu wodurch welche welcher welches welchen welchem nennen nenne erkläre beschreibe",
        "fr": "qui quand où combien pourquoi quel quelle quels quelles quoi lequel laquelle",
        "es": "qué quién quiénes cuándo dónde cuánto cuánta cuántos cuántas cuál cuáles cómo",
    }.items()
    for opener in openers.split()
}
_PREPOSITIONS = frozenset(
    "in an auf aus bei bis durch für mit nach seit um unter von vor zu zum zur à de en depuis con por para".split()
)


def detect_question_language(text: str) -> str | None:
    """As `detect_language`, of somebody who asks their own documents: nothing is lost by a guess, and a question is
    short. So the word it begins with decides, where nothing else does, or a few characters of Chinese."""
    if found := detect_language(text):
        return found
    asked = normalize("NFC", text)
    if asked.lstrip().startswith("¿"):
        return "es"
    said = [word.casefold() for word in _WORDS.findall(asked)]
    first = next((word for word in said if word not in _PREPOSITIONS), "")
    small = {word for word in _WORDS.findall(asked)[1:] if word.islower()}
    if code := _OPENERS.get(first):
        return code if small & _ENGLISH <= _OWN[code] | _COMMON[code] else None
    # "Was begrenzt die Effizienz?" and "Was Tesla a Serb?"
    if first == "was" and small & (_OWN["de"] | _COMMON["de"]) - _ENGLISH and small & _ENGLISH <= _COMMON["de"]:
        return "de"
    if len(re.findall(f"[{_HAN}]", asked)) >= FEWEST_HAN and not re.search(f"[{_KANA}]", asked):
        return "zh"
    return None


_LANGUAGES = (
    "ar arabic · bg bulgarian · ca catalan · cs czech · da danish dansk · de german deutsch · el greek · en english · "
    "es spanish español castellano · et estonian · fa persian farsi · fi finnish suomi · fr french français · "
    "he hebrew · hi hindi · hr croatian · hu hungarian magyar · id indonesian · it italian italiano · ja japanese · "
    "ko korean · lt lithuanian · lv latvian · nl dutch nederlands · no norwegian norsk · pl polish polski · "
    "pt portuguese português · ro romanian · ru russian · sk slovak · sl slovene slovenian · sr serbian · "
    "sv swedish svenska · th thai · tr turkish türkçe · uk ukrainian · vi vietnamese · zh chinese"
)
_CODES = {name: entry.split()[0] for entry in _LANGUAGES.split(" · ") for name in entry.split()}


def language_code(name: str | None) -> str | None:
    """Return the two-letter code of a language by its name or its code, or None for one that is not listed here."""
    name = (name or "").strip().lower()
    return _CODES.get(name) or _CODES.get(re.split("[-_]", name)[0])
