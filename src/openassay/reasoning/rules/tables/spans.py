"""What the paragraphs around a table say in answer to a question, where the table has nothing: the sentence that has
most of its words, and of it what the question does not say itself."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from openassay.reasoning.rules.tables.matching import Question, Weigh, tokenize
from openassay.text.sentences import split_sentences
from openassay.text.words import STOP_WORDS, fold, stem

_WORD = re.compile(r"[^\W_]+(?:['’.,&-][^\W_]+)*|[$€£]?\d[\d,.]*%?")
_ASKS_FIGURE = re.compile(
    r"\bhow (?:much|many|long)\b|\bwhat (?:is|was|were|are) the (?:amount|number|percentage|total|value)\b", re.I
)
_ASKS_CAUSE = re.compile(r"\bwhy\b|\bcaused?\b|\breasons?\b|\bdriven\b|\battribut", re.I)
_CAUSE = re.compile(
    r"\b(?:(?:primarily |mainly |largely )?(?:due to|because of|because|as a result of|attributable to|driven by|"
    r"resulting from|result of|reflecting)|in order to|to)\b\s*",
    re.I,
)
_AMOUNT = re.compile(
    r"(?:approximately )?[$€£]?\d[\d,]*(?:\.\d+)?(?:\s?%| (?:thousand|million|billion|percent|years|months)\b)?", re.I
)
_LEAST_WORDS = 2


class FoundSpan(NamedTuple):
    text: str
    sentence: str
    covers: float  # the share of the question's words that its sentence has
    is_amount: bool


def find_span(question: Question, paragraphs: Sequence[str], weigh: Weigh) -> FoundSpan | None:
    """The stretch of a paragraph that answers best; None where no sentence has a word of the question."""
    total = sum(map(weigh, question.stems)) or 1.0
    best, most = "", 0.0
    for paragraph in paragraphs:
        around = {token.stem for token in tokenize(paragraph)}
        for piece in split_sentences(paragraph):
            own = {token.stem for token in tokenize(piece.text)}
            covers = sum(map(weigh, question.stems & own)) / total
            years = any(str(year) in piece.text for year in question.years)
            score = covers + 0.15 * years + 0.1 * sum(map(weigh, question.stems & around)) / total
            if covers and score > most + 1e-9:
                best, most = piece.text, score
    if not best:
        return None
    own = {token.stem for token in tokenize(best)}
    amount = _find_amount(question, best)
    covers = sum(map(weigh, question.stems & own)) / total
    return FoundSpan(amount or _cut_answer(question, best), best, covers, bool(amount))


def _find_amount(question: Question, sentence: str) -> str:
    """The first amount of a sentence that the question does not give itself, where one is asked for."""
    if not _ASKS_FIGURE.search(question.text):
        return ""
    amounts = [match[0].strip() for match in _AMOUNT.finditer(sentence) if not _is_known(match[0], question)]
    return amounts[0].rstrip(".,") if amounts else ""


def _cut_answer(question: Question, sentence: str) -> str:
    """What of a sentence the question does not say: a cause, or its end, from the longest stretch of other words."""
    if _ASKS_CAUSE.search(question.text) and (cause := _CAUSE.search(sentence)):
        return sentence[cause.end() :].rstrip(". ")
    runs, begin, count = list[tuple[int, int]](), 0, 0
    for match in _WORD.finditer(sentence):
        if stem(fold(match[0])) in question.stems or match[0] in question.text.split():
            runs.append((count, begin))
            count, begin = 0, match.end()
        elif fold(match[0]) not in STOP_WORDS:
            count += 1
    runs.append((count, begin))
    count, begin = max(runs, key=lambda run: run[0])
    return sentence[begin:].strip(" ,;:.") if count >= _LEAST_WORDS else sentence


def _is_known(amount: str, question: Question) -> bool:
    plain = amount.strip("$€£ .,")
    return plain in question.text or re.fullmatch(r"(?:19|20)\d\d", plain) is not None
