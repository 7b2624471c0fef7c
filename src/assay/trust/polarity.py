"""Does a statement deny, turn round, harden or widen what its passages say? Negation, direction, hedge and scope."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.text.negation import Cue, Turn, Word, hedged, hedges, negations, turns, words
from assay.text.sentences import sentences
from assay.text.words import STOP_WORDS
from assay.trust.problem import Problem


@dataclass(frozen=True, slots=True)
class _Reading:
    """One sentence with everything that can turn it round."""

    text: str
    content: frozenset[str]
    negations: tuple[Cue, ...]
    hedges: tuple[Cue, ...]
    turns: tuple[Turn, ...]

    def denies(self, word: str) -> bool:
        return any(word in cue.scope for cue in self.negations)

    def shared(self, other: "_Reading") -> int:
        return len(self.content & other.content)


def _read(text: str) -> list[_Reading]:
    pieces = [piece.text for piece in sentences(text)] or [text]
    return [_Reading(piece, _content(words(piece)), negations(piece), hedges(piece), turns(piece)) for piece in pieces]


def _content(found: Sequence[Word]) -> frozenset[str]:
    return frozenset(word.stem for word in found if word.text not in STOP_WORDS)


def polarity_problems(statement: str, quotes: Sequence[str]) -> Iterator[Problem]:
    readings = [reading for quote in quotes for reading in _read(quote)]
    for ours in _read(statement):
        if not readings or any(ours.text == reading.text for reading in readings):
            continue
        nearest = _nearest(ours, readings)
        yield from _negation_problems(ours, readings, nearest)
        yield from _direction_problems(ours, readings)
        yield from _hedge_problems(ours, nearest)
        yield from _scope_problems(ours, readings)


def _nearest(ours: _Reading, readings: Sequence[_Reading]) -> list[_Reading]:
    most = max((ours.shared(reading) for reading in readings), default=0)
    return [reading for reading in readings if most and ours.shared(reading) == most]


# Words that deny without a negation of their own; a statement may turn them into one.
_DENYING = re.compile(
    r"\b(?:un\w{3,}(?:ed|able|ful|ing|nown|ear)|im?possible|absen\w+|lack\w*|few|only|fail\w*|against|exclu\w+|"
    r"reject\w*|oppos\w+|ban|bans|banned|prevent\w*|stop\w*|ceas\w+|refus\w+|avoid\w*|false|wrong|untrue|"
    r"former|formerly|different\w*|missing|insufficient\w*|inconclusive|zero|unlike|"
    r"withdr[ae]w\w*|cancel\w*|halt\w*|suspend\w*|block\w*|declin\w+|in(?:valid|effective|accurate|complete))\b",
    re.I,
)


def _negation_problems(ours: _Reading, readings: Sequence[_Reading], nearest: Sequence[_Reading]) -> Iterator[Problem]:
    for cue in ours.negations:
        holders = [reading for reading in readings if cue.word in reading.content]
        if any(reading.denies(cue.word) for reading in holders):
            continue
        if holders:
            yield Problem("negation", f'the statement says "{cue.cue}" of what the quoted passage asserts')
        elif not any(reading.negations or _denying(reading) for reading in nearest):
            yield Problem("negation", f'the statement says "{cue.cue}" and the quoted passage denies nothing')
    if ours.negations or _denying(ours):
        return
    dropped = [_dropped(ours, reading.negations) for reading in nearest]
    if dropped and all(dropped):
        yield Problem("negation", f'the quoted passage says "{dropped[0]}" and the statement does not')


def _denying(reading: _Reading) -> bool:
    return bool(_DENYING.search(reading.text))


def _dropped(ours: _Reading, cues: Sequence[Cue]) -> str:
    return next((cue.cue for cue in cues if cue.word and cue.word in ours.content), "")


def _direction_problems(ours: _Reading, readings: Sequence[_Reading]) -> Iterator[Problem]:
    for turn in ours.turns:
        rivals = [
            (len(turn.clause & other.clause), ours.shared(reading), other)
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
            yield Problem("direction", said)


def _hedge_problems(ours: _Reading, nearest: Sequence[_Reading]) -> Iterator[Problem]:
    if hedged(ours.text):
        return
    dropped = [next((cue.cue for cue in reading.hedges if _covered(cue, ours)), "") for reading in nearest]
    if dropped and all(dropped):
        yield Problem("hedge", f'the quoted passage says "{dropped[0]}" and the statement asserts it flatly')


def _covered(cue: Cue, ours: _Reading) -> bool:
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


def _scope_problems(ours: _Reading, readings: Sequence[_Reading]) -> Iterator[Problem]:
    offered = {word.text for reading in readings for word in words(reading.text)}
    said = {word.text for word in words(ours.text)}
    for family in _SCOPES:
        if (widened := said & family) and not offered & family:
            yield Problem("scope", f'the statement says "{min(widened)}" and the quoted passage does not')
