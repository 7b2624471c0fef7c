"""Stretches of a text that may be what a question wants: names, classes, dates, figures and places."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from openassay.reasoning.rules.short_answers.question import (
    COUNTRIES,
    EXAMPLES_BY_KIND,
    STATES,
    AnswerSpec,
    word_pattern,
)
from openassay.text.nationalities import NATIONALITIES
from openassay.text.words import fold, stem, stems

# Names as they stand in running text: capitalised runs, freed from what only stands beside them.

NAME = re.compile(
    r"(?<![\w’'-])(?:The )?[A-ZÀ-ÖØ-Þ][\w’'.&/-]*"
    r"(?: (?:of the|of|de la|de|da|del|di|van der|van|von|al-|bin|ibn|the|and the|&)(?= [A-ZÀ-Ý])|"
    r" [A-ZÀ-ÖØ-Þ0-9][\w’'.&/-]*)*"
)
PLACE = re.compile(
    r"(?<![\w’'-])[A-ZÀ-Ý][\w’'.-]*(?:(?: of| and| upon| the)? [A-ZÀ-Ý][\w’'.-]*)*"
    r"(?: ?, [A-ZÀ-Ý][\w’'.-]*(?: (?:of |and )?[A-ZÀ-Ý][\w’'.-]*)*){0,3}"
)
_NO_NAME = frozenset(
    "the a an it he she they this that these those in on at of by for from to with and or but as if is was are were "
    "his her its their when where who what which after before during since until retrieved archived external "
    "references history edit see also wikipedia main article categories category january february march april may june "
    "july august september october november december sunday monday tuesday wednesday thursday friday saturday".split()
)


# Labels of a box beside an article run into the names around them.
_LABEL = (
    r"(?:Directed|Written|Produced|Starring|Released|Recorded|Genre|Genres|Label|Length|Studio|Producer|Producers|"
    r"Hidden|Categories|Category|Retrieved|Archived|Screenplay|Story|Cinematography|Edited|Distributed|Country|"
    r"Language|Born|Died|Occupation|Nationality|Personnel|Track|References|External|See|Quick|Facts|Singles|Studios|"
    r"Films|Albums|Statements|Articles|Pages|Website|Writer|Writers|Director|Directors)\b"
)
_CUT = re.compile(
    rf" (?={_LABEL})|(?<=[a-zà-ÿ0-9]{{2}})\. |"
    r" (?=(?:The|It|He|She|In|This|As|On|At|And|With|After|For|From|A|An|I)\b(?! ?[.]))(?<!of )"
)


def find_capital_runs(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Capitalised stretches without the small words, months and labels at their ends, or possessive endings."""
    for found in pattern.finditer(text):
        # A run ends where a sentence does, and where the next one or a label begins.
        runs, start = [], found.start()
        for cut in _CUT.finditer(text, start, found.end()):
            if cut.start() > start:
                runs.append((start, cut.start()))
                start = cut.end()
        runs.append((start, found.end()))
        for start, end in runs:
            while start < end:
                first, _, rest = text[start:end].partition(" ")
                titled = first == "The" and rest[:1].isupper()
                if (fold(first.strip(".,")) not in _NO_NAME or titled) and not re.match(_LABEL, first):
                    break
                start = end - len(rest)
            kept = text[start:end].rstrip(" .,’'&/-")
            for tail in ("'s", "’s"):
                kept = kept.removesuffix(tail)
            nation = word_pattern(NATIONALITIES).fullmatch(kept)
            if kept and fold(kept) not in _NO_NAME and not kept.isdigit() and not nation:
                yield start, start + len(kept)


def strip_subject(subject: str, text: str, start: int, end: int) -> tuple[int, int]:
    """A run without the subject's name at its end: an artist and his album may stand side by side."""
    first = subject.split(",")[0].split(" ")[0]
    at = re.search(rf" {re.escape(first)}\b", text[start:end]) if len(first) > 2 else None
    return (start, start + at.start()) if at and at.start() > 2 else (start, end)


# A text as an answer is looked for in it: its words, the ends of its sentences, where it has the question's words.

