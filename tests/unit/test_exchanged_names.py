"""Names of a statement that its passage has in another place, in another form, or not at all."""

import pytest

from openassay.text.quantities import find_quantities
from openassay.verification.names import check_names
from openassay.verification.wording import check_word_order

LISTED = "Users of Quobyte, Flocker and StorageOS had to switch to another driver."
SOLD = "Keller sold the mill to Ferro in 1921, and Ferro burned it down."


def test_a_list_may_be_told_in_another_order() -> None:
    assert not [*check_word_order("Users of Flocker, Quobyte and StorageOS had to switch to another driver.", [LISTED])]


def test_names_that_changed_places_are_found() -> None:
    assert [*check_word_order("Ferro sold the mill to Keller in 1921, and Keller burned it down.", [SOLD])]


def test_what_somebody_owns_is_no_part_of_his_name() -> None:
    passage = "President Johnson proposed to Congress the Trade Bill, which would have given him discretion."
    told = "Johnson's Trade Bill would have given him discretion."
    assert not [*check_names(told, [passage], [])]
    assert not [*check_word_order(told, [passage])]
    assert [*check_names("Johnson Trade would have given him discretion.", [passage], [])]


@pytest.mark.parametrize(
    ("statement", "passage", "strange"),
    [
        ("It answered in two FAQs.", "It answered in an FAQ.", False),
        ("It answered in two FAQs.", "FAQs were its answer.", False),
        ("The US Geological Survey counts birds.", "USGS counts birds.", False),
        ("The UK Geological Survey counts birds.", "USGS counts birds.", True),
        ("It answered in two RFCs.", "It answered in an FAQ.", True),
    ],
)
def test_acronyms_are_known_in_the_plural_and_written_out(statement: str, passage: str, strange: bool) -> None:
    assert bool([*check_names(statement, [passage], ())]) is strange


@pytest.mark.parametrize(
    ("text", "told"), [("PEP 1 of June 2000 is a guide.", False), ("On the 9th of April 2024 it rained.", True)]
)
def test_the_number_of_a_paper_is_no_day(text: str, told: bool) -> None:
    assert any(found.when and found.when.day for found in find_quantities(text)) is told
