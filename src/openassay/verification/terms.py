"""The terms a report may use: sentences about the research itself may name only what is known to it."""

import re
from collections.abc import Collection, Sequence

from openassay.text.words import content_words, stem, words
from openassay.verification.names import check_names, has_name
from openassay.verification.statement_check import check_statement

_FIGURE = re.compile(r"\d[\d.,]*")
LARGEST_COUNT = 100  # figures up to here may count sources, rounds or statements
_COUNTED = (
    r"(?:of|or|and|to|in|more|\w+ed|\w+ent|\w+er|\d+|sub-?questions?|questions?|sources?|statements?|claims?|documents?|"
    r"pages?|attempts?|rounds?|quer(?:y|ies)|search(?:es)?|sides?|figures?|sections?|passages?|answers?|times|matters?|"
    r"words|groups?|tables?|points?|parts?|views?|could|can|were|was|are|remain(?:s|ed)?|have|had|did)"
)
_COUNT = re.compile(rf"\d{{1,3}}(?=,?(?:\s{_COUNTED}){{1,3}}\b)")
# What may be said of research: everything else that a sentence without a claim says is about the world.
_OF_RESEARCH = (
    "about account address agree agreement all alone also although always ambiguous among analysis and answer any "
    "apart appear ask aspect assert attempt available base basis before begin behind below best better both brief "
    "call cannot case check cite claim clear clearly close come common compare comparison complete conclude "
    "conclusion confidence confident confirm conflict consider contain contradict contradiction copy corroborate "
    "could count cover coverage credible date deal depth describe detail differ difference different direct "
    "directly disagree disagreement discuss dispute document doubt draw each either enough establish evidence "
    "exact explain fact fail far few figure final find finding first follow following found full further gap "
    "general get give given good group half hand hard held here high hold however include incomplete independent "
    "information instead issue judge key kind know knowledge known lack large last later lead least leave less "
    "let level like likely limit limited line list little look low main make many mark matter mean measure "
    "mention method missing more most much name narrow near need neither new newer newest next none not note "
    "nothing number offer old older one only open opinion order origin other otherwise out overall overview own "
    "page part partial partly passage people pick place plain plan point position possible prefer preference "
    "present print provide public publish question quote range read reader reading reason recent record refer "
    "reference relate relevant reliable rely remain repeat report require research rest result reveal review "
    "right round run same say scope search second section see separate set settle several short show side similar "
    "single small some source speak specific stand state statement still study subject sub suggest summary "
    "superseded support sure table take tell text thing think third time title together too topic total treat "
    "true try turn two uncertain unclear under unanswered unknown unresolved use value verdict verify version "
    "view want way weak web well what where which whole why wide within without word work write written year yet "
    "everything anything something agrees newest three four five six "
    "seven eight nine ten sorry spell spelling search-engine searched "
    "subquestions primary secondary official majority view rest point settle decide weigh trust worth several "
    "above below background context discussion introduction abstract findings history implications assessment "
    "survey notes please"
)
_RESEARCH_STEMS = frozenset(stem(word) for word in _OF_RESEARCH.split())
_SUBJECT_STEMS = frozenset(
    stem(word)
    for word in "answer agree attempt base claim confidence conflict corroborate cover disagree dispute document "
    "evidence figure find found information question quote read report research review round run "
    "search section source statement study summary support superseded verify mark".split()
)

_EVIDENCE_STEMS = frozenset(stem(word) for word in "source document claim evidence passage material record".split())
_DENIES = re.compile(r"\b(?:not|no|none|nothing|neither|nor|never|without|only|little|few)\b|n[’']t\b", re.I)
_LEAVES_OPEN = re.compile(
    r"\b(?:silent|unclear|unknown|untold|unsettled|unresolved|unanswered)\b"
    r"|\b(?:remain|stay|leave|left|keep|kept)\w*\s+(?:\w+\s+){0,3}open\b|^Open (?:is|are|remain)",
    re.I,
)


