"""Figures of a text: numbers with unit and magnitude, money, percentages, dates, ranges, uncertainties.

Every pattern is anchored on a character it must consume and has no
nested repetition, so a hostile text costs no more than an ordinary one of the same length (1 MB of digits, months
or number words: see the tests).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Literal, NamedTuple

from openassay.text.words import spell_hyphens

# Numbers in words: twenty-five, three hundred and six thousand, two thirds.

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBER_WORDS = (
    {word: value for value, word in enumerate(_SMALL)}
    | {word: 10 * value for value, word in enumerate(_TENS, 2)}
    | {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
)
_WORD = "|".join(sorted(NUMBER_WORDS, key=len, reverse=True))
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
FRACTIONS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}

# One alternative of the pattern for a figure, in `quantities`.
WORD_FORM = (
    rf"(?P<word>\b(?:(?:{_WORD}|half)\b|"
    rf"(?:{'|'.join(ORDINALS[2:])})s?\b|(?:[Aa]\s(?:third|quarter|fifth|tenth)\sof|(?<=by\s)a\s(?:third|quarter|fifth|tenth))\b))"
)
_NEXT_WORD = re.compile(rf"(?:[ -]|\sand\s)({_WORD})\b", re.I)
AND_A_HALF = re.compile(r"\sand\sa\shalf\b")
_OF_PARTS = re.compile(r"[ -](halves|half|third|quarter|fifth|tenth)s?\b")
_MOST_WORDS = 12  # longer runs of number words are lists or noise


def read_number_words(text: str, match: re.Match[str]) -> tuple[list[str], int]:
    """The run of words that make one number, and where it ends."""
    words, end = [match.group().lower()], match.end()
    while len(words) < _MOST_WORDS and (more := _NEXT_WORD.match(text, end)):
        word = more[1].lower()
        if word not in NUMBER_WORDS:  # re.I also matches "ſix"
            break
        before, value = NUMBER_WORDS[words[-1]], NUMBER_WORDS[word]
        # "two hundred" is one number, "two, three" is not.
        if more.group().startswith(" and"):
            continues = before in (100, 1000, 10**6) and value < 100
        else:
            adds = before >= 100 or (before in range(20, 100, 10) and 0 < value < 10)
            continues = adds or value >= 100 or word == "dozen"
        if not continues:
            break
        words.append(word)
        end = more.end()
    return words, end


def sum_number_words(words: list[str]) -> Decimal:
    """What a run of number words comes to."""
    total, current = Decimal(0), Decimal(0)
    for word in words:
        value = NUMBER_WORDS[word]
        if word == "dozen" or value == 100:
            current = max(current, Decimal(1)) * value
        elif value >= 1000:
            total, current = total + max(current, Decimal(1)) * value, Decimal(0)
        else:
            current += value
    return total + current


def read_fraction(text: str, words: list[str], end: int) -> tuple[Decimal, int] | None:
    """The fraction that "thirds" makes of "two", and where it ends; "two quarters" not "of" something are of a year."""
    if words[0] in ("one", "two", "three", "four") and len(words) == 1 and (part := _OF_PARTS.match(text, end)):
        parts = part[1]
        calendar = parts == "quarter" and not text.startswith(" of ", part.end())
        if parts in FRACTIONS and not calendar:
            return Decimal(NUMBER_WORDS[words[0]]) / FRACTIONS[parts], part.end()
    return None


# Dates and times as texts spell them: 29 July 2023, Q3 2023, fiscal 2024, the 1990s, 5 p.m.


class PartialDate(NamedTuple):
    """A date as far as it is told; `part` is a quarter (Q3), a half (H1) or, for a fiscal year, FY."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    part: str = ""
    fiscal: bool = False


