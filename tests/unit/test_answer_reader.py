"""The reader of short answers: what it marks, what it does not, and where its files come from."""

import hashlib

import pytest

from openassay.text.answer_reader import READER_SHA256, AnswerReader, PassageText
from openassay.text.embeddings import DATA, VERIFIER

READ = AnswerReader(threads=1)
FERRY = "The ferry Kestrel was launched in Ostrey on 4 May 1901. Captain Ada Quill commanded her for twelve years."


def mark(question: str, *passages: PassageText) -> list[str]:
    """The likeliest answer in each passage."""
    found = READ.read(question, passages)
    best = [next(iter(reading.find_answers(1)), None) for reading in found]
    return [text.text[one.start : one.end] if one else "" for one, text in zip(best, passages, strict=True)]


@pytest.mark.requirement("F-05", "W-09")
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who was in command of the Kestrel?", "Ada Quill"),
        ("When was the ferry Kestrel launched?", "4 May 1901"),
        ("Where was the ferry Kestrel launched?", "Ostrey"),
        ("For how long did Captain Quill command the ferry?", "twelve years"),
    ],
)
def test_the_words_that_answer_are_marked(question: str, answer: str) -> None:
    assert mark(question, PassageText(FERRY)) == [answer]


def test_a_passage_that_answers_is_told_from_one_that_does_not() -> None:
    other = PassageText("The harbour of Ostrey was dredged again, and the quay was painted green.")
    answering, beside = READ.read("Who commanded the ferry Kestrel?", [PassageText(FERRY), other])
    assert answering.find_answers(1)[0].margin > 5
    assert beside.find_answers(1)[0].margin < 0


def test_what_helps_to_understand_a_text_is_no_answer() -> None:
    piece = PassageText(
        "She commanded her for twelve years.", head="Captain Ada Quill of the Kestrel. ", tail=" Ada Quill."
    )
    assert "Quill" not in mark("Who commanded the Kestrel?", piece)[0]
    [told] = READ.read("How many years did Ada Quill command the Kestrel?", [piece])
    best = told.find_answers(1)[0]
    assert piece.text[best.start : best.end] == "twelve"


def test_an_answer_does_not_depend_on_the_passages_beside_it() -> None:
    question, passages = (
        "Who commanded the Kestrel?",
        [PassageText(FERRY), PassageText("Nothing is known."), PassageText("")],
    )
    together = [reading.find_answers() for reading in READ.read(question, passages)]
    assert together == [READ.read(question, [one])[0].find_answers() for one in passages]
    assert READ.read(question, []) == []


def test_the_end_of_a_long_passage_is_read() -> None:
    long = PassageText("The quay was painted green again. " * 80 + FERRY)
    [found] = mark("Who commanded the ferry Kestrel?", long)
    assert found.removeprefix("Captain ") == "Ada Quill"


def test_given_words_are_weighed() -> None:
    [reading] = READ.read("Who commanded the ferry Kestrel?", [PassageText(FERRY)])
    name, ferry = FERRY.index("Ada Quill"), FERRY.index("Kestrel")
    best = reading.find_answers(1)[0]
    assert reading.weigh(name, name + 9) == pytest.approx(best.margin)
    assert reading.weigh(ferry, ferry + 7) < best.margin
    assert reading.weigh(10_000, 10_001) < -500


def test_the_shipped_files_are_those_of_origin() -> None:
    assert hashlib.sha256((DATA / VERIFIER.graph).read_bytes()).hexdigest() == READER_SHA256
