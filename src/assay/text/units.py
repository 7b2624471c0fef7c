"""What a figure counts: magnitudes, percent, currencies and units, with their spellings."""

import re
from decimal import Decimal


def _table(pairs: str) -> dict[str, str]:
    """a=b c=d as a mapping: a table of eighty units should not take eighty lines."""
    return dict(pair.split("=") for pair in pairs.split())


CURRENCY = _table(
    "$=USD US$=USD A$=AUD AU$=AUD C$=CAD CA$=CAD HK$=HKD NZ$=NZD S$=SGD R$=BRL €=EUR £=GBP ¥=JPY ₹=INR ₩=KRW "
    "₽=RUB Rs=INR"
)
CURRENCY |= {code: code for code in "USD EUR GBP JPY CHF CNY INR AUD CAD HKD NZD SGD BRL KRW RUB SEK NOK DKK".split()}
_MONEY_WORDS = _table(
    "dollar=USD euro=EUR pound=pound yen=JPY yuan=CNY renminbi=CNY rupee=INR franc=CHF rouble=RUB ruble=RUB "
    "won=KRW cent=cent"
)
MARK = "|".join(re.escape(mark) for mark in sorted(CURRENCY, key=len, reverse=True))

_SCALES = {
    name: int(power)
    for name, power in _table(
        "hundred=2 thousand=3 million=6 billion=9 trillion=12 k=3 mn=6 mln=6 mm=6 m=6 bn=9 bln=9 b=9 tn=12 trn=12 t=12"
    ).items()
}

_UNIT_WORDS = _table(
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
_SAME_SYMBOL = _table("l=L ml=mL lbs=lb kB=KB μm=µm μg=µg km2=km² m2=m² m3=m³")
_TWO_WORDS = {
    name.replace("_", " "): unit
    for name, unit in _table(
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
    if not match or not (unit := _named(match[2])) or (match[1] == "-" and len(match[2]) == 1):
        return "", end
    end = match.end()
    for _ in range(3):
        if (match := _NEXT_UNIT.match(text, end)) and (part := _named(match[1])):
            unit, end = f"{unit}/{part}", match.end()
        elif (match := _POWER.match(text, end)) and match[1] in _SYMBOLS:
            unit, end = f"{unit}/{match[1]}", match.end()
    return unit, end


def _named(word: str) -> str:
    if word in _SYMBOLS:
        return _SAME_SYMBOL.get(word, word)
    if word in CURRENCY:
        return CURRENCY[word]
    lower = word.lower()
    for form in (lower, lower.removesuffix("s"), lower.removesuffix("es")):
        if unit := _UNIT_WORDS.get(form) or _MONEY_WORDS.get(form):
            return unit
    return ""
