"""Reads a question and a passage and marks the words that answer it, or says that none do.

The reader is the verifier with what it has learned besides (data/ORIGIN.md): one set of matrices serves both.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from openassay.text.embeddings import (
    DATA,
    MOST_THREADS,
    READER_ADAPTERS,
    count_cpus,
    load_verifier,
    replace_surrogates,
    run_model,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Encoding

# Written down as for the encoder; a test compares it with the file, which the verifier has too.
READER_SHA256 = "dbd8ce9e2f4e270efa846238feef8fee2361f2dc7e013c9164bdb4a3d33e2dd3"

QUESTION_WORDS = 60  # that are read, so that the passage always has room
LONGEST_ANSWER = 24  # tokens
BEGINNINGS = 8  # the likeliest first tokens of an answer that are tried
OPTIONS = 3  # answers of a passage that are told
REMEMBERED = 300  # readings: a run asks the same of a passage when it reads, compares and writes
LOWEST = -1e3  # a logit of what is no word of the passage


class PassageText(NamedTuple):
    """A text to be read, between what helps to understand it and is no answer: its document's title, its neighbours."""

    text: str
    head: str = ""
    tail: str = ""


class PassageAnswer(NamedTuple):
    """Words of a passage that may answer a question; above a margin of 0 they are likelier than that none do."""

    start: int
    end: int
    margin: float


class _Window(NamedTuple):
    """A stretch of a passage as it was read: for each token where it stands and two logits, none outside it."""

    places: list[tuple[int, int]]
    stops: list[int]  # for each token the one before which its line ends
    starts: NDArray[np.float32]
    ends: NDArray[np.float32]
    none: float


class PassageReading:
    """What the reader has made of one passage."""

    def __init__(self, windows: Sequence[_Window]) -> None:
        self._windows = windows

    def find_answers(self, most: int = OPTIONS) -> list[PassageAnswer]:
        """The likeliest answers, best first; none overlaps a better one."""
        kept: list[PassageAnswer] = []
        for option in sorted((one for window in self._windows for one in _list_options(window)), key=_margin):
            if len(kept) < most and not any(option.start < one.end and one.start < option.end for one in kept):
                kept.append(option)
        return kept

    def weigh(self, start: int, end: int) -> float:
        """The margin of given words of the passage."""
        found = [LOWEST]
        for window in self._windows:
            inside = [at for at, (low, high) in enumerate(window.places) if low < end and high > start]
            if inside:
                found.append(float(window.starts[inside[0]] + window.ends[inside[-1]]) - window.none)
        return max(found)


def _list_options(window: _Window) -> list[PassageAnswer]:
    import numpy as np

    options = []
    for first in map(int, np.argsort(-window.starts)[:BEGINNINGS]):
        last = first + int(np.argmax(window.ends[first : min(window.stops[first], first + LONGEST_ANSWER)]))
        margin = float(window.starts[first] + window.ends[last]) - window.none
        if margin > LOWEST:
            options.append(PassageAnswer(window.places[first][0], window.places[last][1], margin))
    return options


def _margin(answer: PassageAnswer) -> float:
    return -answer.margin


class AnswerReader:
    """A passage is read alone: its answers do not depend on the passages beside it."""

    name = f"reader-{READER_SHA256[:8]}"

    def __init__(self, *, data: Path = DATA, threads: int | None = None) -> None:
        self._data = data
        self._threads = threads or min(count_cpus(), MOST_THREADS)
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, PassageText], PassageReading] = OrderedDict()

    def read(self, question: str, passages: Sequence[PassageText]) -> list[PassageReading]:
        """For each passage what may answer the question there; places are those in its text."""
        with self._lock:
            found = {one: self._known[question, one] for one in passages if (question, one) in self._known}
        missing = [one for one in dict.fromkeys(passages) if one not in found]
        found |= zip(missing, self._read(question, missing), strict=True)
        with self._lock:
            self._known.update(((question, one), found[one]) for one in missing)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return [found[one] for one in passages]

    def _read(self, question: str, passages: Sequence[PassageText]) -> list[PassageReading]:
        if not passages:
            return []
        model = load_verifier(self._data, self._threads)
        asked = " ".join(replace_surrogates(question).split()[:QUESTION_WORDS])
        encodings: list[tuple[int, Encoding]] = []
        for at, (text, head, tail) in enumerate(passages):
            whole = model.tokenizer.encode(asked, replace_surrogates(f"{head}{text}{tail}"))
            encodings += [(at, one) for one in (whole, *whole.overflowing)]
        windows: list[list[_Window]] = [[] for _ in passages]
        said = run_model(model, (one for _, one in encodings), "spans", READER_ADAPTERS)
        for (at, encoding), logits in zip(encodings, said, strict=True):
            windows[at].append(_read_window(encoding, logits, passages[at]))
        return [PassageReading(some) for some in windows]


def _read_window(encoding: Encoding, logits: NDArray[np.float32], passage: PassageText) -> _Window:
    import numpy as np

    first, last = len(passage.head), len(passage.head) + len(passage.text)
    tokens = list(zip(encoding.sequence_ids, encoding.offsets, strict=True))
    inside = [text == 1 and low >= first and high <= last and high > low for text, (low, high) in tokens]
    starts, ends = (np.where(inside, logits[:, side], LOWEST) for side in (0, 1))
    places = [
        (low - first, high - first) if own else (0, 0) for own, (_, (low, high)) in zip(inside, tokens, strict=True)
    ]
    stops, stop = [0] * len(places), len(places)
    for at in range(len(places) - 1, -1, -1):
        stops[at] = stop
        if inside[at] and at and "\n" in passage.text[places[at - 1][1] : places[at][0]]:
            stop = at
    return _Window(places, stops, starts, ends, float(logits[0, :2].sum()))
