"""What turns a statement round: negation, direction words (rose, fell) and hedges (may, is expected to).

A cue is found by its words and reaches over the content words that follow it in its clause. That is a window,
not a parse; the checks built on it doubt, they never vouch.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from openassay.text.words import STOP_WORDS, fold, stem


class ClauseWord(NamedTuple):
    text: str  # folded
    stem: str
    start: int
    end: int
    clause: int
    titled: bool  # begins with a capital


@dataclass(frozen=True, slots=True)
class Cue:
    """`word` is the stem the cue turns first; `scope` holds it and what else stands in the window."""

    cue: str
    word: str
    scope: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Direction:
    """A direction word: `family` amount, `rises` True for rose, grew, more; `clause` is what it is about."""

    family: str
    rises: bool
    cue: str
    clause: frozenset[str]
    start: int
    end: int


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_BREAK = re.compile(r"[,;:.!?](?=\s|$)|[()—…]|\s[-–]\s")
_BREAKING_WORDS = frozenset("but while whereas although though and because however yet".split())
_SCOPE = 5  # content words a cue reaches over
_ONE_WORDING = 0.75  # shared content of two statements that differ only in a denial; "officials deny that" adds a word
_REACH = 60  # characters between a negation and the direction word it turns

_NEGATIVE = frozenset(
    "not no never none neither nor without cannot nobody nothing nowhere hardly barely scarcely "
    "unlikely deny denies denied denying lack lacks lacked lacking refuse refuses refused refusing "
    "unable dismiss dismisses dismissed ain't untrue wrongly falsely disputes disputed".split()
)
_NEGATIVE_RUNS = tuple(
    run.split()
    for run in (
        "failed to|fails to|fail to|failing to|failure to|ruled out|rules out|rule out|ruling out|"
        "no longer|rather than|instead of|absence of|far from|ceased to|prevented from|"
        "declined to|declines to|neglected to|yet to|by no means|not yet|false that|not true that|not the case that|"
        "wrong that|incorrect that"
    ).split("|")
)
# They look like negation and are not.
_HARMLESS_RUNS = tuple(
    run.split()
    for run in (
        "not only|not just|not merely|not least|not to mention|no doubt|no less than|no fewer than|"
        "no more than|no later than|no matter|whether or not|nothing but|no sooner|not until"
    ).split("|")
)
_HEDGE = frozenset(
    "may might could possibly perhaps probably potentially reportedly allegedly apparently seemingly "
    "likely unlikely suggest suggests suggested suggesting "
    "expect expects expected projected forecast forecasts believed alleged purported predicted "
    "predicts tentative tentatively hypothesized hypothesised estimated anticipated anticipates "
    "possible".split()
)
_HEDGE_RUNS = tuple(
    run.split()
    for run in (
        "plans to|planned to|planning to|plan to|aims to|aimed to|aim to|intends to|intended to|"
        "intend to|hopes to|hoped to|set to|due to be|proposed to|proposes to|seeks to|in talks to|"
        "considering|appear to|appears to|appeared to|seem to|seems to|seemed to|seems that|appears that|"
        "thought to"
    ).split("|")
)
# What keeps a statement from being flat, besides the cues above.
_SOFT = frozenset(
    "can would should potential possibility likelihood indicate indicates indicated estimate "
    "estimates target targets goal projection projections prediction predictions forecasting "
    "speculated uncertain propose proposed proposes proposal plan plans planned aim aims intend "
    "intends hope hopes anticipate expectation expectations consider considered considering guidance "
    "outlook imply implies implied hint hints approximately roughly hypothesis supposedly "
    "supposed".split()
)
_LIGHT = STOP_WORDS | frozenset(
    "be being any yet ever longer significantly it he she they one all even quite also still that "
    "evidence sign plan plans way".split()
)

_DIRECTION_PAIRS: Mapping[str, tuple[str, str]] = {
    "amount": (
        "rise rises rose risen rising increase increases increased increasing grow grows grew grown "
        "growing growth gain gains gained climb climbs climbed climbing jump jumps jumped surge surges "
        "surged surging soar soars soared soaring expand expands expanded expanding expansion double "
        "doubles doubled tripled raise raises raised raising boost boosts boosted more higher greater "
        "larger bigger above exceed exceeds exceeded exceeding accelerate accelerated accelerates "
        "upward uptick advanced strengthened highest largest biggest most maximum",
        "fall falls fell fallen falling decrease decreases decreased decreasing decline declines "
        "declined declining drop drops dropped dropping shrink shrinks shrank shrunk shrinking reduce "
        "reduces reduced reducing reduction cut cuts slump slumps slumped plunge plunges plunged "
        "plunging tumble tumbled sink sank contracted contraction halved less lower lowered "
        "lowers lowering fewer smaller below slid slide dip dipped diminish diminished downward "
        "weakened slowed slows lowest smallest fewest least minimum",
    ),
    "result": (
        "profit profits profitable surplus",
        "loss losses unprofitable deficit deficits",
    ),
    "contest": (
        "win wins won winning winner victory",
        "lose loses lost losing loser",
    ),
    "order": ("first before earlier earliest precede precedes preceded oldest",
              "last final after later latest follow follows followed second third youngest newest"),
    "stance": (
        "support supports supported supporting accept accepts accepted accepting approve approves "
        "approved approving approval agree agrees agreed endorse endorses endorsed backed "
        "favour favours favoured favor favors favored allow allows allowed allowing permit "
        "permits permitted confirm confirms confirmed adopt adopted uphold upheld affirm "
        "affirmed",
        "oppose opposes opposed opposing opposition reject rejects rejected rejecting rejection "
        "disapprove disapproved disagree disagrees disagreed ban bans banned banning prohibit "
        "prohibits prohibited forbid forbids forbidden block blocked refute refutes refuted contradict "
        "contradicts contradicted veto vetoed overturn overturned condemn condemned",
    ),
    "begin": (
        "begin begins began begun beginning start starts started starting open opens opened opening "
        "launch launched",
        "end ends ended ending finish finished close closes closed closing stop stops stopped "
        "halted",
    ),
    "quality": (
        "improve improves improved improving improvement better best stronger strengthen strengthens "
        "safe safer success successful succeeded succeed positive effective",
        "worsen worsens worsened worsening worse worst weaker weaken weakens unsafe dangerous failure "
        "unsuccessful negative ineffective",
    ),
    "trade": ("buy buys bought buying purchase purchased acquire acquires acquired import imports",
              "sell sells sold selling divest divested export exports"),
    "width": ("widen widens widened widening", "narrow narrows narrowed narrowing"),
    "speed": ("fast faster fastest quicker", "slow slower slowest"),
    "law": ("legal lawful guilty convicted", "illegal unlawful innocent acquitted"),
    "truth": ("true correct", "false incorrect wrong untrue"),
    "cause": ("cause causes caused causing trigger triggers triggered",
              "prevent prevents prevented preventing"),
    "compass": ("north northern northwards", "south southern southwards"),
    "side": ("east eastern", "west western"),
    "sex": ("male man men boy", "female woman women girl"),
    "majority": ("majority", "minority"),
    "presence": ("include includes included including presence contains",
                 "exclude excludes excluded excluding absent"),
}  # fmt: skip
_DIRECTIONS = {
    word: (family, rises)
    for family, sides in _DIRECTION_PAIRS.items()
    for rises, side in zip((True, False), sides, strict=True)
    for word in side.split()
}
# Words that say which of two has more of something.
COMPARATIVES = frozenset(
    word
    for word, (family, _) in _DIRECTIONS.items()
    if family in ("amount", "speed") and word.endswith(("er", "more", "less"))
)
# They tell which thing is meant more often than what is said of it: two of them make other facts, not opposite ones.
_SELECTING = frozenset("result order trade compass side sex majority".split())
_SELECTING_WORDS = frozenset(
    "highest largest biggest most maximum lowest smallest fewest least minimum higher larger bigger greater lower "
    "smaller fewer more less above below growth expansion reduction contraction best worst".split()
)
# "up" and "down" are mostly particles (set up, shut down); before a figure they are directions.
_UP_DOWN = re.compile(r"\s(?:[$€£]?\d|from\b|by\b|sharply\b|slightly\b|about\b|nearly\b)")


@lru_cache(maxsize=512)  # each of negations, hedges and turns reads the same sentence
def clause_words(text: str) -> tuple[ClauseWord, ...]:
    """All words with their clause; commas, brackets and conjunctions part clauses."""
    breaks = [match.start() for match in _BREAK.finditer(text)]
    found: list[ClauseWord] = []
    clause = passed = 0
    for match in _WORD.finditer(text):
        while passed < len(breaks) and breaks[passed] < match.start():
            passed, clause = passed + 1, clause + 1
        raw = match.group()
        folded = raw.lower() if raw.isascii() else fold(raw.replace("’", "'"))
        if folded in _BREAKING_WORDS:
            clause += 1
        found.append(ClauseWord(folded, stem(folded), match.start(), match.end(), clause, match.group()[:1].isupper()))
    return tuple(found)


_NUMBER_AFTER = re.compile(r"\.?\s?\d")


def find_negations(text: str) -> tuple[Cue, ...]:
    found = clause_words(text)
    spans = _find_phrases(found, _NEGATIVE_RUNS)
    for index, word in enumerate(found):
        if word.text in _NEGATIVE or word.text.endswith("n't"):
            spans.setdefault(index, 1)
    for first, length in _find_phrases(found, _HARMLESS_RUNS).items():
        for index in range(first, first + length):
            spans.pop(index, None)
    return tuple(
        _build_cue(found, index, length)
        for index, length in sorted(spans.items())
        # No. 5 is a number, not a denial.
        if found[index].text != "no" or not _NUMBER_AFTER.match(text, found[index].end)
    )


def has_negation(text: str) -> bool:
    return bool(find_negations(text))


def find_hedges(text: str) -> tuple[Cue, ...]:
    found = clause_words(text)
    spans = _find_phrases(found, _HEDGE_RUNS)
    for index, word in enumerate(found):
        if word.text not in _HEDGE:
            continue
        opens = index == 0 or found[index - 1].clause != word.clause
        before_figure = index + 1 < len(found) and found[index + 1].text[:1].isdigit()
        is_month = word.text == "may" and word.titled and (not opens or before_figure)
        if not is_month:
            spans.setdefault(index, 1)
    return tuple(_build_cue(found, index, length) for index, length in sorted(spans.items()))


def select_soft_words(said: Collection[str]) -> set[str]:
    """Of some words, those that keep a statement from being flat."""
    return {word for word in said if word in _HEDGE or word in _SOFT}


def find_directions(text: str) -> tuple[Direction, ...]:
    """Direction words; one that is negated points the other way."""
    found = clause_words(text)
    content: dict[int, set[str]] = {}
    for word in found:
        if word.text not in STOP_WORDS:
            content.setdefault(word.clause, set()).add(word.stem)
    denied = find_negations(text)
    ends = [cue.end for cue in denied]
    result = []
    for word in found:
        family, rises = _DIRECTIONS.get(word.text) or _particle_direction(text, word)
        if family:
            before = denied[bisect_left(ends, word.start - _REACH) : bisect_right(ends, word.start)]
            turned = any(cue.word == word.stem for cue in before)
            clause = frozenset(content.get(word.clause, set()) - {word.stem})
            result.append(Direction(family, rises != turned, word.text, clause, word.start, word.end))
    return tuple(result)


class Polarity(NamedTuple):
    """Which way a text points. A negation counts for the whole text: "no dogs are allowed" is "dogs are not"."""

    denied: bool
    says: frozenset[tuple[str, bool]]  # family and direction as printed, negation aside
    selects: frozenset[tuple[str, bool]]
    stems: frozenset[str]  # content, without the cues of negation
    turning: frozenset[str]  # those of `stems` that are direction words


@lru_cache(maxsize=8192)
def read_polarity(text: str) -> Polarity:
    cues = find_negations(text)
    kept = [word for word in clause_words(text) if not any(cue.start <= word.start < cue.end for cue in cues)]
    ways = [(word, _DIRECTIONS.get(word.text) or _particle_direction(text, word)) for word in kept]
    says: set[tuple[str, bool]] = set()
    selects: set[tuple[str, bool]] = set()
    for word, way in ways:
        if way[0]:
            (selects if way[0] in _SELECTING or word.text in _SELECTING_WORDS else says).add(way)
    return Polarity(
        bool(cues), frozenset(says), frozenset(selects),
        frozenset(word.stem for word in kept if word.text not in STOP_WORDS and len(word.text) > 1),
        frozenset(word.stem for word, way in ways if way[0]),
    )  # fmt: skip


def are_opposite(left: str, right: str) -> bool:
    """Whether one denies or turns round what the other says, if they speak of the same. "Did not rise" is "fell"."""
    a, b = read_polarity(left), read_polarity(right)
    return (a.denied != b.denied) != _differ_in_direction(a.says, b.says) or _differ_in_direction(a.selects, b.selects)


def are_contradictory(left: str, right: str) -> bool:
    """Opposite statements in one wording. A content word exchanged for another makes another matter, not a denial."""
    a, b = read_polarity(left), read_polarity(right)
    shared, turning = a.stems & b.stems, a.turning | b.turning
    mine, theirs = a.stems - b.stems - turning, b.stems - a.stems - turning
    if (mine and theirs) or _differ_in_direction(a.selects, b.selects) or len(shared | turning) < 2 or not shared:
        return False
    close = len(shared) >= _ONE_WORDING * len(shared | mine | theirs)
    return close and (a.denied != b.denied) != _differ_in_direction(a.says, b.says)


def _differ_in_direction(left: frozenset[tuple[str, bool]], right: frozenset[tuple[str, bool]]) -> bool:
    """A family that points one way here and only the other way there."""
    both = {family for family, _ in left} & {family for family, _ in right}
    return bool(both - {family for family, _ in left & right})


def _particle_direction(text: str, word: ClauseWord) -> tuple[str, bool]:
    if word.text in ("up", "down") and _UP_DOWN.match(text, word.end):
        return "amount", word.text == "up"
    return "", False


def _find_phrases(found: tuple[ClauseWord, ...], runs: tuple[list[str], ...]) -> dict[int, int]:
    """Where one of the phrases begins, and its length in words."""
    spans: dict[int, int] = {}
    openers = {run[0] for run in runs}
    for index, word in enumerate(found):
        if word.text in openers:
            for run in runs:
                if [following.text for following in found[index : index + len(run)]] == run:
                    spans[index] = max(spans.get(index, 0), len(run))
    return spans


def _build_cue(found: tuple[ClauseWord, ...], index: int, length: int) -> Cue:
    last = found[index + length - 1]
    scope: list[str] = []
    for word in found[index + length : index + length + 3 * _SCOPE]:
        if word.clause != last.clause or len(scope) == _SCOPE:
            break
        if word.text not in STOP_WORDS:
            scope.append(word.stem)
    head = ""  # the first word that carries the meaning: "rise" in "did not significantly rise"
    for word in found[index + length : index + length + 3 * _SCOPE]:
        if word.clause != last.clause:
            break
        if word.text in _DIRECTIONS or (word.text not in _LIGHT and not word.text.endswith("ly")):
            head = word.stem
            break
    name = " ".join(word.text for word in found[index : index + length])
    return Cue(name, head, tuple(scope), found[index].start, last.end)


# Words of which one sentence may have one and not the other where they speak of the same.

_OPPOSITE_PAIRS = (
    "young/old young/elderly new/old early/late earlier/later public/private domestic/foreign local/foreign "
    "national/international male/female man/woman men/women boy/girl boys/girls father/mother son/daughter "
    "sons/daughters brother/sister brothers/sisters husband/wife uncle/aunt king/queen actor/actress he/she "
    "his/her married/divorced married/unmarried success/failure success/flop successful/failed succeeded/failed "
    "managed/failed popular/obscure professional/amateur major/minor large/small big/small huge/tiny great/small "
    "long/short tall/short high/low deep/shallow wide/narrow thick/thin heavy/light open/closed opened/closed "
    "opening/closing begin/end begins/ends began/ended started/ended started/stopped beginning/end start/finish "
    "start/end supported/opposed support/oppose supporter/opponent supporters/opponents accepted/rejected "
    "accept/reject approved/rejected confirmed/denied admitted/denied positive/negative optimistic/pessimistic "
    "strong/weak good/bad good/poor best/worst better/worse easy/difficult easy/hard simple/complex "
    "possible/impossible legal/illegal hot/cold warm/cool wet/dry black/white dark/light left/right left/joined "
    "left/entered left/arrived born/died birth/death alive/dead arrived/departed arrival/departure entered/left "
    "entered/exited north/south northern/southern northeast/southwest northwest/southeast east/west "
    "eastern/western urban/rural fast/slow quick/slow quickly/slowly famous/unknown included/excluded "
    "including/excluding inside/outside internal/external inner/outer upper/lower top/bottom front/back "
    "front/rear over/under above/below before/after up/down with/without always/never often/rarely often/seldom "
    "usually/rarely all/none all/some every/some most/few many/few more/less more/fewer most/least "
    "majority/minority all/most all/many all/several every/most each/some always/often always/usually "
    "always/sometimes never/sometimes all/half entirely/partly fully/partly both/neither everyone/nobody "
    "everything/nothing increase/decrease increases/decreases increased/decreased increasing/decreasing rise/fall "
    "rises/falls rose/fell rising/falling grew/shrank growth/decline growing/shrinking gain/loss gains/losses "
    "gained/lost won/lost win/lose winner/loser victory/defeat beat/lost profit/loss profits/losses "
    "surplus/deficit expand/shrink expanded/shrank expanded/contracted higher/lower highest/lowest larger/smaller "
    "largest/smallest greater/smaller biggest/smallest longer/shorter longest/shortest older/younger "
    "oldest/youngest oldest/newest first/last former/current former/present former/latter ancient/modern "
    "past/future past/present permanent/temporary full/empty full/partial maximum/minimum buy/sell bought/sold "
    "buyer/seller buyers/sellers import/export imports/exports imported/exported allowed/banned "
    "allowed/prohibited permitted/prohibited guilty/innocent convicted/acquitted true/false right/wrong "
    "safe/dangerous rich/poor wealthy/poor cheap/expensive hired/fired appointed/dismissed attack/defend "
    "attacked/defended offense/defense offensive/defensive love/hate loved/hated friend/enemy ally/enemy "
    "allies/enemies peace/war liberal/conservative democratic/republican democrat/republican "
    "democrats/republicans civilian/military civil/military natural/artificial active/inactive day/night "
    "morning/evening summer/winter autumn/spring home/away indoor/outdoor indoors/outdoors teacher/student "
    "teachers/students parent/child parents/children employer/employee employers/employees doctor/patient "
    "doctors/patients lender/borrower debtor/creditor strengthened/weakened improved/worsened widened/narrowed "
    "accelerated/slowed raised/lowered raised/cut boosted/cut upward/downward agree/disagree agreed/disagreed "
    "agreed/refused same/different similar/different equal/unequal separate/joint together/apart near/far "
    "close/distant majority/fraction sufficient/insufficient built/demolished built/destroyed created/destroyed "
    "constructed/demolished founded/dissolved established/abolished established/dissolved launched/scrapped "
    "released/withdrawn published/withdrawn lent/borrowed remembered/forgot praised/criticized praised/criticised "
    "acclaim/criticism praise/criticism voluntary/mandatory optional/mandatory single/married single/multiple "
    "individual/collective reduced/increased reduce/increase reduced/raised cut/raise cuts/raises declined/rose "
    "declined/increased dropped/rose proves/suggests proved/suggested minimum/maximum since/until"
)


_OPPOSITES: dict[str, set[str]] = {}
for _left, _right in (pair.split("/") for pair in _OPPOSITE_PAIRS.split()):
    _OPPOSITES.setdefault(_left, set()).add(_right)
    _OPPOSITES.setdefault(_right, set()).add(_left)
OPPOSITES = {word: frozenset(others) for word, others in _OPPOSITES.items()}
