"""The view of a state."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assay.model.event import Status
from assay.model.question import Clarity, Mode, Turn
from assay.ports import DocumentStore
from assay.stages.dispatch import asked
from assay.state import Plain
from assay.view.evidence import evidence, results
from assay.view.records import DraftView, GateView, PlanView, StateView, Step, UserInputs
from assay.view.shown import Shown, number, text

MESSAGE, DRAFT = 4_000, 200_000  # characters


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
        draft=_draft(shown),
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


# The report -------------------------------------------------------------------------------------------


def _draft(shown: Shown) -> DraftView | None:
    sources = dict(shown.many("sources", lambda source: (text(source["document"]), text(source["id"]))))

    def bound(claim: Plain) -> tuple[str, list[str]]:
        documents = [span["document"] for span in claim["spans"]]
        return text(claim["id"]), [sources[document] for document in documents if document in sources]

    cited = dict(shown.many("claims", bound))
    confidence = shown.one("confidence", lambda value: round(number(value) / 10, 2), 0.0)
    return shown.one("draft", lambda draft: _written(draft, cited, confidence, shown), None)


def _written(draft: Plain, cited: Mapping[str, Sequence[str]], confidence: float, shown: Shown) -> DraftView:
    used = [name for section in draft["sections"] for sentence in section["sentences"] for name in sentence["claims"]]
    return DraftView(
        text=shown.text("\n\n".join(_paragraphs(draft, cited)), DRAFT),
        citations=tuple(dict.fromkeys(source for name in used for source in cited.get(name, ()))),
        confidence=confidence,
    )


def _paragraphs(draft: Plain, cited: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield draft["title"]
    for section in draft["sections"]:
        lines = [_sentence(sentence, cited) for sentence in section["sentences"]]
        yield "\n".join([section["title"], *lines] if section["title"] else lines)


def _sentence(sentence: Plain, cited: Mapping[str, Sequence[str]]) -> str:
    sources = dict.fromkeys(source for name in sentence["claims"] for source in cited.get(name, ()))
    return " ".join([sentence["text"], "".join(f"[{source}]" for source in sources)]).rstrip()


def _issue(issue: Plain) -> str:
    severity, category, location, description = (
        text(issue[key]) for key in ("severity", "category", "location", "description")
    )
    return f"{severity}, {category} ({location}): {description}"


def _turn(message: Plain, shown: Shown) -> Turn:
    turn = Turn(role=message["role"], content=message["content"])
    return turn.model_copy(update={"content": shown.text(turn.content, MESSAGE)})
