"""What a run has used, and what it may use."""

from pydantic import Field

from assay.model.record import Record


class Spend(Record):
    usd: float = Field(default=0.0, ge=0)
    tokens: int = Field(default=0, ge=0)
    requests: int = Field(default=0, ge=0)

    def __add__(self, other: "Spend") -> "Spend":
        return Spend(
            usd=self.usd + other.usd,
            tokens=self.tokens + other.tokens,
            requests=self.requests + other.requests,
        )
