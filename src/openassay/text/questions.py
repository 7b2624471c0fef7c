"""What a question asks for by its form, and whether a statement has it: a figure, a date, a reason, and of which years.

The forms are those of English; of a question in another language nothing is demanded.
"""

import re
from collections.abc import Set
from datetime import date, timedelta
from typing import Literal, NamedTuple

from openassay.text.other_languages import is_pointed_elsewhere
from openassay.text.quantities import NUMBER_WORDS, find_quantities
from openassay.text.relations import find_years
from openassay.text.words import content_words, find_names, fold, stem, stems

# The stretch of time a question confines itself to, where it says so: since 2021, in the last two years, as of May.

_DAYS = {"day": 1, "week": 7, "month": 30.44, "year": 365.25}
_AGO = re.compile(
    rf"\b(?:in|over|during|within|from|for)?\s*the (?:last|past|previous) (?:(\d{{1,3}}|{'|'.join(NUMBER_WORDS)}) )?"
    r"(day|week|month|year)s?\b",
    re.I,
)
_SINCE_YEAR = re.compile(
    r"\b(?:since|after|from) (?:the (?:start|beginning) of )?((?:19|20)\d\d)\b(?!\s?(?:to|until|[-–]))", re.I
)
_UNTIL_DATE = re.compile(r"\b(?:as of|until|before|up to|by the end of) ((?:19|20)\d\d)(?:-(\d\d)-(\d\d))?\b", re.I)


_NOW = re.compile(
    r"\b(?:latest|newest|current(?:ly)?|recent(?:ly)?|now|nowadays|today|this (?:year|month|week|quarter)|so far|"
    r"up to date|state of the art|happening|news|emerging|upcoming|trends?|forecast|outlook)\b",
    re.I,
)
_ANY_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


class Period(NamedTuple):
    since: date | None = None
    until: date | None = None

    def contains(self, day: date | None) -> bool:
        """Whether what was published on a day counts; what is undated may."""
        return day is None or (self.since or day) <= day <= (self.until or day)


def parse_period(text: str, today: date) -> Period:
    """What is published outside it does not count. "In 2019" confines nothing: much on 2019 was written later."""
    since = until = None
    if ago := _AGO.search(text):
        count, unit = (ago[1] or "1").lower(), ago[2].lower()
        number = int(count) if count.isdecimal() else NUMBER_WORDS[count]
        since = today - timedelta(days=round(number * _DAYS[unit]))
    elif found := _SINCE_YEAR.search(text):
        year = int(found[1]) + ("after" in found[0].lower())
        since = date(year, 1, 1) if year <= today.year else None
    if found := _UNTIL_DATE.search(text):
        year = int(found[1])
        until = date(year - 1, 12, 31) if found[0].lower().startswith("before") else date(year, 12, 31)
        if found[2]:
            try:
                until = date(year, int(found[2]), int(found[3]))
            except ValueError:
                until = None
    return Period(since, until)


def needs_recent_sources(question: str, today: date) -> bool:
    """Whether what is asked about is still changing, so that newer pages tell more."""
    years = [int(year) for year in _ANY_YEAR.findall(question)]
    return bool(_NOW.search(question)) or _AGO.search(question) is not None or max(years, default=0) >= today.year - 2


MOVING = timedelta(days=730)  # how old a source may be where a question asks for what is current and says no more


def find_cutoff(question: str, today: date) -> date | None:
    """Return the day before which a source is too old for the question, or None where it may be of any age."""
    if since := parse_period(question, today).since:
        return since
    if not needs_recent_sources(question, today):
        return None
    recent = [year for year in map(int, _ANY_YEAR.findall(question)) if today.year - 2 <= year <= today.year]
    return date(max(recent), 1, 1) if recent else today - MOVING


AnswerKind = Literal["figures", "date", "reason"]

_FORMS: dict[AnswerKind, re.Pattern[str]] = {
    "figures": re.compile(
        r"\bhow (?:many|much|large|big|high|tall|deep|long|old|far|fast|heavy|often|wide|hot|cold|expensive)\b|"
        r"\bwhat (?:is|was|are|were) the (?:\w+ ){0,2}(?:value|price|cost|number|population|amount|percentage|rate|"
        r"size|area|height|length|weight|depth|speed|temperature)s? of\b|\bwhat (?:percentage|share|proportion) of\b"
    ),
    "date": re.compile(r"^(?:since |by |until )?when\b|\b(?:which|what) (?:year|day|date|month|decade)\b"),
    "reason": re.compile(r"^why\b|^what (?:caused?|causes|explains?|led to)\b|\b(?:reasons?|causes?) (?:for|of)\b"),
}
# Who, when, where, which and how many ask for one name, day, place or figure. "Who was Marie Curie?" asks for a life.
_POINTED = re.compile(
    r"^(?:(?:in|on|at|for|from|to|by|of|with|under|since|until) )?(?:who|whom|whose|when|where|which(?! \w+[^s]s\b)|"
    r"how (?:many|much|old|tall|long|large|big|high|deep|far|fast|heavy|wide|hot|cold|expensive|often)|"
    r"what (?:year|date|day|month|time|number|percentage|share|proportion|city|country|language|name))\b|"
    r"^what(?: is|'s| was| are| were) the (?:name|number|population|capital|price|height|length|area|age|date|size)\b|"
    r"^what (?:is|was|are|were) \w.{2,60} (?:called|named)\b|"
    r"^what (?!(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|happen\w*|about|if|else|kind|"
    r"sort|types?|effect|impact|role|reason|evidence|progress|influence|relationship|difference)\b)"
    r"(?!\w+[^s]s\b)[a-z]{3,} "
)
_LIFE = re.compile(r"^who (?:is|are|was|were) (?:[^\W_]\S* ){0,3}\S+$")
_PARTED = re.compile(r"[,;:?]|\b(?:and|or|but) (?:who|whom|when|where|which|how|why|what)\b|\bwhy\b")
_LONGEST_POINTED = 180  # characters
# What stands ahead of the question itself: "Of the children hurt in accidents, what proportion had head injuries?"
_ASKS = r"(?:who|whom|whose|what|when|where|which|how|why)\b"
_AHEAD = re.compile(rf"^(?!{_ASKS})[^,;:?]+, (?=\S)|^(?:when|where)\b[^,;:?]+, (?={_ASKS})", re.I)


