"""What a cell of a table says: a figure, negative in brackets, per cent, a dash for nothing, or words; and how such
figures are written."""

import math
import re
from typing import NamedTuple

_FOOTNOTE = re.compile(r"(?<=[\d%)])\s*(?:\((?:\d{1,2}|[a-z])\)|\[(?:\d{1,2}|[a-z])\]|[*†‡]+)+$", re.IGNORECASE)
_FIGURE = re.compile(
    r"(?P<lead>[-−\u2013]?\s*(?:US|U\.S\.|A|C|S|HK|NZ)?\s*[$€£¥]?\s*(?P<open>\()?\s*[-−]?\s*[$€£¥]?\s*)"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)\s*(?P<percent>%)?\s*(?P<close>\))?\s*"
    r"(?P<more>%)?\s*(?P<unit>x|times|pts?\.?|bps|pp|years?|months?|days|million|billion|thousand|[mk])?\s*",
    re.IGNORECASE,
)
_DASH = re.compile(r"[$€£¥]?\s*\(?\s*[-−\u2013—](?:\s*[-−\u2013—])*\s*\)?\s*%?|nil", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_SPACED_YEAR = re.compile(r"\b([12]) (\d) (\d) (\d)\b")
SCALES = {"": 1.0, "percent": 0.01, "thousand": 1e3, "million": 1e6, "billion": 1e9}
_SCALE_SIGNS = {"k": "thousand", "m": "million"}


class CellValue(NamedTuple):
    """`scale` is one that the cell names itself."""

    number: float
    is_percent: bool = False
    is_dash: bool = False
    scale: str = ""


def parse_cell(text: str) -> CellValue | None:
    """The figure of a cell; None for words, for nothing, and for a year, which names a period."""
    plain = " ".join(text.split())
    if _YEAR.fullmatch(_FOOTNOTE.sub("", plain)):
        return None
    if _DASH.fullmatch(plain):
        return CellValue(0.0, is_percent="%" in plain, is_dash=True)
    found = _FIGURE.fullmatch(_FOOTNOTE.sub("", plain)) if plain else None
    if found is None:
        return None
    number = float(found["digits"].replace(",", ""))
    is_negative = bool(found["open"]) or any(sign in found["lead"] for sign in "-−\u2013")
    unit = (found["unit"] or "").lower()
    scale = _SCALE_SIGNS.get(unit, unit)
    return CellValue(
        -number if is_negative and number else number,
        is_percent=bool(found["percent"] or found["more"]),
        scale=scale if scale in SCALES else "",
    )


def is_year(text: str) -> bool:
    return _YEAR.fullmatch(text.strip()) is not None


def tidy(text: str) -> str:
    """A cell in one line; "2 0 1 8" is a year that was set widely."""
    return _SPACED_YEAR.sub(r"\1\2\3\4", " ".join(text.split()))


def drop_footnotes(text: str) -> str:
    """The text of a label without the marks of its notes."""
    return re.sub(r"\s*(?:\((?:\d{1,2}|[a-z])\)|\[(?:\d{1,2}|[a-z])\]|[*†‡]+)\s*(?=$|:)", "", text).strip()


def write_number(number: float) -> str:
    """As people write it: 1,496.5; no more than two decimals, and more of what is smaller than that."""
    if not math.isfinite(number):
        return "n/a"
    rounded = round(number, 2)
    if not rounded and number:
        return f"{number:.2g}"
    return f"{rounded:,.2f}".rstrip("0").rstrip(".").replace("-", "−")


def write_scaled(number: float, scale: str) -> str:
    """A figure with its scale in words."""
    text = write_number(number)
    return f"{text}%" if scale == "percent" else f"{text} {scale}".strip()
