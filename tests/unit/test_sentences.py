"""Sentences, names, passages: offsets must hold for any text, and the usual traps of English must not cut."""

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.text.sentences import LONGEST_PASSAGE, is_statement, is_table_row, split_passages, split_sentences
from openassay.text.words import content_words, find_names, stem, stems

TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=400) | st.text(alphabet="ab. \n?!A1:;-", max_size=400)


@given(TEXT)
def test_sentences_stand_where_they_say_and_never_overlap(text: str) -> None:
    end = 0
    for piece in split_sentences(text):
        assert text[piece.start : piece.end] == piece.text
        assert piece.text == piece.text.strip()
        assert piece.start >= end
        end = piece.end


@given(TEXT)
def test_sentences_leave_out_nothing_but_bullets(text: str) -> None:
    kept = {at for piece in split_sentences(text) for at in range(piece.start, piece.end)}
    left = "".join(char if at not in kept else "\n" for at, char in enumerate(text))
    assert all(re.fullmatch(r"(?:(?:[-*•▪◦]|\d{1,2}[.)])\s*)*", rest.strip()) for rest in left.split("\n")), left


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sales were $6.4 billion. Costs fell.", ["Sales were $6.4 billion.", "Costs fell."]),
        ("Apple Inc. reported more. The U.S. market grew.", ["Apple Inc. reported more.", "The U.S. market grew."]),
        ("A. G. Riess et al. measured it. It was 73.04.", ["A. G. Riess et al. measured it.", "It was 73.04."]),
        ("See Fig. 3 for Dr. Smith's data.", ["See Fig. 3 for Dr. Smith's data."]),
        ("Heading\nA first line.\n- An item.", ["Heading", "A first line.", "An item."]),
        ("He said “yes.” Then he left.", ["He said “yes.”", "Then he left."]),
        ("這是第一句。這是第二句。", ["這是第一句。", "這是第二句。"]),
        ("Is it? It is!", ["Is it?", "It is!"]),
        (
            "The U.S. economy grew. The U.S. Census Bureau said so.",
            ["The U.S. economy grew.", "The U.S. Census Bureau said so."],
        ),
        (
            "He sued Apple Inc. The company won. Apple Inc. CEO Tim Cook left. Apple Inc. said so.",
            ["He sued Apple Inc.", "The company won.", "Apple Inc. CEO Tim Cook left.", "Apple Inc. said so."],
        ),
        ("It is No. 5. He said no. Then he left.", ["It is No. 5.", "He said no.", "Then he left."]),
        (
            "It costs approx. 5 euros, e.g. in Oslo. J. K. Rowling wrote it.",
            ["It costs approx. 5 euros, e.g. in Oslo.", "J. K. Rowling wrote it."],
        ),
        (
            "It opened at 5 p.m. on Monday and 6 p.m. Eastern. It shut at 7 p.m. Visitors left.",
            ["It opened at 5 p.m. on Monday and 6 p.m. Eastern.", "It shut at 7 p.m.", "Visitors left."],
        ),
        (
            "It rose 3.5 per cent... and fell. Wait … what? Yes.",
            ["It rose 3.5 per cent... and fell.", "Wait … what?", "Yes."],
        ),
        (
            "Yahoo! said so. He fought in World War I. The war ended.",
            ["Yahoo! said so.", "He fought in World War I.", "The war ended."],
        ),
        (
            "It was founded in 1999.[12] The city grew.[a][b] It fell.",
            ["It was founded in 1999.[12]", "The city grew.[a][b]", "It fell."],
        ),
        ("1. Apple grew.\n12) Pears fell.", ["Apple grew.", "Pears fell."]),
        (
            "1. Apple grew. 2. Pears fell to 4. Plums rose.\n3.\nSo it was.",
            ["Apple grew.", "Pears fell to 4.", "Plums rose.", "So it was."],
        ),
        (
            "He moved to Washington, D.C. In 1990 he won. Smith et al. (2019) agree.",
            ["He moved to Washington, D.C.", "In 1990 he won.", "Smith et al. (2019) agree."],
        ),
        ("", []),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]) -> None:
    assert [piece.text for piece in split_sentences(text)] == expected


def test_a_heading_a_question_and_a_fragment_are_no_statements() -> None:
    assert not is_statement("By Jane Roe of The Herald staff.")
    assert not is_statement("Reporting by Jane Roe in London; editing by John Doe.")
    assert is_statement("By March the lake had risen by two metres.")
    assert is_statement("Net sales fell by five per cent in 2023.")
    assert is_statement("Total net sales — July 1, 2023: $81,797; June 25, 2022: $82,959")
    assert is_statement("Bolt Motors sold 50,000 cars in 2022 and 61,000 cars in 2023.")
    assert is_statement("No one was killed.")
    assert is_statement("No one was killed there.[12]")
    for text in ("Date: August 3, 2023 Apple Inc.", "Net 12,000 13,000 14,000 15,000 up to 3.",
                 "Planck's first results: the universe expands slowly", "Why did net sales fall in 2023?", "Net sales.",
                 "12 13 14 15 16 17 18.", "This sentence goes on and on..."):  # fmt: skip
        assert not is_statement(text), text


def test_a_row_has_headings_and_figures() -> None:
    assert is_table_row("Year: 2022; Team: SH0ES")
    assert not is_table_row("He said: no; she said yes in 2022.")


@given(TEXT)
def test_passages_cover_every_sentence_in_order(text: str) -> None:
    found = split_passages("h", text)
    assert all(text[p.start : p.end] == p.text and 0 < len(p.text) <= max(LONGEST_PASSAGE, 1200) for p in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    for piece in split_sentences(text):
        assert any(p.start <= piece.start and piece.end <= p.end for p in found), piece


def test_a_table_without_stops_is_cut_not_lost() -> None:
    text = "figure " * 2000
    assert "".join(p.text for p in split_passages("h", text)).split() == text.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What's happening with Apple?", ["Apple"]),
        ("How did Apple's net sales change over 2023?", ["Apple"]),
        ("For NVIDIA's Q1 2023 10-Q, compare it with the Bank of America", ["NVIDIA", "Bank of America"]),
        ("Tell me about the company", []),
        ("In March the iPhone 14 sold well", []),
        ("the SH0ES team and James Webb", ["SH0ES", "James Webb"]),
    ],
)
def test_names(text: str, expected: list[str]) -> None:
    assert find_names(text) == expected


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("measurements", "measured"),
        ("companies", "company"),
        ("expanding", "expand"),
        ("sales", "sale"),
        ("rated", "rates"),
    ],
)
def test_forms_of_a_word_share_a_stem(left: str, right: str) -> None:
    assert stem(left) == stem(right)


def test_different_words_keep_different_stems() -> None:
    assert len({stem(word) for word in ("universe", "university", "news", "new", "apple", "apply")}) == 6


def test_stems_are_the_same_from_many_threads() -> None:
    """The stemmer keeps its place in an attribute: two threads at once would read each other's word."""
    made = [
        f"{start}{end}" for start in ("measur", "expand", "report", "declin") for end in ("ing", "ed", "ements", "s")
    ]
    expected = [stem.__wrapped__(word) for word in made]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: [stem.__wrapped__(word) for word in made], range(200)))
    assert all(result == expected for result in results)


@given(TEXT)
def test_words_never_fail(text: str) -> None:
    assert len(stems(text)) == len(content_words(text))
