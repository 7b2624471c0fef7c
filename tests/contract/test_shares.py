"""What the store of links does, on both databases."""

from datetime import UTC, datetime, timedelta

import pytest

from assay.errors import NotFoundError
from assay.storage.database import Database
from assay.storage.rows import Rows
from assay.storage.shares import SqlShares
from assay.storage.tables import SHARES
from assay.storage.threads import SqlThreads
from tests.contract.conftest import with_threads

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def rows(any_database: Database) -> Rows:
    return with_threads(Rows(any_database), "t", "u")


async def test_a_link_is_known_by_its_secret_alone(rows: Rows) -> None:
    shares = SqlShares(rows, lambda: NOON)
    share, secret = await shares.make("t", timedelta(days=1))

    assert await shares.known(secret) == share
    assert share.is_good(NOON + timedelta(hours=23))
    assert not share.is_good(NOON + timedelta(days=1))
    for wrong in (secret[:-1], secret + "x", share.hash, share.id, "", "\0"):
        assert await shares.known(wrong) is None
    assert secret not in str(rows.read(SHARES))


async def test_a_link_is_taken_back_for_good_and_by_its_own_thread(rows: Rows) -> None:
    shares = SqlShares(rows, lambda: NOON)
    share, secret = await shares.make("t", timedelta(days=1))
    for thread, id in (("u", share.id), ("t", "unknown")):
        with pytest.raises(NotFoundError):
            await shares.revoke(thread, id)

    assert (await shares.revoke("t", share.id)).revoked == NOON
    assert (await shares.revoke("t", share.id)).revoked == NOON
    known = await shares.known(secret)
    assert known is not None
    assert not known.is_good(NOON)
    assert [one.id for one in await shares.of("t")] == [share.id]
    assert await shares.of("u") == []


async def test_links_go_with_their_thread(rows: Rows) -> None:
    shares = SqlShares(rows)
    _, secret = await shares.make("t", timedelta(days=1))
    await SqlThreads(rows).delete("t")

    assert await shares.known(secret) is None
    with pytest.raises(NotFoundError, match="no thread t"):
        await shares.make("t", timedelta(days=1))
