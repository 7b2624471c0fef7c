"""The reviewer: what its checks find, what a score means, and where the lines are drawn."""

from datetime import date
from typing import Any

import pytest

from openassay.models.evidence import Claim, Disagreement, Mark, QuoteSpan, Verdict
from openassay.models.plan import Depth, Plan, SearchQuery, SubQuestion
from openassay.models.report import Critique, Issue, SourceCard
from openassay.reasoning.base import CritiqueRequest, Draft, DraftAnswer, DraftSection, DraftSentence, recommend
from openassay.reasoning.rules.critique import WEIGHTS, critique_draft, estimate_potential

TODAY = date(2026, 6, 1)
SAID: dict[str, tuple[str, ...]] = {
    "Size": (
        "Lake Marrow covered 412 square kilometres in 2019.",
        "Sonar put the greatest depth of Lake Marrow at 88 metres.",
    ),
    "Causes": (
        "A long drought dried up the river that fed Lake Marrow.",
        "Farms upstream of Lake Marrow took 40% of the inflow.",
    ),
    "Outlook": (
        "The water board expects Lake Marrow to recover by 2040.",
        "Two canals will bring water to Lake Marrow from the north.",
    ),
}
QUESTIONS = ("How large is Lake Marrow?", "Why did Lake Marrow shrink?", "What is expected of Lake Marrow?")


def plan(depth: Depth = Depth.STANDARD, goal: str = "How large is Lake Marrow and why did it shrink?") -> Plan:
    questions = [
        SubQuestion(id=f"Q{n}", text=text, section=section)
        for n, (text, section) in enumerate(zip(QUESTIONS, SAID, strict=True), 1)
    ]
    queries = [SearchQuery(id=f"K{n}", text=f"lake {n}", question="Q1") for n in range(1, 6)]
    return Plan(goal=goal, topic="Lake Marrow", depth=depth, questions=tuple(questions), queries=tuple(queries),
                sections=tuple(SAID), methodology="by hand", confidence=0.8)  # fmt: skip


def source(name: str, **more: Any) -> SourceCard:
    given = {"id": f"S{name}", "title": f"Lake Marrow, part {name}", "url": f"https://{name}.example/", "group": name,
             "kind": "web", "published": "2026-01-01", "why_used": ""}  # fmt: skip
    return SourceCard.model_validate({**given, "document": name, **more})


SOURCES = (source("a", kind="academic", primary=True), source("b"), source("c"))


def claim(id: str, text: str, documents: tuple[str, ...] = ("a", "b"), **more: Any) -> Claim:
    spans = tuple(QuoteSpan(document=name, start=0, end=len(text), quote=text) for name in documents)
    given = {"verdict": Verdict.SUPPORTED, "mark": Mark.CORROBORATED, "confidence": 0.9, "relevance": 0.8}
    return Claim.model_validate({"id": id, "text": text, "questions": ("Q1",), "spans": spans, **given, **more})


def request(
    said: dict[str, tuple[str, ...]] | None = None, *, documents: tuple[str, ...] = ("a", "b"),
    mark: Mark = Mark.CORROBORATED, **more: Any,
) -> CritiqueRequest:  # fmt: skip
    """A review of a sound report, unless something is wrong with it."""
    said = SAID if said is None else said
    claims: list[Claim] = []
    sections = []
    for title, texts in said.items():
        made = [claim(f"C{len(claims) + n}", text, documents, mark=mark) for n, text in enumerate(texts, 1)]
        claims += made
        told = tuple(DraftSentence(text=one.text, claims=(one.id,)) for one in made)
        sections.append(DraftSection(title=title, sentences=told))
    draft = Draft(title="Lake Marrow", sections=tuple(sections))
    given = {"plan": plan(), "draft": draft, "claims": tuple(claims), "sources": SOURCES, "confidence": 9.0,
             "subjects": ("Lake Marrow",), "today": TODAY}  # fmt: skip
    return CritiqueRequest.model_validate({**given, **more})


def found(judged: Critique, words: str) -> Issue:
    [issue] = [issue for issue in judged.issues if words in issue.description]
    return issue


