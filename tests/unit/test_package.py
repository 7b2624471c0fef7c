"""What the package shows, and what importing it costs."""

import inspect
import json
import subprocess
import sys

import pytest

import openassay
from openassay.export import Report


def run_apart(code: str) -> list[str]:
    """Standard output of a process of its own, as JSON."""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    listed: list[str] = json.loads(done.stdout)
    return listed


def test_the_public_names_are_these_and_no_more() -> None:
    assert openassay.__all__ == ["AsyncClient", "Client", "OpenAssayError", "Report", "aresearch", "research"]
    for name in openassay.__all__:
        assert getattr(openassay, name).__name__ == name
    assert inspect.iscoroutinefunction(openassay.aresearch)
    assert not inspect.iscoroutinefunction(openassay.research)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = openassay.nonsense


def test_a_report_has_what_users_hold_on_to() -> None:
    assert {"markdown", "html", "_repr_html_", "_repr_markdown_"} <= set(dir(Report))
    assert {"claims", "sources", "sections", "status", "coverage"} <= set(Report.model_fields)


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import json, sys, openassay; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"

    loaded = run_apart(code)

    assert "openassay" in loaded
    assert not {"langgraph", "langchain_core", "onnxruntime", "numpy", "pydantic", "langsmith"} & set(loaded)


def test_strict_serialisation_is_set_before_langgraph_can_be_imported() -> None:
    code = "import json, os, openassay; print(json.dumps([os.environ['LANGGRAPH_STRICT_MSGPACK']]))"

    assert run_apart(code) == ["true"]
