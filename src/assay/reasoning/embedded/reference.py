"""Words of a message that stand for something else, and what they stand for."""

import re
from collections.abc import Callable
from typing import NamedTuple

from assay.reasoning.embedded.discourse import Discourse, Topic
from assay.reasoning.embedded.phrases import is_person, listed, named, nouns, possessive
from assay.text.words import IRREGULAR, STOP_WORDS, fold

_CLASS = {
    "he": "he", "him": "he", "his": "he", "himself": "he", "she": "she", "her": "she", "hers": "she",
    "herself": "she", "they": "they", "them": "they", "their": "they", "theirs": "they", "themselves": "they",
    "it": "it", "its": "it", "itself": "it",
}  # fmt: skip
_POSSESSIVE = frozenset({"his", "hers", "their", "theirs", "its"})
PRONOUN = re.compile(r"\b(?:" + "|".join(_CLASS) + r")\b(?!['’])", re.I)
_CLAUSE = re.compile(
    r"[;?!.]\s+|,\s+(?=(?:and\s+)?(?:how|why|what|when|who|where|which)\b)|\s+and\s+(?=(?:how|why|what|when|who|where|"
    r"which|is|are|do|does|did|was|were|will)\b)",
    re.I,
)
# "It" that stands for nothing: "is it true that", "how long does it take", "it seems".
_EMPTY_IT = re.compile(
    r"\b(?:is|was|isn't|wasn't|be)\s+it\s+(?:\w+\s+)?(?:true|possible|ok|okay|free to|good to|time|(?:better|best|safe|"
    r"legal|likely|necessary|important|common|normal|wise|hard|easy|difficult|advisable)\b(?!\s+than\b|\W*$))\b|"
    r"\bit\s+(?:seems?|appears?|takes?|rains?|snows?|looks like|turns out|depends)\b|"
    r"\b(?:does|did|will|would)\s+it\s+(?:take|matter|mean|say|state|mention)\b|\bmake it (?:to|possible)\b|"
    r"\bit(?:'s| is| was) (?:true|possible|worth|likely|better|best|important|hard|easy)\b",
    re.I,
)
_SPEAKING_OF = re.compile(
    r"(?:speaking|talking|going back|back|turning|regarding|as)\b[\w\s]*\b(?:about|of|to|for)\b", re.I
)
_WHO = re.compile(r"(?:tell me about|who|whose)\b", re.I)
_WHO_IS = re.compile(r"who (?:is|was) (the .{3,60}?|\S.{1,40}['’]s? [a-z ]{3,30})[?.! ]*$", re.I)
_WHO_WAS = re.compile(r"who (?:is|was|are|were)\b", re.I)
_GOES_ON = re.compile(r"(?:and|but|what about|how about|what of|compare (?:them|these|both))\b", re.I)
_OF_TWO = re.compile(r"\bthe (former|latter)\b", re.I)
_MANY = frozenset({"people", "children", "women", "men"})
_OWN_PHRASE = re.compile(r"\b(?:an?|my|any|some)\s+\w+", re.I)
_COMPANY = r"(?:company|firm|business|corporation|manufacturer|organi[sz]ation)"
_WORK = (
    r"(?:album|song|single|film|movie|book|novel|show|series|episode|musical|record|track|poem|magazine|work|project|"
    r"product|tour|game)"
)
_THAT = r"(?:this|that|these|those|the same)"
_THAT_TIME = re.compile(
    rf"\b(?:(?:during|in|at|over)\s+)?{_THAT}\s+(?:same\s+)?(?:time(?:\s+period)?|year|period|season|decade|era|years)\b",
    re.I,
)
THAT_COMPANY = re.compile(rf"\b(?:{_THAT}|the)\s+{_COMPANY}\b(?!\s+(?:that|which|who|behind|of|in|making)\b)", re.I)
_THAT_ONE = re.compile(r"\b(?:this|that) one\b", re.I)
_THAT_NOUN = re.compile(rf"\b({_THAT}|the)\s+([a-z][\w-]+)\b(?!\s+(?:of|that|which|who)\b)", re.I)
_BARE_THAT = re.compile(
    r"(^|\b(?:is|as|by|do|of|to|in|on|at|was|did|does|for|about|after|with|from|before)\s+)(?:this|that)\b"
    r"(?=\s*[?.!,]|\s*$|\s+(?:is|was|get|become|released|successful|work|happen|popular|well)\b)",
    re.I,
)
_BARE_THOSE = re.compile(r"\b(?:these|those)\b(?=\s*[?.!,]|\s*$)", re.I)
_THERE = re.compile(
    r"(?<!is )(?<!are )(?<!was )(?<!were )(?<!where )(?<!any )(?<!be )\bthere\b(?=\s*(?:[?.!,]|$|after|before|in\b))",
    re.I,
)


class Resolved(NamedTuple):
    question: str
    topic: Topic | None  # that a pronoun stood for, called so from now on