def strip_ahead(question: str) -> str:
    """A question without what stands ahead of it with a comma."""
    return _AHEAD.sub("", " ".join(question.split()))


def is_pointed(question: str) -> bool:
    """Whether a question asks for one thing that a sentence can tell."""
    if is_pointed_elsewhere(question):
        return True
    plain = _AHEAD.sub("", fold(question).replace("’", "'").strip().rstrip("?!. "))
    if len(plain) > _LONGEST_POINTED or not _POINTED.match(plain) or _PARTED.search(plain):
        return False
    return not (_LIFE.match(plain) and " the " not in plain and " of " not in plain)


_ASKS_WITHIN = re.compile(r"\b(?:in|on|at|by|of|to|from|for) (?:which|what|whom)\b|, (?:which|what|who)\b", re.I)
_ASKS_IF = re.compile(
    r"^(?:did|does|do|is|was|are|were|has|had|have|can|could|will|would)(?:n['’]t)? (?P<said>.+)$", re.I
)


def state_question(question: str) -> str | None:
    """What would be so if the answer to a question for yes or no were yes, without the verb that asks; None of any
    other question. That verb's place is not looked for: the verifier reads a statement without it as it does one with
    it."""
    plain = " ".join(question.split()).rstrip("?!. ")
    ahead = found[0] if (found := _AHEAD.match(plain)) else ""
    asked = _ASKS_IF.match(plain.removeprefix(ahead))
    if asked is None or " or " in asked["said"] or _ASKS_WITHIN.search(asked["said"]):
        return None
    text = f"{ahead}{asked['said']}"
    return f"{text[:1].upper()}{text[1:]}."


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


class YearRange(NamedTuple):
    """The years a question confines itself to, both included."""

    first: int
    last: int

    def overlaps(self, others: frozenset[int]) -> bool:
        return any(self.first <= year <= self.last for year in others)


def answer_kinds(question: str) -> tuple[AnswerKind, ...]:
    """The kinds of answer a question asks for by its form; none for most."""
    plain = fold(question).strip()
    return tuple(kind for kind, form in _FORMS.items() if form.search(plain))


def has_answer_kind(kind: AnswerKind, statement: str) -> bool:
    """Whether a statement could be such an answer."""
    if kind == "reason":
        return _REASON.search(fold(statement)) is not None
    found = find_quantities(statement)
    if kind == "date":
        return any(quantity.kind in _TIMES for quantity in found) or bool(_FOUR_DIGITS.search(statement))
    return any(quantity.kind not in ("year", "date") for quantity in found)


def find_year_range(question: str, today: date | None = None) -> YearRange | None:
    """The years it is asked about; None where the question names none. A fiscal year begins in the one before."""
    since, until = _SINCE.search(question), _UNTIL.search(question)
    decades = [int(ten) * 10 for ten in _DECADE.findall(question)]
    told = " ".join(_WHEN.findall(question))
    named = {*find_years(told), *decades, *(decade + 9 for decade in decades)}
    if not named:
        ago = parse_period(question, today).since if today else None
        return YearRange(ago.year, 9999) if ago else None
    first = 0 if until else min(named)
    last = 9999 if since else max(named)
    return YearRange(first - 1 if _QUARTER.search(question) and first else first, last)


def find_question_names(question: str) -> list[str]:
    """The names of a question that are more than a year or a word of asking."""
    return [name for name in find_names(question) if set(stems(name)) - ASKING]


def distinctive_stems(name: str) -> frozenset[str]:
    """The stems of a name that tell it from others of its kind: Marrow in Lake Marrow, Apple in Apple Inc."""
    own = frozenset(stems(name))
    return own - _OF_A_KIND or own


def has_name(name: frozenset[str], there: Set[str]) -> bool:
    """Half of it will do: Leavitt for Henrietta Leavitt."""
    return 2 * len(name & there) >= len(name)


def topic_words(question: str) -> list[str]:
    """The words of a question that say what it is about, apart from its names, when it was, and words of asking."""
    rest = _WHEN.sub(" ", question)
    besides = ASKING.union(*map(stems, find_question_names(question)))
    return [word for word in dict.fromkeys(content_words(rest)) if stem(word) not in besides]
