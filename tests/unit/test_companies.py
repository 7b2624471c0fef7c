"""Which company is meant: by name, ticker, misspelling and description, and when none is."""

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from string import ascii_uppercase

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bench_companies import speed
from benchmarks.evaluation.companies import MEASURES
from openassay.cli.sources import company as command
from openassay.companies.names import SpellingIndex, is_one_edit_apart, load_profiles, parse_name
from openassay.companies.register import CompanyRegister, CompanyRow, load_company_rows, open_companies
from openassay.protocols import CompanyResolver
from openassay.search.demo import DemoCompany
from openassay.search.demo import load_companies as demo_companies


@pytest.fixture(scope="module")
def register() -> CompanyRegister:
    return open_companies()


def short(register: CompanyResolver, name: str) -> str | None:
    found = register.resolve(name)
    return found.short if found else None


def spoken(register: CompanyResolver, text: str) -> list[tuple[str, str]]:
    found = register.mentions(text)
    assert all(text[mention.start : mention.end] == mention.text for mention in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    return [(mention.text, mention.company.short) for mention in found]


# By name ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("C-06")
@pytest.mark.parametrize("company", demo_companies().values(), ids=lambda company: company.key)
def test_the_demo_companies_by_all_their_names_and_descriptions(
    register: CompanyRegister, company: DemoCompany
) -> None:
    for name in (company.name, company.ticker, *company.aliases, *company.descriptions):
        assert short(register, name) == company.key.capitalize(), name
    for description in company.descriptions:
        expected = [(description, company.key.capitalize())]
        assert spoken(register, f"How is {description} doing?") == expected


@pytest.mark.requirement("C-06", "C-11")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("APPLE INC", "Apple"), ("apple computer", "Apple"), ("Facebook", "Meta"), ("J&J", "Johnson & Johnson"),
        ("P&G", "Procter & Gamble"), ("GM", "General Motors"), ("BofA", "Bank of America"), ("Coke", "Coca-Cola"),
        ("AT&T", "AT&T"), ("nvidia corp", "NVIDIA"), ("Lilly (Eli)", "Eli Lilly"), ("W. R. Berkley", "W. R. Berkley"),
        ("The Gap", "Gap"), ("McDonald’s", "McDonald's"), ("mcdonalds", "McDonald's"), ("WaltDisney", "Disney"),
        ("Estée Lauder", "Estee Lauder"), ("Deere & Company", "John Deere"),
        ("Air Products", "Air Products & Chemicals"),
        ("Proctor and Gamble", "Procter & Gamble"), ("Intl Business Machines", "IBM"), ("Target", "Target"),
        ("Delta", "Delta Air Lines"), ("Siemens Energy", "Siemens Energy"), ("KLA Corporation", "KLA"),
        ("A. O. Smith", "A. O. Smith"), ("SMITH A O CORP", "A. O. Smith"), ("D.R. Horton", "D. R. Horton"),
        ("Telefonica S.A.", "Telefonica"),
    ],
)  # fmt: skip
def test_names(register: CompanyRegister, name: str, expected: str) -> None:
    assert short(register, name) == expected


@pytest.mark.parametrize(
    ("ticker", "expected"),
    [
        ("AAPL", "Apple"), ("aapl", "Apple"), ("$TSLA", "Tesla"), ("$f", "Ford"), ("NASDAQ: MSFT", "Microsoft"),
        ("(NYSE: BRK.B)", "Berkshire Hathaway"), ("BRK.B", "Berkshire Hathaway"), ("brk-a", "Berkshire Hathaway"),
        ("CAT", "Caterpillar"), ("ALL", "Allstate"), ("HP", "HP"), ("$HP", "Helmerich & Payne"),
    ],
)  # fmt: skip
def test_tickers(register: CompanyRegister, ticker: str, expected: str) -> None:
    assert short(register, ticker) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Aple", "Apple"), ("Microsft", "Microsoft"), ("Micorsoft Corp", "Microsoft"), ("nvida", "NVIDIA"),
        ("Telsa", "Tesla"), ("Amazn", "Amazon"), ("bank of amercia", "Bank of America"),
        ("Goldmann Sachs", "Goldman Sachs"),
    ],
)  # fmt: skip
def test_misspellings(register: CompanyRegister, name: str, expected: str) -> None:
    assert short(register, name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "", "   ", "?!", "the", "company", "Inc", "target", "gap", "visa", "first", "it", "goggle", "United", "Home",
        "New York", "Palo Alto", "Siemens", "Tencent", "OpenAI", "their stock", "what about it", "nevermind",
        "Acme Widgets of Nowhere", "the car company", "which electric car company", "$NOSUCH", "x" * 5_000,
    ],
)  # fmt: skip
def test_what_is_no_company(register: CompanyRegister, name: str) -> None:
    assert register.resolve(name) is None


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("the company that makes electric cars", "Tesla"), ("maker of the iPhone", "Apple"),
        ("the GPU maker", "NVIDIA"),
        ("the company behind ChatGPT", None), ("the coffee chain", "Starbucks"), ("Mark Zuckerberg's company", "Meta"),
        ("the company founded by Jeff Bezos", "Amazon"), ("the electric car companies", None),
    ],
)  # fmt: skip
def test_descriptions(register: CompanyRegister, description: str, expected: str | None) -> None:
    assert short(register, description) == expected


