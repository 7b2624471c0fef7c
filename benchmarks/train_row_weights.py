"""Finds how far the score of a row tells that it is the one that is asked for: the numbers of tables/rows.py.

    python -m benchmarks.train_row_weights tatqa_dataset_test_gold.json

The questions are those of the part of TAT-QA (CC BY 4.0) that nothing is measured on, whose answers name their cells.
Each is asked over the rows of its own table and of fourteen others, as if they stood in one report.
"""

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.evaluation.filings import Embed, closing_cache
from benchmarks.train_answer_weights import fit_logistic
from openassay.reasoning.rules.read import find_synonyms
from openassay.reasoning.rules.tables import Source, Table
from openassay.reasoning.rules.tables.cells import drop_footnotes, tidy
from openassay.reasoning.rules.tables.matching import Question
from openassay.reasoning.rules.tables.periods import Period
from openassay.reasoning.rules.tables.rows import rate_rows, rate_wording

OTHERS, MOST_ROWS = 14, 3
SHARPNESS = np.arange(1, 15, 0.5)
SHARE = 0.3  # of the chance of the best row; others that have it are told
HEAD, PERIOD = "Three Months Ended June 30, 2019", Period(2019, 6, 30, 0, 3)
BOUNDS = (0.5, 0.7, 0.8, 0.9)


class Rated(NamedTuple):
    """The scores of the rows by their wording, best first, and which of them are right."""

    scores: NDArray[np.float64]
    right: NDArray[np.bool_]

    def find_chances(self, sharpness: float) -> NDArray[np.float64]:
        powers = np.exp(sharpness * (self.scores - self.scores[0]))
        chances: NDArray[np.float64] = powers / powers.sum()
        return chances


def keep_figures(table: Table) -> Table:
    """The table with one figure of each row, all of one period: which year is meant does not matter here."""
    rows = [(row, next((cell for cell in row.cells if cell and cell.value), None)) for row in table.rows]
    return replace(table, heads=(HEAD,), rows=tuple(row._replace(cells=(cell,)) for row, cell in rows if cell))


def find_labels(cells: list[list[str]], mappings: list[dict[str, Any]]) -> set[str]:
    """The labels of the rows whose figures an answer names."""
    places = [one["table"] for one in mappings if "table" in one]
    return {drop_footnotes(tidy(cells[row][0])).lower() for row, column in places if column} - {""}


def rate_questions(items: list[dict[str, Any]], embed: Embed) -> Iterator[Rated]:
    tables = [Table.from_cells(item["table"]["table"]) for item in items]
    randomly = random.Random(3)
    for number, (item, table) in enumerate(zip(items, tables, strict=True)):
        for asked in item["questions"]:
            labels = find_labels(item["table"]["table"], asked.get("mappings") or [])
            if table.is_transposed or not labels:
                continue
            others = randomly.sample([one for at, one in enumerate(tables) if at != number], OTHERS)
            pool = Source("", "", tuple(map(keep_figures, (*others, table))), PERIOD)
            rated = rate_rows(Question.parse(asked["question"], find_synonyms), [pool], embed)
            rated.sort(key=lambda one: -rate_wording(one.signs))
            right = np.array([one.name[1] in labels for one in rated], bool)
            if right.any():
                yield Rated(np.array([rate_wording(one.signs) for one in rated]), right)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    items = json.loads(parser.parse_args().file.read_text(encoding="utf-8"))
    with closing_cache() as embed:
        rated = list(rate_questions(items, embed))
    loss = {at: -np.mean([np.log(one.find_chances(at)[one.right].sum()) for one in rated]) for at in SHARPNESS}
    sharpness = min(loss, key=lambda at: loss[at])
    gap = -np.log(SHARE) / sharpness
    first = np.array([one.right[0] for one in rated])
    told = [one.right[:MOST_ROWS][one.scores[:MOST_ROWS] >= one.scores[0] - gap] for one in rated]
    print(f"{len(rated)} questions; the first row is right: {first.mean():.3f}; one of those told: "
          f"{np.mean([one.any() for one in told]):.3f}, of {np.mean([len(one) for one in told]):.2f}")  # fmt: skip
    signs = np.array([[1, one.scores[0], one.find_chances(sharpness)[0]] for one in rated])
    weights = fit_logistic(signs, first)
    print("sharpness, gap:", sharpness, round(gap, 2), "; constant, by wording, by chance:", weights.round(2))
    sure = 1 / (1 + np.exp(-signs @ weights))
    for bound in BOUNDS:
        print(f"{bound}: {first[sure >= bound].mean():.3f} right, {(sure >= bound).mean():.3f} of all")


if __name__ == "__main__":
    main()