LONGEST_ANSWER = 12  # words of an answer
SYNONYM = 0.88  # of the weight of the question's own word
EARLY = 0.15  # what opens a text is what it is about
_WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*")
_STOP = re.compile(r"(?<![A-Z])(?<!\b(?:St|Dr|Mr|No|Lt|Jr|Sr))(?<=[\w)\]\"'”’])\s?[.!?](?=\s+[A-Z\"“(\[]|\s*$)")


class CandidateSpan(NamedTuple):
    """A part of a text, and how well it fits, 0 to 1."""

    start: int
    end: int
    score: float

    def text_in(self, text: str) -> str:
        return text[self.start : self.end]


class WordToken(NamedTuple):
    start: int
    end: int
    stem: str


@lru_cache(maxsize=65_536)
def _stem_word(word: str) -> str:
    return stem(fold(word))


class TextView:
    """A text with its words, the ends of its sentences, and where it has the cues and the subject."""

    def __init__(self, wanted: AnswerSpec, text: str) -> None:
        self.text = text
        self.words = [WordToken(m.start(), m.end(), _stem_word(m.group())) for m in _WORD.finditer(text)]
        self.stops = [m.end() for m in _STOP.finditer(text)]
        self.cues = [(self._find_words(frozenset({own})), self._find_words(alike)) for own, alike in wanted.cues]
        self.marks = [at for own, alike in self.cues for at in (*own, *alike)]  # of all cues
        self.loose = self._find_words(wanted.loose)
        self.against = self._find_words(wanted.against)
        self.needed = self._find_words(wanted.needs) if wanted.needs else None
        self.subject = self._find_words(frozenset(stems(wanted.subject)))

    def _find_words(self, among: frozenset[str]) -> list[int]:
        return [at for at, word in enumerate(self.words) if word.stem in among]

    def word_index(self, place: int) -> int:
        """Of the first word that ends after a place."""
        return bisect_right(self.words, place, key=lambda word: word.end)

    def count_stops(self, first: int, second: int) -> int:
        """Sentence ends between two places."""
        low, high = min(first, second), max(first, second)
        return sum(low < stop <= high for stop in self.stops)

    def closeness(self, start: int, end: int, marks: list[int]) -> float:
        """How close the nearest of some words stands; one ahead counts more than one behind."""
        left, right = self.word_index(start), self.word_index(end - 1) + 1
        best = 0.0
        for at in marks:
            if left <= at < right:
                continue
            gap = left - at - 1 if at < left else at - right + 2
            gap += 12 * self.count_stops(self.words[at].start, start)
            best = max(best, 1 / (1 + gap / 5))
        return best

    def subject_closeness(self, start: int, end: int) -> float:
        """How close the subject's name stands; a text without it may well speak of it all the same."""
        return self.closeness(start, end, self.subject) if self.subject else 0.5

    def cue_closeness(self, start: int, end: int) -> float:
        """How close the question's words stand: the nearest of them first of all, then the others."""
        each = [
            max(self.closeness(start, end, own), SYNONYM * self.closeness(start, end, alike))
            for own, alike in self.cues
            if own or alike
        ]
        return 0.5 * max(each) + 0.5 * sum(each) / len(each) if each else 0.0

    def has_cue_ahead(self, start: int, most: int = 4) -> bool:
        at = self.word_index(start)
        return any(at - most <= cue < at for cue in self.marks)

    def is_other_matter(self, start: int, end: int) -> bool:
        """Whether a word of another matter stands nearer than the question's, or what must be said there is not."""
        own = self._distance(start, end, self.marks if self.needed is None else self.needed)
        return self._distance(start, end, self.against) < own or (self.needed is not None and own == float("inf"))

    def _distance(self, start: int, end: int, marks: list[int]) -> float:
        left, right = self.word_index(start), self.word_index(end - 1)
        here = [at for at in marks if not left <= at <= right and not self.count_stops(self.words[at].start, start)]
        return min((left - at if at < left else at - right for at in here), default=float("inf"))

    def follows_cue(self, start: int) -> bool:
        """Whether a cue and a small word stand just ahead: "population of 837"."""
        at = self.word_index(start)
        return "of" in {word.stem for word in self.words[max(0, at - 3) : at]} and self.has_cue_ahead(start, 3)

    def earliness(self, start: int) -> float:
        return EARLY * (1 - start / max(1, len(self.text)))