_MONTHS = "January February March April May June July August September October November December".split()
_SHORT = {name[:3]: number for number, name in enumerate(_MONTHS, 1)} | {"Sept": 9}
_MONTH = "(?:" + "|".join([*_MONTHS, *map(str.upper, _MONTHS), *(rf"{s}\b\.?" for s in _SHORT if s != "May")]) + ")"
_DAY = r"[0-3]?\d(?:st|nd|rd|th)?(?![\d.,]\d)(?!\d)"
_YEAR = r"\d{4}(?!\d)"
_TO = r"\s?[-–—]\s?"
_BEFORE = r"(?<![\w.])"

# "The 9th of April" is a day; "PEP 1 of June 2000" is not.
_OF = r"(?:(?<=[a-z]\s)of\s)?"
DAY_OF_MONTH = rf"{_DAY}(?:{_TO}{_DAY})?\s{_OF}{_MONTH}"

# Alternatives of the pattern for a figure, in `quantities`.
DATE_FORMS = "|".join(
    (
        rf"(?P<iso>{_BEFORE}(?P<iy>\d{{4}})-(?P<im>[01]\d)-(?P<id>[0-3]\d)(?!\d))",
        rf"(?P<dmy>{_BEFORE}(?P<d1>{_DAY})(?:{_TO}(?P<d2>{_DAY}))?\s{_OF}(?P<m1>{_MONTH})"
        rf"(?:,?\s(?P<y1>{_YEAR}))?)",
        rf"(?P<mdy>\b(?P<m2>{_MONTH})\s(?P<d3>{_DAY})(?:{_TO}(?P<d4>{_DAY}))?(?:,?\s(?P<y2>{_YEAR}))?)",
        rf"(?P<my>\b(?P<m3>{_MONTH}),?\s(?:of\s)?(?P<y3>{_YEAR}))",
        rf"(?P<month>\b(?P<m4>{'|'.join(_MONTHS)})\b)",
        r"(?P<part>\b(?:(?P<p1>[QH][1-4])|(?P<p2>[Ff]irst|[Ss]econd|[Tt]hird|[Ff]ourth)[ -]"
        r"(?P<f0>fiscal )?(?P<p3>quarter|half)\b(?!-)(?!\sa\s))"
        r"(?:,?\s(?:of\s)?(?:the\s)?(?P<f1>FY\s?|(?:the\s)?fiscal\s(?:year\s)?)?(?P<y4>(?:19|20)\d\d(?!\d))|"
        r"\s?FY(?P<y5>\d\d)\b)?)",
        rf"(?P<yearpart>{_BEFORE}(?P<y6>(?:19|20)\d\d)\s?(?P<p4>[QH][1-4])\b)",
        r"(?P<fiscal>\b(?:[Ff]iscal(?:\s[Yy]ear)?\s|FY\s?['’]?)(?P<y7>\d{4}|\d\d)(?!\d))",
        rf"(?P<decade>{_BEFORE}(?P<y8>\d{{3}}0)['’]?s\b)",
        rf"(?P<years>{_BEFORE}(?P<y9>(?:19|20)\d\d)[-–/](?P<y10>(?:19|20)\d\d|\d\d)(?![\d%.,]\d|\d|%))",
        r"(?P<clock>(?<![\w.:])[0-2]?\d(?:[:.][0-5]\d(?::[0-5]\d)?)?\s?[ap]\.?m\b\.?|(?<![\w.:])\d{1,2}:\d\d(?::\d\d)?(?!\d))",
    )
)


def to_24_hour(text: str) -> str:
    """24-hour spelling of a time; anything else as it stands."""
    match = re.fullmatch(r"(\d{1,2})(?:[:.](\d\d))?(:\d\d)?\s?([ap])\.?m\.?", text, re.I)
    if not match:
        return text
    hour = int(match[1]) % 12 + (12 if match[4].lower() == "p" else 0)
    return f"{hour:02}:{match[2] or '00'}{match[3] or ''}"


