"""The base of all frozen records, and the time they are made at."""

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict


def utc_now() -> datetime:
    return datetime.now(UTC)


class Record(BaseModel):
    """Frozen, strict about unknown fields, and cheap to turn into plain data for the state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def plain(self) -> dict[str, object]:
        """JSON-ready dictionary: the only form in which a record enters the graph's state."""
        return self.model_dump(mode="json")
