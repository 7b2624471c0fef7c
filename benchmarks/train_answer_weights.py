"""Finds how likely what the reader marks is right, by its margin: CONSTANT and SLOPE of short_answers/options.py.

    python -m benchmarks.train_answer_weights --questions questions.jsonl.xz

The passages are those of `reader_questions` that the reader has not learned from, with and without an answer. Told
besides: of what is marked above a margin, how much is right, and how many passages of either kind have such a mark.
"""

import argparse
import json
import lzma
import random
import re
import string
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from openassay.text.answer_reader import AnswerReader, PassageText

SETS = (
    "squad-dev", "squad-train-part", "squadshifts-new_wiki", "nq-open-gold", "timeqa-human", "tydiqa-en", "afriqa-en",
)  # fmt: skip
MOST = 700
STEPS, PENALTY, HIGHEST = 50, 1e-3, 15.0
MARGINS = (-2, 0, 2, 4, 6, 8, 10)


def fold(text: str) -> str:
    plain = "".join(" " if letter in string.punctuation else letter for letter in text.lower())
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", plain).split())


def is_right(said: str, gold: str) -> bool:
    """The same words, or nearly all of them."""
    a, b = fold(said), fold(gold)
    longer = b in a and len(a.split()) <= len(b.split()) + 3
    return bool(a and b) and (longer or (a in b and 2 * len(a.split()) >= len(b.split())))


def fit_chances(margins: NDArray[np.float64], right: NDArray[np.bool_]) -> NDArray[np.float64]:
    return fit_logistic(np.stack([np.ones_like(margins), margins.clip(-HIGHEST, HIGHEST)], axis=1), right)


def fit_logistic(signs: NDArray[np.float64], right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Logistic regression, by Newton's steps: a weight for each sign."""
    weights = np.zeros(signs.shape[1])
    for _ in range(STEPS):
        chances = 1 / (1 + np.exp(-signs @ weights))
        slope = signs.T @ (right - chances) - PENALTY * weights
        curve = (signs * (chances * (1 - chances))[:, None]).T @ signs + PENALTY * np.eye(len(weights))
        weights += np.linalg.solve(curve, slope)
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=Path, required=True)
    with lzma.open(parser.parse_args().questions, "rt", encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["held"] and row["set"] in SETS and not row.get("k")]
    random.Random(5).shuffle(rows)
    reader, margins, right, answered = AnswerReader(), [], [], []
    for row in rows[:MOST]:
        [reading] = reader.read(row["q"], [PassageText(row["c"], f"{row['t']}. " if row["t"] else "")])
        best = next(iter(reading.find_answers(1)), None)
        margins.append(best.margin if best else -2 * HIGHEST)
        gold = row["c"][slice(*row["a"])] if row["a"] else ""
        right.append(best is not None and bool(gold) and is_right(row["c"][best.start : best.end], gold))
        answered.append(bool(gold))
    found, hits, has = np.array(margins), np.array(right), np.array(answered)
    print("constant and slope:", fit_chances(found, hits).round(3))
    for margin in MARGINS:
        above = found >= margin
        print(f"{margin}: {hits[above].mean():.2f} right; of passages with an answer {above[has].mean():.2f} are told, "
              f"of others {above[~has].mean():.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
