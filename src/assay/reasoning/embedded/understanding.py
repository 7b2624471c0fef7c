"""Understanding a message by rules: what is asked, about what, and whether it can be asked at all."""

import re
from collections.abc import Mapping
from typing import Literal

from assay.model.question import SHORTEST, Understanding
from assay.reasoning.embedded.focus import focus
from assay.reasoning.protocol import Conversation
from assay.text.names import names
from assay.text.words import content_words, fold, words

QueryClass = Literal["fact", "change", "comparison", "cause", "overview", "procedure", "yes_no"]

_CANCEL = re.compile(
    r"^(?:never\s?mind|cancel(?: (?:that|it|this))?|forget (?:it|that|about it)|stop|quit|no thanks?|no thank you|"
    r"drop it|abort)[\s.!]*$"
)
_SMALL_TALK = re.compile(
    r"^(?:hi|hello|hey|thanks?|thank you(?: (?:very|so) much)?|good (?:morning|afternoon|evening)|bye|goodbye|ok|okay|"
    r"cool|great|how are you)[\s.!?,]*$"
)
_MORE = re.compile(
    r"^(?:tell me more|more|go on|continue|more (?:details?|info(?:rmation)?)|elaborate)[\s.!?]*(?:about\b.*)?$"
)
_FOLLOW_UP = re.compile(r"^(?:and|but|so|what about|how about|what of|also)\b")
_PRONOUN = re.compile(
    r"\b(?:it|its|it's|they|them|their|theirs|he|him|his|she|her|hers|this company|that company|the same company)\b",
    re.I,
)
_VAGUE = re.compile(
    r"\b(?:the|a|an|that|this|some|any) (?:\w+ )?(?:company|firm|business|corporation|thing|topic|subject|stuff|one|"
    r"product|person|event|matter)\b",
    re.I,
)
_YEARS = re.compile(r"\b(?:19|20)\d{2}\b")
_SPAN_OF_TIME = re.compile(
    r"\b(?:since|between|from|over|during|in|by|until|before|after|as of)\s+(?:the\s+)?(?:(?:first|second|third|fourth|"
    r"last|past|next)\s+)?[^,.;?]{0,30}?(?:19|20)\d{2}(?:\s*(?:-|–|to|and)\s*(?:19|20)\d{2})?|\b(?:last|past|this|next)\s+(?:\d+\s+)?"
    r"(?:year|month|quarter|week|decade|years|months|quarters|weeks|decades)\b|\b(?:today|currently|recently|latest)\b",
    re.I,
)
_CLASSES: tuple[tuple[QueryClass, re.Pattern[str]], ...] = (
    ("comparison", re.compile(r"\b(?:compar\w+|versus|vs\.?|difference between|better than|differ from)\b")),
    ("cause", re.compile(r"^why\b|\b(?:what caused|cause of|causes of|reasons? for|what drove|due to what)\b")),
    ("procedure", re.compile(r"^how (?:to|do i|do you|can i|can you|should i)\b")),
    ("change", re.compile(r"\b(?:chang\w+|evolv\w+|develop(?:ed|ment)? over|trend|grown?|grew|rose|fell|declin\w+)\b|"
                          r"\bover time\b")),
    ("overview", re.compile(r"^(?:what(?:'s| is) (?:happening|new|going on)|tell me|give me|describe|summar)|"
                            r"\boverview\b|^(?:explain|discuss|research|investigate|report on)\b")),
    ("yes_no", re.compile(r"^(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had)\b")),
)  # fmt: skip


