"""Pointed questions: what they want, and the stretches of a text that may be it."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import combinations
from typing import Literal, NamedTuple

from openassay.models.evidence import Claim, Passage, Verdict
from openassay.reasoning.base import DraftAnswer, Quote
from openassay.reasoning.rules.read import find_context_start
from openassay.reasoning.rules.short_answers import candidates
from openassay.reasoning.rules.short_answers.options import AnswerOption, exclude_other, find_options
from openassay.reasoning.rules.short_answers.question import (
    EXAMPLES_BY_KIND,
    MEDIA,
    OCCUPATIONS,
    SPORTS,
    AnswerSpec,
    Kind,
    definitions_differ,
    find_definition,
    parse_question,
    word_pattern,
)
from openassay.text.answer_reader import LOWEST, AnswerReader, PassageText
from openassay.text.injection import asks_for_advice, find_instructions, is_order
from openassay.text.questions import find_year_range, is_pointed
from openassay.text.relations import find_years
from openassay.text.sentences import TextSpan, split_passages, split_sentences
from openassay.text.words import fold, stem, stems, words

# Sentences that cannot answer a pointed question: orders, those of other years and those on another thing.

# Nouns that follow a proper name and say what kind of thing has it: the Heron Dam is not the Kestrel Dam.
_KINDS = frozenset(
    "dam bridge lake river mountain tunnel tower museum school university college hospital airport station castle "
    "palace township municipality county district island park stadium canal reservoir plant mine port bank foods "
    "motors".split()
)
_NO_NAME = frozenset("the this that these those a an its his her their our new old first second each every".split())
_OF_A_KIND = re.compile(rf"\b([A-Z][\w’-]+) ({'|'.join(sorted(kind.title() for kind in _KINDS))})\b")
_FULL_NAME = r"[A-Z][\w’&-]*(?: (?:of |& )?[A-Z][\w’&-]*)"
# Whom a sentence is about: its first words, or what has the thing ("the revenue of Boreal Auto was").
_OPENS = re.compile(rf"^\W*(?:The )?({_FULL_NAME}{{1,3}})(?:['’]s?\b| [a-z]+(?:ed|s|d|t|de)\b)")
_HAS = re.compile(
    rf"^\W*(?:The )?[A-Za-z][a-z]+(?: [a-z]+)? of (?:the )?({_FULL_NAME}{{1,3}}) (?:is|was|are|were|fell|rose)\b"
)
_OFFICE = frozenset(stems("ceo executive"))
_NEW = re.compile(r"\b(?:replacement|replace|new|temporary)\b")
_CLAUSE = re.compile(r",(?=\s)|;|\s(?:and|but|while|against|versus|compared (?:with|to)|from(?= [$€£]?\d))\s", re.I)
_FILE = re.compile(r"\.\w{1,5}$")
_LABEL = re.compile(r"(?:published|updated|posted|issued|printed|date|title|author|source)\b", re.I)
LABEL = 6  # words of a line that says when or by whom a text was published


def filter_candidates(
    wanted: AnswerSpec, text: str, title: str, found: list[candidates.CandidateSpan]
) -> list[candidates.CandidateSpan]:
    """Those that stand in no barred sentence. `title` is the document's."""
    if not found:
        return []
    orders = set(find_instructions(text))
    period = find_year_range(wanted.asked)
    advice = asks_for_advice(wanted.question)
    pieces = [piece for piece in split_sentences(text) if any(_overlaps(piece, one) for one in found)]
    barred = [
        piece
        for piece in pieces
        if piece in orders
        or (is_order(piece.text) and not advice)
        or (len(piece.text.split()) <= LABEL and _LABEL.match(piece.text))
        or _is_other_thing(wanted, piece.text, title)
        or (period and (told := find_years(piece.text) or find_years(title)) and not period.overlaps(told))
    ]
    kept = [one for one in found if not any(_overlaps(piece, one) for piece in barred)]
    if period is None or wanted.kind == "date":
        return kept
    # Without those whose clause itself names other years only: "up from 2.27 billion in 2022".
    timely = []
    for one in kept:
        clauses = []
        for piece in (piece for piece in pieces if _overlaps(piece, one)):
            low, high = one.start - piece.start, one.end - piece.start
            cuts = [cut.span() for cut in _CLAUSE.finditer(piece.text)]
            start = max((end for _, end in cuts if end <= low), default=0)
            stop = min((begin for begin, _ in cuts if begin >= high), default=len(piece.text))
            clauses.append(find_years(piece.text[start:stop]))
        if not any(years and not period.overlaps(years) for years in clauses):
            timely.append(one)
    return timely


