"""A plan on a terminal, and the words that change it. Sub-questions go by their numbers, sections by their letters."""

from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from assay.cli.approving import Approval
from assay.cli.asking import Said
from assay.cli.lines import counted, dollars, one_line
from assay.cli.reviewed import LETTERS
from assay.cli.screen import item
from assay.errors import AnswerError
from assay.model.edit import MOST_EDITS, Edit, apply, parse
from assay.model.plan import Plan, SubQuestion
from assay.questions import OpenQuestion

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


def show_plan(console: Console, plan: Plan) -> None:
    console.print(Text(f"  {_size(plan)}", style="dim"))
    number = 0
    for letter, section in zip(LETTERS, plan.sections, strict=False):
        asked = [question for question in plan.questions if question.section == section]
        if [question.text for question in asked] != [section]:
            console.print(item(letter, Text(one_line(section), style="bold")))
            letter = " "
        for question in asked:
            number += 1
            console.print(item(f"{letter}  {number}.", Text(one_line(question.text)), 5))
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
        wanted = _EDITS[word](rest, self.plan)
        usage = next(usage for usage in _USAGE if usage.startswith(word))
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
            return Said(told=f"{_plain(error)}. {error.help}")
        self._made.append(edit.plain())
        return Said(again=True)

    def _undone(self) -> Said:
        if self._made:
            self._plans.pop()
        return super()._undone()


def _plain(error: AnswerError) -> str:
    """Without the number an edit has in a list: here there is one at a time."""
    said = error.message.partition(": ")[2] or error.message
    return said[:1].upper() + said[1:].rstrip(".")


# From words to edits; None where the words do not make one ------------------------------------------------

Wanted = dict[str, Any] | None


def _numbered(word: str, plan: Plan) -> SubQuestion | None:
    asked = in_order(plan)
    number = int(word) if word.isdecimal() and len(word) < 4 else 0
    return asked[number - 1] if 1 <= number <= len(asked) else None


def _lettered(word: str, plan: Plan) -> str | None:
    at = LETTERS.find(word.upper()) if len(word) == 1 else -1
    return plan.sections[at] if 0 <= at < len(plan.sections) else None


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
    names = rest.replace(",", " ").split()
    return {"names": names} if names else None


def _budget(rest: str, plan: Plan) -> Wanted:
    try:
        return {"usd": float(rest.removeprefix("$"))}
    except ValueError:
        return None


def _words(rest: str, plan: Plan) -> Wanted:
    digits = rest.replace(",", "").split(" ")[0]
    return {"words": int(digits)} if digits.isdecimal() and len(digits) < 9 else None


_EDITS: dict[str, Callable[[str, Plan], Wanted]] = {
    "add": _add, "remove": _remove, "move": _move, "reword": _reword, "section": _section, "rename": _rename,
    "sources": _sources, "budget": _budget, "words": _words,
}  # fmt: skip
