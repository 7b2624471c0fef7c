"""Putting a run's questions to the person at the terminal."""

import sys

import typer

from assay.engine import OpenQuestion
from assay.stages.question import ALL, CUSTOM


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def put(question: OpenQuestion) -> str:
    """The answer as text; an option may be chosen by its number."""
    place = f" ({question.shown['number']} of {question.shown['of']})" if "of" in question.shown else ""
    typer.echo(f"\n{question.question}{place}", err=True)
    for number, option in enumerate(question.options, 1):
        typer.echo(f"  {number}. {option}", err=True)
    answer = str(typer.prompt(">", prompt_suffix=" ", err=True, default="", show_default=False)).strip()
    if answer.isdigit() and 1 <= int(answer) <= len(question.options):
        return _chosen(question, question.options[int(answer) - 1])
    return answer


def _chosen(question: OpenQuestion, option: str) -> str:
    if option == CUSTOM:
        return str(typer.prompt("Your answer", err=True))
    if option == ALL:
        return "; ".join(other for other in question.options if other not in (ALL, CUSTOM))
    return option
