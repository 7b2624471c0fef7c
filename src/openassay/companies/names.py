"""What is left of a company's name when case, punctuation and its legal form do not matter."""

import gzip
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import NamedTuple

from openassay.text.words import fold

# SEC's own marks behind a name: where it is registered, that it is the newer of two, that receipts are traded.
_MARK = re.compile(
    r"(?:/\s*(?:cayman(?: islands)?|marshall islands|delaware|canada)\b"
    r"|(?<=\s)/\s*[a-z]{2,4}\b|/\s*[a-z]{2,4}(?=\s*(?:/|$))|/\s*$)\s*/?"
)
_PUBLIC = re.compile(r"\bpublic (?:ltd|limited) (?:co|company)\b")
_CLASS = re.compile(r"\(?\bclass [a-c]\b\)?|\(the\)|\((?:publ|de|persero)\)")
_DOTTED = re.compile(r"\b((?:[a-z]\.){1,5}[a-z]?)(?![a-z])")
_APOSTROPHE = re.compile(r"['’`´]")
_NAME_WORD = re.compile(r"[a-z0-9]+|[^\W_]+")
_INITIALS_BEHIND = re.compile(r"(?P<name>[A-Z]{2,}) (?P<initials>[A-Z] [A-Z])(?= |$)")
_UNFOLDED = str.maketrans({"ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})

# One spelling for each legal form, so that "Acme Inc" and "Acme Corp" can still be told apart.
_SAME_FORM = {
    "incorporated": "inc", "corporation": "corp", "company": "co", "companies": "co", "cos": "co", "limited": "ltd",
    "aktiengesellschaft": "ag", "aktiebolag": "ab", "ltda": "ltd",
}  # fmt: skip
_ANYWHERE = frozenset("inc corp ltd llc plc gmbh oyj kgaa adr incorporated corporation limited".split())
_AT_THE_END = _ANYWHERE | frozenset(
    "co ag nv sa se ab asa as spa srl kk kg bv oy sarl sas lp llp sab cv rl sca sgps tbk berhad bhd pjsc jsc ojsc oao "
    "pao pte pty aps sae com pbc lc the and".split()
)
FORMS = _AT_THE_END | frozenset(_SAME_FORM)
_AT_THE_START = frozenset("the ab as pt oao pao".split())
GENERIC = frozenset("holding group groep groupe".split())

_SHORT_FORMS = {
    "intl": "international", "mfg": "manufacturing", "natl": "national", "svcs": "service", "svc": "service",
    "serv": "service", "hldgs": "holding", "hldg": "holding", "grp": "group", "mgmt": "management", "mgt": "management",
    "bros": "brother", "ind": "industry", "inds": "industry", "tech": "technology", "techs": "technology",
    "pharma": "pharmaceutical", "pharm": "pharmaceutical", "labs": "laboratory", "lab": "laboratory",
    "ent": "entertainment", "sys": "system", "amer": "american", "am": "american", "assoc": "associate",
    "assn": "association", "dev": "development", "elec": "electric", "eng": "engineering", "saint": "st",
    "mount": "mt", "fort": "ft", "fin": "financial", "finl": "financial", "ins": "insurance", "res": "resource",
    "prop": "property", "props": "property", "comm": "communication", "comms": "communication",
    "telecom": "telecommunication", "chem": "chemical", "prods": "product", "prod": "product", "engy": "energy",
    "soln": "solution", "sol": "solution", "ctr": "center", "centre": "center", "gen": "general", "dept": "department",
    "univ": "universal", "bancorporation": "bancorp", "bankshares": "bancshare", "tr": "trust", "invt": "investment",
    "inv": "investment", "equip": "equipment", "transp": "transportation", "petro": "petroleum", "mach": "machinery",
    "dist": "distribution", "usa": "us", "cda": "canada", "pwr": "power", "rlty": "realty", "gp": "group",
    "aero": "aerospace", "constr": "construction", "cap": "capital", "fed": "federal", "matls": "material",
    "hosp": "hospital",
}  # fmt: skip


class CompanyName(NamedTuple):
    """A name taken apart: `core` are its words without a legal form, `forms` are the legal forms it had."""

    core: tuple[str, ...]
    forms: tuple[str, ...]

    @property
    def key(self) -> str:
        return " ".join(self.core)

    @property
    def squashed(self) -> str:
        return "".join(self.core)


def fold_name(text: str) -> str:
    """Folded also where Unicode has no decomposition: "Ørsted" and "Orsted" are one."""
    return text.lower() if text.isascii() else fold(text).translate(_UNFOLDED)


def parse_name(text: str) -> CompanyName:
    core: list[str] = []
    forms: list[str] = []
    plain = _APOSTROPHE.sub("", fold_name(text))
    if "/" in plain:
        plain = _MARK.sub(" ", plain).replace("a/s", "as").replace("s/a", "sa")
    if "(" in plain or "class" in plain:
        plain = _CLASS.sub(" ", plain)
    if "public" in plain:
        plain = _PUBLIC.sub("plc", plain)
    for part in plain.split(","):  # each may end in a legal form: "Information Co., Easylink"
        words = _split_words(part)
        start, end = 0, len(words)
        while end and words[end - 1] in _AT_THE_END:
            end -= 1 + (words[end - 2 : end] in (["de", "cv"], ["de", "rl"]))
        while end - start > 1 and words[start] in _AT_THE_START:
            start += 1
        core += [word for word in words[start:end] if word not in _ANYWHERE and word != "and"]
        forms += [word for at, word in enumerate(words) if not start <= at < end or word in _ANYWHERE]
    if not core:
        return CompanyName(tuple(_split_words(text)), ())
    return CompanyName(tuple(core), tuple(form for form in forms if form not in ("the", "and", "com", "adr")))


def move_initials_first(text: str) -> str:
    """With the initials in front, where a list of people's names would have them behind: "SMITH A O CORP"."""
    match = _INITIALS_BEHIND.match(text)
    if not match or match["initials"].replace(" ", "").lower() in FORMS:  # "TELEFONICA S A"
        return text
    return f"{match['initials']} {match['name']}{text[match.end() :]}"


def _split_words(text: str) -> list[str]:
    if "." in text:
        text = _DOTTED.sub(lambda match: match[1].replace(".", ""), text)
    words = _NAME_WORD.findall(text.replace("&", " and ").replace("+", " and "))
    # Letters that stand alone side by side are one word: "A B SKF", "J. P. Morgan", "M & T".
    joined: list[str] = []
    letters = False
    for place, word in enumerate(words):
        alone = len(word) == 1 and word.isalpha()
        if letters and word == "and" and place + 1 < len(words) and len(words[place + 1]) == 1:
            continue
        if alone and letters:
            joined[-1] += word
        else:
            joined.append(word)
        letters = alone
    return [_SAME_FORM.get(word, word) for word in joined]


def normalize_words(core: tuple[str, ...]) -> tuple[str, ...]:
    """Abbreviations written out, plurals undone."""
    return tuple(to_singular(_SHORT_FORMS.get(word, word)) for word in core)


def distinctive_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Without "Group" and "Holdings", if anything is left."""
    return tuple(word for word in words if word not in GENERIC) or words


def to_singular(word: str, least: int = 5) -> str:
    if len(word) < least or not word.endswith("s") or word.endswith("ss"):
        return word
    return word[:-3] + "y" if word.endswith("ies") else word[:-1]


# Ordinary English words and common names of people and places, so that they are not taken for companies.


@lru_cache(maxsize=1)
def _load_lists() -> tuple[frozenset[str], frozenset[str]]:
    text = gzip.decompress(files("openassay.companies").joinpath("data/words.txt.gz").read_bytes()).decode()
    common, rarer = (frozenset(part.split("\n")) for part in text.split("\n\n"))
    return common, rarer


def is_common(word: str) -> bool:
    """One of the words most used."""
    return word in _load_lists()[0]


def is_word(word: str) -> bool:
    common, rarer = _load_lists()
    return word in common or word in rarer


# What people call well-known companies, and what these are known for: a table written by hand.


class Nickname(NamedTuple):
    """A name people use. `ordinary`: also a word or somebody's name, so that only capitals make it a company's."""

    text: str
    ordinary: bool

    @property
    def key(self) -> str:
        return parse_name(self.text).key

    @property
    def stands_alone(self) -> bool:
        """ "News Corp" does not without its legal form."""
        name = parse_name(self.text)
        return self.ordinary or not name.forms or len(name.core) > 1 or not is_word(name.core[0])


class CompanyProfile(NamedTuple):
    ticker: str
    names: tuple[Nickname, ...]  # the first is the short name
    makes: tuple[str, ...]  # "the ... company", "the maker of ..."
    phrases: tuple[str, ...]  # whole, behind "the"
    people: tuple[str, ...]

    @property
    def short(self) -> str:
        return self.names[0].text


@lru_cache(maxsize=1)
def load_profiles() -> dict[str, CompanyProfile]:
    """By ticker."""
    return {entry.ticker: entry for entry in _load_entries() if entry.ticker != "-"}


@lru_cache(maxsize=1)
def names_outside_register() -> frozenset[str]:
    """Keys of names that are well known and in no register: nobody else is meant by them."""
    return frozenset(name.key for entry in _load_entries() if entry.ticker == "-" for name in entry.names)


@lru_cache(maxsize=1)
def brand_keys() -> frozenset[str]:
    """Keys of names that nobody takes for a word, though lists of words have them: "nokia"."""
    return frozenset(name.key for entry in _load_entries() for name in entry.names if not name.ordinary)


@lru_cache(maxsize=1)
def _load_entries() -> tuple[CompanyProfile, ...]:
    text = files("openassay.companies").joinpath("data/known.txt").read_text("utf-8")
    entries = []
    for line in text.splitlines():
        if not line.startswith("#"):
            ticker, short, names, makes, phrases, people = (part.strip() for part in line.split(";"))
            called = filter(None, (short, *_split_list(names)))
            nicknames = tuple(Nickname(name.removeprefix("="), name.startswith("=")) for name in called)
            lists = map(_split_list, (makes, phrases, people))
            entries.append(CompanyProfile(ticker, nicknames, *lists))
    return tuple(entries)


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


# Strings one slip away: a letter wrong, missing, too many, or two changed round.

FEWEST = 5  # letters a string must have: with fewer, another name is as likely as a slip


class SpellingIndex:
    """Finds what differs from a string by one slip.

    One slip leaves the beginning or the end of a string as it was, save the two letters in the middle that may have
    changed places: so two entries a string are enough to find it."""

    def __init__(self, strings: Iterable[str]) -> None:
        self._beginnings: dict[tuple[int, str], list[str]] = {}
        self._ends: dict[tuple[int, str], list[str]] = {}
        for string in strings:
            length = len(string)
            if length >= FEWEST:
                half = length // 2
                self._beginnings.setdefault((length, string[: half - 1]), []).append(string)
                self._ends.setdefault((length, string[half + 1 :]), []).append(string)

    def find_near(self, string: str) -> list[str]:
        """What is one slip away, in alphabetical order; the string itself is not."""
        candidates: set[str] = set()
        for length in (len(string) - 1, len(string), len(string) + 1):
            half = length // 2
            candidates.update(self._beginnings.get((length, string[: half - 1]), ()))
            candidates.update(self._ends.get((length, string[len(string) - (length - half - 1) :]), ()))
        return sorted(other for other in candidates if is_one_edit_apart(string, other))


def is_one_edit_apart(left: str, right: str) -> bool:
    if left == right or abs(len(left) - len(right)) > 1:
        return False
    shorter, longer = sorted((left, right), key=len)
    at = next((place for place, letter in enumerate(shorter) if letter != longer[place]), len(shorter))
    if len(shorter) < len(longer):
        return shorter[at:] == longer[at + 1 :]
    changed_round = shorter[at : at + 2] == longer[at : at + 2][::-1] and shorter[at + 2 :] == longer[at + 2 :]
    return shorter[at + 1 :] == longer[at + 1 :] or changed_round


# Names that people use for well-known companies of a register.

LONG = 9  # letters


class Nicknames:
    def __init__(self, known: Mapping[int, CompanyProfile]) -> None:
        called = [(name, place) for place, entry in known.items() for name in entry.names if name.stands_alone]
        self.places = {name.key: place for name, place in called}
        self.ordinary = frozenset(name.key for name, _ in called if name.ordinary)  # words besides
        self.articled = frozenset(name.key for name, _ in called if name.text.startswith("The "))
        words = [key.split(" ") for key in self.places]
        self.beginnings = frozenset(" ".join(key[:count]) for key in words for count in range(1, len(key) + 1))
        self.first_words = frozenset(key[0] for key in words)
        self.later_words = frozenset(word for key in words for word in key[1:])

    def is_unmistakable(self, name: CompanyName) -> bool:
        """Whether it can be nothing but a company's name."""
        return name.key in self.places and name.key not in self.ordinary

    def match_typo(self, name: CompanyName) -> set[int]:
        """Whose unmistakable name is one slip away. Spaces may be missing too, but not in "read it"."""
        near = {self._squashed[string] for string in self.spellings.find_near(name.squashed)}
        return {self.places[key] for key in near if len(name.squashed) >= LONG or len(key.split()) == len(name.core)}

    @cached_property
    def _squashed(self) -> dict[str, str]:
        return {key.replace(" ", ""): key for key in self.places if key not in self.ordinary}

    @cached_property
    def spellings(self) -> SpellingIndex:
        return SpellingIndex(self._squashed)


# What a company is called in a sentence: its registered name without the legal form, in ordinary capitals.

_BEHIND = re.compile(r"\s*/.*$|\s*\((?:the|de|publ)\)$", re.I)
_SPLIT_FORM = re.compile(r"(?<=\w\w) (?:N V|S A|A S|A G|L P|S P A)$")
_SMALL = frozenset("of and the de du la for in on & y".split())


def short_name(name: str) -> str:
    plain_order = _SPLIT_FORM.sub("", _BEHIND.sub("", name))
    words = move_initials_first(plain_order).split()
    if words != plain_order.split():
        words[:2] = [f"{initial}." for initial in words[:2]]
    while len(words) > 1 and (_letters_only(words[-1]) in FORMS or words[-1] in ("&", "-")):
        words.pop()
    if len(words) > 1 and words[0].lower() == "the":
        words.pop(0)
    shouted = all(word.isupper() for word in words if any(map(str.isalpha, word)) and len(_letters_only(word)) > 3)
    for place, word in enumerate(words):  # "MICROSOFT" is shouted, "KLA" is not
        if not word.isupper():
            continue
        bare = _letters_only(word)
        if bare in _SMALL and place:
            words[place] = word.lower()
        elif shouted and "&" not in word and not any(map(str.isdigit, bare)) and (len(bare) > 3 or is_word(bare)):
            words[place] = "-".join(part.capitalize() for part in word.split("-"))
    return " ".join(words).rstrip(",.")


def _letters_only(word: str) -> str:
    return re.sub(r"\W", "", fold_name(word))


# Ticker symbols: as $AAPL, NASDAQ: AAPL, BRK.B, or bare capitals.

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


def normalize_symbol(text: str) -> str:
    """The form in which symbols are compared: "brk.b" and "BRK/B" are BRK-B."""
    return re.sub(r"[.\-/ ]", "-", text.strip().upper())


def parse_symbol(text: str) -> tuple[str, bool] | None:
    """The symbol a whole text may be, and whether it is marked as one."""
    if marked := _MARKED.fullmatch(text.strip(" ()")):
        return normalize_symbol(marked["dollar"] or marked["listed"]), True
    if not _WHOLE.fullmatch(text) or (not text.isupper() and (len(text) < 3 or is_word(text.lower()))):
        return None
    return normalize_symbol(text), False


def find_explicit_tickers(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _MARKED.finditer(text):
        yield *match.span(), normalize_symbol(match["dollar"] or match["listed"])


def find_bare_tickers(text: str) -> Iterator[tuple[int, int, str]]:
    """Capitals that are no common acronym and no word."""
    for match in _BARE.finditer(text):
        if match.group() not in _ACRONYMS and not is_word(match.group().lower()):
            yield *match.span(), normalize_symbol(match.group())


# The words of a text, as names of companies are looked for among them.

MOST_LETTERS = 3  # alone, one after the other: "A O Smith", and no alphabet
_TOKEN = re.compile(r"(?:[^\W_]|[\u0300-\u036f])+(?:[&'’.+](?:[^\W_]|[\u0300-\u036f])+)*")
_ENDS = re.compile(r"[.!?\n]")
_NEXT = re.compile(r"[\s.&]*")
_POSSESSIVE = re.compile(r"['’]s$")


class NameToken(NamedTuple):
    text: str
    word: str  # plain, without a possessive
    start: int
    end: int
    first: bool  # of a sentence, where a capital says nothing
    spelt: bool = False  # a letter of an alphabet

    @property
    def capital(self) -> bool:
        return self.text[0].isupper() or self.text[0].isdigit()


def tokenize_text(text: str) -> list[NameToken]:
    found: list[NameToken] = []
    for match in _TOKEN.finditer(text):
        first = not found or bool(_ENDS.search(text, found[-1].end, match.start()))
        found.append(NameToken(match.group(), fold_name(strip_possessive(match.group())), *match.span(), first))
    at = 0
    for end in range(1, len(found) + 1):  # letters that stand alone, one after the other
        goes_on = (
            end < len(found)
            and len(found[end - 1].text) == len(found[end].text) == 1
            and _NEXT.fullmatch(text, found[end - 1].end, found[end].start)
        )
        if not goes_on:
            if end - at > MOST_LETTERS:
                found[at:end] = [token._replace(spelt=True) for token in found[at:end]]
            at = end
    long = [token for token in found if len(token.text) > 3]
    if len(long) > 6 and sum(token.capital for token in long) > 0.8 * len(long):  # a headline: no capital says anything
        found = [token._replace(first=True) for token in found]
    return found


def strip_possessive(text: str) -> str:
    return _POSSESSIVE.sub("", text)