def test_no_description_stands_for_two_companies() -> None:
    said: dict[str, str] = {}
    for entry in load_profiles().values():
        for phrase in (*entry.makes, *entry.phrases, *entry.people):
            assert said.setdefault(phrase, entry.short) == entry.short, phrase


def test_a_much_better_known_company_wins_and_equals_do_not() -> None:
    register = CompanyRegister.from_rows(
        [
            (27904, "DELTA AIR LINES, INC.", ["DAL"]),
            (1, "Delta Apparel Inc", []),
            (2, "Acme Inc", []),
            (3, "Acme Corp", []),
        ]
    )
    assert [company.cik for company in register.candidates("Delta")] == [27904, 1]
    assert register.resolve("Acme") is None
    assert [company.cik for company in register.candidates("Acme")] == [2, 3]
    found = register.resolve("Acme Corporation")
    assert found is not None
    assert found.cik == 3


def test_candidates_are_few_and_those_that_are_called_so_come_before_those_registered_so(
    register: CompanyRegister,
) -> None:
    shorts = [company.short for company in register.candidates("United")]
    assert 2 <= len(shorts) <= 6
    assert shorts[0] == "United Airlines"
    assert shorts.index("UPS") < shorts.index("United Rentals")
    assert register.candidates("") == register.candidates("Acme Widgets of Nowhere") == []


# In a text -------------------------------------------------------------------------------------------


@pytest.mark.requirement("C-06", "C-11")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What about Apple's revenue?", [("Apple", "Apple")]),
        ("compare them to google and tesla", [("google", "Google"), ("tesla", "Tesla")]),
        ("Is Aple better than Microsft or Nvida?", [("Aple", "Apple"), ("Microsft", "Microsoft"), ("Nvida", "NVIDIA")]),
        ("What is the gap between Target and Walmart?", [("Target", "Target"), ("Walmart", "Walmart")]),
        ("Did $AAPL beat (NASDAQ: MSFT) or BRK.B?",
         [("$AAPL", "Apple"), ("NASDAQ: MSFT", "Microsoft"), ("BRK.B", "Berkshire Hathaway")]),
        ("How is the electric car company doing against General Motors?",
         [("the electric car company", "Tesla"), ("General Motors", "General Motors")]),
        ("bank of america vs Wells Fargo & Company",
         [("bank of america", "Bank of America"), ("Wells Fargo & Company", "Wells Fargo")]),
        ("Procter & Gamble, Johnson & Johnson, and Coca-Cola",
         [("Procter & Gamble",) * 2, ("Johnson & Johnson",) * 2, ("Coca-Cola",) * 2]),
        ("McDonald's and Lowe’s", [("McDonald's", "McDonald's"), ("Lowe’s", "Lowe's")]),
        ("What about Ford?", [("Ford", "Ford")]),
        ("Target's earnings rose", [("Target", "Target")]),
        ("Target", [("Target", "Target")]),
        ("The CEO of IBM likes PLTR stock", [("IBM", "IBM"), ("PLTR", "Palantir")]),
        ("How is Bank of Amercia doing?", [("Bank of Amercia", "Bank of America")]),
        ("Generel Motors Co and Wels Fargo", [("Generel Motors Co", "General Motors"), ("Wels Fargo", "Wells Fargo")]),
        ("How did A. O. Smith do?", [("A. O. Smith", "A. O. Smith")]),
        ("A. O. Smith and A O Smith", [("A. O. Smith", "A. O. Smith"), ("A O Smith", "A. O. Smith")]),
        ("compare ford and gm", [("ford", "Ford"), ("gm", "General Motors")]),
        ("compare ford, gm and tesla's revenue", [("ford", "Ford"), ("gm", "General Motors"), ("tesla", "Tesla")]),
        ("delta vs southwest on punctuality", [("delta", "Delta Air Lines"), ("southwest", "Southwest Airlines")]),
        ("the difference between visa and mastercard", [("visa", "Visa"), ("mastercard", "Mastercard")]),
    ],
)  # fmt: skip
def test_mentions(register: CompanyRegister, text: str, expected: list[tuple[str, str]]) -> None:
    assert spoken(register, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "What about their stock?", "Tell me more.", "The target is to close the gap with a visa.", "I ate an apple.",
        "Is the Amazon rainforest shrinking?", "Gerald Ford met Paris Hilton in New York.", "Gap is a word.",
        "The CEO said that AI and GDP in the USA are ALL that NASA wants from IT.",
        "Which electric car company is best?",
        "Who founded Huawei, Siemens and SpaceX?", "The Impact Of Target Setting On Visa Applications In Delta Regions",
        "i have ups and downs", "Nikola Tesla was born in 1856.", "", "Mr Smith and A O went home.",
        "compare target and block sizes", "compare shell and bash", "the gap between target and visa is small",
    ],
)  # fmt: skip
def test_texts_without_a_company(register: CompanyRegister, text: str) -> None:
    assert spoken(register, text) == []


