"""A report that a capable model composes, behind real HTTP: what follows is published, what does not is edited."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openassay.bootstrap import open_engine
from openassay.export.markdown import render_markdown as as_markdown
from openassay.models.report import Sentence
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from tests.fakes import model_answers as sensible
from tests.fakes.llm_api import ModelPrompt
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel
from tests.scenario.test_worst_writer import picks_all, published, run_with

FILES = {
    "2019": "In 2019 the survey office found that Lake Marrow covered 412 square kilometres.",
    "2024": "In 2024 the water board found that Lake Marrow covered 398 square kilometres.",
    "ferry": "The ferry on Lake Marrow carried 60 passengers a day in 2024.",
}
QUESTION = "How did the area of Lake Marrow change?"
DIFFERENCE = "Lake Marrow covered 14 square kilometres less in 2024 than in 2019."
TOO_MUCH = "Lake Marrow covered 25 square kilometres less in 2024 than in 2019."
CAUSE = "The ferry made Lake Marrow shrink from 2019 to 2024."
FERRY = "Ferry passengers of Lake Marrow: 60 a day in 2024, the ferry company says of its passengers."
TRUE_AFTER_ALL = "Lake Marrow covered less in 2024 than in 2019."


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    (tmp_path / "docs").mkdir()
    for name, text in FILES.items():
        (tmp_path / "docs" / f"{name}.txt").write_text(text, encoding="utf-8")
    return tmp_path


def numbers_of(prompt: ModelPrompt, *words: str) -> list[int]:
    """The claims of a prompt that have a word."""
    lines = re.findall(r"^\[(\d+)\] (.+)$", prompt.text, re.M)
    return [int(number) for number, text in lines if any(word in text for word in words)]


def replace_sentence(prompt: ModelPrompt, old: str, new: str) -> dict[str, Any]:
    """The paragraph of a sentence that failed, with another in its place."""
    [(number, text)] = [
        found for found in re.findall(r"^\((\d+)\) (.*)$", prompt.text, re.M) if f"✗1 {old}" in found[1]
    ]
    return {"paragraphs": [{"paragraph": int(number), "text": text.replace(f"✗1 {old}", new)}]}


def write_with(*texts: str) -> Callable[[ModelPrompt], dict[str, Any]]:
    """A report with one section of this text, `BOTH` in it for the numbers of the claims of both years."""

    def write(prompt: ModelPrompt) -> dict[str, Any]:
        drafted = sensible.compose_report(prompt)
        both = ", ".join(map(str, numbers_of(prompt, "412", "398")))
        text = " ".join(texts).replace("BOTH", both)
        drafted["sections"] += [{"role": "section", "title": "Area by year", "text": text}]
        return drafted

    return write


def judge(prompt: ModelPrompt) -> dict[str, Any]:
    """Says no to causes."""
    said = sensible.judge_pairs(prompt)
    texts = dict(re.findall(r"^Sentence (\d+): (.*)$", prompt.text, re.M))
    for item in said.get("verdicts", []):
        if "made Lake Marrow shrink" in texts.get(str(item["pair"]), ""):
            item |= {"verdict": "not_found", "unsaid": "made"}
    return said


def facts(report: Any) -> dict[str, Sentence]:
    return {one.text: one for section in report.sections for one in section.sentences if one.kind != "frame"}


@pytest.mark.requirement("X-03")
async def test_what_follows_is_published_with_how_its_figures_come_about(lake: Path) -> None:
    right = f"{DIFFERENCE} [=BOTH: 14 = difference(412, 398)]"
    wrong = f"{TOO_MUCH} [=BOTH: 25 = difference(412, 398)]"
    answers = {"Report": write_with(right, wrong), "Picks": picks_all}
    async with run_with(answers, lake, QUESTION) as report:
        said = facts(report)
        drawn = said[DIFFERENCE]
        assert (drawn.kind, len(drawn.claims)) == ("synthesis", 2)
        assert [(figure.value, figure.operation, figure.operands) for figure in drawn.derived] == [
            (14, "difference", (412, 398))
        ]
        assert len(drawn.citations) == 2, "it opens the passages of both"
        assert TOO_MUCH not in said
        assert "Area by year" in [section.title for section in report.sections]


@pytest.mark.requirement("X-03")
async def test_what_does_not_follow_goes_back_to_the_writer_with_the_reason(lake: Path) -> None:
    reasons: list[str] = []

    def edit(prompt: ModelPrompt) -> dict[str, Any]:
        reasons.extend(re.findall(r"^✗\d+: (.*)", prompt.text, re.M))
        return replace_sentence(prompt, CAUSE, TRUE_AFTER_ALL)

    answers = {
        "Report": write_with(f"{CAUSE} [=BOTH]"), "Picks": picks_all, "Verdicts": judge, "Edited": edit,
    }  # fmt: skip
    async with run_with(answers, lake, QUESTION) as report:
        assert any("“made”" in reason for reason in reasons)
        assert CAUSE not in published(report)
        assert TRUE_AFTER_ALL in facts(report)


@pytest.mark.requirement("X-03")
async def test_what_an_editor_adds_to_a_paragraph_that_held_leaves_it_as_it_was(lake: Path) -> None:
    """It may put it in other words, and is checked like any writer."""
    fine, plain = (
        "Lake Marrow covered 412 square kilometres in 2019.",
        "In 2019 Lake Marrow covered 412 square kilometres.",
    )

    for words, told in ((plain, plain), (f"{plain} It shrank by 25 square kilometres.", fine)):

        def edit(prompt: ModelPrompt, words: str = words) -> dict[str, Any]:
            [early] = numbers_of(prompt, "412")
            [(place, _)] = [
                one for one in re.findall(r"^\((\d+)\) (.*)$", prompt.text, re.M) if one[1].startswith(fine)
            ]
            text = " ".join(f"{sentence}. [{early}]" for sentence in words.rstrip(".").split(". "))
            return {"paragraphs": [{"paragraph": int(place), "text": text}]}

        def write(prompt: ModelPrompt) -> dict[str, Any]:
            [early] = numbers_of(prompt, "412")
            return write_with(f"{fine} [{early}]\n\n{CAUSE} [=BOTH]")(prompt)

        async with run_with(
            {"Report": write, "Picks": picks_all, "Verdicts": judge, "Edited": edit}, lake, QUESTION
        ) as report:
            [section] = [section for section in report.sections if section.title == "Area by year"]
            assert [one.text for one in section.sentences] == [told]


@pytest.mark.requirement("X-03")
async def test_a_name_that_no_passage_has_is_not_shown_to_the_editor_and_leaves_no_hole(lake: Path) -> None:
    shown: list[str] = []

    def edit(prompt: ModelPrompt) -> dict[str, Any]:
        shown.append(prompt.text)
        [(place, text)] = [one for one in re.findall(r"^\((\d+)\) (.*)$", prompt.text, re.M) if "✗1" in one[1]]
        return {"paragraphs": [{"paragraph": int(place), "text": text.replace("✗1 ", "")}]}

    def write(prompt: ModelPrompt) -> dict[str, Any]:
        [early] = numbers_of(prompt, "412")
        text = (
            f"The survey office with Zorblatt found that Lake Marrow covered 412 square kilometres in 2019. [{early}]"
        )
        return write_with(text)(prompt)

    async with run_with({"Report": write, "Picks": picks_all, "Edited": edit}, lake, QUESTION) as report:
        assert "The survey office with … found" in shown[0]
        assert "Zorblatt" not in shown[0]
        assert not any("…" in text for text in published(report))


@pytest.mark.requirement("X-03")
async def test_a_table_has_the_cells_that_hold_and_each_opens_its_passage(lake: Path) -> None:
    def write(prompt: ModelPrompt) -> dict[str, Any]:
        [early], [late] = numbers_of(prompt, "412"), numbers_of(prompt, "398")
        table = f"""The lake was measured twice. [{early}]

