"""What a pointed question wants: the kind of thing, of what, and the words that lead to it."""

import re
from typing import Literal, NamedTuple

from assay.reasoning.embedded.pointed.kinds import OF_KIND, SHOWN_BY
from assay.text.words import content_words, fold, stem, stems

MOST_WORDS = 30  # of a question; a longer one is no pointed question

Kind = Literal["date", "number", "name", "place", "class"]
Cues = tuple[tuple[str, frozenset[str]], ...]


class Wanted(NamedTuple):
    kind: Kind
    noun: str  # what is asked for, as in "which sport"
    subject: str  # as the question spells it; empty where nothing is named
    cues: Cues  # stems of the question that stand near an answer, and what says the same
    question: str
    loose: frozenset[str] = frozenset()  # stems that will do where nothing better stands
    against: frozenset[str] = frozenset()  # stems that tell of something else where they stand nearer than a cue
    needs: frozenset[str] = frozenset()  # stems of which the sentence of an answer has one
    asked: str = ""  # the question as it was spelled

    @property
    def asks(self) -> frozenset[str]:
        """Stems of the question's own words of asking."""
        return frozenset(stems(self.question))

    @property
    def near(self) -> frozenset[str]:
        return frozenset().union(*({own} | alike for own, alike in self.cues))

    @property
    def words(self) -> tuple[str, ...]:
        """Those that an answer has where they are known: every sport is one of a list."""
        return OF_KIND.get(self.noun, ())


_DATE = re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|decade|century)\b|\bdate\b|\byear of\b")
_NUMBER = re.compile(
    r"\bhow (?:many|much|old|tall|high|long|large|big|far|deep|wide|heavy|fast)\b|\bpopulation\b|"
    r"\b(?:number|size|height|length|area|age|income|cost|price|budget|distance|weight|capacity|speed|value|amount|"
    r"elevation|depth|revenue|salary|percentage|share) (?:of|in|for|at)\b|"
    r"\b(?:dividend|turnover|dose|dosage|net (?:profit|income|loss|debt)|revenue)\b"
)
_COUNT = re.compile(r"^how (?:many|much)\b")
_PERSON = re.compile(r"\bwho(?:m|se)?\b")
_PLACE = re.compile(
    r"^where\b|\b(?:which|what) (?:city|town|village|state|country|county|region|province|district|continent|place|"
    r"island)\b|\b(?:birthplace|location|headquarters|capital) of\b|\bthe (?:region|country|state|city|county) of\b"
)
_NAMED = re.compile(
    r"\b(?:name (?:of|for)|stand for|operated by|(?:which|what) (?:private |main |type of )?"
    r"(?:line|airline|operator|company|conflict|war|aircraft|league|team|club|channel|label|network|river|school|"
    r"university|band|group|book|album|song|film|award|publisher|manufacturer|studio))\b"
)
_CLASS = re.compile(
    r"\b(?:(?:what|which) (?:is|was|are|were|kind|type|sort|sport|genre|profession|party|political|"
    r"position|language|medium|gender|format|rank|nationality|religion|instrument|style)|which type)\b|"
    r"\bwhat do(?:es)? .*\b(?:stand for|refers? to|mean)\W*$"
)
# The thing asked for is known by one of these; "what is the mood in Ostrey" wants no phrase that could be told.
_KNOWN = frozenset(
    (
        *OF_KIND,
        *SHOWN_BY,
        *"institution function activity rank format unit transportation style religion instrument "
        "purpose refers refer mean stand type kind".split(),
    )
)
_COMPARED = re.compile(
    r"\b(?:more|less|fewer|better|worse|(?:bigg|larg|small|high|low|long|short|old|young|new|tall|deep|fast|slow|cheap|"
    r"strong|rich|safe|great|heavi|wealthi|near|clos)e?r)\b|\b(?:who|which|what)\b.*,? (?:\S+ )?or \S+"
)
_UNSAID = re.compile(r"\bknown for\b|\b(?:what|which) (?:did|do|does|has|have|had|can|could|will|would|should)\b")

