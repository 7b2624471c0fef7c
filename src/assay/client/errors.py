"""What a server has refused."""

from typing import Any

from assay.errors import AssayError


class ApiError(AssayError):
    """`status` is that of the answer, 0 where there was none; `problem` all that the server said (RFC 9457)."""

    def __init__(self, message: str, *, status: int = 0, help: str = "", problem: dict[str, Any] | None = None) -> None:
        super().__init__(message, help=help, retryable=status in (0, 429, 503))
        self.status = status
        self.problem = problem or {}
