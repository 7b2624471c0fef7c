"""What the store of artifacts does, on both databases: no version of a person's is ever lost."""

import asyncio

import pytest

from openassay.errors import NotFoundError, UsageError
from openassay.models.report import ArtifactDraft
from openassay.storage import threads as module
from openassay.storage.database import Database
from openassay.storage.sealed_rows import Rows
from openassay.storage.threads import SqlArtifacts, SqlThreads
from tests.contract.conftest import with_threads

MADE = ArtifactDraft("report", "markdown", "Report", "made")


def by(author: str, content: str = "edited", name: str = "report") -> ArtifactDraft:
    return ArtifactDraft(name, "markdown", "Report", content, author)


@pytest.fixture
def rows(any_database: Database) -> Rows:
    return with_threads(Rows(any_database), "t", "u")


@pytest.fixture
def store(rows: Rows) -> SqlArtifacts:
    return SqlArtifacts(rows)


async def told(store: SqlArtifacts, name: str = "report") -> list[tuple[int, str, str]]:
    return [(one.version, one.author, one.content) for one in await store.versions("t", name)]


@pytest.mark.slow
async def test_versions_follow_each_other(store: SqlArtifacts) -> None:
    assert (await store.keep("t", by("ann"), MADE, seen=0)) is not None
    await store.keep("t", by("ann", "again"), MADE, seen=2)
    await store.keep("t", by("ann", "anew"), MADE._replace(content="new"), seen=3)

    assert await told(store) == [
        (1, "", "made"), (2, "ann", "edited"), (3, "ann", "again"), (4, "", "new"), (5, "ann", "anew"),
    ]  # fmt: skip
    assert [one.version for one in await store.latest("t")] == [4, 5]
    assert await store.latest("u") == []


async def test_nobody_writes_over_what_they_have_not_seen(store: SqlArtifacts) -> None:
    both = await asyncio.gather(*(store.keep("t", by(who), MADE, seen=0) for who in ("ann", "bob")))

    assert sorted(one is None for one in both) == [False, True]
    assert len(await told(store)) == 2
    assert await store.keep("t", by("ann"), None, seen=1) is None


async def test_nothing_a_person_has_made_is_dropped(store: SqlArtifacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_VERSIONS", 2)
    monkeypatch.setattr(module, "MAX_ARTIFACTS", 2)
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    await store.keep("t", by("ann", "1"), MADE, seen=0)
    await store.keep("t", by("ann", "2"), MADE, seen=2)

    with pytest.raises(UsageError, match="2 versions"):
        await store.keep("t", by("ann", "3"), MADE, seen=3)
    await store.keep("t", by("ann", "1", "other"), None, seen=0)
    with pytest.raises(UsageError, match="2 artifacts"):
        await store.keep("t", by("ann", "1", "third"), None, seen=0)
    with pytest.raises(UsageError, match="MB"):
        await store.keep("t", by("ann", "x" * 200, "other"), None, seen=1)
    assert [content for *_, content in await told(store)] == ["made", "1", "2"]


async def test_they_go_when_they_are_deleted_and_with_their_thread(store: SqlArtifacts, rows: Rows) -> None:
    await store.keep("t", by("ann"), MADE, seen=0)
    await store.keep("t", by("ann", "x", "other"), None, seen=0)
    await store.delete("t", "report")
    with pytest.raises(NotFoundError):
        await store.delete("t", "report")
    assert [one.name for one in await store.latest("t")] == ["other"]
    rows.check("thread", "t", deep=True)

    await SqlThreads(rows).delete("t")
    assert await store.latest("t") == []
    with pytest.raises(NotFoundError, match="no thread t"):
        await store.keep("t", by("ann"), None, seen=0)


async def test_they_are_encrypted(keyed_rows: Rows) -> None:
    store = SqlArtifacts(with_threads(keyed_rows, "t"))
    await store.keep("t", by("ann", "secret \0 text"), None, seen=0)

    assert await told(store) == [(1, "ann", "secret \0 text")]
    with keyed_rows.database.connection() as connection:
        assert "secret" not in str(connection.execute("SELECT content FROM artifacts").fetchone()["content"])
