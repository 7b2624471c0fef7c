"""A folder of two short documents, and runs that many tests look at."""

from pathlib import Path

import pytest

from tests.system.command import Command, Ran

TIDES = """# Tides in the Bay of Fundy

The Bay of Fundy has the highest tides in the world. The tides in the Bay of Fundy are up to 16.3 metres high.
The tide turns twice a day because the Earth rotates under two bulges of water.
The harbour office measured tides in the Bay of Fundy of 14.5 metres at Saint John in 2020.
"""
MOON = """The Moon raises tides on the Earth. The Sun raises tides about half as high as those of the Moon.
Spring tides come at new moon and full moon.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("system")


def write_docs(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tides.md").write_text(TIDES, encoding="utf-8")
    (folder / "moon.txt").write_text(MOON, encoding="utf-8")
    return folder


@pytest.fixture
def openassay(tmp_path: Path) -> Command:
    """The command in a folder of this test's own, with documents in `tiny`."""
    folder = tmp_path / "work"
    write_docs(folder / "tiny")
    return Command(folder, tmp_path / "data")


@pytest.fixture(scope="session")
def office(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A folder and data directory that tests share; they look at it and leave it as it is."""
    home = tmp_path_factory.mktemp("office")
    write_docs(home / "tiny")
    return Command(home, home / "data")


@pytest.fixture(scope="session")
def tides(office: Command) -> Ran:
    return office("research", "How high are the tides in the Bay of Fundy?", "--docs", "tiny", "--json")


@pytest.fixture(scope="session")
def apple(office: Command) -> Ran:
    return office("ask", "What's happening with Apple?", "--json")