def understand(message: str, conversation: Conversation, known: Mapping[str, str]) -> Understanding:
    """`known` maps folded aliases to the names of subjects that need no capital letter to be seen."""
    asked = " ".join(message.split())
    plain = fold(asked).replace("’", "'").strip()
    if not plain:
        return Understanding(question="", intent="empty", ambiguity_level=1.0,
                             clarification_question="What would you like to know?")  # fmt: skip
    if _CANCEL.match(plain) or any(_CANCEL.match(fold(answer).strip()) for answer in conversation.clarified):
        return Understanding(question=asked, intent="cancel")
    if _SMALL_TALK.match(plain):
        return Understanding(question=asked, intent="small_talk")
    if not any(character.isalpha() for character in plain):
        return _unclear(asked, "I could not find a question in that. What would you like to know, in words?")
    return _research(asked, plain, conversation, known)


def _research(asked: str, plain: str, conversation: Conversation, known: Mapping[str, str]) -> Understanding:
    for answer in conversation.clarified:
        asked = _with_answer(asked, answer, known)
    plain = fold(asked).replace("’", "'")
    subjects = find_subjects(asked, known)
    carried = conversation.subject
    if _MORE.match(plain) and carried:
        return _clear(f"Tell me more about {carried}", (carried,), "more")
    if _leans_on_context(plain, subjects):
        if not carried:
            return _unclear(asked, _ask_which(plain), conversation.clarified)
        asked = _stand_alone(asked, carried)
        subjects = tuple(dict.fromkeys((carried, *subjects)))
        return _clear(asked, subjects, "compare" if len(subjects) > 1 else "follow_up")
    if not subjects and _VAGUE.search(plain) and len(content_words(_VAGUE.sub(" ", plain))) < 2:
        return _unclear(asked, _ask_which(plain), conversation.clarified)
    if len(asked) < SHORTEST:
        if subjects and fold(asked.rstrip("?!. ")) in known:
            return _clear(f"What is happening with {subjects[0]}?", subjects, "research")
        return _unclear(asked, f"What would you like to know about “{asked}”?", conversation.clarified)
    return _clear(asked, subjects, "research")


def _clear(
    question: str, subjects: tuple[str, ...], intent: Literal["research", "follow_up", "compare", "more"]
) -> Understanding:
    topic = topic_of(question)
    return Understanding(
        question=question,
        intent=intent,
        query_class=classify(question),
        primary_subject=subjects[0] if subjects else (topic or None),
        subjects=subjects,
        topic_focus=topic,
        temporal_scope=temporal_scope(question),
        complexity=_complexity(question),
        ambiguity_level=0.1 if subjects else 0.3,
    )


def _unclear(asked: str, ask: str, clarified: tuple[str, ...] = ()) -> Understanding:
    return Understanding(
        question=asked,
        intent="unclear",
        ambiguity_level=0.9,
        topic_focus=topic_of(asked),
        clarification_question=ask if not clarified else f"I am still not sure. {ask}",
        suggested_questions=("What is happening with Apple?", "How did net sales change over the last year?"),
    )


def _with_answer(asked: str, answer: str, known: Mapping[str, str]) -> str:
    """A question with its clarification worked in: 'Tell me about the company' + 'Apple'."""
    answer = " ".join(answer.split())
    if not answer or fold(answer) in fold(asked):
        return asked
    named = find_subjects(answer, known)
    if named and _VAGUE.search(asked):
        return _VAGUE.sub(named[0], asked, count=1)
    if len(answer.split()) > 4 or len(content_words(asked)) == 0:
        return answer
    return f"{asked.rstrip('?!. ')} ({answer})"


def _leans_on_context(plain: str, subjects: tuple[str, ...]) -> bool:
    if _FOLLOW_UP.match(plain) and not subjects:
        return True
    pronoun = _PRONOUN.search(plain)
    if not pronoun:
        return False
    # "compare them to Apple" leans on the thread although it names a subject; "Apple and its chips" does not.
    before = plain[: pronoun.start()]
    return not any(fold(subject) in before for subject in subjects)


def _stand_alone(asked: str, subject: str) -> str:
    """Pronouns replaced by what the thread is about."""

    def replace(match: re.Match[str]) -> str:
        possessive = match.group().lower() in {"its", "their", "theirs", "his", "her", "hers"}
        return f"{subject}'s" if possessive else subject

    if _PRONOUN.search(asked):
        return _PRONOUN.sub(replace, asked)
    return f"{asked.rstrip('?!. ')} for {subject}?"


