"""A database that somebody has altered: whom it concerns is told, and nobody else."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.scenario.server.asking import researched
from tests.scenario.server.conftest import Http, Open, token_of


@pytest.mark.slow
async def test_a_thread_that_is_gone_concerns_its_owner_alone(serve: Open, http: Http, tmp_path: Path) -> None:
    server = await serve()
    ada, bob = [http(server, await token_of(server, name)) for name in ("ada", "bob")]
    kept, gone = await researched(ada), await researched(bob)
    with closing(sqlite3.connect(tmp_path / "openassay.sqlite3")) as database, database:
        database.execute("DELETE FROM threads WHERE id = ?", (gone,))

    answer = await ada.get("/api/threads")
    assert (answer.status_code, [one["id"] for one in answer.json()["threads"]]) == (200, [kept])
    refused = await bob.get("/api/threads")
    assert refused.status_code == 500
    assert "one of your threads is missing" in refused.json()["detail"]
    assert str(tmp_path) not in refused.text
