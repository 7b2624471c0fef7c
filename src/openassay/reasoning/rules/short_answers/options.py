"""Stretches of passages that may answer a question, as the reader marks them, and how likely each is right."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from openassay.reasoning.rules.short_answers.candidates import LONGEST_ANSWER, CandidateSpan
from openassay.reasoning.rules.short_answers.question import AnswerSpec, Kind
from openassay.text.answer_reader import AnswerReader, PassageAnswer, PassageText
from openassay.text.questions import strip_ahead
from openassay.text.words import STOP_WORDS, stems

MOST_READ = 12  # passages: the reader takes .1 to .2 s of one core for one
AROUND = 200  # characters on either side of a piece that help to understand it
# The chance that what is marked is right, by logistic regression on 700 passages that the reader had not learned from,
# a third of them with an answer: of what is marked with a margin of 6 .86 is right, and .007 of the passages without an
# answer have such a mark (benchmarks/train_answer_weights.py).
CONSTANT, SLOPE = -0.48, 0.237
HIGHEST = 15.0  # margins beyond which nothing changes
_NUMERAL = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty|dozens?|hundreds?|thousands?|"
    r"millions?|billions?|half|quarter|third|once|twice|no|none|zero)\b",
    re.I,
)
SIMPLE = 13  # words of a question up to which its kind is read from its words
_BARE = re.compile(r"[\d.,]+(?: (?:thousand|million|billion))?")
_UNIT = re.compile(r" ([a-z]+s|people|per cent|percent|million|billion)\b")
_TIME = re.compile(
    r"\d|\b(?:[A-Z][a-z]+day|January|February|March|April|May|June|July|August|September|October|November|December|"
    r"spring|summer|autumn|fall|winter|century|yesterday|today|tomorrow)\b"
)
_SHAPES_BY_KIND: dict[Kind, re.Pattern[str]] = {
    "date": _TIME,
    "number": _NUMERAL,
    "other": re.compile(r"[^\W\d_a-z]|\d"),
    "name": re.compile(r"[^\W\d_a-z]|\d"),
    "place": re.compile(r"[^\W\d_a-z]"),
}
# In a question of more words the kind is often another's: "When X resigned, who followed?" Of its answer only
# the shape is asked that the word of asking says; the reader knows the kinds.
_SHAPES = (
    (re.compile(r"^when\b", re.I), _TIME),
    (re.compile(r"^how (?:many|much)\b", re.I), _NUMERAL),
    (re.compile(r"^(?:who|where)\b", re.I), re.compile(r"[^\W\d_a-z]")),
)


class AnswerOption(NamedTuple):
    """A stretch that may be a document's answer, and in which piece of its text."""

    place: int
    stretch: CandidateSpan
    text: str


def find_options(
    asked: AnswerSpec,
    pieces: Sequence[tuple[str, str]],
    titles: Mapping[str, str],
    texts: Mapping[str, str],
    reader: AnswerReader,
    bar: Callable[[str, str, list[CandidateSpan]], list[CandidateSpan]],
) -> list[list[AnswerOption]]:
    """Those of each piece, given as its document and its text, best first. `texts` are what the documents say around
    their pieces. The pieces with most of the question's words are read."""
    wanted = asked.question_stems
    shown = [_take_in_neighbours(text, titles.get(name, ""), texts.get(name, "")) for name, text in pieces]
    shared = [len(wanted & set(stems(f"{one.head} {one.text}"))) for one in shown]
    likely = sorted(range(len(pieces)), key=lambda at: -shared[at])[:MOST_READ]
    readings = dict(zip(likely, reader.read(asked.asked or asked.question, [shown[at] for at in likely]), strict=True))
    found = []
    for place, (document, text) in enumerate(pieces):
        # A dividend is told where the word or one like it stands.
        speaks = not asked.needs or bool(asked.needs & set(stems(f"{titles.get(document, '')} {text}")))
        marked = readings[place].find_answers() if speaks and place in readings else []
        weighed = [CandidateSpan(one.start, _find_end(asked, text, one), rate_margin(one.margin)) for one in marked]
        fit = [one for one in weighed if _is_fit(asked, one.text_in(text))]
        kept = bar(text, titles.get(document, ""), fit)
        found.append([AnswerOption(place, one, one.text_in(text)) for one in kept])
    return found


def _find_end(asked: AnswerSpec, text: str, marked: PassageAnswer) -> int:
    """Where an answer ends: behind a bare number, with the word that says of what."""
    unit = _UNIT.match(text, marked.end)
    bare = asked.kind == "number" and _BARE.fullmatch(text[marked.start : marked.end])
    return unit.end() if bare and unit and unit[1] not in STOP_WORDS else marked.end


def rate_margin(margin: float) -> float:
    return 1 / (1 + math.exp(-(CONSTANT + SLOPE * max(-HIGHEST, min(HIGHEST, margin)))))


def exclude_other(chance: float, other: float) -> float:
    """The chance of one of two answers that cannot both be right, from what each has by itself."""
    neither, first, second = (1 - chance) * (1 - other), chance * (1 - other), other * (1 - chance)
    return first / (first + second + neither) if chance < 1 else 1.0


def _take_in_neighbours(text: str, title: str, around: str) -> PassageText:
    at = around.find(text)
    before = around[max(0, at - AROUND) : at] if at > 0 else ""
    after = around[at + len(text) : at + len(text) + AROUND] if at >= 0 else ""
    return PassageText(text, f"{title}. {before}" if title else before, after)


def _is_fit(asked: AnswerSpec, text: str) -> bool:
    """Whether words can be what is asked for: of its shape, few, and not the question's own."""
    question = strip_ahead(asked.asked or asked.question)
    shape = next((shape for form, shape in _SHAPES if form.match(question)), None)
    if len(question.split()) <= SIMPLE:
        shape = _SHAPES_BY_KIND.get(asked.kind)
    said = set(stems(text))
    return (
        0 < len(text.split()) <= LONGEST_ANSWER
        and bool(said)
        and not said <= asked.question_stems
        and (shape is None or bool(shape.search(text)))
    )
