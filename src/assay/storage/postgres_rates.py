"""Rates in the database: one row a bucket, by the database's clock."""

from typing import TYPE_CHECKING, Any

from assay.ports import Bucket, Taken
from assay.storage.postgres_link import PostgresLink
from assay.storage.rates import SharedRates, outcome

if TYPE_CHECKING:
    from psycopg import AsyncConnection

# The row is locked before its level is looked at, and the clock is read after that: who waited for it sees what was
# taken meanwhile. A clock that is set back fills nothing, and counts from there.
_TAKE = """
INSERT INTO rates AS kept (name, level, at, taken) VALUES (%(name)s, %(size)s - 1, clock_timestamp(), TRUE)
ON CONFLICT (name) DO UPDATE SET (level, taken, at) = (
    SELECT CASE WHEN filled >= 1 THEN filled - 1 ELSE filled END, filled >= 1, clock_timestamp()
    FROM (SELECT least(
        %(size)s,
        kept.level + %(per_second)s * greatest(0, extract(epoch FROM clock_timestamp() - kept.at)::float8)
    ) AS filled) AS now
)
RETURNING taken, level
"""


class PostgresRates(SharedRates):
    """A ports.Rates."""

    def __init__(self, link: PostgresLink) -> None:
        super().__init__()
        self._link = link

    async def _shared(self, name: str, bucket: Bucket) -> Taken | None:
        values = {"name": name, "size": float(bucket.size), "per_second": float(bucket.per_second)}

        async def ask(connection: "AsyncConnection[Any]") -> Taken:
            [(taken, left)] = await (await connection.execute(_TAKE, values)).fetchall()
            return outcome(taken, left, bucket)

        return await self._link.use("rates", ask)
