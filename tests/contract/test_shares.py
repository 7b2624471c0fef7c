"""What the store of links does, on both databases."""

from datetime import UTC, datetime, timedelta

import pytest

from openassay.errors import NotFoundError
from openassay.storage.database import SHARES, Database
from openassay.storage.sealed_rows import Rows
from openassay.storage.threads import SqlThreads
from openassay.storage.users import SqlShares
from tests.contract.conftest import with_threads

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def rows(any_database: Database) -> Rows:
    return with_threads(Rows(any_database), "t", "u")


async def test_a_link_is_known_by_its_secret_alone(rows: Rows) -> None:
    shares = SqlShares(rows, lambda: NOON)
    share, secret = await shares.create("t", timedelta(days=1))

    assert await shares.find_by_secret(secret) == share
    assert share.is_valid(NOON + timedelta(hours=23))
    assert not share.is_valid(NOON + timedelta(days=1))
    for wrong in (secret[:-1], secret + "x", share.hash, share.id, "", "\0"):
        assert await shares.find_by_secret(wrong) is None
    assert secret not in str(rows.read(SHARES))


async def test_a_link_is_taken_back_for_good_and_by_its_own_thread(rows: Rows) -> None:
    shares = SqlShares(rows, lambda: NOON)
    share, secret = await shares.create("t", timedelta(days=1))
    for thread, id in (("u", share.id), ("t", "unknown")):
        with pytest.raises(NotFoundError):
            await shares.revoke(thread, id)

    assert (await shares.revoke("t", share.id)).revoked == NOON
    assert (await shares.revoke("t", share.id)).revoked == NOON
    known = await shares.find_by_secret(secret)
    assert known is not None
    assert not known.is_valid(NOON)
    assert [one.id for one in await shares.list_for("t")] == [share.id]
    assert await shares.list_for("u") == []


async def test_links_go_with_their_thread(rows: Rows) -> None:
    shares = SqlShares(rows)
    _, secret = await shares.create("t", timedelta(days=1))
    await SqlThreads(rows).delete("t")

    assert await shares.find_by_secret(secret) is None
    with pytest.raises(NotFoundError, match="no thread t"):
        await shares.create("t", timedelta(days=1))
