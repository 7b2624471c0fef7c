"""Words of a message that stand for something else, and what they stand for."""

import re
from collections.abc import Callable
from typing import NamedTuple

from openassay.reasoning.rules.phrases import (
    NameMention,
    find_mentions,
    find_noun_phrases,
    find_times,
    is_person,
    join_names,
    to_possessive,
)
from openassay.text.words import IRREGULAR, STOP_WORDS, fold, stems, words

# What a thread is about at some point: its topics, and what was last spoken of.

MOST_TOPICS = 6
MOST_SUBJECTS = 8
MOST_COMPARED = 4
LONGEST_ANSWER = 700  # characters: how an answer begins says what it was about

_MADE = re.compile(
    r"\b(?:albums?|songs?|singles?|films?|movies?|books?|novels?|shows?|series|play|poems?|tracks?|magazine|called|titled|"
    r"entitled|named|released|published|wrote|recorded|launched)[,:]?\s+(?:the\s+)?[\"“]?$",
    re.I,
)
_TURNED_TO = re.compile(r"(?:what|how) about (.{2,90}?)[?.! ]*$", re.I)
_COMPARING = re.compile(r"\b(?:compar\w*|versus|vs)\b", re.I)
_UNKNOWN = re.compile(r"i (?:don'?t|do not) know\b", re.I)


class Topic(NamedTuple):
    """`called` holds the pronouns a person has used for it: he, she, they, it."""

    name: str
    proper: bool  # a name, not a common noun
    called: frozenset[str] = frozenset()

    @property
    def is_person(self) -> bool:
        return bool(self.called & {"he", "she"})

    def occurs_in(self, text: str) -> bool:
        """By a word of its name; "tension" alone is not the Hubble tension."""
        name = " ".join(word for word in self.name.split() if word[:1].isupper())
        return bool(set(stems(name or self.name)) & set(stems(text)))


class Discourse(NamedTuple):
    topics: tuple[Topic, ...] = ()  # the latest last
    latest: tuple[str, ...] = ()  # what the last question was about
    subjects: tuple[str, ...] = ()  # all that was asked about, the latest last
    thing: str = ""  # besides the topic, and no person
    person: str = ""  # besides the topic
    place: str = ""
    time: str = ""
    asked: str = ""  # stand-alone
    answered: str = ""
    heard: str = ""  # all that was answered, folded
    subject: str = ""  # what the thread is known to be about

    @property
    def topic(self) -> Topic | None:
        return self.topics[-1] if self.topics else None

    @property
    def named_topic(self) -> Topic | None:
        return next((topic for topic in reversed(self.topics) if topic.proper), None)

    @property
    def current(self) -> Topic | None:
        """The named topic, unless the thread has left it."""
        topic = self.named_topic
        if topic and (topic.name == self.subject or topic.occurs_in(f"{self.asked} {self.answered}")):
            return topic
        return None

    @property
    def group(self) -> tuple[str, ...]:
        """Those that the last question was about, where it was more than one."""
        return self.latest if len(self.latest) > 1 else ()

    @property
    def several(self) -> tuple[str, ...]:
        """What "they" are that are compared: those of the last question, or else of the thread."""
        return self.group or tuple(topic.name for topic in self.topics if topic.proper)[-MOST_COMPARED:]

    @property
    def others(self) -> tuple[str, ...]:
        """What was asked about before and not in the last question."""
        return tuple(name for name in self.subjects if name not in self.latest)

    @property
    def shift_target(self) -> str:
        """What the last question turned to: "masers (Hubble tension)" of "What about masers (Hubble tension)?" """
        found = _TURNED_TO.match(self.asked)
        return found[1] if found else ""

    def with_topic(self, topic: Topic) -> "Discourse":
        """With this topic on top; one that is known keeps how it was called."""
        known = next((old for old in self.topics if fold(old.name) == fold(topic.name)), None)
        if known:
            topic = topic._replace(called=known.called | topic.called)
        kept = tuple(old for old in self.topics if old is not known)
        return self._replace(topics=(*kept, topic)[-MOST_TOPICS:])

    def add_question(self, question: str, subjects: tuple[str, ...]) -> "Discourse":
        known = (*(name for name in self.subjects if name not in subjects), *subjects)[-MOST_SUBJECTS:]
        together = (
            join_names(subjects) in question or join_names(subjects, "or") in question or _COMPARING.search(question)
        )
        latest = subjects[: MOST_COMPARED if together else 2]
        return self._note_names(question)._replace(asked=question, answered="", latest=latest, subjects=known)

    def add_answer(self, answer: str) -> "Discourse":
        if _UNKNOWN.match(answer.strip()):
            return self._replace(answered="")
        begun = answer[:LONGEST_ANSWER]
        return self._note_names(begun)._replace(answered=begun, heard=f"{self.heard} {fold(answer)}")

    def _note_names(self, text: str) -> "Discourse":
        topic = set(words(self.named_topic.name)) if self.named_topic else None
        others = [one for one in find_mentions(text) if topic is None or not set(words(one.text)) <= topic]
        thing = max(others, key=lambda one: _antecedent_weight(one, text), default=None)
        person = next((one.text for one in others if is_person(one.text) and not one.place), "")
        place = next((one.text for one in others if one.place), "")
        when = find_times(text)
        return self._replace(
            thing=thing.text if thing and _antecedent_weight(thing, text) >= 2 else self.thing,
            person=person or self.person,
            place=place or self.place,
            time=when[-1] if when else self.time,
        )


