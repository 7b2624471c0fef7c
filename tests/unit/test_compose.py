"""How a capable model writes: the whole report in one call, revisions, and paragraphs that are edited."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from openassay.models.evidence import Claim, Disagreement, Document, Judgement, Mark, QuoteSpan, Verdict
from openassay.models.plan import Depth
from openassay.models.report import DerivedFigure, Issue, TableCell
from openassay.nodes.binding import bind_by_words, bind_to_paragraphs
from openassay.nodes.disputes import find_one_sided, list_other_sides
from openassay.nodes.draft_checker import DraftChecker
from openassay.nodes.report import build_sections
from openassay.nodes.settle import (
    _fill_gaps,
    _Slot,
    is_better,
    is_plain_title,
    list_beside,
    list_common_words,
    shorten_question,
    split_paragraphs,
)
from openassay.reasoning.base import (
    Draft,
    DraftParagraph,
    DraftSection,
    DraftSentence,
    EditRequest,
    SynthesisPair,
    WriteRequest,
)
from openassay.reasoning.llm.compose import NumberedClaims, shorten_passages, show_sentences
from openassay.reasoning.llm.prose import parse_figure, read_prose, remove_marks, split_with_marks
from openassay.reasoning.llm.step import read_texts
from openassay.state import NumberedSource
from openassay.verification.context import read_context
from openassay.verification.terms import KnownTerms, collect_words, mask_unverified_terms
from openassay.verification.verdict import ClaimMatcher
from tests.unit.test_language_reasoner import Events, plan_of, reasoner

CAPABLE = 24_000
GOAL = "How did freight on the Wend change?"
PLAN = plan_of(Depth.STANDARD).model_copy(update={"goal": GOAL})


def make_claim(number: int, text: str, relevance: float = 0.5) -> Claim:
    span = QuoteSpan(document=f"doc{number}", start=0, end=len(text), quote=text)
    return Claim(
        id=f"C{number}",
        text=text,
        questions=("Q1",),
        spans=(span,),
        verdict=Verdict.SUPPORTED,
        mark=Mark.VERIFIED,
        relevance=relevance,
    )


CLAIMS = (
    make_claim(1, "The Wend carried 190.1 million tonnes in 2021.", 0.9),
    make_claim(2, "The Wend carried 182.4 million tonnes in 2020.", 0.8),
    make_claim(3, "A second count put the year 2020 at 181 million tonnes.", 0.7),
)
NUMBERED = NumberedClaims(CLAIMS, {})
HEADS = {"doc1": "River report | Harbour Board | 2022-01-31", "doc2": "River report | Harbour Board | 2021-02-01"}
REQUEST = WriteRequest(plan=PLAN, claims=CLAIMS, heads=HEADS)
ABSTRACT = {"role": "abstract", "title": "", "text": "The Wend carried 190.1 million tonnes in 2021. [1]"}
BODY = """In 2021 the river carried **190.1** million tonnes. [1] ✓
That was 7.7 million tonnes more than the year before [=1, 2: 7.7 = difference(190.1, 182.4)].

