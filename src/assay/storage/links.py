"""The servers that the settings name for what processes share."""

from collections.abc import Callable

from pydantic import SecretStr

from assay.errors import ConfigurationError
from assay.storage.postgres_link import PostgresLink
from assay.storage.redis_link import RedisLink


class Links:
    """One link to each, for all that goes over it. `address` is that of the database, where it is PostgreSQL."""

    def __init__(self, redis_url: SecretStr | None, address: str | None, on_notice: Callable[[str], None]) -> None:
        self.has_redis = redis_url is not None
        self.has_postgres = address is not None
        self._redis_url = redis_url
        self._address = address
        self._on_notice = on_notice
        self._redis: RedisLink | None = None
        self._postgres: PostgresLink | None = None

    def redis(self, setting: str) -> RedisLink:
        """`setting` is what asks for it."""
        if self._redis is None:
            if self._redis_url is None:
                raise ConfigurationError(
                    f"{setting} is redis, and there is no REDIS_URL",
                    help=f"Set REDIS_URL, as redis://host:6379/0, or set {setting} to something else.",
                )
            self._redis = RedisLink(self._redis_url, self._on_notice)
        return self._redis

    def postgres(self, setting: str) -> PostgresLink:
        if self._postgres is None:
            if self._address is None:
                raise ConfigurationError(
                    f"{setting} is postgres, and the database is not PostgreSQL",
                    help=f"Set persistence.backend to postgres, or set {setting} to something else.",
                )
            self._postgres = PostgresLink(self._address, self._on_notice)
        return self._postgres

    async def close(self) -> None:
        for link in (self._redis, self._postgres):
            if link is not None:
                await link.close()
