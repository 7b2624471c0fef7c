"""The checker outside the project: that it runs over every report here, and that it would see a fault."""

from pathlib import Path

import pytest

from tests.scenario.checking import CHECKER, check_report, faults, outside_checker
from tests.scenario.conftest import LibraryRun


def test_the_outside_checker_is_at_work(shared: Path) -> None:
    """Skipped, with its reason, where ../shared is absent: then only our own rules check the reports."""
    checker = outside_checker()

    assert CHECKER.is_relative_to(shared)
    assert checker is not None
    assert callable(checker.check)


@pytest.mark.slow
@pytest.mark.requirement("X-01")
def test_both_checkers_see_a_report_that_was_tampered_with(shared: Path, library: LibraryRun) -> None:
    checker = outside_checker()
    assert checker is not None
    plain = library.report.model_dump(mode="json")
    span = plain["claims"][0]["spans"][0]
    span["quote"] = span["quote"].replace(span["quote"].split()[0], "Allegedly", 1)

    assert any("quotes what is not there" in fault for fault in faults(plain, library.texts))
    assert any(kind == "span" for kind, _ in checker.check(plain, library.texts.__getitem__)[2])


@pytest.mark.slow
@pytest.mark.requirement("X-01")
def test_a_snapshot_that_was_altered_is_noticed(library: LibraryRun) -> None:
    texts = {name: f"{text} " for name, text in library.texts.items()}

    with pytest.raises(AssertionError, match="is not the hash of its text"):
        check_report(library.report, texts)
