"""Sentences made false in one place, as a careless or hostile writer would: numbers, dates, names, negations and more.

Written without any of the checks in view: it imports nothing of OpenAssay. Each way gives None where it does not apply.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple


class Around(NamedTuple):
    """Where other numbers and names are taken from: the document, and another one."""

    document: Sequence[str]
    elsewhere: Sequence[str]


_MONTHS = "January February March April May June July August September October November December".split()
_MONTH = "|".join(_MONTHS)
_YEAR = re.compile(r"\b(?:1[6-9]|20)\d\d\b")
_NUMBER = re.compile(r"(?<![\w.,/:-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w:/]|[.,-]\d|-[a-z]*\d)")
_WORDED = "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty".split()
_NAME = re.compile(
    r"\b[A-Z][a-zà-ÿ]+(?:[-’'][A-Z]?[a-z]+)?(?: (?:of |de |van |the )?[A-Z][a-zà-ÿ]+(?:-[A-Z][a-z]+)?)*\b"
    r"|\b[A-Z]{2,6}\b"
)
_NO_NAMES = frozenset(
    "The A An In On At It He She They This These Those As After Before During For From By While When His Her Its "
    "Their There Some Many Most Several Such With Under Although Both Other And But Or If So Since However "
    "According To Of One Two Three Four Five All Each Every Another Our We My No Not That What Where Who Which "
    "Then Now Also Because Despite Later Once Only Even More Just First Second Last Born Mr Mrs Ms Dr "
    "Additionally Instead Meanwhile Today Until".split()
)


def number(text: str, around: Around, dice: Random) -> str | None:
    places = [match for match in _NUMBER.finditer(text) if not _dated(text, match)]
    if not places:
        return _worded_number(text, dice)
    place = dice.choice(places)
    others = [
        match.group()
        for line in around.document
        for match in _NUMBER.finditer(line)
        if not _dated(line, match) and _value(match.group()) != _value(place.group())
    ]
    roll = dice.random()
    if roll < 0.5 and others:
        return _put(text, place, dice.choice(others))
    if roll < 0.65 and len(set(place.group())) > 1 and "," not in place.group():
        turned = place.group()[::-1]
        if turned[0] != "0" and "." not in turned and turned != place.group():
            return _put(text, place, turned)
    return _put(text, place, _moved(place.group(), dice))


def _dated(text: str, match: re.Match[str]) -> bool:
    before, after = text[max(0, match.start() - 12) : match.start()], text[match.end() : match.end() + 14]
    near_month = re.search(rf"(?:{_MONTH})\s$", before) or re.match(rf"\s(?:of )?(?:{_MONTH})\b", after)
    return bool(near_month or _YEAR.fullmatch(match.group()))


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def _moved(text: str, dice: Random) -> str:
    """Up or down by a tenth, or by one in the last place."""
    decimals = len(text.partition(".")[2])
    step = max(_value(text) * 0.1, 10**-decimals)
    moved = round(_value(text) + dice.choice([-1, 1]) * step, decimals)
    if moved <= 0 or moved == _value(text):
        moved = _value(text) + 10**-decimals
    return f"{moved:,.{decimals}f}" if "," in text else f"{moved:.{decimals}f}"


def _worded_number(text: str, dice: Random) -> str | None:
    places = list(re.finditer(rf"\b(?:{'|'.join(_WORDED)})\b", text))
    if not places:
        return None
    place = dice.choice(places)
    return _put(text, place, dice.choice([word for word in _WORDED if word != place.group()]))


def date(text: str, around: Around, dice: Random) -> str | None:
    years = list(_YEAR.finditer(text))
    months = list(re.finditer(rf"\b(?:{_MONTH})\b(?=\s\d|\sof\s\d|,?\s(?:19|20)\d\d)|(?<=\d\s)(?:{_MONTH})\b", text))
    days = list(re.finditer(rf"(?<=(?:y|h|l|e|t|r)\s)\d{{1,2}}(?=,\s\d{{4}})|\b\d{{1,2}}(?=\s(?:{_MONTH})\b)", text))
    if not years and not months and not days:
        return None
    place = dice.choice([*years, *months, *days])
    if place in years:
        others = [found for line in around.document for found in _YEAR.findall(line) if found != place.group()]
        return _put(text, place, dice.choice(others) if others and dice.random() < 0.5 else _year(place.group(), dice))
    if place in months:
        return _put(text, place, dice.choice([month for month in _MONTHS if month != place.group()]))
    return _put(text, place, str(dice.choice([day for day in range(1, 29) if day != int(place.group())])))


def _year(text: str, dice: Random) -> str:
    return str(int(text) + dice.choice([-10, -3, -2, -1, 1, 2, 3, 10]))


def names(text: str) -> list[re.Match[str]]:
    """Runs of capitalised words; at the beginning only those of several words."""
    return [
        match
        for match in _NAME.finditer(text)
        if match.group().split()[0] not in _NO_NAMES
        and (match.start() > 0 or " " in match.group())
        and match.group() not in _MONTHS
        and not re.search(r"[.:“\"]\s?$", text[: match.start()])
    ]


def name(text: str, around: Around, dice: Random) -> str | None:
    places = names(text)
    if not places:
        return None
    place = dice.choice(places)
    pool = around.document if dice.random() < 0.5 else around.elsewhere
    others = [
        found
        for line in pool
        for found in (match.group() for match in names(line) if match.start())
        if found != "".join(word[0] for word in place.group().split())
        and not _words(found) & _words(place.group())
        and not {found, place.group()} <= _ONE_COUNTRY
        and found[:4] != place.group()[:4]
    ]
    if not others:
        return None
    other = dice.choice(others)
    if dice.random() < 0.3 and " " in place.group() and " of " not in place.group():  # one part of it alone
        first, _, rest = place.group().partition(" ")
        other = f"{first} {other.split()[-1]}" if dice.random() < 0.5 else f"{other.split()[0]} {rest}"
    return _put(text, place, other) if other != place.group() else None


_ONE_COUNTRY = {"United States", "American", "Americans", "US", "USA", "America"}


def _words(text: str) -> set[str]:
    return {word.removesuffix("'s").removesuffix("’s").lower() for word in re.split(r"[ -]", text)}


_AUXILIARY = re.compile(r"\b(?:is|was|are|were|has|have|had|will|would|can|could|should|does|did|do)\b(?! not|n't|n’t)")
_PAST = re.compile(
    r"(?<=[a-zA-Z’)] )(?!(?:united|based|named|called|related|limited|used|indeed)\b)[a-z]{3,}ed (?=[a-z])"
)


def negation(text: str, around: Around, dice: Random) -> str | None:
    removed = _unsaid(text, dice)
    if removed and dice.random() < 0.7:
        return removed
    ways: list[Callable[[], str | None]] = [
        lambda: _after(text, _AUXILIARY, dice, " not"),
        lambda: _after(text, _AUXILIARY, dice, " never"),
        lambda: _before(text, _PAST, dice, "never "),
        lambda: _before(text, _PAST, dice, "denied having "),
        lambda: _failed(text, dice),
        lambda: _with(text, dice),
        lambda: _no(text, dice),
    ]
    dice.shuffle(ways)
    return next((told for told in (way() for way in ways) if told and told != text), None)


def _unsaid(text: str, dice: Random) -> str | None:
    """A denial left out."""
    places = list(
        re.finditer(
            r"\b(?:not|never) |(?<=[a-z])n[’']t\b|\bno (?=[a-z])|\bwithout\b|\bfailed to (?=\w)|\bdenied\b|\bneither\b",
            text,
        )
    )
    if not places:
        return None
    place = dice.choice(places)
    told = {"without": "with", "denied": "confirmed", "neither": "both", "failed to ": "managed to "}.get(
        place.group(), ""
    )
    return _put(text, place, told)


def _after(text: str, pattern: re.Pattern[str], dice: Random, said: str) -> str | None:
    places = list(pattern.finditer(text))
    place = dice.choice(places) if places else None
    return text[: place.end()] + said + text[place.end() :] if place else None


def _before(text: str, pattern: re.Pattern[str], dice: Random, said: str) -> str | None:
    places = list(pattern.finditer(text))
    place = dice.choice(places) if places else None
    return text[: place.start()] + said + text[place.start() :] if place else None


def _failed(text: str, dice: Random) -> str | None:
    places = list(
        re.finditer(r"(?<=[a-z)] )(won|led|made|joined|played|reached|launched|opened|signed|received) (?=[a-z])", text)
    )
    bare = {"won": "win", "led": "lead", "made": "make"}
    if not places:
        return None
    place = dice.choice(places)
    verb = bare.get(place[1], place[1].removesuffix("ed") if place[1][-3] not in "ai" else place[1].removesuffix("d"))
    return _put(text, place, f"failed to {verb} ")


def _with(text: str, dice: Random) -> str | None:
    place = re.search(r"\bwith\b", text)
    return _put(text, place, "without") if place else None


def _no(text: str, dice: Random) -> str | None:
    places = list(
        re.finditer(
            r"\b(?:has|have|had|found|showed|offers|includes|included|contains|provides) (?:an? |the )?(?=[a-z]+\b)",
            text,
        )
    )
    place = dice.choice(places) if places else None
    return _put(text, place, f"{place.group().split()[0]} no ") if place else None


_UNITS = dict(
    pair.split("=")
    for pair in "million=billion billion=million thousand=million trillion=billion km=miles miles=kilometres "
    "metres=feet meters=feet feet=metres ft=m kilometres=miles kilometers=miles hours=days days=weeks "
    "weeks=months months=years minutes=hours pounds=tons acres=hectares degrees=percent "
    "percent=points years=months seconds=minutes inches=feet".split()
)


def unit(text: str, around: Around, dice: Random) -> str | None:
    places = list(re.finditer(rf"(?<=\d[ -])(?:{'|'.join(_UNITS)})\b|[$€£%](?=\d)", text))
    if not places:
        return None
    place = dice.choice(places)
    return _put(text, place, _UNITS.get(place.group()) or ("€" if place.group() != "€" else "$"))


_QUANTIFIERS = dict(
    pair.split("=")
    for pair in "some=all many=all several=all most=all often=always usually=always sometimes=always part=all "
    "few=many majority=minority half=all partly=entirely mostly=entirely generally=always certain=all "
    "all=some every=no".split()
)
_DIRECTIONS = dict(
    pair.split("=")
    for pair in "rose=fell fell=rose increased=decreased decreased=increased increase=decrease decrease=increase "
    "higher=lower lower=higher more=less less=more larger=smaller grew=shrank up=down before=after after=before "
    "highest=lowest largest=smallest won=lost lost=won gained=lost above=below below=above under=over over=under "
    "improved=worsened better=worse best=worst first=last reduced=increased bought=sold expanded=shrank "
    "earlier=later later=earlier greater=smaller growth=decline".split()
)
_ANTONYMS = dict(
    pair.split("=")
    for pair in "north=south south=north east=west west=east young=old old=new new=old early=late late=early "
    "public=private private=public male=female female=male married=divorced success=failure "
    "successful=failed popular=unpopular professional=amateur major=minor minor=major large=small "
    "small=large open=closed opened=closed began=ended ended=began started=stopped supported=opposed "
    "opposed=supported accepted=rejected rejected=accepted positive=negative negative=positive "
    "strong=weak weak=strong positive=negative father=mother son=daughter brother=sister husband=wife "
    "wife=husband good=bad easy=difficult possible=impossible legal=illegal hot=cold black=white "
    "white=black left=joined joined=left born=died arrived=departed northern=southern "
    "southern=northern eastern=western western=eastern domestic=foreign foreign=domestic urban=rural "
    "long=short short=long fast=slow high=low low=high famous=unknown included=excluded".split()
)


def _exchanged(table: Mapping[str, str]) -> Callable[[str, Around, Random], str | None]:
    def way(text: str, around: Around, dice: Random) -> str | None:
        places = list(re.finditer(rf"(?<!-)\b(?:{'|'.join(table)})\b(?!-)", text))
        if not places:
            return None
        place = dice.choice(places)
        return _put(text, place, table[place.group()])

    return way


def hedge(text: str, around: Around, dice: Random) -> str | None:
    """What was likely or said to be so is so."""
    places = [
        (r"\b(?:may|might|could) (?:have )?(?=be\b)be\b", "is"), (r"\b(?:may|might|could) (?=[a-z])", "will "),
        (r"\b(?:reportedly|allegedly|possibly|probably|likely|perhaps|apparently|potentially) ", ""),
        (r"\b(?:is|are|was|were) expected to (?=[a-z])", "will "),
        (r"\b(?:plans|hopes|aims|intends|wants) to (?=[a-z])", "will "),
        (r"\bsuggests? that\b", "proves that"), (r"\b(?:appears|seems) to be\b", "is"), (r"\bbelieved to be\b", ""),
    ]  # fmt: skip
    found = [(match, told) for pattern, told in places for match in re.finditer(pattern, text)]
    if not found:
        return None
    place, told = dice.choice(found)
    return re.sub(r"\b(is|are|was|were) (is|are|was|were)\b", r"\1", _put(text, place, told)).replace("  ", " ")


def swapped(text: str, around: Around, dice: Random) -> str | None:
    """Who did it and to whom it was done, exchanged; a list of names is left alone."""
    acts = re.compile(r"\b(?:\w+ed|won|led|beat|by|met|made|from|of|for|to|with|in)\b")
    places = [
        (first, second)
        for first, second in pairwise(names(text))
        if first.group() != second.group() and acts.search(text[first.end() : second.start()])
    ]
    if not places:
        return None
    first, second = dice.choice(places)
    between = text[first.end() : second.start()]
    return text[: first.start()] + second.group() + between + first.group() + text[second.end() :]


_TEMPLATES = (
    "This makes {name} the most successful of its kind in the world.",
    "{name} is widely regarded as the leading example in its field.",
    "Experts agree that {name} changed the course of its industry.",
    "{name} later faced criticism over its handling of the matter.",
    "The success of {name} surprised even its strongest supporters.",
)


def invented(text: str, around: Around, dice: Random) -> str | None:
    found = [match.group() for match in names(text)]
    if dice.random() < 0.5 and found:
        return dice.choice(_TEMPLATES).format(name=dice.choice(found))
    return dice.choice(list(around.elsewhere))


Way = Callable[[str, Around, Random], str | None]
STRICT: Mapping[str, Way] = {"number": number, "date": date, "name": name, "negation": negation}
OTHERS: Mapping[str, Way] = {
    "unit": unit, "quantifier": _exchanged(_QUANTIFIERS), "direction": _exchanged(_DIRECTIONS),
    "antonym": _exchanged(_ANTONYMS), "hedge": hedge, "swap": swapped, "invented": invented,
}  # fmt: skip
CITATION = "citation"  # the words are true and the claim named for them is another


def _put(text: str, place: re.Match[str], told: str) -> str:
    return text[: place.start()] + told + text[place.end() :]
