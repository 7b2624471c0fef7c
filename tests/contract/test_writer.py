"""What a transaction has read it need not read again, and never takes for what it was before a change of its own."""

import pytest

from openassay.storage.database import THREADS, Database
from openassay.storage.sealed_rows import Rows, Seals
from tests.contract.conftest import KEY

pytestmark = pytest.mark.requirement("F-10")

THREAD = {"id": "t", "title": "Kilns", "created": "1", "updated": "1", "mode": None, "owner": ""}


def fill(rows: Rows) -> None:
    with rows.open_writer("thread", "t") as writer:
        writer.insert(THREADS, {name: THREAD[name] for name in THREADS.columns})


@pytest.mark.parametrize("seals", [Seals(), Seals(KEY, encrypt=True)], ids=["plain", "encrypted"])
def test_a_row_that_was_read_is_changed_twice(any_database: Database, seals: Seals) -> None:
    rows = Rows(any_database, seals)
    fill(rows)

    with rows.open_writer("thread", "t") as writer:
        writer.find(THREADS, "t")
        writer.update(THREADS, ("t",), {"title": "Ovens"})
        writer.update(THREADS, ("t",), {"updated": "2"})

    found = rows.find(THREADS, "t")
    assert found is not None
    assert (found["title"], found["updated"]) == ("Ovens", "2")
    rows.check("thread", "t", deep=True)


def test_a_row_that_was_read_and_deleted_is_not_changed(rows: Rows) -> None:
    fill(rows)

    with rows.open_writer("thread", "t") as writer:
        writer.find(THREADS, "t")
        writer.delete(THREADS, "WHERE id = ?", ("t",))
        assert writer.update(THREADS, ("t",), {"title": "Ovens"}) is None

    rows.check("thread", "t", deep=True)