def parse_dates(match: re.Match[str]) -> Iterator[PartialDate]:
    """The dates of one match of DATE_FORMS: two for "3-5 May" and for "2019-20"."""

    def number(name: str) -> int | None:
        return int(re.sub(r"\D", "", match[name])) if match[name] else None

    if match["iso"] is not None:
        yield PartialDate(number("iy"), number("im"), number("id"))
    elif match["dmy"] is not None or match["mdy"] is not None:
        year, month = number("y1") or number("y2"), _month_number(match["m1"] or match["m2"])
        for day in ("d1", "d2", "d3", "d4"):
            if match[day]:
                yield PartialDate(year, month, number(day))
    elif match["my"] is not None or match["month"] is not None:
        yield PartialDate(number("y3"), _month_number(match["m3"] or match["m4"]))
    elif match["part"] is not None or match["yearpart"] is not None:
        year = number("y4") or number("y5") or number("y6")
        part = match["p1"] or match["p4"]
        if not part:
            part = f"{'Q' if match['p3'] == 'quarter' else 'H'}{ORDINALS.index(match['p2'].lower()) + 1}"
        fiscal = bool(match["f0"] or match["f1"] or match["y5"])
        yield PartialDate(_full_year(year) if year is not None else None, part=part, fiscal=fiscal)
    elif match["fiscal"] is not None:
        yield PartialDate(_full_year(number("y7") or 0), fiscal=True)
    else:
        first = number("y9") or 0
        last = number("y10") or 0
        yield PartialDate(first)
        yield PartialDate(last if last > 99 else first // 100 * 100 + last)


def _full_year(year: int) -> int:
    return 2000 + year if year < 100 else year


def _month_number(name: str) -> int:
    return _SHORT[name[:3].capitalize()]


# What a figure counts: magnitudes, percent, currencies and units, with their spellings.


def _parse_table(pairs: str) -> dict[str, str]:
    """a=b c=d as a mapping: a table of eighty units should not take eighty lines."""
    return dict(pair.split("=") for pair in pairs.split())


CURRENCY = _parse_table(
    "$=USD US$=USD A$=AUD AU$=AUD C$=CAD CA$=CAD HK$=HKD NZ$=NZD S$=SGD R$=BRL €=EUR £=GBP ¥=JPY ₹=INR ₩=KRW "
    "₽=RUB Rs=INR"
)
CURRENCY |= {code: code for code in "USD EUR GBP JPY CHF CNY INR AUD CAD HKD NZD SGD BRL KRW RUB SEK NOK DKK".split()}
_MONEY_WORDS = _parse_table(
    "dollar=USD euro=EUR pound=pound yen=JPY yuan=CNY renminbi=CNY rupee=INR franc=CHF rouble=RUB ruble=RUB "
    "won=KRW cent=cent"
)
MARK = "|".join(re.escape(mark) for mark in sorted(CURRENCY, key=len, reverse=True))

_SCALES = {
    name: int(power)
    for name, power in _parse_table(
        "hundred=2 thousand=3 million=6 billion=9 trillion=12 k=3 mn=6 mln=6 mm=6 m=6 bn=9 bln=9 b=9 tn=12 trn=12 t=12"
    ).items()
}

_UNIT_WORDS = _parse_table(
    "kilometre=km kilometer=km metre=m meter=m centimetre=cm centimeter=cm millimetre=mm millimeter=mm "
    "nanometre=nm nanometer=nm mile=mi foot=ft feet=ft inch=inch inches=inch yard=yd kilogram=kg "
    "kilogramme=kg gram=g gramme=g milligram=mg microgram=µg tonne=t ton=t ounce=oz lbs=lb litre=L liter=L "
    "millilitre=mL milliliter=mL gallon=gal barrel=barrel hectare=ha acre=acre second=s sec=s minute=min "
    "hour=h hr=h day=day week=week month=month year=year yr=year decade=decade century=century "
    "centuries=century megaparsec=Mpc parsec=pc watt=W kilowatt=kW megawatt=MW gigawatt=GW kilowatt-hour=kWh "
    "megawatt-hour=MWh joule=J volt=V hertz=Hz pascal=Pa byte=byte kilobyte=KB megabyte=MB gigabyte=GB "
    "terabyte=TB degree=° degrees=° celsius=°C fahrenheit=°F kelvin=K time=times fold=times x=times kph=km/h "
    "kmh=km/h mph=mi/h"
)
_SYMBOLS = set(
    "km m cm mm nm µm μm kg g mg µg μg t s ms ns h min Wh kWh MWh GWh TWh W kW MW GW TW V kV mAh Ah Hz "
    "kHz MHz GHz KB kB MB GB TB PB Mbps Gbps °C °F °K ° K eV keV MeV GeV TeV J kJ MJ N Pa kPa MPa GPa "
    "hPa bar psi L l mL ml ha pc kpc Mpc ly mol ppm ppb dB ft lb lbs oz mi yd rpm km² m² cm² km2 m2 m³ "
    "m3 cm³ kcal cal".split()
)
_SAME_SYMBOL = _parse_table("l=L ml=mL lbs=lb kB=KB μm=µm μg=µg km2=km² m2=m² m3=m³")
_TWO_WORDS = {
    name.replace("_", " "): unit
    for name, unit in _parse_table(
        "degrees_celsius=°C degree_celsius=°C degrees_fahrenheit=°F light_years=ly light-years=ly "
        "square_kilometres=km² square_kilometers=km² square_miles=mi² square_metres=m² square_meters=m² "
        "square_feet=ft² cubic_metres=m³ cubic_meters=m³ metric_tons=t metric_tonnes=t kilowatt_hours=kWh "
        "megawatt_hours=MWh us_dollars=USD u.s._dollars=USD australian_dollars=AUD canadian_dollars=CAD "
        "swiss_francs=CHF"
    ).items()
}
MAGNITUDE_WORD = re.compile(
    r"[ \u00a0\u202f-]?([Hh]undred|[Tt]housand|[Mm]illion|[Bb]illion|[Tt]rillion|MILLION|BILLION)s?\b"
)
_MAGNITUDE_SIGN = re.compile(r"(k|K|M|m|bn|BN|Bn|B|b|mn|mln|mm|MM|tn|trn|T|t)(?!\w)|[ \u00a0](bn|mn|mln|bln|tn|trn)\b")
PERCENT = re.compile(r"\s?(?:%|％)|[ \u00a0-](?:per\s?cent|percent|pct)\b", re.I)
POINTS = re.compile(r"(?:\s?%[ -]?|[ -](?:per\s?cent|percentage|percent)[ -])(?:points?|pts?)\b|\s?pp\b", re.I)
BASIS = re.compile(r"[ -]basis[ -]points?\b|\s?bps?\b", re.I)
_UNIT = re.compile(r"([ \u00a0\u202f-]?)([°µμ]?[A-Za-z]{1,14}[²³]?|°|[€£$]|m[23]\b)(?!\w)")
_NEXT_UNIT = re.compile(r"(?:/|·| per | an | a )([°µμ]?[A-Za-z]{1,14}[²³]?)(?!\w)")
_POWER = re.compile(r"[ ·\u00a0]?([A-Za-z]{1,3})(?:\^?[-−]1|⁻¹)(?!\w)")
_TWO = re.compile(r"[ \u00a0-]([A-Za-z.]{2,10}[ -][A-Za-z]{4,10})\b")


def scale_at(text: str, end: int, currency: str) -> tuple[Decimal, int]:
    """The factor of the magnitude that follows a number ending at `end`, and where that magnitude ends."""
    scale = Decimal(1)
    if match := MAGNITUDE_WORD.match(text, end):
        scale, end = Decimal(10) ** _SCALES[match[1].lower()], match.end()
        if second := MAGNITUDE_WORD.match(text, end):
            return scale * Decimal(10) ** _SCALES[second[1].lower()], second.end()
        return scale, end
    match = _MAGNITUDE_SIGN.match(text, end)
    if not match:
        return scale, end
    sign = match[1] or match[2]
    # "5m", "5mm", "5t" and "5T" are metres, millimetres, tonnes, teslas unless they count money.
    if not currency and sign in ("m", "mm", "t", "T", "b", "MM"):
        return scale, end
    return Decimal(10) ** _SCALES[sign.lower()], match.end()


def unit_at(text: str, end: int) -> tuple[str, int]:
    """The unit that follows a number ending at `end`, in its one spelling, and where it ends; "" if none does."""
    if (match := _TWO.match(text, end)) and (unit := _TWO_WORDS.get(match[1].lower())):
        return unit, match.end()
    match = _UNIT.match(text, end)
    if not match or not (unit := _unit_for_word(match[2])) or (match[1] == "-" and len(match[2]) == 1):
        return "", end
    end = match.end()
    for _ in range(3):
        if (match := _NEXT_UNIT.match(text, end)) and (part := _unit_for_word(match[1])):
            unit, end = f"{unit}/{part}", match.end()
        elif (match := _POWER.match(text, end)) and match[1] in _SYMBOLS:
            unit, end = f"{unit}/{match[1]}", match.end()
    return unit, end


def _unit_for_word(word: str) -> str:
    if word in _SYMBOLS:
        return _SAME_SYMBOL.get(word, word)
    if word in CURRENCY:
        return CURRENCY[word]
    lower = word.lower()
    for form in (lower, lower.removesuffix("s"), lower.removesuffix("es")):
        if unit := _UNIT_WORDS.get(form) or _MONEY_WORDS.get(form):
            return unit
    return ""


QuantityKind = Literal[
    "number",
    "percent",
    "points",  # percentage points; basis points are brought to them
    "money",
    "fraction",  # half, two thirds
    "ordinal",
    "year",
    "decade",
    "date",
    "time",
    "label",  # versions, scores, numbers too long to be figures: compared as they are printed
    "uncertainty",
]


@dataclass(frozen=True, slots=True)
class Quantity:
    value: Decimal
    unit: str
    kind: QuantityKind
    start: int
    end: int
    approximate: bool = False
    ranged: bool = False  # one end of "2-3%", so not a figure on its own
    step: Decimal = Decimal(1)  # what the last digit counts: 0.1 in 67.4, 100 million in $6.4 billion
    when: PartialDate | None = None
    label: str = ""


_DASHES = r"\-−–"
_CITATION = re.compile(r"\[S?\d{1,4}(?:\s?[,–-]\s?S?\d{1,4}){0,20}\]")
_LIST_MARK = re.compile(r"^[ \t]*\(?(?:\d{1,2}[.)]|[-*•])[ \t]", re.M)
_SPACE = "[ \u00a0\u202f\u2009]"

_FIGURE = re.compile(
    "|".join(
        (
            DATE_FORMS,
            r"(?P<slash>(?<![\w./])\d{1,4}/\d{1,4}(?:/\d{2,4})?(?![\d/]|,\d{3}))",
            rf"(?P<number>(?:(?<![\w./])|(?<=\d/)(?=\d{{1,3}},\d{{3}}))(?:(?P<sign>[+{_DASHES}])|(?P<minus>minus\s))?(?:(?P<mark>{MARK})\s?)?"
            rf"(?P<inner>\((?!{DAY_OF_MONTH})|[−-])?(?P<digits>\d{{1,3}}(?:{_SPACE}\d{{3}}(?!\d))+(?:[.,]\d+)?|\d+(?:[.,]\d+)*|\.\d+))",
            WORD_FORM,
        )
    ),
)
_WORD_CAPITALS = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)}|half)\b", re.I)
_ORDINAL_END = re.compile(r"(?:st|nd|rd|th)\b")
_APPROXIMATE = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|circa|ca\.|c\.|some|close to|"
    r"just over|just under|an estimated|estimated|or so)\s(?:the\s|an?\s)?|[~≈∼]\s?)$",
    re.I,
)
_RANGE = re.compile(r"\s?[-–—]\s?|\s(?:to|or)\s")
_ERROR = re.compile(r"\s?(?:±|\+/[-−]|\+-|plus or minus)\s?")
_HALF_A = re.compile(r"\sa\s(dozen|million|billion|trillion)\b")
_HALF_OF = re.compile(r"\s(?:of|the|its|their|his|her|as)\b")
_FARTHEST = 100  # times what may be a year; a range is not so wide
_REMEMBERED = 4096  # characters; longer texts are not asked about again and again
_LONGEST = 24  # characters; what is longer is an identifier, and Decimal would round it


