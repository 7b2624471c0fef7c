"""progress.md: what a run has found so far, for somebody who looks in after a crash. It only grows."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

QUOTES = 5  # of a sub-question
SHOWN = 240  # characters of a quote
_MARKUP = re.compile(r"[\\`*_\[\]<>!|#]")


class Progress:
    """Says each thing once: every method gives the text to be added."""

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._questions: dict[str, str] = {}
        self._planned = ""
        self._usd = 0.0
        self._told: set[str] = set()
        self._ending = ""

    def opening(self, question: str, started: datetime) -> str:
        return (
            f"# {_line(question)}\n\nBegun on {started:%Y-%m-%d at %H:%M %Z}."
            " This page grows as sub-questions are finished.\n"
            f"If the run was stopped, go on with: `assay resume {self._thread}`, or, where only this folder is left,"
            " with: `assay resume --from FOLDER`\n"
        )

    def plan(self, plan: Mapping[str, Any] | None) -> str:
        """A plan that was changed is told again."""
        questions = {item["id"]: _line(item["text"]) for item in (plan or {}).get("questions", ())}
        text = "".join(f"- {id}: {asked}\n" for id, asked in questions.items())
        if not questions or text == self._planned:
            return ""
        self._questions, self._planned = questions, text
        return f"\n## Plan\n\n{text}"

    def is_news(self, tasks: Collection[str]) -> bool:
        return not self._told.issuperset(tasks)

    def finished(self, task: str, findings: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> str:
        """A sub-question of a round was read."""
        if task in self._told:
            return ""
        self._told.add(task)
        id = str(findings[0]["question"]) if findings else task.rpartition(":")[2]
        best = sorted(findings, key=lambda finding: -finding["relevance"])[:QUOTES]
        lines = [_quoted(finding["span"], titles) for finding in best] or ["Nothing that answers it was found.\n"]
        more = f"- and {len(findings) - QUOTES} more\n" if len(findings) > QUOTES else ""
        cost = f"\nCost so far: ${self._usd:.4f}\n"
        return f"\n## {id}: {self._questions.get(id, 'finished')}\n\n{''.join(lines)}{more}{cost}"

    def event(self, kind: str, stage: str, data: Mapping[str, Any]) -> str:
        match kind:
            case "notice":
                return f"\n> Notice: {_line(data.get('text', ''))}\n"
            case "error":
                return f"\n> Error{f' ({stage})' if stage else ''}: {_line(data.get('message', ''))}\n"
            case "spend":
                self._usd = float(data.get("total_usd", 0))
            case "interrupt":
                return f"\nA question is open. Answer it with: `assay resume {self._thread}`\n"
            case "run":
                self._ending = self._ended(str(data.get("status")))
        return ""

    def ending(self) -> str:
        """How it ended, which is told last: what tasks brought while it was being stopped is found after that."""
        text, self._ending = self._ending, ""
        return text

    def _ended(self, status: str) -> str:
        if status == "done":
            report = f"Read the report with: `assay threads show {self._thread}`"
            return f"\n## Finished\n\nCost: ${self._usd:.4f}. {report}\n"
        if status in ("failed", "cancelled"):
            return f"\nStopped ({status}). Go on with: `assay resume {self._thread}`\n"
        return ""


def _quoted(span: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    quote = span["quote"]
    short = quote if len(quote) <= SHOWN else f"{quote[: SHOWN - 1]}…"
    return f"- “{_line(short)}” ({_line(titles.get(span['document'], span['document'][:12]))})\n"


def _line(text: object) -> str:
    """On one line, and as it stands: text of pages is neither markup nor a command to a terminal."""
    shown = " ".join(str(text).split())
    if not shown.isprintable():
        shown = "".join(character for character in shown if character.isprintable())
    return _MARKUP.sub(lambda found: f"\\{found[0]}", shown)
