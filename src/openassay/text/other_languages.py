"""Questions in other languages than English, and what they have in common with texts of the same language.

What knows English by its forms says nothing here: a text is matched by its stems alone, which Snowball has for most of
these languages. Chinese and Japanese are read by pairs of characters.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import log
from typing import Literal
from unicodedata import normalize

import Stemmer

from openassay.text.language import detect_language, detect_question_language, list_small_words
from openassay.text.words import UNSPACED, fold, split_unspaced

_SNOWBALL = {
    "ar": "arabic", "de": "german", "el": "greek", "es": "spanish", "fr": "french", "hi": "hindi", "it": "italian",
    "nl": "dutch", "pt": "portuguese", "ru": "russian", "sv": "swedish",
}  # fmt: skip
_STEMMERS = {code: Stemmer.Stemmer(name) for code, name in _SNOWBALL.items()}
_TOKEN = re.compile(r"[^\W_]+")
_SMALL = {code: list_small_words(code) for code in _SNOWBALL}

# What begins a question that one sentence does not answer, and the words that ask for a day or for a figure.
_BROAD = re.compile(
    r"(?:warum|wieso|weshalb|erkläre|beschreibe|pourquoi|comment|expliquez|explique|décrivez|décris|por qué|cómo|"
    r"describe|cuéntame)\b|为什么|为何|如何|怎样|怎么|介绍|解释|描述"
)
AskedKind = Literal["date", "figures"]
_KINDS: tuple[tuple[AskedKind, re.Pattern[str]], ...] = (
    ("date", re.compile(r"\bwann\b|\bjahre?s?\b|\bquand\b|quelle (?:année|date)|\bcuándo\b|qué (?:año|fecha|día)|"
                        r"什么时候|何时|哪一?年|哪一?天|几月|什么日期")),
    ("figures", re.compile(r"\bwie (?:viel|lang|hoch|groß|alt|schwer|weit|breit|tief|oft)|\bcombien\b|"
                           r"quelle (?:est la )?"
                           r"(?:longueur|hauteur|population|superficie)|\bcuánt[oa]s?\b|qué (?:longitud|altura|edad)|"
                           r"多少|几|多[长高大远久深宽重]")),
)  # fmt: skip
# What a question in Chinese asks with, and what only joins its words: pairs of characters run across both.
_ASKING = re.compile(
    r"请问|为什么|什么时候|什么|时候|哪一?[年天些个里]|哪|何时|何|如何|怎么样?|怎样|多少钱?|几|谁|吗|呢|是|的|了|在|于|由|被|把|和|与|及|"
    r"或|而|之|其|这|那|有(?=[多什哪几])|多(?=[长高大远久深宽重])"
)
# Words that stand for each other in question and answer.
_SAME = {
    code: tuple(frozenset(group.split()) for group in groups)
    for code, groups in {
        "de": ("gebaut erbaut errichtet gebaute baute Bau Errichtung", "gegründet gründete Gründung Gründer ins Leben",
               "geboren Geburt kam", "gestorben starb Tod verstarb", "kostet kosten Preis Euro",
               "erfunden erfand Erfinder",
               "liegt befindet gelegen", "heißt genannt Name", "eröffnet eröffnete Eröffnung", "lang Länge",
               "hoch Höhe", "schrieb geschrieben Autor verfasst"),
        "fr": ("construit construite construction bâti édifié érigé", "fondé fondée fonda fondateur fondation créé",
               "né née naissance naquit", "mort morte mourut décédé décès", "coûte coût prix tarif euros",
               "inventé inventa inventeur", "situé situe trouve", "long longueur", "haut hauteur",
               "ouvert ouverture inauguré", "écrit écrivit auteur"),
        "es": ("construyó construido construida construcción edificado erigido", "fundó fundado fundada fundador "
               "fundación "
               "creado", "nació nacido nacimiento", "murió muerto muerte falleció", "cuesta coste costo precio euros",
               "inventó inventado inventor", "sitúa situado encuentra ubicado", "largo longitud mide", "alto altura",
               "inauguró abrió inaugurado apertura", "escribió escrito autor"),
        "zh": ("建成 建于 建造 修建 兴建 建立", "创立 成立 创办 创建 建立", "出生 诞生 生于", "去世 逝世 死于 死亡",
               "价格 门票 票价", "位于 坐落", "发明", "长度 全长", "高度"),
    }.items()
}  # fmt: skip
_LONGEST_POINTED = 160  # characters
_FIGURE = re.compile(
    r"\d|[〇零一二两三四五六七八九十百千万亿]{2}|[二两三四五六七八九十][^\W\d_]|\b(?:zwei|drei|vier|fünf|sechs|sieben|acht|neun|"
    r"zehn|elf|zwölf|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze|dos|tres|cuatro|cinco|seis|siete|ocho|"
    r"nueve|diez|once|doce)\b",
    re.I,
)
_DAY = re.compile(r"(?<!\d)(?:1\d{3}|20\d{2})(?!\d)|\d{1,2}\.? ?(?:de )?[^\W\d_]{3}|[年月日]")


def find_other_language(question: str) -> str | None:
    """The code of the language a question is in, where that is not English and plain."""
    code = detect_question_language(question)
    return None if code == "en" else code


def is_in_other_language(text: str) -> bool:
    """Whether a text plainly is not in English; what only English is known of has nothing to say of it."""
    return detect_language(text) not in (None, "en")


def is_pointed_elsewhere(question: str) -> bool:
    """Whether a question in another language asks for one thing that a sentence can tell: most do."""
    plain = question.casefold().lstrip("¿ ")
    if find_other_language(question) is None or len(plain) > _LONGEST_POINTED:
        return False
    return not _BROAD.search(plain)


def find_asked_kind(question: str) -> AskedKind | None:
    plain = normalize("NFC", question).casefold()
    return next((kind for kind, form in _KINDS if form.search(plain)), None)


def has_asked_kind(kind: AskedKind, sentence: str) -> bool:
    return (_DAY if kind == "date" else _FIGURE).search(sentence) is not None


@lru_cache(maxsize=8_192)
def find_stems(text: str, language: str) -> tuple[str, ...]:
    """The stems of the words that carry meaning, in order."""
    said = _TOKEN.findall(split_unspaced(normalize("NFC", text).casefold()))
    small = _SMALL.get(language, frozenset())
    own = [word for word in said if word not in small and (len(word) > 1 or word.isdigit() or UNSPACED.match(word))]
    stemmer = _STEMMERS.get(language)
    return tuple(fold(word) for word in (stemmer.stemWords(own) if stemmer else own))


def strip_asking(question: str) -> str:
    """A question without the characters that ask, where it has no spaces between words."""
    return _ASKING.sub(" ", question) if UNSPACED.search(question) else question


@lru_cache(maxsize=512)
def _list_same(language: str) -> dict[str, frozenset[str]]:
    """By stem, those that may stand in its place, itself among them."""
    same: dict[str, frozenset[str]] = {}
    for group in _SAME.get(language, ()):
        found = frozenset(stem for word in group for stem in find_stems(word, language))
        for word in found:
            same[word] = same.get(word, frozenset()) | found
    return same


# How far texts have the words of a question, rare ones counting most.

SAME = 0.9  # of a word, for one that may stand in its place
PART = 0.6  # of a word, for one that it is a part of: Brücke in Steinbrücke, constru- in construcción
SHORTEST_PART = 5  # characters
K1, B = 1.2, 0.75  # as in BM25


class WordMatcher:
    """The words of a question, weighed by how few of some texts have them."""

    def __init__(self, question: str, language: str, texts: Sequence[str]) -> None:
        self.language = language
        self._texts = [Counter(find_stems(text, language)) for text in texts]
        self._average = sum(text.total() for text in self._texts) / max(1, len(texts)) or 1.0
        self._same = _list_same(language)
        wanted = dict.fromkeys(find_stems(strip_asking(question), language))
        having = {word: sum(self._count(word, text) > 0 for text in self._texts) for word in wanted}
        self._weights = {word: log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for word, count in having.items()}
        self._known = [word for word, count in having.items() if count]

    def _count(self, word: str, text: Mapping[str, int]) -> float:
        if found := text.get(word, 0):
            return found
        if any(text.get(other, 0) for other in self._same.get(word, ())):
            return SAME
        if UNSPACED.match(word):
            return PART * (len(word) == 1 and any(word in other for other in text))
        if len(word) < SHORTEST_PART:
            return 0.0
        return PART * any(word in other or (len(other) >= SHORTEST_PART and other in word) for other in text)

    def score_texts(self) -> list[float]:
        """BM25 of each of the texts."""
        scores = []
        for text in self._texts:
            norm = K1 * (1 - B + B * text.total() / self._average)
            counts = {word: self._count(word, text) for word in self._known}
            scores.append(sum(self._weights[word] * n * (K1 + 1) / (n + norm) for word, n in counts.items()))
        return scores

    def recall(self, text: str) -> float:
        """The weighted share of the question's words that a text has, of those that any of the texts has."""
        said = Counter(find_stems(text, self.language))
        total = sum(self._weights[word] for word in self._known)
        shared = sum(self._weights[word] * min(1.0, self._count(word, said)) for word in self._known)
        return shared / total if total else 0.0

    def known_share(self) -> float:
        """The share of the question's words that any of the texts has."""
        return len(self._known) / len(self._weights) if self._weights else 0.0
