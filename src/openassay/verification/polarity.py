"""Does a statement deny, turn round, harden or widen what its passages say? Negation, direction, hedge and scope."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from openassay.text import negation
from openassay.text.sentences import split_sentences
from openassay.text.words import STOP_WORDS, stem

ProblemKind = Literal["figure", "unit", "date", "name", "negation", "direction", "hedge", "scope", "spelling"]


@dataclass(frozen=True, slots=True)
class StatementProblem:
    """A disagreement of a statement with its passages: its kind, and a sentence for the reader."""

    kind: ProblemKind
    text: str


@dataclass(frozen=True, slots=True)
class _SentencePolarity:
    """One sentence with everything that can turn it round."""

    text: str
    content: frozenset[str]
    negations: tuple[negation.Cue, ...]
    hedges: tuple[negation.Cue, ...]
    turns: tuple[negation.Direction, ...]


def _read_sentences(text: str) -> list[_SentencePolarity]:
    pieces = [piece.text for piece in split_sentences(text)] or [text]
    return [
        _SentencePolarity(
            piece,
            frozenset(word.stem for word in negation.clause_words(piece) if word.text not in STOP_WORDS),
            negation.find_negations(piece),
            negation.find_hedges(piece),
            negation.find_directions(piece),
        )
        for piece in pieces
    ]


_LEAST_SHARED = 2  # words a further sentence of the passages must bring to be one of those behind a statement


def check_polarity(statement: str, quotes: Sequence[str]) -> Iterator[StatementProblem]:
    """Find where a statement denies, reverses, hardens or widens what its passages say."""
    readings = [reading for quote in quotes for reading in _read_sentences(quote)]
    split = [_split_by_denial(reading.text) for reading in readings]
    offered, refused = ({word for one in split for word in one[side]} for side in (0, 1))
    for ours in _read_sentences(statement):
        if not readings or any(ours.text == reading.text for reading in readings):
            continue
        # The sentences it is made of: the one that shares most words with it, then what has most of the rest.
        left, behind = ours.content, list[_SentencePolarity]()
        while rest := [reading for reading in readings if reading not in behind]:
            best = max(rest, key=lambda one: (len(left & one.content), -len(one.content - ours.content)))
            if len(left & best.content) < (_LEAST_SHARED if behind else 1):
                break
            behind.append(best)
            left = left - best.content
        yield from _check_negations(ours, behind)
        for turn in ours.turns:
            rivals = [
                (len(turn.clause & other.clause), len(ours.content & reading.content), other)
                for reading in readings
                for other in reading.turns
                if other.family == turn.family
            ]
            best_shares = max((rival[:2] for rival in rivals), default=(0, 0))
            # Without a word in common the two clauses are about the same only if the sentences plainly are.
            if not best_shares[0] and 2 * best_shares[1] < len(ours.content):
                continue
            nearest = [rival[2] for rival in rivals if rival[:2] == best_shares]
            if nearest and all(other.rises != turn.rises for other in nearest):
                text = f'the statement says "{turn.cue}" where the quoted passage says "{nearest[0].cue}"'
                yield StatementProblem("direction", text)
        yield from _check_words(ours, behind)
        said, denied = _split_by_denial(ours.text)
        for family in _SCOPES:
            if (widened := said & family) and not offered & family:
                yield StatementProblem("scope", f'the statement says "{min(widened)}" and the quoted passage does not')
            elif (turned := denied & family) and (flat := offered & family) and not refused & family:
                said_there = f'where the quoted passage says "{min(flat)}"'
                yield StatementProblem("scope", f'the statement says "not {min(turned)}" {said_there}')


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
        # Whether the statement speaks of what was denied; a denial at the end of a sentence denies all of it.
        covered = not cue.scope or cue.word in ours.content or _covers_most(cue, ours)
        if covered and not _has_other_denial(ours, reading, cue.scope):
            yield StatementProblem("negation", f'the quoted passage says "{cue.cue}" and the statement does not')
    # "Legal" where the passage says "illegal".
    mine = {word.text for word in negation.clause_words(ours.text)}
    offered = {word.text for reading in behind for word in negation.clause_words(reading.text)}
    for one, other in ((mine - offered, offered - mine), (offered - mine, mine - offered)):
        for word in sorted(one):
            if (bare := _PREFIX.sub("", word)) != word and bare in other:
                yield StatementProblem("negation", f'one says "{word}" and the other "{bare}"')


def _covers_most(cue: negation.Cue, ours: _SentencePolarity) -> bool:
    return 2 * sum(word in ours.content for word in cue.scope) > len(cue.scope)


def _have_common_scope(cue: negation.Cue, other: negation.Cue) -> bool:
    if not cue.scope or not other.scope:  # "did not, however, rise"
        return True
    return bool({*cue.scope, cue.word} & {*other.scope, other.word} - {""})


def _has_other_denial(reading: _SentencePolarity, other: _SentencePolarity, scope: Sequence[str]) -> bool:
    """Whether a sentence has a denying word that the other one does not have, beside what the other one's cue denies:
    "rejected the bill" for "did not accept the bill"."""
    known = {word.text for word in negation.clause_words(other.text)}
    found = negation.clause_words(reading.text)
    return any(
        _DENYING.fullmatch(word.text)
        and word.text not in known
        and {stem(_PREFIX.sub("", word.text)), *(near.stem for near in found[max(0, at - _NEAR) : at + _NEAR])}
        & set(scope)
        for at, word in enumerate(found)
    )


_NEAR = 5  # words


_PREFIX = re.compile(
    r"^(?:un|in|im|ir|il|dis|non|non-)(?=\w{4})"
    r"(?!play|cover|count|come|side|form|vest|port|press|crease|ted|patch|tend)"  # "display" denies no play
)


def _check_words(ours: _SentencePolarity, behind: Sequence[_SentencePolarity]) -> Iterator[StatementProblem]:
    """Find words of which the passage has only the opposite, and hedges that the statement drops."""
    mine = {word.text.removesuffix("'s") for word in negation.clause_words(ours.text)}
    theirs = {word.text.removesuffix("'s") for reading in behind for word in negation.clause_words(reading.text)}
    for word in sorted(mine - theirs):
        for opposite in sorted(negation.OPPOSITES.get(word, frozenset()) & (theirs - mine)):
            said = f'the statement says "{word}" where the quoted passage says "{opposite}"'
            yield StatementProblem("direction", said)
    soft = negation.select_soft_words({word.text for word in negation.clause_words(ours.text)})
    for reading in behind:
        if soft - {word.text for word in negation.clause_words(reading.text)}:  # "may" for "is expected to"
            continue
        for cue in reading.hedges:
            # Whether the statement is about what the hedge qualifies.
            about = cue.scope and ((cue.word and cue.word in ours.content) or _covers_most(cue, ours))
            if about and not any(_have_common_scope(cue, other) for other in ours.hedges):
                said = f'the quoted passage says "{cue.cue}" and the statement asserts it flatly'
                yield StatementProblem("hedge", said)


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
    found = negation.clause_words(text)
    denied = {at + 1 for at, word in enumerate(found) if word.text == "not" or word.text.endswith("n't")}
    affirmed = {word.text for at, word in enumerate(found) if at not in denied}
    return affirmed, {found[at].text for at in denied if at < len(found)}
