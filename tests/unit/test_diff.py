"""Two reports held against each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.engine.diff import ReportEdition, ReportStatement, SourceRef, compare_editions
from openassay.models.evidence import Mark, Verdict

pytestmark = pytest.mark.requirement("X-07")

SURVEY = SourceRef(id="S1", title="Survey", url="https://survey.example/marrow", document="a" * 64)
GAZETTE = SourceRef(id="S2", title="Gazette", url="https://gazette.example/shores", document="b" * 64)


def says(text: str, id: str = "C1", **more: object) -> ReportStatement:
    return ReportStatement.model_validate({"id": id, "text": text, "verdict": "supported", "mark": "✓", **more})


def edition(*statements: ReportStatement, sections: tuple[str, ...] = ()) -> ReportEdition:
    sources = {source.key: source for one in statements for source in one.sources}
    return ReportEdition(
        name="t", title="Lake", statements=statements, sections=sections, sources=tuple(sources.values())
    )


AREA = "Lake Marrow covered 412 square kilometres in 2019."


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        (says(AREA), says(AREA.replace("412", "398")), {"figure"}),
        (says(AREA), says(AREA.replace("2019", "2021")), {"date"}),
        (says(AREA), says(AREA.replace("Marrow", "Harrow")), {"name"}),
        (says("The survey office found a leak."), says("The survey office found no leak."), {"negation"}),
        (says(AREA), says(AREA, mark="✓✓"), {"mark"}),
        (says(AREA), says(AREA, verdict="contradicted"), {"verdict"}),
        (says(AREA, sources=(SURVEY,)), says(AREA, sources=(SURVEY, GAZETTE)), {"sources"}),
    ],
)
def test_a_statement_that_says_something_else_is_changed(
    before: ReportStatement, after: ReportStatement, how: set[str]
) -> None:
    found = compare_editions(edition(before), edition(after))
    [changed] = found.changed
    assert (changed.before, changed.after) == (before, after)
    assert how <= set(changed.how)
    assert (found.added, found.dropped, found.same) == ((), (), 0)


def test_the_same_in_other_words_is_the_same() -> None:
    found = compare_editions(edition(says(AREA)), edition(says("In 2019, Lake Marrow covered 412 square kilometres.")))
    assert (found.same, found.empty) == (1, True)


def test_what_has_no_counterpart_is_added_or_dropped() -> None:
    shrank, freezes = says("Lake Marrow shrank in a drought.", "C2"), says("A ferry carries 60 passengers.", "C2")
    found = compare_editions(edition(says(AREA), shrank), edition(says(AREA), freezes))
    assert (found.dropped, found.added, found.same) == ((shrank,), (freezes,), 1)


def test_what_is_left_untold_is_dropped_though_it_is_still_known() -> None:
    found = compare_editions(edition(says(AREA)), edition(says(AREA, told=False)))
    assert [one.text for one in found.dropped] == [AREA]
    unheard = compare_editions(edition(says(AREA, told=False)), edition())
    assert unheard.empty


def test_each_statement_has_one_counterpart_the_likest() -> None:
    first, second = says(AREA, "C1"), says(AREA.replace("412", "398"), "C2")
    found = compare_editions(edition(first, second), edition(second.model_copy(update={"id": "C1"})))
    assert (found.dropped, found.same) == ((first,), 1)


def test_a_source_is_the_same_under_another_number_and_with_another_text() -> None:
    renumbered = GAZETTE.model_copy(update={"id": "S7", "document": "c" * 64})
    found = compare_editions(edition(says(AREA, sources=(SURVEY, GAZETTE))), edition(says(AREA, sources=(renumbered,))))
    assert (found.sources_lost, found.sources_gained) == ((SURVEY,), ())


def test_sections_are_compared_by_title() -> None:
    found = compare_editions(edition(sections=("Size", "Causes")), edition(sections=("SIZE", "Ferry")))
    assert (found.sections_dropped, found.sections_added) == (("Causes",), ("Ferry",))


WORDS = st.sampled_from("lake marrow covered shrank 412 398 2019 2021 not drought ferry".split())
STATEMENTS = st.lists(
    st.builds(
        lambda words, verdict, mark, told, sources: {
            "text": " ".join(words), "verdict": verdict, "mark": mark, "told": told, "sources": sources,
        },
        st.lists(WORDS, min_size=1, max_size=7), st.sampled_from(Verdict), st.sampled_from([None, *Mark]),
        st.booleans(), st.lists(st.sampled_from([SURVEY, GAZETTE]), max_size=2, unique=True),
    ),
    max_size=5,
)  # fmt: skip
EDITIONS = st.builds(
    lambda found, sections: edition(
        *(ReportStatement.model_validate({"id": f"C{n}", **one}) for n, one in enumerate(found, 1)),
        sections=tuple(sections),
    ),
    STATEMENTS,
    st.lists(st.sampled_from(["Size", "Causes", "Ferry"]), unique=True),
)


@pytest.mark.slow
@given(EDITIONS)
def test_nothing_differs_from_itself(one: ReportEdition) -> None:
    found = compare_editions(one, one)
    assert found.empty
    assert found.same == sum(statement.told for statement in one.statements)


@pytest.mark.slow
@given(EDITIONS, EDITIONS)
def test_the_other_way_round_the_same_is_told_the_other_way_round(a: ReportEdition, b: ReportEdition) -> None:
    there, back = compare_editions(a, b), compare_editions(b, a)
    assert (there.added, there.dropped, there.same) == (back.dropped, back.added, back.same)
    assert (there.sources_gained, there.sections_added) == (back.sources_lost, back.sections_dropped)
    forth = {(one.before.id, one.after.id, one.how) for one in there.changed}
    assert forth == {(one.after.id, one.before.id, one.how) for one in back.changed}