OTHER_LAKE: dict[str, tuple[str, ...]] = {
    "Size": ("Lake Tamsel covered 900 square kilometres in 2019.",),
    "Causes": ("Lake Tamsel shrank because of a drought.",),
    "Outlook": ("Lake Tamsel is expected to recover.",),
}
HOTELS: dict[str, tuple[str, ...]] = {
    "Size": ("The hotel has a sauna and 40 rooms.", "Breakfast is served from seven o'clock."),
    "Causes": ("Guests can rent bicycles at the reception.",),
    "Outlook": ("The restaurant will reopen in spring.",),
}


# What a score means ----------------------------------------------------------------------------------


@pytest.mark.requirement("F-07")
def test_the_criteria_have_their_weights_and_make_the_score() -> None:
    judged = critique_draft(request(mark=Mark.SINGLE, documents=("b",), confidence=4.0))
    assert WEIGHTS == {"accuracy": 0.25, "completeness": 0.2, "coherence": 0.2, "citation": 0.15, "methodology": 0.1,
                       "style": 0.1}  # fmt: skip
    assert set(judged.scores) == set(WEIGHTS)
    assert judged.score == pytest.approx(sum(WEIGHTS[name] * score for name, score in judged.scores.items()), abs=0.01)


@pytest.mark.requirement("F-07", "F-13")
def test_a_sound_report_on_independent_sources_is_of_high_confidence() -> None:
    judged = critique_draft(request())
    assert judged.recommendation == "approve"
    assert judged.score >= 9.5
    assert critique_draft(request(mark=Mark.VERIFIED, documents=("a",))).score >= 8, "a credible source may stand alone"


@pytest.mark.requirement("F-07", "F-13")
@pytest.mark.parametrize("documents", [("b",), ("b", "c")], ids=["one source", "several"])
def test_statements_of_unknown_credit_alone_are_never_of_high_confidence(documents: tuple[str, ...]) -> None:
    judged = critique_draft(request(mark=Mark.SINGLE, documents=documents))
    assert 7.5 <= judged.score < 8
    assert judged.recommendation == "approve", "an honest answer from one source is an answer"


@pytest.mark.requirement("F-07", "F-13")
def test_the_more_statements_are_confirmed_the_higher_the_score() -> None:
    scores = []
    for weak in (0, 1, 2, 3, 6):
        given = request()
        claims = [
            claim.model_copy(update={"mark": Mark.SINGLE}) if at < weak else claim
            for at, claim in enumerate(given.claims)
        ]
        scores.append(critique_draft(given.model_copy(update={"claims": tuple(claims)})).score)
    assert scores == sorted(scores, reverse=True)
    assert scores[2] > 8 > scores[3], "half of six decide"


@pytest.mark.requirement("F-07", "F-13")
def test_each_weakness_takes_something_below_the_ceiling_too() -> None:
    weak: dict[str, Any] = {"mark": Mark.SINGLE, "documents": ("b",)}
    given = [
        request(**weak),
        request(**weak, confidence=3.0),
        request(**weak, confidence=3.0, unanswered=QUESTIONS[2:]),
        request(**weak, confidence=3.0, unanswered=QUESTIONS[1:]),
        request(OTHER_LAKE, **weak, confidence=3.0, unanswered=QUESTIONS),
    ]
    scores = [critique_draft(one).score for one in given]
    assert scores == sorted(set(scores), reverse=True)
    assert scores[-1] < 7.5


@pytest.mark.requirement("F-07", "F-13")
def test_little_evidence_is_never_of_high_confidence_however_credible() -> None:
    judged = critique_draft(request(confidence=4.0))
    assert 7.5 <= judged.score < 8
    assert found(judged, "the evidence is thin: confidence 4 of 10").category == "completeness"


@pytest.mark.requirement("F-07")
@pytest.mark.parametrize(
    ("said", "subjects"),
    [(OTHER_LAKE, ("Lake Marrow",)), (HOTELS, ("Lake Marrow",)), (HOTELS, ())],
    ids=["another lake", "hotels", "hotels, no subject known"],
)
def test_a_report_beside_the_question_is_not_approved_however_well_confirmed(said: Any, subjects: Any) -> None:
    elsewhere = tuple(source(name, title="Something else") for name in "abc")
    judged = critique_draft(request(said, subjects=subjects, sources=elsewhere))
    assert judged.recommendation != "approve"
    assert any(i.severity == "critical" and i.category == "completeness" for i in judged.issues)


