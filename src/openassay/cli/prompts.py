"""A plan on a terminal, and the words that change it. Sub-questions go by their numbers, sections by their letters."""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, NamedTuple, Protocol

from rich.console import Console, RenderableType
from rich.text import Text

from openassay.cli.screen import (
    format_dollars,
    is_command,
    make_list_item,
    make_usage_table,
    open_console,
    print_message,
    to_one_line,
)
from openassay.cli.screen import unescape_line as meant
from openassay.engine.engine import Engine
from openassay.engine.questions import OpenQuestion
from openassay.errors import AnswerError
from openassay.models.plan import (
    FEWEST_WORDS,
    MOST_EDITS,
    MOST_USD,
    MOST_WORDS,
    Edit,
    Plan,
    SubQuestion,
    apply_edits,
    parse_edits,
)
from openassay.models.thread import Decision
from openassay.nodes.gate import ALL, CUSTOM
from openassay.search.registry import source_names
from openassay.text.words import pluralize

# One question and what may be typed at it, whoever puts it.


class DialogueReply(NamedTuple):
    """What comes of a line: an answer, or something to tell before the next one."""

    answer: Any = None
    told: RenderableType = ""
    again: bool = False  # show what it is about once more


class Dialogue(Protocol):
    """One question and what may be typed at it; it knows nothing of terminals."""

    before: str  # what stands before the cursor

    @property
    def unsent(self) -> int:
        """Changes that were made and go with an answer."""
        ...

    def show(self, console: Console) -> None: ...

    def handle_line(self, line: str) -> DialogueReply: ...


# What a reviewer sees at a breakpoint, in few lines.

MOST_LISTED = 20  # claims, issues, hosts


def render_breakpoint(shown: dict[str, Any]) -> Iterator[RenderableType]:
    rest = {key: value for key, value in shown.items() if key not in _HIDDEN and value not in (None, [], {}, "")}
    for key, teller in _TELLERS.items():
        if key in rest:
            yield from teller(rest.pop(key))
    for key, value in rest.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        yield make_list_item("•", Text.assemble((f"{key}: ", "cyan"), _shorten(text, 300)))


