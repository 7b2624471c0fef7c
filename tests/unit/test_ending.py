"""A process that is told to end ends the step it is at, whoever tells it."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from openassay.cli.runtime import handle_signals

pytestmark = pytest.mark.requirement("W-16")


@pytest.fixture(autouse=True)
def hang_up() -> Iterator[None]:
    """As in a terminal, also where the tests themselves were started with nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


async def told(number: signal.Signals) -> list[str]:
    """What is called when this process gets a signal."""
    called: list[str] = []
    with handle_signals(lambda: called.append("interrupt"), lambda: called.append("terminate")):
        os.kill(os.getpid(), number)
        await asyncio.sleep(0.05)
    return called


@pytest.mark.parametrize(
    ("number", "called"),
    [(signal.SIGINT, "interrupt"), (signal.SIGTERM, "terminate"), (signal.SIGHUP, "terminate")],
)
async def test_each_signal_is_heeded(number: signal.Signals, called: str) -> None:
    assert await told(number) == [called]


async def test_nohup_is_respected() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert await told(signal.SIGHUP) == []


async def test_a_terminal_that_is_gone_is_not_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    keyboard, screen = os.openpty()
    with os.fdopen(screen, "w") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        os.close(keyboard)
        with pytest.raises(OSError, match="Input/output error"):
            os.write(screen, b"x")
        assert await told(signal.SIGHUP) == ["terminate"]
        os.write(screen, b"x")
