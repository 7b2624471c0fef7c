"""One attempt at a run that is in line, until it stands still; the same for whoever takes runs up."""

import contextlib
import logging
import math

from assay.engine import Engine
from assay.errors import AssayError, NotFoundError, StorageError, ThreadBusyError
from assay.model.thread import Run
from assay.runner import AT_WORK

_log = logging.getLogger("assay")
UNFORESEEN = 60.0  # seconds after which one is tried again that has met a fault of ours


async def attempt(engine: Engine, run: Run, *, elsewhere: float) -> float | None:
    """Seconds after which to try again: `elsewhere` where another process works on it, infinity: not by itself. None:
    it has ended, or waits for a person. One that is said to be running is tried for, too: its process may be gone."""
    try:
        return await _stood_still(engine, run, elsewhere) if await engine.take_up(run) else None
    except ThreadBusyError:
        return elsewhere
    except NotFoundError:  # its thread was deleted
        return None
    except AssayError as error:
        return await _unable(engine, run, error, elsewhere)
    except Exception:  # noqa: BLE001  # the last line of defence: one run must not stand in the way of the others
        _log.exception("thread %s was not taken up", run.thread)
        return UNFORESEEN


async def _stood_still(engine: Engine, run: Run, elsewhere: float) -> float | None:
    with contextlib.suppress(AssayError):  # how it ended could not be written down
        await engine.wait(run.id)
    # Or its thread was lost to another process, or this one stops.
    return elsewhere if (await engine.threads.run(run.id)).status in AT_WORK else None


async def _unable(engine: Engine, run: Run, error: AssayError, elsewhere: float) -> float | None:
    """Its documents are gone, say: whoever waits for it is told. What may pass is tried again."""
    if (await engine.threads.run(run.id)).status not in AT_WORK:
        return None  # somebody was faster
    _log.warning("thread %s cannot be taken up: %s", run.thread, error.message)
    if error.retryable:
        return elsewhere
    if isinstance(error, StorageError):
        return math.inf
    await engine.give_up(run, error)
    return None
