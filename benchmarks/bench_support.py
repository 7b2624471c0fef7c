"""How well the support score tells borne-out statements from others, on texts and labels nobody here wrote.

    PYTHONPATH=. python benchmarks/bench_support.py

Each figure is cross-validated: five folds, grouped so that a claim, a page or a piece of evidence never stands on
both sides, the combination fitted anew on four and scored on the fifth. The cross-encoder has seen neither set.
`passage` is WiCE again with the labelled sentences as the quote: a long statement against one to four sentences.
"""

import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from assay.embedding.entailment import CrossEncoder
from assay.embedding.minilm import MiniLM
from assay.ports import Embedder, Entailment
from assay.text.words import content_words, stem
from assay.trust.likeness import READ, features, names
from assay.trust.narrowing import nearest
from assay.trust.support import Model, WordsAndMeaning

DATA = Path(os.environ.get("ASSAY_EVAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
SETS = ("fever", "wice", "passage", "aside", "strange")
SAMPLED = ("fever", "wice", "strange")
# What the combination is fitted on. `passage` has the claims of wice a second time; `aside` holds claims against other
# sentences of their page and `strange` against the quote of another claim: no set has such pairs, a report has many.
WEIGHTS = {"fever": 1.0, "wice": 1.0, "passage": 0.5, "aside": 0.2, "strange": 0.2}
PENALTY, DOUBT_PENALTY = 5.0, 25.0
DOUBT = -2.5  # log-odds for the first problem of a kind, less 31%
FOLDS = 5

Floats = NDArray[np.float64]


class Case(NamedTuple):
    set: str
    statement: str
    quote: str
    supported: bool
    group: str


def cases(data: Path = DATA, sample: tuple[int, int] | None = None) -> list[Case]:
    """All cases, or those of so many groups of fever and pages of wice."""
    fever, wice = list(_fever(data)), list(_wice(data))
    wice += _strange([*fever, *(case for case in wice if case.set == "passage")])
    if sample is None:
        return [*fever, *wice]
    rng = random.Random(1)
    kept = {
        group
        for found, count in ((fever, sample[0]), ([c for c in wice if c.set == "wice"], sample[1]))
        for group in rng.sample(sorted({case.group for case in found}), count)
    }
    return [case for case in (*fever, *wice) if case.group in kept and case.set in SAMPLED]


def _fever(data: Path) -> Iterator[Case]:
    rows = [json.loads(line) for line in (data / "fever-symmetric" / "dev.jsonl").read_text().splitlines()]
    head: dict[str, str] = {}

    def top(text: str) -> str:
        while head.setdefault(text, text) != text:
            text = head[text]
        return text

    for row in rows:
        head[top(row["claim"])] = top(row["evidence"])
    for row in rows:
        yield Case("fever", row["claim"], row["evidence"], row["label"] == "SUPPORTS", top(row["claim"]))


def _wice(data: Path) -> Iterator[Case]:
    for line in (data / "wice" / "dev.jsonl").read_text().splitlines():
        row = json.loads(line)
        whole, supported, group = "\n".join(row["evidence"]), row["label"] == "supported", row["evidence"][0]
        labelled: list[int] = max(row["supporting_sentences"], key=len, default=[])
        passage = [row["evidence"][index] for index in labelled] or nearest(row["claim"], whole)[:3]
        yield Case("wice", row["claim"], whole, supported, group)
        yield Case("passage", row["claim"], "\n".join(passage[:4]), supported, group)
        cited = {index for found in row["supporting_sentences"] for index in found}
        others = [text for index, text in enumerate(row["evidence"]) if index not in cited and len(text) > 60]
        if others:
            start = len(row["claim"]) % len(others)
            yield Case("aside", row["claim"], "\n".join(others[start : start + 2]), False, group)


def _strange(found: Sequence[Case]) -> list[Case]:
    rng = random.Random(1)
    pairs = [(case, rng.choice(found)) for case in found[::3]]
    return [Case("strange", case.statement, other.quote, False, case.group) for case, other in pairs
            if case.group != other.group]  # fmt: skip


def rows_of(found: Sequence[Case], embedder: Embedder, entailment: Entailment | None) -> Floats:
    return features([(case.statement, case.quote) for case in found], embedder, entailment)


def fitted(rows: Floats, truth: Floats, weights: Floats, wanted: Sequence[str]) -> Model:
    """Logistic regression by Newton's method. Weights are drawn to 0, those of what the checks found to `DOUBT`: few
    claims of the two sets have a wrong figure or a lost hedge, and data that say little must not say it is harmless."""
    centre = np.average(rows, axis=0, weights=weights)
    spread = np.sqrt(np.average((rows - centre) ** 2, axis=0, weights=weights))
    spread[spread == 0] = 1
    design = np.hstack([(rows - centre) / spread, np.ones((len(rows), 1))])
    doubted = [name.startswith("problem_") and not name.endswith("_long") for name in wanted]
    prior = np.append(np.where(doubted, DOUBT * spread, 0.0), 0.0)
    penalty = np.append(np.where(doubted, DOUBT_PENALTY, PENALTY), 0.0)
    solution = prior.copy()
    for _ in range(25):
        chance = 1 / (1 + np.exp(-design @ solution))
        slope = design.T @ (weights * (chance - truth)) + penalty * (solution - prior)
        curve = (design * (weights * chance * (1 - chance))[:, None]).T @ design + np.diag(penalty)
        solution = solution - np.linalg.solve(curve, slope)
    return Model(centre, spread, solution[:-1], float(solution[-1]))


def weights_of(found: Sequence[Case]) -> Floats:
    return np.array([WEIGHTS[case.set] for case in found])


def cross_validated(found: Sequence[Case], rows: Floats, *, read: bool, rounds: int = 3) -> Floats:
    """A probability for each case from models that have seen neither its claim nor its page; a mean over rounds."""
    truth = np.array([float(case.supported) for case in found])
    weights = weights_of(found)
    total = np.zeros(len(found))
    for seed in range(rounds):
        fold = _folds(found, seed)
        for number in range(FOLDS):
            out = fold == number
            total[out] += fitted(rows[~out], truth[~out], weights[~out], names(read=read)).probabilities(rows[out])
    return total / rounds


def _folds(found: Sequence[Case], seed: int) -> NDArray[np.int64]:
    groups = sorted({case.group for case in found})
    random.Random(seed).shuffle(groups)
    place = {group: index % FOLDS for index, group in enumerate(groups)}
    return np.array([place[case.group] for case in found])


def auc(truth: NDArray[np.bool_], scores: Floats) -> float:
    """The chance that a supported case scores above another; ties count half."""
    yes, no = np.sort(scores[truth]), scores[~truth]
    below = len(yes) - (np.searchsorted(yes, no, "left") + np.searchsorted(yes, no, "right")) / 2
    return float(below.mean() / len(yes))


def balanced(truth: NDArray[np.bool_], scores: Floats) -> float:
    """Balanced accuracy at the best threshold."""
    return max(float((scores[truth] >= at).mean() + (scores[~truth] < at).mean()) / 2 for at in np.unique(scores))


def overlap(case: Case) -> float:
    """The baseline: the share of the statement's words that stand in the quote."""
    have = {stem(word) for word in content_words(case.quote)}
    wanted = [stem(word) for word in content_words(case.statement)]
    return sum(word in have for word in wanted) / len(wanted) if wanted else 0.0


def calibration(truth: NDArray[np.bool_], scores: Floats) -> tuple[float, float]:
    """Brier score, and the mean distance of what is said from what is so over ten equal shares."""
    shares = np.array_split(scores.argsort(), 10)
    apart = sum(len(share) * abs(truth[share].mean() - scores[share].mean()) for share in shares) / len(scores)
    return float(((scores - truth) ** 2).mean()), float(apart)


def difference(found: Sequence[Case], left: Floats, right: Floats) -> tuple[float, float, float]:
    """AUC of left less AUC of right, with the middle 95% of 1,000 draws of groups with replacement."""
    truth = np.array([case.supported for case in found])
    members: dict[str, list[int]] = {}
    for index, case in enumerate(found):
        members.setdefault(case.group, []).append(index)
    pools, rng = list(members.values()), random.Random(1)
    drawn = []
    for _ in range(1000):
        pick = np.array([index for pool in rng.choices(pools, k=len(pools)) for index in pool])
        drawn.append(auc(truth[pick], left[pick]) - auc(truth[pick], right[pick]))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return auc(truth, left) - auc(truth, right), float(low), float(high)


def report(found: Sequence[Case], scores: dict[str, Floats]) -> None:
    for name in SETS:
        own = np.array([index for index, case in enumerate(found) if case.set == name])
        part = [found[index] for index in own]
        truth = np.array([case.supported for case in part])
        print(f"{name}: {len(part)} cases, {truth.mean():.2f} supported")
        if not truth.any():
            shares = ", ".join(f"{(scores['read'][own] >= at).mean():.2f} from {at}" for at in (0.15, 0.25, 0.6))
            print(f"  {shares}")
            continue
        for kind, values in scores.items():
            brier, apart = calibration(truth, values[own])
            line = f"  {kind:10} AUC {auc(truth, values[own]):.3f}  balanced {balanced(truth, values[own]):.3f}"
            print(line + (f"  Brier {brier:.3f}  ECE {apart:.3f}" if kind != "overlap" else ""))
        for kind in ("overlap", "words"):
            mean, low, high = difference(part, scores["read"][own], scores[kind][own])
            print(f"  read less {kind}: {mean:+.3f} [{low:+.3f}, {high:+.3f}]")
        for at in np.arange(0.2, 0.85, 0.1):
            said = scores["read"][own] >= at
            print(
                f"    >= {at:.1f}: {said.mean():.2f} of all, {truth[said].mean() if said.any() else 0:.2f} of them so"
            )


def speed(found: Sequence[Case], embedder: Embedder, entailment: Entailment) -> None:
    """A report of 100 claims with four quotes each, none seen before."""
    part = [case for case in found if case.set == "passage"][:100]
    quotes = [case.quote for case in part]
    pairs = [
        (case.statement, quotes[(index + step) % len(quotes)]) for index, case in enumerate(part) for step in range(4)
    ]
    scorer = WordsAndMeaning(embedder, entailment)
    start = time.perf_counter()
    scorer.scores(pairs)
    seconds = time.perf_counter() - start
    print(f"speed: {len(pairs)} pairs in {seconds:.1f} s, {len(pairs) / seconds:.0f} a second")


def main() -> None:
    found = cases()
    embedder, entailment = MiniLM(), CrossEncoder()
    rows = rows_of(found, embedder, entailment)
    all_names = names(read=True)
    plain = rows[:, [all_names.index(name) for name in names(read=False)]]
    scores = {
        "overlap": np.array([overlap(case) for case in found]),
        "words": cross_validated(found, plain, read=False),
        "entailed": 1 / (1 + np.exp(-rows[:, all_names.index(READ[0])])),
        "read": cross_validated(found, rows, read=True),
    }
    report(found, scores)
    speed(found, embedder, entailment)


if __name__ == "__main__":
    main()
