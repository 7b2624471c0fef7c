"""OpenAssay: a deep-research assistant whose every sentence opens the passage that supports it.

from openassay import research
report = research("How did net sales change over 2023?", docs=["filings/"])
print(report.markdown)
"""

import os
from typing import TYPE_CHECKING, Any

# LangGraph reads this once, when it is first imported: without it a crafted checkpoint could run code.
os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")

if TYPE_CHECKING:
    from openassay.client.clients import AsyncClient, Client
    from openassay.errors import OpenAssayError
    from openassay.export import Report
    from openassay.python_api import aresearch, research

__all__ = ["AsyncClient", "Client", "OpenAssayError", "Report", "aresearch", "research"]

_LAZY_IMPORTS = {
    "OpenAssayError": "openassay.errors",
    "AsyncClient": "openassay.client",
    "Client": "openassay.client",
    "Report": "openassay.export",
    "aresearch": "openassay.python_api",
    "research": "openassay.python_api",
}


def __getattr__(name: str) -> Any:
    """Loaded on first use: importing the package costs nothing, and LangGraph takes over a second."""
    if name not in _LAZY_IMPORTS:
        raise AttributeError(f"module 'openassay' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY_IMPORTS[name]), name)
