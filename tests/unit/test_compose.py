"""How a capable model writes: outline, sections, abstract and conclusion, revisions, and sentences that are mended."""

from typing import Any

import pytest

from openassay.models.evidence import Claim, Disagreement, Mark, QuoteSpan, Verdict
from openassay.models.plan import Depth
from openassay.models.report import DerivedFigure, Issue, TableCell
from openassay.reasoning.base import Draft, DraftSentence, FailedSentence, MendRequest, SynthesisPair, WriteRequest
from openassay.reasoning.llm.compose import NumberedClaims, parse_figure
from openassay.reasoning.llm.step import SideBySide
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
HEADS = {"doc1": "River report | Harbour Board | 2022-01-31", "doc2": "River report | Harbour Board | 2021-02-01"}
REQUEST = WriteRequest(plan=PLAN, claims=CLAIMS, heads=HEADS)
OUTLINE: dict[str, Any] = {
    "title": "Freight on the Wend",
    "argument": "It rose.",
    "sections": [{"title": "Tonnes by year", "purpose": "How much was carried.", "claims": [1, 2, 3]}],
}
SECTION = {
    "sentences": [
        {"opens": True, "kind": "fact", "claims": [1], "text": "In 2021 the river carried 190.1 million tonnes. [1] ✓"},
        {
            "kind": "synthesis",
            "claims": [1, 2],
            "text": "That was 7.7 million tonnes more than the year before.",
            "derived": ["7.7 = difference(190.1, 182.4)"],
        },
        {"kind": "fact", "claims": [], "text": "The future is bright."},
        {"kind": "frame", "claims": [], "text": "The sources do not agree on one point."},
    ]
}
OPENING = {
    "sentences": [
        {"part": "abstract", "kind": "fact", "claims": [1], "text": "The Wend carried 190.1 million tonnes in 2021."},
        {"part": "conclusion", "kind": "synthesis", "claims": [1, 2], "text": "Freight grew from 2020 to 2021."},
    ],
    "answers": [{"claims": [1], "text": "190.1 million tonnes"}],
}


async def compose(*answers: Any, request: WriteRequest = REQUEST) -> tuple[Draft, list[str], Events]:
    mind, models, events = reasoner(*answers, room=CAPABLE)
    draft = await mind.write(request)
    return draft, [prompt.text for prompt in models.prompts], events


async def test_an_outline_s_sections_are_written_and_then_abstract_and_conclusion() -> None:
    draft, prompts, _ = await compose(OUTLINE, SECTION, OPENING)

    assert draft.composed
    assert [(section.role, section.title) for section in draft.sections] == [
        ("abstract", "Abstract"),
        ("body", "Tonnes by year"),
        ("not_found", "What could not be found"),
        ("conclusion", "Conclusion"),
    ]
    first, second, frame = draft.sections[1].sentences
    assert first == DraftSentence(text="In 2021 the river carried 190.1 million tonnes.", claims=("C1",), opens=True), (
        "numbers of claims and marks are no text"
    )
    assert (second.kind, second.claims) == ("synthesis", ("C1", "C2"))
    assert second.derived == (DerivedFigure(value=7.7, operation="difference", operands=(190.1, 182.4)),)
    assert not frame.claims, "a fact without a claim is left out, a frame is not"
    assert [answer.text for answer in draft.answers] == ["190.1 million tonnes"]
    outline, section, opening = prompts
    assert "River report | Harbour Board | 2022-01-31: “The Wend carried 190.1" in section
    assert "[1] ✓ The Wend carried" in outline
    assert "That was 7.7 million tonnes more than the year before. [1], [2]" in opening


async def test_a_section_may_be_a_table_and_a_timeline() -> None:
    def shaped(shape: str, *columns: str) -> dict[str, Any]:
        return {**OUTLINE, "sections": [{**OUTLINE["sections"][0], "shape": shape, "columns": columns}]}

    said = {"kind": "fact", "claims": [1], "text": "In 2021 the river carried 190.1 million tonnes."}
    first = {"kind": "fact", "claims": [1], "row": "2021", "column": "tonnes", "text": "190.1 million"}
    second = {"kind": "fact", "claims": [2], "row": "2020", "column": "Tonnes", "text": "182.4 million"}
    stray = {
        "kind": "fact",
        "claims": [3],
        "row": "2020",
        "column": "Barges",
        "text": "181 million tonnes were counted.",
    }
    cells = {"sentences": [said, first, second, stray]}

    table, prompts, _ = await compose(shaped("table", "Tonnes"), cells, OPENING)
    timeline, _, _ = await compose(shaped("timeline"), cells, OPENING)
    text, _, _ = await compose(shaped("table"), cells, OPENING)

    assert "It is a table with the columns: Tonnes." in prompts[1]
    _, one, two, three = table.sections[1].sentences
    assert (one.text, one.cell) == (
        "2021, Tonnes: 190.1 million",
        TableCell(row="2021", column="Tonnes", text="190.1 million"),
    ), "what is checked and told elsewhere says by itself what the cell says"
    assert two.cell is not None
    assert three.cell is None, "no such column"
    assert timeline.sections[1].sentences[1].text == "2021: 190.1 million"
    assert [one.cell for one in text.sections[1].sentences] == [None] * 4, "a table has columns"