def _antecedent_weight(name: NameMention, text: str) -> float:
    """How likely "it" stands for a name: titles most, whoever stands after a preposition least."""
    whole = len(name.text) >= 0.6 * len(text.strip(' .,"“”'))
    made = bool(_MADE.search(text[: name.start]))
    weight = 3.0 if name.quoted or whole else 2.0
    weight += 2.0 * made - 1.0 * name.beside - 1.0 * name.place
    return weight - (1.0 if is_person(name.text) and not (name.quoted or made or whole) else 0.0)


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
_WHO_IS_ROLE = re.compile(r"who (?:is|was) (the .{3,60}?|\S.{1,40}['’]s? [a-z ]{3,30})[?.! ]*$", re.I)
_WHO_WAS = re.compile(r"who (?:is|was|are|were)\b", re.I)
_GOES_ON = re.compile(r"(?:and|but|what about|how about|what of|compare (?:them|these|both))\b", re.I)
_OF_TWO = re.compile(r"\bthe (former|latter)\b", re.I)
_IRREGULAR_PLURALS = frozenset({"people", "children", "women", "men"})
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
_THAT_PLACE = re.compile(
    r"(?<!is )(?<!are )(?<!was )(?<!were )(?<!where )(?<!any )(?<!be )\bthere\b(?=\s*(?:[?.!,]|$|after|before|in\b))",
    re.I,
)
_CLOSING = re.compile(
    r"(?:" + "|".join(STOP_WORDS) + r"|\w+ed|well|popular|successful|like|work|sell|go|come|take)\b", re.I
)


class ReferenceResolution(NamedTuple):
    question: str
    topic: Topic | None  # that a pronoun stood for, called so from now on