@pytest.mark.requirement("F-07")
@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("Angela Merkel", "Merkel led the government for sixteen years."),
        ("World Health Organization", "The WHO declared the outbreak over."),
        ("Apple Inc.", "Apple sold more phones than before."),
        ("Bank of England", "The Bank of England left its rate unchanged."),
    ],
)
def test_a_subject_may_be_named_in_short(subject: str, text: str) -> None:
    asked = plan(goal=f"What did {subject} do?")
    elsewhere = tuple(source(name, title="News") for name in "abc")
    judged = critique_draft(request({"Size": (text,)}, plan=asked, subjects=(subject,), sources=elsewhere))
    assert not [issue for issue in judged.issues if "nothing of" in issue.description]


@pytest.mark.requirement("F-07")
def test_of_two_subjects_a_missing_one_is_a_major_fault() -> None:
    judged = critique_draft(request(subjects=("Lake Marrow", "Lake Tamsel")))
    assert found(judged, "says nothing of Lake Tamsel").severity == "major"


def test_words_are_not_compared_across_languages() -> None:
    german = plan(goal="Wie groß ist der Marrowsee, und warum ist er geschrumpft?")
    judged = critique_draft(request(HOTELS, plan=german, subjects=("Marrowsee",)))
    assert not [issue for issue in judged.issues if issue.severity == "critical"]


# Each criterion with its checks ----------------------------------------------------------------------


def with_section(given: CritiqueRequest, title: str, *sentences: DraftSentence, **more: Any) -> CritiqueRequest:
    section = DraftSection(title=title, sentences=sentences, **more)
    draft = given.draft.model_copy(update={"sections": (*given.draft.sections, section)})
    return given.model_copy(update={"draft": draft})


def retold(text: str, quote: str = SAID["Size"][0], **more: Any) -> CritiqueRequest:
    """A sound report with one more sentence, bound to a claim that says `quote`."""
    given = request()
    extra = claim("C99", quote, **more)
    changed = given.model_copy(update={"claims": (*given.claims, extra)})
    sections = list(changed.draft.sections)
    sections[0] = sections[0].model_copy(
        update={"sentences": (*sections[0].sentences, DraftSentence(text=text, claims=("C99",)))}
    )
    return changed.model_copy(update={"draft": changed.draft.model_copy(update={"sections": tuple(sections)})})


@pytest.mark.requirement("F-07")
@pytest.mark.parametrize(
    ("given", "words", "severity"),
    [
        (retold("Lake Marrow is salty.", verdict=Verdict.PARTLY), "not supported", "critical"),
        (retold("Lake Marrow covered 9,999 hectares then."), "no passage behind it has 9999", "critical"),
        (retold("Therefore Lake Marrow covered 412 square kilometres."), "what no passage concludes", "major"),
        (request(dropped=3), "3 drafted sentences", "minor"),
    ],
)  # fmt: skip
def test_accuracy(given: CritiqueRequest, words: str, severity: str) -> None:
    issue = found(critique_draft(given), words)
    assert (issue.category, issue.severity) == ("accuracy", severity)
    assert issue.fix
    assert issue.location
    assert critique_draft(given).scores["accuracy"] < 10


@pytest.mark.requirement("F-07")
@pytest.mark.parametrize("text", ["Lake Marrow covered 412 square kilometres.", "In 2019.0 it was 412.00 wide there."])
def test_a_figure_in_another_spelling_is_the_same_figure(text: str) -> None:
    assert not [i for i in critique_draft(retold(text)).issues if i.severity == "critical"]


@pytest.mark.requirement("F-07")
def test_the_year_of_a_source_is_no_strange_figure() -> None:
    given = retold("A study of 2031 found that Lake Marrow covered 412 square kilometres.")
    dated = tuple(card.model_copy(update={"published": "2031-05-02"}) for card in given.sources)

    assert [i for i in critique_draft(given).issues if "2031" in i.description]
    assert not [
        i for i in critique_draft(given.model_copy(update={"sources": dated})).issues if "2031" in i.description
    ]


