"""What is left of a company's name when case, punctuation and its legal form do not matter."""

import re
from typing import NamedTuple

from assay.text.words import fold

# SEC's own marks behind a name: where it is registered, that it is the newer of two, that receipts are traded.
_MARK = re.compile(
    r"(?:/\s*(?:cayman(?: islands)?|marshall islands|delaware|canada)\b"
    r"|(?<=\s)/\s*[a-z]{2,4}\b|/\s*[a-z]{2,4}(?=\s*(?:/|$))|/\s*$)\s*/?"
)
_PUBLIC = re.compile(r"\bpublic (?:ltd|limited) (?:co|company)\b")
_CLASS = re.compile(r"\(?\bclass [a-c]\b\)?|\(the\)|\((?:publ|de|persero)\)")
_DOTTED = re.compile(r"\b((?:[a-z]\.){1,5}[a-z]?)(?![a-z])")
_APOSTROPHE = re.compile(r"['’`´]")
_TOKEN = re.compile(r"[a-z0-9]+|[^\W_]+")
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


class Name(NamedTuple):
    """A name taken apart: `core` are its words without a legal form, `forms` are the legal forms it had."""

    core: tuple[str, ...]
    forms: tuple[str, ...]

    @property
    def key(self) -> str:
        return " ".join(self.core)

    @property
    def squashed(self) -> str:
        return "".join(self.core)


def plain(text: str) -> str:
    """Folded also where Unicode has no decomposition: "Ørsted" and "Orsted" are one."""
    return text.lower() if text.isascii() else fold(text).translate(_UNFOLDED)


def parse(text: str) -> Name:
    core: list[str] = []
    forms: list[str] = []
    for part in _cleaned(text).split(","):  # each may end in a legal form: "Information Co., Easylink"
        words = _words(part)
        start, end = _bounds(words)
        core += [word for word in words[start:end] if word not in _ANYWHERE and word != "and"]
        forms += [word for at, word in enumerate(words) if not start <= at < end or word in _ANYWHERE]
    if not core:
        return Name(tuple(_words(text)), ())
    return Name(tuple(core), tuple(form for form in forms if form not in ("the", "and", "com", "adr")))


def turned(text: str) -> str:
    """With the initials in front, where a list of people's names would have them behind: "SMITH A O CORP"."""
    match = _INITIALS_BEHIND.match(text)
    if not match or match["initials"].replace(" ", "").lower() in FORMS:  # "TELEFONICA S A"
        return text
    return f"{match['initials']} {match['name']}{text[match.end() :]}"


def _bounds(words: list[str]) -> tuple[int, int]:
    start, end = 0, len(words)
    while end and words[end - 1] in _AT_THE_END:
        end -= 1 + (words[end - 2 : end] in (["de", "cv"], ["de", "rl"]))
    while end - start > 1 and words[start] in _AT_THE_START:
        start += 1
    return start, end


def _cleaned(text: str) -> str:
    text = _APOSTROPHE.sub("", plain(text))
    if "/" in text:
        text = _MARK.sub(" ", text).replace("a/s", "as").replace("s/a", "sa")
    if "(" in text or "class" in text:
        text = _CLASS.sub(" ", text)
    if "public" in text:
        text = _PUBLIC.sub("plc", text)
    return text


def _words(text: str) -> list[str]:
    if "." in text:
        text = _DOTTED.sub(lambda match: match[1].replace(".", ""), text)
    words = _TOKEN.findall(text.replace("&", " and ").replace("+", " and "))
    return [_SAME_FORM.get(word, word) for word in _joined(words)]


def _joined(words: list[str]) -> list[str]:
    """Letters that stand alone side by side are one word: "A B SKF", "J. P. Morgan", "M & T"."""
    if not any(len(word) == 1 for word in words):
        return words
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
    return joined


def loose(core: tuple[str, ...]) -> tuple[str, ...]:
    """Abbreviations written out, plurals undone."""
    return tuple(_loosened(word) for word in core)


def telling(words: tuple[str, ...]) -> tuple[str, ...]:
    """Without "Group" and "Holdings", if anything is left."""
    return tuple(word for word in words if word not in GENERIC) or words


def _loosened(word: str) -> str:
    return singular(_SHORT_FORMS.get(word, word))


def singular(word: str, least: int = 5) -> str:
    if len(word) < least or not word.endswith("s") or word.endswith("ss"):
        return word
    return word[:-3] + "y" if word.endswith("ies") else word[:-1]
