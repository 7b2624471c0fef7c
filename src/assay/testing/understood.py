"""What a sensible model makes of a message: who is meant by "they", what is vague, what is only a greeting."""

import re
from dataclasses import dataclass

from assay.text.names import names
from assay.text.words import content_words, fold

# What any model knows by heart, as it would be written in small letters or described.
KNOWN = {
    "Apple": r"apple|aapl|i?phone maker|maker of the iphone",
    "Tesla": r"tesla|tsla|electric (?:car|vehicle) (?:company|maker)|ev (?:company|maker)",
    "Microsoft": r"microsoft|msft|windows (?:company|maker)|maker of windows",
    "Amazon": r"amazon|amzn|online retailer|company behind (?:aws|prime)",
    "Google": r"google|alphabet|googl|search(?: engine)? (?:company|giant)",
}
_KNOWN = {name: re.compile(rf"\b(?:the )?(?:{pattern})\b") for name, pattern in KNOWN.items()}
_GREETING = re.compile(r"^(?:hi|hello|hey|good (?:morning|evening)|thanks?|thank you)\b[^?]{0,30}$")
_CALLED_OFF = re.compile(
    r"^(?:never ?mind|cancel|forget (?:it|that)|stop|let's drop (?:it|this)|no thanks?)\b[^?]{0,30}$"
)
_MORE = re.compile(r"^(?:tell me more|go on|more(?: details?)?|what else)\W*$")
_LEANS = re.compile(r"^(?:and|what about|how about|compare)\b")
_PRONOUN = re.compile(r"\b(?:it|its|they|their|them|that company|the company)\b", re.I)
_VAGUE = re.compile(r"\b(?:the|that|this|some|a)(?: \w+)? (?:company|one|firm|business|thing)\b", re.I)
_COMPARES = re.compile(r"\b(?:compar\w+|versus|vs)\b")
_OVERVIEW = re.compile(r"\b(?:happening|tell me|latest|news|overview|going on)\b")


@dataclass(frozen=True)
class Heard:
    """A message, what the conversation is about, and what was said when it was asked back."""

    message: str
    subject: str = ""
    answers: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """An answer that is a question of its own takes the place of the message; of an empty one any does."""
        own = [answer for answer in self.answers if answer.rstrip().endswith("?") and len(answer.split()) > 3]
        return (own or [self.message] if self.message.strip() else self.answers or [""])[-1]

    @property
    def plain(self) -> str:
        return fold(self.text).replace("’", "'").strip()

    @property
    def named(self) -> list[str]:
        """Everybody who is named or described, in order; else what the answers name."""
        for text in (self.text, *reversed(self.answers)):
            if found := mentioned(text):
                return found
        return []


def mentioned(text: str) -> list[str]:
    plain = fold(text)
    at = {name: match.start() for name, pattern in _KNOWN.items() if (match := pattern.search(plain))}
    for name in names(text.removeprefix("Actually, ")):
        if not any(fold(known) in fold(name) or _KNOWN[known].search(fold(name)) for known in at):
            at.setdefault(name, plain.find(fold(name)))
    return sorted(at, key=lambda name: at[name])[:4]


def understood(heard: Heard) -> dict[str, object]:
    if any(_CALLED_OFF.match(fold(text).strip()) for text in (heard.message, *heard.answers)):
        return _said("cancel", heard.message)
    if _GREETING.match(heard.plain):
        return _said("small_talk", heard.message)
    subjects = heard.named
    if heard.subject and _leans(heard, subjects):
        return _following(heard, subjects)
    incomplete = len(subjects) < (2 if _COMPARES.search(heard.plain) else 1)
    if incomplete and (_is_vague(heard.plain) or _leans(heard, subjects)):
        again = "I am still not sure. " if heard.answers else ""
        return {**_said("unclear", heard.message), "must_ask": True, "ask": f"{again}Which company do you mean?"}
    question = heard.text
    if subjects and not mentioned(question):
        question = (
            _VAGUE.sub(subjects[0], question, count=1) if _VAGUE.search(question) else f"{question} ({subjects[0]})"
        )
    return _said("compare" if len(subjects) > 1 and _COMPARES.search(heard.plain) else "research", question, subjects)


def _is_vague(plain: str) -> bool:
    """ "Tell me about the company", but not "Which is the largest company of Europe?" """
    return _VAGUE.search(plain) is not None and len(content_words(_VAGUE.sub(" ", plain))) < 2


def _leans(heard: Heard, subjects: list[str]) -> bool:
    """Whether it cannot be understood without the conversation: "Apple and its chips" can, and so can whatever says
    enough before it says "it"."""
    if _MORE.match(heard.plain) or (_LEANS.match(heard.plain) and not subjects):
        return True
    pronoun = _PRONOUN.search(heard.text)
    if pronoun is None:
        return False
    before = heard.text[: pronoun.start()]
    return not mentioned(before) and len(content_words(before)) < 3


def _following(heard: Heard, named: list[str]) -> dict[str, object]:
    if _MORE.match(heard.plain):
        return _said("more", f"Tell me more about {heard.subject}", [heard.subject])
    subjects = list(dict.fromkeys([heard.subject, *named]))
    question = _PRONOUN.sub(heard.subject, heard.text)
    if question == heard.text:
        question = f"{question.rstrip('?!. ')} of {heard.subject}?"
    return _said("compare" if len(subjects) > 1 else "follow_up", question, subjects)


def _said(intent: str, question: str, subjects: list[str] | None = None) -> dict[str, object]:
    plain = fold(question)
    kind = "comparison" if _COMPARES.search(plain) else "overview" if _OVERVIEW.search(plain) else "fact"
    return {
        "intent": intent, "subjects": subjects or [], "question": question, "kind": kind, "complexity": "moderate",
        "must_ask": False, "ask": "",
    }  # fmt: skip
