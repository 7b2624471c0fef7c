"""A breakpoint at the terminal: what the reviewer sees, and the words that decide. Changes are gathered and sent along
with `approve`."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from rich.console import Console
from rich.text import Text

from assay.cli.dialogue import Said
from assay.cli.lines import one_line
from assay.cli.reviewed import LETTERS, seen
from assay.cli.screen import item, listed
from assay.model.review import Decision
from assay.questions import OpenQuestion
from assay.text.words import counted

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
        for line in seen(self._shown):
            console.print(line)
        for change in self._made:
            console.print(item("•", Text(_told(change), style="green")))
        console.print(Text(self.hint(), style="dim"))

    def change(self, word: str, rest: str) -> Said:
        """A change by its word; the table in `_WORDS` knows how each is read."""
        made = _WORDS[word](rest, self._shown)
        if isinstance(made, str):
            return Said(told=made)
        self._made.append(made)
        return Said(told=f"Noted: {_told(made)}. {self.hint()}.")

    def modified(self) -> dict[str, Any]:
        """All changes as one answer."""
        answer: dict[str, Any] = {}
        for change in self._made:
            for key, value in change.items():
                answer[key] = [*answer.get(key, ()), *value] if isinstance(value, list) else value
        return answer

    # -- what they share ----------------------------------------------------------------------------------

    def take(self, line: str) -> Said:
        word, _, rest = line.strip().partition(" ")
        word, rest = _SYNONYMS.get(word.lower(), word.lower()), rest.strip()
        if word in ("approve", "reject", "skip"):
            return self._decide(word, rest)
        if word in {usage.split()[0] for usage in self._changes}:
            return self.change(word, rest)
        match word:
            case "show":
                return Said(again=True)
            case "undo":
                return self._undone()
            case "help":
                return Said(told=listed(self.words))
        return Said(told=self._unknown(word))

    @property
    def unsent(self) -> int:
        return len(self._made)

    @property
    def words(self) -> dict[str, str]:
        """All that may be said, with what it does."""
        return {**_DECISIONS, **self._changes, **_LOOKS}

    def hint(self) -> str:
        if self._made:
            return f"{counted(len(self._made), 'change')} of yours: approve sends, undo takes back"
        changes = ", ".join(usage.split()[0] for usage in self._changes)
        return f"approve, reject or skip{f'; {changes}' if changes else ''}; help explains"

    def _decide(self, word: str, comment: str) -> Said:
        answer: dict[str, Any] = {"decision": word, **({"comment": comment} if comment else {})}
        if word == "approve" and self._made:
            answer = {**answer, "decision": "modify", **self.modified()}
        return Said(answer)

    def _undone(self) -> Said:
        if not self._made:
            return Said(told="There is nothing to take back.")
        self._made.pop()
        return Said(told="Taken back.", again=True)

    def _unknown(self, word: str) -> str:
        words = [usage.split()[0] for usage in self.words]
        near = get_close_matches(word, words, n=1)
        if near:
            return f"I do not know “{one_line(word)}”; did you mean {near[0]}?"
        return f"I do not know “{one_line(word)}”. {self.hint()}." if word else self.hint()


# Changes in words --------------------------------------------------------------------------------------

Read = Callable[[str, dict[str, Any]], "dict[str, Any] | str"]  # the change, or what is wrong with its wording


def _pages(rest: str, shown: dict[str, Any]) -> dict[str, Any] | str:
    return {"pages": int(rest)} if rest.isdecimal() and len(rest) < 7 else "Say how many, as in: pages 20"


def _without(rest: str, shown: dict[str, Any]) -> dict[str, Any] | str:
    hosts = rest.replace(",", " ").split()
    return {"without": hosts} if hosts else "Say which, as in: without example.org"


def _fix(rest: str, shown: dict[str, Any]) -> dict[str, Any] | str:
    return {"fixes": [rest]} if rest else "Say what to change, as in: fix give the year for every figure"


def _title(rest: str, shown: dict[str, Any]) -> dict[str, Any] | str:
    return {"title": rest} if rest else "Say how it is to be called, as in: title Tides of the Bay of Fundy"


def _drop(rest: str, shown: dict[str, Any]) -> dict[str, Any] | str:
    if "draft" in shown:
        return _drop_section(rest, [section["title"] for section in shown["draft"]["sections"]])
    known = [claim["id"] for claim in shown.get("claims", ())]
    wanted = rest.upper().replace(",", " ").split()
    if unknown := [name for name in wanted if name not in known]:
        return f"There is no statement {one_line(unknown[0])}. They go from {known[0]} to {known[-1]}."
    return {"drop": wanted} if wanted else "Say which, as in: drop C2 C5"


def _drop_section(rest: str, titles: Sequence[str]) -> dict[str, Any] | str:
    lettered = dict(zip(LETTERS.lower(), titles, strict=False)) | {title.lower(): title for title in titles}
    title = lettered.get(rest.lower())
    unknown = f"There is no section {one_line(rest)}. " if rest else ""
    return {"drop": [title]} if title else f"{unknown}Say which section, by its letter or title, as in: drop B"


_WORDS: dict[str, Read] = {"pages": _pages, "without": _without, "fix": _fix, "title": _title, "drop": _drop}


def _told(change: dict[str, Any]) -> str:
    ((name, value),) = change.items()
    what = {"fixes": "to be written again", "drop": "left out", "pages": "at most so many pages",
            "without": "nothing from", "title": "title"}[name]  # fmt: skip
    return f"{what}: {', '.join(map(str, value)) if isinstance(value, list) else value}"
