"""Claims without a model: one fact each, understood alone, and never more than the words they rest on."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.models.evidence import Finding, QuoteSpan
from openassay.models.plan import Depth, Plan, SearchQuery, SubQuestion
from openassay.reasoning.base import DraftClaim, Evidence
from openassay.reasoning.rules.analyse import extract_claims, to_report_sentence
from openassay.reasoning.rules.phrases import split_clauses
from openassay.reasoning.rules.read import find_context_start, needs_context, split_statements
from openassay.text.negation import find_hedges, find_negations
from openassay.text.sentences import split_sentences
from openassay.text.words import words
from openassay.verification.statement_check import check_statement

PLAN = Plan(
    goal="How large is Lake Orta?", depth=Depth.QUICK,
    questions=(SubQuestion(id="Q1", text="How large is Lake Orta?", section="A"),),
    queries=(SearchQuery(id="K1", text="orta", question="Q1"),), sections=("A",), methodology="m", confidence=0.9,
)  # fmt: skip


def evidence(number: int, quote: str, *, title: str = "", relevance: float = 0.9, document: str = "d") -> Evidence:
    span = QuoteSpan(document=f"{document}{number}", start=0, end=len(quote), quote=quote)
    finding = Finding(id=f"E{number}", question="Q1", span=span, relevance=relevance)
    return Evidence(finding=finding, title=title)


def made(*quotes: str, title: str = "") -> list[DraftClaim]:
    return extract_claims(PLAN, [evidence(n, quote, title=title) for n, quote in enumerate(quotes)])


def told(quote: str, title: str = "") -> list[str]:
    return [claim.wordings[0] for claim in made(quote, title=title)]


# One fact each


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("Revenue rose 5% and profit fell 3%.", ["Revenue rose 5%.", "Profit fell 3%."]),
        ("In 2019, exports rose 5% and imports fell 3%.", ["In 2019, exports rose 5%.", "In 2019, imports fell 3%."]),
        (
            "According to the bank, exports rose 5%; imports fell 3%.",
            ["According to the bank, exports rose 5%.", "According to the bank, imports fell 3%."],
        ),
        (
            "The bank said that exports rose 5% and imports fell 3%.",
            ["The bank said that exports rose 5%.", "The bank said that imports fell 3%."],
        ),
        ("Apple rose 5%, Google fell 3%, and Meta was flat.", ["Apple rose 5%.", "Google fell 3%.", "Meta was flat."]),
        (
            "iPad sales rose in 2022, but Mac sales fell in 2022.",
            ["iPad sales rose in 2022.", "Mac sales fell in 2022."],
        ),
    ],
)
def test_a_compound_sentence_is_told_in_parts_with_all_that_reaches_over_them(sentence: str, parts: list[str]) -> None:
    assert split_clauses(sentence) == parts


@pytest.mark.parametrize(
    "sentence",
    [
        "Sales of Macs and iPads fell 3% in 2019.",
        "Lake Orta covers 18 km² and is 143 m deep.",
        "The city has 3,559 people, 1,575 households and 909 families.",
        "Exports rose 5% and imports fell 3% in 2019.",
        "Exports rose 5% in 2019 and imports fell 3%.",
        "Exports may have risen 5% and imports fell 3%.",
        "Exports rose 5% and it fell 3%.",
        "No exports rose and imports fell.",
        "Exports rose 5% but imports did not change.",
        "Apple's sales rose 5% and profit fell 3%.",
        "Exports rose because wages fell and demand was high.",
        "The bank, which lent more, grew 5% and shares fell 3%.",
        "Exports and imports rose 5% and 3%, respectively.",
        "He said exports rose 5% and imports fell 3%.",
        "Year: 2022; Sales: 5",
    ],
)
def test_where_parts_would_say_something_else_the_sentence_stays_whole(sentence: str) -> None:
    assert split_clauses(sentence) == [sentence]


# Understood alone


@pytest.mark.parametrize(
    ("quote", "statement"),
    [
        ("Lake Orta lies in the hills. It covers 18 km².", "Lake Orta covers 18 km²."),
        ("Lake Orta lies in Italy. Its depth is 143 m today.", "Lake Orta's depth is 143 m today."),
        ("Lake Orta lies in Italy. In 2019, the lake covered 18 km².", "In 2019, Lake Orta covered 18 km²."),
        ("Nvidia Corp. grew in 2022. The company's sales doubled.", "Nvidia Corp's sales doubled."),
        ("Marie Curie was born in Warsaw. She won two prizes.", "Marie Curie won two prizes."),
        ("Marie Curie was born in Warsaw. Her work won two prizes.", "Marie Curie's work won two prizes."),
        (
            "The Zook House is a house in Ohio. In 1850, it gained a kitchen wing.",
            "In 1850, the Zook House gained a kitchen wing.",
        ),
    ],
)
def test_a_pronoun_gives_way_to_what_it_stands_for(quote: str, statement: str) -> None:
    assert told(quote) == [statement]
    assert check_statement(statement, [quote]).agrees


@pytest.mark.parametrize(
    "quote",
    [
        "Apple bought Beats. It makes headphones.",
        "Tim Cook met Elon Musk. He was late again.",
        "Revenue rose 5% in 2019. It was driven by phones.",
        "Planck measured the Hubble constant in 2018. This value is lower.",
        "Prices rose in March 2020. In the same month exports fell.",
        "Lake Orta lies in Italy. The company employs 500 people.",
        "Marie Curie was born in Warsaw. It is a large city.",
        "The researchers met in Oslo in May. They found 12 graves.",
    ],
)
def test_where_it_could_stand_for_something_else_the_sentences_stay_together(quote: str) -> None:
    assert told(quote) == [quote]


def test_what_the_title_tells_is_named_where_the_kind_agrees() -> None:
    assert told("The lake covers 18 km² in all.", "Lake Orta - Wikipedia") == ["Lake Orta covers 18 km² in all."]
    assert told("The film was shot in Goa in May.", "Lahu Ke Do Rang (1979 film)")[0].startswith("Lahu Ke Do Rang was")
    assert told("The lake covers 18 km² in all.", "Ten things to see in Italy") == ["The lake covers 18 km² in all."]
    assert told("It covers 18 km² in all.", "Lake Orta") == ["It covers 18 km² in all."], "it may be any other lake"


def test_it_may_stand_for_nothing() -> None:
    assert not needs_context("It is likely that Lake Orta shrank in 2019.")
    assert not needs_context("It took two years to build the dam.")


def test_what_nobody_could_understand_alone_is_told_only_where_nothing_else_answers() -> None:
    dangling, plain = "They cover 18 km² in all.", "Lake Orta covers 18.2 km²."
    assert [claim.wordings[0] for claim in made(dangling, plain)] == [plain]
    assert [claim.wordings[0] for claim in made(dangling)] == [dangling]


def test_as_much_is_taken_along_as_explains_a_sentence() -> None:
    text = "Lake Orta lies in Italy. It is very deep. It covers 18 km².\n\nIt is far away.\nHeading\nIt is cold there."
    pieces = split_sentences(text)
    starts = {piece.text: find_context_start(text, pieces, at) for at, piece in enumerate(pieces)}
    assert starts["It is very deep."] == starts["It covers 18 km²."] == 0
    for alone in ("It is far away.", "It is cold there."):
        assert starts[alone] == text.index(alone)
    far = f"Lake Orta lies in Italy {'and in the hills ' * 40}today. It is deep."
    assert find_context_start(far, split_sentences(far), 1) == far.index("It is deep")


# Without debris


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ("However, exports fell.", "Exports fell."),
        ("On the other hand, exports fell.", "Exports fell."),
        ("LONDON (Reuters) - Shares rose 5%.", "Shares rose 5%."),
        ("Figure 3: Sales rose 5% in 2019.[12]", "Sales rose 5% in 2019."),
        ("Demographics [ edit ] The city grew [ 4 ] in 2010.", "The city grew in 2010."),
        ("Lahu Ke Do Rang (1979 film) Lahu Ke Do Rang is a film.", "Lahu Ke Do Rang is a film."),
        ("The Turkish Party The Turkish Party is a party.", "The Turkish Party is a party."),
        ("New York, New York is a song.", "New York, New York is a song."),
        ("Is this [sic] a lake?", "Is this [sic] a lake?"),
    ],
)
def test_headings_labels_and_connectives_are_no_part_of_a_statement(quote: str, said: str) -> None:
    assert to_report_sentence(quote) == said


# Once, with all witnesses


def test_a_part_of_one_sentence_and_another_sentence_that_say_the_same_are_one_claim() -> None:
    compound, single = "Lake Orta covers 18 km² and Lake Como covers 146 km².", "Lake Orta covers 18 km²."
    orta, como = made(compound, single)
    assert (orta.wordings[0], orta.findings) == (single, ("E0", "E1"))
    assert (como.wordings[0], como.findings) == ("Lake Como covers 146 km².", ("E0",))


def test_the_source_s_own_words_are_kept_in_reserve() -> None:
    quote = "Lake Orta lies in the hills. It covers 18 km²."
    [claim] = made(quote)
    assert claim.wordings == ("Lake Orta covers 18 km².", quote)


def test_what_is_told_from_the_day_of_writing_keeps_its_words_and_counts_less() -> None:
    [claim] = made("Lake Orta rose 2 m last year.")
    assert claim.wordings == ("Lake Orta rose 2 m last year.",)
    assert claim.relevance == 0.81


# Never more than the words it rests on

NAMES = st.sampled_from(["Lake Orta", "Nvidia Corp.", "Marie Curie", "The Bank of Oslo", "Exports", "Apple"])
POINTERS = st.sampled_from(["It", "Its sales", "He", "She", "Her work", "The company", "The lake", "They", "This"])
AHEAD = st.sampled_from(["", "In 2019, ", "According to the bank, ", "However, ", "Reportedly, ", "Not only that, "])
VERBS = st.sampled_from(
    ["rose 5%", "fell 3% in 2019", "may have grown 7%", "did not change", "was the largest of all", "is in Oslo",
     "covered about 40 km²", "won most of 12 races", "is expected to end by 2030", "never reached 8 tonnes"]
)  # fmt: skip
JOINTS = st.sampled_from([". ", " and ", "; ", ", but ", ", while ", " because "])
SUBJECTS = st.one_of(NAMES, POINTERS, st.sampled_from(["imports", "the river", "Lake Como"]))


@st.composite
def texts(draw: st.DrawFn) -> str:
    text = draw(AHEAD) + draw(NAMES) + " " + draw(VERBS)
    for _ in range(draw(st.integers(0, 2))):
        joint = draw(JOINTS)
        subject = draw(SUBJECTS)
        text += joint + (subject[0].upper() + subject[1:] if joint == ". " else subject) + " " + draw(VERBS)
    return f"{text}."


TITLES = st.sampled_from(["", "Lake Orta", "Nvidia Corp. annual report", "Bank of Oslo"])


@pytest.mark.slow
@given(texts(), TITLES)
def test_a_claim_has_no_word_that_its_passage_or_title_lacks_and_passes_the_checks(quote: str, title: str) -> None:
    for claim in made(quote, title=title):
        for text in claim.wordings:
            lacking = set(words(text.replace("'s", ""))) - set(words(quote.replace("'s", ""))) - set(words(title))
            assert not {word.rstrip("'") for word in lacking} - set(re.findall(r"\w+", quote.lower())), text
            doubts = check_statement(text, [quote], known=title.split()).problems
            assert not [problem for problem in doubts if problem.kind != "name"], (text, quote)


@given(texts())
def test_hedges_and_denials_stay_with_every_part_of_their_sentence(quote: str) -> None:
    for statement in split_statements(quote):
        for part in split_clauses(statement.text):
            assert [cue.cue for cue in find_hedges(part)] == [cue.cue for cue in find_hedges(statement.text)]
            assert [cue.cue for cue in find_negations(part)] == [cue.cue for cue in find_negations(statement.text)]


@given(st.text(max_size=200), st.text(max_size=40))
def test_any_text_is_a_claim_or_none(quote: str, title: str) -> None:
    for claim in made(quote, title=title) if quote.strip() else ():
        assert claim.wordings
