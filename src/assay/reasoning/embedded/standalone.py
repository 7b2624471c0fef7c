"""Follow-up messages made to stand alone: what leans on the thread is replaced by what it stands for.

Only what is needed is taken over, and never more than a phrase: a message that stands alone stays as it is.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from assay.model.question import Turn
from assay.ports import Companies
from assay.reasoning.embedded.answered import is_vague
from assay.reasoning.embedded.conversation import remembered
from assay.reasoning.embedded.discourse import Discourse, Topic
from assay.reasoning.embedded.ellipsis import OTHERS, completed
from assay.reasoning.embedded.phrases import is_person, named, nouns
from assay.reasoning.embedded.reference import PRONOUN, of_two, resolved
from assay.reasoning.embedded.small_talk import is_cancelled, is_gibberish, is_small_talk
from assay.reasoning.embedded.subjects import find_subjects
from assay.text.words import STOP_WORDS, content_words, fold, words

LONGEST_TITLE, CAPITALS = 8, 0.75  # words, and the share of them in capitals

# Signs that a message without a name goes on about what was named before.
_PAST = re.compile(r"\b(?:did|was|were|had|became|won|made|\w{3,}ed)\b", re.I)
_OTHER = re.compile(r"\b(?:other|others|else|another|more|next|also|too|again|first|last|later|latest)\b", re.I)
_THERE = re.compile(r"\b(?:is|are|was|were|where|any)\s+there\b|\bthere\s+(?:is|are|was|were)\b|\bany\b", re.I)
_DEFINITE = re.compile(r"\bthe\s+(?!(?:same|best|most|difference|differences|usa?|uk|world|internet)\b)[a-z]", re.I)
_CONTINUED = re.compile(
    r"^(?:and|but|or|so|in|for|from|by|since|during|at|on|with|without|as)\b(?!.*\b(?:is|are|do|does|can|i)\b)", re.I
)
_PARTIAL = re.compile(r"(?:what|which|who|how|when|where|why|any|other|more|another)\b", re.I)
_SPEAKER = re.compile(r"\b(?:i|i'm|i'll|my|we|our|you|your)\b", re.I)
_VERB = re.compile(
    r"\b(?:is|are|was|were|am|be|been|do|does|did|has|have|had|can|could|will|would|should|may|might|must|isn't|aren't|"
    r"don't|doesn't|didn't|can't|won't|what's|who's|where's|how's|it's)\b|^(?:tell|give|show|explain|describe|compare|"
    r"list|find|summari[sz]e|write|research|investigate|discuss|name|define|i)\b|^(?:what|who)\s+\w+(?:s|ed)\s+\w",
    re.I,
)
_DEFINING = re.compile(
    r"^(?:what|who) (?:is|are|was|were) (?!the\b)|^(?:how|why|when) (?:do|does|can|is|are)\b|^what causes\b|"
    r"^(?:now )?(?:tell me about|explain|define|describe|research)\b",
    re.I,
)


class Rewritten(NamedTuple):
    question: str
    topic: Topic | None = None  # what the thread is about from here on
    aside: bool = False  # it asks for more of the last answer, or for another form of it


def discourse(turns: Sequence[Turn], summary: str, subject: str | None, companies: Companies) -> Discourse:
    """The thread so far. `subject` is what it is known to be about now, `summary` what came before the turns."""
    so_far = Discourse()
    for turn in (*remembered(summary), *turns):
        if turn.role == "assistant":
            so_far = so_far.after_answer(turn.content)
        elif _asks(turn.content):
            said = rewrite(turn.content, so_far, companies)
            so_far = so_far.about(said.topic) if said.topic else so_far
            if not said.aside:
                so_far = so_far.after_question(said.question, find_subjects(said.question, companies))
    known = (subject or "").strip()
    if known and so_far.topic and so_far.topic.proper and set(words(known)) < set(words(so_far.topic.name)):
        known = so_far.topic.name
    proper = known[:1].isupper() or known[:1].isdigit()
    if known and (proper or not so_far.topics):
        so_far = so_far.about(Topic(known, proper=proper))._replace(subject=known)
    return so_far


def _asks(message: str) -> bool:
    return bool(message.strip()) and not (is_small_talk(message) or is_cancelled(message) or is_gibberish(message))


def rewrite(message: str, so_far: Discourse, companies: Companies) -> Rewritten:
    asked = of_two(" ".join(message.split()), so_far)
    topic = so_far.topic
    if whole := completed(asked, so_far, companies):
        other = Topic(whole.subject, proper=True) if whole.subject else topic
        return Rewritten(whole.question, other, aside=whole.aside)
    if OTHERS.match(asked):
        return Rewritten(asked, topic)
    if _stands_alone(asked, so_far, companies):
        return Rewritten(asked, _new_topic(asked, so_far, companies) or topic)
    question, meant = resolved(asked, so_far)
    if meant is None and topic and topic.mentioned_in(asked):
        meant = topic
    if meant:
        return Rewritten(_full_name(question, meant), meant)
    known = so_far.current
    if known and not known.mentioned_in(question) and _leans(asked, known, companies):
        return Rewritten(_with_topic(question, known), known)
    if topic and not known and question == asked and _says_little(asked, topic, so_far, companies):
        return Rewritten(_with_topic(question, topic), topic)
    stays = question != asked and not find_subjects(asked, companies)
    return Rewritten(question, topic if stays else _new_topic(asked, so_far, companies) or topic)


def _stands_alone(asked: str, so_far: Discourse, companies: Companies) -> bool:
    """Whether it names its own subject, and nothing in it stands for anything else."""
    if PRONOUN.search(asked) or not find_subjects(asked, companies):
        return False
    return not any(topic.mentioned_in(asked) for topic in so_far.topics)


def _leans(asked: str, topic: Topic, companies: Companies) -> bool:
    if find_subjects(asked, companies) or named(asked) or is_vague(asked):
        return False
    if _CONTINUED.match(asked):
        return True
    if not _VERB.search(asked):
        about = asked.endswith("?") or bool(_PARTIAL.match(asked)) or companies.resolve(topic.name) is not None
        return about and len(content_words(asked)) <= 3
    if _SPEAKER.search(asked):
        return False
    if _PAST.search(asked) or _OTHER.search(asked):
        return True
    short = len(content_words(asked)) <= 2
    return short and bool(_THERE.search(asked) or _DEFINITE.search(asked))


def _says_little(asked: str, topic: Topic, so_far: Discourse, companies: Companies) -> bool:
    """ "What are the benefits?" says what of nothing, and so does "what about costs?"."""
    if _TURNING.match(asked):
        spoken_of = " " in topic.name and fold(topic.name) in fold(so_far.asked) and _VERB.search(so_far.asked)
        return bool(spoken_of) and len(content_words(asked)) <= 2 and not find_subjects(asked, companies)
    if not _VERB.search(asked) or _DEFINING.match(asked):
        return False
    return len(content_words(asked)) <= 1 and not find_subjects(asked, companies)


def _with_topic(asked: str, topic: Topic) -> str:
    """ "Who is the CEO of Apple?" where it reads well, else in brackets."""
    bare = asked.rstrip("?!. ")
    ends_in_noun = _ENDS_IN_NOUN.search(bare) or not (_VERB.search(bare) or _TURNING.match(bare))
    return f"{bare} of {topic.name}?" if ends_in_noun else f"{bare} ({topic.name})?"


_TURNING = re.compile(r"(?:and |but |so )?(?:what|how) about\b", re.I)
_ENDS_IN_NOUN = re.compile(r"\b(?:is|are|was|were) the (?:\w+ )?\w+$", re.I)


def _full_name(question: str, topic: Topic) -> str:
    """A part of a person's name becomes the whole name."""
    if not topic.proper or fold(topic.name) in fold(question) or not is_person(topic.name):
        return question
    for part in topic.name.split():
        found = re.search(rf"(?<!\w){re.escape(part)}(?!\w)", question, re.I if topic.is_person else 0)
        if not found or re.match(r"\s+[A-Z]", question[found.end() :]):
            continue
        if topic.is_person or not _NO_PERSON.search(question[: found.start()]):
            return question[: found.start()] + topic.name + question[found.end() :]
    return question


