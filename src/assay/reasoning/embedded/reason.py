"""Messages that are no more than "Why?", "How?" or "When?", asked of the last question."""

import re

from assay.reasoning.embedded.discourse import Discourse
from assay.reasoning.embedded.phrases import listed

_BARE = re.compile(
    r"^(?:(?:and|but|so|ok(?:ay)?)[,]?\s+)*(?:(why|how|when|where|since when|why not)|how come|why so|explain why|"
    r"why (?:is|was) (?:that|this|it)(?: so)?|for what reason|(?:what(?:'s| is) the |the )?reasons?)[\s?.!]*$",
    re.I,
)
WRAPPED = re.compile(r"(?:why|how|when|where|since when|why not)\? \((.+)\)", re.I)
_BE_OR_DO = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)"
_ASKING = re.compile(
    rf"^(?:why|when|where|how(?: (?:much|many|long|far|often|well))?)\s+(?={_BE_OR_DO}\b)",
    re.I,
)
_VERB = re.compile(rf"{_BE_OR_DO}\b", re.I)
_DOING = re.compile(r"\b(?:doing|going|faring|performing)(?: (?:today|now|lately|currently|so far))?$", re.I)
_COMPARED = re.compile(r"^(?:please )?compar\w+ |\bcompare$", re.I)
# What is asked for as a whole, with the name or the noun that is asked about.
_WHOLE = re.compile(
    r"^(?:please )?(?:tell me (?:more )?about|describe|explain|give me an? (?:overview|summary) of|research|"
    r"investigate|(?:what|how) about|what(?:'s| is) (?:happening|going on|new) (?:with|at|in)|"
    r"what(?:'s| is| are| was| were)) (.{2,})$",
    re.I,
)
_HAPPENING = re.compile(r"\b(?:happening|going on|new) (?:with|at|in)\b", re.I)
_CHOICE = re.compile(r"^(?:which|who)\s+(?:one\s+)?(?:has|have|had|is|are|was|were)\b", re.I)


def with_reason(asked: str, so_far: Discourse) -> str | None:
    """ "Why?" is "Why did sales fall?" after "Did sales fall?", and "What explains it?" after "What is acid rain?" """
    bare = _BARE.match(asked.replace("’", "'"))
    if not bare or not so_far.asked:
        return None
    word = (bare[1] or "why").capitalize()
    wrapped = WRAPPED.fullmatch(so_far.asked)
    last = (wrapped[1] if wrapped else so_far.asked).rstrip("?!. ")
    rest = _ASKING.sub("", last)
    if _VERB.match(rest) and word != "Why not":
        so = " so" if word == "Why" and rest != last and _DOING.search(rest) else ""
        return f"{word} {rest[:1].lower()}{rest[1:]}{so}?"
    about = f"{so_far.topic.name}: " if so_far.topic and not so_far.topic.mentioned_in(last) else ""
    whole = _explained(last, so_far) if word == "Why" and not about else None
    return whole or f"{word}? ({about}{last})"


def _explained(last: str, so_far: Discourse) -> str | None:
    if so_far.group and _COMPARED.search(last):
        return f"Why do {listed(so_far.group)} differ?"
    if _CHOICE.match(last):
        return f"What explains {last[:1].lower()}{last[1:]}?"
    whole = _WHOLE.match(last)
    if not whole:
        return None
    happening = _HAPPENING.search(last) or (len(so_far.latest) == 1 and whole[1] == so_far.latest[0])
    return f"What explains {'what is happening with ' if happening else ''}{whole[1]}?"
