"""How well the verifier tells borne-out statements from others, on texts and labels nobody here wrote.

It was fitted on neither set. `passage` is WiCE again with the labelled sentences as the evidence: a long statement
against one to four sentences; `aside` holds claims against other sentences of their page, `strange` against the
evidence of another claim.
"""

import random
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure, load_rows
from openassay.reasoning.rules import SUPPORTED
from openassay.text.embeddings import CrossEncoder
from openassay.text.words import content_words, stem
from openassay.verification.support import CrossEncoderScorer, narrow_text

SETS = ("fever", "wice", "passage", "aside", "strange")
SAMPLED = ("fever", "wice", "strange")
SAMPLE = (60, 150)  # groups of fever-symmetric and pages of WiCE in a quick run: 429 claims of 1,057

Floats = NDArray[np.float64]


class SupportCase(NamedTuple):
    set: str
    statement: str
    quote: str
    supported: bool
    group: str


def load_cases(data: Path, sample: tuple[int, int] | None = None) -> list[SupportCase]:
    """All cases, or those of so many groups of fever and pages of wice."""
    fever, wice = list(_fever_cases(data)), list(_wice_cases(data))
    wice += _mismatch_quotes([*fever, *(case for case in wice if case.set == "passage")])
    if sample is None:
        return [*fever, *wice]
    rng = random.Random(1)
    kept = {
        group
        for found, count in ((fever, sample[0]), ([c for c in wice if c.set == "wice"], sample[1]))
        for group in rng.sample(sorted({case.group for case in found}), count)
    }
    return [case for case in (*fever, *wice) if case.group in kept and case.set in SAMPLED]


def _fever_cases(data: Path) -> Iterator[SupportCase]:
    found = load_rows(data / "fever-symmetric/dev.jsonl")
    head: dict[str, str] = {}

    def top(text: str) -> str:
        while head.setdefault(text, text) != text:
            text = head[text]
        return text

    for row in found:
        head[top(row["claim"])] = top(row["evidence"])
    for row in found:
        yield SupportCase("fever", row["claim"], row["evidence"], row["label"] == "SUPPORTS", top(row["claim"]))


def _wice_cases(data: Path) -> Iterator[SupportCase]:
    for row in load_rows(data / "wice/dev.jsonl"):
        whole, supported, group = "\n".join(row["evidence"]), row["label"] == "supported", row["evidence"][0]
        labelled: list[int] = max(row["supporting_sentences"], key=len, default=[])
        passage = [row["evidence"][index] for index in labelled] or narrow_text(row["claim"], whole).split("\n")[:3]
        yield SupportCase("wice", row["claim"], whole, supported, group)
        yield SupportCase("passage", row["claim"], "\n".join(passage[:4]), supported, group)
        cited = {index for found in row["supporting_sentences"] for index in found}
        others = [text for index, text in enumerate(row["evidence"]) if index not in cited and len(text) > 60]
        if others:
            start = len(row["claim"]) % len(others)
            yield SupportCase("aside", row["claim"], "\n".join(others[start : start + 2]), False, group)


def _mismatch_quotes(found: Sequence[SupportCase]) -> list[SupportCase]:
    rng = random.Random(1)
    pairs = [(case, rng.choice(found)) for case in found[::3]]
    return [SupportCase("strange", case.statement, other.quote, False, case.group) for case, other in pairs
            if case.group != other.group]  # fmt: skip


def auc(truth: NDArray[np.bool_], scores: Floats) -> float:
    """The chance that a supported case scores above another; ties count half."""
    yes, no = np.sort(scores[truth]), scores[~truth]
    below = len(yes) - (np.searchsorted(yes, no, "left") + np.searchsorted(yes, no, "right")) / 2
    return float(below.mean() / len(yes))


def best_balanced_accuracy(truth: NDArray[np.bool_], scores: Floats) -> float:
    """Balanced accuracy at the best threshold."""
    return max(float((scores[truth] >= at).mean() + (scores[~truth] < at).mean()) / 2 for at in np.unique(scores))


def word_overlap(case: SupportCase) -> float:
    """The baseline: the share of the statement's words that stand in the quote."""
    have = {stem(word) for word in content_words(case.quote)}
    wanted = [stem(word) for word in content_words(case.statement)]
    return sum(word in have for word in wanted) / len(wanted) if wanted else 0.0


