"""How far a quote supports a statement: floors on claims nobody here wrote, and what one changed word does."""

import hashlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.evaluation.support import Floats, SupportCase, auc, calibration, load_cases, word_overlap
from openassay.errors import ConfigurationError
from openassay.text import embeddings
from openassay.text.embeddings import DATA, CrossEncoder, MiniLM
from openassay.verification.support import (
    MOST_SENTENCES,
    FeatureSupportScorer,
    feature_names,
    load_logistic_model,
    select_sentences,
)

TRAM = (
    "The city council approved the new tram line in March 2021, and construction of the 12-kilometre route is "
    "expected to cost 340 million euros."
)
DRUG = (
    "Researchers found that most patients who took the drug recovered within two weeks, although some may relapse "
    "after treatment ends."
)
FIRM = (
    "Acme Corporation, founded in 1987 by Maria Lopez in Lisbon, increased its revenue by 14% to $2.3 billion in 2022."
)


@pytest.fixture(scope="module")
def embedder() -> MiniLM:
    return MiniLM()


@pytest.fixture(scope="module")
def reader() -> CrossEncoder:
    return CrossEncoder()


@pytest.fixture(scope="module")
def support(embedder: MiniLM, reader: CrossEncoder) -> FeatureSupportScorer:
    return FeatureSupportScorer(embedder, reader)


SAMPLE = (20, 30)  # groups of fever-symmetric and pages of WiCE: 80 and 30 claims; benchmarks.evaluation takes all


def rate(scorer: FeatureSupportScorer, cases: list[SupportCase]) -> Floats:
    return np.array(scorer.scores([(case.statement, case.quote) for case in cases]))


@pytest.mark.slow
@pytest.mark.requirement("S-09", "W-09")
@pytest.mark.parametrize(("name", "least", "brier"), [("fever", 0.78, 0.21), ("wice", 0.89, 0.17)])
def test_claims_that_are_borne_out_score_above_others(
    support: FeatureSupportScorer, embedder: MiniLM, eval_data: Path, name: str, least: float, brier: float
) -> None:
    """And what the score says is about as often so. The cross-encoder adds to words and checks."""
    cases = [case for case in load_cases(eval_data, SAMPLE) if case.set == name]
    truth, scores = np.array([case.supported for case in cases]), rate(support, cases)
    assert auc(truth, scores) >= least
    assert calibration(truth, scores)[0] <= brier
    assert auc(truth, scores) >= auc(truth, np.array([word_overlap(case) for case in cases]))
    assert auc(truth, scores) >= auc(truth, rate(FeatureSupportScorer(embedder), cases)) + 0.01


APPROVED = "The council approved the new tram line in March 2021."
MOST_PATIENTS = "Most patients taking the drug recovered in two weeks."


@pytest.mark.requirement("S-09", "X-03")
@pytest.mark.parametrize(
    ("quote", "true", "false"),
    [
        (TRAM, APPROVED, APPROVED.replace("2021", "2019")),
        (TRAM, APPROVED, APPROVED.replace("approved", "rejected")),
        (TRAM, APPROVED, APPROVED.replace("approved", "did not approve")),
        (TRAM, "The route is expected to cost 340 million euros.", "The route is expected to cost 540 million euros."),
        (DRUG, MOST_PATIENTS, MOST_PATIENTS.replace("Most", "All")),
        (DRUG, MOST_PATIENTS, MOST_PATIENTS.replace("Most", "Few")),
        (DRUG, MOST_PATIENTS, MOST_PATIENTS.replace("weeks", "months")),
        (FIRM, "Acme increased its revenue by 14% in 2022.", "Acme decreased its revenue by 14% in 2022."),
        (FIRM, "Acme Corporation was founded in 1987.", "Acme Corporation was founded in 1997."),
        (FIRM, "Maria Lopez founded Acme Corporation.", "John Smith founded Acme Corporation."),
        (FIRM, "Acme Corporation increased its revenue.", "Acme Corporation increased its profit."),
    ],
)
def test_one_word_changed_says_something_else(support: FeatureSupportScorer, quote: str, true: str, false: str) -> None:
    right, wrong = support.scores([(true, quote), (false, quote)])
    assert right >= wrong + 0.1