_OPEN = re.compile(
    r"\b(?:why|how (?:do|does|did|is|are|was|were|can|could|should|will|would|has|have)|compare|explain|describe|"
    r"overview|differ(?:s|ent|ence|ences)?|summari[sz]e|advantages|effects?|impacts?|causes?|reasons?|implications|"
    r"arguments|evidence|state of the art|trends?|known about|figures are given)\b|\b(?:what|when|who|where|which)\b"
    r".*\band (?:what|when|who|where|which|how|why)\b"
)
_NOUN = re.compile(
    r"\b(?:what|which) (?:is the |was the |are the )?(?:primary |main |political |broadcast |total |estimated |"
    r"modern-day |common |historical |current )*(?:type of |kind of |sort of )?([a-z-]+)"
)
_QUOTED = re.compile(r"[\"“”]([^\"“”]+)[\"“”]")
_NAME = re.compile(
    r"(?:(?<=\s)|^)(?:[A-Z0-9][\w’'.&-]*)"
    r"(?:,? (?:of|the|de|van|von|and|for|in|a|an|to|with|upon)(?= (?:(?:the|a) )?[A-Z0-9])|,? [A-Z0-9][\w’'.&-]*)*"
)
_IN_YEAR = re.compile(r",? (?:in|for|during|of|by) (?:19|20)\d\d$")
_OFFICE = re.compile(r"C[EFOT]O")
_ASKING = frozenset(
    "what when who whom whose where which how in on at is was are were did does do the a an of for to by with from "
    "according".split()
)

# What an answer may say where a question asks so: "when was it established" is answered by "it was founded in".
_ALIKE = {
    "establish found form create organize organise incorporate launch raise institute start": "established founded "
    "founding formed created launched inaugurated incorporated organized organised instituted constituted chartered "
    "opened started began raised activated",
    "build construct erect": "built constructed erected completed construction building dating dates",
    "release publish issue": "released issued published release",
    "open": "opened opening inaugurated",
    "born birth": "born birth birthdate b",
    "die death": "died death dies d",
    "take place hold": "took place held fought occurred",
    "begin start": "began begun started commenced",
    "collapse fall": "collapse collapsed fell fall",
    "ceo": "chief executive",
    "revenue turnover": "revenue revenues sales turnover",
    "profit": "profit profits earnings income",
    "chief executive": "ceo chief executive",
    "become": "became succeeded inherited appointed created",
    "serve": "served serving tenure office",
    "broadcast air": "aired premiered debuted broadcast",
    "introduce": "introduced introduction replaced adopted",
    "expand": "expanded widened expansion dualled",
    "population": "population inhabitants people residents populace",
    "direct director": "director directed directs directing",
    "artist singer": "artist performed recorded singer band album song single ep musician",
    "compose composer": "composer composed wrote written music symphony work piece quintet quartet",
    "author write writer": "author wrote written writer novel book essay",
    "creator create": "creator created written directed developed album novel",
    "father mother parent": "father mother son daughter",
    "party": "party member elected candidate politician",
    "sport": "sport player played plays club team",
    "conflict war": "war conflict campaign",
    "profession occupation": "profession occupation",
    "husband wife spouse": "husband wife married spouse consort queen",
    "architect design": "architect designed design architects",
    "locate location": "located situated lies",
    "publish": "published newspaper based serving",
    "engine": "engine cc displacement",
    "operate operator": "operated operates operator",
}
_EMPTY = frozenset(
    stems("date year day known associated associate refer term type kind estimated according primary main")
)
_BEGINNINGS = frozenset(
    map(stem, "founded established built opened completed organized formed created began dedicated erected".split())
)
_BEGINNING = _BEGINNINGS | frozenset(
    map(stem, "establish found form create organize organise incorporate launch raise institute start build construct "
        "erect open begin dedicate complete introduce become".split())
)  # fmt: skip
_OF_LIVES = frozenset(map(stem, "born birth die death".split()))
_MEASURES = frozenset(
    map(stem, "revenue profit loss debt dividend turnover income earnings budget salary dose target".split())
)
_SAID = {stem(asked): frozenset(map(stem, said.split())) for group, said in _ALIKE.items() for asked in group.split()}