def resolve_references(asked: str, so_far: Discourse) -> ReferenceResolution:
    """The message with what its words stand for in place of them."""
    # Each pronoun once a clause: "When did Ada Lovelace publish her notes". Also what was called how.
    called: dict[str, frozenset[str]] = {}
    pieces, at = [], 0
    for end in [*(match.end() for match in _CLAUSE.finditer(asked)), len(asked)]:
        pieces.append(PRONOUN.sub(_make_replacer(asked, at, so_far, called), asked[at:end]))
        at = end
    meant = [(topic, called[topic.name]) for topic in reversed(so_far.topics) if topic.name in called]
    topic = meant[0][0]._replace(called=meant[0][0].called | meant[0][1]) if meant else None
    text, named = "".join(pieces), so_far.named_topic
    if so_far.time:
        text = _THAT_TIME.sub(f"in {so_far.time}", text, count=1)
    if named:
        text = THAT_COMPANY.sub(lambda _: named.name, text)
    if so_far.place:
        text = _THAT_PLACE.sub(lambda _: f"in {so_far.place}", text, count=1)
    latest = so_far.thing if so_far.thing and so_far.thing in f"{so_far.asked} {so_far.answered}" else ""
    one = latest or (named.name if named else "")
    text = _THAT_ONE.sub(lambda match: one or match.group(), text)
    if that := latest or ("" if named else _find_noun("it", so_far)):
        text = _BARE_THAT.sub(lambda match: f"{match[1]}{that}", text, count=1)
    if not named:
        text = _BARE_THOSE.sub(lambda match: _find_noun("they", so_far) or match.group(), text, count=1)
    return ReferenceResolution(_THAT_NOUN.sub(lambda match: _expand_noun(match, latest, so_far), text), topic)


def resolve_former_latter(asked: str, so_far: Discourse) -> str:
    """ "The former" and "the latter" by name."""
    two = so_far.group or so_far.several[-2:]
    if len(two) < 2:
        return asked
    return _OF_TWO.sub(lambda match: two[0] if match[1].lower() == "former" else two[-1], asked)


def needs_context(asked: str) -> bool:
    """Whether a message that opens a thread has a word that stands for something it does not name."""
    plain = _EMPTY_IT.sub(" ", asked)
    found = PRONOUN.search(plain) or THAT_COMPANY.search(plain)
    if not found:
        return bool(_GOES_ON.match(plain)) and not find_mentions(plain)
    before = plain[: found.start()]
    many = _CLASS.get(found.group().lower()) == "they" and any(map(_is_plural, find_noun_phrases(before)))
    return not (many or find_mentions(before) or _OWN_PHRASE.search(before))


def _make_replacer(
    asked: str, at: int, so_far: Discourse, called: dict[str, frozenset[str]]
) -> Callable[[re.Match[str]], str]:
    empty = [match.span() for match in _EMPTY_IT.finditer(asked)]
    seen: set[str] = set()

    def replace(match: re.Match[str]) -> str:
        word = match.group().lower()
        kind, start = _CLASS[word], at + match.start()
        if kind in seen or (kind == "it" and any(first <= start < last for first, last in empty)):
            return match.group()
        meant = _find_referent(kind, so_far, asked[:start])
        if meant and meant in called and kind not in called[meant]:  # "How do they sell it?" speaks of two
            meant = ""
        if not meant:
            return match.group()
        seen.add(kind)
        called[meant] = called.get(meant, frozenset()) | {kind}
        meant = add_article(meant, so_far)
        after = match.string[match.end() :].split()
        owner = word == "her" and after and after[0][:1].isalnum() and fold(after[0]) not in STOP_WORDS
        return to_possessive(meant) if word in _POSSESSIVE or owner else meant

    return replace


def _find_referent(kind: str, so_far: Discourse, before: str) -> str:
    """What a pronoun stands for; nothing where the message has said it itself."""
    topic = so_far.topic
    if topic is None or _SPEAKING_OF.match(before):
        return ""
    # The message may name itself what a pronoun stands for: "Apple and its chips".
    others = [one.text for one in find_mentions(before) if not topic.occurs_in(one.text)]
    if kind in ("he", "she"):
        return "" if any(map(is_person, others)) else _find_person(kind, so_far)
    if others or (kind == "it" and _OWN_PHRASE.search(before)):
        return ""
    if kind == "they" and so_far.group:
        return join_names(so_far.group)
    # "It" after "What about Apple's stock?" is the stock, and "they" after "What about masers?" the masers.
    aspect = so_far.shift_target.partition(" (")[0]
    fits = kind == ("they" if _is_plural(aspect) else "it") and not PRONOUN.search(aspect)
    if aspect and fits and not is_person(aspect):
        return aspect
    if not topic.proper or not so_far.current:
        return _find_noun(kind, so_far) or (so_far.named_topic.name if so_far.named_topic else "")
    somebody = topic.is_person or "they" in topic.called or (is_person(topic.name) and _WHO_WAS.match(so_far.asked))
    if kind == "it" and "it" not in topic.called and somebody:
        # What the thread was about before it came to somebody; names of an answer are no better.
        older = (old.name for old in reversed(so_far.topics[:-1]) if not (old.called - {"it"} or is_person(old.name)))
        return next(older, "") or so_far.thing or topic.name
    return "" if kind == "they" and _is_one_thing(topic.name) else topic.name


