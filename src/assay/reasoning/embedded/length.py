"""How long a report should be, in a person's words."""

import re

from assay.model.plan import FEWEST_WORDS, MOST_WORDS

_ONE_PAGE, _SHORT, _FULL, _ALL = "A one-page", "A short", "A full", "All there is"
_OPTIONS: dict[str, int | None] = {_ONE_PAGE: 350, _SHORT: 800, _FULL: 2000, _ALL: None}
_NOUNS = {"comparison": "comparison", "procedure": "guide", "cause": "explanation"}  # else an answer, or a report
PER_PAGE, PER_MINUTE = 400, 200  # words; of a page, and of a minute's reading

_NUMBER = r"(\d{1,2}[,.’ ]\d{3}|\d{1,5}|one|two|three|four|five|six|eight|ten|half a|a)"
_SPELLED = {"one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "eight": 8.0, "ten": 10.0,
            "half a": 0.5, "a": 1.0}  # fmt: skip
_MEASURES = (("words?", 1), ("pages?", PER_PAGE), ("minutes?", PER_MINUTE))
_ABOUT: tuple[tuple[str, int], ...] = (
    (r"a few (?:lines|sentences)|one paragraph|a paragraph", 120), (r"\b(?:brief|briefly|short|quick|concise)\b", 350),
)  # fmt: skip
_EVERYTHING = re.compile(r"\b(?:all there is|everything|in depth|exhaustive|thorough\w*|comprehensive)\b", re.I)

STATED = re.compile(
    rf"\b{_NUMBER}[ -](?:words?|pages?)\b|\bbriefly\b|\bin (?:detail|depth|short)\b|\bshort answer\b", re.I
)


def lengths(query_class: str, about: str) -> tuple[str, ...]:
    """What can be chosen, in words that suit the kind of question."""
    noun = _NOUNS.get(query_class, "report")
    short = _NOUNS.get(query_class, "answer")
    return f"{_ONE_PAGE} {short}", f"{_SHORT} {noun}", f"{_FULL} {noun}", f"{_ALL} on {about}"


def length_of(answer: str) -> int | None:
    """The words that are meant; None: all there is, or nothing that could be measured."""
    for option, words in _OPTIONS.items():
        if answer.strip().lower().startswith(option.lower()):
            return words
    for measure, words_of in _MEASURES:
        if named := re.search(rf"\b{_NUMBER}[ -]{measure}\b", answer, re.I):
            return max(FEWEST_WORDS, min(MOST_WORDS, round(_count(named[1]) * words_of)))
    return next((words for pattern, words in _ABOUT if re.search(pattern, answer, re.I)), None)


def everything(answer: str) -> bool:
    return bool(_EVERYTHING.search(answer))


def _count(number: str) -> float:
    spelled = _SPELLED.get(number.lower())
    return float(re.sub(r"\D", "", number)) if spelled is None else spelled
