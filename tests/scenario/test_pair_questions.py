"""Questions about two things over a folder, answered without a language model."""

from collections.abc import Callable
from pathlib import Path

from openassay.export import Report

KESTREL = (
    "Rocket lifts Kestrel satellite\nPublisher: The Herald\nDate: 2008-06-13\n\nThe Kestrel satellite was launched on "
    "12 June 2008 from the base at Ostrey. It will relay messages between ships for fifteen years."
)
HERON = (
    "Heron satellite in orbit\nPublisher: The Herald\nDate: 2008-07-07\n\nThe Heron satellite was launched last Friday "
    "from the base at Ostrey after two delays. It will carry television to the islands."
)


def test_which_came_first_is_answered_by_the_days_of_both(researched: Callable[..., Report], tmp_path: Path) -> None:
    folder = tmp_path / "news"
    folder.mkdir()
    (folder / "kestrel.md").write_text(KESTREL, encoding="utf-8")
    (folder / "heron.md").write_text(HERON, encoding="utf-8")

    report = researched("Which was launched first, the Heron satellite or the Kestrel satellite?", docs=[folder])

    [answer] = report.answers
    assert answer.text == "the Kestrel satellite"
    assert [(figure.value, figure.operation) for figure in answer.derived] == [(22, "days")]
    told = [sentence.text for section in report.sections for sentence in section.sentences if sentence.claims]
    assert any("Kestrel" in text for text in told[:2])
    assert any("Heron" in text for text in told[:2])
    assert len(answer.citations) == 2

    alone = researched("Which was launched first, the Heron satellite or the Owl satellite?", docs=[folder])
    assert not alone.answers