IN_BRACKETS = re.compile(r"\( ?([^()]{2,60}?) ?\)")

_DESCRIBES = re.compile(r" [a-z][a-z-]*(?: [a-z][a-z-]*){0,2} ")  # "the Tangut ruler Li Deming"
_IS_OR_COLON = re.compile(r"(?:\b(?:is|was|are|were)|:) $")
_BY = re.compile(r"\b(?:by|son of|daughter of|father ,?|wife of|husband of|widow of|married)(?: the)?(?= )")
_BY_END = re.compile(
    r" ?[,;:.!?()\[\]\"“”|](?<!\b[A-Z]\.)| ''| ``| (?:in|on|at|for|from|with|that|which|who|whom|released|is|was|"
    r"featuring|as|to|after|under|through|about|into|while|when|starring|and|first|during|[12]\d{3})\b"
)
_DONE = re.compile(r"\w{3,}(?:ed|tten|wn|ught) ")
_BY_LONGEST = 90  # characters
_TAKES = re.compile(r" (?:as|became|becomes|is|was)(?: (?:the|its|their|new|a|an))* ")


_OFFICES = frozenset(map(stem, "ceo executive chairman chairwoman president mayor minister governor".split()))
_ALIAS = re.compile(
    r"\b(?:(?:commonly|also|formerly|now|today|originally|previously|historically) )?(?:known as|called|named|renamed|"
    r"written|(?:the )?modern(?:-day)?(?: (?:town|city|village|name)(?: of)?)?|present-day|stands for|"
    r"abbreviation (?:of|for))(?: (?:the|a|an))? "
)
_ALIAS_END = re.compile(r" ?[,;:.()\[\]\"“”]| (?:or|and|is|was|in|on|by|at|that|which)\b")


def find_names(wanted: AnswerSpec, read: TextView) -> Iterator[CandidateSpan]:
    text, own = read.text, set(stems(wanted.subject))
    yield from _find_after_by(wanted, read)
    # What tells things of one name apart stands in brackets after it: "VII (Blitzen Trapper album)".
    for found in IN_BRACKETS.finditer(text) if wanted.subject else ():
        ahead = text[max(0, found.start() - len(wanted.subject) - 3) : found.start()]
        if fold(wanted.subject)[-12:] not in fold(ahead):
            continue
        inside, start = found[1], found.start(1)
        runs = [run for run in find_capital_runs(inside, NAME) if run[0] == 0]
        tail = set(stems(inside[runs[0][1] :])) if runs else set()
        if runs and (tail & wanted.cue_stems or not tail):
            yield CandidateSpan(start, start + runs[0][1], 0.88)
    # What a thing is called, where its name is asked for; such a name may be written small.
    for found in _ALIAS.finditer(text) if wanted.cue_stems & {"name", "stand", "call"} else ():
        stop = _ALIAS_END.search(text, found.end())
        end = stop.start() if stop else found.end()
        if 0 < len(text[found.end() : end].split()) <= 5:
            yield CandidateSpan(found.end(), end, 0.6 + 0.25 * read.subject_closeness(found.start(), found.end()))
    yield from find_expansions(wanted, read)
    office = wanted.cue_stems & _OFFICES
    runs = [strip_subject(wanted.subject, text, *run) for run in find_capital_runs(text, NAME)]
    runs = [run for run in runs if not set(stems(text[run[0] : run[1]])) <= own]
    for (start, end), follower in zip_longest(runs, runs[1:]):
        score = 0.55 * read.cue_closeness(start, end) + 0.12 * read.subject_closeness(start, end)
        if follower and _DESCRIBES.fullmatch(text, end, follower[0]):
            score -= 0.15
        at = read.word_index(end)
        after = {word.stem for word in read.words[at : at + 4]}
        if re.compile(r" ?['’]s? ").match(text, end) and after & (wanted.cue_stems | own):  # "Jackson's second album"
            score = max(score, 0.9)
        if _IS_OR_COLON.search(text, max(0, start - 6), start) and read.has_cue_ahead(start, 4 + len(own)):
            score = max(score, 0.85)
        if office and (taken := _TAKES.match(text, end)):  # "appointed Marta Silva as chief executive"
            at = read.word_index(taken.end())
            score = max(score, 0.85) if office & {word.stem for word in read.words[at : at + 2]} else score
        # "Koltsevaya line" and "1982 Lebanon War", where a line or a conflict is asked for.
        if wanted.noun and (kind := re.compile(rf" {re.escape(wanted.noun)}\b").match(text, end)):
            end, score = kind.end(), max(score, 0.85)
        if wanted.noun and set(stems(text[start:end])[-2:]) & wanted.cue_stems:
            score = max(score, 0.8)
            start -= 5 if re.search(r"\b[12]\d{3} $", text[max(0, start - 6) : start]) else 0
        yield CandidateSpan(start, end, min(1.0, score + read.earliness(start)))