def _overlaps(piece: TextSpan, one: candidates.CandidateSpan) -> bool:
    return piece.start < one.end and one.start < piece.end


def _is_other_thing(wanted: AnswerSpec, sentence: str, title: str) -> bool:
    """Whether a sentence is on another thing than the one asked about, by the names it has."""
    own = set(stems(wanted.subject))
    if not own:
        return False
    if _is_other_of_kind(wanted, sentence):
        return True
    if own & set(stems(sentence)):
        return False
    if wanted.kind == "number" or wanted.cue_stems & _OFFICE:
        entitled = not _FILE.search(title) and re.search(rf"{_FULL_NAME}{{1,3}}", title) and not own & set(stems(title))
        return any(pattern.search(sentence) for pattern in (_OPENS, _HAS)) or bool(entitled)
    return wanted.kind == "name" and _HAS.search(sentence) is not None


def _is_other_of_kind(wanted: AnswerSpec, sentence: str) -> bool:
    """A sentence that has the subject's noun with another name ahead, or is on a new one, and nowhere its own name."""
    *name, kind = wanted.subject.split() or [""]
    if kind.lower() not in _KINDS or not name or set(stems(" ".join(name))) & set(stems(sentence)):
        return False
    new = re.search(rf"\b(?:replacement|new|temporary) {re.escape(kind)}\b", sentence, re.I)
    return (new is not None and not _NEW.search(wanted.question)) or kind.lower() in find_names_by_kind(sentence)


def is_all_on_others(wanted: AnswerSpec, text: str) -> bool:
    """Whether every sentence of a text is on another thing of the subject's kind."""
    pieces = split_sentences(text)
    return bool(pieces) and all(_is_other_of_kind(wanted, piece.text) for piece in pieces)


def find_names_by_kind(text: str) -> dict[str, set[str]]:
    """The names a text has of things of each kind: of dams Kestrel and Heron."""
    found: dict[str, set[str]] = {}
    for name, kind in _OF_A_KIND.findall(text):
        if name.lower() not in _NO_NAME:
            found.setdefault(kind.lower(), set()).add(name.lower())
    return found


def names_differ(left: dict[str, set[str]], right: dict[str, set[str]]) -> bool:
    """Whether two texts name things of one kind and none alike."""
    shared = left.keys() & right.keys()
    return bool(shared) and not any(left[kind] & right[kind] for kind in shared)


# Whether two sources that answer one question agree, and if not, whether they speak of the same thing.

ALIKE = 0.75  # of the words around two answers: one sentence with another value put in
AHEAD = 2  # words ahead of a name that may be part of it: Lieutenant General
PHRASES = 10  # three words in a row each
COPY_SHARE = 0.3  # of a text: of 390 documents on different things of one name 4 share that much, of 69 altered ones 38
_PART = re.compile(r"\d{3,4}|\d{1,2}|[A-Z][a-z]{2}")
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_FULL_DATE = re.compile(rf"\b[0-3]?\d (?:{_MONTHS}),? \d{{4}}|\b(?:{_MONTHS}) [0-3]?\d ?, \d{{4}}")
_VISITED = re.compile(r"\b(?:Retrieved|Archived|[Aa]ccessed|original)(?: on)? [\w ,]{5,20}")
_BRACKET = re.compile(r" ?\( ?((?!born|b\.|[^()]*\d{3}[^()]*\d{3})[^():\"“]{2,50}?) ?\)")
_WHERE = re.compile(r" ?, ([A-Z][\w-]*(?: [A-Z][\w-]*){0,2})")
_TITLES = "band singer county township city district state emperor king sir lord saint american british"
_KIND_STEMS = frozenset(stems(" ".join((*MEDIA, *SPORTS, *OCCUPATIONS, _TITLES))))