def wanted(question: str) -> Wanted | None:
    """None for a question that no short phrase answers."""
    plain = fold(question).strip()
    subject = _subject(question)
    bare = _QUOTED.sub(" ", plain).replace(fold(subject), " ") if subject else plain
    if _OPEN.search(bare) or _COMPARED.search(bare) or len(plain.split()) > MOST_WORDS:
        return None
    kind, cues = _kind(_QUOTED.sub(" ", plain)), _cues(plain, subject)
    if kind is None or (kind == "class" and _unclear(bare, cues)):
        return None
    loose, against, needs = _matter(kind, cues)
    return Wanted(kind, _noun(plain, subject), subject, cues, plain, loose, against, needs, question)


def _noun(plain: str, subject: str) -> str:
    found = _NOUN.search(plain)
    noun = found[1] if found else ""
    if noun in OF_KIND:
        return noun
    return next((word for word in plain.split() if word in OF_KIND and stem(word) not in stems(subject)), noun)


def _unclear(bare: str, cues: Cues) -> bool:
    """Whether a question what something is asks for more than that, and for nothing that is known."""
    known = any(word.strip("?.,'’") in _KNOWN for word in bare.split())
    return not known and (bool(cues) or _UNSAID.search(bare) is not None)


def _matter(kind: Kind, cues: Cues) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """What will do beside the question's own words, what is another matter, and what must be said: when a bridge
    collapsed is not when it was built, and a dividend is no revenue."""
    nothing: frozenset[str] = frozenset()
    own = frozenset().union(*({word} | alike for word, alike in cues))
    if kind == "number":
        needs = nothing.union(*({word} | alike for word, alike in cues if word in _MEASURES))
        return nothing, _MEASURES - own if needs else nothing, needs
    if kind != "date":
        return nothing, nothing, nothing
    if not cues or own & _BEGINNING:
        return _BEGINNINGS, nothing, nothing
    return nothing, nothing if own & _OF_LIVES else _BEGINNING - own, nothing


def _kind(plain: str) -> Kind | None:
    ways: tuple[tuple[re.Pattern[str], Kind], ...] = (
        (_DATE, "date"), (_NUMBER, "number"), (_PERSON, "name"), (_PLACE, "place"), (_NAMED, "name"), (_CLASS, "class"),
    )  # fmt: skip
    if _COUNT.search(plain):  # "how many were killed when it fell" asks for no date
        return "number"
    return next((kind for pattern, kind in ways if pattern.search(plain)), None)


def _subject(question: str) -> str:
    if quoted := _QUOTED.search(question):
        return quoted[1].strip(" .,")
    runs = []
    for found in _NAME.finditer(question.rstrip("?. ")):
        words = found.group().split()
        while words and fold(words[0]) in _ASKING:
            words.pop(0)
        if len(words) > 2 and _OFFICE.fullmatch(words[0]):  # "CEO of Alba Motors" is no name
            words = words[2:]
        runs.append(" ".join(words).removesuffix("'s").removesuffix("’s").strip(" ,"))
    return max((_IN_YEAR.sub("", run) for run in runs), key=len, default="")


def _cues(plain: str, subject: str) -> Cues:
    own = set(stems(subject)) | _EMPTY
    asked = dict.fromkeys(stem(word) for word in content_words(plain))
    return tuple((word, _SAID.get(word, frozenset()) - {word}) for word in asked if word not in own)
