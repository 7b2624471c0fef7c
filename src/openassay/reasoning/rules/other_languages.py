"""Understanding and reading in other languages than English: what is asked as it stands, and sentences by their words.

Rules for English forms are not asked here, nor is the encoder, which knows only English.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from openassay.models.evidence import Passage
from openassay.models.plan import SubQuestion, Understanding
from openassay.reasoning.base import Quote
from openassay.text.injection import find_instructions
from openassay.text.other_languages import WordMatcher, find_asked_kind, has_asked_kind
from openassay.text.sentences import TextSpan, is_statement, split_sentences

SPECIFIC = 0.3  # how much such a question leaves open: nobody is asked back for what only English words tell


def understand_in_language(asked: str) -> Understanding:
    """The question as it stands; what it leans on in the thread is not put in, since that takes its grammar."""
    return Understanding(
        question=asked,
        query_class="fact",
        topic_focus=asked.strip(" .?!¿？。！"),
        complexity="simple",
        ambiguity_level=SPECIFIC,
    )


# Constants were chosen on the half of xquad that may be looked at (benchmarks/evaluation/languages.py).
AROUND = 0.4  # of the score, for the passage a sentence stands in, and the rest for its own words
KIND = 0.1  # for a sentence with the day or the figure that is asked for, and against one without
FLOOR = 0.34  # below this a sentence is about something else
NEAR_BEST = 0.85  # of the best sentence
LEAST_KNOWN = 0.5  # of the words of a question; where fewer are known, the documents speak of something else
LEAST_COVERED = 0.45  # of them, by rarity, that one passage has to have
PER_DOCUMENT = 3
LONGEST_CONTEXT = 400  # characters of a sentence with the one before it

# Words that a sentence begins with when it speaks of what the one before it names.
_LEANS = re.compile(
    r"(?:er|sie|es|ihre?r?|seine?r?|dies\w*|jene\w*|dort|damals|dabei|dafür|deshalb|daher|il|elle|ils|elles|ce|cet|"
    r"cette|ces|celui|celle|son|sa|ses|leurs?|lo|la fundó|este|esta|estos|estas|ese|esa|esto|eso|su|sus|allí|además)\b"
    r"|[他她它这那该其此]",
    re.I,
)


class _Candidate(NamedTuple):
    score: float
    passage: int
    start: int
    end: int
    text: str


def read_in_language(
    question: SubQuestion, passages: Sequence[Passage], titles: Sequence[str], limit: int, language: str
) -> list[Quote]:
    """The sentences that have most of a question's words, best first; none where the passages are on something else.
    `titles` are those of the passages' documents."""
    entitled = [f"{title}\n{passage.text}" for title, passage in zip(titles, passages, strict=True)]
    matcher = WordMatcher(question.text, language, entitled)
    if matcher.known_share() < LEAST_KNOWN:
        return []
    if max(map(matcher.recall, entitled), default=0.0) < LEAST_COVERED:
        return []
    scores = matcher.score_texts()
    around = [score / max(scores) for score in scores]
    kind = find_asked_kind(question.text)
    found: dict[str, _Candidate] = {}
    pieces = [list(_list_sentences(passage.text)) for passage in passages]
    # Words that few sentences have tell more; in a small folder every passage may have them.
    told = WordMatcher(question.text, language, [piece.text for own in pieces for piece in own])
    for number, own in enumerate(pieces):
        for piece in own:
            # What the title names, a sentence need not name again.
            entitled_piece = f"{titles[number]}\n{piece.text}"
            own_words = (told.recall(entitled_piece) + matcher.recall(entitled_piece)) / 2
            score = (1 - AROUND) * own_words + AROUND * around[number]
            if kind:
                score += KIND if has_asked_kind(kind, piece.text) else -KIND
            score = min(1.0, max(0.0, score))
            found.setdefault(piece.text, _Candidate(score, number, piece.start, piece.end, piece.text))
    ranked = sorted(found.values(), key=lambda one: (-one.score, one.passage, one.start))
    least = max(FLOOR, NEAR_BEST * ranked[0].score) if ranked else FLOOR
    return _select_distinct([one for one in ranked if one.score >= least], passages, limit)


def _list_sentences(text: str) -> Iterator[TextSpan]:
    """Statements, each with the one before it where it speaks of what that names."""
    orders, pieces = set(find_instructions(text)), split_sentences(text)
    for at, piece in enumerate(pieces):
        if not is_statement(piece.text) or piece in orders:
            continue
        start = piece.start
        if at and _LEANS.match(piece.text) and is_statement(pieces[at - 1].text) and pieces[at - 1] not in orders:
            near = "\n" not in text[pieces[at - 1].end : piece.start]
            if near and piece.end - pieces[at - 1].start <= LONGEST_CONTEXT:
                start = pieces[at - 1].start
        yield TextSpan(start, piece.end, text[start : piece.end])


def _select_distinct(ranked: Sequence[_Candidate], passages: Sequence[Passage], limit: int) -> list[Quote]:
    taken: list[_Candidate] = []
    for one in ranked:
        own = [other for other in taken if passages[other.passage].document == passages[one.passage].document]
        overlaps = any(
            other.passage == one.passage and one.start < other.end and other.start < one.end for other in own
        )
        if len(taken) < limit and len(own) < PER_DOCUMENT and not overlaps:
            taken.append(one)
    return [Quote(passage=one.passage, text=one.text, relevance=round(one.score, 4)) for one in taken]