def resolved(asked: str, so_far: Discourse) -> Resolved:
    """The message with what its words stand for in place of them."""
    text, called = _pronouns(asked, so_far)
    meant = [(topic, called[topic.name]) for topic in reversed(so_far.topics) if topic.name in called]
    topic = meant[0][0]._replace(called=meant[0][0].called | meant[0][1]) if meant else None
    return Resolved(_demonstratives(text, so_far), topic)


def of_two(asked: str, so_far: Discourse) -> str:
    """ "The former" and "the latter" by name."""
    two = so_far.group or so_far.several[-2:]
    if len(two) < 2:
        return asked
    return _OF_TWO.sub(lambda match: two[0] if match[1].lower() == "former" else two[-1], asked)


def leans(asked: str) -> bool:
    """Whether a message that opens a thread has a word that stands for something it does not name."""
    plain = _EMPTY_IT.sub(" ", asked)
    found = PRONOUN.search(plain) or THAT_COMPANY.search(plain)
    if not found:
        return bool(_GOES_ON.match(plain)) and not named(plain)
    before = plain[: found.start()]
    many = _CLASS.get(found.group().lower()) == "they" and any(map(_many, nouns(before)))
    return not (many or named(before) or _OWN_PHRASE.search(before))


# Pronouns ----------------------------------------------------------------------------------------------


def _pronouns(asked: str, so_far: Discourse) -> tuple[str, dict[str, frozenset[str]]]:
    """Each pronoun once a clause: "When did Ada Lovelace publish her notes". Also what was called how."""
    called: dict[str, frozenset[str]] = {}
    pieces, at = [], 0
    for end in [*(match.end() for match in _CLAUSE.finditer(asked)), len(asked)]:
        pieces.append(PRONOUN.sub(_replacing(asked, at, so_far, called), asked[at:end]))
        at = end
    return "".join(pieces), called


def _replacing(
    asked: str, at: int, so_far: Discourse, called: dict[str, frozenset[str]]
) -> Callable[[re.Match[str]], str]:
    empty = [match.span() for match in _EMPTY_IT.finditer(asked)]
    seen: set[str] = set()

    def replace(match: re.Match[str]) -> str:
        word = match.group().lower()
        kind, start = _CLASS[word], at + match.start()
        if kind in seen or (kind == "it" and any(first <= start < last for first, last in empty)):
            return match.group()
        meant = _meant(kind, so_far, asked[:start])
        if meant and meant in called and kind not in called[meant]:  # "How do they sell it?" speaks of two
            meant = ""
        if not meant:
            return match.group()
        seen.add(kind)
        called[meant] = called.get(meant, frozenset()) | {kind}
        meant = articled(meant, so_far)
        return possessive(meant) if word in _POSSESSIVE or (word == "her" and _owns(match)) else meant

    return replace


def _owns(match: re.Match[str]) -> bool:
    after = match.string[match.end() :].split()
    return bool(after) and after[0][:1].isalnum() and fold(after[0]) not in STOP_WORDS


def _meant(kind: str, so_far: Discourse, before: str) -> str:
    """What a pronoun stands for; nothing where the message has said it itself."""
    topic = so_far.topic
    if topic is None or _said_before(kind, before, topic):
        return ""
    if kind in ("he", "she"):
        return _human(kind, so_far)
    if kind == "they" and so_far.group:
        return listed(so_far.group)
    if aspect := _aspect(kind, so_far):
        return aspect
    if not topic.proper or not so_far.current:
        return _of_number(kind, so_far) or (so_far.named_topic.name if so_far.named_topic else "")
    if kind == "it" and "it" not in topic.called and _is_somebody(topic, so_far):
        return _thing_before(so_far) or so_far.thing or topic.name
    return "" if kind == "they" and _is_one_thing(topic.name) else topic.name


def _is_one_thing(name: str) -> bool:
    """ "The Hubble constant" ends in a common noun: it is nobody who measures."""
    last = name.rpartition(" ")[2]
    return " " in name and last.islower() and not _many(last)


def _is_somebody(topic: Topic, so_far: Discourse) -> bool:
    return topic.is_person or "they" in topic.called or (is_person(topic.name) and bool(_WHO_WAS.match(so_far.asked)))


def _thing_before(so_far: Discourse) -> str:
    """What the thread was about before it came to somebody; names of an answer are no better."""
    older = (topic for topic in reversed(so_far.topics[:-1]) if not (topic.called - {"it"} or is_person(topic.name)))
    return next((topic.name for topic in older), "")


def _aspect(kind: str, so_far: Discourse) -> str:
    """ "It" after "What about Apple's stock?" is the stock, and "they" after "What about masers?" the masers."""
    aspect = so_far.turned_to.partition(" (")[0]
    fits = kind == ("they" if _many(aspect) else "it") and not PRONOUN.search(aspect)
    return aspect if aspect and fits and not is_person(aspect) else ""


