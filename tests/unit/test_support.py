"""How far a quote supports a statement: floors on claims nobody here wrote, and what one changed word does."""

import hashlib
import re
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.evaluation.support import Floats, SupportCase, auc, calibration, load_cases, word_overlap
from benchmarks.verifier_pairs import ONE_VOICE, voice_pairs
from openassay.errors import ConfigurationError
from openassay.text import embeddings
from openassay.text.embeddings import DATA, CrossEncoder
from openassay.verification.support import COPY, MOST_WORDS, CrossEncoderScorer, mark_copy, narrow_text

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
def support() -> CrossEncoderScorer:
    return CrossEncoderScorer(CrossEncoder())


def ask(scorer: CrossEncoderScorer, *pairs: tuple[str, str]) -> list[float]:
    return [score.supported for score in scorer.scores(pairs)]


SAMPLE = (20, 30)  # groups of fever-symmetric and pages of WiCE: 80 and 30 claims; benchmarks.evaluation takes all


def rate(scorer: CrossEncoderScorer, cases: list[SupportCase]) -> Floats:
    return np.array(ask(scorer, *((case.statement, case.quote) for case in cases)))


@pytest.mark.slow
@pytest.mark.requirement("S-09", "W-09")
def test_claims_that_are_borne_out_score_above_others(support: CrossEncoderScorer, eval_data: Path) -> None:
    """And what the score says is about as often so."""
    cases = [case for case in load_cases(eval_data, SAMPLE) if case.set == "fever"]
    truth, scores = np.array([case.supported for case in cases]), rate(support, cases)
    assert auc(truth, scores) >= 0.82
    assert calibration(truth, scores)[0] <= 0.21
    assert auc(truth, scores) >= auc(truth, np.array([word_overlap(case) for case in cases])) + 0.1


APPROVED = "The council approved the new tram line in March 2021."
MOST_PATIENTS = "Most patients taking the drug recovered in two weeks."


@pytest.mark.requirement("S-09", "X-03")
@pytest.mark.requirement("S-09")
def test_what_follows_from_claims_is_told_apart_by_adapters_of_its_own(support: CrossEncoderScorer) -> None:
    claims = "\n".join(
        (
            "The mill at Orre closed in March 1931 (Parish chronicle | Orre | 1950-01-01)",
            "The railway to Orre opened in May 1934 (Line history | State Railways | 1961-01-01)",
        )
    )
    true = ("Orre lost its mill three years before it got a train.", claims)
    false = ("The railway put an end to the mill at Orre.", claims)
    after, cause = support.follows([true, false])
    assert after > 0.6 > cause
    assert support.follows([false, true, false]) == [cause, after, cause]
    assert support.follows([("", claims), ("It closed.", "")]) == [0.0, 0.0]
    plain, drawn = CrossEncoder().scores([true]), CrossEncoder().synthesis_scores([true])
    assert not np.allclose(plain, drawn)


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
        pytest.param(
            FIRM,
            "Acme Corporation increased its revenue.",
            "Acme Corporation increased its profit.",
            marks=pytest.mark.xfail(reason="the verifier takes the one for the other", strict=True),
        ),
    ],
)
def test_one_word_changed_says_something_else(support: CrossEncoderScorer, quote: str, true: str, false: str) -> None:
    right, wrong = ask(support, (true, quote), (false, quote))
    assert right >= wrong + 0.1


def test_a_statement_of_something_else_is_not_borne_out(support: CrossEncoderScorer) -> None:
    assert ask(support, ("The mayor resigned over the budget.", TRAM))[0] < 0.25


@pytest.mark.requirement("W-09")
def test_a_statement_that_copies_a_sentence_is_borne_out(support: CrossEncoderScorer) -> None:
    copies = [(TRAM, TRAM), (DRUG, f"{FIRM} {DRUG}"), (FIRM, f"{FIRM} {DRUG}")]
    assert min(ask(support, *copies)) > 0.7


VACCINES = (
    "Health desk | 2023-05-02\nFive myths about vaccines.\nMyth 1: Vaccines cause autism.\n"
    "They do not. Dozens of studies with millions of children found no link, and the paper that started the scare "
    "was retracted."
)
AUTISM = (
    "Answers for parents | 2022-03-01\nThe claim that vaccines cause autism has been refuted by dozens of studies. "
    "The 1998 paper behind it was withdrawn, and its author lost his licence."
)


@pytest.mark.requirement("W-09", "X-03")
@pytest.mark.parametrize(
    ("statement", "evidence"),
    [
        ("Vaccines cause autism.", VACCINES),
        ("Myth 1: Vaccines cause autism.", VACCINES),
        ("Vaccines cause autism in thousands of children.", VACCINES),
        ("Vaccines cause autism.", AUTISM),
    ],
)
def test_what_a_document_refutes_it_does_not_say(support: CrossEncoderScorer, statement: str, evidence: str) -> None:
    [score] = support.scores([(statement, evidence)])
    assert score.supported < 0.5


