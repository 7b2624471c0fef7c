"""What a thread is about at some point: its topics, and what was last spoken of."""

import re
from typing import NamedTuple

from assay.reasoning.embedded.phrases import Named, is_person, listed, named, times
from assay.text.words import fold, stems, words

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

    def mentioned_in(self, text: str) -> bool:
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
        if topic and (topic.name == self.subject or topic.mentioned_in(f"{self.asked} {self.answered}")):
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
    def turned_to(self) -> str:
        """What the last question turned to: "masers (Hubble tension)" of "What about masers (Hubble tension)?" """
        found = _TURNED_TO.match(self.asked)
        return found[1] if found else ""

    def about(self, topic: Topic) -> "Discourse":
        """With this topic on top; one that is known keeps how it was called."""
        known = next((old for old in self.topics if fold(old.name) == fold(topic.name)), None)
        if known:
            topic = topic._replace(called=known.called | topic.called)
        kept = tuple(old for old in self.topics if old is not known)
        return self._replace(topics=(*kept, topic)[-MOST_TOPICS:])

    def after_question(self, question: str, subjects: tuple[str, ...]) -> "Discourse":
        known = (*(name for name in self.subjects if name not in subjects), *subjects)[-MOST_SUBJECTS:]
        together = listed(subjects) in question or listed(subjects, "or") in question or _COMPARING.search(question)
        latest = subjects[: MOST_COMPARED if together else 2]
        return self._hearing(question)._replace(asked=question, answered="", latest=latest, subjects=known)

    def after_answer(self, answer: str) -> "Discourse":
        if _UNKNOWN.match(answer.strip()):
            return self._replace(answered="")
        begun = answer[:LONGEST_ANSWER]
        return self._hearing(begun)._replace(answered=begun, heard=f"{self.heard} {fold(answer)}")

    def _hearing(self, text: str) -> "Discourse":
        others = [one for one in named(text) if not self._is_topic(one.text)]
        thing = max(others, key=lambda one: _weight(one, text), default=None)
        person = next((one.text for one in others if is_person(one.text) and not one.place), "")
        place = next((one.text for one in others if one.place), "")
        when = times(text)
        return self._replace(
            thing=thing.text if thing and _weight(thing, text) >= 2 else self.thing,
            person=person or self.person,
            place=place or self.place,
            time=when[-1] if when else self.time,
        )

    def _is_topic(self, name: str) -> bool:
        topic = self.named_topic
        return topic is not None and set(words(name)) <= set(words(topic.name))


def _weight(name: Named, text: str) -> float:
    """How likely "it" stands for a name: titles most, whoever stands after a preposition least."""
    whole = len(name.text) >= 0.6 * len(text.strip(' .,"“”'))
    made = bool(_MADE.search(text[: name.start]))
    weight = 3.0 if name.quoted or whole else 2.0
    weight += 2.0 * made - 1.0 * name.beside - 1.0 * name.place
    return weight - (1.0 if is_person(name.text) and not (name.quoted or made or whole) else 0.0)