| Year | Area | Found by |
|---|---|---|
| 2019 | 412 square kilometres [{early}] | the survey office [{early}] |
| 2024 | 397 square kilometres [{late}] | the water board [{late}] |"""
        drafted = sensible.compose_report(prompt)
        return {**drafted, "sections": [*drafted["sections"], {"role": "section", "title": "Area", "text": table}]}

    answers = {"Report": write, "Picks": picks_all}
    async with run_with(answers, lake, QUESTION) as report:
        [section] = [section for section in report.sections if any(one.cell for one in section.sentences)]
        found = {(one.cell.row, one.cell.column): one for one in section.sentences if one.cell}
        assert found["2019", "Area"].visible_text == "412 square kilometres"
        assert found["2019", "Area"].citations
        assert ("2024", "Area") not in found, "no passage says 397"
        page = as_markdown(report)
        assert "| Year | Area | Found by |" in page
        row = next(line for line in page.splitlines() if line.startswith("| 2024 |"))
        assert row.startswith("| 2024 |  | the water board ")
        assert not re.search(r"(?<![\d,])397", page)


@pytest.mark.requirement("X-03")
async def test_what_the_sources_leave_open_is_told_and_nothing_else_without_a_claim(lake: Path) -> None:
    limit = "The sources do not say what the ferry carried before."
    world = "The evidence shows that the ferry shrank Lake Marrow."

    def verdicts(prompt: ModelPrompt) -> dict[str, Any]:
        """Knows what states something."""
        said = sensible.judge_pairs(prompt)
        texts = dict(re.findall(r"^Sentence (\d+): (.*)$", prompt.text, re.M))
        for item in said.get("verdicts", []):
            if world in texts.get(str(item["pair"]), ""):
                item |= {"verdict": "not_found"}
        return said

    answers = {
        "Report": write_with(f"{DIFFERENCE} [=BOTH: 14 = difference(412, 398)]", limit, world),
        "Picks": picks_all,
    }
    answers["Verdicts"] = verdicts
    async with run_with(answers, lake, QUESTION) as report:
        told = [one.text for section in report.sections for one in section.sentences]
        assert limit in told
        assert world not in told


@pytest.mark.requirement("X-03")
async def test_of_a_sentence_that_fails_twice_what_the_judge_leaves_of_it_is_told(lake: Path) -> None:
    """And nothing that it adds."""
    whole = "Lake Marrow covered less in 2024 than in 2019, by a wide margin."
    left = "Lake Marrow covered less in 2024 than in 2019."

    def edit(prompt: ModelPrompt) -> dict[str, Any]:
        return replace_sentence(prompt, whole, whole)

    def verdicts(narrower: str) -> Callable[[ModelPrompt], dict[str, Any]]:
        def say(prompt: ModelPrompt) -> dict[str, Any]:
            said = sensible.judge_pairs(prompt)
            texts = dict(re.findall(r"^Sentence (\d+): (.*)$", prompt.text, re.M))
            for item in said.get("verdicts", []):
                if texts.get(str(item["pair"]), "") == whole:
                    item |= {"verdict": "partly", "unsaid": "by a wide margin", "narrower": narrower}
            return said

        return say

    for narrower, told in ((left, True), ("The moon is made of cheese.", False)):
        answers = {
            "Report": write_with(f"{whole} [=BOTH]"), "Picks": picks_all, "Verdicts": verdicts(narrower),
            "Edited": edit,
        }  # fmt: skip
        async with run_with(answers, lake, QUESTION) as report:
            assert whole not in facts(report)
            assert (narrower in facts(report)) is told


@pytest.mark.requirement("X-03")
async def test_what_a_passage_says_and_no_claim_does_becomes_a_claim_if_it_holds(lake: Path) -> None:
    """The ferry's passengers are told in a passage that is shown, and the writer invents its captain."""
    told, invented = "The ferry on Lake Marrow carried passengers.", "The ferry on Lake Marrow sank in 1931."

    def write(prompt: ModelPrompt) -> dict[str, Any]:
        [document] = [head for head in re.findall(r"^# (D\d+) ", prompt.text, re.M) if f"# {head} ferry" in prompt.text]
        drafted = sensible.compose_report(prompt)
        section = {"role": "section", "title": "Ferry", "text": f"{told} [{document}] {invented} [{document}]"}
        return {**drafted, "sections": [*drafted["sections"], section]}

    async with run_with({"Report": write, "Picks": picks_all}, lake, QUESTION) as report:
        said = facts(report)
        [claim] = [claim for claim in report.claims if claim.id in said[told].claims]
        assert claim.text == FILES["ferry"], "in the words of the passage"
        assert invented not in published(report)