async def test_a_cell_that_is_mended_stays_in_its_place() -> None:
    cell = TableCell(row="2021", column="Tonnes", text="191 million")
    lost = DraftSentence(text="2021, Tonnes: 191 million", claims=("C1",), cell=cell)
    failure = FailedSentence(section="Tonnes by year", sentence=lost, reason="191 stands in no passage")
    answer = {"sentences": [{"sentence": 1, "kind": "fact", "claims": [1], "text": "190.1 million"}]}
    mind, models, _ = reasoner(answer, room=CAPABLE)

    made = (await mind.mend(MendRequest(claims=CLAIMS, failures=(failure,), heads=HEADS)))[failure]

    assert "191 million (in a table; row: 2021; column: Tonnes; both stay)" in models.prompts[0].text
    assert made.text == "2021, Tonnes: 190.1 million"
    assert made.cell == cell.model_copy(update={"text": "190.1 million"})


async def test_sides_of_a_dispute_are_shown_and_told_by_the_floor_only_if_the_model_does_not() -> None:
    dispute = Disagreement(about="the year 2020", sides=(("C2",), ("C3",)), resolution="both are credible")
    request = REQUEST.model_copy(update={"disagreements": (dispute,)})
    both = {"kind": "fact", "claims": [2, 3], "text": "The counts for 2020 differ: 182.4 and 181 million tonnes."}

    told, prompts, _ = await compose(OUTLINE, {"sentences": [both]}, OPENING, request=request)
    untold, _, _ = await compose(OUTLINE, SECTION, OPENING, request=request)

    assert "[2] against [3]: the year 2020" in prompts[1]
    assert "disagreements" not in [section.role for section in told.sections]
    assert "disagreements" in [section.role for section in untold.sections]


@pytest.mark.parametrize("outline", ["prose", {"sections": []}, {"sections": [{"title": "All", "claims": [77]}]}])
async def test_without_a_usable_outline_the_draft_is_asked_for_at_once(outline: Any) -> None:
    whole = {"title": "", "sentences": [{"section": "Freight", "claims": [1], "text": CLAIMS[0].text}]}
    draft, prompts, events = await compose(outline, outline, whole)

    assert not draft.composed
    assert len(prompts) == 3
    assert "no usable outline" in str(events.of_kind("notice")[0]["text"])


async def test_a_section_that_was_not_written_is_told_in_its_claims_words() -> None:
    draft, _, _ = await compose(OUTLINE, "prose", "prose", OPENING)

    assert [sentence.text for sentence in draft.sections[1].sentences] == [claim.text for claim in CLAIMS]


async def test_a_revision_writes_again_what_the_reviewer_named() -> None:
    two = {**OUTLINE, "sections": [{"title": "Tonnes by year", "claims": [1, 2]}, {"title": "Doubts", "claims": [3]}]}
    doubts = {"sentences": [{"kind": "fact", "claims": [3], "text": "A second count came to 181 million tonnes."}]}
    previous, _, _ = await compose(two, SECTION, doubts, OPENING)
    issue = Issue(category="coherence", severity="major", location="Doubts", description="Too short.", fix="Say when.")
    request = REQUEST.model_copy(update={"previous": previous, "issues": (issue,)})
    again = {"sentences": [{"kind": "fact", "claims": [3], "text": "For 2020 a second count came to 181."}]}

    draft, prompts, _ = await compose(again, OPENING, request=request)

    assert len(prompts) == 2, "one section and the opening"
    assert "Too short. Say when." in prompts[0]
    assert draft.sections[1] == previous.sections[1]
    assert draft.sections[2].sentences[0].text == "For 2020 a second count came to 181."


async def test_sentences_that_failed_are_mended_in_one_call() -> None:
    wrong = [DraftSentence(text=f"It carried {number} tonnes.", claims=("C1",)) for number in (5, 6)]
    failures = tuple(FailedSentence(section="A", sentence=one, reason="5 stands in no passage") for one in wrong)
    answer = {
        "sentences": [
            {"sentence": 2, "kind": "fact", "claims": [1], "text": CLAIMS[0].text},
            {"sentence": 1, "kind": "fact", "claims": [1], "text": ""},
            {"sentence": 9, "kind": "fact", "claims": [1], "text": "Nobody asked."},
        ]
    }
    mind, models, _ = reasoner(answer, room=CAPABLE)

    mended = await mind.mend(MendRequest(claims=CLAIMS, failures=failures, heads=HEADS))

    assert {failure.sentence.text: made.text for failure, made in mended.items()} == {
        "It carried 6 tonnes.": CLAIMS[0].text
    }
    [prompt] = models.prompts
    assert "Wrong: 5 stands in no passage" in prompt.text


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


async def test_sections_that_are_written_at_once_are_shown_one_after_the_other() -> None:
    events = Events()
    side = SideBySide(events)
    first, second = side.stream(0), side.stream(1)
    for stream, text in ((second, "Second."), (first, "First.")):
        add = stream.start()
        await add(f'{{"sentences": [{{"text": "{text}"}}]}}')
        await stream.flush()
    await side.end(1)
    await side.end(0)

    assert [data["text"] for data in events.of_kind("token")] == ["First.\n", "Second.\n"]