def _find_after_by(wanted: AnswerSpec, read: TextView) -> Iterator[CandidateSpan]:
    """ "directed by the Scottish author Muriel Spark": the first name of the phrase that does not only describe
    another, if a cue stands just ahead."""
    text, own = read.text, set(stems(wanted.subject))
    for found in _BY.finditer(text):
        stop = _BY_END.search(text, found.end())
        close = min(stop.start() if stop else len(text), found.end() + _BY_LONGEST)
        runs = [(found.end() + a, found.end() + b) for a, b in find_capital_runs(text[found.end() : close], NAME)]
        while len(runs) > 1 and _DESCRIBES.fullmatch(text, runs[0][1], runs[1][0]):
            runs.pop(0)
        # Words from a cue to "by"; none where there is no cue in the sentence. "Son of" is a cue by itself.
        at = read.word_index(found.start())
        last, by = read.words[at - 1] if at else None, found.group().startswith("by")
        # "Scored by", where the director is asked for; "directed and written by" will do.
        other = last and last.stem not in wanted.cue_stems and _DONE.fullmatch(text, last.start, found.start())
        joined = at > 2 and read.words[at - 2].stem == "and" and read.words[at - 3].stem in wanted.cue_stems
        gap: int | None = None
        if {stem(fold(word)) for word in found.group().split()} & wanted.cue_stems:
            gap = 0
        elif by and at - 1 in read.subject and (joined or not other):
            gap = 2  # "The Grey Ferry by Ada Quill"
        elif by and (joined or not other):
            gaps = [at - cue for cue in read.marks if 0 < at - cue <= 8]
            near = [words for words in gaps if not read.count_stops(read.words[at - words].start, found.start())]
            gap = min(near, default=None)
        if gap is not None and runs and not set(stems(text[runs[0][0] : runs[0][1]])) <= own:
            start, end = runs[0]
            nation, *others = text[start:end].split(" ")
            if len(others) > 1 and word_pattern(NATIONALITIES).fullmatch(nation):
                start += len(nation) + 1
            run = strip_subject(wanted.subject, text, start, end)
            yield CandidateSpan(*run, min(1.0, 0.96 - 0.03 * gap + read.earliness(found.start())))


def find_expansions(wanted: AnswerSpec, read: TextView) -> Iterator[CandidateSpan]:
    """What an abbreviation stands for: a name of which it has the initials."""
    short = wanted.subject.replace(".", "")
    if not (short.isupper() and short.isalpha() and 2 <= len(short) <= 7):
        return
    if wanted.question_stems & {"stand", "refer", "abbrevi", "mean"}:
        words = " ".join(rf"(?:(?:of|the|and|for|in|on) )?{letter}[\w’'-]*\.?" for letter in short)
        for found in re.finditer(rf"\b{words}", read.text):
            yield CandidateSpan(found.start(), found.end(), 0.86)


# What somebody or something is: sports, professions, genres and the like, as a sentence says "X is a Y".

