"""Cues that turn a statement round, and what they reach."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.text.negation import (
    are_contradictory,
    are_opposite,
    find_directions,
    find_hedges,
    find_negations,
    has_negation,
    select_soft_words,
)
from openassay.text.words import stem, words
from tests.growth import LINEAR, growth


def directions(text: str) -> set[str]:
    """The ways a text points, as "amount+" or "amount-"."""
    return {f"{turn.family}{'+' if turn.rises else '-'}" for turn in find_directions(text)}


def hedged(text: str) -> bool:
    return bool(find_hedges(text) or select_soft_words(words(text)))


@pytest.mark.requirement("X-03")
@pytest.mark.parametrize(
    ("text", "cue", "word"),
    [
        ("The drug did not reduce mortality.", "not", "reduce"),
        ("Sales didn't fall.", "didn't", "fall"),
        ("Sales didn’t fall.", "didn't", "fall"),
        ("The company has never paid a dividend.", "never", "paid"),
        ("It failed to meet the target.", "failed to", "meet"),
        ("He denied taking money.", "denied", "taking"),
        ("The panel ruled out fraud.", "ruled out", "fraud"),
        ("The firm no longer sells cars.", "no longer", "sells"),
        ("She cannot attend.", "cannot", "attend"),
        ("They left without paying.", "without", "paying"),
        ("Rates are unlikely to rise.", "unlikely", "rise"),
        ("Prices did not significantly increase.", "not", "increase"),
        ("It is false that dogs bite.", "false that", "dogs"),
        ("It is not true that dogs bite.", "not true that", "dogs"),
        ("It is untrue that dogs bite.", "untrue", "dogs"),
        ("The paper wrongly named dogs.", "wrongly", "named"),
    ],
)
def test_cue_and_the_word_it_turns(text: str, cue: str, word: str) -> None:
    [found] = find_negations(text)
    assert (found.cue, found.word) == (cue, stem(word))
    assert found.word in found.scope


@pytest.mark.parametrize(
    "text",
    [
        "It not only grew but doubled.",
        "No. 5 is the best known.",
        "There is no doubt that it grew.",
        "No fewer than 40 people came.",
        "Sales rose.",
        "Notable knots in Nottingham.",
    ],
)
def test_what_only_looks_like_negation(text: str) -> None:
    assert not has_negation(text)


def test_scope_ends_with_the_clause() -> None:
    [cue] = find_negations("Profit did not fall, and revenue rose.")
    assert stem("revenue") not in cue.scope


@pytest.mark.requirement("X-03")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sales rose.", "Sales fell."),
        ("Costs increased.", "Costs decreased."),
        ("more than 5", "less than 5"),
        ("higher rates", "lower rates"),
        ("Output was up 5%.", "Output was down 5%."),
        ("above the mean", "below the mean"),
        ("a profit of $5", "a loss of $5"),
        ("the first day", "the last day"),
        ("before the war", "after the war"),
        ("The court accepted it.", "The court rejected it."),
        ("They support the bill.", "They oppose the bill."),
        ("The team won.", "The team lost."),
        ("It improved.", "It worsened."),
        ("The gap widened.", "The gap narrowed."),
    ],
)
def test_opposites_point_opposite_ways(one: str, other: str) -> None:
    [left], [right] = directions(one), directions(other)
    assert left[:-1] == right[:-1]
    assert {left[-1], right[-1]} == {"+", "-"}


def test_a_negated_direction_points_the_other_way() -> None:
    assert directions("Sales did not rise.") == directions("Sales fell.") == {"amount-"}


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("Dogs are allowed.", "Dogs are not allowed.", True),
        ("Dogs are allowed.", "No dogs are allowed.", True),
        ("No dogs are allowed.", "Dogs are not allowed.", False),
        ("Sales did not rise.", "Sales fell.", False),
        ("Sales rose while costs fell.", "Costs fell while sales rose.", False),
        ("It came first.", "It came last.", True),
    ],
)
def test_opposed(left: str, right: str, expected: bool) -> None:
    assert are_opposite(left, right) is are_opposite(right, left) is expected


def test_what_only_tells_things_apart_is_no_contradiction() -> None:
    assert are_contradictory("The bill was approved by the council.", "The bill was rejected by the council.")
    assert not are_contradictory(
        "The first bill was approved by the council.", "The last bill was approved by the council."
    )
    assert not are_contradictory("The bill on roads was approved.", "The bill on schools was rejected.")


def test_particles_are_no_directions() -> None:
    assert not directions("They set up a shop and shut down the mill.")


@pytest.mark.parametrize(
    "text",
    [
        "It may cause cancer.",
        "Results suggest a link.",
        "Sales are expected to grow.",
        "The firm plans to open a plant.",
        "It was reportedly sold.",
        "It could rise.",
        "May cause drowsiness.",
    ],
)
def test_hedges(text: str) -> None:
    assert find_hedges(text)
    assert hedged(text)


@pytest.mark.parametrize("text", ["It opened in May.", "On May 5 it closed.", "Theresa May resigned.", "Sales grew."])
def test_a_month_is_no_hedge(text: str) -> None:
    assert not find_hedges(text)


def test_turn_knows_its_clause() -> None:
    rose, fell = find_directions("Sales rose, but costs fell.")
    assert rose.clause == frozenset({stem("sales")})
    assert stem("costs") in fell.clause


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    spans = [(cue.start, cue.end) for cue in (*find_negations(text), *find_hedges(text))]
    spans += [(turn.start, turn.end) for turn in find_directions(text)]
    assert all(0 <= start < end <= len(text) for start, end in spans)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["not ", "n't", "no more ", "a", "rose, ", "'a", "may "])
def test_hostile_repetition_takes_linear_time(piece: str) -> None:
    def read(size: int) -> None:
        text = piece * size
        directions(text), has_negation(text), hedged(text)

    assert growth(read, 500) < LINEAR