# Properties ------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.text(max_size=200))
def test_any_text_is_answered(text: str) -> None:
    register = open_companies()
    register.resolve(text)
    assert len(register.candidates(text)) <= 6
    spoken(register, text)


@pytest.mark.slow
def test_registered_names_resolve_to_their_companies(register: CompanyRegister) -> None:
    rows = random.Random(3).sample(load_company_rows(), 1_500)
    right = sum((found := register.resolve(row.name)) is not None and found.cik == row.cik for row in rows)
    assert right / len(rows) >= 0.997  # measured .9994 of all; two pairs have the same name


@given(st.sampled_from(load_company_rows()), st.randoms(use_true_random=False))
def test_case_and_punctuation_do_not_matter(row: CompanyRow, chance: random.Random) -> None:
    register = open_companies()
    written = "".join(chance.choice((letter.upper(), letter.lower())) for letter in row.name).replace(",", " ")
    assert register.resolve(f" {written}. ") == register.resolve(row.name)


@given(st.text("abc", min_size=5, max_size=8), st.lists(st.text("abc", min_size=5, max_size=8)))
def test_the_index_of_spellings_finds_all_that_comparing_finds(asked: str, strings: list[str]) -> None:
    assert SpellingIndex(strings).find_near(asked) == sorted(
        {other for other in strings if is_one_edit_apart(asked, other)}
    )


# Floors on data that are not ours --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("C-06")
def test_spellings_tickers_companies_left_out_and_ordinary_words(eval_data: Path) -> None:
    measure = MEASURES["companies"]
    assert measure.list_failures(measure.run(eval_data, True), True) == []


CROWDED = {
    "a letter": "A " * 1_000, "letters": " ".join(random.Random(1).choices(ascii_uppercase, k=1_000)),
    "an accent": "é " * 1_000, "initials": "A. " * 700, "pairs": "A & " * 500, "a word": "Aa " * 700,
    "a name": "Apple " * 350, "sides": "ford vs " * 250, "comparisons": "compare ford and " * 120,
    "short words": " ".join("".join(random.Random(2).choices(ascii_uppercase, k=2_000))[n : n + 2]
                            for n in range(0, 1_400, 2)),
    "first words": " ".join(row.name.split()[0].title() for row in random.Random(3).sample(load_company_rows(), 400)),
    "known words": " ".join(entry.short.split()[0] for entry in load_profiles().values()),
}  # fmt: skip


@pytest.mark.parametrize("text", CROWDED.values(), ids=CROWDED.keys())
def test_a_crowded_text_asks_the_register_no_more_than_its_words_are_many(
    register: CompanyRegister, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven windows of words begin at each word; up to 7 lookups were made for every one."""
    asked: Counter[str] = Counter()
    for name in ("find_exact", "is_prefix"):
        lookup = getattr(CompanyRegister, name)
        monkeypatch.setattr(
            CompanyRegister, name, lambda *args, n=name, real=lookup: (asked.update([n]), real(*args))[1]
        )
    monkeypatch.setattr(
        "openassay.companies.mentions.parse_name", lambda written: (asked.update(["parse"]), parse_name(written))[1]
    )
    text = text[:2_000]

    register.mentions(text)

    words = len(text.split())
    assert asked["find_exact"] <= 1.2 * words
    assert asked["is_prefix"] <= 1.2 * words
    assert asked["parse"] <= 6 * words


def test_an_alphabet_is_not_looked_up(register: CompanyRegister, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(CompanyRegister, "find_exact", lambda _, name: asked.append(name))
    register.mentions(" ".join(ascii_uppercase) * 30)
    assert len(asked) < 10


@pytest.mark.slow
def test_it_is_quick(register: CompanyRegister) -> None:
    took = speed(register)
    assert took["resolve"] < 5
    assert took["mentions"] < 60  # measured 12; others use the machine too


# The command -----------------------------------------------------------------------------------------


def test_the_command_shows_the_company(capsys: pytest.CaptureFixture[str]) -> None:
    command("the iphone maker", False)
    assert capsys.readouterr().out.split() == ["0000320193", "Apple", "AAPL", "Apple", "Inc."]
    command("google", True)
    assert json.loads(capsys.readouterr().out)["company"]["tickers"] == ["GOOGL", "GOOG"]


def test_the_command_shows_candidates_or_says_that_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        command("United", False)
    shown = capsys.readouterr()
    assert ended.value.exit_code == 1
    assert "United Airlines" in shown.out
    assert len(shown.err.splitlines()) == 1
    with pytest.raises(typer.Exit):
        command("Acme\nWidgets of Nowhere", True)
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"company": None, "candidates": []}
    assert len(shown.err.splitlines()) == 1
