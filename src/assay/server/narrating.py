"""Which agent is at work, in lines that chat front ends show as thinking: no draft, and nothing that pages say."""

from collections.abc import Callable, Iterable
from typing import Any

from assay.model.event import Event
from assay.server.paths import shown_event

_AGENTS = {
    "understand": "Planner: understanding the question",
    "plan": "Planner: planning the research",
    "dispatch": "Searcher: searching",
    "harvest": "Searcher: fetching pages",
    "read": "Reader: reading what was found",
    "consolidate": "Analyst: putting findings together",
    "analyse": "Analyst: looking for gaps",
    "verify": "Verifier: checking every statement against its source",
    "write": "Writer: writing the report",
    "review": "Reviewer: judging the draft",
    "withdraw": "Analyst: taking sources out",
    "publish": "Writer: publishing what was checked",
    "fallback": "Writer: publishing the best there is",
}
_Data = dict[str, Any]
_TOLD: dict[tuple[str, str], Callable[[_Data], Iterable[str]]] = {
    ("section", "plan"): lambda data: (f"- {question}" for question in data.get("questions", ())),
    ("finding", ""): lambda data: [f"- {data.get('text')}: {data.get('findings')} findings"],
    ("notice", ""): lambda data: [f"Note: {data.get('text') or data.get('reason') or ''}"],
    ("error", ""): lambda data: [f"Error: {data.get('message')}"],
}


class Narration:
    """Says each thing once."""

    def __init__(self) -> None:
        self._agent = ""
        self._said: set[str] = set()

    def lines(self, events: Iterable[Event]) -> str:
        """What is new, as text to be added."""
        return "".join(f"{line}\n" for event in events for line in self._of(event))

    def note(self, text: str) -> str:
        return f"Note: {text}\n"

    def _of(self, event: Event) -> list[str]:
        if event.kind == "enter":
            return self._turn(_AGENTS.get(event.stage, ""))
        teller = _TOLD.get((event.kind, event.stage)) or _TOLD.get((event.kind, ""))
        lines = [" ".join(line.split()) for line in teller(shown_event(event).data)] if teller else []
        new = [line for line in dict.fromkeys(lines) if line not in self._said]
        self._said.update(new)
        return new

    def _turn(self, agent: str) -> list[str]:
        """Many readers begin at once: they are told of as one."""
        if not agent or agent == self._agent:
            return []
        self._agent = agent
        return [agent]