class AnswerReading(NamedTuple):
    """What one document answers, and the words it stands in."""

    document: str
    claim: str
    text: str
    quote: str
    around: str  # everything quoted of the document
    score: float


def agree(wanted: AnswerSpec, left: str, right: str) -> bool:
    a, b = fold(left), fold(right)
    if a == b:
        return True
    if wanted.kind == "date":
        # The less exact of two dates may be part of the other: 1856 and June 1856.
        p, q = ({part.lower() for part in _PART.findall(text)} for text in (left, right))
        years = {part for part in p if len(part) > 2 and part.isdigit()} & {part for part in q if part.isdigit()}
        return bool(years) and (p <= q or q <= p)
    if wanted.kind == "number":
        return _find_figures(left) == _find_figures(right) != frozenset()
    own = set(stems(wanted.subject))
    x, y = set(stems(left)) - own, set(stems(right)) - own
    if wanted.kind in ("name", "place"):
        opens = wanted.kind == "name" and a.split()[:2] == b.split()[:2]  # what follows a name may run into it
        return bool(x and y) and (x <= y or y <= x or opens)
    if shown := EXAMPLES_BY_KIND.get(wanted.noun) or wanted.words:
        # Football and footballer, hockey and ice hockey; of several words half must agree.
        ours, theirs = _find_hits(shown, left), _find_hits(shown, right)
        shared = sum(any(one in other or other in one for other in theirs) for one in ours)
        return shared > 0 and shared * 2 >= min(len(ours), len(theirs))
    return bool(x & y) and (x <= y or y <= x or len(x & y) * 2 >= len(x | y))


def _find_hits(known: tuple[str, ...], text: str) -> set[str]:
    return {fold(hit).removesuffix(" party") for hit in word_pattern(known).findall(text)}


def _find_figures(text: str) -> frozenset[str]:
    return frozenset(re.sub(r"[^\d.]", "", figure) for figure in re.findall(r"\d[\d,.]*\d|\d", text))


def is_same_thing(wanted: AnswerSpec, left: AnswerReading, right: AnswerReading) -> bool | None:
    """Whether two sources speak of one thing: None where nothing tells. One text with another value put in does; of
    things with one name, what stands beside the name differs."""
    # 18 December 1868 and 18 December 1888: nobody shares two parts of a date by chance.
    one, other = (frozenset(_PART.findall(reading.text)) for reading in (left, right))
    altered = wanted.kind == "date" and len(one) == len(other) == 3 and len(one & other) == 2
    # Of a copy a share stands in the other text; a phrase or two is what statements on like things have in common.
    x, y = (_trigrams(reading.around.replace(reading.text, " ")) for reading in (left, right))
    if altered or (len(x & y) >= PHRASES and len(x & y) / min(len(x), len(y)) >= COPY_SHARE):
        return True
    # A day, two exact figures or three names in common, besides the answers: of 574 pairs of documents on different
    # things of one name 5 have that, of 243 with an altered answer 45.
    (days, figures, named), (days_b, figures_b, named_b) = (
        _extract_details(reading.around.replace(left.text, " ").replace(right.text, " ")) for reading in (left, right)
    )
    subject = set(stems(wanted.subject))
    shared = [name for name in named & named_b if not subject & set(stems(name))]
    if days & days_b or len(figures & figures_b) >= 2 or len(shared) >= 3:
        return True
    # Fully the same beside the name is one thing; each with something of its own are two, as a film and an album.
    p, q = find_qualifiers(wanted, left.around), find_qualifiers(wanted, right.around)
    own, others = p - _KIND_STEMS, q - _KIND_STEMS
    if p and q and ((own - others and others - own) or (not own and not others and not p & q)):
        return False
    if own and p == q:
        return True
    defined = [find_definition(wanted.subject, reading.around, reading.text) for reading in (left, right)]
    if definitions_differ(*defined):
        return False
    a, b = (set(stems(reading.quote)) - set(stems(reading.text)) for reading in (left, right))
    return True if subject <= a & b and len(a & b) >= ALIKE * len(a | b) else None