def _ask_which(plain: str) -> str:
    if re.search(r"company|firm|business|corporation|stock", plain):
        return "Which company do you mean?"
    return "What exactly is this about? Please name the subject."


def find_subjects(text: str, known: Mapping[str, str]) -> tuple[str, ...]:
    """Names as written, and known subjects even in lower case, in order of appearance."""
    tokens = words(text)
    found: dict[str, int] = {}
    for alias, name in known.items():
        parts = words(alias)
        for at in range(len(tokens) - len(parts) + 1):
            if [token.removesuffix("'s").removesuffix("’s") for token in tokens[at : at + len(parts)]] == parts:
                found[name] = min(at, found.get(name, at))
    for name in names(text):
        if not any(fold(part) in fold(name) or fold(name) in fold(part) for part in (*found, *known)):
            head = words(name)[0]
            found.setdefault(name, tokens.index(head) if head in tokens else len(tokens))
    return tuple(sorted(found, key=lambda name: found[name]))


def classify(question: str) -> QueryClass:
    plain = fold(question).replace("’", "'").strip()
    for name, pattern in _CLASSES:
        if pattern.search(plain):
            return name
    return "fact"


def temporal_scope(question: str) -> str | None:
    match = _SPAN_OF_TIME.search(question)
    if match:
        return match.group().strip()
    years = _YEARS.findall(question)
    return " ".join(dict.fromkeys(years)) or None


# "Did Apple report any share repurchases" is about "Apple's share repurchases".
_ASSERTED = re.compile(
    r"^(?i:did|do|does|has|have|had|will|can|could)\s+((?:the\s+)?[A-Z][\w.&-]*)(?:'s)?\s+"
    r"(?:report|disclose|announce|make|have|see|show|experience|face|record|mention)\w*\s+(?:any|some|a|an)?\s*"
)
_OPENING = re.compile(
    r"^(?:please\s+)?(?:can you |could you )?(?:tell me(?: more)? about|give me (?:an overview|a summary) of|describe|"
    r"explain|"
    r"what(?:'s| is| are| was| were)(?: happening with| new with| going on with| the)?|who(?: is| are| was| were)?|"
    r"(?:what|how) about|how (?:\w+ )?(?:is|are|was|were|did|does|do|has|have)|how (?:much|many)|"
    r"why (?:did|do|does|is|are|was|were|has|have)|when (?:did|do|does|is|are|was|were|will)|"
    r"where (?:did|do|does|is|are|was|were)|which|research|investigate|summari[sz]e|is|are|was|were|do|does|did)\s+"
    r"(?:the\s+)?",
    re.I,
)


def topic_of(question: str) -> str:
    """The noun phrase a question is about: what is left once the asking words are taken off."""
    first = re.split(r"[,;?]| and (?=how|why|what|when|who|where|which)", question, maxsplit=1)[0]
    topic = _OPENING.sub("", _ASSERTED.sub(r"\1's ", focus(first).replace("’", "'").strip()))
    topic = re.sub(r"\b(?:change|changed|evolve|evolved|develop|developed|grow|grown)\b.*$", "", topic, flags=re.I)
    topic = re.sub(
        r"^(?:(?:value|price|rate|number|size|cost|amount|level|state|history) of|known (?:about|of)) (?:the )?",
        "",
        topic,
        flags=re.I,
    )
    topic = _SPAN_OF_TIME.sub("", topic)
    return " ".join(topic.split()).strip(" .?!") or first.strip(" .?!")


def _complexity(question: str) -> Literal["simple", "moderate", "complex"]:
    clauses = len(re.findall(r"[,;?]|\band\b", question))
    if clauses >= 3 or len(question) > 200:
        return "complex"
    return "moderate" if clauses or len(question) > 80 else "simple"
