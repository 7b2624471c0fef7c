"""Messages that are only a part of a question: "What about Tesla?", "And in 2023?", "the lowest?", "compare them"."""

import re
from typing import NamedTuple

from assay.ports import Companies
from assay.reasoning.embedded.discourse import Discourse
from assay.reasoning.embedded.form import is_form, length_in
from assay.reasoning.embedded.phrases import listed, possessive
from assay.reasoning.embedded.reason import with_reason
from assay.reasoning.embedded.reference import articled
from assay.reasoning.embedded.role import of_role
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
OTHERS = re.compile(
    r"^(?:(?:and|but|so|ok|okay)[,]?\s+)*(?:(?:what|how) about|what of|and|same for)?\s*(?:for\s+)?(?:all\s+)?the\s+"
    r"(?:others?|rest|other (?:one|two|three|companie|compan|firm|name)(?:y|s|ies)?)(?: of them)?[\s?.!]*$",
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
_COMPARE = re.compile(
    r"\b(?:the two|both|each other|one another|these two|those two|the both)\b|^how do they (?:compare|differ)|"
    r"^(?:please\s+)?compare(?: them| these| both)?(?: all)?[\s.!?]*$|"
    r"^which (?:one |of (?:them|these|those|the (?:two|three|four)) )?"
    r"(?:is|was|are|has|had|does|did|makes|pays|offers|performed)\b|"
    r"^who (?:is|was|has|had|makes|pays) (?:the )?(?:\w{2,}er|\w{2,}est|more|most|worse|worst)\b",
    re.I,
)
_TWO = re.compile(r"\b(?:two|both)\b", re.I)
_THE_TWO = re.compile(r"\bthey(?: both)?\b|\b(?:the|these|those) two\b|\bboth(?: of them)?\b", re.I)
_OF_THEM = re.compile(r" (?:of )?(?:the|these|those) (?:two|three|four)\b| of (?:them|these|those)\b", re.I)
_COMPARES = re.compile(r"\b(?:compar\w+|versus|vs\.?|difference between|differ|\w+er than)\b|^which .+ or \w", re.I)
_NO_SUPERLATIVE = "inter|for|w|t|requ|inv|prot|harv|cont|arr|qu|gu|r|n|sugg|dig|hon|mod|midw|lat|pri|manif"
_SUPERLATIVE = (
    r"(?:most|least)(?: (?!has|have|is|are|in|of\b)[a-z]+(?= |$))?|"
    rf"(?!(?:{_NO_SUPERLATIVE})est\b)[a-z]{{1,12}}est|worst"
)
_EXTREME = re.compile(
    r"^(?:(?:and|but|or|so|ok)[,]?\s+)*(?:(?:what|how) about\s+|which (?:one )?(?:is|has)\s+)?"
    rf"the\s+({_SUPERLATIVE})(?: one)?[\s?.!]*$",
    re.I,
)
_IN_QUESTION = re.compile(rf"\b(?<=the )(?:{_SUPERLATIVE})\b", re.I)
_MANY = {"is": "are", "was": "were", "has": "have", "does": "do"}


class Completed(NamedTuple):
    question: str
    subject: str = ""  # that takes the place of the topic
    aside: bool = False  # no question of its own: the last one stays what "why?" and "and in 2023?" are asked of


def completed(asked: str, so_far: Discourse, companies: Companies) -> Completed | None:
    """The whole question, made of the last one; None where the message is no such part."""
    if is_form(asked) and so_far.asked:
        length = length_in(asked)
        return Completed(f"{so_far.asked.rstrip('?!. ')}, in {length}?" if length else so_far.asked, aside=True)
    if more := _more(asked, so_far):
        return Completed(more, aside=True)
    whole = of_role(asked, so_far) or _extreme(asked, so_far) or _both(asked, so_far, companies)
    whole = whole or _of_the_others(asked, so_far, companies) or with_reason(asked, so_far)
    return Completed(whole) if whole else _same_of(asked, so_far, companies)


def _more(asked: str, so_far: Discourse) -> str | None:
    topic = so_far.named_topic or so_far.topic
    if not topic or not (MORE.match(asked) or ELSE.match(asked)):
        return None
    compared = bool(so_far.group and _COMPARES.search(so_far.asked))
    about = so_far.turned_to or articled(topic.name, so_far)
    if ELSE.match(asked):
        return f"What else is there to know about {listed(so_far.group) if compared else about}?"
    return f"How do {listed(so_far.group)} compare in more detail?" if compared else f"Tell me more about {about}"


def _extreme(asked: str, so_far: Discourse) -> str | None:
    """ "And the lowest?" after "Which has the highest revenue?" """
    found = _EXTREME.match(asked)
    if not found or not _IN_QUESTION.search(so_far.asked):
        return None
    return _IN_QUESTION.sub(lambda match: _other_end(found[1], match.group()), so_far.asked, count=1)


def _other_end(wanted: str, said: str) -> str:
    """ "The least" after "the most valuable" is the least valuable."""
    alone = wanted.lower() in ("most", "least")
    return f"{wanted} {said.partition(' ')[2]}".strip() if alone and " " in said else wanted


def _both(asked: str, so_far: Discourse, companies: Companies) -> str | None:
    """ "Which of the two is larger?" is "Which is larger, Apple or Tesla?" """
    them = so_far.several[-2:] if _TWO.search(asked) and not so_far.group else so_far.several
    if len(them) < 2 or not _COMPARE.search(asked) or find_subjects(asked, companies):
        return None
    bare = asked.rstrip("?!. ")
    if re.match(r"(?:please\s+)?compare\b", bare, re.I):
        return f"Compare {listed(them)}"
    if not bare.lower().startswith("which") and _THE_TWO.search(bare):
        return _THE_TWO.sub(lambda _: listed(them), f"{bare}?", count=1)
    return f"{_OF_THEM.sub('', bare)}, {listed(them, 'or')}?"


def _of_the_others(asked: str, so_far: Discourse, companies: Companies) -> str | None:
    """The last question for what else the thread has asked about; of those it chose from, what is known of the rest."""
    if not OTHERS.match(asked):
        return None
    if so_far.others:
        same = None if so_far.group else _of_other(listed(so_far.others), so_far, companies)
        return same or f"Tell me about {listed(so_far.others)}"
    rest = [name for name in so_far.group if fold(name) not in fold(so_far.answered)]
    return f"Tell me about {listed(rest)}" if 0 < len(rest) < len(so_far.group) else None


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
    mentioned = tuple(mention.company.short for mention in companies.mentions(asked))
    subjects = mentioned or find_subjects(part, companies)
    alone = len(subjects) == 1 and len(content_words(part)) <= len(content_words(subjects[0])) + 1
    whole = _of_other(subjects[0], so_far, companies) if alone else None
    added = whole and so_far.group and all(name in whole for name in so_far.group)
    return Completed(whole, "" if added else subjects[0]) if whole else None


def _at_time(when: str, question: str) -> str:
    when = when if re.match(r"(?:in|for|since|during|from|by|last|this|next)\b", when, re.I) else f"in {when}"
    if _PERIOD.search(question):
        return _PERIOD.sub(lambda _: when, question, count=1)
    return f"{question.rstrip('?!. ')} {when}?"


def _of_other(subject: str, so_far: Discourse, companies: Companies) -> str | None:
    asked, topic = so_far.asked, so_far.named_topic
    them = listed(so_far.group)
    if them and re.match(r"(?:please\s+)?compare\b", asked, re.I) and subject not in so_far.group:
        all_of_them = listed((*so_far.group, subject))
        return asked.replace(them, all_of_them) if them in asked else f"Compare {all_of_them}"
    if them and them in asked:
        return asked.replace(them, subject)
    if not topic or fold(subject) == fold(topic.name):
        return None
    said = [mention.text for mention in companies.mentions(asked) if mention.company.short == topic.name]
    name = next(iter(said), topic.name)
    if fold(name) not in fold(asked):
        return None
    owned = re.compile(re.escape(possessive(name)) + r"(?=\W)", re.I)
    text = owned.sub(lambda _: possessive(subject), asked)
    text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _: subject, text, flags=re.I)
    return _agreeing(text, subject) if " and " in subject and " and " not in name else text


def _agreeing(text: str, subject: str) -> str:
    """ "How is Apple and Tesla doing?" has a verb for one."""
    verb = re.compile(rf"\b(is|was|has|does)(?= (?:the )?{re.escape(subject)}(?!'))", re.I)
    return verb.sub(lambda match: _MANY[match[1].lower()], text, count=1)
