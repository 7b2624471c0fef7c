"""Who speaks at first hand, by what others say of them; what was true when; and what a question confines itself to."""

from datetime import date

import pytest

from openassay.models.evidence import Document
from openassay.models.thread import ResearchOptions
from openassay.nodes.preferences import find_sites, source_preferences
from openassay.reasoning.rules.read import repeats_question
from openassay.testing import make_document
from openassay.text.questions import Period
from openassay.text.relations import gives_other_value
from openassay.verification.sources import is_site_of, rate_sources


@pytest.mark.parametrize(
    ("host", "name", "is_theirs"),
    [
        ("www.ostrel-lines.example", "Ostrel Lines", True),
        ("coldbotany.example", "Journal of Cold Botany", True),
        ("bls.example", "Bureau of Labor Statistics", True),
        ("ostrel-facts.example", "Ostrel Lines", False),
        ("news.example", "Evening News of the East Coast", False),
        ("al.example", "Al Gore", False),
    ],
)
def test_a_host_bears_a_name(host: str, name: str, is_theirs: bool) -> None:
    assert is_site_of(host, name) is is_theirs


def on(host: str, text: str) -> Document:
    return make_document(text, url=f"https://{host}/page")


def test_whom_others_name_as_their_source_speaks_at_first_hand() -> None:
    own = on("ostrel-lines.example", "The ferry carried 2.8 million passengers.")
    first = on("post.example", "According to Ostrel Lines, the ferry carried 2.8 million passengers.")
    second = on("list.example", "The ferry carried 2.8 million passengers. Source: Ostrel Lines.")
    farm = on("facts.example", "The ferry carried 5 million passengers.")

    rated = rate_sources({one.hash: one for one in (own, first, second, farm)})

    assert [rated[one.hash].primary for one in (own, first, second, farm)] == [True, False, False, False]
    assert rated[own.hash].rank > rated[farm.hash].rank


def test_one_page_that_names_another_raises_nobody() -> None:
    farm = on("factzilla.example", "The ferry carried 5 million passengers.")
    friend = on("answers.example", "According to Factzilla, the ferry carried 5 million passengers.")

    rated = rate_sources({one.hash: one for one in (farm, friend)})

    assert rated[farm.hash].rank == rated[friend.hash].rank


@pytest.mark.parametrize(
    ("right", "other"),
    [
        ("The Ostrel ferry carries 5 million passengers.", True),
        ("The Ostrel ferry carries 2.8 million passengers.", False),
        ("The Ostrel ferry carried 2 million passengers in 2019.", False),
        ("The Ostrel ferry burns 5 tonnes of oil.", False),
    ],
)
def test_another_value_where_one_does_not_say_when(right: str, other: bool) -> None:
    left = "The Ostrel ferry carried 2.8 million passengers in 2025."

    assert gives_other_value(left, right) is other
    assert gives_other_value(right, left) is other


def test_a_question_is_confined_to_sites_and_does_without_others() -> None:
    question = "How long is the Vessa? site:geology.example -site:spam.example"

    wishes = source_preferences(question, ResearchOptions())

    assert wishes.only == ("geology.example",)
    assert wishes.avoid == ("spam.example",)
    assert wishes.without == ["spam.example"]
    assert find_sites(question) == ["geology.example"]


def test_a_period_has_ends_and_undated_pages_may_lie_in_it() -> None:
    period = Period(date(2024, 1, 1), date(2025, 12, 31))

    days = (None, date(2023, 12, 31), date(2024, 1, 1), date(2025, 12, 31), date(2026, 1, 1))
    assert [period.contains(day) for day in days] == [True, False, True, True, False]
    assert Period().contains(date(1900, 1, 1))


def test_a_sentence_that_has_the_question_in_it_states_nothing() -> None:
    question = "How many ships does Ostrel have?"

    assert repeats_question(question, "Now you know how many ships does Ostrel have.")
    assert not repeats_question(question, "Ostrel has four ships.")
    assert not repeats_question("The fleet of Ostrel in 2025", "The fleet of Ostrel in 2025 had four ships.")
