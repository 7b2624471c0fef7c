"""Every error OpenAssay raises on purpose.

OpenAssayError
├── UsageError               the caller asked for something that cannot be            exit 2
│   ├── QuestionError        the question is empty, too long or not text
│   ├── PathError            a --docs path is missing, empty or unreadable
│   └── NotFoundError        no such thread, run or document
├── ConfigurationError       a setting or an installed file is wrong                  exit 2
├── SourceError              a source could not be searched (says if a retry helps)
├── ReadError                one page or file could not be read
│   └── FetchError           a page could not be fetched
│       └── RefusedError     its address, or where it leads, may not be fetched
├── EvidenceError            a span or a snapshot does not hold
├── ReasoningError           a reasoner's answer could not be used
├── ModelError               a language model could not be asked, or gave no answer
│   ├── RateLimitError       too many requests; says when to come back
│   ├── ModelTimeoutError    no answer in time
│   ├── ContextOverflowError the prompt was too long for the model
│   ├── KeyRejectedError     the key is missing, wrong or not allowed to do this
│   └── RefusalError         the model declined to answer
├── StorageError             the database could not be used
│   ├── IntegrityError       what is stored is not what was written
│   └── FencedError          another process has taken over what was to be written for
├── ThreadBusyError          another run is active on this thread
├── AnswerError              an answer to an open question was not accepted
│   └── LateAnswerError      nobody waits for it: there was one, or its time is over
└── BudgetError              the run may not spend what it would need                 exit 4

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
    """What was not raised on purpose is our own fault."""
    return error.category if isinstance(error, OpenAssayError) else Category.INTERNAL


class UsageError(OpenAssayError):
    category = Category.VALIDATION
    exit_code = 2


class QuestionError(UsageError):
    pass


class PathError(UsageError):
    pass


class NotFoundError(UsageError):
    pass


class ConfigurationError(OpenAssayError):
    category = Category.VALIDATION
    exit_code = 2


# What of the Makefile installs an extra; the others are installed by their name.
_TARGETS = {"export": "venv", "postgres": "fleet", "fleet": "fleet", "telemetry": "fleet", "local": "local"}


def install_help(extra: str) -> str:
    """How an extra is had: the project is not on a package index, where another has its name."""
    target = _TARGETS.get(extra)
    command = f"make {target}" if target else f".venv/bin/python -m pip install -e '.[{extra}]'"
    return f"In the checkout: {command}"


class SourceError(OpenAssayError):
    """`billed` says whether the provider may charge for the request that failed."""

    category = Category.API
    severity = Severity.DEGRADED

    def __init__(
        self, message: str, *, help: str = "", retryable: bool = False, billed: bool = False, **context: object
    ) -> None:
        super().__init__(message, help=help, retryable=retryable, **context)
        self.billed = billed


class ReadError(OpenAssayError):
    category = Category.PARSING
    severity = Severity.RECOVERABLE


class FetchError(ReadError):
    category = Category.API


class AddressPolicyError(FetchError):
    category = Category.VALIDATION


class EvidenceError(OpenAssayError):
    pass


class ReasoningError(OpenAssayError):
    category = Category.PARSING
    severity = Severity.DEGRADED


class ModelError(OpenAssayError):
    """`billed` says whether the provider may charge for the call that failed."""

    category = Category.API
    severity = Severity.DEGRADED

    def __init__(
        self, message: str, *, help: str = "", retryable: bool = False, billed: bool = False, **context: object
    ) -> None:
        super().__init__(message, help=help, retryable=retryable, **context)
        self.billed = billed


def failure_details(error: OpenAssayError) -> dict[str, object]:
    """What a notice tells, besides its text, of a model that was asked in vain."""
    asked = error.context.get("model") if isinstance(error, ModelError) else None
    return {"category": error.category, **({"failed": asked} if asked else {})}


class RateLimitError(ModelError):
    """`retry_after` is what the provider asked for, in seconds."""

    category = Category.RATE_LIMIT
    severity = Severity.RECOVERABLE

    def __init__(
        self, message: str, *, retry_after: float | None = None, help: str = "", billed: bool = False, **context: object
    ) -> None:
        super().__init__(message, help=help, retryable=True, billed=billed, **context)
        self.retry_after = retry_after


class ModelTimeoutError(ModelError):
    category = Category.TIMEOUT
    severity = Severity.RECOVERABLE


class ContextOverflowError(ModelError):
    category = Category.CONTEXT_OVERFLOW
    severity = Severity.RECOVERABLE


class ApiKeyError(ModelError):
    category = Category.VALIDATION


class RefusalError(ModelError):
    category = Category.VALIDATION


class StorageError(OpenAssayError):
    pass


class IntegrityError(StorageError):
    pass


class StaleLeaseError(StorageError):
    pass


class ThreadBusyError(OpenAssayError):
    category = Category.VALIDATION


class AnswerError(OpenAssayError):
    category = Category.VALIDATION
    exit_code = 2


class LateAnswerError(AnswerError):
    pass


class BudgetError(OpenAssayError):
    category = Category.VALIDATION
    exit_code = 4
