"""Every error OpenAssay raises on purpose.

Each carries its context (run, stage, provider, path), says whether a retry can help, and has a `help`
line that the command line prints below the message.
"""

from enum import StrEnum
from typing import ClassVar


class Category(StrEnum):
    """What kind of thing went wrong; a handler is chosen by it."""

    API = "api"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    VALIDATION = "validation"
    PARSING = "parsing"
    CONTEXT_OVERFLOW = "context_overflow"
    INTERNAL = "internal"


class Severity(StrEnum):
    """What it means for the run."""

    RECOVERABLE = "recoverable"
    DEGRADED = "degraded"
    FATAL = "fatal"


class OpenAssayError(Exception):
    """Base of all errors raised on purpose."""

    category: ClassVar[Category] = Category.INTERNAL
    severity: ClassVar[Severity] = Severity.FATAL
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, help: str = "", retryable: bool = False, **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.help = help
        self.retryable = retryable
        self.context = context


def category_of(error: BaseException) -> Category:
    """Return the category of an error; what was not raised on purpose is our own fault."""
    return error.category if isinstance(error, OpenAssayError) else Category.INTERNAL


class UsageError(OpenAssayError):
    """The caller asked for something that cannot be."""

    category = Category.VALIDATION
    exit_code = 2


class QuestionError(UsageError):
    """The question is empty, too long or not text."""


class PathError(UsageError):
    """A path of documents is missing, empty or unreadable."""


class NotFoundError(UsageError):
    """There is no such thread, run or document."""


class ConfigurationError(OpenAssayError):
    """A setting or an installed file is wrong."""

    category = Category.VALIDATION
    exit_code = 2


# What of the Makefile installs an extra; the others are installed by their name.
_TARGETS = {"export": "venv", "postgres": "fleet", "fleet": "fleet", "telemetry": "fleet", "local": "local"}


def install_help(extra: str) -> str:
    """Say how to install an extra: the project is not on a package index, where another has its name."""
    target = _TARGETS.get(extra)
    command = f"make {target}" if target else f".venv/bin/python -m pip install -e '.[{extra}]'"
    return f"In the checkout: {command}"


class ProviderError(OpenAssayError):
    """A provider failed; `billed` says whether it may charge for the request all the same."""

    category = Category.API
    severity = Severity.DEGRADED

    def __init__(
        self, message: str, *, help: str = "", retryable: bool = False, billed: bool = False, **context: object
    ) -> None:
        super().__init__(message, help=help, retryable=retryable, **context)
        self.billed = billed


class SourceError(ProviderError):
    """A source could not be searched."""


class ReadError(OpenAssayError):
    """One page or file could not be read."""

    category = Category.PARSING
    severity = Severity.RECOVERABLE


class FetchError(ReadError):
    """A page could not be fetched."""

    category = Category.API


class AddressPolicyError(FetchError):
    """An address, or where it leads, may not be fetched."""

    category = Category.VALIDATION


class EvidenceError(OpenAssayError):
    """A span or a snapshot does not hold."""


class ReasoningError(OpenAssayError):
    """A reasoner's answer could not be used."""

    category = Category.PARSING
    severity = Severity.DEGRADED


class ModelError(ProviderError):
    """A language model could not be asked, or gave no answer."""


def failure_details(error: OpenAssayError) -> dict[str, object]:
    """Return what a notice tells, besides its text, of a model that failed."""
    asked = error.context.get("model") if isinstance(error, ModelError) else None
    return {"category": error.category, **({"failed": asked} if asked else {})}


class RateLimitError(ModelError):
    """Too many requests; `retry_after` is what the provider asked for, in seconds."""

    category = Category.RATE_LIMIT
    severity = Severity.RECOVERABLE

    def __init__(
        self, message: str, *, retry_after: float | None = None, help: str = "", billed: bool = False, **context: object
    ) -> None:
        super().__init__(message, help=help, retryable=True, billed=billed, **context)
        self.retry_after = retry_after


class ModelTimeoutError(ModelError):
    """No answer came in time."""

    category = Category.TIMEOUT
    severity = Severity.RECOVERABLE


class ContextOverflowError(ModelError):
    """The prompt was too long for the model."""

    category = Category.CONTEXT_OVERFLOW
    severity = Severity.RECOVERABLE


class ApiKeyError(ModelError):
    """The key is missing, wrong or not allowed to do this."""

    category = Category.VALIDATION


class RefusalError(ModelError):
    """The model declined to answer."""

    category = Category.VALIDATION


class StorageError(OpenAssayError):
    """The database could not be used."""


class IntegrityError(StorageError):
    """What is stored is not what was written."""


class StaleLeaseError(StorageError):
    """Another process has taken over what was to be written for."""


class ThreadBusyError(OpenAssayError):
    """Another run is active on this thread."""

    category = Category.VALIDATION


class AnswerError(OpenAssayError):
    """An answer to an open question was not accepted."""

    category = Category.VALIDATION
    exit_code = 2


class LateAnswerError(AnswerError):
    """Nobody waits for the answer: there was one, or its time is over."""


class BudgetError(OpenAssayError):
    """The run may not spend what it would need."""

    category = Category.VALIDATION
    exit_code = 4


def no_thread(id: str) -> NotFoundError:
    return NotFoundError(f"no thread {id}", help="Look at the list of threads for its id.", thread=id)


def no_run(id: str) -> NotFoundError:
    return NotFoundError(f"no run {id}", help="Look at the runs of its thread for its id.", run=id)


def no_artifact(name: str) -> NotFoundError:
    return NotFoundError(f"this thread has no artifact {name[:40]}", help="Look at the list of its artifacts.")
