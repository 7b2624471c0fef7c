"""What a text speaks of by name."""

import re
from difflib import SequenceMatcher

from assay.model.company import Mention
from assay.ports import Companies
from assay.reasoning.embedded.phrases import proper, with_noun
from assay.text.words import fold

ALIKE = 0.7  # a company's name and a misspelling of it
MOST_OPTIONS = 4

_DESCRIBED = re.compile(r"(?:the|that|this)\s", re.I)
_SIDES = re.compile(
    r"\bcompar\w+ (.{2,40}?) (?:and|with|to|against|vs\.?|versus) (.{2,40}?)[?.! ]*$|"
    r"^(.{2,40}?) (?:vs\.?|versus) (.{2,40}?)[?.! ]*$",
    re.I,
)
_AS_COMPANY = re.compile(
    r"\b(?:stocks?|shares?|revenues?|earnings|profits?|dividends?|market cap\w*|ceo|company|ticker|quarterly|sales)\b|"
    r"^(?:tell me (?:more )?about|what(?:'s| is) (?:happening|new|going on) (?:with|at)|"
    r"how (?:is|are) \w+ doing|(?:latest|recent) news|any news|news)\b",
    re.I,
)


def find_subjects(text: str, companies: Companies) -> tuple[str, ...]:
    """Companies by what people call them, and other names as written, in order of appearance."""
    found: dict[str, int] = {}
    mentions = companies.mentions(text)
    for mention in mentions:
        found.setdefault(mention.company.short, mention.start)
    said = [fold(part) for mention in mentions for part in (mention.text, mention.company.short)]
    straight = text.replace("’", "'")
    for name in proper(text):
        if not any(part in fold(name) or fold(name) in part for part in said):
            found.setdefault(with_noun(name, straight), max(0, straight.find(name)))
    return tuple(sorted(found, key=lambda name: found[name])) or _compared(text, companies)


def _compared(text: str, companies: Companies) -> tuple[str, ...]:
    """Both sides of a comparison, where both are companies: "compare ford and gm" needs no capitals."""
    match = _SIDES.search(text)
    sides = [side for side in match.groups() if side] if match else []
    found = [companies.resolve(side) or companies.resolve(side.upper()) for side in sides]
    return tuple(company.short for company in found if company) if len(found) == 2 and all(found) else ()


def is_company(name: str, companies: Companies) -> bool:
    """Whether a subject is one; "AI" is not, although somebody trades under it."""
    company = companies.resolve(name)
    return company is not None and fold(company.short) == fold(name)


def in_clear(text: str, companies: Companies) -> str:
    """The text with what misspells or describes a company replaced by its name."""
    for mention in reversed(companies.mentions(text)):
        if _DESCRIBED.match(mention.text) or _misspelt(mention):
            text = f"{text[: mention.start]}{mention.company.short}{text[mention.end :]}"
    return text


def _misspelt(mention: Mention) -> bool:
    said, short = fold(mention.text), fold(mention.company.short)
    tickers = {ticker.lower() for ticker in mention.company.tickers}
    if (
        mention.text.isupper()
        or said == short
        or said in fold(mention.company.name)
        or short in said
        or said in tickers
    ):
        return False
    return SequenceMatcher(None, said, short).ratio() >= ALIKE


def options(text: str, companies: Companies) -> tuple[str, tuple[str, ...]]:
    """A name that several companies go by, where a company is meant, with those companies; else nothing."""
    if companies.mentions(text) or not _AS_COMPANY.search(text):
        return "", ()
    for name in proper(text):
        if " " not in name and not _explained(name, text) and companies.resolve(name) is None:
            shorts = tuple(dict.fromkeys(company.short for company in companies.candidates(name)))
            if len(shorts) > 1:
                return name, shorts[:MOST_OPTIONS]
    return "", ()


def _explained(name: str, text: str) -> bool:
    """ "The Delta", "the planet Mercury" and "Mercury (the planet)" say what is meant."""
    kind = r"(?!(?:company|firm|stock|business|corporation)\b)\w+ "
    said = re.escape(name)
    return bool(re.search(rf"\bthe (?:{kind})?{said}\b|\b{said} \(|\b{said},? the (?:{kind.strip()})", text, re.I))
