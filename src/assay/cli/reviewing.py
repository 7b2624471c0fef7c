"""An open question with all there is to decide by, for whoever reviews it away from the terminal it was asked at."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from assay.cli.asking import MEANWHILE, within
from assay.cli.lines import dollars, one_line
from assay.cli.planning import show_plan
from assay.cli.screen import item, open_console
from assay.model.plan import Plan
from assay.questions import OpenQuestion

Plain = dict[str, Any]
_OWN = frozenset({"breakpoint", "key", "id", "number", "of", "plan"})


def show_question(thread: str, about: str, question: OpenQuestion, example: Any) -> None:
    console = open_console()
    console.print(Text(f"Asked while researching: {one_line(about)}", style="dim"))
    place = f" ({question.shown['number']} of {question.shown['of']})" if "of" in question.shown else ""
    console.print(Text.assemble((one_line(question.question), "bold"), place, (f"  {question.kind}", "dim")))
    if question.due is not None:
        then = MEANWHILE[question.on_timeout]
        console.print(Text(f"Answer {within(question.due)}, else {then}.", style="dim"))
    if "plan" in question.shown:
        show_plan(console, Plan.model_validate(question.shown["plan"]), by_id=True)
    for key, value in question.shown.items():
        if key not in _OWN and value not in (None, [], {}, ""):
            _show(console, key, value)
    console.print()
    for line in _ways(thread, question, example):
        console.print(Text(line), soft_wrap=True)  # so that it can be copied


def _show(console: Console, key: str, value: Any) -> None:
    teller = _TELLERS.get(key)
    if teller is None:
        shown = value if isinstance(value, str) else _LINES.get(key, _plainly)(value)
        console.print(item(key, Text(one_line(shown)), max(len(key), 8)))
        return
    console.print(Text(f"\n{key.capitalize()}", style="bold"))
    for head, text in teller(value):
        console.print(item(head, Text(one_line(text)), len(head)))


def _draft(draft: Plain) -> Iterator[tuple[str, str]]:
    yield "", draft["title"]
    for section in draft["sections"]:
        yield "#", section["title"] or section.get("role", "")
        for sentence in section["sentences"]:
            yield "•", f"{sentence['text']} {','.join(sentence['claims'])}".rstrip()


def _issues(issues: Sequence[Plain]) -> Iterator[tuple[str, str]]:
    for issue in issues:
        fix = f" → {issue['fix']}" if issue.get("fix") else ""
        yield f"{issue['severity']}:", f"{issue['description']} ({issue['location']}){fix}"


def _critique(critique: Plain) -> Iterator[tuple[str, str]]:
    yield "", f"{critique['score']:.1f} of 10, {critique['recommendation']}"
    yield "", ", ".join(f"{name} {score:.1f}" for name, score in critique["scores"].items())


def _claims(claims: Sequence[Plain]) -> Iterator[tuple[str, str]]:
    for claim in claims:
        judged = f"{claim['verdict'].replace('_', ' ')} {claim.get('mark') or ''}".rstrip()
        yield claim["id"], f"{claim['text']} ({judged})"


def _sources(sources: Sequence[Plain]) -> Iterator[tuple[str, str]]:
    for source in sources:
        yield source["id"], f"{source['title']} ({source['published'] or 'undated'})"


def _plainly(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


_TELLERS: dict[str, Callable[[Any], Iterator[tuple[str, str]]]] = {
    "draft": _draft, "issues": _issues, "critique": _critique, "claims": _claims, "sources": _sources,
}  # fmt: skip
_LINES: dict[str, Callable[[Any], str]] = {"usd": lambda usd: f"about {dollars(usd)}", "hosts": ", ".join}


def _ways(thread: str, question: OpenQuestion, example: Any) -> Iterator[str]:
    """Commands that answer it."""
    command = f"assay review answer {thread}"
    if not isinstance(example, dict):
        for number, option in enumerate(question.options, 1):
            yield f"  {number}. {one_line(option)}"
        yield f"Answer with: {command} {'NUMBER|TEXT' if question.options else 'TEXT'}"
        return
    decisions = [option for option in question.options if option != "modify"]
    yield f"Answer with: {command} {'|'.join(decisions)} [--comment WHY]"
    if "modify" in question.options:
        changes = {key: value for key, value in example.items() if key not in ("decision", "comment")}
        yield f"or change it: echo '{json.dumps(changes)}' | {command} modify --edits -"