_PHRASE_END = re.compile(
    r" ?[,;:.!?()\[\]\"“”|]| ''| ``| (?:who|whom|which|that|where|when|directed|written|starring|based|released|by|"
    r"located|situated|published|produced|created|and (?:is|was|the|later|former)|known|from|during|since|after|before|"
    r"with|about|featuring|recorded|formed|founded|set|playing|played|is|was|has|had|on|at|as|born|between)\b"
)
_IS_A = re.compile(
    r"\b(?:is|was|are|were|became|remains)(?: (?:also|currently|best|primarily|perhaps|now|usually|generally|both))?"
    r"(?: known as)?(?: (?:a|an|the|one of the))?(?= )"
)
_NO_CLASS = re.compile(r"\b(?:stub|article|part of|series of|list|disambiguation|page|same|way|result|case)\b", re.I)
_TRAILING = re.compile(r"(?: (?:of|to|the|in|for|a|an|and|or|with|his|her|its|is|then|as|by|on|at))+$")
_OPENING = re.compile(r"(?:^|[.] |\bas )[Aa]n? ((?:[\w-]+ ){0,4}[\w-]+)(?=,? (?:he|she|it|to|in|of|from)\b|,)")


_RIGHT = re.compile(r"-language\b| (?:player|[Pp]arty|rider|riding|driver|driving|testing|runner|running)\b")
_LEFT = re.compile(r"(?:\b(?!The |A |An |In |He |She |His |Her )[A-Z][\w-]* )+$")
_LABELS = {"profession": "profession|occupation", "medium": "medium|format|media type"}
_VALUE = re.compile(r"[A-Z][\w/&-]*(?: [A-Z][\w/&-]*)?")
_LABEL_GAP = re.compile(r" ?(?:\( ?s ?\))? ?:? ?")


def find_classes(wanted: AnswerSpec, read: TextView) -> Iterator[CandidateSpan]:
    yield from _find_definitions(wanted, read)
    known = wanted.words or EXAMPLES_BY_KIND.get(wanted.noun)
    # "A defender, he began": what somebody was, ahead of what he did; "elected as a Democrat".
    for found in _OPENING.finditer(read.text) if known else ():
        if hit := word_pattern(known or ()).search(read.text, found.start(1), found.end(1)):
            start, end = hit.span() if wanted.words else found.span(1)
            yield CandidateSpan(start, end, 0.55 + 0.15 * read.subject_closeness(start, end) + read.earliness(start))
    yield from _find_labels(wanted, read)
    # "Tim Martin (American football)": what is in brackets after the subject's name.
    for found in IN_BRACKETS.finditer(read.text):
        ahead = read.text[max(0, found.start() - 40) : found.start()]
        if not set(stems(wanted.subject)[-1:]) & set(stems(ahead)[-2:]) or re.search(r"\d{3}|born|^also|_", found[1]):
            continue
        if wanted.words:
            if hit := word_pattern(wanted.words).search(read.text, found.start(1), found.end(1)):
                yield CandidateSpan(*_extend_phrase(wanted, read.text, hit.start(), hit.end()), 0.85)
        elif len(found[1].split()) <= 4 and found[1][:1].islower():
            yield CandidateSpan(found.start(1), found.end(1), 0.6)
    # "a Spanish Tropical format", "378th Fighter Squadron": words that end in what is asked for or go on from the name.
    if wanted.noun and not wanted.words:
        for found in re.finditer(rf"\b(?:an?|the) ((?:[\w/-]+ ){{1,4}}{re.escape(wanted.noun)})\b", read.text):
            start, end = found.span(1)
            yield CandidateSpan(start, end, 0.72 + 0.3 * read.subject_closeness(start, end))
    if wanted.subject and wanted.cue_stems & {"unit", "institut", "organ", "squadron"}:
        more = r"((?:(?!The |It |He |In |A )[A-Z][\w-]* ?){1,4})"
        for found in re.finditer(rf"\b{re.escape(wanted.subject)} {more}", read.text):
            start = found.start()
            yield CandidateSpan(start, start + len(found.group().rstrip()), 0.8 + read.earliness(start))
    yield from find_expansions(wanted, read)
    if known:
        own = set(stems(wanted.subject))
        for found in word_pattern(known).finditer(read.text):
            start, end = _extend_phrase(wanted, read.text, found.start(), found.end())
            # "A Single Man" is no single
            named = read.text[start].isupper() and set(stems(read.text[start:end])) <= own
            if named or (wanted.noun == "party" and read.text[start].islower()):
                continue
            near, cue = read.subject_closeness(start, end), read.cue_closeness(start, end)
            yield CandidateSpan(start, end, 0.1 + 0.3 * near + 0.25 * cue + read.earliness(start))


