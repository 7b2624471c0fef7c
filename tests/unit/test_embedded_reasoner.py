"""The reasoner without a model, piece by piece, through the functions its methods call."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from openassay.models.evidence import Claim, Disagreement, Finding, Mark, Passage, QuoteSpan, Verdict
from openassay.models.plan import Depth, Plan, SearchQuery, SubQuestion, ThreadMessage, Understanding
from openassay.reasoning.base import (
    AnalysisRequest,
    Conflict,
    Conversation,
    CritiqueRequest,
    Draft,
    DraftSection,
    DraftSentence,
    Evidence,
    PlanRequest,
    QueryAttempt,
    QueryRequest,
    TypedQuery,
    WriteRequest,
    recommend,
)
from openassay.reasoning.rules import RuleReasoner
from openassay.reasoning.rules.analyse import analyse, extract_claims, find_disagreements, to_report_sentence
from openassay.reasoning.rules.critique import critique_draft
from openassay.reasoning.rules.followups import LONGEST_SUMMARY, condense
from openassay.reasoning.rules.phrases import strip_document_references
from openassay.reasoning.rules.plan import build_planner_questions, make_plan, vary_queries
from openassay.reasoning.rules.read import could_answer, read_passages
from openassay.reasoning.rules.understand import extract_topic, understand
from openassay.reasoning.rules.write import write
from tests.fakes.reasoner import FakeCompanies

KNOWN = FakeCompanies({"apple": "Apple", "aapl": "Apple", "tesla": "Tesla"})
NONE = FakeCompanies({})


class WordVectors:
    """An embedder whose vectors are word counts: close texts share words, and nothing is loaded."""

    name = "words"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), 512), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[sum(word.encode()) % 512] += 1
            row /= max(1.0, float((row @ row) ** 0.5))
        return rows


@pytest.mark.parametrize(
    ("message", "conversation", "intent", "question"),
    [
        ("What's happening with Apple?", Conversation(), "research", "What's happening with Apple?"),
        ("aapl", Conversation(), "research", "What is happening with Apple?"),
        ("What about their stock?", Conversation(subject="Apple"), "follow_up", "What about Apple's stock?"),
        ("compare them to Tesla", Conversation(subject="Apple"), "compare", "compare Apple to Tesla"),
        ("tell me more", Conversation(subject="Tesla"), "more", "Tell me more about Tesla"),
        ("Now tell me about Tesla", Conversation(subject="Apple"), "research", "Now tell me about Tesla"),
        ("Tell me about the company", Conversation(clarified=("apple",)), "research", "Tell me about Apple"),
        ("Nevermind", Conversation(), "cancel", "Nevermind"),
        ("Tell me about the company", Conversation(clarified=("never mind",)), "cancel", "Tell me about the company"),
        ("thanks!", Conversation(), "small_talk", "thanks!"),
    ],
)
def test_what_a_message_means(message: str, conversation: Conversation, intent: str, question: str) -> None:
    understood = understand(message, conversation, KNOWN)
    assert (understood.intent, understood.question) == (intent, question)
    assert not understood.needs_clarification


@pytest.mark.parametrize(
    "message", ["", "   ", "Tell me about the company", "What about their stock?", "Fusion", "🎉🎉🎉", "?!"]
)
def test_what_cannot_be_researched_is_asked_back(message: str) -> None:
    assert understand(message, Conversation(), KNOWN).needs_clarification


def test_a_compound_question_becomes_its_parts_and_pronouns_are_filled_in() -> None:
    asked = understand(
        "What is the value of the Hubble constant, why do measurements of it disagree?", Conversation(), NONE
    )
    made = make_plan(PlanRequest(understanding=asked, depth=Depth.STANDARD), company=False)
    assert [question.text for question in made.questions[:2]] == [
        "What is the value of the Hubble constant?",
        "Why do measurements of the Hubble constant disagree?",
    ]


WHEAT = understand("How did wheat prices change?", Conversation(), NONE)


def planned(depth: Depth, answers: dict[str, str] | None = None) -> Plan:
    return make_plan(PlanRequest(understanding=WHEAT, depth=depth, answers=answers or {}), company=False)


def asks(made: Plan) -> list[str]:
    return [question.text for question in made.questions]


@pytest.mark.parametrize(
    ("answer", "added"),
    [
        ("The facts and figures on wheat prices", {"Which figures are given for wheat prices?"}),
        ("Why: causes and explanations of wheat prices", {"Which causes and explanations of wheat prices are given?"}),
        ("What is disputed about wheat prices", {"What is uncertain or disputed about wheat prices?"}),
        ("what comes next for wheat prices", {"What is expected for wheat prices?"}),
        ("export bans.", {"What is known about wheat prices with regard to export bans?"}),
        (
            "What is disputed about wheat prices; export bans",
            {
                "What is uncertain or disputed about wheat prices?",
                "What is known about wheat prices with regard to export bans?",
            },
        ),
        ("", set()),
    ],
)
@pytest.mark.parametrize("depth", list(Depth))
def test_the_side_that_was_chosen_is_asked_about_as_well(depth: Depth, answer: str, added: set[str]) -> None:
    without, made = asks(planned(depth)), planned(depth, {"scope": answer})
    assert set(asks(made)) == set(without) | added
    assert {question.id for question in made.questions} == {query.question for query in made.queries}


@pytest.mark.parametrize("depth", list(Depth))
def test_all_sides_are_asked_about_within_the_limit(depth: Depth) -> None:
    made = planned(depth, {"scope": "All of the above; a; b; c; d; e"})
    sides = [
        option for question in build_planner_questions(WHEAT) for option in question.options if question.id == "scope"
    ]
    each = [asks(planned(Depth.QUICK, {"scope": side}))[1] for side in sides]
    assert set(each) < set(asks(made))
    assert len(set(asks(made))) == len(made.questions) <= 7


@pytest.mark.parametrize(
    ("answer", "scope", "words"),
    [("since 2010", "since 2010", {"2010"}), ("The last ten years", "over the last ten years", {"last", "ten"})],
)
def test_the_timeframe_that_was_chosen_is_searched_and_read(answer: str, scope: str, words: set[str]) -> None:
    made = planned(Depth.STANDARD, {"timeframe": answer})
    assert made.constraints == (f"timeframe: {answer}",)
    assert all(scope in question.in_context for question in made.questions)
    assert all(words <= set(query.text.split()) for query in made.queries)
    # Variations are made later, from the question as it was understood before the answer.
    assert any(words <= set(text.split()) for text in vary_queries(made.questions[0], WHEAT, 3))


def test_all_of_time_limits_nothing() -> None:
    limited, free = planned(Depth.STANDARD, {"timeframe": "All of it"}), planned(Depth.STANDARD)
    assert (limited.queries, limited.questions) == (free.queries, free.questions)


@pytest.mark.parametrize(
    ("answer", "words"),
    [("A one-page answer", 350), ("A short report", 800), ("A full report", 2000), ("All there is", None),
     ("about 120 words", 120), ("deep", None)],
)  # fmt: skip
def test_the_depth_that_was_chosen_is_a_length(answer: str, words: int | None) -> None:
    assert planned(Depth.STANDARD, {"depth": answer}).words == words


def test_planner_questions_have_four_options_made_for_the_question() -> None:
    asked = build_planner_questions(understand("How did wheat prices change, and why?", Conversation(), NONE))
    assert [question.id for question in asked] == ["scope", "timeframe", "use", "depth"]
    assert all(len(question.options) == 4 for question in asked)
    assert all("wheat prices" in question.text for question in asked)


def test_query_variations_differ() -> None:
    asked = understand("How did Apple's net sales change over 2023?", Conversation(), KNOWN)
    made = vary_queries(SubQuestion(id="Q1", text=asked.question, section="s"), asked, 3)
    assert len(set(made)) == len(made) == 3
    assert all("net" in text for text in made)


@pytest.mark.parametrize(
    ("question", "sentence", "answers"),
    [
        ("When was the telescope launched?", "The telescope was launched in 2021.", True),
        ("When was the telescope launched?", "The telescope was launched by a rocket.", False),
        ("When will the dispute be settled?", "The dispute began in 2013.", False),
        ("When will the dispute be settled?", "The dispute is expected to end by 2030.", True),
        ("Why did sales fall?", "Sales fell in 2021.", True),
    ],
)
def test_a_question_for_a_time_needs_one(question: str, sentence: str, answers: bool) -> None:
    assert could_answer(question, sentence) is answers


def test_reading_prefers_the_sentence_that_answers() -> None:
    text = (
        "The harbour was built by monks of the island. Total grain exports fell 12% to 40 million tonnes in 2023. "
        "It was a windy year for everyone there. Total grain exports had risen 3% in 2019."
    )
    asked = SubQuestion(id="Q1", text="How did grain exports change in 2023?", section="s")
    quotes = read_passages(asked, [Passage(document="d", start=0, end=len(text), text=text)], 5, WordVectors())
    assert quotes[0].text == "Total grain exports fell 12% to 40 million tonnes in 2023."
    assert "It was a windy year for everyone there." not in [quote.text for quote in quotes]


def evidence(number: int, quote: str, document: str = "d", relevance: float = 0.9, question: str = "Q1") -> Evidence:
    span = QuoteSpan(document=document, start=number * 1000, end=number * 1000 + len(quote), quote=quote)
    finding = Finding(id=f"E{number}", question=question, span=span, relevance=relevance)
    return Evidence(finding=finding, title="T")


PLAN = Plan(
    goal="How did exports change?", depth=Depth.QUICK,
    questions=(SubQuestion(id="Q1", text="How did exports change?", section="A"),),
    queries=(SearchQuery(id="K1", text="exports", question="Q1"),), sections=("A",), methodology="m", confidence=0.9,
)  # fmt: skip


def test_the_same_fact_from_two_documents_is_one_claim_and_other_facts_are_not() -> None:
    made = extract_claims(
        PLAN,
        [
            evidence(1, "Grain exports fell 12% in 2023.", "a"),
            evidence(2, "In 2023 grain exports fell 12%.", "b"),
            evidence(3, "Grain exports fell 9% in 2023.", "c"),
            evidence(4, "Mac net sales decreased during the first quarter of 2023.", "d"),
            evidence(5, "iPad net sales decreased during the first quarter of 2023.", "d"),
        ],
    )
    assert [claim.findings for claim in made] == [("E1", "E2"), ("E3",), ("E4",), ("E5",)]


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ("However, exports fell.", "Exports fell."),
        ("the team agreed", "The team agreed."),
        ("iPad sales\n  rose.", "iPad sales rose."),
    ],
)
def test_a_quote_as_a_sentence(quote: str, said: str) -> None:
    assert to_report_sentence(quote) == said


def claim(id: str, text: str, **more: object) -> Claim:
    span = QuoteSpan(document="d", start=0, end=len(text), quote=text)
    given = {
        "questions": ("Q1",),
        "spans": (span,),
        "verdict": Verdict.SUPPORTED,
        "mark": Mark.VERIFIED,
        "relevance": 0.5,
    }
    return Claim.model_validate({"id": id, "text": text, **given, **more})


def test_a_sentence_with_and_without_the_next_does_not_contradict_itself() -> None:
    said = "Trellis Inc. has agreed to pay $38 million to settle Okafor v. Trellis Inc., according to papers filed on"
    said += " Thursday in San Francisco."
    short, long = claim("C1", said), claim("C2", f"{said} The company admitted no wrongdoing.")
    assert find_disagreements([short, long]) == []


EARLY = claim("C1", "The Planck team inferred a Hubble constant of 67.4 ± 0.5 km/s/Mpc in 2018.")
LATE = claim("C2", "The SH0ES team measured a Hubble constant of 73.04 ± 1.04 km/s/Mpc in 2022.")
OLDER = claim("C3", "The SH0ES team measured a Hubble constant of 74.03 ± 1.42 km/s/Mpc in 2019.")


def test_a_superseded_figure_takes_no_side_in_an_open_matter() -> None:
    found = find_disagreements([EARLY, LATE, OLDER])
    assert [(matter.sides, matter.resolved) for matter in found] == [
        ((("C1",), ("C2",)), False),
        ((("C2",), ("C3",)), True),
    ]


def test_a_conflict_somebody_else_saw_is_a_matter_unless_words_or_time_show_it_already() -> None:
    other = claim("C4", "The tension is an artefact of dust.")
    told = [
        Conflict(first=other.text, second=EARLY.text, about="dust"),
        Conflict(first=LATE.text, second=OLDER.text),
        Conflict(first=other.text, second="Nobody claims this."),
        Conflict(first=other.text, second=other.text),
    ]

    def matters(claims: list[Claim], conflicts: list[Conflict]) -> list[tuple[object, bool]]:
        return [(matter.sides, matter.resolved) for matter in find_disagreements(claims, conflicts)]

    [matter] = find_disagreements([EARLY, other], told)
    assert (matter.about, matter.sides, matter.resolution) == ("dust", (("C4",), ("C1",)), "unresolved")
    assert matters([EARLY, LATE, OLDER], told) == matters([EARLY, LATE, OLDER], [])
    known = Conflict(first=LATE.text, second=EARLY.text)
    assert matters([EARLY, LATE], [known]) == matters([EARLY, LATE], [])


async def test_queries_are_offered_once() -> None:
    reasoner = RuleReasoner(WordVectors(), None, KNOWN)  # type: ignore[arg-type]  # nothing is judged
    request = QueryRequest(
        question=SubQuestion(id="Q1", text="How large is Lake Orta?", section="A"),
        understanding=Understanding(question="How large is Lake Orta?", topic_focus="Lake Orta"),
        count=2,
    )
    offered = await reasoner.propose_queries(request)
    again = request.model_copy(update={"tried": (QueryAttempt(query=offered[0], hits=0),)})

    assert len(offered) == 2
    assert all(isinstance(query, TypedQuery) and query.type == "web" for query in offered)
    assert list(await reasoner.propose_queries(again)) == []


def test_a_report_shows_both_sides_and_owns_up_to_what_is_missing() -> None:
    given = WriteRequest(
        plan=PLAN, claims=(EARLY, LATE), disagreements=tuple(find_disagreements([EARLY, LATE])), unanswered=("Why?",)
    )
    draft = write(given)
    by_role = {section.role: section for section in draft.sections}
    bound = [name for sentence in by_role["disagreements"].sentences for name in sentence.claims]
    assert bound == ["C1", "C2"]
    assert "Why?" in by_role["not_found"].sentences[0].text


NAMES = "Ash Birch Cedar Elm Fir Hazel Larch Maple Oak Pine Rowan Spruce Teak Willow Yew Alder Aspen Beech".split()
SECTIONS = ("How large?", "Why so?", "What next?", "Who says?")
WIDE = PLAN.model_copy(
    update={
        "depth": Depth.STANDARD,
        "questions": tuple(SubQuestion(id=f"Q{n}", text=s, section=s) for n, s in enumerate(SECTIONS, 1)),
        "queries": tuple(SearchQuery(id=f"K{n}", text="exports", question="Q1") for n in range(1, 6)),
        "sections": SECTIONS,
    }
)


def statement(question: int, n: int) -> Claim:
    """About thirty words no other statement has; every other one has a figure."""
    own = " ".join(f"{NAMES[n]}{word}{question}" for word in range(25))
    figure = f"weighs {n + 2}.5 tonnes" if n % 2 else "weighs a lot"
    return claim(f"C{question}{n:02}", f"{own} {figure} there.", questions=(f"Q{question}",), relevance=0.9 - n / 100)


RICH = tuple(statement(question, n) for question in range(1, 5) for n in range(len(NAMES)))
DISPUTED = tuple(
    Disagreement(
        about=f"D{n}", sides=((f"C1{n:02}", f"C1{n + 1:02}"), (f"C2{n:02}", f"C2{n + 1:02}")), resolution="open"
    )
    for n in range(0, 12, 2)
)


def lengths(draft: Draft) -> dict[str, int]:
    counted: dict[str, int] = {}
    for section in draft.sections:
        words = sum(len(sentence.text.split()) for sentence in section.sentences)
        counted[section.role] = counted.get(section.role, 0) + words
    return counted


@pytest.mark.parametrize("style", ["academic", "technical", "executive"])
@pytest.mark.parametrize(("words", "chosen"), [(400, None), (800, None), (1200, None), (2000, 350), (400, 2000)])
def test_a_report_keeps_to_the_words_asked_for(words: int, chosen: int | None, style: str) -> None:
    target = min(words, chosen or words)
    made = WIDE.model_copy(update={"words": chosen})
    given = {"plan": made, "claims": RICH, "disagreements": DISPUTED, "words": words, "style": style}
    counted = lengths(write(WriteRequest.model_validate({**given, "unanswered": ("Why?",)})))
    assert sum(counted.values()) <= 1.25 * target
    assert 0 < counted["abstract"] <= target / 5
    assert 0 < counted["disagreements"] <= target / 4


def test_a_long_report_may_say_much_more_than_a_short_one() -> None:
    short, long = (
        sum(lengths(write(WriteRequest(plan=WIDE, claims=RICH, disagreements=DISPUTED, words=words))).values())
        for words in (400, 2000)
    )
    assert long > 3 * short


def test_the_shortest_report_has_one_statement_a_section_one_pair_and_no_summary() -> None:
    draft = write(WriteRequest(plan=WIDE, claims=RICH, disagreements=DISPUTED, words=50))
    body = [section for section in draft.sections if section.role == "body"]
    assert [section.title for section in body] == list(SECTIONS)
    assert [len(section.sentences) for section in body] == [1, 1, 1, 1]
    [pair] = [section for section in draft.sections if section.role == "disagreements"]
    assert [name for sentence in pair.sentences for name in sentence.claims] == ["C100", "C200"]
    assert [section.role for section in draft.sections if section.role != "body"] == ["disagreements", "conclusion"]


def styled(style: str) -> list[DraftSection]:
    few = tuple(statement(1, n) for n in range(len(NAMES)))
    sure = claim("C999", "Elsewhere nobody has ever doubted this.", mark=Mark.CORROBORATED, relevance=0.1)
    given = {"plan": WIDE, "claims": (*few, sure), "style": style}
    return [s for s in write(WriteRequest.model_validate(given)).sections if s.role in ("body", "conclusion")]


def test_a_technical_report_gives_figures_first() -> None:
    figures = ["tonnes" in sentence.text for sentence in styled("technical")[0].sentences]
    assert figures == sorted(figures, reverse=True)
    assert sum(figures) == 9


def test_shortening_takes_a_quarter_off() -> None:
    given = WriteRequest(plan=WIDE, claims=RICH, words=1200)
    shorter = write(given.model_copy(update={"fixes": ("shorten",)}))
    assert shorter.sections == write(given.model_copy(update={"words": 900})).sections
    assert shorter.sections != write(given).sections


def test_of_two_sentences_much_alike_one_goes_when_the_reviewer_says_so() -> None:
    first = claim("C1", "The northern harbour shipped wheat, barley and rye to eleven countries.", relevance=0.9)
    again = claim("C2", "The northern harbour shipped wheat, barley and oats to many nations.", relevance=0.8)
    given = WriteRequest(plan=PLAN, claims=(first, again))
    assert [len(section.sentences) for section in write(given).sections] == [2]
    told = write(given.model_copy(update={"fixes": ("keep one of them",)}))
    assert [sentence.claims for section in told.sections for sentence in section.sentences] == [("C1",)]


def test_only_supported_claims_are_written() -> None:
    draft = write(
        WriteRequest(plan=PLAN, claims=(EARLY, claim("C9", "Exports fell 99% in 2023.", verdict=Verdict.PARTLY)))
    )
    assert {name for section in draft.sections for sentence in section.sentences for name in sentence.claims} == {"C1"}


def test_a_draft_with_an_unsupported_sentence_is_never_approved() -> None:
    section = DraftSection(title="A", sentences=(DraftSentence(text="Exports fell 99%.", claims=("C9",)),))
    bad = claim("C9", "Exports fell 99%.", verdict=Verdict.CONTRADICTED)
    judged = critique_draft(CritiqueRequest(plan=PLAN, draft=Draft(title="t", sections=(section,)), claims=(bad,)))
    assert judged.recommendation != "approve"
    assert [issue.severity for issue in judged.issues if issue.category == "accuracy"] == ["critical"]


@pytest.mark.parametrize(("score", "expected"), [(7.5, "approve"), (7.4, "revise"), (5.0, "revise"), (4.9, "reject")])
def test_where_the_reviewer_draws_the_lines(score: float, expected: str) -> None:
    assert recommend(score, ()) == expected


def test_gaps_are_named_and_asked_again_in_words_not_used_before() -> None:
    missing = SubQuestion(id="Q1", text="How did grain exports of the north change?", section="A")
    asked = PLAN.model_copy(update={"questions": (missing,)})
    given = AnalysisRequest(plan=asked, evidence=(), coverage={"Q1": 0.0}, asked=("grain exports north",))
    found = analyse(given)
    assert (found.sufficiency, [gap.severity for gap in found.gaps]) == ("gaps_major", ["major"])
    assert found.refinements["Q1"]
    assert "grain exports north" not in found.refinements["Q1"]
    assert "no evidence" in found.feedback


def test_condensing_keeps_the_gist_and_a_bound() -> None:
    turns = [ThreadMessage(role="user", content=f"Question {n}? {'x' * 500}") for n in range(200)]
    summary = condense(turns, "Asked: what came before")
    assert len(summary) <= LONGEST_SUMMARY
    assert "Question 199?" in summary


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        (
            "Did Apple report any share repurchases in its Q3 2023 10-Q, and if so, how many?",
            "Apple's share repurchases",
        ),
        ("How did Apple's net sales change over 2023?", "Apple's net sales"),
        ("What is the value of the Hubble constant, and why do measurements disagree?", "Hubble constant"),
        ("Tell me about fusion energy", "fusion energy"),
        ("How high are the tides in the Bay of Fundy?", "tides in the Bay of Fundy"),
        ("How much did the bridge cost?", "bridge cost"),
        ("What about tides", "tides"),
        ("What is known about fusion energy, for a short briefing?", "fusion energy"),
        ("Explain perovskite solar cells for my talk next week", "perovskite solar cells"),
        ("What is the best length for a talk at a conference?", "best length for a talk at a conference"),
    ],
)
def test_what_a_question_is_about(question: str, topic: str) -> None:
    assert extract_topic(question) == topic


def test_references_to_documents_are_not_what_is_asked() -> None:
    assert "10-Q" not in strip_document_references("Did Apple buy back shares in its Q3 2023 10-Q?")
    assert strip_document_references("How did net sales change over 2023?") == "How did net sales change over 2023?"
    assert strip_document_references("What about the 10-Q?") == "What about the 10-Q?"


def test_the_topic_alone_makes_no_answer() -> None:
    text = "Lake Marrow covers 40 square kilometres in the north of the country."
    asked = SubQuestion(id="Q2", text="Who won the chess olympiad?", section="s", topic="Lake Marrow")
    assert read_passages(asked, [Passage(document="d", start=0, end=len(text), text=text)], 5, WordVectors()) == []


def test_quotes_name_the_passage_they_stand_in() -> None:
    texts = ["Nothing of interest is told in this place at all.", "Grain exports fell 12% in 2023, the port said."]
    passages = [Passage(document=f"d{n}", start=0, end=len(text), text=text) for n, text in enumerate(texts)]
    asked = SubQuestion(id="Q1", text="How did grain exports change in 2023?", section="s")
    assert [quote.passage for quote in read_passages(asked, passages, 5, WordVectors())] == [1]


@pytest.mark.parametrize(
    "question",
    [
        "How many people were injured in the Milltown fire?",
        "How will the Riverside tram be paid for?",
        "Who built the dam?",
    ],
)
def test_sub_questions_are_readable(question: str) -> None:
    made = make_plan(
        PlanRequest(understanding=understand(question, Conversation(), NONE), depth=Depth.STANDARD), company=False
    )
    for item in made.questions[1:]:
        assert not re.search(r"\b(?:about|for|in|was|on) (?:how|who|people were)\b", item.text, re.I), item.text


def test_a_statement_with_another_figure_is_no_repetition() -> None:
    one = claim("C1", "The retirement age in Norland is 65.", relevance=0.9)
    two = claim("C2", "The retirement age in Norland is 66.", relevance=0.8)
    draft = write(WriteRequest(plan=PLAN, claims=(one, two)))
    assert [name for section in draft.sections for s in section.sentences for name in s.claims][:2] == ["C1", "C2"]


def test_an_answer_stands_under_the_question_the_person_asked() -> None:
    first, second = (SubQuestion(id=f"Q{n}", text="Who built it?", section=title) for n, title in enumerate("AB", 1))
    asked = PLAN.model_copy(update={"questions": (first, second), "sections": ("A", "B")})
    built = claim("C1", "Johanna Reiss built the dam.", questions=("Q2", "Q1"))
    draft = write(WriteRequest(plan=asked, claims=(built,)))
    assert next(section.title for section in draft.sections if section.sentences) == "A"


def test_what_is_known_about_something_is_about_that_thing() -> None:
    asked = understand("What is known about perovskite solar cells?", Conversation(), NONE)
    made = make_plan(PlanRequest(understanding=asked, depth=Depth.STANDARD), company=False)
    assert asked.topic_focus == "perovskite solar cells"
    assert not any("known about known" in question.text or "for known" in question.text for question in made.questions)
