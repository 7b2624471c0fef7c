"""The companies of the SEC's public list, in its order, which is nearly by market value."""

import gzip
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

UNRANKED = 1_000_000


class Row(NamedTuple):
    cik: int
    name: str
    tickers: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def listed() -> tuple[Row, ...]:
    text = gzip.decompress(files("assay.companies").joinpath("data/companies.tsv.gz").read_bytes()).decode()
    lines = (line.split("\t") for line in text.splitlines())
    return tuple(Row(int(cik), name, tuple(tickers.split())) for cik, tickers, name in lines)


@lru_cache(maxsize=1)
def _places() -> dict[int, int]:
    return {row.cik: place for place, row in enumerate(listed())}


def rank(cik: int) -> int:
    """How well known a company is, as its place in the list; 0 is the largest."""
    return _places().get(cik, UNRANKED)
