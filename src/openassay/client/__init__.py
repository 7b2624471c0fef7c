"""Clients of the server.

    from openassay import Client
    with Client("http://127.0.0.1:8765", token="openassay_...") as openassay:
        report = openassay.research("How did net sales change over 2023?")
        print(report.markdown)

`AsyncClient` has the same methods, to be awaited. Each request is described once, in ApiMethods.
"""

from openassay.client.calls import ApiError, Interrupt, StartResult, StreamEvent
from openassay.client.clients import AsyncClient, Client

__all__ = ["ApiError", "AsyncClient", "Client", "Interrupt", "StartResult", "StreamEvent"]