def test_a_statement_of_something_else_is_not_borne_out(support: FeatureSupportScorer) -> None:
    assert support.scores([("The mayor resigned over the budget.", TRAM)])[0] < 0.25


@pytest.mark.requirement("W-09")
def test_a_statement_that_stands_in_the_quote_is_certain(support: FeatureSupportScorer) -> None:
    opening = "The city council approved the new tram line in March 2021."
    assert support.scores([(TRAM, TRAM), (opening, TRAM), (opening.upper(), f"Before. {TRAM}")]) == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "pair", [("", ""), ("A statement.", ""), ("", TRAM), ("caf\udce9", "caf\udce9 x"), ("。", "!")]
)
def test_odd_texts_have_a_score(support: FeatureSupportScorer, pair: tuple[str, str]) -> None:
    [score] = support.scores([pair])
    assert 0 <= score <= 1


@settings(max_examples=15, deadline=None)
@given(st.text(max_size=200), st.text(max_size=400))
def test_every_pair_of_texts_has_a_score(statement: str, quote: str) -> None:
    [score] = _WORDS.scores([(statement, quote)])
    assert 0 <= score <= 1


_WORDS = FeatureSupportScorer(MiniLM())


def test_scores_come_in_order_and_do_not_depend_on_the_pairs_beside(
    support: FeatureSupportScorer, embedder: MiniLM
) -> None:
    pairs = [("Maria Lopez founded Acme.", FIRM), ("Some patients may relapse.", DRUG), ("A tram line opened.", TRAM)]
    together = support.scores([*pairs, pairs[0]])
    alone = [FeatureSupportScorer(embedder, CrossEncoder()).scores([pair])[0] for pair in pairs]
    assert together[3] == together[0]
    assert together[:3] == pytest.approx(alone, abs=1e-3)


def test_threads_may_share_a_scorer(support: FeatureSupportScorer) -> None:
    pairs = [(f"Acme was founded in {year}.", FIRM) for year in range(1980, 1990)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: support.scores(pairs), range(4)))
    assert all(scores == results[0] for scores in results)


def test_a_long_quote_is_narrowed_to_what_speaks_of_the_statement(support: FeatureSupportScorer) -> None:
    page = "\n".join([*(f"Note {index} concerns the weather in the valley." for index in range(60)), FIRM])
    assert FIRM in select_sentences("Acme Corporation was founded in 1987.", page)
    assert len(select_sentences("Acme Corporation was founded in 1987.", page)) <= MOST_SENTENCES
    right, wrong = support.scores([("Acme Corporation was founded in 1987.", page), ("The valley has no river.", page)])
    assert right > wrong + 0.2


@pytest.mark.parametrize("read", [True, False])
def test_the_shipped_weights_are_of_the_numbers_there_are(read: bool) -> None:
    model = load_logistic_model(read=read)
    assert len(model.weights) == len(feature_names(read=read))
    assert (model.spread > 0).all()


def test_the_cross_encoder_file_is_that_of_origin() -> None:
    origin = (DATA / "ORIGIN.md").read_text(encoding="utf-8")
    row = re.search(r"^\| `entailment\.int8\.onnx` \| (\d+) \| `([0-9a-f]{64})` \|$", origin, re.MULTILINE)
    assert row is not None
    content = (DATA / embeddings.ENTAILMENT_FILE).read_bytes()
    assert (int(row[1]), row[2]) == (len(content), hashlib.sha256(content).hexdigest())
    assert row[2] == embeddings.ENTAILMENT_SHA256


def test_a_missing_cross_encoder_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes((DATA / "tokenizer.json").read_bytes())
    with pytest.raises(ConfigurationError, match=r"entailment\.int8\.onnx is missing") as caught:
        CrossEncoder(data=tmp_path).scores([("a", "b")])
    assert "Install" in caught.value.help


def test_building_the_scorer_loads_nothing_heavy() -> None:
    code = (
        "import sys; from openassay.text.embeddings import CrossEncoder, MiniLM;"
        "from openassay.verification.support import FeatureSupportScorer;"
        "FeatureSupportScorer(MiniLM(), CrossEncoder());"
        "print(sorted({'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