def _find_definitions(wanted: AnswerSpec, read: TextView) -> Iterator[CandidateSpan]:
    """ "X is an English former footballer who ...": the phrase, or the word of the kind in it."""
    text, known = read.text, EXAMPLES_BY_KIND.get(wanted.noun)
    for found in _IS_A.finditer(text):
        start = found.end() + 1
        stop = _PHRASE_END.search(text, start)
        phrase = _TRAILING.sub("", text[start : stop.start() if stop else len(text)].rstrip())
        article = found.group().endswith((" a", " an", " the"))
        fits = 1 <= len(phrase.split()) <= LONGEST_ANSWER and (article or word_pattern(NATIONALITIES).match(phrase))
        if not fits or _NO_CLASS.search(phrase):
            continue
        score = 0.4 + 0.3 * read.subject_closeness(found.start(), found.end()) + 2 * read.earliness(start)
        if not wanted.words:
            score += 0.0 if known is None else 0.15 if word_pattern(known).search(phrase) else -0.3
            yield CandidateSpan(start, start + len(phrase), min(1.0, score))
        elif hit := word_pattern(wanted.words).search(text, start, start + len(phrase)):
            yield CandidateSpan(*_extend_phrase(wanted, text, hit.start(), hit.end()), min(1.0, score + 0.2))


def _extend_phrase(wanted: AnswerSpec, text: str, start: int, end: int) -> tuple[int, int]:
    """The name a listed word is part of: "Quebec Liberal Party", "snooker player"."""
    if wanted.noun == "party" and text[start].isupper() and (left := _LEFT.search(text[max(0, start - 30) : start])):
        start -= len(left.group()) if len(left.group().split()) <= 2 else 0
    right = _RIGHT.match(text, end)
    return start, right.end() if right else end


def _find_labels(wanted: AnswerSpec, read: TextView) -> Iterator[CandidateSpan]:
    """ "Genre Dance", "Position(s): Defender": a label and its value, as in a table."""
    if not wanted.noun:
        return
    for found in re.finditer(rf"\b(?:{_LABELS.get(wanted.noun, re.escape(wanted.noun))})s?\b", read.text, re.I):
        gap = _LABEL_GAP.match(read.text, found.end())
        start = gap.end() if gap else found.end()
        value = _VALUE.match(read.text, start)
        if not value or not found.group()[:1].isupper():
            continue
        if not wanted.words:
            yield CandidateSpan(start, value.end(), 0.6)
        elif hit := word_pattern(wanted.words).search(read.text, start, value.end()):
            yield CandidateSpan(*_extend_phrase(wanted, read.text, hit.start(), hit.end()), 0.6)


# Dates that may be what a question wants.

MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|"
    r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_YEAR_TEXT = r"(?:1[0-9]\d\d|20\d\d)(?![\d,]\d|\d| ?%)"
_DAY = r"[0-3]?\d(?:st|nd|rd|th)?"
_KIN = re.compile(r"\b(father|mother|wife|husband|brother|sister|son|daughter|widow|parents)\b[^.(]*$")
DATE = re.compile(
    rf"(?<![\w.,/-])(?:"
    rf"{_DAY} (?:of )?{MONTH} ?,? {_YEAR_TEXT}|{MONTH} {_DAY} ?, "
    rf"{_YEAR_TEXT}|{MONTH} {_DAY} {_YEAR_TEXT}|\d{{4}}-\d\d-\d\d|"
    rf"(?:the )?(?:(?:early|mid|late)[ -](?:the )?)?\d{{3}}0['’]?s\b|"
    rf"(?:(?:about|around|circa|between|c\.|ca\.|late|early|mid) ?-?)?(?:{MONTH},? )?"
    rf"{_YEAR_TEXT}(?:(?: ?[–—-] ?| to | and ){_YEAR_TEXT}|[–-]\d\d\b)?)"
)