def calibration(truth: NDArray[np.bool_], scores: Floats) -> tuple[float, float]:
    """Brier score, and the mean distance of what is said from what is so over ten equal shares."""
    shares = np.array_split(scores.argsort(), 10)
    apart = sum(len(share) * abs(truth[share].mean() - scores[share].mean()) for share in shares) / len(scores)
    return float(((scores - truth) ** 2).mean()), float(apart)


def auc_difference(found: Sequence[SupportCase], left: Floats, right: Floats) -> tuple[float, float, float]:
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


@cache
def score_cases(data: Path, quick: bool) -> tuple[list[SupportCase], dict[str, Floats]]:
    """All sets are scored together, so that both measures need it once."""
    found = load_cases(data, SAMPLE if quick else None)
    scored = CrossEncoderScorer(CrossEncoder()).scores([(case.statement, case.quote) for case in found])
    return found, {
        "overlap": np.array([word_overlap(case) for case in found]),
        "verifier": np.array([score.supported for score in scored]),
    }


def measure_support(name: str, data: Path, quick: bool) -> EvalValues:
    found, everything = score_cases(data, quick)
    own = [index for index, case in enumerate(found) if case.set == name]
    part = [found[index] for index in own]
    truth = np.array([case.supported for case in part])
    scores, overlap = everything["verifier"][own], everything["overlap"][own]
    brier, apart = calibration(truth, scores)
    values = {
        "AUC": EvalValue(auc(truth, scores), {"word overlap": auc(truth, overlap)}),
        "balanced accuracy": EvalValue(
            best_balanced_accuracy(truth, scores), {"word overlap": best_balanced_accuracy(truth, overlap)}
        ),
        "Brier score": EvalValue(brier),
        "calibration error": EvalValue(apart),
        "borne out, of those said to be": EvalValue(float(truth[scores >= SUPPORTED].mean())),
    }
    if not quick:
        gained, low, _ = auc_difference(part, scores, overlap)
        values["AUC gained over word overlap"] = EvalValue(gained)
        values["the same, at least (95%)"] = EvalValue(low)
    return values


_NOTES = "The verifier was fitted on neither set, nor on what they are made from (decision 38)."

MEASURES = {
    "wice": EvalMeasure(
        name="wice",
        about="Is a claim of Wikipedia borne out by the article it cites? Supported against the rest, whole page.",
        needs=("wice", "fever-symmetric"),
        licence="ODC-BY, CC BY-SA",
        whole="349 claims",
        quick="150 pages",
        figures=(
            Figure("AUC", floor=0.755, quick=0.70, published={"word overlap": 0.763}),
            Figure("AUC gained over word overlap", floor=0.0),
            Figure("the same, at least (95%)", floor=-0.07),
            Figure("balanced accuracy", floor=0.69, quick=0.64, published={"word overlap": 0.707}),
            Figure("Brier score", floor=0.25, quick=0.27, less_is_better=True),
            Figure("calibration error", floor=0.20, quick=0.22, less_is_better=True),
            Figure("borne out, of those said to be", floor=0.60, quick=0.55),
        ),
        run=partial(measure_support, "wice"),
        notes=f"{_NOTES} Published on oracle chunks: GPT-4 F1 .610, T5-3B fine-tuned .778.",
        command="benchmarks/bench_support.py",
    ),
    "fever": EvalMeasure(
        name="fever",
        about="Is a claim borne out by its evidence, in pairs built so that word overlap cannot tell?",
        needs=("wice", "fever-symmetric"),
        licence="MIT, CC BY-SA",
        whole="708 pairs",
        quick="60 groups of pairs",
        figures=(
            Figure("AUC", floor=0.90, quick=0.87, published={"word overlap": 0.703}),
            Figure("AUC gained over word overlap", floor=0.20),
            Figure("the same, at least (95%)", floor=0.16),
            Figure("balanced accuracy", floor=0.84, quick=0.80, published={"word overlap": 0.659}),
            Figure("Brier score", floor=0.16, quick=0.18, less_is_better=True),
            Figure("calibration error", floor=0.12, quick=0.13, less_is_better=True),
            Figure("borne out, of those said to be", floor=0.82, quick=0.78),
        ),
        run=partial(measure_support, "fever"),
        notes=f"{_NOTES} Both sets are scored together: the time stands with the one that was taken first.",
        command="benchmarks/bench_support.py",
    ),
}
