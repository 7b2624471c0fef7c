"""The view of a state."""

from collections.abc import Mapping, Sequence
from typing import Any

from assay.model.event import Status
from assay.model.question import Clarity, Mode, Turn
from assay.ports import DocumentStore
from assay.stages.dispatch import asked
from assay.state import Plain
from assay.view.claims import claims
from assay.view.draft import draft
from assay.view.evidence import evidence, results
from assay.view.records import AnalysisView, GateView, PlanView, StateView, Step, UserInputs
from assay.view.shown import Shown, number, text

MESSAGE, QUOTE = 4_000, 600  # characters


async def view(
    values: Mapping[str, Any],
    documents: DocumentStore,
    *,
    thread: str,
    next: Sequence[str] = (),
    checkpoint: str | None = None,
    mode: Mode | None = None,
) -> StateView:
    """`mode` is the thread's, where the question came without one."""
    shown = Shown(values)
    written = draft(shown)
    return StateView(
        thread=thread,
        checkpoint=checkpoint,
        next=tuple(dict.fromkeys(next)),
        status=shown.one("status", Status, Status.PENDING),
        clarity_status=shown.one("clarity_status", Clarity, Clarity.PENDING),
        user_inputs=_inputs(shown, mode),
        plan=shown.one("plan", _plan, None),
        queries=shown.first("queries", _queries(shown)),
        search_results=await results(shown, documents),
        evidence=await evidence(shown, documents),
        analysis=_analysis(shown),
        claims=claims(shown, written),
        draft=written,
        issues=shown.first("issues", shown.many("issues", _issue)),
        subject=shown.one("subject", text, None),
        messages=shown.last("messages", shown.many("messages", lambda message: _turn(message, shown))),
        conversation_summary=shown.one("conversation_summary", text, ""),
        notices=tuple(shown.by_key("notices", text).values()),
        left_out=dict(shown.left_out),
    )


def _inputs(shown: Shown, mode: Mode | None) -> UserInputs:
    return UserInputs(
        goal=shown.one("original_query", text, ""),
        mode_override=shown.one("options", _mode, None) or mode,
        gate=shown.one("gate", _gate, None),
        planner_answers=shown.by_key("planner_answers", text),
    )


def _mode(options: Plain) -> Mode | None:
    said = options.get("mode")
    return None if said is None else Mode(said)


def _gate(gate: Plain) -> GateView:
    return GateView(
        clarity=number(gate["clarity"]), coherence=number(gate["coherence"]), usd=number(gate["estimated_usd"]),
        auto=gate["mode"] == Mode.AUTO, reason=gate["reason"],
    )  # fmt: skip


def _plan(plan: Plain) -> PlanView:
    queries: dict[str, list[str]] = {}
    for query in plan["queries"]:
        queries.setdefault(query["question"], []).append(query["text"])
    dag = [
        Step(id=one["id"], text=one["text"], section=one["section"], queries=tuple(queries.get(one["id"], ())))
        for one in plan["questions"]
    ]
    return PlanView(
        goal=plan["goal"], constraints=tuple(plan["constraints"]), deliverable=plan["deliverable"], dag=tuple(dag)
    )


def _queries(shown: Shown) -> list[str]:
    """Those planned, then those asked besides."""
    planned: list[str] = shown.one("plan", lambda plan: [text(query["text"]) for query in plan["queries"]], [])
    lines = asked({"asked": shown.many("asked", text), "searched": shown.by_key("searched", _search)})
    return list(dict.fromkeys([*planned, *(line.partition(" ")[2] for line in lines)]))


def _search(result: Plain) -> Plain:
    return {
        "question": text(result["question"]),
        "queries": [{"text": text(query["text"])} for query in result["queries"]],
    }


def _analysis(shown: Shown) -> AnalysisView | None:
    analysis = shown.one("analysis", AnalysisView.model_validate, None)
    if analysis is None:
        return None
    sides = [id for matter in analysis.disagreements for side in matter.sides for id in side]
    named = {*(key.finding for key in analysis.key_findings), *sides}
    findings = shown.many("findings", lambda finding: (text(finding["id"]), text(finding["span"]["quote"])))
    quotes = {id: shown.text(quote, QUOTE) for id, quote in findings if id in named}
    return analysis.model_copy(update={"quotes": quotes})


def _issue(issue: Plain) -> str:
    severity, category, location, description = (
        text(issue[key]) for key in ("severity", "category", "location", "description")
    )
    return f"{severity}, {category} ({location}): {description}"


def _turn(message: Plain, shown: Shown) -> Turn:
    turn = Turn(role=message["role"], content=message["content"])
    return turn.model_copy(update={"content": shown.text(turn.content, MESSAGE)})
