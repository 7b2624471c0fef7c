"""The graph in LangGraph's own tools: langgraph.json is read as they read it, and a question goes through."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel import Pregel

from openassay.engine.state_view import draw_mermaid
from openassay.errors import QuestionError

ROOT = Path(__file__).resolve().parents[2]
APPLE = {"question": "What's happening with Apple?", "depth": "quick", "source": "demo"}


def named() -> Any:
    """What langgraph.json names, loaded from its file as LangGraph's command line does."""
    [(name, target)] = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"].items()
    file, _, variable = target["path"].rpartition(":")
    spec = importlib.util.spec_from_file_location(f"graph_{name}", ROOT / file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, variable)


@pytest.mark.slow
@pytest.mark.requirement("F-15", "C-01")
async def test_the_graph_is_the_one_that_runs_are_made_of_and_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENASSAY_DATA_DIR", str(tmp_path))
    async with named()({}) as graph:
        assert isinstance(graph, Pregel)
        assert graph.checkpointer is None
        assert graph.get_graph().draw_mermaid() == draw_mermaid()
        assert graph.get_input_jsonschema()["required"] == ["question"]
        done = await graph.ainvoke(APPLE)
        assert done["report"]["status"] == "complete"
        assert done["claims"][0]["verdict"] == "supported", "the state is whole"
        with pytest.raises(QuestionError):
            await graph.ainvoke({"question": "x" * 3000})


@pytest.mark.requirement("W-18")
async def test_with_a_checkpointer_of_theirs_its_steps_can_be_gone_back_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENASSAY_DATA_DIR", str(tmp_path))
    config: Any = {"configurable": {"thread_id": "5f0c9a10-3a60-4b53-9d6e-0a6f0b1f7a11"}}
    async with named()({}) as graph:
        kept = graph.copy({"checkpointer": InMemorySaver()})
        steps = [name async for part in kept.astream(APPLE, config, stream_mode="updates") for name in part]
        assert steps[0] == "understand"
        assert steps[-1] == "publish"
        moments = [moment async for moment in kept.aget_state_history(config)]
        before = next(moment for moment in moments if moment.next == ("write",))
        again = await kept.ainvoke(None, before.config)
        assert again["report"]["status"] == "complete"