def test_a_copy_is_marked() -> None:
    assert mark_copy("Vaccines cause autism.", AUTISM) == f"{COPY}Vaccines cause autism."
    assert mark_copy("Vaccines do not cause autism.", AUTISM) == "Vaccines do not cause autism."
    assert mark_copy("", AUTISM) == ""


@pytest.mark.slow
@pytest.mark.requirement("S-10")
def test_documents_that_are_one_voice_score_above_others(support: CrossEncoderScorer) -> None:
    pairs = list(voice_pairs("dev"))[::2]
    scores = np.array(support.dependence([(pair.claim, pair.evidence) for pair in pairs]))
    assert auc(np.array([pair.label == ONE_VOICE for pair in pairs]), scores) >= 0.7


@pytest.mark.parametrize(
    "pair", [("", ""), ("A statement.", ""), ("", TRAM), ("caf\udce9", "caf\udce9 x"), ("。", "!")]
)
def test_odd_texts_have_a_score(support: CrossEncoderScorer, pair: tuple[str, str]) -> None:
    [score] = ask(support, pair)
    assert 0 <= score <= 1


@settings(max_examples=15, deadline=None)
@given(st.text(max_size=200), st.text(max_size=400))
def test_every_pair_of_texts_has_a_score(statement: str, quote: str) -> None:
    [score] = _SCORER.scores([(statement, quote)])
    assert 0 <= score.supported <= 1
    assert 0 <= score.refuted <= 1


_SCORER = CrossEncoderScorer(CrossEncoder())


def test_scores_come_in_order_and_do_not_depend_on_the_pairs_beside(support: CrossEncoderScorer) -> None:
    pairs = [("Maria Lopez founded Acme.", FIRM), ("Some patients may relapse.", DRUG), ("A tram line opened.", TRAM)]
    together = ask(support, *pairs, pairs[0])
    alone = [ask(CrossEncoderScorer(CrossEncoder()), pair)[0] for pair in pairs]
    assert together[3] == together[0]
    assert together[:3] == pytest.approx(alone, abs=5e-3)


def test_threads_may_share_a_scorer(support: CrossEncoderScorer) -> None:
    pairs = [(f"Acme was founded in {year}.", FIRM) for year in range(1980, 1990)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: support.scores(pairs), range(4)))
    assert all(scores == results[0] for scores in results)


def test_a_long_text_is_narrowed_to_what_speaks_of_the_statement(support: CrossEncoderScorer) -> None:
    page = "\n".join([*(f"Note {index} concerns the weather in the valley." for index in range(60)), FIRM])
    said = "Acme Corporation was founded in 1987."
    assert FIRM in narrow_text(said, page)
    assert len(narrow_text(said, page).split()) <= MOST_WORDS + len(FIRM.split())
    right, wrong = ask(support, (said, page), ("The valley has no river.", page))
    assert right > wrong + 0.2


def test_the_cross_encoder_file_is_that_of_origin() -> None:
    origin = (DATA / "ORIGIN.md").read_text(encoding="utf-8")
    model = embeddings.VERIFIER
    for name in (model.graph, model.tokenizer, *model.matrices):
        row = re.search(rf"^\| `{re.escape(name)}` \| (\d+) \| `([0-9a-f]{{64}})` \|$", origin, re.MULTILINE)
        assert row is not None
        content = (DATA / name).read_bytes()
        assert (int(row[1]), row[2]) == (len(content), hashlib.sha256(content).hexdigest())
        assert name not in model.matrices or row[2] == embeddings.VERIFIER_SHA256


def test_all_weights_together_fit_an_index() -> None:
    """As they are in the wheel, which is compressed."""
    weights = [file.read_bytes() for file in DATA.iterdir() if file.suffix in (".onnx", ".npz", ".npy")]
    assert sum(len(zlib.compress(one, 1)) for one in weights) < 90_000_000


def test_a_missing_cross_encoder_says_what_to_do(tmp_path: Path) -> None:
    name = embeddings.VERIFIER.tokenizer
    (tmp_path / name).write_bytes((DATA / name).read_bytes())
    with pytest.raises(ConfigurationError, match=r"verifier\.npz is missing") as caught:
        CrossEncoder(data=tmp_path).scores([("a", "b")])
    assert "Install" in caught.value.help


def test_building_the_scorer_loads_nothing_heavy() -> None:
    code = (
        "import sys; from openassay.text.embeddings import CrossEncoder;"
        "from openassay.verification.support import CrossEncoderScorer;"
        "CrossEncoderScorer(CrossEncoder());"
        "print(sorted({'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