def find_quantities(text: str) -> tuple[Quantity, ...]:
    """All figures of the text in order; citation marks and list numbering are not figures."""
    return (_find_in_text if len(text) <= _REMEMBERED else _find_in_text.__wrapped__)(text)


# A sentence is looked at as a finding, a claim, a witness and a part of the report: five times and more in a run.
@lru_cache(maxsize=4096)
def _find_in_text(text: str) -> tuple[Quantity, ...]:
    clean = _LIST_MARK.sub(_blank_out, _CITATION.sub(_blank_out, spell_hyphens(text)))
    lowered = _WORD_CAPITALS.sub(lambda match: match.group().lower(), clean)
    figures: list[_QuantityWithScale] = []
    position = 0
    while match := _FIGURE.search(lowered, position):
        found = list(_read_match(clean, match))
        figures += found
        position = max([match.end(), *(item.quantity.end for item in found)])
    # Ends of ranges share unit and magnitude; what follows ± is an uncertainty.
    items = [item.quantity for item in figures]
    for index in range(len(items) - 1):
        first, second = items[index], items[index + 1]
        gap = clean[first.end : second.start]
        if len(gap) > 16 or "date" in (first.kind, second.kind):
            continue
        if _ERROR.fullmatch(gap):
            items[index] = _complete_range_start(first, second, figures[index + 1].scale)
            items[index + 1] = replace(second, kind="uncertainty")
            continue
        if gap == " and " and second.kind == "percent" and first.kind == "number":  # "7.8 and 7.4%"
            items[index] = _complete_range_start(first, second, figures[index + 1].scale)
            continue
        # "14% to $31.9 billion" is a change and a level, "in 2019 to 7 million" a date and a level, not a range.
        alike = first.kind == second.kind or (first.kind in ("number", "year", "money") and not first.label)
        alike = alike and not (first.kind == "year" and abs(second.value) > _FARTHEST * first.value)
        if alike and (_RANGE.fullmatch(gap) or (gap == " and " and _follows_word(clean, first, "between"))):
            ranged = not _follows_word(clean, first, "from") and first.kind != "year"
            items[index] = replace(_complete_range_start(first, second, figures[index + 1].scale), ranged=ranged)
            if first.kind == "money" and second.kind == "number" and not second.unit:
                second = replace(second, kind="money", unit=first.unit)
            items[index + 1] = replace(second, ranged=ranged, approximate=first.approximate)
    return tuple(items)


