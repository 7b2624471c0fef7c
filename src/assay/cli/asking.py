"""Putting a run's questions to the person at the terminal, and handing their answers over."""

import asyncio
import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rich.console import Console, RenderableType
from rich.text import Text

from assay.cli.lines import counted, one_line
from assay.cli.screen import item, open_console, tell
from assay.engine import Engine
from assay.errors import AnswerError
from assay.questions import OpenQuestion
from assay.stages.question import ALL, CUSTOM

if TYPE_CHECKING:
    from assay.cli.prompting import Prompt

MEANWHILE = {
    "approve": "the run goes on as if it were approved",
    "end": "the run ends with what there is",
    "guess": "the run goes on with its best guess",
}
_SETTLING = 10  # looks, half a second apart, until the timer's answer has been taken


class Said(NamedTuple):
    """What comes of a line: an answer, or something to tell before the next one."""

    answer: Any = None
    told: RenderableType = ""
    again: bool = False  # show what it is about once more


class Dialogue(Protocol):
    """One question and what may be typed at it; it knows nothing of terminals."""

    before: str  # what stands before the cursor

    def show(self, console: Console) -> None: ...

    def take(self, line: str) -> Said: ...


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


async def answered(engine: Engine, thread: str, question: OpenQuestion) -> None:
    """Until an answer was taken, by whomever it was given. EOFError and KeyboardInterrupt: the person will not answer
    now, and the question stays open."""
    from assay.cli.prompting import Prompt

    console, prompt, dialogue = open_console(stderr=True), Prompt(), dialogue_for(question)
    _introduce(console, question, dialogue)
    while True:
        try:
            value = await _answer(console, prompt, dialogue, question.due)
            await engine.answer(thread, question.id, value)
        except TimeoutError:
            return await _time_is_up(engine, thread, question)
        except AnswerError as error:
            tell(f"{error.message.rstrip('.')}. {error.help}")
            if not await _is_open(engine, thread, question):
                return None
        else:
            return None


async def _answer(console: Console, prompt: "Prompt", dialogue: Dialogue, due: datetime | None) -> Any:
    while True:
        said = dialogue.take(await prompt.line(dialogue.before, until=due))
        if said.told:
            console.print(said.told, style="cyan")
        if said.again:
            dialogue.show(console)
        if said.answer is not None:
            return said.answer


async def _time_is_up(engine: Engine, thread: str, question: OpenQuestion) -> None:
    tell(f"Time is up: {MEANWHILE[question.on_timeout]}.")
    for _ in range(_SETTLING):
        await engine.settle_overdue()
        if not await _is_open(engine, thread, question):
            return
        await asyncio.sleep(0.5)


async def _is_open(engine: Engine, thread: str, question: OpenQuestion) -> bool:
    return any(question.id == other.id for other in await engine.open_questions(thread))


def dialogue_for(question: OpenQuestion) -> Dialogue:
    if not question.kind.startswith("approve_"):
        return Choice(question)
    from assay.cli.approving import Approval
    from assay.cli.planning import PlanEditor

    return PlanEditor(question) if question.kind == "approve_plan" and "plan" in question.shown else Approval(question)


def _introduce(console: Console, question: OpenQuestion, dialogue: Dialogue) -> None:
    place = f"({question.shown['number']} of {question.shown['of']}) " if question.kind == "planning" else ""
    console.print()
    console.print(Text.assemble((place, "dim"), (one_line(question.question), "bold")))
    dialogue.show(console)
    if question.due is not None:
        console.print(Text(f"Answer {within(question.due)}, else {MEANWHILE[question.on_timeout]}.", style="dim"))


def within(due: datetime) -> str:
    seconds = (due - datetime.now(UTC)).total_seconds()
    if seconds < 90:
        return f"within {counted(max(round(seconds), 0), 'second')}"
    return (
        f"within {counted(round(seconds / 60), 'minute')}" if seconds < 5400 else f"by {due.astimezone():%H:%M, %d %b}"
    )


def how_to_answer(thread: str, question: OpenQuestion) -> tuple[str, str]:
    """What to tell who leaves a question open."""
    answer = "approve" if question.kind.startswith("approve_") else "ANSWER"
    return f"Answer it in a terminal with: assay resume {thread}", f"or with: assay review answer {thread} {answer}"


class Choice:
    """A question with options, or none; own words always do."""

    def __init__(self, question: OpenQuestion) -> None:
        self.before = "> "
        self._options = question.options
        self._listed = [option for option in question.options if option not in (ALL, CUSTOM)]
        self._several = ALL in question.options
        self._free = False  # Custom was chosen, so that a number is an answer too

    def show(self, console: Console) -> None:
        for number, option in enumerate(self._options, 1):
            console.print(item(f"{number}.", Text(one_line(option)), 2))

    def take(self, line: str) -> Said:
        line = line.strip()
        numbers = [int(number) for number in re.findall(r"\d{1,9}", line)]
        if not line:
            return Said(told=self._help())
        if self._free or not self._options or not re.fullmatch(r"\d+(\s*(,|;|and|\s)\s*\d+)*", line):
            return Said(line)
        if not all(1 <= number <= len(self._options) for number in numbers):
            return Said(told=self._help())
        return self._chosen([self._options[number - 1] for number in dict.fromkeys(numbers)])

    def _chosen(self, options: list[str]) -> Said:
        if CUSTOM in options:
            self._free, self.before = True, "Your answer: "
            return Said()
        if ALL in options:
            return Said("; ".join(self._listed))
        if len(options) > 1 and not self._several:
            return Said(told="Only one of them fits here. Choose one, or write your own answer.")
        return Said("; ".join(options))

    def _help(self) -> str:
        several = ", several as 1,3" if self._several else ""
        choose = f"Choose 1 to {len(self._options)}{several}, or write" if self._options else "Write"
        return f"{choose} your own answer. Ctrl-D leaves the question open."
