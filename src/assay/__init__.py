"""Assay: a deep-research assistant whose every sentence opens the passage that supports it.

from assay import research
report = research("How did net sales change over 2023?", docs=["filings/"])
print(report.markdown)
"""

import os
from typing import TYPE_CHECKING, Any

# LangGraph reads this once, when it is first imported: without it a crafted checkpoint could run code.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

if TYPE_CHECKING:
    from assay.api import aresearch, research
    from assay.client import AsyncClient, Client
    from assay.errors import AssayError
    from assay.export.report import Report

__all__ = ["AssayError", "AsyncClient", "Client", "Report", "aresearch", "research"]

_HOMES = {
    "AssayError": "assay.errors",
    "AsyncClient": "assay.client",
    "Client": "assay.client",
    "Report": "assay.export.report",
    "aresearch": "assay.api",
    "research": "assay.api",
}


def __getattr__(name: str) -> Any:
    """Loaded on first use: importing the package costs nothing, and LangGraph takes over a second."""
    if name not in _HOMES:
        raise AttributeError(f"module 'assay' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
