"""What an answer is for: it decides the style, the length, and what is asked besides."""

import re
from typing import NamedTuple

from assay.model.plan import Style
from assay.reasoning.embedded.matter import Field
from assay.text.words import stems


class Use(NamedTuple):
    style: Style
    words: int | None  # None: as long as it may be
    text: str  # the sub-question it adds
    told: str  # words of a person that mean it


DECISION = Use(
    "executive", 800, "Which benefits, costs and risks of {topic} are known?",
    "decide decision choose choice buy purchase invest deal vote board manage executive strategy comply act",
)  # fmt: skip
BRIEFING = Use(
    "executive", 500, "What is new about {topic}?",
    "brief present presentation talk meeting slides pitch interview memo summary explain",
)  # fmt: skip
PAPER = Use(
    "academic", None, "Which studies and primary sources are there on {topic}?",
    "paper thesis dissertation journal academic essay science research study article review",
)  # fmt: skip
WORK = Use(
    "technical", 1500, "Which technical details and figures of {topic} are given?",
    "build implement engineer develop code repair technical install myself practice work project",
)  # fmt: skip
LEARNING = Use(
    "academic", 1000, "What is the background of {topic}?",
    "learn curious curiosity understand interest interested school class course keep fun know trip",
)  # fmt: skip

# Four for every field, in the words of its people.
_OFFERED: dict[Field, dict[str, Use]] = {
    "company": {"An investment or a deal": DECISION, "A meeting or a briefing": BRIEFING,
                "An article or a study": PAPER, "To keep up with the company": LEARNING},
    "law": {"To act on it or comply with it": DECISION, "A briefing or a memo": BRIEFING,
            "A thesis or an article": PAPER, "To understand the rules": LEARNING},
    "medicine": {"A decision to be made with a doctor": DECISION, "A talk or a briefing": BRIEFING,
                 "A paper or a review": PAPER, "To understand it": LEARNING},
    "software": {"A choice between tools": DECISION, "A talk or a briefing": BRIEFING,
                 "Building something with it": WORK, "To learn how it works": LEARNING},
    "science": {"A paper or a thesis": PAPER, "A talk or a class": BRIEFING,
                "Technical work with it": WORK, "To learn about it": LEARNING},
    "economy": {"A decision I have to make": DECISION, "A briefing or a presentation": BRIEFING,
                "A paper or an article": PAPER, "To learn about it": LEARNING},
    "place": {"A decision I have to make": DECISION, "A talk or a presentation": BRIEFING,
              "A paper or an article": PAPER, "To know the place": LEARNING},
    "general": {"A decision I have to make": DECISION, "A briefing or a presentation": BRIEFING,
                "A paper or a thesis": PAPER, "To learn about it": LEARNING},
}  # fmt: skip
_TO_DO = {"To do it myself": WORK, "A decision whether to do it": DECISION, "To explain it to others": BRIEFING,
          "To learn how it is done": LEARNING}  # fmt: skip

# A question that says itself what it is for.
STATED = re.compile(
    r"\b(?:for|in|to) (?:a|an|my|our|the|next)\s+(?:\w+\s+){0,3}(?:decision|briefing|presentation|talk|meeting|paper|"
    r"thesis|dissertation|essay|article|class|course|memo|slides)\b|\b(?:to|help me|help us|must|have to|need to) "
    r"(?:decide|choose|learn|present|buy|invest)\b",
    re.I,
)
# What a question ends with and is not about: "for a short briefing", "for my talk next week".
ENDING = re.compile(
    r"[,;:]?\s+for (?:an?|my|our|next \w+'s|tomorrow's)\s+(?:[\w-]+\s+){0,3}?"
    r"(?:briefing|presentation|talk|meeting|memo|essay|thesis|dissertation)"
    r"(?:\s+(?:tomorrow|today|(?:next|this) \w+|on \w+))?(?=\s*[.?!]*$)",
    re.I,
)


def offered(field: Field, *, to_do: bool) -> dict[str, Use]:
    return _TO_DO if to_do else _OFFERED[field]


def use_of(answer: str) -> Use | None:
    """The one whose word comes first; None for a purpose of another kind."""
    kinds = {stem: use for use in (DECISION, BRIEFING, PAPER, WORK, LEARNING) for stem in stems(use.told)}
    return next((kinds[stem] for stem in stems(answer) if stem in kinds), None)
