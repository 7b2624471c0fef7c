"""What a question asks for by its form, and whether a statement has it: a figure, a date, a reason, and of which years.

The forms are those of English; of a question in another language nothing is demanded.
"""

import re
from collections.abc import Set
from datetime import date
from typing import Literal, NamedTuple

from assay.text.names import names
from assay.text.period import period
from assay.text.quantities import quantities
from assay.text.relations import years
from assay.text.words import content_words, fold, stem, stems

Kind = Literal["figures", "date", "reason"]

_FORMS: dict[Kind, re.Pattern[str]] = {
    "figures": re.compile(
        r"\bhow (?:many|much|large|big|high|tall|deep|long|old|far|fast|heavy|often|wide|hot|cold|expensive)\b|"
        r"\bwhat (?:is|was|are|were) the (?:\w+ ){0,2}(?:value|price|cost|number|population|amount|percentage|rate|"
        r"size|area|height|length|weight|depth|speed|temperature)s? of\b|\bwhat (?:percentage|share|proportion) of\b"
    ),
    "date": re.compile(r"^(?:since |by |until )?when\b|\b(?:which|what) (?:year|day|date|month|decade)\b"),
    "reason": re.compile(r"^why\b|^what (?:caused?|causes|explains?|led to)\b|\b(?:reasons?|causes?) (?:for|of)\b"),
}
_TIMES = ("year", "date", "time", "decade")
_FOUR_DIGITS = re.compile(r"\b(?:1\d{3}|20\d{2})\b")
_REASON = re.compile(
    r"\b(?:because|due to|caus(?:e|es|ed|ing)|reasons?|since|owing to|result(?:s|ed)? (?:of|from|in)|as a result|"
    r"led to|driven by|drove|explain\w*|attribut\w+|stems? from|reflect\w*|thanks to|therefore|so that|blam\w+|offset|"
    r"account(?:s|ed)? for|systematic|bias\w*|helped by|hurt by|following|after)\b"
)
# Words of asking and of reporting, which no answer need have.
ASKING = frozenset(
    stems(
        "what's who's value amount figure figures number change happen happening compare comparison difference "
        "overview summary explain describe latest recent main known know given give said say report reported "
        "background open disputed disagree cause reason mean exactly currently important key role large big "
        "high tall deep long old far fast heavy often wide hot cold expensive"
    )
)
_OF_A_KIND = frozenset(
    stems(
        "lake river mount mountain city county state island sea bay bridge street park museum university institute "
        "college school company inc corp corporation ltd group north south east west new great saint king queen "
        "president doctor sir project team mission telescope collaboration"
    )
)
_QUARTER = re.compile(r"\b(?:Q[1-4]|fiscal|FY ?\d{2,4}|quarter\w*)\b", re.I)
_Y = r"(?:19|20)\d{2}\b"
_MONTH = r"(?:jan|febr)uary|march|april|may|june|july|august|(?:septem|octo|novem|decem)ber"
# Years that say when; in "the 2008 crisis" and "the olympiad of 1972" they only say which.
_WHEN = re.compile(
    rf"\b(?:in|during|for|since|after|from|before|until|between|through|by|as of|Q[1-4]|H[12]|FY|fiscal|{_MONTH}|"
    rf"(?:year|quarter|half|end|start|beginning) of)"
    rf"(?:,? (?:early|late|mid|fiscal|year|the (?:end|start|beginning) of|Q[1-4]|H[12]|{_MONTH}))*[ -]?"
    rf"({_Y}(?:(?: ?[-–,] ?| and | to | or | until ){_Y})*)(?! [a-z]+ (?:crisis|war|election|pandemic))",
    re.I,
)
_SINCE = re.compile(rf"\b(?:since|after|from) (?:the )?(?:\w+ )?{_Y}(?! ?(?:to|until|and|[-–]))", re.I)
_UNTIL = re.compile(rf"\b(?:before|until|up to|as of|by) (?:the )?(?:\w+ ){{0,2}}{_Y}", re.I)
_DECADE = re.compile(r"\b((?:19|20)\d)0s\b")


class Years(NamedTuple):
    """The years a question confines itself to, both included."""

    first: int
    last: int

    def meet(self, others: frozenset[int]) -> bool:
        return any(self.first <= year <= self.last for year in others)


def kinds(question: str) -> tuple[Kind, ...]:
    """The kinds of answer a question asks for by its form; none for most."""
    plain = fold(question).strip()
    return tuple(kind for kind, form in _FORMS.items() if form.search(plain))


def shows(kind: Kind, statement: str) -> bool:
    """Whether a statement could be such an answer."""
    if kind == "reason":
        return _REASON.search(fold(statement)) is not None
    found = quantities(statement)
    if kind == "date":
        return any(quantity.kind in _TIMES for quantity in found) or bool(_FOUR_DIGITS.search(statement))
    return any(quantity.kind not in ("year", "date") for quantity in found)


def span(question: str, today: date | None = None) -> Years | None:
    """The years it is asked about; None where the question names none. A fiscal year begins in the one before."""
    since, until = _SINCE.search(question), _UNTIL.search(question)
    decades = [int(ten) * 10 for ten in _DECADE.findall(question)]
    told = " ".join(_WHEN.findall(question))
    named = {*years(told), *decades, *(decade + 9 for decade in decades)}
    if not named:
        ago = period(question, today).since if today else None
        return Years(ago.year, 9999) if ago else None
    first = 0 if until else min(named)
    last = 9999 if since else max(named)
    return Years(first - 1 if _QUARTER.search(question) and first else first, last)


def named(question: str) -> list[str]:
    """The names of a question that are more than a year or a word of asking."""
    return [name for name in names(question) if set(stems(name)) - ASKING]


def proper(name: str) -> frozenset[str]:
    """The stems of a name that tell it from others of its kind: Marrow in Lake Marrow, Apple in Apple Inc."""
    own = frozenset(stems(name))
    return own - _OF_A_KIND or own


def has_name(name: frozenset[str], there: Set[str]) -> bool:
    """Half of it will do: Leavitt for Henrietta Leavitt."""
    return 2 * len(name & there) >= len(name)


def matter(question: str) -> list[str]:
    """The words of a question that say what it is about, apart from its names, when it was, and words of asking."""
    rest = _WHEN.sub(" ", question)
    besides = ASKING.union(*map(stems, named(question)))
    return [word for word in dict.fromkeys(content_words(rest)) if stem(word) not in besides]