@pytest.mark.requirement("W-10", "S-08")
async def test_a_review_that_misses_a_part_leads_to_another_search(lake: Path) -> None:
    """Once: the second version is the last, however the reviewer finds it."""
    queries: list[str] = []
    reports: list[str] = []

    def review(prompt: ModelPrompt) -> dict[str, Any]:
        said = sensible.write_review(prompt)
        asks = "searches" in prompt.schema.get("properties", {})
        queries.append("asked" if asks else "not asked")
        issue = {"category": "completeness", "severity": "critical", "location": "Area by year", "fix": "Tell of it.",
                 "description": "The ferry is missing."}  # fmt: skip
        searches = [{"question": 1, "query": "ferry passengers of Lake Marrow"}]
        return {**said, "completeness": 3, "issues": [issue], **({"searches": searches} if asks else {})}

    def write(prompt: ModelPrompt) -> dict[str, Any]:
        reports.append(prompt.text)
        return sensible.compose_report(prompt)

    async with run_with({"Report": write, "Review": review, "Picks": picks_all}, lake, QUESTION) as report:
        assert queries == ["asked", "not asked"]
        assert "before more was found, asked for" in reports[1]
        assert report.metadata.iterations == 2


@pytest.mark.requirement("W-10", "S-09")
async def test_what_was_verified_before_another_search_is_kept_and_only_what_is_new_is_drawn_from(lake: Path) -> None:
    drawn: list[str] = []
    for number in range(40):  # which are more about the question: the ferry is read when it is searched for
        text = f"How the area of Lake Marrow changed is told in note {number} of the survey office of Tamsel."
        (lake / "docs" / f"note{number}.txt").write_text(text, encoding="utf-8")
    for year, area in (("2019", 412), ("2024", 398)):
        text = f"Lake Marrow: how its area did change. In {year} the area of Lake Marrow was {area} square kilometres."
        (lake / "docs" / f"{year}.txt").write_text(text, encoding="utf-8")
    (lake / "docs" / "ferry.txt").write_text(FERRY, encoding="utf-8")

    def pick(prompt: ModelPrompt) -> dict[str, Any]:
        lines = re.findall(r"^\[(\d+)\] (.+)$", prompt.text, re.M)
        return {
            "picks": [
                {"first": int(number), "last": int(number), "score": 8}
                for number, text in lines
                if re.search("412|398|passengers", text)
            ]
        }

    def draw(prompt: ModelPrompt) -> dict[str, Any]:
        drawn.append(prompt.text)
        return sensible.make_claims(prompt)

    def review(prompt: ModelPrompt) -> dict[str, Any]:
        said = sensible.write_review(prompt)
        if "searches" not in prompt.schema.get("properties", {}):
            return said
        issue = {"category": "completeness", "severity": "critical", "location": "Area by year", "fix": "Tell of it.",
                 "description": "The ferry is missing."}  # fmt: skip
        searches = [{"question": 1, "query": "ferry passengers of Lake Marrow"}]
        return {**said, "completeness": 3, "issues": [issue], "searches": searches}

    answers = {"Picks": pick, "Claims": draw, "Review": review, "Queries": lambda _: {"queries": []}}
    async with run_with(answers, lake, QUESTION) as report:
        first, *later = drawn
        assert "412" in first
        assert "passengers" not in first
        assert later
        assert all("passengers" in text and "412" not in text for text in later), "what was drawn from is not again"
        texts = [claim.text for claim in report.claims]
        assert len(set(texts)) == len(texts)
        assert len({claim.id for claim in report.claims}) == len(texts)
        told = " ".join(published(report))
        assert all(word in told for word in ("412", "398", "passengers"))


