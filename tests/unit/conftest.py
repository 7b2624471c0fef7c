"""A test of a single module needs no server: what listens belongs to tests/scenario or tests/contract."""

import socket
from typing import Any, NoReturn

import pytest


@pytest.fixture(autouse=True)
def _no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> NoReturn:
        pytest.fail("a unit test starts no server; move this test to tests/scenario", pytrace=True)

    monkeypatch.setattr(socket.socket, "listen", refuse)
