"""What the readers of a run's events get when the log itself cannot be read."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from openassay.engine.engine import Engine
from openassay.errors import IntegrityError
from openassay.server.stream import EventFeeds
from openassay.storage.shared_services import ProcessSignals


class BrokenLog:
    async def events(self, run: str, after: int) -> AsyncIterator[Any]:
        raise IntegrityError("an event was altered")
        yield  # makes it a generator


@pytest.mark.requirement("W-12")
async def test_a_log_that_cannot_be_read_is_an_error_and_not_the_end_of_the_run() -> None:
    feeds = EventFeeds(cast("Engine", BrokenLog()), ProcessSignals())
    with pytest.raises(IntegrityError, match="an event was altered"):
        [event async for event in feeds.read("run")]