def articled(name: str, so_far: Discourse) -> str:
    """ "The Hubble tension", where the thread says so."""
    spoken = f"{so_far.asked} {so_far.answered}"
    found = re.search(rf"\b(the )?{re.escape(name)}\b", spoken, re.I)
    return f"the {name}" if found and found[1] and not name.lower().startswith("the ") else name


def _said_before(kind: str, before: str, topic: Topic) -> bool:
    """Whether the message itself names what a pronoun may stand for: "Apple and its chips"."""
    if _SPEAKING_OF.match(before):
        return True
    others = [one.text for one in named(before) if not topic.mentioned_in(one.text)]
    if kind in ("he", "she"):
        return any(is_person(other) for other in others)
    return bool(others) or (kind == "it" and bool(_OWN_PHRASE.search(before)))


def _human(kind: str, so_far: Discourse) -> str:
    """Whoever was called so before, or the topic where nobody knows better."""
    topic = so_far.named_topic or (so_far.topic if _WHO.match(so_far.asked) else None)
    if topic is None or kind in topic.called:
        return topic.name if topic else ""
    who = _WHO_IS.match(so_far.asked)
    if who and (who[1].lower().startswith("the ") or not is_person(topic.name)):
        return who[1]
    if _is_one_thing(topic.name) and so_far.person:
        return so_far.person
    known = next((old.name for old in reversed(so_far.topics) if kind in old.called), "")
    if known or topic.called:
        return known or so_far.person or topic.name
    looking = (old.name for old in reversed(so_far.topics) if old.proper and is_person(old.name))
    return topic.name if is_person(topic.name) else next(looking, topic.name)


def _of_number(kind: str, so_far: Discourse) -> str:
    """The thing without a name last asked about that can be called so: many are not "it", one is not "they"."""
    runs = [run for run in reversed(nouns(so_far.asked)) if not run[:1].isdigit()]
    fitting = [run for run in runs if _many(run) == (kind == "they")] or runs
    if fitting:
        return max(fitting, key=lambda run: len(run.split()))
    older = (topic.name for topic in reversed(so_far.topics) if _many(topic.name) == (kind == "they"))
    return next(older, "")


def _many(phrase: str) -> bool:
    last = fold(phrase).rpartition(" ")[2]
    return (last.endswith("s") and not last.endswith(("ss", "us", "is"))) or last in _MANY


# Demonstratives and definite nouns ---------------------------------------------------------------------


def _demonstratives(text: str, so_far: Discourse) -> str:
    topic = so_far.named_topic
    if so_far.time:
        text = _THAT_TIME.sub(f"in {so_far.time}", text, count=1)
    if topic:
        text = THAT_COMPANY.sub(lambda _: topic.name, text)
    if so_far.place:
        text = _THERE.sub(lambda _: f"in {so_far.place}", text, count=1)
    latest = so_far.thing if so_far.thing and so_far.thing in f"{so_far.asked} {so_far.answered}" else ""
    one = latest or (topic.name if topic else "")
    text = _THAT_ONE.sub(lambda match: one or match.group(), text)
    if that := latest or ("" if topic else _of_number("it", so_far)):
        text = _BARE_THAT.sub(lambda match: f"{match[1]}{that}", text, count=1)
    if not topic:
        text = _BARE_THOSE.sub(lambda match: _of_number("they", so_far) or match.group(), text, count=1)
    return _THAT_NOUN.sub(lambda match: _in_full(match, latest, so_far), text)


def _in_full(match: re.Match[str], latest: str, so_far: Discourse) -> str:
    """ "The pledge" is "the taxpayer protection pledge" if that was spoken of, "the album" the one last named."""
    noun = match[2]
    after = match.string[match.end() :].split()
    if fold(noun) in STOP_WORDS or (after and after[0].isalpha() and not _CLOSING.match(after[0])):
        return match.group()
    for spoken in (so_far.answered, so_far.asked):
        if phrase := _ending_in(noun, spoken):
            return f"the {phrase}"
    if latest and re.fullmatch(_WORK, noun, re.I) and fold(latest) not in fold(match.string):
        return f"the {noun} {latest}"
    return match.group()


_CLOSING = re.compile(
    r"(?:" + "|".join(STOP_WORDS) + r"|\w+ed|well|popular|successful|like|work|sell|go|come|take)\b", re.I
)


def _ending_in(noun: str, spoken: str) -> str:
    """The words of meaning right before a noun, with it."""
    found = re.search(rf"(?<![\w'’-])((?:[\w'’-]+\s+){{1,3}}){re.escape(noun)}\b", spoken, re.I)
    if not found:
        return ""
    kept: list[str] = []
    for word in reversed(found[1].split()):
        plain = fold(word)
        if plain in STOP_WORDS or plain in IRREGULAR or plain.endswith(("ed", "'s", "’s", "ly")):
            break
        kept.insert(0, word)
    else:
        before = spoken[: found.start()].split()
        if before and fold(before[-1]) in ("to", "i", "you", "we", "can", "could", "should"):
            kept = kept[1:]
    return " ".join([*kept, noun]) if kept else ""