@pytest.mark.requirement("C-04")
async def test_a_quick_answer_takes_four_calls_one_after_the_other(lake: Path) -> None:
    """What is meant, what the sources say (sub-questions side by side), what to write, and whether it holds."""
    async with FakeLlmServer(FakeModel({"Picks": picks_all})) as provider:
        models = {"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}}
        async with open_engine(load(data_dir=lake / "data", llm=models)) as engine:
            given = {"depth": "quick", "docs": (str(lake / "docs"),), "model": "openai:gpt-4o"}
            run = await engine.start("How large was Lake Marrow in 2019?", ResearchOptions.model_validate(given))
            outcome = await engine.wait(run.id)
    forms = [call.prompt.form for call in provider.billable_calls]
    assert outcome.report is not None
    assert published(outcome.report)
    assert list(dict.fromkeys(forms)) == [
        form for form in ("Understood", "Picks", "Draft", "Verdicts") if form in forms
    ]
    assert all(forms.count(form) == 1 for form in ("Understood", "Draft"))
    assert forms.count("Verdicts") <= 1


@pytest.mark.requirement("X-08")
@pytest.mark.parametrize("mends", [True, False])
async def test_a_side_of_a_dispute_that_is_told_alone_gets_the_other_or_is_left_out(lake: Path, mends: bool) -> None:
    """The program adds no words of its own."""
    rival = "In 2019 the survey office found that Lake Marrow covered 377 square kilometres."
    (lake / "docs" / "rival.txt").write_text(rival, encoding="utf-8")
    faults: list[str] = []

    def write(prompt: ModelPrompt) -> dict[str, Any]:
        [one], [other] = numbers_of(prompt, "412"), numbers_of(prompt, "398")
        text = f"{FILES['2019']} [{one}] {FILES['2024']} [{other}]"
        return {"title": "", "sections": [{"role": "section", "title": "Area by year", "text": text}]}

    def edit(prompt: ModelPrompt) -> dict[str, Any]:
        faults.extend(re.findall(r"^✗\d+: (.*)", prompt.text, re.M))
        [other] = numbers_of(prompt, "377")
        both = f"{FILES['2019']} {rival} [{other}]"
        return replace_sentence(prompt, FILES["2019"], both) if mends else {"paragraphs": []}

    answers = {"Report": write, "Edited": edit, "Picks": picks_all}
    async with run_with(answers, lake, QUESTION) as report:
        said = facts(report)
        assert [fault for fault in faults if "377" in fault and "Tell both" in fault]
        assert (FILES["2019"] in said, rival in said) == (mends, mends)
        assert FILES["2024"] in said
        assert "disagreements" not in [section.role for section in report.sections]
        assert report.disputes, "it is on record"