class KnownTerms:
    """What is known without a source: the question, the plan and the titles."""

    def __init__(self, texts: Sequence[str], words: Sequence[str] = ()) -> None:
        """`words` are texts of which plain words may be used as well, but no name and no figure."""
        self._text = "\n".join(texts)
        self._figures = _extract_figures(self._text)
        self._stems = _content_stems("\n".join((*texts, *words)))

    def has_text(self, text: str) -> bool:
        return text.lower() in self._text.lower()

    def covers(self, sentence: str) -> bool:
        """Whether the sentence speaks of the research, in its words and those of the question, with no figure and no
        name of its own but counts. It may still be false; it is no finding that would want a source behind it."""
        said = _content_stems(sentence)
        bare = _COUNT.sub(lambda count: " " if int(count[0]) <= LARGEST_COUNT else count[0], sentence)
        return bool(said & _SUBJECT_STEMS) and self._has_only_terms(bare, said)

    def may_tell_limits(self, sentence: str) -> bool:
        """Whether the sentence may be one on what the sources leave open, which a judge has to read: it speaks of that,
        with no figure and no name of its own; its plain words are free."""
        denies = bool(_content_stems(sentence) & _EVIDENCE_STEMS) and bool(_DENIES.search(sentence))
        if not (denies or _LEAVES_OPEN.search(sentence)) or _extract_figures(sentence) - self._figures:
            return False
        # Its names alone: all the checks of a statement take seconds beside the words of 300 claims.
        return not any(check_names(sentence, [self._text], (), strict=False))

    def covers_title(self, title: str) -> bool:
        """Whether the title states nothing beyond what was asked."""
        return bool(title.strip()) and self._has_only_terms(title, _content_stems(title))

    def _has_only_terms(self, text: str, said: set[str]) -> bool:
        if _extract_figures(text) - self._figures or said - self._stems - _RESEARCH_STEMS:
            return False
        for word in set(_CAPITAL.findall(text)):
            if stem(word.lower()) in _RESEARCH_STEMS:  # it is no name for standing at the head of a title
                text = re.sub(rf"\b{word}\b", word.lower(), text)
        return not any(problem.kind == "name" for problem in check_statement(text, [self._text]).problems)


_CAPITAL = re.compile(r"\b[A-Z][a-z]+\b")


def _extract_figures(text: str) -> set[str]:
    return {match.rstrip(".,") for match in _FIGURE.findall(text)}


def _content_stems(text: str) -> set[str]:
    """Of the words that carry meaning; figures are looked at apart."""
    parts = (part for word in content_words(text) for part in re.split(r"[-/]", word))
    return {stem(part) for part in parts if len(part) > 1 and not part[0].isdigit()}


# What a model said that nobody has checked, made harmless to repeat: its plain words stay, and nothing in it that is
# not known from the question, the plan or what was published can be a code, an abbreviation or an address.

LEFT_OUT = "…"

_TOKEN = re.compile(r"(\S+)")
_EDGE = ".,;:!?()[]\"'`“”‘’«»"
_NUMBER = re.compile(r"[$€£]?\d[\d.,]*%?(?:[-–]\d[\d.,]*%?)?")


def mask_unverified_terms(text: str, known: Collection[str], names: Sequence[str] = ()) -> str:
    """`known` are the words that may stand whatever they look like, in small letters; `names` are texts whose names
    may."""
    pieces = _TOKEN.split(text)  # tokens stand between the gaps
    for at in range(1, len(pieces), 2):
        bare = pieces[at].strip(_EDGE)
        if not bare or _NUMBER.fullmatch(bare) or all(word in known for word in words(bare)):
            continue
        spelt = [part for part in bare.split("-") if part and not part.islower()]  # of "anti-Polish" Polish
        if names and spelt and all(has_name(names, part) for part in spelt):
            continue
        letters = bare.replace("-", "").replace("’", "").replace("'", "")
        if not (letters.isalpha() and (bare.islower() or bare[1:].islower())):
            pieces[at] = LEFT_OUT
    return "".join(pieces)


_ADDRESS = re.compile(r"\S*(?:</?[a-z]|\w://|\bwww\.)\S*", re.I)


def find_addresses(text: str, passages: Sequence[str]) -> list[str]:
    """The addresses and the markup in a text that none of its passages has: whoever reads pages and obeys them writes
    such things, and nobody else does."""
    known = "\n".join(passages)
    return [found[0] for found in _ADDRESS.finditer(text) if found[0].strip(_EDGE) not in known]


def collect_words(*texts: str) -> frozenset[str]:
    return frozenset(word for text in texts for word in words(text))
