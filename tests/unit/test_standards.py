"""Sensitive fields, told by words that are used with care, and advice that nobody in particular gives."""

import pytest

from openassay.models.report import Critique, Issue
from openassay.nodes.review import (
    DISCLAIMERS,
    MAX_SCORE,
    StandardFailure,
    apply_standards,
    detect_fields,
    is_bare_advice,
)

SENSITIVE = {
    "medical": [
        "What is the maximum dose of paracetamol for adults?",
        "Is ibuprofen safe during pregnancy?",
        "Which treatment helps patients with heart failure?",
        "What are the side effects of semaglutide?",
        "How effective is the malaria vaccine?",
        "Welche Nebenwirkung hat dieses Medikament?",
    ],
    "legal": [
        "Can my landlord evict me without notice?",
        "Is it legal to record a phone call in France?",
        "What does the GDPR require of small companies?",
        "What is the statute of limitations for fraud?",
        "Which rights does an employer have under a fixed-term contract?",
    ],
    "financial": [
        "Give me an in-depth analysis of the American stock market",
        "Should I buy or sell Nvidia now?",
        "Is bitcoin a good hedge?",
        "How do I choose a mortgage?",
        "Which index funds have the lowest costs?",
        "How should retirement savings be spread over stocks and bonds?",
    ],
}
HARMLESS = [
    "What is the value of the Hubble constant?",
    "How does a treatment plant clean water?",
    "How strong is a hydrogen bond?",
    "How large is a tennis court?",
    "What does the second law of thermodynamics say?",
    "What's happening with Apple?",
    "How did wheat prices change since 2018?",
    "Why did the Roman Empire fall?",
    "How healthy are the fish stocks of the North Sea?",
    "How does a computer virus spread?",
    "Who will write the next chapter of the Habsburg story?",
    "Why was the Suez Canal built?",
    "Will Moore's law hold?",
    "Which atoms share electrons in a bond?",
    "How do I set up PostgreSQL replication?",
]


@pytest.mark.requirement("W-10")
@pytest.mark.parametrize(("field", "question"), [(field, text) for field, texts in SENSITIVE.items() for text in texts])
def test_a_sensitive_field_is_told_by_the_question(field: str, question: str) -> None:
    assert field in detect_fields(question)


@pytest.mark.requirement("W-10")
@pytest.mark.parametrize("question", HARMLESS)
def test_words_with_another_meaning_make_no_field(question: str) -> None:
    assert detect_fields(question) == ()


@pytest.mark.requirement("W-10")
def test_a_field_the_person_names_counts() -> None:
    assert detect_fields("What is known about sleep?", ["medicine"]) == ("medical",)


@pytest.mark.requirement("W-10")
@pytest.mark.parametrize(
    ("sentence", "bare"),
    [
        ("You should take two tablets every four hours.", True),
        ("Take two tablets every four hours.", True),
        ("Investors must sell before the end of the year.", True),
        ("Never stop taking the drug at once.", True),
        ("According to the agency, adults should take no more than four grams.", False),
        ("Guidelines recommend that patients should rest.", False),
        ("You should consult a doctor.", False),
        ("Adults took four grams a day in the trial.", False),
        ("The drug may harm the liver.", False),
        ("Takeovers rose in 2020.", False),
    ],
)
def test_advice_names_whose_it_is(sentence: str, bare: bool) -> None:
    assert is_bare_advice(sentence) is bare


@pytest.mark.requirement("W-10")
def test_a_disclaimer_names_nobody_and_counts_nothing() -> None:
    for line in DISCLAIMERS.values():
        assert line[1:] == line[1:].lower()
        assert not any(character.isdigit() for character in line)


def unmet(*, mendable: bool) -> StandardFailure:
    issue = Issue(category="citation", severity="major", location="whole report", description="too few", fix="more")
    return StandardFailure(issue, "Too few.", mendable)


@pytest.mark.requirement("W-10")
@pytest.mark.parametrize(
    ("mendable", "revisions", "expected"), [(True, 2, "revise"), (True, 0, "approve"), (False, 2, "approve")]
)
def test_what_a_writer_can_mend_goes_back_and_is_never_of_high_confidence(
    mendable: bool, revisions: int, expected: str
) -> None:
    review = Critique(scores={}, score=9.5, recommendation="approve")
    assert apply_standards(review, [], 2) is review
    judged = apply_standards(review, [unmet(mendable=mendable)], revisions)
    assert (judged.recommendation, judged.score) == (expected, MAX_SCORE)
    assert [issue.description for issue in judged.issues] == ["too few"]


@pytest.mark.requirement("W-10")
def test_the_gate_never_lifts_a_review() -> None:
    review = Critique(scores={}, score=4.0, recommendation="reject")
    judged = apply_standards(review, [unmet(mendable=True)], 2)
    assert (judged.recommendation, judged.score) == ("reject", 4.0)
    major = Issue(category="style", severity="major", location="x", description="x")
    full = Critique(scores={}, score=9.0, recommendation="approve", issues=(major,) * 3)
    assert apply_standards(full, [unmet(mendable=False)], 0).recommendation == "revise", (
        "a fourth major issue is one too many"
    )