The future is bright."""
SECTION = {"role": "section", "title": "Tonnes by year", "text": BODY}
CONCLUSION = {"role": "conclusion", "title": "", "text": "Freight grew from 2020 to 2021. [=1, 2]"}
REPORT: dict[str, Any] = {
    "outline": "It rose.",
    "title": "Freight on the Wend",
    "sections": [CONCLUSION, ABSTRACT, SECTION],
    "answers": [{"claims": [1], "text": "190.1 million tonnes"}],
}


def with_text(text: str) -> dict[str, Any]:
    return {**REPORT, "sections": [ABSTRACT, {**SECTION, "text": text}]}


async def compose(*answers: Any, request: WriteRequest = REQUEST) -> tuple[Draft, list[str], Events]:
    mind, models, events = reasoner(*answers, room=CAPABLE)
    draft = await mind.write(request)
    return draft, [prompt.text for prompt in models.prompts], events


async def test_a_report_is_written_in_one_call_from_passages_and_claims() -> None:
    passages = {"doc1": "The board counted with care. The Wend carried 190.1 million tonnes in 2021."}
    draft, prompts, _ = await compose(REPORT, request=REQUEST.model_copy(update={"passages": passages}))

    assert draft.composed
    assert [(section.role, section.title) for section in draft.sections] == [
        ("abstract", "Abstract"),
        ("body", "Tonnes by year"),
        ("conclusion", "Conclusion"),
    ]
    first, second, last = draft.sections[1].sentences
    assert first == DraftSentence(text="In 2021 the river carried 190.1 million tonnes.", claims=("C1",), opens=True), (
        "numbers of claims, marks and emphasis are no text"
    )
    assert (second.kind, second.claims, second.opens) == ("synthesis", ("C1", "C2"), False)
    assert second.derived == (DerivedFigure(value=7.7, operation="difference", operands=(190.1, 182.4)),)
    assert (last.claims, last.opens) == ((), True), "who reads it later finds out what it is"
    assert [answer.text for answer in draft.answers] == ["190.1 million tonnes"]
    [prompt] = prompts
    shown = "# D1 River report | Harbour Board | 2022-01-31\nThe board counted with care. The Wend carried 190.1"
    assert shown in prompt
    assert "Claims:\n[1] The Wend carried" in prompt


async def test_passages_lose_their_ends_by_whole_sentences_where_there_is_no_room() -> None:
    """Claims take what they take, and passages the rest."""
    long = " ".join(f"On day {day} the board counted {day * 7} barges on the Wend." for day in range(1, 2_000))
    short = "The board counted with care."
    request = REQUEST.model_copy(update={"passages": {"doc1": long, "doc2": short}})
    _, [prompt], _ = await compose(REPORT, request=request)
    shown = prompt.partition("2022-01-31\n")[2].partition("\nClaims:")[0]
    assert 0.4 * CAPABLE * 3.5 < len(shown) < len(long)
    assert shown.endswith("barges on the Wend.")
    assert long.startswith(shown)
    roomy, models, _ = reasoner(REPORT, room=4 * CAPABLE)
    await roomy.write(request)
    assert long in models.prompts[0].text


async def test_a_writer_is_told_a_tenth_more_words_than_are_wanted_and_what_a_version_has_left() -> None:
    """What fails a check is left out. A version that has words left may say more; a full one trades."""
    many = tuple(make_claim(number, f"In year {number} it carried {number} tonnes.") for number in range(1, 80))
    request = REQUEST.model_copy(update={"claims": many, "words": 1_000})
    issue = Issue(category="completeness", severity="major", location="Body", description="2020 is missing.", fix="")
    first, _, _ = await compose(REPORT, request=request)
    again = request.model_copy(update={"previous": first, "issues": (issue,)})
    mind, models, _ = reasoner(REPORT, REPORT, room=CAPABLE)
    await mind.write(again)
    await mind.write(again.model_copy(update={"words": 50}))
    wide, narrow = models.prompts
    told = sum(len(one.text.split()) for section in first.sections for one in section.sentences)
    assert "At most 1100 words" in wide.system
    assert f"The last version, of {told} words" in wide.text
    assert f"may take the {1_100 - told} words that it has left" in wide.text
    assert "takes the place of what matters less" in narrow.text


async def test_a_table_and_a_timeline_are_read_cell_by_cell() -> None:
    table = """The counts are these. [1]

| Year | Tonnes | Barges |
|---|---|---|
| 2021 | 190.1 million [1] | – |
| 2020 | 182.4 million [2] | many |"""
    timeline = (
        "- 2020: 182.4 million tonnes were carried [2]\n- **2021**: it was 190.1 million [1]\n- 2022: no count [3]"
    )
    tabled, _, _ = await compose(with_text(table))
    timed, _, _ = await compose(with_text(timeline))

    _, one, two = tabled.sections[1].sentences
    assert (one.text, one.cell) == (
        "2021, Tonnes: 190.1 million",
        TableCell(row="2021", column="Tonnes", text="190.1 million", rows="Year"),
    ), "what is checked and told elsewhere says by itself what the cell says"
    assert two.cell == TableCell(row="2020", column="Tonnes", text="182.4 million", rows="Year"), (
        "and a cell without a claim is empty"
    )
    assert [one.text for one in timed.sections[1].sentences][1] == "2021: it was 190.1 million"
    assert all(one.cell for one in timed.sections[1].sentences)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It rose [1]. It fell. [2, 3]", [("It rose.", (1,)), ("It fell.", (2, 3))]),
        ("It rose.[1][2] It fell.", [("It rose.", (1, 2)), ("It fell.", ())]),
        ("Dr. Hale of Brown v. Board [C4] agreed [5-7].", [("Dr. Hale of Brown v. Board agreed.", (4, 5, 6, 7))]),
        ("“It rose.” [1] So it did [9].", [("“It rose.”", (1,)), ("So it did.", (9,))]),
        ("The list [sic] is long. [1]", [("The list [sic] is long.", (1,))]),
        (
            'He said: "At first. Then no." [1] It fell. [2]',
            [('He said: "At first. Then no."', (1,)), ("It fell.", (2,))],
        ),
        ("It ran 1863–64. [1]", [("It ran 1863–1864.", (1,))]),
        (r"The \_\_past\_\_ device. [1]", [("The __past__ device.", (1,))]),
        # Not all sources of a sentence are shown, and each part of it keeps one.
        (
            "It rose [1, 2, 3]; then it fell [4, 5]; then it stayed [6].",
            [("It rose; then it fell; then it stayed.", (1, 4, 6, 2, 5, 3))],
        ),
    ],
)
def test_marks_belong_to_the_sentence_they_stand_behind(text: str, found: list[tuple[str, tuple[int, ...]]]) -> None:
    assert [(plain, marks.numbers) for plain, marks in split_with_marks(text)] == found


def test_a_reader_who_watches_sees_no_marks() -> None:
    assert remove_marks("It rose. [=1, 2: 7 = sum(3, 4)] It fell [3") == "It rose. It fell [3"
    assert read_texts('{"text": "It rose. [=1, 2: 7 = sum(3, 4)] It fell [3') == "It rose. It fell "
    assert read_texts('{"sections": [{"text": "It rose. [1] And') == "It rose. And"


LISTED = """Two ways are open. [1]

