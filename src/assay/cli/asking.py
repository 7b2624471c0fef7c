"""Putting a run's questions to the person at the terminal."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from assay.engine import OpenQuestion
from assay.stages.question import ALL, CUSTOM


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def put(question: OpenQuestion) -> str:
    """The answer as text; an option may be chosen by its number. EOFError: the person will not answer now."""
    place = f" ({question.shown['number']} of {question.shown['of']})" if "of" in question.shown else ""
    typer.echo(f"\n{question.question}{place}", err=True)
    for number, option in enumerate(question.options, 1):
        typer.echo(f"  {number}. {option}", err=True)
    choose = f"Choose 1 to {len(question.options)}, or write" if question.options else "Write"
    while not (answer := _meant(question, read_line("> ").strip())):
        typer.echo(f"{choose} your own answer. Ctrl-D leaves the question open.", err=True)
    return answer


def _meant(question: OpenQuestion, answer: str) -> str:
    """What was typed, or the option of that number; nothing for a number that is none of the options'."""
    if not question.options or not answer.isdecimal():
        return answer
    number = int(answer)
    return _chosen(question, question.options[number - 1]) if 1 <= number <= len(question.options) else ""


def read_line(prompt: str) -> str:
    """One line from the terminal; the prompt never gets into an answer that is being redirected."""
    if not sys.stdout.isatty():
        typer.echo(prompt, nl=False, err=True)
        prompt = ""
    with _interruptible():
        return input(prompt)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends the prompt at once; the event loop's own handler would wait for a line first."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _chosen(question: OpenQuestion, option: str) -> str:
    if option == CUSTOM:
        return read_line("Your answer: ").strip()
    if option == ALL:
        return "; ".join(other for other in question.options if other not in (ALL, CUSTOM))
    return option
