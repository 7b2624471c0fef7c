"""A plan on a terminal, and the words that change it. Sub-questions go by their numbers, sections by their letters."""

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any

from rich.console import Console
from rich.text import Text

from assay.cli.approving import Approval
from assay.cli.dialogue import Said
from assay.cli.lines import dollars, one_line
from assay.cli.reviewed import LETTERS
from assay.cli.screen import item
from assay.errors import AnswerError
from assay.model.edit import MOST_EDITS, Edit, apply, parse
from assay.model.plan import FEWEST_WORDS, MOST_USD, MOST_WORDS, Plan, SubQuestion
from assay.questions import OpenQuestion
from assay.search.registry import available
from assay.text.words import counted

_USAGE = {
    "add TEXT": "one more sub-question",
    "remove 2": "a sub-question, or a section: remove B",
    "move 3 1": "to another place; sections too: move B A",
    "reword 2 TEXT": "the same, asked otherwise",
    "section 2 B": "put a sub-question into a section, an old one or a new TITLE",
    "rename B TITLE": "a section",
    "sources a,b": "ask these only (see assay sources)",
    "budget 0.50": "the most it may cost, in dollars",
    "words 500": "how long the report may be",
}


def show_plan(console: Console, plan: Plan, *, by_id: bool = False) -> None:
    """`by_id`: sub-questions go by what edits in JSON call them, not by their numbers."""
    console.print(Text(f"  {_size(plan)}", style="dim"))
    number = 0
    for letter, section in zip(LETTERS, plan.sections, strict=False):
        asked = [question for question in plan.questions if question.section == section]
        if [question.text for question in asked] != [section]:
            console.print(item(letter, Text(one_line(section), style="bold")))
            letter = " "
        for question in asked:
            number += 1
            name = question.id if by_id else f"{number}."
            console.print(item(f"{letter}  {name}", Text(one_line(question.text)), 3 + max(len(name), 2)))
    for label, text in _terms(plan):
        console.print(item(label, Text(text), 8))


def in_order(plan: Plan) -> list[SubQuestion]:
    """Sub-questions as they are shown, so that the numbers people see count."""
    return [question for section in plan.sections for question in plan.questions if question.section == section]


def _size(plan: Plan) -> str:
    return (
        f"{plan.depth}: {counted(len(plan.questions), 'sub-question')}, "
        f"{counted(len(plan.queries), 'query', 'queries')}, {counted(len(plan.sections), 'section')}"
    )