def _is_one_thing(name: str) -> bool:
    """ "The Hubble constant" ends in a common noun: it is nobody who measures."""
    last = name.rpartition(" ")[2]
    return " " in name and last.islower() and not _is_plural(last)


def add_article(name: str, so_far: Discourse) -> str:
    """ "The Hubble tension", where the thread says so."""
    spoken = f"{so_far.asked} {so_far.answered}"
    found = re.search(rf"\b(the )?{re.escape(name)}\b", spoken, re.I)
    return f"the {name}" if found and found[1] and not name.lower().startswith("the ") else name


def _find_person(kind: str, so_far: Discourse) -> str:
    """Whoever was called so before, or the topic where nobody knows better."""
    topic = so_far.named_topic or (so_far.topic if _WHO.match(so_far.asked) else None)
    if topic is None or kind in topic.called:
        return topic.name if topic else ""
    who = _WHO_IS_ROLE.match(so_far.asked)
    if who and (who[1].lower().startswith("the ") or not is_person(topic.name)):
        return who[1]
    if _is_one_thing(topic.name) and so_far.person:
        return so_far.person
    known = next((old.name for old in reversed(so_far.topics) if kind in old.called), "")
    if known or topic.called:
        return known or so_far.person or topic.name
    looking = (old.name for old in reversed(so_far.topics) if old.proper and is_person(old.name))
    return topic.name if is_person(topic.name) else next(looking, topic.name)


def _find_noun(kind: str, so_far: Discourse) -> str:
    """The thing without a name last asked about that can be called so: many are not "it", one is not "they"."""
    runs = [run for run in reversed(find_noun_phrases(so_far.asked)) if not run[:1].isdigit()]
    fitting = [run for run in runs if _is_plural(run) == (kind == "they")] or runs
    if fitting:
        return max(fitting, key=lambda run: len(run.split()))
    older = (topic.name for topic in reversed(so_far.topics) if _is_plural(topic.name) == (kind == "they"))
    return next(older, "")


def _is_plural(phrase: str) -> bool:
    last = fold(phrase).rpartition(" ")[2]
    return (last.endswith("s") and not last.endswith(("ss", "us", "is"))) or last in _IRREGULAR_PLURALS


def _expand_noun(match: re.Match[str], latest: str, so_far: Discourse) -> str:
    """ "The pledge" is "the taxpayer protection pledge" if that was spoken of, "the album" the one last named."""
    noun = match[2]
    after = match.string[match.end() :].split()
    if fold(noun) in STOP_WORDS or (after and after[0].isalpha() and not _CLOSING.match(after[0])):
        return match.group()
    for spoken in (so_far.answered, so_far.asked):
        # The words of meaning right before the noun.
        found = re.search(rf"(?<![\w'’-])((?:[\w'’-]+\s+){{1,3}}){re.escape(noun)}\b", spoken, re.I)
        if not found:
            continue
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
        if kept:
            return f"the {' '.join([*kept, noun])}"
    if latest and re.fullmatch(_WORK, noun, re.I) and fold(latest) not in fold(match.string):
        return f"the {noun} {latest}"
    return match.group()
