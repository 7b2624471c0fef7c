"""Ticker symbols: as $AAPL, NASDAQ: AAPL, BRK.B, or bare capitals."""

import re
from collections.abc import Iterator

from assay.companies.words import is_word

_SYMBOL = r"[A-Za-z]{1,5}(?:[.\-/][A-Za-z]{1,2})?"
_MARKED = re.compile(
    rf"\$(?P<dollar>{_SYMBOL})(?![\w$])"
    r"|\b(?:NASDAQ|NYSE|AMEX|OTC)[A-Z]{0,4}(?:\s+[A-Z][a-z]+){0,2}\s*:\s*(?P<listed>[A-Z]{1,5}(?:[.\-/][A-Z]{1,2})?)\b",
)
_WHOLE = re.compile(rf"{_SYMBOL}|[A-Z]{{1,4}} [A-C]")
_BARE = re.compile(r"(?<![\w.&/-])[A-Z]{3,5}(?:[.\-][A-C])?(?![\w&/-]|\.\w|\s[A-Z][a-z]{3})")
# Written in capitals, and of anything but a company in most texts.
_ACRONYMS = frozenset(
    "ABC AIDS AGI API ARR ASAP ASIC ATM AWS BBC BERT BMI BTC CAGR CAPM CBS CCC CCS CDC CDN CEO CFO CIA CIO CLI "
    "CMO CNN COO COP COVID CPA CPI CPU CRISPR CRM CSR CSS CSV CTO DCF DEI DIY DNA DNS DOE DOI DOJ DRAM EBIT EMEA "
    "EPA EPS ERP ESG ETA ETC ETF ETFS EUR EVS FAQ FBI FCC FDA FED FEMA FIFA FOMC FTC FUD GAAP GAN GBP GDP GDPR "
    "GMO GMT GPS GPT GPU GPUS GUI HBM HIV HPC HR HTML HTTP IAEA ICU IDE IEA IFRS ILO IMF IOT IPCC IPO IRA IRR IRS "
    "ISO ISP IUPAC JPG JPY JSON KPI KPIS LAN LCD LED LGBT LLC LLM LLMS LNG LSTM MBA MIT MLB MRI MRNA MVP NAFTA "
    "NASA NATO NBA NFC NFL NFT NGO NHL NHS NIH NIST NLP NOAA NSA NYC OECD OEM OKR OPEC OSHA PDF PHP PIN PLC PMI "
    "PPP PSA QOQ RAG RAM RBI REIT RFID RFP RNA ROA ROE ROI RSU SAAS SARS SAT SDK SEC SEO SMS SOC SPAC SQL SSD "
    "STEM SWAT SWOT TAM TCP TLDR TSA TTM UAV UAE UBI UFO UNESCO UNICEF URL USA USB USD USDA USSR UX VAT VIP VPN "
    "WACC WHO WIFI WTO WWI WWII WWW XML YOY YTD ZIP JAN FEB MAR APR JUN JUL AUG SEPT OCT NOV DEC MON TUE WED THU "
    "FRI SUN AND THE FOR NOT BUT ALL NEW NOW ONE TWO CAR CAT DOG".split()
)


def symbol(text: str) -> str:
    """The form in which symbols are compared: "brk.b" and "BRK/B" are BRK-B."""
    return re.sub(r"[.\-/ ]", "-", text.strip().upper())


def named(text: str) -> tuple[str, bool] | None:
    """The symbol a whole text may be, and whether it is marked as one."""
    if marked := _MARKED.fullmatch(text.strip(" ()")):
        return symbol(marked["dollar"] or marked["listed"]), True
    if not _WHOLE.fullmatch(text) or (not text.isupper() and (len(text) < 3 or is_word(text.lower()))):
        return None
    return symbol(text), False


def marked(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _MARKED.finditer(text):
        yield *match.span(), symbol(match["dollar"] or match["listed"])


def bare(text: str) -> Iterator[tuple[int, int, str]]:
    """Capitals that are no common acronym and no word."""
    for match in _BARE.finditer(text):
        if match.group() not in _ACRONYMS and not is_word(match.group().lower()):
            yield *match.span(), symbol(match.group())
