"""The server from Python.

    from assay import Client
    with Client("http://127.0.0.1:8765", token="assay_...") as assay:
        report = assay.research("How did net sales change over 2023?")
        print(report.markdown)

`AsyncClient` has the same methods, to be awaited. Each call is described once, in calls.py; both clients send it.
"""

from assay.client.answers import Interrupt, Started, StreamEvent
from assay.client.asynchronous import AsyncClient
from assay.client.errors import ApiError
from assay.client.synchronous import Client

__all__ = ["ApiError", "AsyncClient", "Client", "Interrupt", "Started", "StreamEvent"]
