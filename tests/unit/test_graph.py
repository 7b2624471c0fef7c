"""The drawing of the graph is the graph: every stage of the design, and every way between them."""

import re

import pytest

from openassay.engine.state_view import draw_mermaid
from openassay.graph import STATUS, build_graph

EDGES = """
START understand            understand clarify    understand publish     understand gate      clarify understand
gate question               gate plan             gate publish           question question    question plan
question publish            plan approve_plan     plan dispatch
approve_plan approve_plan   approve_plan dispatch approve_plan fallback  dispatch search      dispatch verify
search fuse                 fuse approve_harvest  fuse harvest           fuse select          fuse read
fuse consolidate            approve_harvest approve_harvest              approve_harvest harvest
approve_harvest select      approve_harvest read  approve_harvest consolidate
approve_harvest verify      approve_harvest fallback
harvest select              select read           select consolidate
read consolidate            consolidate analyse   consolidate verify
analyse dispatch            analyse verify
verify approve_claims       verify write          verify fallback
approve_claims approve_claims   approve_claims write   approve_claims fallback
write review
review dispatch             review write          review approve_review  review approve_output
review publish              review fallback
approve_review approve_review   approve_review write   approve_review approve_output
approve_review publish      approve_review fallback
approve_output approve_output   approve_output write   approve_output publish   approve_output fallback
publish END                 fallback END
START withdraw              withdraw approve_output   withdraw publish      withdraw fallback
"""  # as in the design, and decisions 11 and 14


def expected() -> set[tuple[str, str]]:
    names = {"START": "__start__", "END": "__end__"}
    words = [names.get(word, word) for word in EDGES.split()]
    return set(zip(words[::2], words[1::2], strict=True))


def drawn() -> set[tuple[str, str]]:
    return set(re.findall(r"^\s*(\w+) (?:-->|-\.->)(?:\|[^|]*\|)? (\w+);$", draw_mermaid(), re.MULTILINE))


@pytest.mark.requirement("F-15")
def test_the_mermaid_drawing_shows_every_stage_and_every_edge_of_the_design() -> None:
    ours = {(left, right) for left, right in drawn() if "__error_handler__" not in left + right}

    assert ours == expected()
    assert "graph TD" in draw_mermaid()


@pytest.mark.requirement("F-15")
def test_what_is_drawn_is_what_is_compiled() -> None:
    nodes = {name for name in build_graph().get_graph().nodes if not name.startswith("__")}
    shown = set(re.findall(r"^\s*(\w+)\(\w+\)$", draw_mermaid(), re.MULTILINE))

    assert nodes == {name for name in shown if not name.startswith("__")}
    assert nodes == set(STATUS)