def find_dates(wanted: AnswerSpec, read: TextView) -> Iterator[CandidateSpan]:
    born, died = "born" in wanted.cue_stems, "die" in wanted.cue_stems
    text = read.text
    for found in DATE.finditer(text):
        start, end = found.span()
        if read.is_other_matter(start, end):
            continue
        ahead, behind = text[max(0, start - 60) : start], text[end : end + 12]
        score = 0.75 * max(read.cue_closeness(start, end), 0.5 * read.closeness(start, end, read.loose))
        if re.search(r"\b(?:in|on|since|from|about|around|circa|of|between) $", ahead):
            score += 0.08
        if born or died:
            # "His father died in 1685" is no answer on himself.
            kin = _KIN.search(ahead)
            score -= 0.4 if kin is not None and stem(kin[1]) not in wanted.question_stems else 0.0
            opened = ahead.rfind("(")
            inside = ahead[opened:] if opened >= 0 and ")" not in ahead[opened:] else ""
            # Dates in brackets after a name are those of birth and death; "1850 births" is a category.
            if re.match(r" (?:deaths|births)\b", behind[:8]):
                score = 0.8 if ("deaths" in behind[:8]) == died else 0.0
            elif inside and (years := re.fullmatch(r"(\d{3,4}) ?[–—-] ?(\d{3,4})", found.group())):
                start, end = (start + years.start(2), end) if died else (start, start + years.end(1))
                score = 0.72
            elif inside:
                second = re.search(r"\d ?[–—-] ?[^()]{0,12}$|\bdied|\bd\.", inside)
                spans = re.match(r" ?[–—-]", behind[:4]) or re.search(r"\bborn|\bb\.", inside)
                score = 0.9 if (second if died else spans and not second) else min(score, 0.3)
        elif re.search(r"\( ?$", ahead) and re.match(r" ?\)", behind):
            score -= 0.2  # a year in brackets tells which thing is meant, or how long it was
        if re.search(r"(?:Retrieved|Archived|accessed|UPDATED|Date:)(?!\w)[^.]{0,12}$", ahead):
            score -= 0.4
        if re.search(r"\b[Rr]e-?(?:issue|release|built|build|open|establish|found|form)\w*[^.]*$", ahead):
            score -= 0.2
        parts = min(2, len(found.group().split()) - 1)
        score += read.earliness(start) + 0.04 * parts + 0.15 * read.subject_closeness(start, end)
        yield CandidateSpan(start, end, min(1.0, max(0.0, score + read.earliness(start))))


# Figures that may be what a question wants, with their units.

UNIT = 0.7  # a figure with the unit that is asked for

_ABOUT = r"(?:(?:about|approximately|around|over|nearly|some|estimated) )?"
NUMBER = re.compile(
    rf"(?<![\w.,/$€£−-]){_ABOUT}[$€£]?\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?(?![\d%])|"
    rf"(?<![\w.,/−-]){_ABOUT}[$€£]?\d+(?:\.\d+)?(?: (?:million|billion|thousand))?(?![\d,.%]\d|[\d%]| %)"
)
_UNIT = re.compile(
    r" ?(?:people|inhabitants|residents|persons|years?|cc|km|kilometres|kilometers|miles|metres|meters|feet|ft|m|"
    r"libraries|members|students|households|acres|hectares|mg|kg|tonnes|"
    r"square miles|square kilometres|employees|seats)\b"
)
_YEAR_FIGURE = re.compile(r"1[5-9]\d\d|20\d\d")
# What follows or precedes a figure that counts something else, or nothing.
_OF_OTHERS = re.compile(
    r" ?(?:%|per cent|percent|/|households|families|housing|square|sq|km|per\b|"
    rf"(?:people |persons |inhabitants )?per |±)|\s?{MONTH}"
)
_NO_FIGURE = re.compile(
    rf"(?:{MONTH} |density (?:was|of) |\[ ?|[Nn]o\. |± ?|[$€£] |\b(?:ages? of(?: \d+ and)?|under|over the age of) )$"
)
_PER = re.compile(r" ?per\b")
_MONEY = frozenset(map(stem, "income cost price budget revenue salary dividend turnover profit loss debt".split()))
_CURRENCY = re.compile(
    r"[$€£¥₹]|(?: million| billion| thousand)? ?(?:[A-Z]{3}|US|euros?|dollars?|pounds?|rupees?|yen|yuan|francs?)\b"
)
_MANY = re.compile(r"\bhow many (\w+)")
_STATES_FIGURE = re.compile(r"(?:\b(?:was|is|were|had|has|about|approximately|over)|:) $")


