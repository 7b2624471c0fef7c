"""A company, and where a text speaks of one."""

from assay.model.record import Record


class Company(Record):
    cik: int  # its number at the SEC
    name: str  # as registered: "Apple Inc."
    short: str  # what people call it: "Apple"
    tickers: tuple[str, ...] = ()


class Mention(Record):
    """A stretch of a text that stands for a company."""

    text: str
    start: int
    end: int
    company: Company
