"""Learn which calculation over a table a question means.

    python benchmarks/train_table_answers.py DATA/tatqa/dev.json [MORE.json ...] [--out weights.npz]

Of the first file, the set that is measured on, the even tables alone are learned from; of others, such as the training
part of TAT-QA, all. Learned are, in this order: how much a word tells, by how many questions have it; the operation, by
the n-grams of the question, with words of the table masked; which composition is meant, by a small network over its
features, so that all right ones together are likely among all that can be worked out; and how often such an answer
is right, by folds. Nothing but numpy is needed; it takes minutes on one core.
"""

import argparse
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.table_questions import (
    AskedQuestion,
    AskedTable,
    are_parts_right,
    is_value_right,
    load_tables,
    read_operations,
)
from openassay.reasoning.rules.tables.answering import merge_chances
from openassay.reasoning.rules.tables.cells import parse_cell
from openassay.reasoning.rules.tables.composing import OPERATIONS, Composition, Operation, compose
from openassay.reasoning.rules.tables.features import describe, read_ngrams
from openassay.reasoning.rules.tables.grid import Table
from openassay.reasoning.rules.tables.matching import Fit, Question, fit_table
from openassay.reasoning.rules.tables.model import FILE, TableModel, count_known
from openassay.reasoning.rules.tables.scales import find_scale
from openassay.reasoning.rules.tables.wording import name_parts

FOLDS, HIDDEN, EPOCHS, RATE, DECAY = 5, 24, 25, 0.003, 1e-4
LEAST_NGRAMS = 4  # questions that have it
STRANGERS = 0.5  # questions of other tables, for each table: none of its cells are meant
MOST = 800  # compositions of a question
SEED, BATCH, NETWORKS = 7, 8, 3
Floats = npt.NDArray[np.float32]
Arrays = dict[str, npt.NDArray[np.generic]]
_FOUND: dict[tuple[AskedQuestion, int], set[Operation]] = {}  # it takes a while, and every fold asks again


@dataclass
class Example:
    """A question over a table, with what can be worked out and which of it is right."""

    features: Floats
    right: npt.NDArray[np.bool_]
    known: float
    is_counted: bool = True  # a stranger is learned from, and measured as one that nothing answers
    asked: AskedQuestion | None = None
    found: Sequence[Composition] = ()
    table: Table | None = None
    paragraphs: Sequence[str] = ()

    def is_answered(self, best: int) -> bool:
        """Whether a composition is right with its scale."""
        if not self.right[best] or self.table is None or self.asked is None:
            return False
        one = self.found[best]
        if one.operation == "none":
            return False
        scaled = one.operation in ("lookup", "list") or self.asked.kind == "arithmetic"
        return not scaled or find_scale(self.table, one, self.paragraphs) == self.asked.scale


# Words and operations ------------------------------------------------------------------------------------------


def learn_words(tables: Sequence[AskedTable]) -> Arrays:
    """How much a word tells: little when many questions of many tables have it."""
    counts = Counter[str]()
    asked = [question for table in tables for question in table.questions]
    for table in tables:
        seen = Counter(stem for question in table.questions for stem in Question.parse(question.text).stems)
        counts.update(dict.fromkeys(seen, 1))
    common = [stem for stem, count in counts.most_common() if count >= max(3, 0.02 * len(tables))]
    weights = [min(1.0, math.log(len(tables) / counts[stem]) / math.log(50) + 0.05) for stem in common]
    print(f"{len(asked)} questions, {len(common)} common words")
    return {"words": np.array(common), "word_weights": np.array(weights, np.float32)}


