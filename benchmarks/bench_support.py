"""How well the support score tells borne-out statements from others, on texts and labels nobody here wrote.

    PYTHONPATH=. python benchmarks/bench_support.py

Each figure is cross-validated: five folds, grouped so that a claim, a page or a piece of evidence never stands on
both sides, the combination fitted anew on four and scored on the fifth. The cross-encoder has seen neither set.
`passage` is WiCE again with the labelled sentences as the quote: a long statement against one to four sentences.
"""

import time
from collections.abc import Sequence

import numpy as np

from assay.embedding.entailment import CrossEncoder
from assay.embedding.minilm import MiniLM
from assay.evaluation.data import folder
from assay.evaluation.support import SETS, Case, Floats, auc, balanced, calibration, difference, scored
from assay.ports import Embedder, Entailment
from assay.trust.support import WordsAndMeaning


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
    found, scores = scored(folder(), False)
    report(found, scores)
    speed(found, MiniLM(), CrossEncoder())


if __name__ == "__main__":
    main()
