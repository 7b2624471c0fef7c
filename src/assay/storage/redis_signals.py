"""News over Redis or Valkey: publish and subscribe."""

from collections.abc import AsyncGenerator

from assay.storage.redis_link import PREFIX, RedisLink
from assay.storage.signals import ANSWER_SECONDS, CHANNEL, QUIET, SharedSignals

_CHANNEL = f"{PREFIX}{CHANNEL}"


class RedisSignals(SharedSignals):
    """A ports.Signals."""

    def __init__(self, link: RedisLink) -> None:
        super().__init__(link)
        self._server = link

    async def _tell(self, message: str) -> None:
        await self._server.use("news", lambda client: client.publish(_CHANNEL, message))

    async def _heard(self) -> AsyncGenerator[str]:
        async with self._server.client.pubsub() as channel:
            await channel.subscribe(_CHANNEL)
            while True:
                heard = await channel.get_message(timeout=QUIET)
                if heard is None:  # silence, or a server that is gone without a word
                    await channel.ping()
                    heard = await channel.get_message(timeout=ANSWER_SECONDS)
                    if heard is None:
                        raise TimeoutError
                if heard["type"] == "subscribe":
                    self._connected()
                elif heard["type"] == "message":
                    yield heard["data"].decode(errors="replace")  # others may use the server, too
