"""People and their tokens, and what a person has spent, on both databases."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest

from openassay.errors import IntegrityError, NotFoundError, UsageError
from openassay.models.event import RunStatus
from openassay.models.spend import Caps, Charge, Reservation
from openassay.models.thread import ResearchOptions, Run, Thread
from openassay.models.user import Scope, User
from openassay.storage.database import TOKENS, USERS
from openassay.storage.ledger import SqlLedger, SqlSpending
from openassay.storage.sealed_rows import Rows
from openassay.storage.threads import SqlThreads
from openassay.storage.users import SqlUsers

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
ADA = User(name="ada", created=NOW, usd=20.0, requests_per_minute=100)


@pytest.fixture
def users(rows: Rows) -> SqlUsers:
    return SqlUsers(rows, now=lambda: NOW)


async def test_somebody_is_known_by_their_token_and_only_its_hash_is_kept(users: SqlUsers, rows: Rows) -> None:
    assert await users.is_empty()
    await users.add(ADA)
    assert not await users.is_empty()
    assert not await users.has_valid_token(), "there is no token yet"
    token, secret = await users.issue("ada", label="notebook", scopes=(Scope.READ,), expires=NOW + timedelta(days=1))
    assert await users.find_by_secret(secret) == (token, ADA)
    assert await users.find_by_token_id(token.id) == (token, ADA)
    assert await users.find_by_secret(secret[:-1]) is None
    assert await users.find_by_token_id("nobody") is None
    assert await users.has_valid_token()
    kept = rows.read(TOKENS)[0]
    assert kept["hash"] == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in str(kept)
    assert len({(await users.issue("ada"))[1] for _ in range(20)}) == 20


async def test_a_token_ends(users: SqlUsers) -> None:
    await users.add(ADA)
    kept, _ = await users.issue("ada", expires=NOW + timedelta(hours=1))
    assert kept.is_valid(NOW)
    assert not kept.is_valid(NOW + timedelta(hours=1))
    revoked = await users.revoke(kept.id)
    assert not revoked.is_valid(NOW)
    assert (await users.revoke(kept.id)).revoked == revoked.revoked, "the first time counts"
    assert not await users.has_valid_token()


async def test_limits_change_and_the_rest_stays(users: SqlUsers) -> None:
    await users.add(ADA)
    assert (await users.change("ada", usd=None, disabled=True)) == ADA.model_copy(
        update={"usd": None, "disabled": True}
    )
    assert (await users.get("ada")).disabled
    assert [user.name for user in await users.all()] == ["ada"]


async def test_what_is_not_there_is_said(users: SqlUsers) -> None:
    await users.add(ADA)
    with pytest.raises(UsageError, match="already"):
        await users.add(ADA)
    for lost in (users.get("bob"), users.change("bob", usd=1.0), users.tokens("bob"), users.issue("bob")):
        with pytest.raises(NotFoundError, match="no user bob"):
            await lost
    with pytest.raises(NotFoundError, match="no token"):
        await users.revoke("bob")


async def test_who_alters_the_database_gains_nothing(keyed_rows: Rows) -> None:
    """A raised limit, a token that was revoked, another's hash: none is believed."""
    users = SqlUsers(keyed_rows, now=lambda: NOW)
    await users.add(ADA)
    token, secret = await users.issue("ada")
    await users.revoke(token.id)
    with keyed_rows.database.transaction() as connection:
        connection.execute("UPDATE tokens SET revoked = NULL")
        connection.execute("UPDATE users SET usd = 10000")
    with pytest.raises(IntegrityError, match="tokens"):
        await users.find_by_secret(secret)
    with pytest.raises(IntegrityError, match="users"):
        await users.get("ada")
    assert keyed_rows.find(USERS, "bob") is None


# -- money ---------------------------------------------------------------------------------------------


async def a_run(rows: Rows, owner: str, name: str, status: RunStatus, micros: int, at: datetime) -> None:
    """One that may cost 2 dollars, and has made a call for so much."""
    threads, ledger = SqlThreads(rows), SqlLedger(rows, now=lambda: at)
    thread = Thread(id=f"t{name}", title="", created=at, updated=at, owner=owner)
    options = ResearchOptions(user=owner, usd=2.0)
    await threads.create_with_run(
        thread, Run(id=name, thread=thread.id, question="", status=status, started=at, options=options)
    )
    await ledger.open(name, Caps(micros=2_000_000, tokens=1000, requests=10))
    wanted = Reservation(key=f"k{name}", run=name, step="s", provider="p", model="m", micros=micros, tokens=10)
    await ledger.reserve(wanted)
    await ledger.record_send(wanted.key)
    await ledger.store_answer(wanted.key, "yes")
    await ledger.settle(wanted.key, Charge(micros=micros, prompt_tokens=5, completion_tokens=5))


@pytest.mark.requirement("W-15")
async def test_what_a_person_spent_is_counted_over_their_threads_and_outlives_them(rows: Rows) -> None:
    spending, month = SqlSpending(rows), NOW.replace(day=1, hour=0)
    await a_run(rows, "ada", "a1", RunStatus.DONE, 300_000, NOW)
    await a_run(rows, "ada", "a2", RunStatus.RUNNING, 500_000, NOW)
    await a_run(rows, "ada", "a3", RunStatus.DONE, 700_000, month - timedelta(days=1))
    await a_run(rows, "bob", "b1", RunStatus.WAITING, 900_000, NOW)
    assert await spending.owner_total("ada", month) == 800_000
    assert await spending.owner_total("bob", month) == 900_000
    assert await spending.owner_total("eve", month) == 0
    assert [(one.run, one.options.usd, one.used) for one in await spending.open_runs("ada")] == [("a2", 2.0, 500_000)]
    assert (await spending.count_active("ada"), await spending.count_active("bob")) == (1, 1), (
        "who waits for a person counts"
    )
    assert await spending.count_active("bob", without="b1") == 0
    assert await spending.run_total("a3") == 700_000
    await SqlThreads(rows).delete("ta1")
    assert await spending.owner_total("ada", month) == 800_000, "what was spent stays in the books"