@lru_cache(maxsize=256)
def _extract_details(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    plain = _VISITED.sub(" ", text)
    days = frozenset(fold(found.group()).replace(" ,", ",") for found in _FULL_DATE.finditer(plain))
    figures = frozenset(re.findall(r"\b\d{1,3}(?:,\d{3})+\b|\b\d+\.\d+\b", plain))
    named = frozenset(fold(found) for found in candidates.NAME.findall(plain) if len(found.split()) >= 2)
    return days, figures, named


@lru_cache(maxsize=256)
def _trigrams(text: str) -> frozenset[tuple[str, ...]]:
    said = words(text)
    return frozenset(zip(said, said[1:], said[2:], strict=False))


@lru_cache(maxsize=256)
def find_qualifiers(wanted: AnswerSpec, text: str) -> frozenset[str]:
    """Stems of what stands beside the subject's name and tells it from others of that name."""
    own = frozenset(stems(wanted.subject))
    # A name in any case, since small words part it: "Stranger than Fiction".
    name = re.compile(r"[ _]".join(map(re.escape, wanted.subject.split())), re.I)
    for found in (*name.finditer(text), *candidates.NAME.finditer(text)) if own else ():
        if told := _qualifier_stems(own, text, found.end(), found.group()):
            return told
    return frozenset()


def _qualifier_stems(own: frozenset[str], text: str, end: int, run: str) -> frozenset[str]:
    said = {word for word in stems(run) if len(word) > 1 and "." not in word}  # without initials and addresses
    if not (own <= said or (len(own) > 1 and len(own & said) >= 2)):
        return frozenset()
    matches = (_BRACKET.match(text, end), _WHERE.match(text, end))
    return frozenset(said.union(*(stems(match[1]) for match in matches if match))) - own


@lru_cache(maxsize=256)
def find_full_name(wanted: AnswerSpec, text: str) -> str:
    """The subject's name as a text has it where that says more than the question: with a first name, a place, or what
    stands in brackets. Empty where it says no more."""
    own = frozenset(stems(wanted.subject))
    for start, end in candidates.find_capital_runs(text, candidates.NAME) if own else ():
        run = text[start:end]
        at = run.find(wanted.subject)
        if at > 0 and len(run[:at].split()) > AHEAD:  # a heading: "Dictionary Quotes Map Maurice Roche"
            run = run[at:]
        if _qualifier_stems(own, text, end, run):
            bracket, place = _BRACKET.match(text, end), _WHERE.match(text, end)
            # A title may run into the sentence after it: "Blackshear M. Bryan Lieutenant General Blackshear".
            again = run.find(run.split(" ", 1)[0], 1)
            repeats = again > 0 and set(stems(wanted.subject)) & set(stems(run[:again]))
            name = run[:again].rstrip() if repeats else run
            return name + (f" ({bracket[1]})" if bracket else f", {place[1]}" if place else "")
    return ""


# Stretches of a text that may be what a question wants.

_FINDERS: dict[Kind, Callable[[AnswerSpec, candidates.TextView], Iterator[candidates.CandidateSpan]]] = {
    "date": candidates.find_dates,
    "number": candidates.find_numbers,
    "name": candidates.find_names,
    "place": candidates.find_places,
    "class": candidates.find_classes,
}


def find_candidates(wanted: AnswerSpec, text: str, title: str = "") -> list[candidates.CandidateSpan]:
    """Those that rules find, best first; of equal ones the earlier. `title` is that of the document."""
    if wanted.kind == "other":
        return []
    found = _FINDERS[wanted.kind](wanted, candidates.TextView(wanted, text))
    # "A dam" tells nobody what the Kestrel Dam is.
    open_class = wanted.kind == "class" and not wanted.words
    fitting = [
        one
        for one in found
        if 0 < len(one.text_in(text).split()) <= candidates.LONGEST_ANSWER
        and not (open_class and set(stems(one.text_in(text))) <= set(stems(wanted.subject)))
    ]
    return sorted(filter_candidates(wanted, text, title, fitting), key=lambda one: (-one.score, one.start))


# Short answers to a pointed question: of each source the stretch that answers, agreeing ones told once.

# Below these, measured on questions with known answers, a stretch is more often something else than the answer.
FLOOR: dict[Kind, float] = {"date": 0.4, "number": 0.5, "name": 0.6, "place": 0.4, "class": 0.5, "other": 0.5}
FLOOR_LISTED = 0.35  # where it is a word of the kind that is asked for
# Chances, where the reader marks: of what is quoted, and of what is told as the answer, beside what other passages say.
# Of 34 questions on news and 70 of XQuAD, each over the ten passages that plain search finds, .79 are answered from the
# second on, .96 and .95 of them rightly; without the passages that answer them none and .01 are. Of 134 of HotpotQA,
# which take two steps, .30 and .37 are, .58 and .76 rightly. It was chosen on these.
FLOOR_QUOTED, FLOOR_TOLD = 0.3, 0.65
# From which on a question counts as answered: without what answers them .03 of the same questions on news and
# .03 of those of XQuAD have such a mark, with them .97 and .87.
FLOOR_ANSWERS = 0.45
# The margin of the reader below which words that rules have chosen are no answer; at -12 RAMDocs lost .02.
REJECTED = -20.0
ONE_NAME = 10  # words up to which a question may be about several things of one name
TWO_STEPS = 14  # words from which on a question may take two steps
MOST_BEHIND, BEHIND = 3, 900  # passages of other documents that an answer is held against so, and characters of each
SECONDED = 0.15  # what another document answers is more likely the answer of this one
SURE = 0.95  # so plain an answer needs no second
HINT = 0.15  # in a document that answers nothing else, this much will do for what another answers
SEVERAL = 2  # independent sources
NEARLY = 0.6  # of the best: a fuller wording as good as this is preferred
UNANSWERING = 0.49  # times the relevance of what the reader finds no answer in, so that it never counts as one
LONGEST_HEADING = 100  # characters
LONGEST_QUOTE, AROUND = 600, 160  # characters; of what is no sentence, so much on either side is quoted


class Floors(NamedTuple):
    """Chances from which an answer is taken, and from which it is where no other document answers."""

    seconded: float
    alone: float


class ChosenAnswer(NamedTuple):
    option: AnswerOption
    by_rules: bool


FLOORS_EACH = Floors(0.5, 0.7)  # of what documents are compared by
# What is chosen of each document: a quote for a claim, its answer to be compared with others, what is told as one.
AnswerUse = Literal["quoted", "each", "told"]
Sides = tuple[Sequence[AnswerReading], Sequence[AnswerReading]]
# Where every document seems to answer otherwise, they speak of different things and none of them of what is asked.
MOST_ANSWERS = 5
LEAST_SAID = 4  # stems of a question of no kind


def find_answers(
    question: str,
    claims: Sequence[Claim],
    reader: AnswerReader,
    titles: Mapping[str, str] | None = None,
    passages: Mapping[str, str] | None = None,
) -> tuple[DraftAnswer, ...]:
    """Short answers, none where no phrase answers; `about` is told of several. `titles` and `passages` are the
    documents', what they say around the claims' quotes."""
    asked = parse_question(question)
    # What has no kind is told in short where the question says what it is after: not "What's happening with Apple?".
    if asked is None or (asked.kind == "other" and not is_pointed(question) and len(asked.question_stems) < LEAST_SAID):
        return ()
    groups = group_answers(asked, read_answers(asked, claims, reader, titles=titles, passages=passages))
    # Of a short question, which may be about several things of one name, each document's answer is told; of another,
    # what two say that speak of one thing and do not agree.
    count = len(asked.question.split())
    if not asked.is_plain and (count < TWO_STEPS or not groups):
        each = group_answers(asked, read_answers(asked, claims, reader, titles=titles, passages=passages, use="each"))
        pairs = ((a, b) for one, other in combinations(each, 2) for a in one for b in other)
        alike = {is_same_thing(asked, a, b) for a, b in pairs}
        if count <= ONE_NAME or True in alike or (False in alike and count < TWO_STEPS):
            groups = each or groups
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
        given = tuple(dict.fromkeys(reading.document for reading in group))
        answers.append(DraftAnswer(text=fullest.text, claims=tuple(behind), about=about, documents=given))
    return tuple(answers)


class AnswerComparison(NamedTuple):
    """Answers that cannot all hold, each with its matter and sides; and pairs of claims on different things, which
    can, however alike they sound."""

    disputes: list[tuple[str, Sides]]
    apart: set[frozenset[str]]


def compare_answers(
    question: str, claims: Sequence[Claim], texts: Mapping[str, str], groups: Mapping[str, str], reader: AnswerReader
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
    titles = {name: _find_heading(text) for name, text in texts.items()}
    found = read_answers(asked, claims, reader, texts, titles, use="each")
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
    reader: AnswerReader,
    texts: Mapping[str, str] | None = None,
    titles: Mapping[str, str] | None = None,
    passages: Mapping[str, str] | None = None,
    use: AnswerUse = "told",
) -> list[AnswerReading]:
    """One a document, the best first; to be `told`, only what all that answer say."""
    # What was replaced answers nothing, though another claim rests on the same passage.
    replaced = [span for claim in claims if claim.superseded_by for span in claim.spans]
    places = [
        (claim.id, span)
        for claim in claims
        if claim.verdict is Verdict.SUPPORTED and not claim.superseded_by
        for span in claim.spans
        if not any(span.document == old.document and span.start < old.end and old.start < span.end for old in replaced)
    ]
    found = []
    pieces = [(span.document, span.quote) for _, span in places]
    for document, (option, _) in _choose_answers(asked, pieces, reader, titles, passages or texts, use).items():
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


def find_answer_quotes(question: str, passages: Sequence[Passage], reader: AnswerReader) -> list[Quote]:
    """Of each document that has an answer to a pointed question the sentence it stands in, best first."""
    asked = parse_question(question)
    if asked is None:
        return []
    headings = {passage.document: _find_heading(passage.text) for passage in passages if passage.start == 0}
    found = _choose_answers(
        asked, [(passage.document, passage.text) for passage in passages], reader, headings, use="quoted"
    )
    named = set(stems(asked.subject))
    quotes = []
    for (place, one, _), by_rules in found.values():
        text = passages[place].text
        pieces = split_sentences(text)
        at = next((n for n, piece in enumerate(pieces) if piece.start <= one.start and one.end <= piece.end), None)
        low = text.find(" ", one.start - AROUND) + 1 if one.start > AROUND else 0
        high = text.rfind(" ", 0, one.end + AROUND) if one.end + AROUND < len(text) else len(text)
        quote = text[low:high]
        if at is not None and len(pieces[at].text) <= LONGEST_QUOTE:
            quote = pieces[at].text
            if not named & set(stems(quote)):  # with what says whom "he" stands for
                quote = text[find_context_start(text, pieces, at) : pieces[at].end]
        # What the reader takes for an answer goes before what only has the question's words.
        worth = min(1.0, one.score) if by_rules else (1 + one.score) / 2
        quotes.append(Quote(passage=place, text=quote, relevance=worth))
    return sorted(quotes, key=lambda quote: -quote.relevance)


def discount_unanswering(
    question: str, passages: Sequence[Passage], quotes: Sequence[Quote], titles: Mapping[str, str], reader: AnswerReader
) -> list[Quote]:
    """What was read for a question for one thing; less to the point, all of it, where the reader finds no answer in any
    passage. Of 173 questions of XQuAD over 240 paragraphs, half of them without their own, it finds none in all 86 that
    lack it and in 10 of the others, from .3 on."""
    asked = parse_question(question) if is_pointed(question) else None
    if asked is None or not quotes:
        return list(quotes)
    pieces = [(passage.document, passage.text) for passage in passages]
    found = find_options(asked, pieces, titles, {}, reader, partial(filter_candidates, asked))
    if any(option.stretch.score >= FLOOR_ANSWERS for some in found for option in some):
        return list(quotes)
    return [quote.model_copy(update={"relevance": UNANSWERING * quote.relevance}) for quote in quotes]


def _find_heading(text: str) -> str:
    """The first line of a document, if it is no sentence."""
    line = text.split("\n", 1)[0].strip("# ")
    return "" if len(line) > LONGEST_HEADING or line.endswith((".", "!", "?")) else line


def add_answer_quotes(
    question: str, passages: Sequence[Passage], quotes: Sequence[Quote], limit: int, reader: AnswerReader
) -> list[Quote]:
    """What was read, and of every document what answers a pointed question, which comes first. A quote that holds it
    already is as relevant as it; one on another thing of the kind is left out."""
    asked = parse_question(question)
    read = [quote for quote in quotes if asked is None or not is_all_on_others(asked, quote.text)]
    for one in find_answer_quotes(question, passages, reader):
        at = next((n for n, q in enumerate(read) if q.passage == one.passage and one.text in q.text), None)
        if at is None:
            read.append(one)
        elif read[at].relevance < one.relevance:
            read[at] = read[at].model_copy(update={"relevance": one.relevance})
    return sorted(read, key=lambda quote: -quote.relevance)[:limit]


def _choose_answers(
    asked: AnswerSpec,
    pieces: Sequence[tuple[str, str]],
    reader: AnswerReader,
    titles: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | None = None,
    use: AnswerUse = "told",
) -> dict[str, ChosenAnswer]:
    """What each document, given as pieces of its text, answers; what others answer speaks for the same words. Of a
    plain question as rules have it; where they find nothing, and of any other question, as the reader has it."""
    if asked.is_plain:
        found = [
            [
                AnswerOption(place, one, one.text_in(text))
                for one in find_candidates(asked, text, (titles or {}).get(name, ""))
            ]
            for place, (name, text) in enumerate(pieces)
        ]
        floors = Floors(*[FLOOR_LISTED if asked.words else FLOOR[asked.kind]] * 2)
        if settled := _settle(asked, pieces, found, floors):
            kept = settled if use == "quoted" else _leave_out_rejected(asked, pieces, settled, reader, titles or {})
            return {name: ChosenAnswer(option, by_rules=True) for name, option in kept.items()}
    if use == "told":
        settled = _choose_likeliest(asked, pieces, titles or {}, texts or {}, reader)
    else:
        found = find_options(asked, pieces, titles or {}, texts or {}, reader, partial(filter_candidates, asked))
        settled = _settle(asked, pieces, found, Floors(FLOOR_QUOTED, FLOOR_QUOTED) if use == "quoted" else FLOORS_EACH)
    return {name: ChosenAnswer(option, by_rules=False) for name, option in settled.items()}


def _choose_likeliest(
    asked: AnswerSpec,
    pieces: Sequence[tuple[str, str]],
    titles: Mapping[str, str],
    texts: Mapping[str, str],
    reader: AnswerReader,
) -> dict[str, AnswerOption]:
    """What the reader marks most surely, in each document that says it, if it stays likely beside what is marked
    otherwise in other passages: of two that both look like the answer one is wrong, and a question that takes two steps
    has a word for each of them."""
    # Passages are read whole and one by one: of a few words the reader takes any for the answer, and in a long text it
    # finds one to everything.
    around = [(name, piece.text) for name, text in texts.items() for piece in split_passages(name, text)]
    whole = around or pieces
    read = find_options(asked, whole, titles, {}, reader, partial(filter_candidates, asked))
    if asked.noun:
        read = [_prefer_named(asked.noun, some) for some in read]
    options = [option for some in read for option in some]
    best = max(options, key=_score, default=None)
    if best is None:
        return {}
    rivals = (one for one in options if one.place != best.place and not agree(asked, best.text, one.text))
    if exclude_other(_score(best), max(map(_score, rivals), default=0.0)) < FLOOR_TOLD:
        return {}
    apart = [(name, text) for name, text in whole if name != whole[best.place][0]]
    if len(asked.question.split()) >= TWO_STEPS and not stays_likeliest(asked, best, whole, apart, titles, reader):
        return {}
    # It is told in the words of a claim that has it.
    chosen: dict[str, AnswerOption] = {}
    for option in sorted((one for one in options if agree(asked, best.text, one.text)), key=_score, reverse=True):
        document = whole[option.place][0]
        place = next((at for at, (name, text) in enumerate(pieces) if name == document and option.text in text), None)
        near = _score(option) >= NEARLY * _score(best) and option.place == best.place
        if place is not None and (document not in chosen or (near and len(option.text) > len(chosen[document].text))):
            chosen[document] = option._replace(place=place)
    return chosen


def stays_likeliest(
    asked: AnswerSpec,
    best: AnswerOption,
    pieces: Sequence[tuple[str, str]],
    apart: Sequence[tuple[str, str]],
    titles: Mapping[str, str],
    reader: AnswerReader,
) -> bool:
    """Whether an answer is still the one that is marked most surely when its passage is read behind others, and these
    behind it. Of 150 questions of HotpotQA .25 are then answered, .71 of them rightly (.29 and .65 without this); of 34
    on news none that was right is lost."""
    document, own = pieces[best.place]
    near = sorted(apart, key=lambda one: -len(asked.question_stems & set(stems(one[1]))))[:MOST_BEHIND]
    texts = [
        PassageText(text, f"{titles.get(other, '')}. {before[:BEHIND]} {titles.get(name, '')}. ")
        for name, said in near
        for text, other, before in ((own, name, said), (said, document, own))
    ]
    margins = {True: LOWEST, False: LOWEST}
    for read, reading in zip(texts, reader.read(asked.asked or asked.question, texts), strict=True):
        for one in reading.find_answers(2):
            told = read.text[one.start : one.end]
            if not set(stems(told)) <= asked.question_stems:
                same = agree(asked, best.text, told)
                margins[same] = max(margins[same], one.margin)
    return margins[True] >= margins[False]


def _leave_out_rejected(
    asked: AnswerSpec,
    pieces: Sequence[tuple[str, str]],
    settled: Mapping[str, AnswerOption],
    reader: AnswerReader,
    titles: Mapping[str, str],
) -> dict[str, AnswerOption]:
    """Without what the reader is sure does not answer: rules find a name in any sentence on who won something."""
    read = [PassageText(pieces[one.place][1], f"{titles.get(name, '')}. ") for name, one in settled.items()]
    readings = reader.read(asked.asked or asked.question, read)
    return {
        name: one
        for (name, one), reading in zip(settled.items(), readings, strict=True)
        if reading.weigh(one.stretch.start, one.stretch.end) >= REJECTED
    }


def _settle(
    asked: AnswerSpec, pieces: Sequence[tuple[str, str]], found: Sequence[Sequence[AnswerOption]], floors: Floors
) -> dict[str, AnswerOption]:
    options: dict[str, list[AnswerOption]] = {}
    for (document, _), some in zip(pieces, found, strict=True):
        options.setdefault(document, []).extend(some)
    if asked.noun and not asked.is_plain:
        options = {name: _prefer_named(asked.noun, some) for name, some in options.items()}
    first = {name: max(some, key=_score) for name, some in options.items() if some}
    settled = {}
    for document in first:
        others = [option for name, option in first.items() if name != document and _score(option) >= floors.seconded]
        if option := _choose_option(asked, options[document], others, floors):
            settled[document] = option
    return settled


def _choose_option(
    asked: AnswerSpec, found: Sequence[AnswerOption], others: Sequence[AnswerOption], floors: Floors
) -> AnswerOption | None:
    def weight(option: AnswerOption) -> float:
        seconded = any(agree(asked, option.text, other.text) for other in others)
        return _score(option) + (SECONDED if seconded else 0.0)

    plain = [option for option in found if _score(option) >= SURE]
    best = max(plain or found, key=weight)
    # A document may have but one word of the kind that is asked for, and have it repeatedly.
    only = asked.words and len(found) > 1 and len({fold(one.text).removesuffix("s") for one in found}) == 1
    if weight(best) >= (floors.seconded if others else floors.alone) or only:
        # One nearly as good that says the same more fully: a date with its day, a name with its first name.
        if asked.kind not in ("date", "name") and not asked.words:
            return best
        near = [one for one in found if one.place == best.place and _score(one) >= NEARLY * _score(best)]
        return max([best, *(one for one in near if agree(asked, one.text, best.text))], key=lambda one: len(one.text))
    hints = [one for one in found if _score(one) >= HINT and weight(one) > _score(one)]
    return max(hints, key=_score, default=None)


def _prefer_named(noun: str, found: list[AnswerOption]) -> list[AnswerOption]:
    """Asked which airport, what is called an airport goes before what is not, if it is nearly as likely."""
    best = max(map(_score, found), default=0.0)
    named = [one for one in found if stem(noun) in stems(one.text) and _score(one) >= NEARLY * best]
    return named or found


def _score(option: AnswerOption) -> float:
    return option.stretch.score