@pytest.mark.requirement("F-07")
def test_completeness() -> None:
    judged = critique_draft(request(unanswered=QUESTIONS[2:]))
    assert found(judged, f"unanswered: {QUESTIONS[2]}").severity == "minor"
    most = critique_draft(request(unanswered=QUESTIONS[1:]))
    assert found(most, "most of what was asked is open").severity == "major"
    assert most.scores["completeness"] < judged.scores["completeness"] < 10
    without = {title: texts for title, texts in SAID.items() if title != "Outlook"}
    assert found(critique_draft(request(without)), "planned and not written: Outlook").category == "completeness"
    owned = with_section(request(without), "What could not be found",
                         DraftSentence(text=f"No source answered: “{QUESTIONS[2]}”"), role="not_found")  # fmt: skip
    assert not [issue for issue in critique_draft(owned).issues if "not written" in issue.description]
    assert found(critique_draft(request({})), "no factual statement").severity == "critical"


@pytest.mark.requirement("F-07")
def test_coherence() -> None:
    again = "Lake Marrow covered 412 square kilometres in the year 2019."
    assert found(critique_draft(retold(again)), "said twice").fix == "keep one of them"
    mixed = dict(reversed(SAID.items()))
    assert "order" in found(critique_draft(request(mixed)), "do not stand in the order").description
    loose = {**SAID, "Causes": ("It dried up because the river that fed Lake Marrow did.",)}
    assert found(critique_draft(request(loose)), "refers to nothing").location == "Causes"
    snippets = {**SAID, "Causes": ("drought, farms", "Inflow: 40%", "see Lake Marrow for more")}
    assert found(critique_draft(request(snippets)), "are snippets").category == "coherence"
    alike = {**SAID, "Size": tuple(f"Lake Marrow is {word} now in every respect." for word in ("dry", "salt", "low"))}
    assert found(critique_draft(request(alike)), "begin alike").severity == "suggestion"
    long = {**SAID, "Size": tuple(f"Statement {n} on Lake Marrow {'says a great deal more ' * 8}." for n in range(20))}
    given = request(long)
    assert found(critique_draft(given), "has no summary").category
    answered = given.draft.model_copy(update={"answers": (DraftAnswer(text="412", claims=("C1",)),)})
    assert not [
        i for i in critique_draft(given.model_copy(update={"draft": answered})).issues if "summary" in i.description
    ]


@pytest.mark.requirement("F-07")
def test_citation() -> None:
    bare = request()
    claims = (bare.claims[0].model_copy(update={"spans": ()}), *bare.claims[1:])
    assert found(critique_draft(bare.model_copy(update={"claims": claims})), "no span").severity == "critical"
    assert found(
        critique_draft(retold("Lake Marrow covered 412 square kilometres.", documents=("z",))), "never read"
    ).category
    assert found(critique_draft(request(documents=("b",))), "one independent source").location == "whole report"
    copies = (source("a", group="g"), source("b", group="g"))
    assert found(critique_draft(request(sources=copies)), "everything rests on one independent source").category
    nameless = (source("a", title=""), source("b"))
    assert found(critique_draft(request(sources=nameless)), "lack a title").category == "citation"
    assert found(critique_draft(retold("Lake Marrow covered 412 square kilometres [12].")), "reference marks").category


@pytest.mark.requirement("F-07")
def test_a_section_on_one_voice_is_told_of() -> None:
    three = {**SAID, "Size": (*SAID["Size"], "Lake Marrow has three islands.")}
    given = request(three)
    alone = [
        claim.model_copy(update={"spans": claim.spans[:1]}) if n < 3 else claim for n, claim in enumerate(given.claims)
    ]
    judged = critique_draft(given.model_copy(update={"claims": tuple(alone)}))
    assert found(judged, "the section rests on one").location == "Size"


@pytest.mark.requirement("F-07")
def test_methodology() -> None:
    assert found(critique_draft(request(unanswered=QUESTIONS[2:])), "not owned up to").severity == "major"
    silent = plan().model_copy(update={"methodology": ""})
    assert found(critique_draft(request(plan=silent)), "no methodology stated").category
    one_sided = Disagreement(about="the area", sides=(("C1",), ("C77",)), resolution="none")
    assert found(critique_draft(request(disagreements=(one_sided,))), "one side of a disagreement").severity == "major"
    shown = Disagreement(about="the area", sides=(("C1",), ("C2",)), resolution="none")
    assert not [i for i in critique_draft(request(disagreements=(shown,))).issues if "disagreement" in i.description]
    same = tuple(source(name) for name in "abc")
    judged = critique_draft(request(documents=("a", "b", "c"), sources=same))
    assert found(judged, "all 3 sources are of one kind").severity == "suggestion"


