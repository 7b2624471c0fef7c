"""Messages that are only a part of a question: "What about Tesla?", "And in 2023?", "Why?", "compare them"."""

import re
from typing import NamedTuple

from assay.ports import Companies
from assay.reasoning.embedded.discourse import Discourse
from assay.reasoning.embedded.reference import possessive
from assay.reasoning.embedded.subjects import find_subjects
from assay.text.words import content_words, fold

MORE = re.compile(
    r"^(?:please\s+)?(?:(?:can|could) you\s+)?(?:(?:tell|give) me\s+)?(?:some\s+)?(?:more|go on|continue|elaborate|"
    r"expand on (?:that|this)|go deeper|keep going|more (?:details?|info(?:rmation)?|on (?:that|this|it)|"
    r"about (?:that|this|it|them|him|her)))(?:,? please)?[\s.!?]*$",
    re.I,
)
ELSE = re.compile(
    r"^(?:and\s+)?(?:is there\s+)?(?:anything|what|something) else(?: of (?:note|interest)| interesting)?[\s.!?]*$",
    re.I,
)
_ABOUT = re.compile(
    r"^(?:(?:and|but|so|ok|okay|no|oh|sorry|then|also)[,.]?\s+)*(?:(?:what|how) about|what of|i mean|i meant|same for|"
    r"the same for|and for|and)\s+(.{2,60}?)[\s?.!]*$",
    re.I,
)
_PART = re.compile(
    r"^(?:and|but|so)?\s*((?:in|for|since|during|from|by|between|before|after|at)\s+.{2,40}?)[\s?.!]*$", re.I
)
_WHEN = re.compile(
    r"^(?:(?:in|for|since|during|from|by)\s+)?(?:the\s+)?(?:(?:first|second|third|fourth|last|next|this|previous)\s+)?"
    r"(?:q[1-4]\s*)?(?:(?:19|20)\d{2}|year|quarter|month|week|decade|half)$",
    re.I,
)
_PERIOD = re.compile(
    r"\b(?:in|for|since|during|from|by)\s+(?:q[1-4]\s*)?(?:19|20)\d{2}\b|\b(?:in|during|over)?\s*\b(?:last|this|next|previous)\s+"
    r"(?:year|quarter|month|week|decade)\b",
    re.I,
)
_VERB = re.compile(r"\b(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.I)
_BARE = re.compile(r"^(?:and\s+|but\s+)?(why|how|when|where|how so|why not|how come|since when)[\s?.!]*$", re.I)
_ASKING = re.compile(
    r"^(?:why|when|where|how(?: (?:much|many|long|far|often|well))?)\s+"
    r"(?=(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b)",
    re.I,
)
_COMPARE = re.compile(
    r"\b(?:the two|both|each other|one another|these two|those two|the both)\b|^how do they (?:compare|differ)|"
    r"^(?:please\s+)?compare(?: them| these| both)?[\s.!?]*$|"
    r"^which (?:one |of them )?(?:is|was|are|has|had|does|did|makes|pays|offers|performed)\b",
    re.I,
)
_THE_TWO = re.compile(r"\bthey(?: both)?\b|\b(?:the|these|those) two\b|\bboth(?: of them)?\b", re.I)
_OF_THE_TWO = re.compile(r" (?:of )?(?:the|these|those) two\b", re.I)


class Completed(NamedTuple):
    question: str
    subject: str = ""  # that takes the place of the topic


def completed(asked: str, so_far: Discourse, companies: Companies) -> Completed | None:
    """The whole question, made of the last one; None where the message is no such part."""
    topic = so_far.named_topic or so_far.topic
    if topic and ELSE.match(asked):
        return Completed(f"What else is there to know about {topic.name}?")
    if topic and MORE.match(asked):
        return Completed(f"Tell me more about {topic.name}")
    whole = _both(asked, so_far, companies) or _why(asked, so_far)
    return Completed(whole) if whole else _same_of(asked, so_far, companies)


def _both(asked: str, so_far: Discourse, companies: Companies) -> str | None:
    """ "Which of the two is larger?" is "Which is larger, Apple or Tesla?" """
    if len(so_far.last_two) < 2 or not _COMPARE.search(asked) or find_subjects(asked, companies):
        return None
    first, second = so_far.last_two
    bare = asked.rstrip("?!. ")
    if re.match(r"(?:please\s+)?compare\b", bare, re.I):
        return f"Compare {first} and {second}"
    if not bare.lower().startswith("which") and _THE_TWO.search(bare):
        return _THE_TWO.sub(lambda _: f"{first} and {second}", f"{bare}?", count=1)
    return f"{_OF_THE_TWO.sub('', bare)}, {first} or {second}?"


def _why(asked: str, so_far: Discourse) -> str | None:
    """ "Why?" after "Did sales fall?" is "Why did sales fall?" """
    bare = _BARE.match(asked)
    if not bare or not so_far.asked:
        return None
    word = bare[1][:1].upper() + bare[1][1:].lower()
    rest = _ASKING.sub("", so_far.asked)
    if _VERB.match(rest):
        return f"{word} {rest[:1].lower()}{rest[1:].rstrip('?!. ')}?"
    about = f"{so_far.topic.name}: " if so_far.topic and not so_far.topic.mentioned_in(so_far.asked) else ""
    return f"{word}? ({about}{so_far.asked.rstrip('?!. ')})"


def _same_of(asked: str, so_far: Discourse, companies: Companies) -> Completed | None:
    """The last question about another subject, or another time or place."""
    found = _ABOUT.match(asked) or _PART.match(asked)
    if not found or not so_far.asked or _VERB.search(found[1]):
        return None
    part = found[1].strip()
    if _WHEN.match(part):
        return Completed(_at_time(part, so_far.asked))
    if _PART.match(part) and not companies.mentions(part):
        return Completed(f"{so_far.asked.rstrip('?!. ')} {part[:1].lower()}{part[1:]}?")
    subjects = find_subjects(part, companies)
    alone = len(subjects) == 1 and len(content_words(part)) <= len(content_words(subjects[0])) + 1
    whole = _of_other(subjects[0], so_far) if alone else None
    return Completed(whole, subjects[0]) if whole else None


def _at_time(when: str, question: str) -> str:
    when = when if re.match(r"(?:in|for|since|during|from|by|last|this|next)\b", when, re.I) else f"in {when}"
    if _PERIOD.search(question):
        return _PERIOD.sub(lambda _: when, question, count=1)
    return f"{question.rstrip('?!. ')} {when}?"


def _of_other(subject: str, so_far: Discourse) -> str | None:
    two = " and ".join(so_far.pair)
    if two and two in so_far.asked:
        return so_far.asked.replace(two, subject)
    topic = so_far.named_topic
    if not topic or fold(topic.name) not in fold(so_far.asked) or fold(subject) == fold(topic.name):
        return None
    owned = re.compile(re.escape(possessive(topic.name)) + r"(?=\W)", re.I)
    text = owned.sub(lambda _: possessive(subject), so_far.asked)
    return re.sub(re.escape(topic.name), lambda _: subject, text, flags=re.I)