_WHO_IS = re.compile(r"who (?:is|was) (?-i:[A-Z][\w.'-]*(?: [A-Z][\w.'-]*)+)[?!. ]*", re.I)
_NO_PERSON = re.compile(r"(?:\b(?:in|at|to|from|the|near)|(?<=\s)[A-Z][\w-]*)\s+$")


def _new_topic(asked: str, so_far: Discourse, companies: Companies) -> Topic | None:
    """What a message is about that leans on nothing; None where it stays within what was spoken of."""
    if companies.mentions(asked):
        return Topic(find_subjects(asked, companies)[0], proper=True)
    if title := _title(asked, first=not so_far.topics):
        return Topic(title, proper=True)
    runs = nouns(asked)
    subjects = [name for name in find_subjects(asked, companies) if " " in asked.strip(" ?!.") or name.isupper()]
    if subjects:
        about_things = so_far.named_topic and not is_person(so_far.named_topic.name)
        if fold(subjects[0]) in so_far.heard and not (about_things and _WHO_IS.fullmatch(asked)):
            return None
        return Topic(subjects[0], proper=True)
    if not runs or (so_far.current and _VERB.search(asked) and not _DEFINING.match(asked)):
        return None
    return Topic(max(runs, key=lambda run: len(run.split())), proper=False)


def _title(asked: str, *, first: bool) -> str:
    """A message that is nothing but a name: "Big Brother and the Holding Company"."""
    bare = re.sub(r"\s*\([^)]*\)$", "", asked).strip(" ?!")
    if _CONTINUED.match(bare):
        return ""
    parts = [part for part in bare.split() if fold(part) not in STOP_WORDS]
    capital = sum(part[:1].isupper() or part[:1].isdigit() for part in parts) if any(map(str.isalpha, bare)) else 0
    fits = (1 if first else 2) <= len(parts) <= LONGEST_TITLE and capital >= CAPITALS * len(parts)
    return bare if fits and not _VERB.search(bare) else ""