def _blank_out(match: re.Match[str]) -> str:
    return " " * len(match.group())


class _QuantityWithScale(NamedTuple):
    quantity: Quantity
    scale: Decimal  # the magnitude word's factor, which the other end of a range may share


def _read_match(text: str, match: re.Match[str]) -> Iterator[_QuantityWithScale]:
    if match["number"] is not None:
        yield from _read_number(text, match)
    elif match["word"] is not None:
        yield from _read_words(text, match)
    elif match["clock"] is not None or match["slash"] is not None:
        kind: QuantityKind = "time" if match["clock"] is not None else "label"
        yield _simple_quantity(match, Decimal(0), kind, label=to_24_hour(match.group()))
    elif match["decade"] is not None:
        yield _simple_quantity(match, Decimal(match["y8"]), "decade")
    else:
        for when in parse_dates(match):
            value = Decimal(when.year or 0)
            kind = "year" if when == PartialDate(year=when.year) else "date"
            yield _simple_quantity(match, value, kind, when=when)


def _simple_quantity(
    match: re.Match[str], value: Decimal, kind: QuantityKind, when: PartialDate | None = None, label: str = ""
) -> _QuantityWithScale:
    return _QuantityWithScale(Quantity(value, "", kind, match.start(), match.end(), when=when, label=label), Decimal(1))


