"""News over PostgreSQL: one connection listens, and one message at a time is sent over the pool.

LISTEN needs a connection that stays: not one of a PgBouncer that hands connections out for a transaction.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from assay.storage.postgres_link import PostgresLink
from assay.storage.signals import ANSWER_SECONDS, CHANNEL, QUIET, SharedSignals

if TYPE_CHECKING:
    from psycopg import AsyncConnection


class PostgresSignals(SharedSignals):
    """A ports.Signals."""

    def __init__(self, link: PostgresLink) -> None:
        super().__init__(link)
        self._server = link

    async def _tell(self, message: str) -> None:
        async def notify(connection: "AsyncConnection[Any]") -> None:
            await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, message))

        await self._server.use("news", notify)

    async def _heard(self) -> AsyncGenerator[str]:
        async with await self._server.session() as connection:
            await connection.execute(f"LISTEN {CHANNEL}".encode())
            self._connected()
            while True:
                async for heard in connection.notifies(timeout=QUIET):
                    yield heard.payload
                async with asyncio.timeout(ANSWER_SECONDS):
                    await connection.execute(b"")
