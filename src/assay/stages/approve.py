"""Human breakpoints. Each only asks; whether it stands in the way is decided by the edges in graph.py."""

from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from assay.deps import Deps
from assay.stages.unread import done
from assay.state import State

DECISIONS = ("approve", "reject", "modify", "skip")


async def approve_plan(state: State) -> State:
    decision = _ask("plan", "Is this plan what you want?", plan=state["plan"])
    if decision["decision"] == "modify":
        return {"plan": decision["value"], "plan_approved": True}
    return {"plan_approved": decision["decision"] != "reject", "rejected": decision["decision"] == "reject"}


async def approve_harvest(state: State, runtime: Runtime[Deps]) -> State:
    passages = sum(len(passages) for passages in state["selected"].values())
    wanted = state.get("pages") or {}  # runs that began before pages were fetched have none
    pages = len({page["key"] for chosen in wanted.values() for page in chosen} - done(state["harvested"]))
    quote = runtime.context.quote
    usd = round(quote.reading_usd, 4) if quote else 0.0
    what = " and ".join(
        f"{count} {noun}"
        for count, noun in ((pages, "web pages"), (passages, "passages"))
        if count or noun != "web pages"
    )
    decision = _ask("harvest", f"Read {what}, about ${usd:.2f}?", passages=passages, pages=pages, usd=usd)
    return {"rejected": decision["decision"] == "reject"}


async def approve_output(state: State) -> State:
    decision = _ask("output", "Publish this report?", draft=state["draft"], critique=state["critique"])
    return {"rejected": decision["decision"] == "reject"}


async def approve_critical(state: State) -> State:
    decision = _ask(
        "critical", "The review found a critical issue. Go on?", issues=state["issues"], draft=state["draft"]
    )
    return {"rejected": decision["decision"] == "reject"}


def _ask(kind: str, question: str, **shown: Any) -> dict[str, Any]:
    answer = interrupt({"kind": f"approve_{kind}", "question": question, "options": list(DECISIONS), **shown})
    return answer if isinstance(answer, dict) else {"decision": str(answer).strip().lower(), "value": None}