def find_numbers(wanted: AnswerSpec, read: TextView) -> Iterator[CandidateSpan]:
    text, of_age = read.text, bool(wanted.cue_stems & {"age", "old", "long"})
    of_money = bool(wanted.cue_stems & _MONEY)
    many = [stem(noun) for noun in _MANY.findall(wanted.question)]
    for found in NUMBER.finditer(text):
        start, end = found.span()
        ahead = text[max(0, start - 20) : start]
        others = _OF_OTHERS.match(text, end) and not ("per" in wanted.question.split() and _PER.match(text, end))
        if _YEAR_FIGURE.fullmatch(found.group()) or others or _NO_FIGURE.search(ahead):
            continue
        if read.is_other_matter(start, end):
            continue
        if of_money and not (_CURRENCY.search(found.group()) or _CURRENCY.match(text, end)):
            continue
        if many and all(read.count_stops(word.start, start) for word in read.words if word.stem == many[0]):
            continue  # the sentence does not have it
        unit = _UNIT.match(text, end)
        counted = stem(unit.group().strip()) if unit else ""
        if counted == "year" and not of_age:
            continue
        score = max(0.8 * read.cue_closeness(start, end), UNIT if counted and counted in wanted.cue_stems else 0.0)
        if many:  # a house number ahead of a street is not what is asked for
            at = read.word_index(end)
            score += 0.1 if many[0] in {word.stem for word in read.words[at : at + 3]} else -0.4
        score += 0.12 if _STATES_FIGURE.search(ahead) or read.follows_cue(start) else 0.0
        score += 0.1 * read.subject_closeness(start, end) + 2 * read.earliness(start)
        yield CandidateSpan(start, unit.end() if unit else end, min(1.0, score))


# Places that may be what a question wants.

_SITED = re.compile(
    r"\b(?:located|situated|based|published|lies|stands|headquartered|serving)\b[^.]*"
    r"\b(?:in|at|near)(?: the)?(?: [a-z]+){0,3} $"
)
_REPUBLIC = re.compile(r"(?:Republic|Kingdom|Commonwealth|State) of (?:the )?$")


def find_places(wanted: AnswerSpec, read: TextView) -> Iterator[CandidateSpan]:
    text, own = read.text, set(stems(wanted.subject))
    listed = word_pattern(wanted.words) if wanted.words else None
    found = ((m.start(), m.end()) for m in listed.finditer(text)) if listed else find_capital_runs(text, PLACE)
    for start, end in found:
        if set(stems(text[start:end])) <= own or not text[start].isupper():
            continue
        ahead = text[max(0, start - 40) : start]
        score = 0.3 * read.cue_closeness(start, end) + 0.25 * read.subject_closeness(start, end) + read.earliness(start)
        score += 0.1 if listed else 0.0
        score += 0.15 if re.search(r"\b(?:in|at|near|of)(?: the)?(?: \w+){0,2} $", ahead) else 0.0
        score += 0.25 if _SITED.search(ahead) else 0.0
        last = text[start:end].split(",")[-1].strip()
        named = word_pattern(STATES).fullmatch(last) or word_pattern(COUNTRIES).fullmatch(last)
        score += 0.2 if named and "," in text[start:end] else 0.0
        full = _REPUBLIC.search(text[max(0, start - 30) : start]) if listed else None
        yield CandidateSpan(start - len(full.group()) if full else start, end, min(1.0, score))
