"""Questions that may be asked, and plans that may be carried out."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as trying
from hypothesis import strategies as st
from pydantic import ValidationError

from openassay.errors import QuestionError
from openassay.models.event import RunStatus
from openassay.models.plan import TYPES_BY_DEPTH, Depth, Plan
from openassay.models.user import Preferences
from openassay.reasoning.base import Conversation, PlanRequest
from openassay.reasoning.rules import RuleReasoner
from openassay.search.demo import load_aliases
from openassay.text.words import query_key
from tests.fakes.reasoner import FakeCompanies
from tests.scenario.conftest import Lab, LibraryRun
from tests.scenario.material import LAKE, QUESTION

Make = Callable[..., Lab]

# Length


@pytest.mark.requirement("F-02")
@pytest.mark.parametrize("interactive", [True, False])
async def test_more_than_2000_characters_are_refused_before_anything_happens(lab: Make, interactive: bool) -> None:
    here = lab()
    question = "How large is Lake Marrow? " + "x" * 1975

    with pytest.raises(QuestionError, match="2,001 characters") as caught:
        await here.ask(question, interactive=interactive)

    assert caught.value.help
    assert await here.threads.list_recent(limit=1) == []
    assert here.reasoner.calls == []


@pytest.mark.slow
@pytest.mark.requirement("F-02")
async def test_2000_characters_are_taken_and_blanks_around_them_not_counted(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    question = "How large is Lake Marrow? " + "really " * 282

    outcome = await here.ask(f"  {question.strip():r<2000}\n\n", depth="quick")

    assert len(outcome.run.question) == 2000
    assert outcome.run.status is RunStatus.DONE


@pytest.mark.requirement("F-02")
@pytest.mark.parametrize("question", ["", "   ", "lakes?", "Why?", "🦊🦊🦊", "?!?!"])
async def test_what_is_too_short_to_stand_alone_is_asked_back(lab: Make, question: str) -> None:
    here = lab()
    here.holds(*LAKE)

    outcome = await here.ask(question, interactive=True)

    assert outcome.run.status is RunStatus.WAITING
    assert outcome.questions[0].kind == "clarification"
    assert (await here.state(outcome))["plan"] is None


@pytest.mark.requirement("F-02")
async def test_the_length_is_measured_after_follow_ups_and_cancellations(lab: Make) -> None:
    here = lab()
    first = await here.ask("What's happening with Apple?", depth="quick", interactive=True)
    follow_up = await here.ask("And it?", depth="quick", interactive=True, thread=first.run.thread)
    cancelled = await here.ask("stop", depth="quick", interactive=True, thread=first.run.thread)

    assert follow_up.report is not None
    assert "Apple" in follow_up.report.question
    assert cancelled.report is not None
    assert cancelled.report.status == "cancelled"


@pytest.mark.requirement("F-02")
@pytest.mark.parametrize("question", ["", " \n ", "bell \x07 and whistle", "\ud800 lone", "broken \ufffd text here"])
async def test_what_is_no_question_is_refused(lab: Make, question: str) -> None:
    here = lab()

    with pytest.raises(QuestionError):
        await here.ask(question, interactive=False)

    assert await here.threads.list_recent(limit=1) == []


@pytest.mark.parametrize(
    "question",
    [
        "دریاچه مارو چقدر بزرگ است و چرا کوچک می‌شود؟",
        "ما هي مساحة بحيرة مارو؟\u200f",
        "👩\u200d🔬 How large is the lake?",
    ],
    ids=["Persian with joiners", "Arabic with a direction mark", "joined emoji"],
)
async def test_any_script_may_ask(lab: Make, question: str) -> None:
    here = lab()
    here.holds(*LAKE)

    outcome = await here.ask(question)

    assert outcome.run.status is RunStatus.DONE, outcome.run.error
    assert outcome.report is not None


# Plans

WORDS = st.sampled_from(
    "What Why How When Who is are did the a of in 2023 since lake lakes Apple Tesla sales net it them they change "
    "compare versus and or with because rise fall figures ? ? , ; . key developments known to do I".split()
)
QUESTIONS = st.one_of(
    st.lists(WORDS, min_size=3, max_size=40).map(" ".join),
    st.text(min_size=10, max_size=200),
    st.lists(st.sampled_from(["Why is it so?", "What is known?", "How was X made?"]), min_size=1, max_size=9).map(
        " ".join
    ),
)


def planned(question: str, depth: Depth) -> Plan | None:
    """What the embedded reasoner plans; None where it sees nothing to research."""
    reasoner = RuleReasoner(None, None, FakeCompanies(load_aliases()))  # type: ignore[arg-type]  # planning encodes nothing

    async def make() -> Plan | None:
        understanding = await reasoner.understand(question, Conversation())
        if understanding.needs_clarification or understanding.intent in ("cancel", "small_talk"):
            return None
        return await reasoner.plan(PlanRequest(understanding=understanding, depth=depth))

    return asyncio.run(make())


@pytest.mark.slow
@pytest.mark.requirement("F-02")
@trying(max_examples=150, deadline=None)
@given(question=QUESTIONS, depth=st.sampled_from(list(Depth)))
def test_any_question_gets_a_plan_within_its_bounds(question: str, depth: Depth) -> None:
    plan = planned(question, depth)
    if plan is None:
        return

    # A question for one thing is asked once, and one about two things of each.
    fewest, fewest_queries = (1, 1) if depth is Depth.QUICK or plan.pointed or plan.paired else (3, 5)
    assert fewest <= len(plan.questions) <= 7
    assert fewest_queries <= len(plan.queries) <= 15
    texts = [item.text for item in plan.questions]
    assert len(set(texts)) == len(texts)
    assert {query.question for query in plan.queries} == {item.id for item in plan.questions}
    assert {query.type for query in plan.queries} <= set(TYPES_BY_DEPTH[depth])
    assert {item.section for item in plan.questions} <= set(plan.sections)
    assert plan.methodology
    assert plan.reasoning
    assert 0 <= plan.confidence <= 1


@pytest.mark.requirement("F-02")
@pytest.mark.parametrize(
    "question", ["What is known? What is known? What is known?", "What are the key developments in chips? " * 2]
)
def test_a_question_that_repeats_itself_still_gets_a_whole_plan(question: str) -> None:
    plan = planned(question, Depth.STANDARD)

    assert plan is not None
    assert len({item.text for item in plan.questions}) >= 3


@pytest.mark.requirement("F-02")
def test_each_part_of_a_compound_question_is_a_sub_question() -> None:
    plan = planned("How large is Lake Marrow, why did it shrink, and when will it be dry?", Depth.STANDARD)

    assert plan is not None
    texts = [item.text for item in plan.questions]
    assert texts[0] == "How large is Lake Marrow?"
    assert any(text.startswith("Why did") for text in texts)
    assert any(text.startswith("When will") for text in texts)


def good_plan() -> dict[str, Any]:
    plan = planned("How large is Lake Marrow and why did it shrink?", Depth.STANDARD)
    assert plan is not None
    return plan.model_dump(mode="json")


def bad_plans() -> dict[str, Callable[[dict[str, Any]], object]]:
    many = [{"id": f"Q{n}", "text": "Why?", "section": "s"} for n in range(8)]
    return {
        "too few questions": lambda p: p.update(questions=p["questions"][:2], queries=p["queries"][:5]),
        "too many questions": lambda p: p.update(questions=many, sections=["s"]),
        "too few queries": lambda p: p.update(queries=p["queries"][:4]),
        "too many queries": lambda p: p.update(queries=p["queries"][:1] * 16),
        "a query for no question": lambda p: p["queries"][0].update(question="Q99"),
        "a question for no section": lambda p: p["questions"][0].update(section="Nowhere"),
        "an empty query": lambda p: p["queries"][0].update(text=""),
        "too sure": lambda p: p.update(confidence=1.5),
        "a strange depth": lambda p: p.update(depth="bottomless"),
    }


@pytest.mark.requirement("F-02")
@pytest.mark.parametrize("fault", bad_plans())
def test_a_plan_out_of_bounds_is_refused(fault: str) -> None:
    plan = good_plan()
    Plan.model_validate(plan)
    bad_plans()[fault](plan)

    with pytest.raises(ValidationError):
        Plan.model_validate(plan)


@pytest.mark.requirement("F-02")
async def test_a_plan_is_validated_before_anything_is_searched(lab: Make) -> None:
    async def plan(real: Any, request: PlanRequest) -> Plan:
        made = await real(request)
        return Plan.model_construct(**{**dict(made), "questions": made.questions[:1]})

    here = lab(plan=plan)
    source = here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.run.status is RunStatus.FAILED
    assert "sub-questions" in (outcome.run.error or "")
    assert len(source.queries) == 1  # the gate's preview


@pytest.mark.requirement("F-02")
def test_the_plan_of_a_report_has_all_its_parts(library: LibraryRun) -> None:
    plan = library.report.plan

    assert plan is not None
    assert [item.text for item in plan.questions][:2] == [
        "What is the value of the Hubble constant?",
        "Why do measurements of the Hubble constant disagree?",
    ]
    assert plan.sections
    assert plan.methodology
    assert plan.reasoning


@pytest.mark.requirement("F-01", "F-13")
@pytest.mark.parametrize(
    ("depth", "warned"),
    [
        ("quick", ()),
        ("standard", ("No academic source is configured: these queries were not asked.",)),
        ("comprehensive", ("No academic or news source is configured: these queries were not asked.",)),
    ],
)
async def test_queries_for_which_there_is_no_source_stay_pending_and_the_plan_says_so(
    lab: Make, depth: str, warned: tuple[str, ...]
) -> None:
    here = lab(settings={"max_gap_searches": 0})
    source = here.holds(*LAKE)

    report = await here.report(QUESTION, depth=depth)

    assert report.plan is not None
    for query in report.plan.queries:
        assert query.status == ("completed" if query.type == "web" else "pending")
        assert query.type != "web" or query_key(query.text) in set(map(query_key, source.queries))
    assert tuple(line for line in report.plan.warnings if "source is configured" in line) == warned


@pytest.mark.requirement("F-01")
async def test_a_query_of_another_type_is_asked_only_where_a_source_serves_it(lab: Make) -> None:
    async def plan(real: Any, request: PlanRequest) -> Plan:
        made: Plan = await real(request)
        scholarly = [
            query.model_copy(update={"text": f"treatise {query.text}"}) if query.type == "academic" else query
            for query in made.queries
        ]
        return made.model_copy(update={"queries": tuple(scholarly)})

    asked, statuses = [], []
    for types in (("web",), ("web", "academic")):
        here = lab(plan=plan, settings={"max_gap_searches": 0})
        source = here.holds(*LAKE)
        source.types = types  # type: ignore[attr-defined]  # what a source says of itself, where it does
        report = await here.report(QUESTION)
        assert report.plan is not None
        asked.append(any(text.startswith("treatise") for text in source.queries))
        statuses.append({query.status for query in report.plan.queries if query.type == "academic"})

    assert asked == [False, True]
    assert statuses == [{"pending"}, {"completed"}]


# What a person said and is remembered of them


@pytest.mark.requirement("S-02")
async def test_what_was_clarified_and_said_besides_is_in_the_plan_and_searched(lab: Make) -> None:
    here = lab()
    source = here.holds(*LAKE)
    asked = await here.ask("Tell me about the thing", interactive=True, context="only the northern shore")
    assert asked.questions[0].kind == "clarification"

    outcome = await here.answer(asked, "Lake Marrow and its ferry")

    assert outcome.report is not None
    plan = outcome.report.plan
    assert plan is not None
    assert "clarified: Lake Marrow and its ferry" in plan.constraints
    assert "context: only the northern shore" in plan.constraints
    assert any({"northern", "shore"} <= set(query.split()) for query in source.queries)
    assert any("marrow" in query.lower() for query in source.queries)


@pytest.mark.requirement("W-19")
async def test_what_is_remembered_of_a_person_is_in_the_plan_of_their_questions(lab: Make) -> None:
    here = lab()
    source = here.holds(*LAKE)
    await here.memory.set_preferences("ada", Preferences(region="Tamsel"))
    await here.memory.remember("ada", "Lake Marrow is measured in hectares by us")

    hers = (await here.report(QUESTION, user="ada")).plan
    searched = list(source.queries)
    his = (await here.report(QUESTION, user="bob")).plan

    assert hers is not None
    assert his is not None
    assert hers.constraints == (
        "remembered: region Tamsel",
        "remembered: Lake Marrow is measured in hectares by us",
    )
    assert his.constraints == ()
    assert sum("tamsel" in query for query in searched) >= len(hers.questions)
    assert not any("tamsel" in query.text for query in his.queries)


@pytest.mark.requirement("W-02")
async def test_what_it_is_for_sets_the_style_and_the_length_of_the_report(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    outcome = await here.ask(QUESTION, mode="plan", interactive=True)
    while outcome.questions:
        use = outcome.questions[0].shown["id"] == "use"
        outcome = await here.answer(outcome, "A decision I have to make" if use else "All of it")

    assert outcome.report is not None
    assert outcome.report.plan is not None
    assert outcome.report.plan.style == "executive"
    [request] = [arguments[0] for name, arguments in here.reasoner.calls if name == "write"][:1]
    assert request.style == "executive"
    assert any("benefits, costs and risks" in question.text for question in outcome.report.plan.questions)
