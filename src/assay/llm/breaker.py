"""A circuit breaker: a provider that keeps failing is left alone for a while."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from assay.errors import ModelError, RateLimitError

FAILURES = 5  # in a row, after which a provider is left alone
SECONDS = 30.0  # before one call may try again


class Breaker:
    """Closed lets every call through, open none; after a while one call may try, and its outcome decides."""

    def __init__(self, clock: Callable[[], float], failures: int = FAILURES, seconds: float = SECONDS) -> None:
        self._clock = clock
        self._most = failures
        self._seconds = seconds
        self._failures = 0
        self._opened: float | None = None
        self._trial: object | None = None

    @contextmanager
    def watched(self, provider: str) -> Iterator[None]:
        """A call to the provider; refused while the breaker is open. However it ends, its trial is given back."""
        trial = self._admitted(provider)
        try:
            yield
            self._closed()
        except ModelError as error:
            self._failed(error)
            raise
        finally:
            if self._trial is trial:
                self._trial = None

    def _admitted(self, provider: str) -> object:
        mine = object()
        if self._opened is not None:
            if self._trial is not None or self._clock() - self._opened < self._seconds:
                raise ModelError(f"{provider} has failed repeatedly and is left alone for a while")
            self._trial = mine
        return mine

    def _closed(self) -> None:
        self._failures, self._opened = 0, None

    def _failed(self, error: ModelError) -> None:
        """A provider that answers, if only to ask for patience or to turn one request down, has not failed."""
        if isinstance(error, RateLimitError):
            return
        if not error.retryable:
            self._closed()
            return
        self._failures += 1
        if self._opened is not None or self._failures >= self._most:
            self._opened = self._clock()
