"""Does a statement deny, turn round, harden or widen what its passages say? Negation, direction, hedge and scope."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openassay.text.negation import (
    OPPOSITES,
    ClauseWord,
    Cue,
    Direction,
    clause_words,
    find_directions,
    find_hedges,
    find_negations,
    select_soft_words,
)
from openassay.text.sentences import split_sentences
from openassay.text.words import STOP_WORDS, stem
from openassay.verification.problems import StatementProblem


@dataclass(frozen=True, slots=True)
class _SentencePolarity:
    """One sentence with everything that can turn it round."""

    text: str
    content: frozenset[str]
    negations: tuple[Cue, ...]
    hedges: tuple[Cue, ...]
    turns: tuple[Direction, ...]

    def overlap(self, other: "_SentencePolarity") -> int:
        return len(self.content & other.content)


def _read_sentences(text: str) -> list[_SentencePolarity]:
    pieces = [piece.text for piece in split_sentences(text)] or [text]
    return [
        _SentencePolarity(
            piece,
            _content_stems(clause_words(piece)),
            find_negations(piece),
            find_hedges(piece),
            find_directions(piece),
        )
        for piece in pieces
    ]


def _content_stems(found: Sequence[ClauseWord]) -> frozenset[str]:
    return frozenset(word.stem for word in found if word.text not in STOP_WORDS)


def check_polarity(statement: str, quotes: Sequence[str]) -> Iterator[StatementProblem]:
    readings = [reading for quote in quotes for reading in _read_sentences(quote)]
    for ours in _read_sentences(statement):
        if not readings or any(ours.text == reading.text for reading in readings):
            continue
        behind = _find_basis(ours, readings)
        yield from _check_negations(ours, behind)
        yield from _check_directions(ours, readings)
        yield from _check_opposites(ours, behind)
        yield from _check_hedges(ours, behind)
        yield from _check_scope(ours, readings)


_LEAST_SHARED = 2  # words a further sentence of the passages must bring to be one of those behind a statement


def _find_basis(ours: _SentencePolarity, readings: Sequence[_SentencePolarity]) -> list[_SentencePolarity]:
    """The sentences a statement is made of: the one that shares most words with it, then what has most of the rest."""
    left, chosen = ours.content, list[_SentencePolarity]()
    while rest := [reading for reading in readings if reading not in chosen]:
        best = max(rest, key=lambda reading: (len(left & reading.content), -len(reading.content - ours.content)))
        shared = len(left & best.content)
        if shared < (_LEAST_SHARED if chosen else 1):
            break
        chosen.append(best)
        left = left - best.content
    return chosen


# Words that deny without a negation of their own; a statement may turn them into one.
_DENYING = re.compile(
    r"\b(?:un\w{3,}(?:ed|able|ful|ing|nown|ear)|im?possible|absen\w+|lack\w*|few|only|fail\w*|against|exclu\w+|"
    r"reject\w*|oppos\w+|ban|bans|banned|prohibit\w*|forbid\w*|forbade|illegal\w*|prevent\w*|stop\w*|ceas\w+|refus\w+|avoid\w*|false|wrong|untrue|"
    r"former|formerly|different\w*|missing|insufficient\w*|inconclusive|zero|unlike|"
    r"withdr[ae]w\w*|cancel\w*|halt\w*|suspend\w*|block\w*|declin\w+|in(?:valid|effective|accurate|complete))\b",
    re.I,
)


def _check_negations(ours: _SentencePolarity, behind: Sequence[_SentencePolarity]) -> Iterator[StatementProblem]:
    """Each denial has its counterpart, one for one. A denying word that only one side has may stand for one."""
    theirs = [(reading, cue) for reading in behind for cue in reading.negations]
    for cue in ours.negations:
        match = next((pair for pair in theirs if _have_common_scope(cue, pair[1])), None)
        if match:
            theirs.remove(match)
        elif not any(_has_other_denial(reading, ours, cue.scope) for reading in behind):
            yield StatementProblem("negation", f'the statement says "{cue.cue}" where the quoted passage does not')
    for reading, cue in theirs:
        if _covers_denial(cue, ours) and not _has_other_denial(ours, reading, cue.scope):
            yield StatementProblem("negation", f'the quoted passage says "{cue.cue}" and the statement does not')
    yield from _check_prefixes(ours, behind)


def _have_common_scope(cue: Cue, other: Cue) -> bool:
    if not cue.scope or not other.scope:  # "did not, however, rise"
        return True
    return bool({*cue.scope, cue.word} & {*other.scope, other.word} - {""})


def _has_other_denial(reading: _SentencePolarity, other: _SentencePolarity, scope: Sequence[str]) -> bool:
    """Whether a sentence has a denying word that the other one does not have, beside what the other one's cue denies:
    "rejected the bill" for "did not accept the bill"."""
    known = {word.text for word in clause_words(other.text)}
    found = clause_words(reading.text)
    return any(
        _DENYING.fullmatch(word.text)
        and word.text not in known
        and {stem(_PREFIX.sub("", word.text)), *_stems_near(found, at)} & set(scope)
        for at, word in enumerate(found)
    )


def _stems_near(found: Sequence[ClauseWord], at: int) -> set[str]:
    return {word.stem for word in found[max(0, at - _NEAR) : at + _NEAR]}


_NEAR = 5  # words


def _covers_denial(cue: Cue, ours: _SentencePolarity) -> bool:
    """Whether the statement speaks of what was denied; a denial at the end of a sentence denies all of it."""
    shared = sum(word in ours.content for word in cue.scope)
    return not cue.scope or cue.word in ours.content or 2 * shared > len(cue.scope)


_PREFIX = re.compile(
    r"^(?:un|in|im|ir|il|dis|non|non-)(?=\w{4})"
    r"(?!play|cover|count|come|side|form|vest|port|press|crease|ted|patch|tend)"  # "display" denies no play
)


def _check_prefixes(ours: _SentencePolarity, behind: Sequence[_SentencePolarity]) -> Iterator[StatementProblem]:
    """ "Legal" where the passage says "illegal"."""
    mine = {word.text for word in clause_words(ours.text)}
    theirs = {word.text for reading in behind for word in clause_words(reading.text)}
    for said, offered in ((mine - theirs, theirs - mine), (theirs - mine, mine - theirs)):
        for word in sorted(said):
            if (bare := _PREFIX.sub("", word)) != word and bare in offered:
                yield StatementProblem("negation", f'one says "{word}" and the other "{bare}"')


def _check_directions(ours: _SentencePolarity, readings: Sequence[_SentencePolarity]) -> Iterator[StatementProblem]:
    for turn in ours.turns:
        rivals = [
            (len(turn.clause & other.clause), ours.overlap(reading), other)
            for reading in readings
            for other in reading.turns
            if other.family == turn.family
        ]
        best = max((rival[:2] for rival in rivals), default=(0, 0))
        # Without a word in common the two clauses are about the same only if the sentences plainly are.
        if not best[0] and 2 * best[1] < len(ours.content):
            continue
        nearest = [rival[2] for rival in rivals if rival[:2] == best]
        if nearest and all(other.rises != turn.rises for other in nearest):
            said = f'the statement says "{turn.cue}" where the quoted passage says "{nearest[0].cue}"'
            yield StatementProblem("direction", said)


def _check_opposites(ours: _SentencePolarity, behind: Sequence[_SentencePolarity]) -> Iterator[StatementProblem]:
    """A word of which the passage has the opposite, and not the word itself."""
    mine = {word.text.removesuffix("'s") for word in clause_words(ours.text)}
    theirs = {word.text.removesuffix("'s") for reading in behind for word in clause_words(reading.text)}
    for word in sorted(mine - theirs):
        for opposite in sorted(OPPOSITES.get(word, frozenset()) & (theirs - mine)):
            yield StatementProblem(
                "direction", f'the statement says "{word}" where the quoted passage says "{opposite}"'
            )


def _check_hedges(ours: _SentencePolarity, behind: Sequence[_SentencePolarity]) -> Iterator[StatementProblem]:
    mine = {word.text for word in clause_words(ours.text)}
    for reading in behind:
        theirs = {word.text for word in clause_words(reading.text)}
        softened = bool(select_soft_words(mine) - theirs)  # "may" for "is expected to"
        for cue in reading.hedges:
            if (
                _covers_hedge(cue, ours)
                and not softened
                and not any(_have_common_scope(cue, other) for other in ours.hedges)
            ):
                yield StatementProblem(
                    "hedge", f'the quoted passage says "{cue.cue}" and the statement asserts it flatly'
                )


def _covers_hedge(cue: Cue, ours: _SentencePolarity) -> bool:
    """Whether the statement is about what the hedge qualifies."""
    shared = sum(word in ours.content for word in cue.scope)
    return bool(cue.scope) and ((bool(cue.word) and cue.word in ours.content) or 2 * shared > len(cue.scope))


# Words that widen or narrow a statement to all, none but one, or the extreme; a family may stand for each other.
_SCOPES = tuple(
    frozenset(family.split())
    for family in (
        "alone only solely exclusively just merely",
        "all every each entire entirely whole always any",
        "largest biggest greatest",
        "smallest least lowest minimum",
        "highest top maximum record peak",
        "most majority",
        "first earliest",
        "unique sole",
    )
)


def _split_by_denial(text: str) -> tuple[set[str], set[str]]:
    """The words that no "not" stands before, and the others: "not only" narrows nothing."""
    found = clause_words(text)
    denied = {at + 1 for at, word in enumerate(found) if word.text == "not" or word.text.endswith("n't")}
    affirmed = {word.text for at, word in enumerate(found) if at not in denied}
    return affirmed, {found[at].text for at in denied if at < len(found)}


def _check_scope(ours: _SentencePolarity, readings: Sequence[_SentencePolarity]) -> Iterator[StatementProblem]:
    behind = [_split_by_denial(reading.text) for reading in readings]
    offered, refused = ({word for one in behind for word in one[side]} for side in (0, 1))
    said, denied = _split_by_denial(ours.text)
    for family in _SCOPES:
        if (widened := said & family) and not offered & family:
            yield StatementProblem("scope", f'the statement says "{min(widened)}" and the quoted passage does not')
        elif (turned := denied & family) and (flat := offered & family) and not refused & family:
            said_there = f'where the quoted passage says "{min(flat)}"'
            yield StatementProblem("scope", f'the statement says "not {min(turned)}" {said_there}')