def _read_number(text: str, match: re.Match[str]) -> Iterator[_QuantityWithScale]:
    digits, start, end, first = match["digits"], match.start(), match.end(), match.start("digits")
    # The 19 of COVID-19 belongs to a name; the 2021 of mid-2021 does not.
    if first >= 2 and text[first - 1] == "-" and text[first - 2].isalpha():
        word = re.search(r"\w{1,20}-$", text[max(0, first - 21) : first])
        if word and any(letter.isupper() for letter in word.group()):
            return
    if len(digits) > _LONGEST or (value := _parse_decimal(digits, text, end)) is None:
        # A list like 1,5 is two numbers; a version like 1.2.3 is one label.
        if "," in digits and "." not in digits and len(digits) <= _LONGEST:
            for piece in re.finditer(r"\d+", digits):
                quantity = Quantity(Decimal(piece.group()), "", "number", first + piece.start(), first + piece.end())
                yield _QuantityWithScale(quantity, Decimal(1))
            return
        quantity = Quantity(Decimal(0), "", "label", first, first + len(digits), label=digits)
        yield _QuantityWithScale(quantity, Decimal(1))
        return
    if _is_sign(text, match):
        value = -value
    if match["inner"] == "(":
        closed = text[end : end + 1] == ")"
        accounting = closed and (match["mark"] or PERCENT.match(text, end + 1))
        start = start if match["mark"] or accounting else first
        end, value = (end + 1, -value) if accounting else (end, value)
    elif match["sign"] and not _is_sign(text, match) and match["sign"] != "+":
        start = match.start("mark") if match["mark"] else first
    yield _read_suffix(text, value, start, end, CURRENCY.get(match["mark"] or "", ""))