def _terms(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.constraints:
        yield "asked", one_line("; ".join(plan.constraints))
    if plan.sources:
        yield "sources", one_line(", ".join(plan.sources))
    if plan.usd is not None:
        yield "budget", f"{dollars(plan.usd)} at most"
    if plan.words is not None:
        yield "length", f"{plan.words:,} words"
    for warning in plan.warnings:
        yield "note", one_line(warning)


class PlanEditor(Approval):
    """Every change is tried at once, so that what is shown is what will be done."""

    before = "plan> "

    def __init__(self, question: OpenQuestion) -> None:
        super().__init__(question)
        self._plans = [Plan.model_validate(question.shown["plan"])]

    @property
    def plan(self) -> Plan:
        return self._plans[-1]

    def changes(self) -> dict[str, str]:
        return _USAGE

    def show(self, console: Console) -> None:
        show_plan(console, self.plan)
        console.print(Text(self.hint(), style="dim"))

    def modified(self) -> dict[str, Any]:
        return {"edits": list(self._made)}

    def change(self, word: str, rest: str) -> Said:
        if len(self._made) == MOST_EDITS:
            return Said(told=f"{MOST_EDITS} changes are the most at once; approve these.")
        usage = next(usage for usage in _USAGE if usage.startswith(word))
        try:
            wanted = _EDITS[word](rest, self.plan)
        except AnswerError as error:
            return _refused(error)
        if wanted is None:
            return Said(told=f"Write it like this: {usage}")
        try:
            (edit,) = parse([{"op": word, **wanted}])
        except AnswerError as error:
            return Said(told=f"{_plain(error)}. Write it like this: {usage}")
        return self._tried(edit)

    def _tried(self, edit: Edit) -> Said:
        try:
            self._plans.append(apply(self.plan, [edit]))
        except AnswerError as error:
            return _refused(error)
        self._made.append(edit.plain())
        return Said(again=True)

    def _undone(self) -> Said:
        if self._made:
            self._plans.pop()
        return super()._undone()


def _refused(error: AnswerError) -> Said:
    said = _plain(error)
    return Said(told=f"{said}{'' if said.endswith('?') else '.'} {error.help}")


def _plain(error: AnswerError) -> str:
    """Without the number an edit has in a list: here there is one at a time."""
    said = error.message.partition(": ")[2] or error.message
    return said[:1].upper() + said[1:].rstrip(".")


# From words to edits: None where the words do not make one, AnswerError where they name what is not there --------

Wanted = dict[str, Any] | None


def _numbered(word: str, plan: Plan) -> SubQuestion | None:
    """By its number on the screen; Q2 is 2."""
    number = re.fullmatch(r"[Qq]?(\d{1,9})", word)
    if number is None:
        return None
    asked, at = in_order(plan), int(number[1])
    if not 1 <= at <= len(asked):
        raise AnswerError(f"there is no sub-question {at}", help=f"They go from 1 to {len(asked)}.")
    return asked[at - 1]


def _lettered(word: str, plan: Plan) -> str | None:
    at = LETTERS.find(word.upper()) if len(word) == 1 else -1
    if at >= len(plan.sections):
        last = LETTERS[len(plan.sections) - 1]
        raise AnswerError(f"there is no section {word.upper()}", help=f"They go from A to {last}.")
    return plan.sections[at] if at >= 0 else None


def _add(rest: str, plan: Plan) -> Wanted:
    return {"text": rest} if rest else None


def _remove(rest: str, plan: Plan) -> Wanted:
    if question := _numbered(rest, plan):
        return {"question": question.id}
    title = _lettered(rest, plan)
    return {"op": "remove_section", "title": title} if title else None


def _move(rest: str, plan: Plan) -> Wanted:
    what, _, where = rest.replace(" to ", " ").partition(" ")
    question, other = _numbered(what, plan), _numbered(where.strip(), plan)
    if question and other:
        return {"question": question.id, "to": plan.questions.index(other) + 1}
    title, place = _lettered(what, plan), _lettered(where.strip(), plan)
    return {"op": "move_section", "title": title, "to": plan.sections.index(place) + 1} if title and place else None


def _reword(rest: str, plan: Plan) -> Wanted:
    number, _, text = rest.partition(" ")
    question = _numbered(number, plan)
    return {"question": question.id, "text": text} if question and text.strip() else None


def _section(rest: str, plan: Plan) -> Wanted:
    number, _, title = rest.partition(" ")
    question, title = _numbered(number, plan), title.strip()
    if question is None or not title:
        return None
    return {"op": "assign", "question": question.id, "section": _lettered(title, plan) or title}


def _rename(rest: str, plan: Plan) -> Wanted:
    letter, _, name = rest.partition(" ")
    title = _lettered(letter, plan)
    return {"op": "rename_section", "title": title, "name": name} if title and name.strip() else None


def _sources(rest: str, plan: Plan) -> Wanted:
    names, known = rest.lower().replace(",", " ").split(), sorted({*available(), *plan.sources})
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise AnswerError(f"there is no source {one_line(name)}{meant}", help=f"There are {', '.join(known)}.")
    return {"names": names} if names else None


def _budget(rest: str, plan: Plan) -> Wanted:
    try:
        usd = float(rest.removeprefix("$").replace(",", ""))
    except ValueError:
        return None
    if not 0 <= usd <= MOST_USD:
        raise AnswerError(f"a budget is from $0 to ${MOST_USD:,}", help="As in: budget 0.50")
    return {"usd": usd}


def _words(rest: str, plan: Plan) -> Wanted:
    digits = rest.replace(",", "").split(" ")[0]
    if not re.fullmatch(r"\d{1,9}", digits):
        return None
    if not FEWEST_WORDS <= int(digits) <= MOST_WORDS:
        raise AnswerError(f"a report has {FEWEST_WORDS} to {MOST_WORDS:,} words", help="As in: words 500")
    return {"words": int(digits)}


_EDITS: dict[str, Callable[[str, Plan], Wanted]] = {
    "add": _add, "remove": _remove, "move": _move, "reword": _reword, "section": _section, "rename": _rename,
    "sources": _sources, "budget": _budget, "words": _words,
}  # fmt: skip
