"""Pointed questions: what they want, and the stretches of a text that may be it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from openassay.models.evidence import Claim, Passage, Verdict
from openassay.reasoning.base import DraftAnswer, Quote
from openassay.reasoning.rules.short_answers.agreement import (
    AnswerReading,
    agree,
    find_full_name,
    find_qualifiers,
    is_same_thing,
)
from openassay.reasoning.rules.short_answers.candidates import (
    LONGEST_ANSWER,
    CandidateSpan,
    TextView,
    find_classes,
    find_dates,
    find_names,
    find_numbers,
    find_places,
)
from openassay.reasoning.rules.short_answers.exclusions import (
    filter_candidates,
    find_names_by_kind,
    is_all_on_others,
    names_differ,
)
from openassay.reasoning.rules.short_answers.question import AnswerSpec, Kind, parse_question
from openassay.text.relations import find_years
from openassay.text.sentences import split_sentences
from openassay.text.words import fold, stems

# Stretches of a text that may be what a question wants.

_FINDERS: dict[Kind, Callable[[AnswerSpec, TextView], Iterator[CandidateSpan]]] = {
    "date": find_dates, "number": find_numbers, "name": find_names, "place": find_places, "class": find_classes,
}  # fmt: skip


def find_candidates(wanted: AnswerSpec, text: str, title: str = "") -> list[CandidateSpan]:
    """Best first; of equal ones the earlier. `title` is that of the document."""
    found = _FINDERS[wanted.kind](wanted, TextView(wanted, text))
    # "A dam" tells nobody what the Kestrel Dam is.
    open_class = wanted.kind == "class" and not wanted.words
    fitting = [
        one
        for one in found
        if 0 < len(one.text_in(text).split()) <= LONGEST_ANSWER
        and not (open_class and set(stems(one.text_in(text))) <= set(stems(wanted.subject)))
    ]
    return sorted(filter_candidates(wanted, text, fitting, title), key=lambda one: (-one.score, one.start))


# Short answers to a pointed question: of each source the stretch that answers, agreeing ones told once.

# Below these, measured on questions with known answers, a stretch is more often something else than the answer.
FLOOR: dict[Kind, float] = {"date": 0.4, "number": 0.5, "name": 0.6, "place": 0.4, "class": 0.5}
FLOOR_LISTED = 0.35  # where it is a word of the kind that is asked for
OPTIONS = 12  # stretches of a text that are weighed against each other
SECONDED = 0.15  # what another document answers is more likely the answer of this one
SURE = 0.95  # so plain an answer needs no second
HINT = 0.15  # in a document that answers nothing else, this much will do for what another answers
SEVERAL = 2  # independent sources
NEARLY = 0.6  # of the best: a fuller wording as good as this is preferred
LONGEST_HEADING = 100  # characters
LONGEST_QUOTE, AROUND = 600, 160  # characters; of what is no sentence, so much on either side is quoted

Sides = tuple[Sequence[AnswerReading], Sequence[AnswerReading]]
# Where every document seems to answer otherwise, they speak of different things and none of them of what is asked.
MOST_ANSWERS = 5


class AnswerOption(NamedTuple):
    """A stretch that may be a document's answer, and in which piece of its text."""

    place: int
    stretch: CandidateSpan
    text: str


def find_answers(
    question: str, claims: Sequence[Claim], titles: Mapping[str, str] | None = None
) -> tuple[DraftAnswer, ...]:
    """Short answers, none where no phrase answers; `about` is told of several, `titles` are the documents'."""
    asked = parse_question(question)
    if asked is None:
        return ()
    groups = group_answers(asked, read_answers(asked, claims, titles=titles))
    if len(groups) > MOST_ANSWERS:
        return ()
    answers = []
    for group in groups:
        # A name is told as most sources spell it, since what stands beside it may run into it; in full all the same.
        spelt = Counter(reading.text for reading in group if asked.kind == "name" and " " in reading.text)
        fullest = max(group, key=lambda reading: (spelt[reading.text], len(reading.text), reading.score))
        behind = dict.fromkeys(reading.claim for reading in group if fullest.text in reading.quote)
        told = [text for reading in group for text in ((titles or {}).get(reading.document, ""), reading.around)]
        about = next(filter(None, (find_full_name(asked, text) for text in told)), "") if len(groups) > 1 else ""
        answers.append(DraftAnswer(text=fullest.text, claims=tuple(behind), about=about))
    return tuple(answers)


