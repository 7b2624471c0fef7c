"""Is the embedded verifier right as often as it says, and what does a stricter threshold cost?

    PYTHONPATH=. python benchmarks/bench_reliability.py

On fever-symmetric, WiCE and the statements written by hand; it learned from none of them, and the statements were never
looked at. True and false ones weigh alike.
"""

from collections.abc import Mapping

import numpy as np

from benchmarks.evaluation.measure import load_rows, require_data_folder
from benchmarks.evaluation.statements import STATEMENTS, make_document
from benchmarks.evaluation.support import Floats, SupportCase, score_cases, word_overlap
from benchmarks.figures import keep_curve
from openassay.text.embeddings import CrossEncoder
from openassay.verification.context import describe_document
from openassay.verification.support import CrossEncoderScorer

BINS = 8
STEPS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # shares of the false ones that pass
Scored = Mapping[str, tuple[Floats, Floats, Floats]]  # for each set: whether true, the verifier's, the words'


def score_statements() -> tuple[Floats, Floats, Floats]:
    rows = load_rows(STATEMENTS / "test.jsonl")
    texts = [f"{describe_document(make_document(row))}\n{row['passage']}" for row in rows]
    found = CrossEncoderScorer(CrossEncoder()).scores(
        [(row["statement"], text) for row, text in zip(rows, texts, strict=True)]
    )
    overlap = [
        word_overlap(SupportCase("statements", row["statement"], row["passage"], row["supported"], str(at)))
        for at, row in enumerate(rows)
    ]
    truth = np.array([row["supported"] for row in rows], float)
    return truth, np.array([one.supported for one in found]), np.array(overlap)


def score_all() -> Scored:
    cases, scores = score_cases(require_data_folder(), False)
    scored = {"by hand": score_statements()}
    for name in ("fever", "wice"):
        own = [at for at, case in enumerate(cases) if case.set == name]
        truth = np.array([cases[at].supported for at in own], float)
        scored[name] = truth, scores["verifier"][own], scores["overlap"][own]
    return scored


def list_reliability(truth: Floats, scores: Floats) -> list[tuple[float, float]]:
    """For each share of the scores, by size: what was said, and how often it was so."""
    weights = np.where(truth > 0, 0.5 / truth.sum(), 0.5 / (len(truth) - truth.sum()))
    points = []
    for share in np.array_split(scores.argsort(), BINS):
        whole = weights[share].sum()
        points.append(
            (
                float((weights[share] * scores[share]).sum() / whole),
                float((weights[share] * truth[share]).sum() / whole),
            )
        )
    return points


def list_refusals(truth: Floats, scores: Floats) -> list[tuple[float, float]]:
    """For each share of the false ones that pass, the share of the true ones that are refused."""
    false, true = np.sort(scores[truth == 0]), scores[truth == 1]
    points = []
    for step in STEPS:
        threshold = np.quantile(false, 1 - step)
        points.append((step, float((true <= threshold).mean())))
    return points


def main() -> None:
    scored = score_all()
    reliability = {name: list_reliability(truth, scores) for name, (truth, scores, _) in scored.items()}
    refusals = {}
    for name, (truth, scores, overlap) in scored.items():
        refusals[name] = list_refusals(truth, scores)
        refusals[f"{name}, words"] = list_refusals(truth, overlap)
    for told in (reliability, refusals):
        for name, points in told.items():
            print(f"{name:18}", " ".join(f"{x:.2f}:{y:.2f}" for x, y in points))
    keep_curve("reliability", ("Said and so", "said to be borne out", "share that is"), reliability, log=False)
    keep_curve(
        "refusals", ("True refused, false supported", "share of the false supported", "share of the true refused"),
        refusals, log=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