def learn_operations(tables: Sequence[AskedTable], model: TableModel, steps: int = 400) -> Arrays:
    """A logistic regression over n-grams; a question that may mean several operations is one of each in part."""
    rows = list[list[str]]()
    targets = list[npt.NDArray[np.float32]]()
    pairs = [
        (question, model.list_label_words(table.table), table.table) for table in tables for question in table.questions
    ]
    for question, labels, table in pairs:
        wanted = find_operations(question, table, model)
        rows.append(read_ngrams(Question.parse(question.text), labels))
        targets.append(np.array([(name in wanted) / len(wanted) for name in OPERATIONS], np.float32))
    counts = Counter(ngram for row in rows for ngram in row)
    ngrams = sorted(ngram for ngram, count in counts.items() if count >= LEAST_NGRAMS)
    places = {ngram: number for number, ngram in enumerate(ngrams)}
    matrix = np.zeros((len(rows), len(ngrams)), np.float32)
    for number, row in enumerate(rows):
        matrix[number, [places[ngram] for ngram in row if ngram in places]] = 1
    weights, bias = np.zeros((len(ngrams), len(OPERATIONS)), np.float32), np.zeros(len(OPERATIONS), np.float32)
    target = np.array(targets)
    step = Adam([weights, bias], 0.02)
    for _ in range(steps):
        raw = matrix @ weights + bias
        chances = np.exp(raw - raw.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        slope = (chances - target) / len(rows)
        step.take([matrix.T @ slope + 2e-4 * weights, slope.sum(0)])
    hit = np.mean([target[number, best] > 0 for number, best in enumerate((matrix @ weights + bias).argmax(1))])
    print(f"{len(ngrams)} n-grams; operation right on what it learned from: {hit:.3f}")
    return {"ngrams": np.array(ngrams), "operation_weights": weights, "operation_bias": bias}


def find_operations(question: AskedQuestion, table: Table, model: TableModel) -> set[Operation]:
    """The operations that a question may mean: of what its answer allows, those that come to it over its table."""
    allowed = read_operations(question)
    if len(allowed) == 1:
        return allowed
    key = (question, id(model.arrays["words"]))
    if key not in _FOUND:
        fit = fit_table(Question.parse(question.text), table, model.weigh)
        right = {one.operation for one in compose(fit, sorted(allowed)) if is_right(question, fit, one)}
        _FOUND[key] = right or {"none"}
    return _FOUND[key]


class Adam:
    """Steps down a slope, each weight at its own pace."""

    def __init__(self, weights: Sequence[Floats], rate: float) -> None:
        self.weights, self.rate, self.steps = weights, rate, 0
        self.means = [np.zeros_like(one) for one in weights]
        self.squares = [np.zeros_like(one) for one in weights]

    def take(self, slopes: Sequence[Floats]) -> None:
        self.steps += 1
        for one, slope, mean, square in zip(self.weights, slopes, self.means, self.squares, strict=True):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            level = mean / (1 - 0.9**self.steps)
            one -= self.rate * level / (np.sqrt(square / (1 - 0.999**self.steps)) + 1e-8)


# Compositions --------------------------------------------------------------------------------------------------


def is_right(asked: AskedQuestion, fit: Fit, one: Composition) -> bool:
    """Whether a composition gives the answer, whatever the scale, by an operation that its derivation may be."""
    if asked.kind in ("arithmetic", "count"):
        return (
            one.value is not None
            and one.operation in (read_operations(asked) or {one.operation})
            and is_value_right(asked.answer[0], one.value)
        )
    if one.operation == "none":
        return False
    parts = name_parts(fit, one)
    if len(parts) != len(asked.answer):
        return False
    numeric = [parse_cell(piece) for piece in (*asked.answer, *parts)]
    if all(numeric) and one.operation not in ("lookup", "list"):
        return False
    return are_parts_right(asked._replace(scale=""), parts, "")


def make_examples(tables: Sequence[AskedTable], model: TableModel, randomly: random.Random) -> list[list[Example]]:
    """The examples of each table; among them questions that were asked of another."""
    found = list[list[Example]]()
    everything = [question for table in tables for question in table.questions]
    for asked_table in tables:
        own = list[Example]()
        table = asked_table.table
        strangers = [randomly.choice(everything)] if randomly.random() < STRANGERS else []
        for question in [*asked_table.questions, *strangers]:
            parsed = Question.parse(question.text)
            fit = fit_table(parsed, table, model.weigh)
            chances = model.guess_operations(parsed, model.list_label_words(table))
            possible = list(compose(fit, model.choose_operations(chances)))
            is_own = question in asked_table.questions
            right = np.array([is_own and is_right(question, fit, one) for one in possible])
            if not right.any():
                right = np.array([one.operation == "none" for one in possible])
            if len(possible) > MOST:
                order = np.argsort(~right, kind="stable")
                keep = [*order[: int(right.sum())][:100]]
                rest = [at for at in range(len(possible)) if at not in set(keep)]
                keep = sorted([*keep, *randomly.sample(rest, MOST - len(keep))])
                possible, right = [possible[at] for at in keep], right[keep]
            features = describe(fit, possible, chances, model.weigh)
            own.append(
                Example(
                    features, right, count_known(fit, model), is_own, question, possible, table, asked_table.paragraphs
                )
            )
        found.append(own)
    return found


def learn_ranking(examples: Sequence[Example], randomly: random.Random, seed: int = SEED) -> Arrays:
    """A network whose softmax over the compositions of a question gives the right ones as much as it can."""
    everything = np.concatenate([one.features[::7] for one in examples])
    mean, deviation = everything.mean(0), everything.std(0) + 1e-3
    width = everything.shape[1]
    generator = np.random.default_rng(seed)
    hidden = (generator.standard_normal((width, HIDDEN)) / math.sqrt(width)).astype(np.float32)
    weights = [hidden, np.zeros(HIDDEN, np.float32), np.zeros(HIDDEN, np.float32), np.zeros(width, np.float32)]
    weights[2] += (generator.standard_normal(HIDDEN) * 0.1).astype(np.float32)
    scaled = [((one.features - mean) / deviation).astype(np.float32) for one in examples]
    step, order = Adam(weights, RATE), list(range(len(examples)))
    for epoch in range(EPOCHS):
        step.rate = RATE * (1 - epoch / EPOCHS) + 1e-4
        randomly.shuffle(order)
        for begin in range(0, len(order), BATCH):
            some = order[begin : begin + BATCH]
            together = np.concatenate([scaled[number] for number in some])
            right = np.concatenate([examples[number].right for number in some])
            sizes = [len(scaled[number]) for number in some]
            slopes = _find_slopes(together, right, sizes, weights)
            step.take([slope / len(some) + DECAY * one for slope, one in zip(slopes, weights, strict=True)])
    names = ("hidden_weights", "hidden_bias", "out_weights", "skip_weights")
    found: Arrays = {"mean": mean.astype(np.float32), "deviation": deviation.astype(np.float32)}
    return found | dict(zip(names, weights, strict=True))


def _find_slopes(
    scaled: Floats, right: npt.NDArray[np.bool_], sizes: Sequence[int], weights: Sequence[Floats]
) -> list[Floats]:
    """Of several questions at once, whose compositions stand one after another."""
    starts = np.cumsum([0, *sizes[:-1]])
    before = scaled @ weights[0] + weights[1]
    hidden = np.maximum(before, 0)
    raw = hidden @ weights[2] + scaled @ weights[3]
    powers = np.exp(raw - np.repeat(np.maximum.reduceat(raw, starts), sizes))
    wanted = np.where(right, powers, 0) + 1e-30 * right
    out = powers / np.repeat(np.add.reduceat(powers, starts), sizes)
    out = (out - wanted / np.repeat(np.add.reduceat(wanted, starts), sizes)).astype(np.float32)
    back = np.outer(out, weights[2]) * (before > 0)
    return [scaled.T @ back, back.sum(0), hidden.T @ out, scaled.T @ out]


# Confidence ----------------------------------------------------------------------------------------------------


def learn_confidence(points: Sequence[tuple[float, float, bool]]) -> Arrays:
    """A logistic regression: from the chance and what the table knows, to how often it is right."""
    clipped = [min(max(chance, 1e-6), 1 - 1e-6) for chance, _, _ in points]
    logits = [math.log(chance / (1 - chance)) for chance in clipped]
    matrix = np.array([[logit, known, 1] for logit, (_, known, _) in zip(logits, points, strict=True)], np.float32)
    target = np.array([right for _, _, right in points], np.float32)
    weights = np.array([1, 0, 0], np.float32)
    step = Adam([weights], 0.02)
    for _ in range(2000):
        chances = 1 / (1 + np.exp(-matrix @ weights))
        step.take([matrix.T @ (chances - target) / len(points)])
    return {"calibration": weights}


def _print_confidence(model: TableModel, points: Sequence[tuple[float, float, bool]]) -> None:
    sure = sorted(((model.calibrate(chance, known), right) for chance, known, right in points), reverse=True)
    for bound in (0.9, 0.8, 0.7, 0.6, 0.5, 0.4):
        rights = [right for confidence, right in sure if confidence >= bound]
        print(f"from {bound} on: {np.mean(rights):.3f} right, {len(rights) / len(sure):.3f} of all")


def learn(tables: Sequence[AskedTable], measured: int) -> Arrays:
    """All that is learned. The first `measured` tables say how well, each judged by what others taught."""
    arrays = learn_words(tables)
    randomly = random.Random(SEED)
    # Operations are guessed by what other tables taught, as they will be: else the guess looks surer than it is.
    examples: list[list[Example]] = [[] for _ in tables]
    for fold in range(FOLDS):
        others = [table for number, table in enumerate(tables) if number % FOLDS != fold]
        model = TableModel(arrays | learn_operations(others, TableModel(arrays)))
        ours = [number for number in range(len(tables)) if number % FOLDS == fold]
        for number, found in zip(ours, make_examples([tables[at] for at in ours], model, randomly), strict=True):
            examples[number] = found
    points, kinds = list[tuple[float, float, bool]](), Counter[tuple[str, bool]]()
    possible = Counter[tuple[str, bool]]()
    for fold in range(FOLDS):
        learned = learn_ranking([one for at, own in enumerate(examples) if at % FOLDS != fold for one in own], randomly)
        model = TableModel(arrays | learned)
        for number in range(fold, measured, FOLDS):
            for one in examples[number]:
                if len(one.found) < 2:
                    continue
                best, chance = merge_chances(model.rate_features(one.features).tolist(), one.found)
                right = one.is_answered(best)
                points.append((chance, one.known, right))
                if one.is_counted and one.asked is not None:
                    kinds[one.asked.kind, right] += 1
                    able = any(r and c.operation != "none" for r, c in zip(one.right, one.found, strict=True))
                    possible[one.asked.kind, able] += 1
    for kind in ("arithmetic", "count", "span", "multi-span"):
        whole = kinds[kind, True] + kinds[kind, False]
        print(f"{kind}: {kinds[kind, True] / whole:.3f} right, {possible[kind, True] / whole:.3f} possible, of {whole}")
    arrays |= learn_confidence(points)
    _print_confidence(TableModel(arrays), points)
    arrays |= learn_operations(tables, TableModel(arrays))
    every = [one for own in examples for one in own]
    return arrays | merge_networks([learn_ranking(every, randomly, SEED + number) for number in range(NETWORKS)])


def merge_networks(networks: Sequence[Arrays]) -> Arrays:
    """The mean of several networks is one with all their hidden values."""
    share = 1 / len(networks)
    return networks[0] | {
        "hidden_weights": np.concatenate([one["hidden_weights"] for one in networks], axis=1),
        "hidden_bias": np.concatenate([one["hidden_bias"] for one in networks]),
        "out_weights": np.concatenate([one["out_weights"] for one in networks]) * share,
        "skip_weights": np.sum([one["skip_weights"] for one in networks], axis=0) * share,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=FILE)
    given = parser.parse_args()
    even = load_tables(given.files[0])[::2]
    more = [table for file in given.files[1:] for table in load_tables(file)]
    arrays = learn([*even, *more], len(even))
    small = {name: one.astype(np.float16) if one.dtype.kind == "f" else one for name, one in arrays.items()}
    np.savez_compressed(given.out, allow_pickle=False, **small)
    print(f"{given.out}: {given.out.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
