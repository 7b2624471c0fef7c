"""Whatever is sent to whichever route: an answer that the OpenAPI document foresees, and never a fault of the server.
`benchmarks/bench_fuzz.py` does the same at length."""

import asyncio
import socket
from typing import Any

import pytest

from benchmarks.fuzzing import Effort, fuzz
from openassay.server import service
from tests.scenario.server.conftest import Open, token_of

LIMITS = {"requests_per_minute": 1_000_000, "runs_per_user": 2, "start_seconds": 0}


@pytest.mark.slow
@pytest.mark.requirement("W-12")
async def test_a_thousand_generated_requests_meet_no_fault(serve: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def lookup(host: Any, *args: Any, **more: Any) -> Any:
        """Webhooks go to names that nobody knows."""
        if host in ("127.0.0.1", b"127.0.0.1", None):
            return real(host, *args, **more)
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    monkeypatch.setattr(service, "FAILURES_PER_MINUTE", 1_000_000)
    server = await serve(depth="quick", offline=True, log_level="error", server=LIMITS)
    token = await token_of(server, "ada")
    effort = Effort(examples=14, chains=20, coverage=False, cases=1000, seconds=300, strangers=True)
    found = await asyncio.to_thread(fuzz, server.url, token, effort)
    assert not found.failures, "\n".join(f"{place}\n{shown}" for place, shown in found.failures.items())
    assert not found.errors
    assert found.server_errors == 0
    assert found.cases >= 1000
    assert len(found.operations) >= 50, "every route"
    assert {200, 404, 422} <= set(found.statuses), "some of it gets through, and some of it does not"
