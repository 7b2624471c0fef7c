"""Prose without a model: order, joints, disputes, what is missing, revisions, styles, and the table of figures."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from openassay.models.evidence import Claim, Disagreement, Mark, QuoteSpan, Verdict
from openassay.models.plan import Depth, Plan, SearchQuery, SubQuestion
from openassay.models.report import Issue
from openassay.nodes.report import build_key_figures
from openassay.reasoning.base import Draft, DraftSection, DraftSentence, WriteRequest
from openassay.reasoning.rules.write import write
from openassay.verification.statement_check import check_statement
from openassay.verification.terms import KnownTerms

QUESTIONS = ("How large is Lake Marrow?", "Why did Lake Marrow shrink?", "What is planned for Lake Marrow?")


def plan(goal: str = "How large is Lake Marrow and why did it shrink?", sections: Sequence[str] = QUESTIONS,
         depth: Depth = Depth.STANDARD) -> Plan:  # fmt: skip
    questions = tuple(SubQuestion(id=f"Q{n}", text=text, section=text) for n, text in enumerate(sections, 1))
    return Plan(
        goal=goal, depth=depth, questions=questions, sections=tuple(sections), methodology="m", confidence=1,
        queries=tuple(SearchQuery(id=f"K{n}", text="lake", question="Q1") for n in range(1, 6)),
    )  # fmt: skip


def claim(number: int, text: str, *quotes: str, question: int = 1, **more: Any) -> Claim:
    """Each in a document of its own, unless `document` and `start` say where it stands."""
    document, start = more.pop("document", f"D{number}"), more.pop("start", 0)
    spans = tuple(
        QuoteSpan(document=document if not at else f"{document}-{at}", start=start, end=start + len(quote), quote=quote)
        for at, quote in enumerate(quotes or (text,))
    )
    given = {"questions": (f"Q{question}",), "verdict": Verdict.SUPPORTED, "mark": Mark.VERIFIED, "relevance": 0.5}
    return Claim.model_validate({"id": f"C{number}", "text": text, "spans": spans, **given, **more})


def wrote(*claims: Claim, made: Plan | None = None, **more: Any) -> Draft:
    return write(WriteRequest.model_validate({"plan": made or plan(), "claims": claims, **more}))


def body(draft: Draft, title: str = QUESTIONS[0]) -> list[str]:
    return [s.text for section in draft.sections if section.title == title for s in section.sentences]


def role(draft: Draft, name: str) -> list[DraftSentence]:
    return [s for section in draft.sections if section.role == name for s in section.sentences]


DEFINED = claim(1, "Lake Marrow is a salt lake in the north of the country.")
SIZE_OLD = claim(2, "Lake Marrow covered 520 square kilometres in 1990.")
SIZE_NEW = claim(3, "Lake Marrow covered 412 square kilometres in 2019.", mark=Mark.CORROBORATED)
CAUSE = claim(4, "The lake shrank because farmers diverted the river Sell.", question=2)
CAVEAT = claim(5, "The survey office cautions that its oldest maps are not reliable.", relevance=0.9)
PLANNED = claim(6, "The ministry plans to buy back water rights.", question=3)
ALL = (CAVEAT, SIZE_NEW, SIZE_OLD, DEFINED, CAUSE, PLANNED)


# Order and joints


@pytest.mark.requirement("F-06", "S-10")
def test_a_section_goes_from_what_a_thing_is_over_figures_in_time_to_caveats() -> None:
    told = body(wrote(*ALL))
    places = [
        next(at for at, text in enumerate(told) if key in text) for key in ("salt lake", "520", "412", "cautions")
    ]
    assert places == sorted(places)


@pytest.mark.requirement("F-06")
def test_paragraphs_begin_and_hold_several_sentences() -> None:
    draft = wrote(*ALL)
    [section] = [section for section in draft.sections if section.title == QUESTIONS[0]]
    assert section.sentences[0].opens
    assert sum(sentence.opens for sentence in section.sentences) < len(section.sentences)


@pytest.mark.requirement("F-06", "X-01")
def test_joints_are_light_and_every_joined_sentence_still_agrees_with_its_spans() -> None:
    claims = {item.id: item for item in ALL}
    joined = [s for section in wrote(*ALL).sections for s in section.sentences if s.claims]
    others = [s for s in joined if s.text not in {item.text for item in ALL}]
    assert others, "something is joined"
    for sentence in joined:
        quotes = [span.quote for id in sentence.claims for span in claims[id].spans]
        assert check_statement(sentence.text, quotes).agrees, sentence.text
    for sentence in others:
        assert re.match(r"(?:Later|In addition|By contrast), ", sentence.text), sentence.text


def test_a_source_s_own_joint_is_put_back_where_its_neighbour_stands_before_it() -> None:
    first = "The harbour of Sell was dredged for grain ships."
    second = "However, the larger grain ships never came to Sell."
    one = claim(1, first, document="D", start=10, relevance=0.9)
    two = claim(2, "The larger grain ships never came to Sell.", second, document="D", start=10 + len(first) + 1)
    alone = claim(2, "The larger grain ships never came to Sell.", second, document="E", start=0)
    assert body(wrote(one, two)) == [first, "However, the larger grain ships never came to Sell."]
    assert "However" not in " ".join(body(wrote(one, alone)))


def test_a_name_keeps_its_capital_and_what_may_be_one_is_not_joined() -> None:
    sides = Disagreement(about="size", sides=(("C1",), ("C2",)), resolution="unresolved")
    for text, told in {
        "SURVEY 9 measured 300 square kilometres.": "By contrast, SURVEY 9 measured 300 square kilometres.",
        "The survey measured 300 square kilometres.": "By contrast, the survey measured 300 square kilometres.",
        "Marrow had 300 square kilometres.": "Marrow had 300 square kilometres.",
    }.items():
        draft = wrote(claim(1, "It measures 412 square kilometres."), claim(2, text), disagreements=(sides,))
        assert [s.text for s in role(draft, "disagreements") if s.claims][1] == told


def test_no_statement_stands_twice_in_the_body_and_no_section_opens_with_the_abstract() -> None:
    many = [claim(n, f"Survey {n} of the lake found reed bed {n} dry.", question=1 + n % 3) for n in range(10, 34)]
    draft = wrote(*many, words=1500)
    told = [s.claims for section in draft.sections if section.role == "body" for s in section.sentences]
    assert len(told) == len(set(told)) == 24
    summed_up = {id for sentence in role(draft, "abstract") for id in sentence.claims}
    for section in draft.sections:
        if section.role == "body":
            assert not set(section.sentences[0].claims) & summed_up


def test_the_summary_tells_a_corroborated_claim_in_the_words_of_another_source() -> None:
    other = "In 2019 Lake Marrow covered 412 square kilometres, satellites showed."
    twice = claim(3, SIZE_NEW.text, SIZE_NEW.text, other, mark=Mark.CORROBORATED)
    draft = wrote(DEFINED, SIZE_OLD, twice, CAUSE, CAVEAT, PLANNED)
    assert other in [s.text for s in role(draft, "abstract")]
    assert SIZE_NEW.text in " ".join(body(draft))


def test_what_is_compared_is_told_side_by_side() -> None:
    made = plan("Compare solar power and wind power", ("How do they compare?", "Solar power", "Wind power"))
    claims = [
        claim(1, "The average cost of solar power was 49 dollars a megawatt-hour.", question=2),
        claim(2, "Solar power lasts for about 30 years before panels are replaced.", question=2),
        claim(3, "Wind power lasts for about 25 years before turbines are replaced.", question=3),
        claim(4, "The average cost of wind power was 40 dollars a megawatt-hour.", question=3),
    ]
    told = body(wrote(*claims, made=made), "How do they compare?")
    sides = ["solar" if "olar power" in text else "wind" for text in told if "power" in text]
    assert sides[:4] == ["solar", "wind", "solar", "wind"]
    assert told[1].startswith(
        "By contrast, the average cost of wind power" if "cost" in told[0] else "Wind power lasts"
    )


@pytest.mark.parametrize(("asked", "order"), [("largest", [900, 400, 120]), ("smallest", [120, 400, 900])])
def test_a_ranking_is_sorted(asked: str, order: list[int]) -> None:
    made = plan(f"Which lakes are the {asked}?")
    sizes = [claim(n, f"Lake {name} covers {size} square kilometres.", relevance=0.5 + n / 100)
             for n, (name, size) in enumerate([("Ash", 400), ("Birch", 900), ("Cedar", 120)], 1)]  # fmt: skip
    told = body(wrote(*sizes, made=made))
    assert [int(number) for text in told for number in re.findall(r"(\d+) square", text)] == order


# Disputes and what is missing

DISPUTE = Disagreement(about="size", sides=(("C2",), ("C3", "C7")), resolution="unresolved")
THIRD = claim(7, "Lake Marrow covered 415 square kilometres in 2019.", mark=Mark.SINGLE)


@pytest.mark.requirement("X-08", "S-10")
def test_a_dispute_is_told_with_both_sides_and_neither_as_plain_fact() -> None:
    draft = wrote(*ALL, THIRD, disagreements=(DISPUTE,))
    frame, *facts = role(draft, "disagreements")
    assert QUESTIONS[0] in frame.text
    assert "the first view rests on one source, the other on two or more independent sources" in frame.text
    assert [sentence.claims for sentence in facts] == [("C2",), ("C3",), ("C7",)]
    plain = {id for sentence in role(draft, "body") for id in sentence.claims}
    assert not plain & {"C2", "C3", "C7"}
    assert any("What the sources disagree on" in text for text in body(draft)), "the section says where it is told"


@pytest.mark.requirement("X-08")
def test_where_the_summary_names_a_dispute_it_gives_both_sides_and_says_so() -> None:
    sentences = role(wrote(*ALL, THIRD, disagreements=(DISPUTE,)), "abstract")
    first = next(at for at, sentence in enumerate(sentences) if "C2" in sentence.claims)
    assert "disagree" in sentences[first - 1].text
    assert "C3" in sentences[first + 1].claims


@pytest.mark.requirement("X-08")
def test_several_disputes_on_one_question_are_told_apart() -> None:
    pairs = [(claim(n, f"Gauge {n} shows {n} metres of water."), claim(n + 1, f"Gauge {n} shows {n + 50} metres."))
             for n in range(10, 22, 2)]  # fmt: skip
    matters = tuple(Disagreement(about="g", sides=((a.id,), (b.id,)), resolution="unresolved") for a, b in pairs)
    draft = wrote(*ALL, *(item for pair in pairs for item in pair), disagreements=matters)
    frames = [sentence for sentence in role(draft, "disagreements") if not sentence.claims]
    assert len({frame.text for frame in frames}) == len(frames) == 6
    assert all(frame.opens for frame in frames)


@pytest.mark.requirement("X-08")
def test_an_outdated_figure_is_told_as_superseded_only() -> None:
    old = SIZE_OLD.model_copy(update={"superseded_by": "C3"})
    matter = Disagreement(about="size", sides=(("C3",), ("C2",)), resolution="newer supersedes older", resolved=True)
    draft = wrote(DEFINED, old, SIZE_NEW, CAUSE, disagreements=(matter,))
    assert not any("520" in text for text in body(draft))
    frame, told = role(draft, "disagreements")
    assert "superseded" in frame.text
    assert told.claims == ("C2",), "what took its place stands in the body and is not said again"


@pytest.mark.requirement("S-10", "X-08")
def test_a_planned_section_is_never_silently_missing() -> None:
    both = CAUSE.model_copy(update={"questions": ("Q1", "Q2")})
    draft = wrote(DEFINED, both, unanswered=(QUESTIONS[2],), words=60)
    titles = [section.title for section in draft.sections if section.role == "body"]
    frames = " ".join(s.text for section in draft.sections for s in section.sentences if not s.claims)
    for question in QUESTIONS:
        assert question in titles or f"“{question}”" in frames


@pytest.mark.slow
def test_every_frame_and_title_speaks_of_the_research_only() -> None:
    made = plan()
    told = KnownTerms([made.goal, made.model_dump_json()])
    old = PLANNED.model_copy(update={"superseded_by": "C4"})
    settled = Disagreement(about="x", sides=(("C4",), ("C6",)), resolution="newer supersedes older", resolved=True)
    for style in ("academic", "technical", "executive"):
        for disagreements in ((), (DISPUTE, settled)):
            draft = wrote(*ALL[:-1], old, THIRD, disagreements=disagreements, unanswered=(QUESTIONS[2],), style=style)
            for section in draft.sections:
                assert told.covers_title(section.title), section.title
                for sentence in section.sentences:
                    assert sentence.claims or told.covers(sentence.text), sentence.text


# Styles, length, words


def rich() -> list[Claim]:
    nouns = "reed salt grain ferry pump canal bird fish dyke sluice".split()
    return [
        claim(100 * q + n, f"Around Lake Marrow the {noun} station number {n} counted {n + 20} {noun} days that the "
              f"office of district {q} wrote down with care in its {noun} book.", question=q, relevance=0.9 - n / 100)
        for q in (1, 2, 3) for n, noun in enumerate(noun for noun in nouns for _ in range(4))
    ]  # fmt: skip


def length(draft: Draft) -> int:
    return sum(len(s.text.split()) for section in draft.sections for s in section.sentences)


@pytest.mark.requirement("F-06")
@pytest.mark.parametrize("style", ["academic", "technical", "executive"])
@pytest.mark.parametrize("words", [600, 1200, 2000])
def test_the_length_asked_for_is_kept_where_there_is_matter(words: int, style: str) -> None:
    draft = wrote(*rich(), words=words, style=style)
    assert 0.75 * words <= length(draft) <= 1.25 * words
    assert draft.notes == ()


@pytest.mark.requirement("F-06")
def test_an_abstract_has_150_to_250_words_and_little_matter_is_noted() -> None:
    summary = role(wrote(*rich(), words=2000), "abstract")
    assert 150 <= sum(len(sentence.text.split()) for sentence in summary) <= 250
    [note] = wrote(*ALL, words=2000).notes
    assert "2000 were asked for" in note
    assert not role(wrote(*rich(), made=plan(depth=Depth.QUICK)), "abstract")


@pytest.mark.requirement("F-06")
def test_the_three_styles_look_different() -> None:
    drafts = {style: wrote(*rich(), *ALL, style=style) for style in ("academic", "technical", "executive")}
    assert len({tuple(section.title for section in draft.sections) for draft in drafts.values()}) == 3
    first = next(section.sentences for section in drafts["technical"].sections if section.role == "body")
    figures = [bool(re.search(r"\d{2} \w+ days|square", sentence.text)) for sentence in first if sentence.claims]
    assert figures == sorted(figures, reverse=True)
    assert [section.role for section in drafts["executive"].sections[:2]] == ["abstract", "conclusion"]
    points = role(drafts["executive"], "abstract")
    assert sum(point.opens for point in points) > 3


@pytest.mark.requirement("F-06")
def test_banned_words_are_never_ours() -> None:
    draft = wrote(*ALL, *rich(), banned=("addition", "later", "contrast", "independent"), disagreements=(DISPUTE,))
    own = [s.text for section in draft.sections for s in section.sentences if not s.claims]
    joints = [s.text.partition(", ")[0] for section in draft.sections for s in section.sentences if s.claims]
    assert not re.search(r"addition|independent", " ".join(own), re.I)
    assert not {"In addition", "Later", "By contrast"} & set(joints)


# Revision


def issue(severity: str, place: str, description: str, fix: str = "", category: str = "accuracy") -> Issue:
    return Issue.model_validate({"category": category, "severity": severity, "location": place,
                                 "description": description, "fix": fix})  # fmt: skip


@pytest.mark.requirement("F-06")
@pytest.mark.parametrize(
    ("item", "gone", "note"),
    [
        (issue("critical", QUESTIONS[0], f"not supported: {CAVEAT.text[:80]}", "drop the sentence"), "C5", "left out"),
        (
            issue("major", QUESTIONS[0], "The survey office and its oldest maps are not reliable as told."),
            "C5",
            "left out",
        ),
        (issue("critical", QUESTIONS[0], "Something is odd about this part.", category="coherence"), "", "least sure"),
        (
            issue("major", "whole report", "2 sources are cited where at least 3 are wanted", "cite more"),
            "",
            "most sources",
        ),
    ],
)
def test_every_severe_item_changes_something_and_is_noted(item: Issue, gone: str, note: str) -> None:
    before = wrote(*ALL)
    after = wrote(*ALL, issues=(item,), fixes=(item.fix,) if item.fix else (), previous=before)
    [told] = after.notes
    assert item.description in told
    assert note in told
    assert gone not in {id for section in after.sections for s in section.sentences for id in s.claims}
    assert after.sections != before.sections or note == "most sources"


@pytest.mark.requirement("F-06")
def test_severe_items_come_first_in_the_notes_and_none_is_lost() -> None:
    items = (issue("minor", "body", "said twice: x", "keep one of them"), issue("critical", "body", "no span: y"),
             issue("major", "whole report", "300 words where 200 were asked for", "shorten"))  # fmt: skip
    notes = wrote(*ALL, issues=items, fixes=("keep one of them", "shorten"), previous=wrote(*ALL)).notes
    assert [note.split(",")[0] for note in notes] == ["critical", "major", "minor"]


def test_what_a_reviewer_missed_is_owned_up_to() -> None:
    item = issue("major", "whole report", "says nothing of Lake Sell", "say that nothing was found on it")
    told = role(wrote(*ALL, issues=(item,)), "not_found")
    assert "Lake Sell" in told[-1].text


# The table of key figures


def table(*claims: Claim) -> list[tuple[str, str, str]]:
    sentences = tuple(DraftSentence(text=item.text, claims=(item.id,)) for item in claims)
    draft = Draft(title="T", sections=(DraftSection(title="A", sentences=sentences),))
    ids = {span.document: f"S{n}" for n, item in enumerate(claims, 1) for span in item.spans}
    figures = build_key_figures(draft, {item.id: item for item in claims}, ids)
    for figure in figures:
        [bound] = [item for item in claims if item.id in figure.claims]
        assert all(part in bound.spans[0].quote for part in (figure.value, figure.when) if part)
        assert figure.citations
    return [(figure.what, figure.value, figure.when) for figure in figures]


@pytest.mark.requirement("S-10")
def test_a_table_has_one_row_a_figure_spelled_as_in_its_passage() -> None:
    power = claim(8, "In 2023 the average cost of wind power was 40 dollars per megawatt-hour.")
    count = claim(9, "The town of Sell has 1,204 houses and one church.")
    again = claim(10, "Lake Marrow covered 412 square kilometres in 2019, it says.")
    assert table(SIZE_OLD, SIZE_NEW, CAUSE, power, count, again) == [
        ("Lake Marrow covered", "520 square kilometres", "1990"),
        ("Lake Marrow covered", "412 square kilometres", "2019"),
        ("the average cost of wind power", "40 dollars per megawatt-hour", "2023"),
        ("The town of Sell has", "1,204 houses", ""),
    ]


ROW = claim(30, "Total net sales (in millions) — Three Months Ended July 1, 2023: $81,797; Change: (1)%; Table: sales.")


def test_a_row_of_a_table_is_a_figure_of_the_table_and_stands_apart_from_the_prose() -> None:
    assert table(ROW, SIZE_NEW)[0] == ("Total net sales (in millions)", "$81,797", "Three Months Ended July 1, 2023")
    draft = wrote(ROW.model_copy(update={"relevance": 1.0}), *ALL)
    [section] = [section for section in draft.sections if section.title == QUESTIONS[0]]
    assert (section.sentences[-1].text, section.sentences[-1].opens) == (ROW.text, True)
    assert ROW.text not in [sentence.text for sentence in role(draft, "abstract")]


def test_one_figure_is_no_table_and_twelve_are_the_most() -> None:
    assert table(SIZE_NEW, CAUSE) == []
    many = [claim(n, f"Gauge number {n} of the northern shore showed {n}.5 metres.") for n in range(20, 40)]
    assert len(table(*many)) == 12


@pytest.mark.requirement("X-08")
def test_a_disputed_figure_is_flagged_and_a_superseded_one_is_not_in_the_table() -> None:
    claims = (
        SIZE_NEW.model_copy(update={"disputed_by": ("C7",)}),
        THIRD,
        SIZE_OLD.model_copy(update={"superseded_by": "C3"}),
    )
    sentences = tuple(DraftSentence(text=item.text, claims=(item.id,)) for item in claims)
    draft = Draft(title="T", sections=(DraftSection(title="A", sentences=sentences),))
    figures = build_key_figures(draft, {item.id: item for item in claims}, {f"D{n}": f"S{n}" for n in (2, 3, 7)})
    assert [(figure.value, figure.disputed) for figure in figures] == [
        ("412 square kilometres", True), ("415 square kilometres", False),
    ]  # fmt: skip