- **Governance (EIP-1227).** If users agree, the bomb goes [1]. Then it stays so. [2]
- **Freight grew.** [3] It did so
  twice. [1]

- **Own line**
  Something follows. [2]
- **U.S.** Federal rules hold. [1]
- **Cost**: it is *4* **now** [1]

### Counts

| Year | Tonnes |
|---|---|
| 2021 | 190.1 million [1] |
| 2020 | 182.4 million [2] |
They differ. [1, 2]

- 2020: it was little [2]
- **2021**: it was more [1]
- 2022: it was lost [3]

Then nothing.

- 2023: it was little again [2]
- 2024: it was more again [1]
- 2025: nobody knows

**Why.** Nobody told. [3]
"""


def test_lists_and_tables_are_read_where_they_stand_and_bold_words_lead() -> None:
    numbered = NumberedClaims(CLAIMS, {})
    sentences = read_prose(LISTED, numbered)

    assert [(one.text, one.item, one.lead) for one in sentences if not one.cell] == [
        ("Two ways are open.", False, ""),
        ("Governance (EIP-1227): If users agree, the bomb goes.", True, "Governance (EIP-1227):"),
        ("Then it stays so.", False, ""),
        ("Freight grew.", True, "Freight grew."),
        ("It did so twice.", False, ""),
        ("Own line: Something follows.", True, "Own line:"),
        ("U.S. Federal rules hold.", True, "U.S."),
        ("Cost: it is 4 now", True, "Cost:"),
        ("They differ.", False, ""),
        ("Then nothing.", False, ""),
        ("2023: it was little again", True, ""),
        ("2024: it was more again", True, ""),
        ("2025: nobody knows", True, ""),
        ("Why: Nobody told.", False, "Why:"),
    ]
    places = [f"{one.cell.row} {one.cell.column}".strip() if one.cell else "" for one in sentences]
    assert places == [*[""] * 8, "2021 Tonnes", "2020 Tonnes", "", "2020", "2021", "2022", *[""] * 5]
    assert [one.opens for one in sentences if not one.cell].count(False) == 2

    shown = show_sentences(sentences, numbered)

    assert "\n- **Governance (EIP-1227):** If users agree, the bomb goes. [1] Then it stays so. [2]\n" in shown
    assert "\n\n| Year | Tonnes |\n| --- | --- |\n| 2021 | 190.1 million [1] |\n" in shown
    again = read_prose(shown, numbered)
    assert again == sentences, "the model gets the last version as it would write it"


@pytest.mark.parametrize("name", ["Step {} of EIP-150", "EIP-{}"])
def test_items_that_begin_with_a_name_are_no_timeline(name: str) -> None:
    text = "\n".join(f"- **{name.format(number)}:** it rose [{number}]" for number in (1, 2, 3))
    found = read_prose(text, NumberedClaims(CLAIMS, {}))
    assert all(one.item and one.lead and not one.cell for one in found)


def test_a_heading_within_a_text_is_no_sentence() -> None:
    numbered = NumberedClaims(CLAIMS, {})
    assert [one.text for one in read_prose("### All is well\nIt rose. [1]", numbered)] == ["It rose."]


async def test_an_unmarked_sentence_rests_on_its_paragraph_and_a_judge_reads_it() -> None:
    sums_up = DraftSentence(text="Freight on the Wend grew.", opens=True)
    facts = [DraftSentence(text=claim.text, claims=(claim.id,)) for claim in CLAIMS[:2]]
    frame = DraftSentence(text="The sources do not say why.")
    terms = KnownTerms([GOAL])
    checker = DraftChecker({claim.id: claim for claim in CLAIMS}, {}, ClaimMatcher(CLAIMS, {}), terms, GOAL)

    bound = bind_to_paragraphs([sums_up, *facts, frame], checker)

    assert (bound[0].claims, bound[0].kind) == (("C1", "C2"), "synthesis")
    assert [one.cited_beside for one in bound] == [True, False, False, False], "its writer named no source for it"
    assert bound[3] == frame


async def test_an_abstract_that_names_no_claim_sums_up_the_sections() -> None:
    plain = {**ABSTRACT, "text": "Freight on the Wend grew from 2020 to 2021. Who counts is open."}
    draft, _, _ = await compose({**REPORT, "sections": [plain, SECTION, {**CONCLUSION, "text": "It grew."}]})
    assert [section.role for section in draft.sections] == ["abstract", "body", "conclusion"]

    named = [claim.id for claim in CLAIMS[:2]]
    first, second = bind_to_paragraphs(draft.sections[0].sentences, make_checker(), named)
    assert (set(first.claims), first.kind, first.cited_beside) == ({"C1", "C2"}, "synthesis", True)
    assert set(second.claims) == {"C1", "C2"}


def test_a_definition_is_no_word_on_what_stays_open() -> None:
    terms = KnownTerms([GOAL])
    for text in (
        "The Wend is an open river.",
        "By 2020 freight on the Wend had reached its limit.",
        "Freight remained low.",
    ):
        assert not terms.may_tell_limits(text)
    for text in (
        "How freight changed stays open.",
        "Why freight changed is unclear.",
        "No source says how freight changed.",
    ):
        assert terms.may_tell_limits(text)


def make_checker(*more: Claim, opening: str = "", goal: str = GOAL) -> DraftChecker:
    """`opening`: how each document begins."""
    claims = (*CLAIMS, *more)
    documents = {
        name: Document(
            hash=name, text=opening + claim.text, url=f"file:///{name}.txt", title="Count", fetched=datetime.now(UTC)
        )
        for claim in claims
        for name in (claim.spans[0].document,)
    }
    known = {claim.id: claim for claim in claims}
    return DraftChecker(known, documents, ClaimMatcher(claims, {}), KnownTerms([goal]), goal)


def test_what_introduces_a_list_rests_on_the_list() -> None:
    leads = DraftSentence(text="Three counts disagree about barges:", opens=True)
    items = [DraftSentence(text=claim.text, claims=(claim.id,), opens=True, item=True) for claim in CLAIMS]
    last = DraftSentence(text="Nothing barges here.", opens=True)

    bound = bind_to_paragraphs([leads, *items, last], make_checker())

    assert bound[0].claims == ("C1", "C2", "C3")
    assert set(bound[-1].claims) == {"C1", "C2", "C3"}, "what stands alone behind it is held against its section"


def test_a_sentence_that_sums_up_is_bound_to_the_claims_that_have_its_numbers_and_words() -> None:
    checker = make_checker()
    sums_up = DraftSentence(text="Between 2020 and 2021 tonnes rose.", claims=("C1",))

    bound = bind_by_words(sums_up, CLAIMS, checker)

    assert (bound.claims, bound.kind) == (("C1", "C2"), "synthesis")
    assert bind_by_words(bound, CLAIMS, checker) == bound
    strange = DraftSentence(text="In 1999 tonnes rose.", claims=("C1",))
    assert bind_by_words(strange, CLAIMS, checker) == strange, "no claim has it, and none is added in vain"
    painted = make_claim(4, "Barges were painted in 2019.")
    since = DraftSentence(text="Since 2019 the Wend carried more million tonnes.", claims=("C1",))
    asked = make_checker(painted, goal="How did freight on the Wend change since 2019?")
    bound = bind_by_words(since, (*CLAIMS, painted), asked)
    assert bound.claims == ("C1", "C4"), "the question has this year"
    assert bind_by_words(since, (*CLAIMS, painted), make_checker(painted)) == since
    other = DraftSentence(text="Nineteen bridges opened in spring and 181 closed.", claims=("C1",))
    assert bind_by_words(other, CLAIMS, checker) == other, "the claim that has this number tells of something else"


def test_a_sentence_on_what_stays_open_is_bound_to_the_claims_whose_names_it_has() -> None:
    checker = make_checker()
    names = DraftSentence(text="No source says why the count of 2020 rose to 181 million tonnes.")
    asks = DraftSentence(text="No source says why freight on the Wend changed.")

    bound = checker.bind_names(names, CLAIMS)

    assert bound
    assert set(bound.claims) >= {"C2", "C3"}
    assert bound.kind == "synthesis"
    assert checker.bind_names(asks, CLAIMS) == asks, "its names are the question's"
    strange = DraftSentence(text="No source says why the count of 1999 rose.")
    assert checker.bind_names(strange, CLAIMS) is None, "no claim has its figure"


def test_a_fact_has_a_third_of_its_words_from_its_passages() -> None:
    checker = make_checker()
    free = "In 2021, 190.1 million: dredging, widening and lighting."
    assert "a third" in checker.find_problem(DraftSentence(text=free, claims=("C1",)))
    assert not checker.find_problem(DraftSentence(text="The Wend carried 190.1 million tonnes.", claims=("C1",)))


def test_a_word_that_documents_write_small_is_no_name_at_the_beginning() -> None:
    checker = make_checker(opening="The survey was delayed. ")
    judged = Judgement(verdict=Verdict.SUPPORTED, score=0.9)

    delays = DraftSentence(text="Delays did not keep the count from 181 million tonnes.", claims=("C3",))
    drosten = delays.model_copy(update={"text": delays.text.replace("Delays", "Drosten")})

    assert not checker.explain(delays, judged)
    assert "Drosten" in checker.explain(drosten, judged)


def test_what_draws_its_paragraph_together_does_not_cite_it_again() -> None:
    facts = [DraftSentence(text=claim.text, claims=(claim.id,)) for claim in CLAIMS[:2]]
    opens = DraftSentence(text="Freight grew.", claims=("C1", "C2"), kind="synthesis", opens=True)
    alone = DraftSentence(text="The counts differ.", claims=("C2", "C3"), kind="synthesis")
    draft = Draft(title="Counts", sections=(DraftSection(title="Counts", sentences=(opens, *facts, alone)),))
    sources = [NumberedSource(id=f"S{n}", document=f"doc{n}", title="", published=None) for n in (1, 2, 3)]

    [section] = build_sections(draft, CLAIMS, sources)
    begun = [opens, *(fact.model_copy(update={"opens": True}) for fact in facts)]
    apart = draft.model_copy(update={"sections": (DraftSection(title="Counts", sentences=tuple(begun)),)})

    unnamed = DraftSentence(text="It grew.", claims=("C1", "C2", "C3"), kind="synthesis", cited_beside=True)
    drawn = draft.model_copy(update={"sections": (DraftSection(title="Counts", sentences=(unnamed,)),)})

    assert not build_sections(drawn, CLAIMS, sources)[0].sentences[0].visible_citations
    assert build_sections(apart, CLAIMS, sources)[0].sentences[0].cited_beside, "what opens a section sums it up"
    assert [one.citations for one in section.sentences] == [("S1", "S2"), ("S1",), ("S2",), ("S2", "S3")]
    assert [one.visible_citations for one in section.sentences] == [(), ("S1",), ("S2",), ("S2", "S3")]


def test_a_long_question_is_shortened_to_a_title() -> None:
    assert shorten_question(GOAL) == GOAL.rstrip("?")
    long = "How has the river trade developed since 2000, from barges to the new canal, and what came of it: " * 2
    assert (
        shorten_question(long)
        == "How has the river trade developed since 2000, from barges to the new canal, and what came of it"
    )
    bracketed = (
        "How did the port (its council, pilots, tug masters and stevedores) answer the canal, " + "and why, " * 9
    )
    assert shorten_question(bracketed).startswith("How did the port answer the canal, and why")


def test_a_title_of_two_parts_has_no_name_for_its_colon() -> None:
    assert is_plain_title(
        "The price of calm: river trade since 2000", ["How has the river trade developed since 2000?"]
    )
    assert not is_plain_title("The price of Prussia: river trade", ["How has the river trade developed since 2000?"])


def test_a_title_has_names_that_several_documents_tell() -> None:
    done = enumerate(("paid", "waited", "left"), 1)
    wide = [make_claim(number, f"Prussian barges {what} in 1812.") for number, what in done]
    known = ["How has the river trade developed since 2000?", " ".join(list_common_words(wide))]
    assert is_plain_title("Prussian barges and the river trade, 1812 to 2000", known)

    alone = [wide[0], *(one.model_copy(update={"spans": wide[0].spans}) for one in wide[1:])]
    assert "Prussian" not in list_common_words(alone)


def test_where_the_sentence_that_began_an_item_is_lost_the_next_begins_it() -> None:
    texts = ["Two counts.", "Tonnage: it rose.", CLAIMS[0].text, CLAIMS[1].text, "So much for that.", CLAIMS[2].text]
    first: dict[str, Any] = {"opens": True, "item": True, "lead": "Tonnage:"}
    begins: list[dict[str, Any]] = [{"opens": True}, first, {}, {}, {"opens": True}, {}]
    sentences = [DraftSentence(text=text, claims=("C1",), **own) for text, own in zip(texts, begins, strict=True)]
    draft = Draft(title="Counts", sections=(DraftSection(title="Counts", sentences=tuple(sentences)),))
    slots = [_Slot(one, None if at in (1, 4) else one) for at, one in enumerate(sentences)]
    checker = DraftChecker({}, {}, ClaimMatcher(CLAIMS, {}), KnownTerms([GOAL]), GOAL)

    [section] = _fill_gaps(draft, [slots], checker)

    kept = [(one.text, one.opens, one.item, one.lead) for one in section]
    assert kept == [
        (texts[0], True, False, ""), (texts[2], True, True, ""), (texts[3], False, False, ""),
        (texts[5], True, False, ""),
    ]  # fmt: skip


def edit_request(*paragraphs: tuple[list[DraftSentence], list[str]]) -> EditRequest:
    told = [
        DraftParagraph(section="Tonnes by year", sentences=tuple(own), faults=tuple(why)) for own, why in paragraphs
    ]
    return EditRequest(paragraphs=tuple(told), claims=CLAIMS, heads=HEADS)


async def test_a_table_is_edited_as_a_table() -> None:
    table = read_prose(
        "| Year | Tonnes |\n|---|---|\n| 2020 | 182.4 million [2] |\n| 2021 | 191 million [1] |", NUMBERED
    )
    answer = {"paragraphs": [{"paragraph": 1, "text": "| Year | Tonnes |\n|---|---|\n| 2021 | 190.1 million [1] |"}]}
    mind, models, _ = reasoner(answer, room=CAPABLE)

    edited = await mind.edit(edit_request((table, ["", "191 stands in no passage"])))

    assert "| 2020 | 182.4 million [2] |\n| 2021 | ✗1 191 million [1] |" in models.prompts[0].text
    [cell] = edited[0]
    assert cell.cell == TableCell(row="2021", column="Tonnes", text="190.1 million", rows="Year")


async def test_an_item_that_is_edited_stays_one() -> None:
    lost = DraftSentence(text="Tonnage: it was 191 million.", claims=("C1",), opens=True, item=True, lead="Tonnage:")
    mind, models, _ = reasoner(
        {"paragraphs": [{"paragraph": 1, "text": "- **Tonnage:** it was 190.1 million. [1]"}]}, room=CAPABLE
    )

    [made] = (await mind.edit(edit_request(([lost], ["191 stands in no passage"]))))[0]

    assert "(1) - ✗1 Tonnage: it was 191 million. [1]" in models.prompts[0].text
    assert (made.text, made.opens, made.item, made.lead) == ("Tonnage: it was 190.1 million.", True, True, "Tonnage:")


async def test_sides_of_a_dispute_are_shown_and_told_by_the_writer_alone() -> None:
    dispute = Disagreement(about="the year 2020", sides=(("C2",), ("C3",)), resolution="both are credible")
    request = REQUEST.model_copy(update={"disagreements": (dispute,)})
    both = with_text("The counts for 2020 differ: 182.4 and 181 million tonnes. [2, 3]")

    told, prompts, _ = await compose(both, request=request)
    untold, _, _ = await compose(REPORT, request=request)

    assert "[2] against [3]: the year 2020" in prompts[0]
    assert {section.role for draft in (told, untold) for section in draft.sections} == {
        "abstract",
        "body",
        "conclusion",
    }


def test_who_tells_one_side_of_a_dispute_is_asked_for_the_other_and_who_tells_both_or_none_is_not() -> None:
    dispute = Disagreement(about="the year 2020", sides=(("C2",), ("C3",)), resolution="both are credible")
    claims = {claim.id: claim for claim in CLAIMS}
    one, other = (DraftSentence(text=claims[id].text, claims=(id,)) for id in ("C2", "C3"))
    apart = DraftSentence(text=CLAIMS[0].text, claims=("C1",))
    sums_up = DraftSentence(text="Freight rose.", claims=("C1", "C2", "C4"), kind="synthesis")
    beside = one.model_copy(update={"cited_beside": True})

    [problem] = find_one_sided([one, apart], [dispute], claims).items()
    assert problem[0] == one
    assert CLAIMS[2].text in problem[1]
    for told in ([one, other], [apart], [sums_up], [beside]):
        assert find_one_sided(told, [dispute], claims) == {}
    settled = dispute.model_copy(update={"resolved": True})
    assert find_one_sided([one], [settled], claims) == {}
    assert list_other_sides([dispute, settled]) == ("C2", "C3")


@pytest.mark.parametrize("answer", ["prose", {"sections": []}, with_text("All is well. [77]")])
async def test_without_a_usable_report_the_draft_is_asked_for_sentence_by_sentence(answer: Any) -> None:
    if isinstance(answer, dict):
        answer = {**answer, "sections": answer["sections"][1:]}
    whole = {"title": "", "sentences": [{"section": "Freight", "claims": [1], "text": CLAIMS[0].text}]}
    draft, prompts, events = await compose(answer, answer, whole)

    assert not draft.composed
    assert len(prompts) == 3
    assert "no usable report" in str(events.of_kind("notice")[0]["text"])


async def test_a_revision_is_shown_the_last_version_and_what_is_wanted() -> None:
    previous, _, _ = await compose(REPORT)
    issue = Issue(category="coherence", severity="major", location="Doubts", description="Too short.", fix="Say when.")
    request = REQUEST.model_copy(update={"previous": previous, "issues": (issue,)})

    _, prompts, _ = await compose(REPORT, request=request)
    _, afresh, _ = await compose(REPORT, request=request.model_copy(update={"previous": None}))

    assert (
        "That was 7.7 million tonnes more than the year before. [=1, 2: 7.7 = difference(190.1, 182.4)]" in prompts[0]
    )
    assert "Doubts: Too short. Say when." in prompts[0]
    assert "before more was found, asked for" in afresh[0]


async def test_paragraphs_with_sentences_that_failed_are_edited_in_one_call() -> None:
    holds = DraftSentence(text=CLAIMS[1].text, claims=("C2",), opens=True)
    sums = DraftSentence(text="It grew.", claims=("C1", "C2"), kind="synthesis", cited_beside=True)
    wrong = [DraftSentence(text=f"It carried {number} tonnes.", claims=("C1",)) for number in (5, 6)]
    request = edit_request(
        ([holds, wrong[0]], ["", "5 stands in no passage"]), ([sums], [""]), ([wrong[1]], ["6 stands in no passage"])
    )
    answer = {
        "paragraphs": [
            {"paragraph": 3, "text": f"(3) ✗2 {CLAIMS[0].text} [1] It grew."},
            {"paragraph": 1, "text": ""},
            {"paragraph": 1, "text": "Twice."},
            {"paragraph": 9, "text": "Nobody asked."},
        ]
    }
    mind, models, _ = reasoner(answer, answer, room=CAPABLE)

    edited = await mind.edit(request)

    assert {number: [one.text for one in own] for number, own in edited.items()} == {
        2: [CLAIMS[0].text, "It grew."],
        0: [],
    }
    [prompt] = models.prompts
    assert f"(1) {CLAIMS[1].text} [2] ✗1 It carried 5 tonnes. [1]\n\n(2) It grew.\n\n(3) ✗2 It carried" in prompt.text
    assert "✗1: 5 stands in no passage\n✗2: 6 stands in no passage" in prompt.text
    assert f"[1] {CLAIMS[0].text}\n   {HEADS['doc1']}: “{CLAIMS[0].text}”" in prompt.text, "its quote is shown"
    assert f"[2] {CLAIMS[1].text}\n   " not in prompt.text, "and not that of a sentence that passed"
    assert "The report has 18 words and may have 2400." in prompt.system
    short = request.model_copy(update={"words": 10})
    await mind.edit(short)
    assert "The report has 18 words, which is too many: tighten it towards 12" in models.prompts[1].system


def test_an_edited_paragraph_stands_if_it_loses_nothing_and_is_hardly_longer() -> None:
    facts = [DraftSentence(text=claim.text, claims=(claim.id,)) for claim in CLAIMS]
    both = DraftSentence(text="It rose from 182.4 to 190.1 million tonnes.", claims=("C1", "C2"), kind="synthesis")
    whole = [_Slot(one, one) for one in facts[:2]]
    holed = [_Slot(facts[0], facts[0]), _Slot(facts[1], None)]

    assert is_better([_Slot(both, both)], whole, ())
    assert not is_better([_Slot(facts[0], facts[0])], whole, ()), "a claim is lost"
    assert is_better([_Slot(facts[0], facts[0])], whole, {"C2"}), "that is told elsewhere"
    assert is_better([_Slot(facts[0], facts[0])], holed, ())
    assert not is_better([_Slot(both, both), _Slot(facts[2], None)], whole, ()), "it did not pass"
    short = facts[1].model_copy(update={"text": "The Wend carried much."})
    narrowed = [_Slot(facts[0], facts[0]), _Slot(facts[1], short)]
    assert is_better([_Slot(both, both)], narrowed, ()), "what is left of a sentence is less than one that holds"
    assert not is_better(narrowed, whole, ())
    assert not is_better([_Slot(one, one) for one in (*facts, *facts, *facts, *facts)], whole, ()), "it has grown"


def test_what_introduces_a_table_is_judged_beside_it() -> None:
    leads = DraftSentence(text="The counts differ:", claims=("C1", "C2"), kind="synthesis", opens=True)
    first = DraftSentence(text="Freight grew.", claims=("C1",), opens=True)
    cells = read_prose(
        "| Year | Tonnes |\n|---|---|\n| 2020 | 182.4 million [2] |\n| 2021 | 190.1 million [1] |", NUMBERED
    )
    draft = Draft(title="", sections=(DraftSection(title="Counts", sentences=(first, leads, *cells)),))
    assert list_beside(draft)[leads] == ("2020, Tonnes: 182.4 million", "2021, Tonnes: 190.1 million")


def test_sentences_stand_in_paragraphs_lists_and_tables() -> None:
    groups = split_paragraphs(read_prose(LISTED, NUMBERED))
    assert [[one.text.split()[0] for one in group] for group in groups] == [
        ["Two"], ["Governance", "Then", "Freight", "It", "Own", "U.S.", "Cost:"], ["2021,", "2020,"], ["They"],
        ["2020:", "2021:", "2022:"], ["Then"], ["2023:", "2024:", "2025:"], ["Why:"],
    ]  # fmt: skip


def test_what_points_back_to_a_sentence_that_is_lost_is_lost_too() -> None:
    asked = DraftSentence(text="The port asked for barges.", claims=("C1",))
    given = DraftSentence(text="It got some.", claims=("C2",))
    other = DraftSentence(text="The count was put in doubt.", claims=("C3",))
    draft = Draft(title="Port", sections=(DraftSection(title="Port", sentences=(asked, given, other)),))
    checker = DraftChecker({}, {}, ClaimMatcher(CLAIMS, {}), KnownTerms([GOAL]), GOAL)

    [holed] = _fill_gaps(draft, [[_Slot(asked, None), _Slot(given, given), _Slot(other, other)]], checker)
    [whole] = _fill_gaps(draft, [[_Slot(one, one) for one in (asked, given, other)]], checker)

    assert [one.text for one in holed] == [other.text]
    assert [one.text for one in whole] == [asked.text, given.text, other.text]


def test_a_figure_may_be_worked_out_from_a_passage_alone() -> None:
    numbered = NumberedClaims(CLAIMS, HEADS)
    [sentence] = read_prose("It grew by 4 per cent. [=D1: 4 = percent_change(182.4, 190.1)]", numbered)
    assert sentence.documents == ("doc1",)
    assert [figure.value for figure in sentence.derived] == [4.0]


def test_a_judge_is_shown_what_else_of_a_document_bears_on_a_sentence() -> None:
    quote = "The council met on Monday about the port."
    filler = " ".join(f"Item {number} was put off." for number in range(120))
    bearing = "The harbour master warned that tugs were too old for winter ice."
    text = f"{quote} {filler} {bearing} {filler}"
    document = Document(hash="d", text=text, url="file:///d.txt", title="Minutes", fetched=datetime.now(UTC))
    context = read_context(document, [QuoteSpan(document="d", start=0, end=len(quote), quote=quote)])

    assert bearing not in context.text
    assert bearing in context.add_bearing("The harbour master said that the tugs were too old for ice.").text
    assert context.add_bearing("The council met about the port.") == context


def test_the_longest_passages_lose_their_ends_and_short_ones_none() -> None:
    claims = NumberedClaims(CLAIMS, HEADS)
    long, short = "A sentence of some length stands here. " * 400, "One sentence. And another."
    shown = shorten_passages({"doc1": long, "doc2": short, "doc3": long}, claims, 4_000)

    assert shown["doc2"] == short
    assert len(shown["doc1"]) == len(shown["doc3"]) < len(long)
    assert sum(map(len, shown.values())) <= 14_000


async def test_whether_a_sentence_follows_is_the_model_s_to_say_and_else_the_floor_s() -> None:
    pairs = [SynthesisPair("It rose.", ("one", "two")), SynthesisPair("It fell.", ("one", "two"))]
    mind, models, _ = reasoner(
        {"verdicts": [{"pair": 2, "verdict": "contradicted", "sure": 9, "unsaid": "fell"}]}, room=CAPABLE
    )
    risen, fallen = await mind.judge_syntheses(pairs)

    assert risen.embedded
    assert fallen.verdict is Verdict.CONTRADICTED
    assert "“fell”" in fallen.reason
    assert "Sentence 2: It fell.\n- one\n- two" in models.prompts[0].text
    assert await mind.judge_syntheses([]) == []


@pytest.mark.parametrize(
    ("line", "figure"),
    [
        ("12.5% = share(25, 200)", ("share", 12.5, (25.0, 200.0))),
        ("1,200 = sum(1,000, 200)", ("sum", 1200.0, (1000.0, 200.0))),
        ("2 = count(1, 3)", ("count", 2.0, ("C1", "C3"))),
        ("31 = days(2024-01-01, 2024-02-01)", ("days", 31.0, ("2024-01-01", "2024-02-01"))),
        ("7 = product(2, 3)", None),
        ("about half", None),
        ("7 = sum(two, 5)", None),
    ],
)
def test_how_a_figure_comes_about_is_read(line: str, figure: tuple[str, float, tuple[Any, ...]] | None) -> None:
    found = parse_figure(line, NumberedClaims(CLAIMS, {}))
    assert (found and (found.operation, found.value, found.operands)) == figure


@pytest.mark.parametrize("named", ["Year of 2021", "The Wend", "What the harbour board counted", "3"])
def test_rows_are_called_by_plain_words_or_nothing(named: str) -> None:
    """No judge reads it."""
    [cell] = read_prose(f"| {named} | Tonnes |\n|---|---|\n| 2021 | 190.1 million [1] |", NumberedClaims(CLAIMS, {}))
    assert cell.cell
    assert not cell.cell.rows


def test_a_quotation_or_figure_shows_its_own_sources() -> None:
    sources = [NumberedSource(id=f"S{n}", document=f"doc{n}", title="", published=None) for n in (1, 2, 3)]
    texts = ("It “grew”.", "It grew by 4%.", "It grew.")
    told = [DraftSentence(text=text, claims=("C1", "C2"), kind="synthesis", cited_beside=True) for text in texts]

    [section] = build_sections(
        Draft(title="", sections=(DraftSection(title="", sentences=tuple(told)),)), CLAIMS, sources
    )

    assert [bool(one.visible_citations) for one in section.sentences] == [True, True, False]


def test_what_a_writer_sees_of_a_failed_sentence_keeps_plain_words_and_the_names_of_passages() -> None:
    """A name that only a page's order has is left out; a possessive, an adjective or a first word is no such name."""
    texts = ["CloudMan ran on Amazon's cloud.", "Norway and Poland joined."]
    known = collect_words(*texts)
    said = "CloudMan's Norwegian users wrote anti-Polish posts to EVILCORP9."
    assert mask_unverified_terms(said, known, texts) == "CloudMan's Norwegian users wrote anti-Polish posts to …"


