"""Threads that nobody has touched are forgotten; one that somebody has, or that is damaged, never is."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from openassay.errors import IntegrityError
from openassay.storage.database import THREADS, timestamp
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from tests.scenario.conftest import Lab

pytestmark = pytest.mark.requirement("F-10")


async def test_one_flipped_bit_deletes_nothing(lab: Callable[..., Lab], tmp_path: Path) -> None:
    with SqliteDatabase(tmp_path / "main.db") as database:
        here = lab(settings={"persistence": {"ttl_hours": 24}}, rows=Rows(database))
        damaged, old = await here.engine.create_thread("damaged"), await here.engine.create_thread("old")
        here.ahead += timedelta(hours=23)
        with database.transaction() as connection:  # "2" and "0" differ in one bit
            connection.execute("UPDATE threads SET updated = '0' || substr(updated, 2) WHERE id = ?", (damaged.id,))

        assert await here.engine.archive.expire() == []
        with pytest.raises(IntegrityError):
            await here.threads.get(damaged.id)
        here.ahead += timedelta(hours=2)
        assert await here.engine.archive.expire() == [old.id]


async def test_who_comes_just_in_time_keeps_the_thread(
    lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = lab(settings={"persistence": {"ttl_hours": 24}})
    thread = await here.engine.create_thread("Kilns")
    here.ahead += timedelta(hours=25)
    untouched = here.threads.list_idle

    async def listed(since: datetime, *, limit: int) -> list[str]:
        found: list[str] = await untouched(since, limit=limit)
        with here.rows.open_writer("thread", thread.id) as writer:
            writer.update(THREADS, (thread.id,), {"updated": timestamp(since)})
        return found

    monkeypatch.setattr(here.threads, "list_idle", listed)
    assert await here.engine.archive.expire() == []
    assert (await here.threads.get(thread.id)).title == "Kilns"
