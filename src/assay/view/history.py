"""What had come of a run at a moment, in one line."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assay.text.words import counted

LONGEST = 100  # characters of what others have written
# What reading a state of another shape raises: written by another version, or by hand.
_ODD = (AttributeError, LookupError, TypeError, ValueError)

Values = Mapping[str, Any]


def summary(values: Values, after: Sequence[str]) -> str:
    """By the stage that was just finished, or, where none was, by what there is."""
    for stage in reversed(after or ("",)):
        try:
            if told := _TOLD.get(stage, _asked)(values):
                return told
        except _ODD:
            continue
    return ""


def _asked(values: Values) -> str:
    if values.get("withdrawn"):
        return f"{counted(len(values['withdrawn']), 'source')} to be taken out"
    return f"asked: {_short(values['original_query'])}"


def _understood(values: Values) -> str:
    if values.get("clarification_question"):
        return f"to be asked back: {_short(values['clarification_question'])}"
    return f"understood: {_short(values['understanding']['question'])}"


def _gated(values: Values) -> str:
    due = len(values["planner_questions"]) - len(values["planner_answers"])
    return f"{counted(due, 'question')} to be asked before planning" if due > 0 else _short(values["gate"]["reason"])


def _planned(values: Values) -> str:
    plan = values["plan"]
    edited = ", changed by you" if plan.get("edited") else ""
    questions = counted(len(plan["questions"]), "sub-question")
    return f"{questions} planned, {counted(len(plan['queries']), 'query', 'queries')}{edited}"


def _dispatched(values: Values) -> str:
    if not values["tasks"]:
        return "nothing left to search for"
    return f"round {values['round']}: {counted(len(values['tasks']), 'sub-question')} to be searched"


def _searched(values: Values) -> str:
    found = [hit for search in values["searched"].values() for hit in search["hits"]]
    asked = sum(len(search["queries"]) for search in values["searched"].values())
    return f"{counted(len(found), 'hit')} for {counted(asked, 'query', 'queries')}"


def _chosen(values: Values) -> str:
    places = [place for chosen in values["selected"].values() for place in chosen]
    documents = len({place["document"] for place in places})
    pages = sum(len(wanted) for wanted in (values.get("pages") or {}).values())
    told = f"{counted(len(places), 'passage')} of {counted(documents, 'document')} chosen"
    return f"{told}, {counted(pages, 'page')} wanted" if pages else told


def _harvested(values: Values) -> str:
    pages = values["harvested"].values()
    return f"{sum(bool(page['document']) for page in pages)} of {counted(len(pages), 'page')} fetched"


def _read(values: Values) -> str:
    quotes = [finding for found in values["read"].values() for finding in found]
    documents = len({finding["span"]["document"] for finding in quotes})
    return f"{counted(len(quotes), 'quote')} from {counted(documents, 'document')}"


def _consolidated(values: Values) -> str:
    sources = counted(len(values["sources"]), "source")
    found = counted(len(values["findings"]), "finding")
    return f"{found} of {sources}, confidence {values['confidence'] / 10:.2f}"


def _analysed(values: Values) -> str:
    analysis = values["analysis"]
    wanting = len(analysis["refinements"])
    again = f"{counted(wanting, 'sub-question')} wanting" if wanting else "nothing wanting"
    return f"round {values['round']} analysed, {again}"


def _verified(values: Values) -> str:
    holding = sum(claim["verdict"] == "supported" for claim in values["claims"])
    return f"{holding} of {counted(len(values['claims']), 'statement')} hold"


def _written(values: Values) -> str:
    draft = values["draft"]
    texts = [sentence["text"] for section in draft["sections"] for sentence in section["sentences"]]
    words = sum(len(text.split()) for text in texts)
    return f"draft {values['iteration']} of {counted(words, 'word')}"


def _reviewed(values: Values) -> str:
    critique = values["critique"]
    return f"{_written(values)}, score {critique['score']:.1f}, {critique['recommendation']}"


def _reported(values: Values) -> str:
    report = values["report"]
    facts = sum(s["kind"] == "fact" for section in report["sections"] for s in section["sentences"])
    return f"report {report['status']}: {counted(facts, 'statement')}, {counted(len(report['sources']), 'source')}"


_TOLD: dict[str, Callable[[Values], str]] = {
    "": _asked, "__start__": _asked, "understand": _understood, "clarify": _understood, "gate": _gated,
    "question": _gated, "plan": _planned, "approve_plan": _planned, "dispatch": _dispatched, "search": _searched,
    "fuse": _chosen, "approve_harvest": _chosen, "harvest": _harvested, "select": _chosen, "read": _read,
    "consolidate": _consolidated, "analyse": _analysed, "verify": _verified, "approve_claims": _verified,
    "withdraw": _verified, "write": _written, "review": _reviewed, "approve_review": _reviewed,
    "approve_output": _reviewed, "publish": _reported, "fallback": _reported,
}  # fmt: skip


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