def test_a_figure_that_a_fact_says_how_it_comes_about_needs_no_passage() -> None:
    checker = make_checker()
    known = Judgement(verdict=Verdict.SUPPORTED, score=0.9)
    text = "The Wend carried 184.5 million tonnes a year on average."
    figure = DerivedFigure(value=184.5, operation="average", operands=(190.1, 182.4, 181))
    bare = DraftSentence(text=text, claims=("C1", "C2", "C3"))
    assert "184.5" in checker.explain(bare, known)
    assert checker.explain(bare.model_copy(update={"derived": (figure,)}), known) == ""


def test_the_years_of_days_are_told_by_any_of_the_documents() -> None:
    """ "The August offer" of a telegram of 1968 is of August 1968, whatever other documents a sentence has."""
    told = make_claim(1, "The board agreed to the offer in August, and the gold was weighed.")
    other = make_claim(2, "The Wend carried gold until the board agreed to a new offer.")
    known = {claim.id: claim for claim in (told, other)}
    documents = {
        name: Document(
            hash=name,
            text=claim.text,
            url=f"file:///{name}.txt",
            title="Count",
            published=date(2021, 9, day),
            fetched=datetime.now(UTC),
        )
        for day, claim in enumerate((told, other), 1)
        for name in (claim.spans[0].document,)
    }
    checker = DraftChecker(known, documents, ClaimMatcher(known.values(), {}), KnownTerms([GOAL]), GOAL)
    judged = Judgement(verdict=Verdict.SUPPORTED, score=0.9)
    text = "In {} the board agreed to the offer, and the gold was weighed."
    for day, wrong in (("August 2021", False), ("August 2014", True)):
        sentence = DraftSentence(text=text.format(day), claims=("C1", "C2"))
        assert bool(checker.explain(sentence, judged)) is wrong
