"""Which key a database is sealed with: agreed on when it is opened, and changed by `reseal`.

The row `sealing` of `meta` says it, for a message that helps. It is no proof: seals are only ever checked with the key
of the settings, so nobody gains by changing the row.
"""

import json
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

from assay.errors import ConfigurationError, IntegrityError
from assay.storage.database import Connection, Database
from assay.storage.heads import Head
from assay.storage.rows import Row, Rows, put
from assay.storage.seals import ALTERED, Seals
from assay.storage.tables import ALL, Table

_SEAL = "Run `assay storage seal`"
_UNSEALED = (
    "If it was sealed before, somebody has altered it: restore a copy. If you know that it never was: "
    "assay storage seal --trust-unsealed"
)
_READ = "SELECT value FROM meta WHERE name = 'sealing'"
_NOTE = "INSERT INTO meta (name, value) VALUES ('sealing', ?) ON CONFLICT (name) DO "


class Sealing(NamedTuple):
    """`key` names the key; empty: there is none."""

    key: str
    encrypt: bool


def adopt(rows: Rows) -> None:
    """Make sure that a database is sealed the way the settings say; called when it is opened.

    Rows from before there were seals are sealed now, unless there is a key: then somebody has to say that they are to
    be trusted."""
    configured = Sealing(rows.seals.key_id, rows.seals.encrypts)
    held = sealing(rows.database)
    if held is None:
        with rows.database.transaction() as connection:
            if connection.execute(_NOTE + "NOTHING", (_text(configured),)).rowcount:
                _seal_first(rows, connection)
                return
        held = sealing(rows.database)  # another process was faster
    if held is not None and held != configured:
        raise _disagreement(rows.database, held, configured)


def sealing(database: Database) -> Sealing | None:
    """How a database is sealed; None where it never was."""
    with database.connection() as connection:
        row = connection.execute(_READ).fetchone()
    if row is None:
        return None
    try:
        value = json.loads(row["value"])
        return Sealing(str(value["key"]), bool(value["encrypt"]))
    except (ValueError, TypeError, KeyError) as error:
        raise _altered(database) from error


def reseal(database: Database, old: Seals, new: Seals, *, trust_unsealed: bool = False) -> int:
    """Check everything with the old key and write it anew with the new one, all or nothing; how many rows there are.

    Nothing else may be using the database. What has no seals is taken as it is only if somebody says that it is to be
    trusted: whoever can write to the database can remove them."""
    before, after = Rows(database, old), Rows(database, new)
    held, configured = sealing(database), Sealing(old.key_id, old.encrypts)
    if held is not None and held != configured:
        raise _disagreement(database, held, configured)
    if held is None and not old.keyed and not before.scopes():
        if new.keyed and not trust_unsealed and _is_written(database):
            raise ConfigurationError(f"{database.name} holds rows without seals", help=_UNSEALED)
        adopt(before)
    with database.transaction() as connection:
        before.heads.check_all()
        versions = {(scope, owner): before.check(scope, owner) for scope, owner in before.heads.names()}
        made = _rewrite(connection, before.opened, after)
        for scope, owner in made.keys() - versions.keys():
            raise before.miscounted(scope, owner, -made[scope, owner].members)
        for name, version in versions.items():
            made.setdefault(name, Head(":".join(name))).version = version + 1
        after.heads.replace(connection, made.values())
        note = _text(Sealing(new.key_id, new.encrypts))
        connection.execute(_NOTE + "UPDATE SET value = excluded.value", (note,))
        count = sum(_count(connection, table.name) for table in ALL)
    database.scrub()  # of what may have been written in the clear
    return count


def _seal_first(rows: Rows, connection: Connection) -> None:
    """Rows that were written before there were seals."""
    if _count(connection, "heads"):
        raise _altered(rows.database)  # it was sealed, and what said so is gone
    if rows.seals.keyed and _is_written(rows.database):
        raise ConfigurationError(f"{rows.database.name} holds rows without seals", help=_UNSEALED)

    def unsealed(table: Table, row: Any) -> Row:
        if row["seal"]:
            raise _altered(rows.database)
        return {name: row[name] for name in table.columns}

    rows.heads.replace(connection, _rewrite(connection, unsealed, rows).values())


def _rewrite(connection: Connection, opened: Callable[[Table, Any], Row], rows: Rows) -> dict[tuple[str, str], Head]:
    """Every row, sealed anew; the heads they have now, by scope and owner."""
    heads: dict[tuple[str, str], Head] = {}
    for table in ALL:
        for row in chain.from_iterable(rows.batches(table)):
            new = rows.stored(table, opened(table, row))
            put(connection, table, new)
            if table.scope:
                name = (table.scope, new[table.owner])
                heads.setdefault(name, Head(":".join(name))).add(1, int(new["seal"], 16))
    return heads


def _is_written(database: Database) -> bool:
    with database.connection() as connection:
        return any(_count(connection, table.name) for table in ALL)


def _count(connection: Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) AS n FROM {table}").fetchone()["n"])  # noqa: S608  # names of ours


def _text(value: Sealing) -> str:
    return json.dumps(value._asdict())


def _disagreement(database: Database, held: Sealing, configured: Sealing) -> ConfigurationError:
    if not configured.key:
        return ConfigurationError(f"{database.name} is sealed with a key", help="Set ASSAY_STORAGE_KEY.")
    if not held.key:
        return ConfigurationError(
            f"{database.name} is not sealed with a key yet",
            help=f"{_SEAL}, or unset ASSAY_STORAGE_KEY. If it was sealed with a key before, somebody has altered it.",
        )
    if held.key != configured.key:
        return ConfigurationError(
            f"{database.name} is sealed with another key",
            help=f"Set ASSAY_STORAGE_KEY to the key it was sealed with. To change it: {_SEAL.lower()}.",
        )
    state = "encrypted" if held.encrypt else "not encrypted"
    return ConfigurationError(
        f"{database.name} is {state}, and persistence.encrypt says otherwise", help=f"{_SEAL}, or change the setting."
    )


def _altered(database: Database) -> IntegrityError:
    return IntegrityError(
        f"{database.name}: row meta sealing is missing, or not what was written", help=ALTERED, table="meta"
    )