def _shorten(text: str, most: int = 110) -> str:
    line = to_one_line(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _render_draft(draft: dict[str, Any]) -> Iterator[RenderableType]:
    yield Text(f"  {_shorten(draft['title'])}", style="underline")
    for letter, section in zip(LETTERS, draft["sections"], strict=False):
        sentences = section["sentences"]
        first = f" {_shorten(sentences[0]['text'], 140)}" if sentences else ""
        title = _shorten(section["title"] or section.get("role", ""))
        size = f" ({pluralize(len(sentences), 'sentence')})"
        yield make_list_item(letter, Text.assemble((title, "bold"), (size, "dim"), first))


def _render_critique(critique: dict[str, Any]) -> Iterator[RenderableType]:
    yield Text.assemble("  score ", (f"{critique['score']:.1f}", "bold"), f" of 10, {critique['recommendation']}")


def _render_issues(issues: Sequence[dict[str, Any]]) -> Iterator[RenderableType]:
    for issue in issues[:MOST_LISTED]:
        style = "red" if issue["severity"] == "critical" else "yellow"
        fix = f" → {issue['fix']}" if issue.get("fix") else ""
        yield make_list_item(
            "•", Text.assemble((f"{issue['severity']}: ", style), _shorten(f"{issue['description']}{fix}", 240))
        )
    yield from _render_more(issues)


def _render_claims(claims: Sequence[dict[str, Any]]) -> Iterator[RenderableType]:
    for claim in claims[:MOST_LISTED]:
        judged = f" {str(claim['verdict']).replace('_', ' ')} {claim.get('mark') or ''}".rstrip()
        yield make_list_item(claim["id"], Text.assemble(_shorten(claim["text"], 160), (judged, "dim")), 4)
    yield from _render_more(claims)


def _render_hosts(hosts: Sequence[str]) -> Iterator[RenderableType]:
    listed = ", ".join(_shorten(host, 60) for host in hosts[:MOST_LISTED])
    yield Text.assemble(
        ("  from ", "cyan"), listed, f" and {len(hosts) - MOST_LISTED} more" if hosts[MOST_LISTED:] else ""
    )


def _render_more(items: Sequence[object]) -> Iterator[RenderableType]:
    if items[MOST_LISTED:]:
        yield Text(f"  … and {len(items) - MOST_LISTED} more: openassay review show lists all", style="dim")


def _render_cost(usd: float) -> Iterator[RenderableType]:
    yield Text(f"  about {format_dollars(usd)}" if usd else "  costs nothing")


def _make_count_renderer(noun: str) -> Callable[[int], Iterator[RenderableType]]:
    return lambda number: iter([Text(f"  {pluralize(number, noun)}")])


def _make_length_renderer(noun: str) -> Callable[[Sequence[object]], Iterator[RenderableType]]:
    return lambda items: iter([Text(f"  {pluralize(len(items), noun)}")])


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HIDDEN = frozenset({"breakpoint", "key", "asked", "seconds", "on_timeout", "id", "number", "of", "plan"})
_TELLERS: dict[str, Callable[[Any], Iterator[RenderableType]]] = {
    "pages": _make_count_renderer("web page"),
    "passages": _make_count_renderer("passage"),
    "usd": _render_cost,
    "hosts": _render_hosts,
    "draft": _render_draft,
    "critique": _render_critique,
    "issues": _render_issues,
    "claims": _render_claims,
    "disagreements": _make_length_renderer("disagreement"),
    "sources": _make_length_renderer("source"),
}


# A breakpoint at the terminal: what the reviewer sees, and the words that decide. Changes are gathered and sent along
# with `approve`.

_SYNONYMS = {"yes": "approve", "y": "approve", "ok": "approve", "no": "reject", "n": "reject", "?": "help"}
_DECISIONS = {
    "approve": "go on, with your changes if you made any",
    "reject [WHY]": "end here, with what there is",
    "skip": "go on without deciding",
}
_LOOKS = {"undo": "take the last change back", "show": "look again", "help": "these lines"}
_CHANGES: dict[str, dict[str, str]] = {
    "approve_harvest": {"pages N": "fetch at most so many now", "without HOST": "read nothing from there, later too"},
    "approve_claims": {"drop C2 C5": "leave these statements out"},
    "approve_review": {},
    "approve_output": {
        "fix TEXT": "have it written again, and say how; it comes back to you",
        "drop B": "leave a section out, by letter or title",
        "title TEXT": "another title",
    },
}
_CHANGES["approve_review"] = _CHANGES["approve_output"]


class Approval:
    before = "decide> "

    def __init__(self, question: OpenQuestion) -> None:
        self._question = question
        self._shown = question.shown
        may_modify = Decision.MODIFY in question.options
        self._changes = self.changes() if may_modify else {}
        self._made: list[dict[str, Any]] = []

    # -- what a kind of breakpoint has of its own -----------------------------------------------------------

    def changes(self) -> dict[str, str]:
        return _CHANGES.get(self._question.kind, {})

    def show(self, console: Console) -> None:
        for line in render_breakpoint(self._shown):
            console.print(line)
        for change in self._made:
            console.print(make_list_item("•", Text(_format_change(change), style="green")))
        console.print(Text(self.hint(), style="dim"))

    def apply_change(self, word: str, rest: str) -> DialogueReply:
        """A change by its word; the table in `_WORDS` knows how each is read."""
        made = _WORDS[word](rest, self._shown)
        if isinstance(made, str):
            return DialogueReply(told=made)
        self._made.append(made)
        return DialogueReply(told=f"Noted: {_format_change(made)}. {self.hint()}.")

    def build_answer(self) -> dict[str, Any]:
        """All changes as one answer."""
        answer: dict[str, Any] = {}
        for change in self._made:
            for key, value in change.items():
                answer[key] = [*answer.get(key, ()), *value] if isinstance(value, list) else value
        return answer

    # -- what they share ----------------------------------------------------------------------------------

    def handle_line(self, line: str) -> DialogueReply:
        word, _, rest = line.strip().partition(" ")
        word, rest = _SYNONYMS.get(word.lower(), word.lower()), rest.strip()
        if word in ("approve", "reject", "skip"):
            return self._decide(word, rest)
        if word in {usage.split()[0] for usage in self._changes}:
            return self.apply_change(word, rest)
        match word:
            case "show":
                return DialogueReply(again=True)
            case "undo":
                return self._undo()
            case "help":
                return DialogueReply(told=make_usage_table(self.words))
        return DialogueReply(told=self._explain_unknown(word))

    @property
    def unsent(self) -> int:
        return len(self._made)

    @property
    def words(self) -> dict[str, str]:
        """All that may be said, with what it does."""
        return {**_DECISIONS, **self._changes, **_LOOKS}

    def hint(self) -> str:
        if self._made:
            return f"{pluralize(len(self._made), 'change')} of yours: approve sends, undo takes back"
        changes = ", ".join(usage.split()[0] for usage in self._changes)
        return f"approve, reject or skip{f'; {changes}' if changes else ''}; help explains"

    def _decide(self, word: str, comment: str) -> DialogueReply:
        answer: dict[str, Any] = {"decision": word, **({"comment": comment} if comment else {})}
        if word == "approve" and self._made:
            answer = {**answer, "decision": "modify", **self.build_answer()}
        return DialogueReply(answer)

    def _undo(self) -> DialogueReply:
        if not self._made:
            return DialogueReply(told="There is nothing to take back.")
        self._made.pop()
        return DialogueReply(told="Taken back.", again=True)

    def _explain_unknown(self, word: str) -> str:
        words = [usage.split()[0] for usage in self.words]
        near = get_close_matches(word, words, n=1)
        if near:
            return f"I do not know “{to_one_line(word)}”; did you mean {near[0]}?"
        return f"I do not know “{to_one_line(word)}”. {self.hint()}." if word else self.hint()


# Changes in words --------------------------------------------------------------------------------------

Read = Callable[[str, dict[str, Any]], "dict[str, Any] | str"]  # the change, or what is wrong with its wording


def _parse_pages(rest: str, shown: dict[str, Any]) -> dict[str, Any] | str:
    return {"pages": int(rest)} if rest.isdecimal() and len(rest) < 7 else "Say how many, as in: pages 20"


def _parse_without(rest: str, shown: dict[str, Any]) -> dict[str, Any] | str:
    hosts = rest.replace(",", " ").split()
    return {"without": hosts} if hosts else "Say which, as in: without example.org"


def _parse_fix(rest: str, shown: dict[str, Any]) -> dict[str, Any] | str:
    return {"fixes": [rest]} if rest else "Say what to change, as in: fix give the year for every figure"


def _parse_title(rest: str, shown: dict[str, Any]) -> dict[str, Any] | str:
    return {"title": rest} if rest else "Say how it is to be called, as in: title Tides of the Bay of Fundy"


def _parse_drop(rest: str, shown: dict[str, Any]) -> dict[str, Any] | str:
    if "draft" in shown:
        return _parse_drop_section(rest, [section["title"] for section in shown["draft"]["sections"]])
    known = [claim["id"] for claim in shown.get("claims", ())]
    wanted = rest.upper().replace(",", " ").split()
    if unknown := [name for name in wanted if name not in known]:
        return f"There is no statement {to_one_line(unknown[0])}. They go from {known[0]} to {known[-1]}."
    return {"drop": wanted} if wanted else "Say which, as in: drop C2 C5"


def _parse_drop_section(rest: str, titles: Sequence[str]) -> dict[str, Any] | str:
    lettered = dict(zip(LETTERS.lower(), titles, strict=False)) | {title.lower(): title for title in titles}
    title = lettered.get(rest.lower())
    unknown = f"There is no section {to_one_line(rest)}. " if rest else ""
    return {"drop": [title]} if title else f"{unknown}Say which section, by its letter or title, as in: drop B"


_WORDS: dict[str, Read] = {
    "pages": _parse_pages,
    "without": _parse_without,
    "fix": _parse_fix,
    "title": _parse_title,
    "drop": _parse_drop,
}


def _format_change(change: dict[str, Any]) -> str:
    ((name, value),) = change.items()
    what = {"fixes": "to be written again", "drop": "left out", "pages": "at most so many pages",
            "without": "nothing from", "title": "title"}[name]  # fmt: skip
    return f"{what}: {', '.join(map(str, value)) if isinstance(value, list) else value}"


# Putting a run's questions to the person at the terminal, and handing their answers over.

MEANWHILE = {
    "approve": "the run goes on as if it were approved",
    "end": "the run ends with what there is",
    "guess": "the run goes on with its best guess",
}
_SETTLING = 10  # looks, half a second apart, until the timer's answer has been taken


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


Aside = Callable[[str], Awaitable[bool]]  # a line that may be no answer: whether it was seen to


async def reject_commands(line: str) -> bool:
    if is_command(line):
        print_message(
            "Commands with a slash belong to openassay chat. help tells how to answer; an answer may begin with //."
        )
    return is_command(line)


async def ask_question(engine: Engine, thread: str, question: OpenQuestion, aside: Aside = reject_commands) -> None:
    """Until an answer was taken, by whomever it was given. EOFError and KeyboardInterrupt: the person will not answer
    now, and the question stays open."""
    asking = _QuestionPrompt(engine, thread, question, aside)
    asking.introduce()
    try:
        while not await asking.process_line():
            pass
    except TimeoutError:
        asking.warn_about_changes()
        await asking.handle_timeout()
    except (EOFError, KeyboardInterrupt):
        asking.warn_about_changes()
        raise


class _QuestionPrompt:
    """One question at the prompt."""

    def __init__(self, engine: Engine, thread: str, question: OpenQuestion, aside: Aside) -> None:
        from openassay.cli.line_editor import LineEditor

        self._engine, self._thread, self._question, self._aside = engine, thread, question, aside
        self._console, self._prompt, self._dialogue = open_console(stderr=True), LineEditor(), create_dialogue(question)

    def introduce(self) -> None:
        shown, due = self._question.shown, self._question.due
        place = f"({shown['number']} of {shown['of']}) " if self._question.kind == "planning" else ""
        self._console.print()
        self._console.print(Text.assemble((place, "dim"), (to_one_line(self._question.question), "bold")))
        self._dialogue.show(self._console)
        if due is not None:
            then = MEANWHILE[self._question.on_timeout]
            self._console.print(Text(f"Answer {format_deadline(due)}, else {then}.", style="dim"))

    async def process_line(self) -> bool:
        """One line more: whether it has answered the question, or somebody else has meanwhile."""
        line = await self._prompt.read_line(self._dialogue.before, until=self._question.due)
        if await self._aside(line):
            return not await self._is_open()
        said = self._dialogue.handle_line(meant(line))
        if said.told:
            self._console.print(said.told, style="cyan")
        if said.again:
            self._dialogue.show(self._console)
        return said.answer is not None and await self._submit_answer(said.answer)

    async def _submit_answer(self, answer: Any) -> bool:
        try:
            await self._engine.answer(self._thread, self._question.id, answer)
        except AnswerError as error:
            print_message(f"{error.message.rstrip('.')}. {error.help}")
            if await self._is_open():
                return False
            self.warn_about_changes()
        return True

    def warn_about_changes(self) -> None:
        if self._dialogue.unsent:
            were = "was" if self._dialogue.unsent == 1 else "were"
            print_message(f"{pluralize(self._dialogue.unsent, 'change')} of yours {were} not sent.")

    async def handle_timeout(self) -> None:
        print_message(f"Time is up: {MEANWHILE[self._question.on_timeout]}.")
        for _ in range(_SETTLING):
            await self._engine.answer_overdue()
            if not await self._is_open():
                return
            await asyncio.sleep(0.5)

    async def _is_open(self) -> bool:
        return any(self._question.id == other.id for other in await self._engine.open_questions(self._thread))


def create_dialogue(question: OpenQuestion) -> Dialogue:
    if not question.kind.startswith("approve_"):
        return ChoiceDialogue(question, at_prompt=True)
    pass
    pass

    return PlanEditor(question) if question.kind == "approve_plan" and "plan" in question.shown else Approval(question)


def format_deadline(due: datetime) -> str:
    seconds = (due - datetime.now(UTC)).total_seconds()
    if seconds < 90:
        return f"within {pluralize(max(round(seconds), 0), 'second')}"
    return (
        f"within {pluralize(round(seconds / 60), 'minute')}"
        if seconds < 5400
        else f"by {due.astimezone():%H:%M, %d %b}"
    )


def format_answer_help(thread: str, question: OpenQuestion) -> tuple[str, str]:
    """What to tell who leaves a question open."""
    answer = "approve" if question.kind.startswith("approve_") else "ANSWER"
    return (
        f"Answer it in a terminal with: openassay resume {thread}",
        f"or with: openassay review answer {thread} {answer}",
    )


class ChoiceDialogue:
    """A question with options, or none; own words always do."""

    unsent = 0

    def __init__(self, question: OpenQuestion, *, at_prompt: bool = False) -> None:
        self.before = "> "
        self._at_prompt = at_prompt
        self._options = question.options
        self._listed = [option for option in question.options if option not in (ALL, CUSTOM)]
        self._several = ALL in question.options
        self._free = False  # Custom was chosen, so that a number is an answer too

    def show(self, console: Console) -> None:
        for number, option in enumerate(self._options, 1):
            console.print(make_list_item(f"{number}.", Text(to_one_line(option)), 2))
        if self._several:
            console.print(Text("Several are chosen like this: 1,3", style="dim"))

    def handle_line(self, line: str) -> DialogueReply:
        line = line.strip()
        if not line or line.lower() in ("help", "?"):
            return DialogueReply(told=f"{self._how}{' Ctrl-D leaves the question open.' if self._at_prompt else ''}")
        if self._free or not self._options or not re.fullmatch(r"\d+(\s*(,|;|and|\s)\s*\d+)*", line):
            return DialogueReply(line)
        numbers = [int(number) for number in re.findall(r"\d{1,9}", line)]
        if not all(1 <= number <= len(self._options) for number in numbers):
            return DialogueReply(told=self._how)
        return self._choose([self._options[number - 1] for number in dict.fromkeys(numbers)])

    def _choose(self, options: list[str]) -> DialogueReply:
        if CUSTOM in options:
            self._free, self.before = True, "Your answer: "
            return DialogueReply()
        if ALL in options:
            return DialogueReply("; ".join(self._listed))
        if len(options) > 1 and not self._several:
            return DialogueReply(told="Only one of them fits here. Choose one, or write your own answer.")
        return DialogueReply("; ".join(options))

    @property
    def _how(self) -> str:
        several = ", several as 1,3" if self._several else ""
        choose = f"Choose 1 to {len(self._options)}{several}, or write" if self._options and not self._free else "Write"
        return f"{choose} your own answer."


_USAGE = {
    "add TEXT": "one more sub-question",
    "remove 2": "a sub-question, or a section: remove B",
    "move 3 1": "to another place; sections too: move B A",
    "reword 2 TEXT": "the same, asked otherwise",
    "section 2 B": "put a sub-question into a section, an old one or a new TITLE",
    "rename B TITLE": "a section",
    "sources a,b": "ask these only (see openassay sources)",
    "budget 0.50": "the most it may cost, in dollars",
    "words 500": "how long the report may be",
}


def show_plan(console: Console, plan: Plan, *, by_id: bool = False) -> None:
    """`by_id`: sub-questions go by what edits in JSON call them, not by their numbers."""
    console.print(Text(f"  {_format_size(plan)}", style="dim"))
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
    for label, text in _format_terms(plan):
        console.print(make_list_item(label, Text(text), 8))


def order_questions(plan: Plan) -> list[SubQuestion]:
    """Sub-questions as they are shown, so that the numbers people see count."""
    return [question for section in plan.sections for question in plan.questions if question.section == section]


def _format_size(plan: Plan) -> str:
    return (
        f"{plan.depth}: {pluralize(len(plan.questions), 'sub-question')}, "
        f"{pluralize(len(plan.queries), 'query', 'queries')}, {pluralize(len(plan.sections), 'section')}"
    )


def _format_terms(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.constraints:
        yield "asked", to_one_line("; ".join(plan.constraints))
    if plan.sources:
        yield "sources", to_one_line(", ".join(plan.sources))
    if plan.usd is not None:
        yield "budget", f"{format_dollars(plan.usd)} at most"
    if plan.words is not None:
        yield "length", f"{plan.words:,} words"
    for warning in plan.warnings:
        yield "note", to_one_line(warning)


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

    def build_answer(self) -> dict[str, Any]:
        return {"edits": list(self._made)}

    def apply_change(self, word: str, rest: str) -> DialogueReply:
        if len(self._made) == MOST_EDITS:
            return DialogueReply(told=f"{MOST_EDITS} changes are the most at once; approve these.")
        usage = next(usage for usage in _USAGE if usage.startswith(word))
        try:
            wanted = _EDITS[word](rest, self.plan)
        except AnswerError as error:
            return _format_refusal(error)
        if wanted is None:
            return DialogueReply(told=f"Write it like this: {usage}")
        try:
            (edit,) = parse_edits([{"op": word, **wanted}])
        except AnswerError as error:
            return DialogueReply(told=f"{_format_error(error)}. Write it like this: {usage}")
        return self._try_edit(edit)

    def _try_edit(self, edit: Edit) -> DialogueReply:
        try:
            self._plans.append(apply_edits(self.plan, [edit]))
        except AnswerError as error:
            return _format_refusal(error)
        self._made.append(edit.plain())
        return DialogueReply(again=True)

    def _undo(self) -> DialogueReply:
        if self._made:
            self._plans.pop()
        return super()._undo()


def _format_refusal(error: AnswerError) -> DialogueReply:
    said = _format_error(error)
    return DialogueReply(told=f"{said}{'' if said.endswith('?') else '.'} {error.help}")


def _format_error(error: AnswerError) -> str:
    """Without the number an edit has in a list: here there is one at a time."""
    said = error.message.partition(": ")[2] or error.message
    return said[:1].upper() + said[1:].rstrip(".")


# From words to edits: None where the words do not make one, AnswerError where they name what is not there --------

Wanted = dict[str, Any] | None


def _find_question(word: str, plan: Plan) -> SubQuestion | None:
    """By its number on the screen; Q2 is 2."""
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


def _parse_add(rest: str, plan: Plan) -> Wanted:
    return {"text": rest} if rest else None


def _parse_remove(rest: str, plan: Plan) -> Wanted:
    if question := _find_question(rest, plan):
        return {"question": question.id}
    title = _find_section(rest, plan)
    return {"op": "remove_section", "title": title} if title else None


def _parse_move(rest: str, plan: Plan) -> Wanted:
    what, _, where = rest.replace(" to ", " ").partition(" ")
    question, other = _find_question(what, plan), _find_question(where.strip(), plan)
    if question and other:
        return {"question": question.id, "to": plan.questions.index(other) + 1}
    title, place = _find_section(what, plan), _find_section(where.strip(), plan)
    return {"op": "move_section", "title": title, "to": plan.sections.index(place) + 1} if title and place else None


def _parse_reword(rest: str, plan: Plan) -> Wanted:
    number, _, text = rest.partition(" ")
    question = _find_question(number, plan)
    return {"question": question.id, "text": text} if question and text.strip() else None


def _parse_section(rest: str, plan: Plan) -> Wanted:
    number, _, title = rest.partition(" ")
    question, title = _find_question(number, plan), title.strip()
    if question is None or not title:
        return None
    return {"op": "assign", "question": question.id, "section": _find_section(title, plan) or title}


def _parse_rename(rest: str, plan: Plan) -> Wanted:
    letter, _, name = rest.partition(" ")
    title = _find_section(letter, plan)
    return {"op": "rename_section", "title": title, "name": name} if title and name.strip() else None


def _parse_sources(rest: str, plan: Plan) -> Wanted:
    names, known = rest.lower().replace(",", " ").split(), sorted({*source_names(), *plan.sources})
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise AnswerError(f"there is no source {to_one_line(name)}{meant}", help=f"There are {', '.join(known)}.")
    return {"names": names} if names else None


def _parse_budget(rest: str, plan: Plan) -> Wanted:
    try:
        usd = float(rest.removeprefix("$").replace(",", ""))
    except ValueError:
        return None
    if not 0 <= usd <= MOST_USD:
        raise AnswerError(f"a budget is from $0 to ${MOST_USD:,}", help="As in: budget 0.50")
    return {"usd": usd}


def _parse_words(rest: str, plan: Plan) -> Wanted:
    digits = rest.replace(",", "").split(" ")[0]
    if not re.fullmatch(r"\d{1,9}", digits):
        return None
    if not FEWEST_WORDS <= int(digits) <= MOST_WORDS:
        raise AnswerError(f"a report has {FEWEST_WORDS} to {MOST_WORDS:,} words", help="As in: words 500")
    return {"words": int(digits)}


_EDITS: dict[str, Callable[[str, Plan], Wanted]] = {
    "add": _parse_add,
    "remove": _parse_remove,
    "move": _parse_move,
    "reword": _parse_reword,
    "section": _parse_section,
    "rename": _parse_rename,
    "sources": _parse_sources,
    "budget": _parse_budget,
    "words": _parse_words,
}
