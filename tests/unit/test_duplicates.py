"""Copies are found in whatever surroundings, and nothing else is taken for one."""

from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.evaluation.duplicates import MEASURES
from openassay.search.ranking import find_duplicates
from openassay.text.sentences import containment, shingles
from tests.growth import LINEAR, growth

MEASURE = MEASURES["duplicates"]
ABSTRACT = (
    "We measured the level of Lake Marrow from 1990 to 2019 and found that it fell by two metres within a decade. "
    "Withdrawals for irrigation explain most of the decline, and rainfall explains little of it."
)
OTHER = (
    "The harbour of Ostrey was dredged last spring so that larger ferries can land there at low water. "
    "Traders in the town expect twice as many visitors in the coming summer as they had in the last."
)


def prose(words: int, seed: int) -> str:
    """Sentences of made-up words, none of which another seed has."""
    chance = Random(seed)
    return " ".join(f"w{seed}x{chance.randrange(5_000)}" for _ in range(words))


ARTICLE = f"{ABSTRACT} {prose(600, 1)}"


@pytest.mark.requirement("W-07")
def test_a_copy_among_other_things_is_found() -> None:
    copy = f"Menu Home News Sport {ARTICLE} Copyright. All rights reserved."
    assert find_duplicates([("a", ARTICLE), ("b", copy), ("c", OTHER)], ["a", "b", "c"]) == {"b": "a"}
    assert find_duplicates([("a", ARTICLE), ("b", copy), ("c", OTHER)], ["b", "a", "c"]) == {"a": "b"}


def test_an_abstract_is_the_paper_and_the_paper_is_kept() -> None:
    for order in (["abstract", "paper"], ["paper", "abstract"], []):
        assert find_duplicates([("abstract", ABSTRACT), ("paper", ARTICLE)], order) == {"abstract": "paper"}


def test_a_page_that_quotes_a_paragraph_is_no_copy() -> None:
    assert find_duplicates([("a", ARTICLE), ("b", f"{prose(300, 2)} {ABSTRACT} {prose(300, 3)}")]) == {}
    assert find_duplicates([("a", ARTICLE), ("b", f"{ABSTRACT} {OTHER}")]) == {}


def test_short_texts_are_copies_only_when_they_are_equal() -> None:
    stub = "Page not found. Please enable cookies and try again."
    assert find_duplicates([("a", stub), ("b", f"{stub} {ARTICLE}")]) == {}
    assert find_duplicates([("a", stub), ("b", stub.upper())]) == {"b": "a"}
    assert find_duplicates([("a", "Not found."), ("b", "Not there."), ("c", ""), ("d", "")]) == {}


def test_case_accents_as_written_and_signs_do_not_matter() -> None:
    plain = "The café at the corner said: “end it.Next” — and it was so, for twenty years or more, until it closed."
    other = (
        'THE CAFE\u0301 AT THE CORNER SAID "end it. Next" and it was so; for twenty years - or more, until it closed'
    )
    assert containment(shingles(plain), shingles(other)) == 1.0


def test_scripts_without_spaces_have_words_too() -> None:
    text = "湖の水位は二十年間で二メートル低下したと研究者たちは報告している。"
    assert len(shingles(text)) > 20
    assert find_duplicates([("a", text), ("b", f"ニュース {text}")], ["a", "b"]) == {"b": "a"}


@pytest.mark.requirement("W-05")
def test_the_order_of_arrival_does_not_matter() -> None:
    texts = [
        ("short", ABSTRACT), ("whole", ARTICLE), ("again", f"{ARTICLE} Copyright"), ("other", OTHER),
        ("digest", f"{ARTICLE} {OTHER} {prose(100, 4)}"),
    ]  # fmt: skip
    for order in ([], ["other", "again"], ["digest"], ["short", "whole", "again", "other", "digest"]):
        found = [find_duplicates(arrival, order) for arrival in permutations(texts)]
        assert all(one == found[0] for one in found)
        assert not set(found[0]) & set(found[0].values())


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=8), max_size=8), st.integers())
def test_what_is_kept_is_never_a_copy(chapters: list[list[int]], seed: int) -> None:
    """Texts made of shared chapters: copies, parts and digests of each other in every mixture."""
    texts = [(f"d{at}", " ".join(prose(15, chapter) for chapter in chosen)) for at, chosen in enumerate(chapters)]
    order = Random(seed).sample([name for name, _ in texts], len(texts) // 2)
    found = find_duplicates(texts, order)

    assert found == find_duplicates(texts[::-1], order)
    assert not set(found) & set(found.values())
    assert set(found) | set(found.values()) <= {name for name, _ in texts}
    kept = [(name, text) for name, text in texts if name not in found]
    assert find_duplicates(kept, order) == {}


@pytest.mark.slow
def test_time_grows_with_the_number_of_documents_and_no_faster() -> None:
    texts = [(f"d{at}", prose(2_000, at)) for at in range(160)]
    order = [name for name, _ in texts]
    assert find_duplicates([*texts, ("copy", f"{texts[7][1]} and more")], order) == {"copy": "d7"}
    assert growth(lambda count: find_duplicates(texts[:count], order), 40) < LINEAR


@pytest.mark.slow
@pytest.mark.requirement("W-07")
def test_one_page_read_in_many_ways_is_one_and_no_two_pages_are(eval_data: Path) -> None:
    assert MEASURE.list_failures(MEASURE.run(eval_data, True), True) == []