class AnswerComparison(NamedTuple):
    """Answers that cannot all hold, each with its matter and sides; and pairs of claims on different things, which
    can, however alike they sound."""

    disputes: list[tuple[str, Sides]]
    apart: set[frozenset[str]]


def compare_answers(
    question: str, claims: Sequence[Claim], texts: Mapping[str, str], groups: Mapping[str, str]
) -> AnswerComparison:
    """`texts` and `groups` are the documents' own."""
    asked = parse_question(question)
    # Of different years, or of things of one kind with different names.
    told = [(claim.id, find_years(claim.text), find_names_by_kind(claim.text)) for claim in claims]
    apart = {
        frozenset((left, right))
        for (left, when, things), (right, when_b, things_b) in combinations(told, 2)
        if (when and when_b and not when & when_b) or names_differ(things, things_b)
    }
    if asked is None:
        return AnswerComparison([], apart)
    found = read_answers(asked, claims, texts, {name: _find_heading(text) for name, text in texts.items()})
    answered = group_answers(asked, found)
    disputes: list[tuple[str, Sides]] = []
    for one, other in combinations(answered, 2) if len(answered) <= MOST_ANSWERS else ():
        # What held in one year is not against what held in another.
        years = [(find_years(a.quote), find_years(b.quote)) for a in one for b in other]
        if asked.kind != "date" and all(x and y and not x & y for x, y in years):
            continue
        # Where nothing tells of which thing the fewer sources speak, several independent ones are against them.
        alike = [_is_one_source(a, b, groups) or is_same_thing(asked, a, b) for a in one for b in other]
        few, many = sorted((one, other), key=lambda side: count_independent(side, groups))
        unknown = all(same is None for same in alike) and not any(find_qualifiers(asked, a.around) for a in few)
        if any(alike) or (unknown and count_independent(many, groups) >= SEVERAL):
            of = find_full_name(asked, one[0].around) or asked.subject
            about = f"{asked.question.rstrip('?!. ')}{f' ({of})' if of else ''}: {one[0].text} or {other[0].text}"
            disputes.append((about, (one, other)))
    apart |= {
        frozenset((left.claim, right.claim))
        for left, right in combinations(found, 2)
        if left.claim != right.claim
        and not _is_one_source(left, right, groups)
        and is_same_thing(asked, left, right) is False
    }
    return AnswerComparison(disputes, apart)


def _is_one_source(left: AnswerReading, right: AnswerReading, groups: Mapping[str, str]) -> bool:
    return left.document in groups and groups[left.document] == groups.get(right.document)


def count_independent(side: Sequence[AnswerReading], groups: Mapping[str, str]) -> int:
    return len({groups.get(reading.document, reading.document) for reading in side})


def read_answers(
    asked: AnswerSpec,
    claims: Sequence[Claim],
    texts: Mapping[str, str] | None = None,
    titles: Mapping[str, str] | None = None,
) -> list[AnswerReading]:
    """One a document, the best first."""
    places = [
        (claim.id, span)
        for claim in claims
        if claim.verdict is Verdict.SUPPORTED and not claim.superseded_by
        for span in claim.spans
    ]
    found = []
    for document, option in _choose_answers(asked, [(span.document, span.quote) for _, span in places], titles).items():
        claim, span = places[option.place]
        around = (texts or {}).get(document) or " ".join(s.quote for _, s in places if s.document == document)
        found.append(AnswerReading(document, claim, option.text, span.quote, around, option.stretch.score))
    return sorted(found, key=lambda reading: -reading.score)


def group_answers(asked: AnswerSpec, found: Sequence[AnswerReading]) -> list[list[AnswerReading]]:
    """Those that agree together, most sources first; one too vague to tell between two stands with neither."""
    groups: list[list[AnswerReading]] = []
    # Of dates the exact ones first.
    for reading in sorted(found, key=lambda reading: -len(reading.text.split()) if asked.kind == "date" else 0):
        near = [group for group in groups if any(agree(asked, reading.text, other.text) for other in group)]
        if len(near) == 1:
            near[0].append(reading)
        elif not near:
            groups.append([reading])
    return sorted(groups, key=lambda group: -len(group))


