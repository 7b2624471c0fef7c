"""Who did it to whom, and which figure belongs to what."""

import pytest

from openassay.verification.statement_check import check_statement
from tests.growth import growth

pytestmark = pytest.mark.requirement("X-03")

SALE = "Microsoft bought LinkedIn from its founders, while Google, which had offered less, turned to Twitter."
CUP = "Hamburg beat Bremen 3-1 on 4 May 2019 and Berlin 2-0 on 11 May 2019."
LIFE = "Ada Brandt (born 4 May 1950 in Ostrey) joined Acme in 1975 and left it in 1991."
RISE = "Sales rose from 5 million in 2019 to 7 million in 2021."
LEAD = "The new club played in the old stadium, and the old club moved north."


@pytest.mark.parametrize(
    ("quote", "statement"),
    [
        (SALE, "LinkedIn bought Microsoft from its founders."),
        (SALE, "Google bought LinkedIn from its founders."),
        (CUP, "Bremen beat Hamburg 3-1 on 4 May 2019."),
        (CUP, "Hamburg beat Bremen 3-1 on 11 May 2019."),
        (CUP, "Hamburg beat Bremen 2-0 on 4 May 2019."),
        (LIFE, "Ada Brandt joined Acme in 1991."),
        (LIFE, "Ada Brandt (born 4 May 1975 in Ostrey) joined Acme in 1975."),
        (RISE, "Sales rose from 7 million in 2019 to 5 million in 2021."),
        (RISE, "Sales rose from 7 million in 2019 to 7 million in 2021."),
        (RISE, "Sales rose from 5 million in 2021 to 7 million in 2021."),
        (
            "The series (1974-1979) preceded the film (1996-2000).",
            "The series (1996-1979) preceded the film (1996-2000).",
        ),
        (LEAD, "The old club played in the new stadium."),
        ("Acme acquired Beta in 2019.", "Acme was acquired by Beta in 2019."),
        ("Beta was acquired by Acme in 2019.", "Beta acquired Acme in 2019."),
        ("He spoke for South America and for the Americas.", "He spoke for America and for the Americas."),
        ("Terry Sanford founded the North Carolina Fund.", "Terry Sanford founded the Sanford Carolina Fund."),
    ],
)
def test_what_has_changed_places_is_refused(quote: str, statement: str) -> None:
    assert not check_statement(statement, [quote]).agrees


@pytest.mark.parametrize(
    ("quote", "statement"),
    [
        (SALE, "Microsoft bought LinkedIn."),
        (SALE, "Google turned to Twitter."),
        (CUP, "On 4 May 2019 Hamburg beat Bremen 3-1."),
        (CUP, "Hamburg beat Bremen 3-1 on May 4, 2019."),
        (LIFE, "Ada Brandt joined Acme in 1975."),
        (LIFE, "In 1975 Brandt joined Acme, and left it in 1991."),
        (RISE, "Sales rose to 7 million in 2021 from 5 million in 2019."),
        ("Acme acquired Beta in 2019.", "Beta was acquired by Acme in 2019."),
        ("Beta was acquired by Acme in 2019.", "In 2019 Acme acquired Beta."),
        ("The German army left France.", "Germany's army left France."),
        ("The National Football League (NFL) began its season.", "The NFL began its season."),
    ],
)
def test_what_stands_in_its_place_passes(quote: str, statement: str) -> None:
    assert check_statement(statement, [quote]).problems == ()


def test_two_quotes_may_be_joined() -> None:
    assert check_statement("Hamburg beat Bremen in 2019, and Ostrey beat Berlin in 2020.",
                 ["Hamburg beat Bremen in 2019.", "Ostrey beat Berlin in 2020."]).problems == ()  # fmt: skip
    assert not check_statement("Hamburg beat Bremen in 2020, and Ostrey beat Berlin in 2019.",
                     ["Hamburg beat Bremen in 2019.", "Ostrey beat Berlin in 2020."]).agrees  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["A, ", "5 of B ", "Acme was seen by Beta ", "(C) ", "x - "])
def test_hostile_repetition_takes_the_cube_of_its_length_at_most(piece: str) -> None:
    """A statement is compared with a quote, each as long as the other: 64 times as long for four times as much."""

    def check(size: int) -> None:
        text = piece * size
        check_statement(f"{text} and more.", [text, f"{text}."])

    assert growth(check, 10) < 120
