"""What a provider means by a status other than 200. The body is never quoted: it may repeat the key."""

from assay.errors import SourceError
from assay.search.http import Reply

FINAL = frozenset({401, 402, 403, 432, 433})  # asking again would be answered in the same way


def refusal(name: str, reply: Reply, key: str | None, *, held: bool) -> SourceError:
    """`key` is the field of settings.Keys for the provider's key, `held` whether there is one."""
    status = reply.status
    if status in (401, 403):
        return key_refused(name, key) if key and held else _turned_away(name, status, key)
    if status in (402, 432, 433):  # 432 and 433 are Tavily's
        return _error(name, f"the credits for {name} are used up", "Raise the limit of your plan there.", status)
    if status == 429:
        return SourceError(
            f"{name} was asked too often", help="Wait a while, or lower search.requests_per_minute for it.",
            retryable=True, provider=name, status=status, retry_after=reply.retry_after,
        )  # fmt: skip
    if status == 408 or status >= 500:
        return SourceError(
            f"{name} is in trouble (status {status})", help="Try again later.", retryable=True,
            provider=name, status=status, retry_after=reply.retry_after,
        )  # fmt: skip
    if 300 <= status < 400:
        return _error(name, f"{name} sent Assay elsewhere", f"Correct search.endpoints.{name}.", status)
    return _error(name, f"{name} did not accept the question (status {status})", "", status)


def key_refused(name: str, key: str) -> SourceError:
    return _error(name, f"the key of {name} was refused", f"Check {key.upper()}, or unset it.", 401)


def key_missing(name: str, key: str) -> SourceError:
    return _error(name, f"{name} needs a key", f"Set {key.upper()}.", 401)


def _turned_away(name: str, status: int, key: str | None) -> SourceError:
    help = f"Leave it out with search.without{f', or set {key.upper()}' if key else ''}."
    return _error(name, f"{name} turned Assay away (status {status})", help, status)


def _error(name: str, message: str, help: str, status: int) -> SourceError:
    return SourceError(message, help=help, provider=name, status=status)