def _normalize_decimal(value: Decimal) -> Decimal:
    """Equal values print alike: $6.4 billion and $6,400 million are both 6400000000."""
    return Decimal(format(value.normalize(), "f"))


def _is_sign(text: str, match: re.Match[str]) -> bool:
    if match["minus"] or match["inner"] in ("-", "−"):
        return True
    sign = match["sign"]
    if not sign or sign == "+":
        return False
    # "5 -7", "5 –7" and "5%-7%" are ranges
    before = text[max(0, match.start("sign") - 2) : match.start("sign")].rstrip()[-1:]
    return not before.isdigit() and before != "%"


def _parse_decimal(digits: str, text: str, end: int) -> Decimal | None:
    digits = re.sub(_SPACE, "", digits)
    if re.fullmatch(r"\d*\.?\d+", digits) or re.fullmatch(r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?", digits):
        return Decimal(digits.replace(",", ""))
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d{1,2}|\d{1,3}(?:\.\d{3}){2,}", digits):
        return Decimal(digits.replace(".", "").replace(",", "."))
    # A decimal comma is one only before something that makes a list impossible: 1,5 million, 3,2 %.
    if re.fullmatch(r"\d+,\d{1,2}", digits) and (MAGNITUDE_WORD.match(text, end) or PERCENT.match(text, end)):
        return Decimal(digits.replace(",", "."))
    return None


def _read_suffix(text: str, value: Decimal, start: int, end: int, currency: str) -> _QuantityWithScale:
    scale, end = scale_at(text, end, currency)
    kind: QuantityKind = "money" if currency else "number"
    unit = currency
    if match := BASIS.match(text, end):
        kind, end, unit, scale = "points", match.end(), "points", scale / 100
    elif match := POINTS.match(text, end):
        kind, end, unit = "points", match.end(), "points"
    elif match := PERCENT.match(text, end):
        kind, end, unit = "percent", match.end(), "%"
    elif not currency and (match := _ORDINAL_END.match(text, end)):
        kind, end = "ordinal", match.end()
    elif not currency:
        unit, end = unit_at(text, end)
        kind = "money" if unit in CURRENCY.values() or unit == "cent" else "number"
    # What the last digit that counts stands for: 100 in 4,300 and 0.1 in 5.0.
    exponent, digits = value.as_tuple().exponent, str(abs(value))
    if not isinstance(exponent, int) or exponent >= 0:
        exponent = len(digits) - len(digits.rstrip("0")) if value else 0
    step, value = Decimal(1).scaleb(exponent) * scale, _normalize_decimal(value * scale)
    if kind == "number" and not unit and scale == 1 and re.fullmatch(r"\d{4}", text[start:end]):
        kind = "year" if 1900 <= value <= 2100 else "number"
    when = PartialDate(int(value)) if kind == "year" else None
    return _QuantityWithScale(
        Quantity(value, unit, kind, start, end, _is_approximate(text, start), step=step, when=when), scale
    )


def _read_words(text: str, match: re.Match[str]) -> Iterator[_QuantityWithScale]:
    word = match.group().lower()
    if word.startswith("a "):
        part = Decimal(1) / FRACTIONS[word.split()[1]]
        yield _make_fraction(text, part, match.start(), match.start() + len(word.removesuffix(" of")))
    elif word == "half":
        if more := _HALF_A.match(text, match.end()):
            yield _read_suffix(text, Decimal(NUMBER_WORDS[more[1]]) / 2, match.start(), more.end(), "")
        elif _HALF_OF.match(text, match.end()):
            yield _make_fraction(text, Decimal("0.5"), match.start(), match.end())
    elif word in NUMBER_WORDS:
        # two, twenty-five, three hundred and six thousand, two and a half million, two thirds
        words, end = read_number_words(text, match)
        if fraction := read_fraction(text, words, end):
            yield _make_fraction(text, fraction[0], match.start(), fraction[1])
            return
        value = sum_number_words(words)
        if half := AND_A_HALF.match(text, end):
            value, end = value + Decimal("0.5"), half.end()
        found = _read_suffix(text, value, match.start(), end, "")
        # "one" is a pronoun more often than a figure.
        if words != ["one"] or found.quantity.end > end or half:
            yield found
    elif not word.endswith("s"):
        value = Decimal(ORDINALS.index(word) + 1)
        yield _QuantityWithScale(Quantity(value, "", "ordinal", match.start(), match.end()), Decimal(1))


def _make_fraction(text: str, part: Decimal, start: int, end: int) -> _QuantityWithScale:
    return _QuantityWithScale(Quantity(part, "", "fraction", start, end, _is_approximate(text, start)), Decimal(1))


def _is_approximate(text: str, start: int) -> bool:
    return bool(_APPROXIMATE.search(text[max(0, start - 24) : start]))


def _follows_word(text: str, quantity: Quantity, word: str) -> bool:
    before = text[max(0, quantity.start - 30) : quantity.start].lower().split()
    return word in before[-2:]


def _complete_range_start(first: Quantity, second: Quantity, scale: Decimal) -> Quantity:
    """The first end of "5-7 million", "$20-$25 million" or "2 to 3%", completed from the second."""
    same_money = second.kind == "money" and second.unit == first.unit and 0 < first.value < second.value / scale
    bare_money = first.kind == "money" and (second.kind == "number" or same_money) and abs(first.value) < 1000
    if first.kind not in ("number", "year") and not bare_money:
        return first
    if first.unit and not bare_money:
        return first
    if second.kind not in ("number", "money", "percent", "points"):
        return first
    factor = scale if abs(first.value) < abs(second.value) else Decimal(1)
    kind, unit = (first.kind, first.unit) if bare_money else (second.kind, second.unit)
    return replace(
        first,
        value=_normalize_decimal(first.value * factor),
        step=first.step * factor,
        kind=kind,
        unit=unit,
        when=None,
    )
