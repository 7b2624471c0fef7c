"""Questions of a run at a terminal: what the person sees, and the words that answer, decide or change a plan.

In a plan sub-questions go by their numbers, sections by their letters.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console, RenderableType
from rich.text import Text

from openassay.cli.options import list_source_names
from openassay.cli.screen import (
    format_dollars,
    is_command,
    make_list_item,
    make_usage_table,
    open_console,
    print_message,
    shorten,
    to_one_line,
    unescape_line,
)
from openassay.errors import AnswerError
from openassay.models.plan import (
    FEWEST_WORDS,
    MOST_EDITS,
    MOST_USD,
    MOST_WORDS,
    Plan,
    SubQuestion,
    apply_edits,
    parse_edits,
)
from openassay.models.thread import ALL_OPTIONS, CUSTOM_OPTION, Decision
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.engine.engine import Engine
    from openassay.engine.validation import OpenQuestion

MAX_LISTED = 20  # claims, issues, hosts
TIMEOUT_POLLS = 10  # half a second apart, until a timer's answer has been accepted
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MEANWHILE = {
    "approve": "the run continues as if it were approved",
    "end": "the run ends with what there is",
    "guess": "the run continues with its best guess",
}

Aside = Callable[[str], Awaitable[bool]]  # handles a line that may be no answer, and says whether it did


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


# -- one question at the prompt -------------------------------------------------------------------------------


class DialogueReply(NamedTuple):
    """What comes of a line: an answer, or a message before the next line."""

    answer: Any = None
    message: RenderableType = ""
    again: bool = False  # show what it is about once more


async def reject_commands(line: str) -> bool:
    if is_command(line):
        print_message(
            "Commands with a slash belong to openassay chat. help explains how to answer; an answer may begin with //."
        )
    return is_command(line)


async def ask_question(engine: Engine, thread: str, question: OpenQuestion, aside: Aside = reject_commands) -> None:
    """Ask until an answer was accepted, whoever gave it. EOFError and KeyboardInterrupt: the person will not answer
    now, and the question stays open."""
    from openassay.cli.line_editor import LineEditor

    async def is_open() -> bool:
        return any(question.id == other.id for other in await engine.interrupts.open_questions(thread))

    console, editor, dialogue = open_console(stderr=True), LineEditor(), create_dialogue(question)
    place = f"({question.shown['number']} of {question.shown['of']}) " if question.kind == "planning" else ""
    console.print()
    console.print(Text.assemble((place, "dim"), (to_one_line(question.question), "bold")))
    dialogue.show(console)
    if question.due is not None:
        then = MEANWHILE[question.on_timeout]
        console.print(Text(f"Answer {format_deadline(question.due)}, else {then}.", style="dim"))
    try:
        while await is_open():
            line = await editor.read_line(dialogue.before, until=question.due)
            if await aside(line):
                continue
            reply = dialogue.handle_line(unescape_line(line))
            if reply.message:
                console.print(reply.message, style="cyan")
            if reply.again:
                dialogue.show(console)
            if reply.answer is not None:
                try:
                    await engine.interrupts.answer(thread, question.id, reply.answer)
                except AnswerError as error:
                    print_message(f"{error.message.rstrip('.')}. {error.help}")
                else:
                    return
        _warn_of_unsent(dialogue)
    except TimeoutError:
        _warn_of_unsent(dialogue)
        print_message(f"Time is up: {MEANWHILE[question.on_timeout]}.")
        for _ in range(TIMEOUT_POLLS):
            await engine.interrupts.answer_overdue()
            if not await is_open():
                return
            await asyncio.sleep(0.5)
    except (EOFError, KeyboardInterrupt):
        _warn_of_unsent(dialogue)
        raise


def _warn_of_unsent(dialogue: ChoiceDialogue | Approval) -> None:
    if dialogue.unsent:
        were = "was" if dialogue.unsent == 1 else "were"
        print_message(f"{pluralize(dialogue.unsent, 'change')} of yours {were} not sent.")


def create_dialogue(question: OpenQuestion) -> ChoiceDialogue | Approval:
    if not question.kind.startswith("approve_"):
        return ChoiceDialogue(question, at_prompt=True)
    return PlanEditor(question) if question.kind == "approve_plan" and "plan" in question.shown else Approval(question)


def format_deadline(due: datetime) -> str:
    seconds = (due - datetime.now(UTC)).total_seconds()
    if seconds < 90:
        return f"within {pluralize(max(round(seconds), 0), 'second')}"
    if seconds < 5400:
        return f"within {pluralize(round(seconds / 60), 'minute')}"
    return f"by {due.astimezone():%H:%M, %d %b}"


def format_answer_help(thread: str, question: OpenQuestion) -> tuple[str, str]:
    """Say how a question that is left open can be answered."""
    answer = "approve" if question.kind.startswith("approve_") else "ANSWER"
    return (
        f"Answer it in a terminal with: openassay resume {thread}",
        f"or with: openassay review answer {thread} {answer}",
    )


class ChoiceDialogue:
    """A question with options, or none; own words are always accepted."""

    unsent = 0

    def __init__(self, question: OpenQuestion, *, at_prompt: bool = False) -> None:
        self.before = "> "
        self._at_prompt = at_prompt
        self._options = question.options
        self._several = ALL_OPTIONS in question.options
        self._free = False  # Custom was chosen, so that a number is an answer too

    def show(self, console: Console) -> None:
        for number, option in enumerate(self._options, 1):
            console.print(make_list_item(f"{number}.", Text(to_one_line(option)), 2))
        if self._several:
            console.print(Text("Several are chosen like this: 1,3", style="dim"))

    def handle_line(self, line: str) -> DialogueReply:
        line = line.strip()
        several = ", several as 1,3" if self._several else ""
        choose = f"Choose 1 to {len(self._options)}{several}, or write" if self._options and not self._free else "Write"
        help = f"{choose} your own answer."
        if not line or line.lower() in ("help", "?"):
            return DialogueReply(message=f"{help}{' Ctrl-D leaves the question open.' if self._at_prompt else ''}")
        if self._free or not self._options or not re.fullmatch(r"\d+(\s*(,|;|and|\s)\s*\d+)*", line):
            return DialogueReply(line)
        numbers = [int(number) for number in re.findall(r"\d{1,9}", line)]
        if not all(1 <= number <= len(self._options) for number in numbers):
            return DialogueReply(message=help)
        chosen = [self._options[number - 1] for number in dict.fromkeys(numbers)]
        if CUSTOM_OPTION in chosen:
            self._free, self.before = True, "Your answer: "
            return DialogueReply()
        if ALL_OPTIONS in chosen:
            chosen = [option for option in self._options if option not in (ALL_OPTIONS, CUSTOM_OPTION)]
        elif len(chosen) > 1 and not self._several:
            return DialogueReply(message="Only one can be chosen here. Choose one, or write your own answer.")
        return DialogueReply("; ".join(chosen))


# -- a breakpoint: changes are collected and sent along with `approve` ----------------------------------------

_SYNONYMS = {"yes": "approve", "y": "approve", "ok": "approve", "no": "reject", "n": "reject", "?": "help"}
_DECISIONS = {
    "approve": "continue, with your changes if you made any",
    "reject [WHY]": "end here, with what there is",
    "skip": "continue without deciding",
}
_LOOKS = {"undo": "take the last change back", "show": "look again", "help": "these lines"}
_OUTPUT_CHANGES = {
    "fix TEXT": "have it written again, and say how; it comes back to you",
    "drop B": "leave a section out, by letter or title",
    "title TEXT": "another title",
}
_CHANGES: dict[str, dict[str, str]] = {
    "approve_harvest": {"pages N": "fetch at most N now", "without HOST": "read nothing from there, later too"},
    "approve_claims": {"drop C2 C5": "leave these statements out"},
    "approve_review": _OUTPUT_CHANGES,
    "approve_output": _OUTPUT_CHANGES,
}


class Approval:
    before = "decide> "

    def __init__(self, question: OpenQuestion) -> None:
        self._shown = question.shown
        self._changes = _CHANGES.get(question.kind, {}) if Decision.MODIFY in question.options else {}
        self._made: list[dict[str, Any]] = []

    def show(self, console: Console) -> None:
        for line in render_breakpoint(self._shown):
            console.print(line)
        for change in self._made:
            console.print(make_list_item("•", Text(_format_change(change), style="green")))
        console.print(Text(self.hint(), style="dim"))

    def apply_change(self, word: str, rest: str) -> DialogueReply:
        """Make a change in words, or say what is wrong with its wording."""
        made: dict[str, Any] | str
        match word:
            case "pages":
                is_number = rest.isdecimal() and len(rest) < 7
                made = {"pages": int(rest)} if is_number else "Say how many, as in: pages 20"
            case "without":
                hosts = rest.replace(",", " ").split()
                made = {"without": hosts} if hosts else "Say which, as in: without example.org"
            case "fix":
                made = {"fixes": [rest]} if rest else "Say what to change, as in: fix give the year for every figure"
            case "title":
                made = {"title": rest} if rest else "Say what the title is, as in: title Tides of the Bay of Fundy"
            case "drop" if "draft" in self._shown:
                titles = [section["title"] for section in self._shown["draft"]["sections"]]
                by_name = dict(zip(LETTERS.lower(), titles, strict=False)) | {title.lower(): title for title in titles}
                unknown = f"There is no section {to_one_line(rest)}. " if rest else ""
                made = f"{unknown}Say which section, by its letter or title, as in: drop B"
                if title := by_name.get(rest.lower()):
                    made = {"drop": [title]}
            case _:
                known = [claim["id"] for claim in self._shown.get("claims", ())]
                wanted = rest.upper().replace(",", " ").split()
                made = {"drop": wanted} if wanted else "Say which, as in: drop C2 C5"
                if wrong := [name for name in wanted if name not in known]:
                    made = f"There is no statement {to_one_line(wrong[0])}. They go from {known[0]} to {known[-1]}."
        if isinstance(made, str):
            return DialogueReply(message=made)
        self._made.append(made)
        return DialogueReply(message=f"Noted: {_format_change(made)}. {self.hint()}.")

    def build_answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        for change in self._made:
            for key, value in change.items():
                answer[key] = [*answer.get(key, ()), *value] if isinstance(value, list) else value
        return answer

    def undo(self) -> DialogueReply:
        if not self._made:
            return DialogueReply(message="There is nothing to take back.")
        self._made.pop()
        return DialogueReply(message="Taken back.", again=True)

    def handle_line(self, line: str) -> DialogueReply:
        word, _, rest = line.strip().partition(" ")
        word, rest = _SYNONYMS.get(word.lower(), word.lower()), rest.strip()
        words = {**_DECISIONS, **self._changes, **_LOOKS}
        if word in ("approve", "reject", "skip"):
            answer: dict[str, Any] = {"decision": word, **({"comment": rest} if rest else {})}
            if word == "approve" and self._made:
                answer = {**answer, "decision": "modify", **self.build_answer()}
            return DialogueReply(answer)
        if word in {usage.split()[0] for usage in self._changes}:
            return self.apply_change(word, rest)
        match word:
            case "show":
                return DialogueReply(again=True)
            case "undo":
                return self.undo()
            case "help":
                return DialogueReply(message=make_usage_table(words))
        if not word:
            return DialogueReply(message=self.hint())
        near = get_close_matches(word, [usage.split()[0] for usage in words], n=1)
        unknown = f"I do not know “{to_one_line(word)}”"
        return DialogueReply(message=f"{unknown}; did you mean {near[0]}?" if near else f"{unknown}. {self.hint()}.")

    @property
    def unsent(self) -> int:
        return len(self._made)

    def hint(self) -> str:
        if self._made:
            return f"{pluralize(len(self._made), 'change')} of yours: approve sends, undo takes back"
        changes = ", ".join(usage.split()[0] for usage in self._changes)
        return f"approve, reject or skip{f'; {changes}' if changes else ''}; help explains"


def render_breakpoint(shown: dict[str, Any]) -> Iterator[RenderableType]:
    """Show what there is to decide by, in few lines."""
    parts = {key: value for key, value in shown.items() if key not in _HIDDEN and value not in (None, [], {}, "")}
    for key in (key for key in dict.fromkeys((*_SHOWN_FIRST, *parts)) if key in parts):
        value = parts[key]
        match key:
            case "pages":
                yield Text(f"  {pluralize(value, 'web page')}")
            case "passages":
                yield Text(f"  {pluralize(value, 'passage')}")
            case "usd":
                yield Text(f"  about {format_dollars(value)}" if value else "  costs nothing")
            case "hosts":
                listed = ", ".join(shorten(host, 60) for host in value[:MAX_LISTED])
                more = f" and {len(value) - MAX_LISTED} more" if value[MAX_LISTED:] else ""
                yield Text.assemble(("  from ", "cyan"), listed, more)
            case "draft":
                yield Text(f"  {shorten(value['title'], 110)}", style="underline")
                for letter, section in zip(LETTERS, value["sections"], strict=False):
                    sentences = section["sentences"]
                    first = f" {shorten(sentences[0]['text'], 140)}" if sentences else ""
                    title = shorten(section["title"] or section.get("role", ""), 110)
                    size = f" ({pluralize(len(sentences), 'sentence')})"
                    yield make_list_item(letter, Text.assemble((title, "bold"), (size, "dim"), first))
            case "critique":
                yield Text.assemble("  score ", (f"{value['score']:.1f}", "bold"), f" of 10, {value['recommendation']}")
            case "issues":
                for issue in value[:MAX_LISTED]:
                    style = "red" if issue["severity"] == "critical" else "yellow"
                    fix = f" → {issue['fix']}" if issue.get("fix") else ""
                    text = shorten(f"{issue['description']}{fix}", 240)
                    yield make_list_item("•", Text.assemble((f"{issue['severity']}: ", style), text))
            case "claims":
                for claim in value[:MAX_LISTED]:
                    judged = f" {str(claim['verdict']).replace('_', ' ')} {claim.get('mark') or ''}".rstrip()
                    yield make_list_item(claim["id"], Text.assemble(shorten(claim["text"], 160), (judged, "dim")), 4)
            case "disagreements" | "sources":
                yield Text(f"  {pluralize(len(value), key.removesuffix('s'))}")
            case _:
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
                yield make_list_item("•", Text.assemble((f"{key}: ", "cyan"), shorten(text, 300)))
        if key in ("issues", "claims") and value[MAX_LISTED:]:
            yield Text(f"  … and {len(value) - MAX_LISTED} more: openassay review show lists all", style="dim")


_HIDDEN = frozenset({"breakpoint", "key", "asked", "seconds", "on_timeout", "id", "number", "of", "plan"})
_SHOWN_FIRST = "pages passages usd hosts draft critique issues claims disagreements sources".split()
_CHANGE_NAMES = {
    "fixes": "to be written again",
    "drop": "left out",
    "pages": "pages at most",
    "without": "nothing from",
    "title": "title",
}


def _format_change(change: dict[str, Any]) -> str:
    ((name, value),) = change.items()
    return f"{_CHANGE_NAMES[name]}: {', '.join(map(str, value)) if isinstance(value, list) else value}"


# -- a plan -------------------------------------------------------------------------------------------------

_USAGE = {
    "add TEXT": "one more sub-question",
    "remove 2": "a sub-question, or a section: remove B",
    "move 3 1": "move it to another place; sections too: move B A",
    "reword 2 TEXT": "ask it in other words",
    "section 2 B": "put a sub-question into a section, an old one or a new TITLE",
    "rename B TITLE": "a section",
    "sources a,b": "ask these only (see openassay sources)",
    "budget 0.50": "the most it may cost, in dollars",
    "words 500": "how long the report may be",
}


def show_plan(console: Console, plan: Plan, *, by_id: bool = False) -> None:
    """Show a plan. `by_id`: sub-questions go by what edits in JSON call them, not by their numbers."""
    questions, sections = pluralize(len(plan.questions), "sub-question"), pluralize(len(plan.sections), "section")
    size = f"{plan.depth}: {questions}, {pluralize(len(plan.queries), 'query', 'queries')}, {sections}"
    console.print(Text(f"  {size}", style="dim"))
    number = 0
    for letter, section in zip(LETTERS, plan.sections, strict=False):
        asked = [question for question in plan.questions if question.section == section]
        if [question.text for question in asked] != [section]:
            console.print(make_list_item(letter, Text(to_one_line(section), style="bold")))
            letter = " "
        for question in asked:
            number += 1
            name = question.id if by_id else f"{number}."
            console.print(make_list_item(f"{letter}  {name}", Text(to_one_line(question.text)), 3 + max(len(name), 2)))
    terms = [
        ("asked", "; ".join(plan.constraints)),
        ("sources", ", ".join(plan.sources)),
        ("budget", f"{format_dollars(plan.usd)} at most" if plan.usd is not None else ""),
        ("length", f"{plan.words:,} words" if plan.words is not None else ""),
    ]
    for label, text in (*((label, text) for label, text in terms if text), *(("note", one) for one in plan.warnings)):
        console.print(make_list_item(label, Text(to_one_line(text)), 8))


def order_questions(plan: Plan) -> list[SubQuestion]:
    """Put sub-questions in the order in which they are shown and numbered."""
    return [question for section in plan.sections for question in plan.questions if question.section == section]


class PlanEditor(Approval):
    """Every change is tried at once, so that what is shown is what will be done."""

    before = "plan> "

    def __init__(self, question: OpenQuestion) -> None:
        super().__init__(question)
        self._changes = _USAGE if Decision.MODIFY in question.options else {}
        self._plans = [Plan.model_validate(question.shown["plan"])]

    @property
    def plan(self) -> Plan:
        return self._plans[-1]

    def show(self, console: Console) -> None:
        show_plan(console, self.plan)
        console.print(Text(self.hint(), style="dim"))

    def build_answer(self) -> dict[str, Any]:
        return {"edits": list(self._made)}

    def apply_change(self, word: str, rest: str) -> DialogueReply:
        if len(self._made) == MOST_EDITS:
            return DialogueReply(message=f"{MOST_EDITS} changes are the most at once; approve these.")
        usage = next(usage for usage in _USAGE if usage.startswith(word))
        write = f"Write it like this: {usage}"
        try:
            fields = _parse_edit(word, rest, self.plan)
        except AnswerError as error:
            return _format_refusal(error)
        if fields is None:
            return DialogueReply(message=write)
        try:
            (edit,) = parse_edits([{"op": word, **fields}])
        except AnswerError as error:
            return DialogueReply(message=f"{_format_error(error)}. {write}")
        try:
            self._plans.append(apply_edits(self.plan, [edit]))
        except AnswerError as error:
            return _format_refusal(error)
        self._made.append(edit.plain())
        return DialogueReply(again=True)

    def undo(self) -> DialogueReply:
        if self._made:
            self._plans.pop()
        return super().undo()


def _format_refusal(error: AnswerError) -> DialogueReply:
    reason = _format_error(error)
    return DialogueReply(message=f"{reason}{'' if reason.endswith('?') else '.'} {error.help}")


def _format_error(error: AnswerError) -> str:
    """Leave out the number an edit has in a list: here there is one at a time."""
    reason = error.message.partition(": ")[2] or error.message
    return reason[:1].upper() + reason[1:].rstrip(".")


def _find_question(word: str, plan: Plan) -> SubQuestion | None:
    """Find a sub-question by its number on the screen; Q2 is 2."""
    number = re.fullmatch(r"[Qq]?(\d{1,9})", word)
    if number is None:
        return None
    asked, at = order_questions(plan), int(number[1])
    if not 1 <= at <= len(asked):
        raise AnswerError(f"there is no sub-question {at}", help=f"They go from 1 to {len(asked)}.")
    return asked[at - 1]


def _find_section(word: str, plan: Plan) -> str | None:
    at = LETTERS.find(word.upper()) if len(word) == 1 else -1
    if at >= len(plan.sections):
        last = LETTERS[len(plan.sections) - 1]
        raise AnswerError(f"there is no section {word.upper()}", help=f"They go from A to {last}.")
    return plan.sections[at] if at >= 0 else None


def _parse_edit(word: str, rest: str, plan: Plan) -> dict[str, Any] | None:
    """Return the fields of an edit: None where the words do not make one, AnswerError where they name what is not
    there."""
    first, _, second = rest.partition(" ")
    match word:
        case "add":
            return {"text": rest} if rest else None
        case "remove":
            if question := _find_question(rest, plan):
                return {"question": question.id}
            title = _find_section(rest, plan)
            return {"op": "remove_section", "title": title} if title else None
        case "move":
            what, _, where = rest.replace(" to ", " ").partition(" ")
            question, other = _find_question(what, plan), _find_question(where.strip(), plan)
            if question and other:
                return {"question": question.id, "to": plan.questions.index(other) + 1}
            title, place = _find_section(what, plan), _find_section(where.strip(), plan)
            if title and place:
                return {"op": "move_section", "title": title, "to": plan.sections.index(place) + 1}
            return None
        case "reword":
            question = _find_question(first, plan)
            return {"question": question.id, "text": second} if question and second.strip() else None
        case "section":
            question, title = _find_question(first, plan), second.strip()
            if question is None or not title:
                return None
            return {"op": "assign", "question": question.id, "section": _find_section(title, plan) or title}
        case "rename":
            title = _find_section(first, plan)
            return {"op": "rename_section", "title": title, "name": second} if title and second.strip() else None
        case "sources":
            names, known = rest.lower().replace(",", " ").split(), sorted({*list_source_names(), *plan.sources})
            for name in names:
                if name not in known:
                    near = get_close_matches(name, known, n=1)
                    what = f"{to_one_line(name)}{f'; did you mean {near[0]}?' if near else ''}"
                    raise AnswerError(f"there is no source {what}", help=f"There are {', '.join(known)}.")
            return {"names": names} if names else None
        case "budget":
            try:
                usd = float(rest.removeprefix("$").replace(",", ""))
            except ValueError:
                return None
            if not 0 <= usd <= MOST_USD:
                raise AnswerError(f"a budget is from $0 to ${MOST_USD:,}", help="As in: budget 0.50")
            return {"usd": usd}
        case _:  # words
            digits = first.replace(",", "")
            if not re.fullmatch(r"\d{1,9}", digits):
                return None
            if not FEWEST_WORDS <= int(digits) <= MOST_WORDS:
                raise AnswerError(f"a report has {FEWEST_WORDS} to {MOST_WORDS:,} words", help="As in: words 500")
            return {"words": int(digits)}
