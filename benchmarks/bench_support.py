"""How well the verifier tells borne-out statements from others, on texts and labels nobody here wrote.

    PYTHONPATH=. python benchmarks/bench_support.py

It was fitted on neither set.
"""

import time
from collections.abc import Sequence

import numpy as np

from benchmarks.evaluation.measure import require_data_folder
from benchmarks.evaluation.support import (
    SETS,
    Floats,
    SupportCase,
    auc,
    auc_difference,
    best_balanced_accuracy,
    calibration,
    score_cases,
)
from openassay.text.embeddings import CrossEncoder
from openassay.verification.support import CrossEncoderScorer


def report(found: Sequence[SupportCase], scores: dict[str, Floats]) -> None:
    for name in SETS:
        own = np.array([index for index, case in enumerate(found) if case.set == name])
        part = [found[index] for index in own]
        truth = np.array([case.supported for case in part])
        print(f"{name}: {len(part)} cases, {truth.mean():.2f} supported")
        if not truth.any():
            shares = ", ".join(f"{(scores['verifier'][own] >= at).mean():.2f} from {at}" for at in (0.15, 0.25, 0.6))
            print(f"  {shares}")
            continue
        for kind, values in scores.items():
            brier, apart = calibration(truth, values[own])
            line = (
                f"  {kind:10} AUC {auc(truth, values[own]):.3f}  balanced "
                f"{best_balanced_accuracy(truth, values[own]):.3f}"
            )
            print(line + (f"  Brier {brier:.3f}  ECE {apart:.3f}" if kind != "overlap" else ""))
        mean, low, high = auc_difference(part, scores["verifier"][own], scores["overlap"][own])
        print(f"  verifier less overlap: {mean:+.3f} [{low:+.3f}, {high:+.3f}]")
        for at in np.arange(0.2, 0.85, 0.1):
            said = scores["verifier"][own] >= at
            print(
                f"    >= {at:.1f}: {said.mean():.2f} of all, {truth[said].mean() if said.any() else 0:.2f} of them so"
            )


def speed(found: Sequence[SupportCase]) -> None:
    """A report of 100 claims with four quotes each, none seen before."""
    part = [case for case in found if case.set == "passage"][:100]
    quotes = [case.quote for case in part]
    pairs = [
        (case.statement, quotes[(index + step) % len(quotes)]) for index, case in enumerate(part) for step in range(4)
    ]
    scorer = CrossEncoderScorer(CrossEncoder())
    start = time.perf_counter()
    scorer.scores(pairs)
    seconds = time.perf_counter() - start
    print(f"speed: {len(pairs)} pairs in {seconds:.1f} s, {len(pairs) / seconds:.0f} a second")


def main() -> None:
    found, scores = score_cases(require_data_folder(), False)
    report(found, scores)
    speed(found)


if __name__ == "__main__":
    main()
