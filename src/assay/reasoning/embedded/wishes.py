"""What a person wants of a plan: read from their answers, their own words and what is remembered of them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from assay.model.memory import Preferences
from assay.model.plan import Style
from assay.model.question import Understanding
from assay.reasoning.embedded.asking import ANY_TIME
from assay.reasoning.embedded.length import everything, length_of
from assay.reasoning.embedded.sides import Side, filled, sides
from assay.reasoning.embedded.use import Use, use_of
from assay.reasoning.protocol import PlanRequest
from assay.text.names import names
from assay.text.words import content_words, fold, stems

EVERY = "All of the above"
MOST_NARROWING = 6  # words; of more than that only the names
LONGEST_LINE = 200  # characters of what is repeated in a plan
FOLLOWED = "; one query of each sub-question asks for it"

_NUMBERS = re.compile(r"^\W*[1-4](?:\W+(?:and\W+)?[1-4])*\W*$")
_LAST = re.compile(r"\bthe (?:last|past|previous) [\w ]*?(?:day|week|month|quarter|year|decade)s?\b", re.I)
# What the stage before puts around a person's words.
_ASKED_BACK = re.compile(r"^Asked back: .*? Answer: (?P<answer>.*)$")
_HISTORY = re.compile(r"^(?:Asked|Answered|The conversation so far): ")


class Wishes(NamedTuple):
    sides: tuple[str, ...] = ()  # sub-questions that were chosen
    facets: tuple[str, ...] = ()  # sub-questions that what it is for asks
    period: str | None = None
    words: int | None = None
    style: Style | None = None
    thorough: bool = False  # all there is, is wanted
    narrowing: tuple[str, ...] = ()  # words one query of each sub-question carries
    constraints: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()


def wishes(request: PlanRequest, *, company: bool) -> Wishes:
    asked, answers = request.understanding, request.answers
    offered = sides(asked, company=company)
    depth, use = answers.get("depth", ""), use_of(answers.get("use", ""))
    chosen = _chosen(answers.get("scope", ""), offered, asked)
    facets = (filled(use.text, asked),) if use else ()
    purpose = () if use else tuple(_purpose(answers.get("use", ""), asked))
    period, words = _period(answers.get("timeframe", "")), length_of(depth) if depth else use and use.words
    said = {**_said(request.context), **_remembered(request.preferences, request.facts)}
    said |= {f"field: {field}": field for field in request.domains}
    return Wishes(
        sides=tuple(dict.fromkeys((*chosen, *purpose))),
        facets=facets,
        period=period,
        words=words,
        style=use.style if use else None,
        thorough=everything(depth),
        narrowing=tuple(_narrowing(said, asked)),
        constraints=(*(f"{about}: {_line(answer)}" for about, answer in answers.items()), *said),
        reasoning=(*_effects(answers, chosen, facets or purpose, period, words, use), *_noted(said, asked)),
    )


# The sides --------------------------------------------------------------------------------------------


def _chosen(answer: str, offered: list[Side], understanding: Understanding) -> list[str]:
    """A sub-question for each side that was chosen, by its label or number, or named in words of their own."""
    if _NUMBERS.match(answer):
        return list(dict.fromkeys(offered[int(number) - 1].text for number in re.findall(r"\d", answer)))
    parts = (" ".join(part.split()).strip(" .?!") for part in re.split(r"[;\n]", answer))
    return list(dict.fromkeys(text for part in parts if part for text in _of(part, offered, understanding)))


def _of(part: str, offered: list[Side], understanding: Understanding) -> list[str]:
    if fold(part) == fold(EVERY):
        return [side.text for side in offered]
    if named := [side for side in offered if fold(side.label) in fold(part)]:
        return [side.text for side in named]
    return [filled(f"What is known about {{topic}} with regard to {part}?", understanding)]


# What it is for, and since when -----------------------------------------------------------------------


def _purpose(answer: str, understanding: Understanding) -> Iterator[str]:
    """A purpose of another kind is asked about in the person's words."""
    if purpose := " ".join(answer.split()).strip(" .?!").removeprefix("for ").removeprefix("For "):
        yield filled(f"What matters about {{topic}} for {purpose}?", understanding)


def _period(answer: str) -> str | None:
    """'The last year' is asked for as 'over the last year'."""
    answer = " ".join(answer.split()).strip(" .?!")
    if not answer or fold(answer) in (fold(ANY_TIME), fold(EVERY)):
        return None
    last = _LAST.search(answer)
    return f"over {last[0][:1].lower()}{last[0][1:]}" if last else answer


# What was said and is remembered ----------------------------------------------------------------------


def _said(context: str) -> dict[str, str]:
    """Lines of a plan for what the person said besides the question, and what of it narrows a search."""
    lines: dict[str, str] = {}
    for line in context.splitlines():
        if back := _ASKED_BACK.match(line):
            lines[f"clarified: {_line(back['answer'])}"] = back["answer"]
        elif line.strip() and not _HISTORY.match(line):
            lines[f"context: {_line(line)}"] = line
    return lines


def _remembered(preferences: Preferences, facts: tuple[str, ...]) -> dict[str, str]:
    lines: dict[str, str] = {}
    if preferences.region:
        lines[f"remembered: region {_line(preferences.region)}"] = preferences.region
    others = {
        "language": preferences.language,
        "sources first": ", ".join(preferences.prefer),
        "sources avoided": ", ".join(preferences.avoid),
    }
    lines |= {f"remembered: {name} {_line(value)}": "" for name, value in others.items() if value}
    return lines | {f"remembered: {_line(fact)}": "" for fact in facts}


def _narrowing(said: dict[str, str], understanding: Understanding) -> Iterator[str]:
    """Words that are not the question's own. A long text narrows by the names in it."""
    known = set(stems(understanding.question))
    for text in said.values():
        words = content_words(text)
        if len(words) > MOST_NARROWING:
            words = content_words(" ".join(names(text)))[:MOST_NARROWING]
        for word in words:
            if not known & set(stems(word)):
                known |= set(stems(word))
                yield word


# What the plan says of it -----------------------------------------------------------------------------


def _effects(
    answers: dict[str, str], chosen: list[str], facets: tuple[str, ...], period: str | None, words: int | None,
    use: Use | None,
) -> Iterator[str]:  # fmt: skip
    length = f"about {words:,} words" if words else "as long as the sources allow"
    told = {
        "scope": f"asked as well: {'; '.join(chosen)}",
        "timeframe": f"every query asks {period}" if period else "no period is left out",
        "depth": f"the report is to be {length}",
        "use": f"{f'in the {use.style} style; ' if use else ''}asked as well: {'; '.join(facets)}",
    }
    for about, answer in answers.items():
        yield f"You chose for {about}: {_line(answer)}: {told.get(about, 'kept in mind')}"


def _noted(said: dict[str, str], understanding: Understanding) -> Iterator[str]:
    for line, text in said.items():
        yield f"Taken into account: {line}{FOLLOWED if any(_narrowing({line: text}, understanding)) else ''}"


def _line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST_LINE else f"{flat[: LONGEST_LINE - 1]}…"