def find_answer_quotes(question: str, passages: Sequence[Passage]) -> list[Quote]:
    """Of each document that has an answer to a pointed question the sentence it stands in, best first."""
    asked = parse_question(question)
    if asked is None:
        return []
    headings = {passage.document: _find_heading(passage.text) for passage in passages if passage.start == 0}
    found = _choose_answers(asked, [(passage.document, passage.text) for passage in passages], headings)
    quotes = []
    for place, one, _ in found.values():
        text = passages[place].text
        around = (piece for piece in split_sentences(text) if piece.start <= one.start and one.end <= piece.end)
        low = text.find(" ", one.start - AROUND) + 1 if one.start > AROUND else 0
        high = text.rfind(" ", 0, one.end + AROUND) if one.end + AROUND < len(text) else len(text)
        quote = next((piece.text for piece in around if len(piece.text) <= LONGEST_QUOTE), text[low:high])
        quotes.append(Quote(passage=place, text=quote, relevance=min(1.0, one.score)))
    return sorted(quotes, key=lambda quote: -quote.relevance)


def _find_heading(text: str) -> str:
    """The first line of a document, if it is no sentence."""
    line = text.split("\n", 1)[0].strip("# ")
    return "" if len(line) > LONGEST_HEADING or line.endswith((".", "!", "?")) else line


def add_answer_quotes(question: str, passages: Sequence[Passage], quotes: Sequence[Quote], limit: int) -> list[Quote]:
    """What was read, and of every document what answers a pointed question, which comes first. A quote that holds it
    already is as relevant as it; one on another thing of the kind is left out."""
    asked = parse_question(question)
    read = [quote for quote in quotes if asked is None or not is_all_on_others(asked, quote.text)]
    for one in find_answer_quotes(question, passages):
        at = next((n for n, q in enumerate(read) if q.passage == one.passage and one.text in q.text), None)
        if at is None:
            read.append(one)
        elif read[at].relevance < one.relevance:
            read[at] = read[at].model_copy(update={"relevance": one.relevance})
    return sorted(read, key=lambda quote: -quote.relevance)[:limit]


def _choose_answers(
    asked: AnswerSpec, pieces: Sequence[tuple[str, str]], titles: Mapping[str, str] | None = None
) -> dict[str, AnswerOption]:
    """What each document, given as pieces of its text, answers; what others answer speaks for the same words."""
    options: dict[str, list[AnswerOption]] = {}
    for place, (document, text) in enumerate(pieces):
        title = (titles or {}).get(document, "")
        best = [AnswerOption(place, one, one.text_in(text)) for one in find_candidates(asked, text, title)[:OPTIONS]]
        options.setdefault(document, []).extend(best)
    first = {name: max(found, key=_score) for name, found in options.items() if found}
    settled = {}
    for document in first:
        others = [option for name, option in first.items() if name != document and _score(option) >= _floor(asked)]
        if option := _choose_option(asked, options[document], others):
            settled[document] = option
    return settled


def _choose_option(
    asked: AnswerSpec, found: Sequence[AnswerOption], others: Sequence[AnswerOption]
) -> AnswerOption | None:
    def weight(option: AnswerOption) -> float:
        seconded = any(agree(asked, option.text, other.text) for other in others)
        return _score(option) + (SECONDED if seconded else 0.0)

    plain = [option for option in found if _score(option) >= SURE]
    best = max(plain or found, key=weight)
    # A document may have but one word of the kind that is asked for, and have it repeatedly.
    only = asked.words and len(found) > 1 and len({fold(one.text).removesuffix("s") for one in found}) == 1
    if weight(best) >= _floor(asked) or only:
        # One nearly as good that says the same more fully: a date with its day, a name with its first name.
        if asked.kind not in ("date", "name") and not asked.words:
            return best
        near = [one for one in found if one.place == best.place and _score(one) >= NEARLY * _score(best)]
        return max([best, *(one for one in near if agree(asked, one.text, best.text))], key=lambda one: len(one.text))
    hints = [one for one in found if _score(one) >= HINT and weight(one) > _score(one)]
    return max(hints, key=_score, default=None)


def _score(option: AnswerOption) -> float:
    return option.stretch.score


def _floor(asked: AnswerSpec) -> float:
    return FLOOR_LISTED if asked.words else FLOOR[asked.kind]
