"""Is a report of the embedded reasoner right as often as it says?

    PYTHONPATH=. FIGURES=docs/quality.md [OUTCOMES=FILE] python benchmarks/bench_confidence.py

Data: hotpotqa, ramdocs, tatqa, train/xquad and sec-10q from `OPENASSAY_EVAL_DATA`, by default ../shared/data. It takes
about twenty minutes. OUTCOMES names a file of JSON lines that what came of each question is kept in, so that a run that
was stopped goes on where it was.

The questions are halved by a hash of their ids, those on one table or article together. On one half the weights of
`openassay.nodes.confidence` are fitted and printed beside those that are used; the other half is told.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.evaluation.confidence import Outcome, ask_questions, load_questions
from benchmarks.evaluation.measure import load_rows, require_data_folder
from benchmarks.evaluation.support import Floats
from benchmarks.figures import keep, keep_curve
from openassay.nodes.confidence import INTERCEPT, WEIGHTS, LeadSigns

LEVELS = ("high", "medium", "low")
BINS = 5
RIDGE = 1.0  # on the weights, so that few questions do not make them extreme
ROUNDS = 50  # of Newton's method, which needs about eight


def read_outcomes(file: Path) -> list[Outcome]:
    return [
        Outcome(**{**row, "signs": LeadSigns(**row["signs"]) if row["signs"] else None})
        for row in (load_rows(file) if file.exists() else [])
    ]


def to_json(outcome: Outcome) -> str:
    return json.dumps({**outcome._asdict(), "signs": outcome.signs._asdict() if outcome.signs else None})


async def collect_outcomes(data: Path, file: Path | None) -> list[Outcome]:
    outcomes = read_outcomes(file) if file else []
    known = {(one.set, one.id) for one in outcomes}
    missing = [one for one in load_questions(data) if (one.set, one.id) not in known]
    async for outcome in ask_questions(missing):
        outcomes.append(outcome)
        print(f"{len(outcomes):4} {outcome.set:9} {outcome.level}", file=sys.stderr)
        if file:
            with file.open("a", encoding="utf-8") as kept:
                kept.write(f"{to_json(outcome)}\n")
    return outcomes


def fit_weights(outcomes: Sequence[Outcome]) -> Floats:
    """By logistic regression; the first is the intercept."""
    given = [one for one in outcomes if one.signs]
    signs = np.array([(1.0, *one.signs) for one in given if one.signs])
    right = np.array([one.right for one in given], float)
    weights, ridge = np.zeros(signs.shape[1]), RIDGE * np.eye(signs.shape[1])
    ridge[0, 0] = 0.0
    for _ in range(ROUNDS):
        chances = 1 / (1 + np.exp(-signs @ weights))
        gradient = signs.T @ (chances - right) + ridge @ weights
        curvature = (signs * (chances * (1 - chances))[:, None]).T @ signs + ridge
        weights = weights - np.linalg.solve(curvature, gradient)
    return weights


def tell_levels(outcomes: Sequence[Outcome]) -> list[tuple[str, int, str, str]]:
    """For each level how many reports there are, and how many of them are right; for those that give no answer, how
    many had none to give."""
    rows = []
    for name in (*LEVELS, "no answer given"):
        own = [one for one in outcomes if (one.level if one.signs else "no answer given") == name]
        right = sum(one.right for one in own)
        share = f"{right / len(own):.2f}".removeprefix("0") if own else "-"
        rows.append((name, len(own), str(right), share))
    return rows


def list_points(outcomes: Sequence[Outcome]) -> list[tuple[float, float]]:
    """For each share of the reports that give an answer, by score: what was said, and how often it was right."""
    given = sorted((one for one in outcomes if one.signs), key=lambda one: one.score)
    parts = [[given[at] for at in part] for part in np.array_split(np.arange(len(given)), BINS) if len(part)]
    return [
        (round(sum(one.score for one in part) / len(part), 3), sum(one.right for one in part) / len(part))
        for part in parts
    ]


def main() -> None:
    file = os.environ.get("OUTCOMES", "")
    outcomes = asyncio.run(collect_outcomes(require_data_folder(), Path(file) if file else None))
    fitted, told = ([one for one in outcomes if one.half == half] for half in (1, 0))
    print("fitted now ", np.round(fit_weights(fitted), 2))
    print("used       ", np.round([INTERCEPT, *WEIGHTS], 2), WEIGHTS._fields)
    for name, half in (("the half fitted", fitted), ("the other half", told)):
        print(f"\n{name}: {len(half)} questions")
        for row in tell_levels(half):
            print("{:16} {:4} reports, {:>3} right, {}".format(*row))
    for name in dict.fromkeys(one.set for one in told):
        rows = tell_levels([one for one in told if one.set == name])
        print(f"{name:9}", "; ".join(f"{row[0]} {row[2]} of {row[1]}" for row in rows))
    of_fitted = {row[0]: row[3] for row in tell_levels(fitted)}
    compared = [(*row, of_fitted[row[0]]) for row in tell_levels(told)]
    keep("confidence", ("what the report says", "reports", "right", "share", "share of the half fitted"), compared)
    points = {"the other half": list_points(told), "the half fitted": list_points(fitted)}
    keep_curve("confidence", ("Confidence said, and right", "said", "share that is right"), points, log=False)


if __name__ == "__main__":
    main()