@pytest.mark.requirement("F-07")
@pytest.mark.parametrize(
    ("question", "published", "words"),
    [
        ("What is the latest news on Lake Marrow?", "2019-01-01", "older than what is asked for"),
        ("How did Lake Marrow change since 2024?", "2023-12-31", "older than what is asked for"),
        ("How did Lake Marrow change since 2024?", "2024-02-01", None),
        ("What is the latest news on Lake Marrow?", None, "no source has a date"),
        ("What happened to Lake Marrow in 1950?", "1990-01-01", None),
        ("How large is Lake Marrow?", "1990-01-01", None),
    ],
)
def test_sources_are_as_recent_as_the_question_asks(question: str, published: str | None, words: str | None) -> None:
    sources = tuple(source(name, published=published) for name in "ab")
    judged = critique_draft(request(question=question, sources=sources))
    told = [
        issue.description for issue in judged.issues if "asked" in issue.description and issue.location == "sources"
    ]
    assert [words in text for text in told if words] == [True] * bool(words)
    assert bool(told) == bool(words)


@pytest.mark.requirement("F-07")
def test_style() -> None:
    banned = with_section(request(), "A holistic outlook", DraftSentence(text="This is robust."), role="conclusion")
    judged = critique_draft(banned.model_copy(update={"banned": ("robust", "holistic", "delve")}))
    assert {i.description for i in judged.issues if i.category == "style"} == {
        "banned word: robust",
        "banned word: holistic",
    }
    quoted = request({**SAID, "Causes": ("A robust drought dried up the river of Lake Marrow.",)}, banned=("robust",))
    assert not [i for i in critique_draft(quoted).issues if "banned" in i.description], "a source may say what it likes"
    assert found(critique_draft(request(words=20)), "words where 20 were asked for").fix == "shorten"
    loud = with_section(request(), "Conclusion", DraftSentence(text="What a finding!"), role="conclusion")
    assert found(critique_draft(loud), "sober").category
    winding = {**SAID, "Size": tuple(f"Lake Marrow {'and its many shores ' * n}is large." for n in (20, 21, 22))}
    assert found(critique_draft(request(winding)), "words on average").category


# Where the lines are ---------------------------------------------------------------------------------


def issues(**counts: int) -> tuple[Issue, ...]:
    return tuple(
        Issue.model_validate({"category": "style", "severity": severity, "location": "here", "description": "x"})
        for severity, count in counts.items()
        for _ in range(count)
    )


@pytest.mark.requirement("F-07")
@pytest.mark.parametrize(
    ("score", "faults", "revisions", "expected"),
    [
        (7.5, {}, 0, "approve"),
        (7.49, {}, 0, "revise"),
        (9.9, {"critical": 1}, 0, "revise"),
        (9.9, {"major": 3}, 0, "approve"),
        (9.9, {"major": 4}, 0, "revise"),
        (5.0, {}, 0, "revise"),
        (4.99, {}, 0, "reject"),
        (4.99, {}, 1, "revise"),
        (0.0, {"critical": 9}, 2, "revise"),
        (0.0, {"critical": 9}, 0, "reject"),
    ],
)
def test_approve_revise_reject(score: float, faults: dict[str, int], revisions: int, expected: str) -> None:
    assert recommend(score, issues(**faults), revisions) == expected


@pytest.mark.requirement("F-07")
def test_small_faults_promise_more_than_critical_ones() -> None:
    assert estimate_potential(10.0, ()) == 0
    assert (
        estimate_potential(7.0, issues(minor=4))
        > estimate_potential(7.0, issues(major=2))
        > estimate_potential(7.0, issues(critical=3))
    )
    assert estimate_potential(2.0, issues(critical=5, major=9)) == 0
    assert all(0 <= estimate_potential(score, issues(minor=40)) <= 1 for score in (0.0, 5.0, 9.9))


@pytest.mark.requirement("F-07")
def test_the_worst_comes_first() -> None:
    judged = critique_draft(retold("Lake Marrow is salty.", verdict=Verdict.PARTLY).model_copy(update={"words": 5}))
    ranks = ["critical major minor suggestion".split().index(issue.severity) for issue in judged.issues]
    assert ranks == sorted(ranks)
    assert ranks[0] == 0
