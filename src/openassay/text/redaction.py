"""Secrets taken out of whatever is written down or told: logs, events, errors, exports, traces.

Two kinds are known: the keys of the settings, wherever they stand, and what has the shape of a key. A key that nobody
told us of and that looks like a word is not found.
"""

import html
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import quote, urlsplit

from pydantic import SecretStr

from openassay.settings import Settings

GONE = "[redacted]"
T = TypeVar("T")
_LOGGERS = ("openassay", "openassay.llm", "openassay.server", "uvicorn", "uvicorn.error")

# "ollama" and "not-needed" are what people write where a server wants no key: words, and no secrets.
_SHORT, _LONG = 8, 12

_VALUE = r"[^\s&#\"'<>\\]"
_NAMED = re.compile(rf"={_VALUE}+")
_NAMES = re.compile(
    r"(?:^|\W)(?:(?:api|access|auth|refresh|client)[_-]?(?:key|token|secret)|passw(?:or)?d)\Z", re.IGNORECASE
)
_PERHAPS = re.compile(  # where what follows is long
    r"[?&](?:key|token|secret|share|sig|(?:x-(?:amz|goog)-)?signature)\Z", re.IGNORECASE
)
_LONG_VALUE, _LONGEST_NAME = 16, 24
_DIGIT = re.compile(r"\d")


class SecretPattern(NamedTuple):
    """What is looked for where one of the marks stands: that costs a tenth of looking for all shapes at every place."""

    marks: tuple[str, ...]
    pattern: re.Pattern[str]
    replaced: Callable[[re.Match[str]], str] = lambda found: GONE


_SHAPES = (
    SecretPattern(
        ("earer ", "asic ", "EARER ", "ASIC "),
        re.compile(r"""\b(bearer|basic)( +)(?=[^\s"']*\d)[\w.~+/=-]{16,}""", re.IGNORECASE),
        lambda found: f"{found[1]}{found[2]}{GONE}",
    ),
    SecretPattern(("://",), re.compile(r"""://[^\s/@:"'<>]*:[^\s/@"'<>]+@"""), lambda found: f"://{GONE}@"),
    SecretPattern(("=",), _NAMED, lambda found: _redact_value(found)),
    SecretPattern(("openassay_", "share_"), re.compile(r"\b(?:openassay|share)_[0-9a-f]{8}_[\w-]{20,}")),
    SecretPattern(("whsec_",), re.compile(r"\bwhsec_[\w+/=-]{16,}")),
    # Looking ahead for the digit would do so from each of "sk-sk-sk-...": 4 s for 30 KB.
    SecretPattern(
        ("sk-",), re.compile(r"\bsk-[\w-]{16,}"), lambda found: GONE if _DIGIT.search(found[0]) else found[0]
    ),
    SecretPattern(("tvly-", "xox"), re.compile(r"\b(?:tvly|xox[abp])-[\w-]{16,}")),
    SecretPattern(("AIza",), re.compile(r"\bAIza[\w-]{35}")),
    SecretPattern(("ghp_", "gho_", "ghs_", "github_pat_"), re.compile(r"\b(?:gh[pos]_|github_pat_)\w{20,}")),
)


class Redactor:
    """`secrets` are taken out wherever they stand, also where they were written for an address, JSON or HTML."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spellings: set[str] = set()
        for secret in filter(is_secret, secrets):
            spellings |= {secret, quote(secret, safe="", errors="replace"), quote(secret, errors="replace")}
            spellings |= {html.escape(secret), json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        self._secrets = sorted(spellings, key=len, reverse=True)

    def redact_secrets(self, text: str) -> str:
        """Without those of the settings; what only has the shape of one stays."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, GONE)
        return text

    def redact_text(self, text: str) -> str:
        text = self.redact_secrets(text)
        for shape in _SHAPES:
            for mark in shape.marks:
                if mark in text:
                    text = shape.pattern.sub(shape.replaced, text)
                    break
        return text

    def redact_data(self, value: T) -> T:
        """Plain data with every text in it redacted."""
        return _map_texts(value, self.redact_text)

    def redact_data_secrets(self, value: T) -> T:
        return _map_texts(value, self.redact_secrets)

    @contextmanager
    def filter_logs(self) -> Iterator[None]:
        """While this is open no log of ours holds a secret."""
        cleaner = RedactionFilter(self)
        loggers = [logging.getLogger(name) for name in _LOGGERS]
        for logger in loggers:
            logger.addFilter(cleaner)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeFilter(cleaner)


class RedactionFilter(logging.Filter):
    """For a logger or a handler."""

    def __init__(self, redaction: Redactor) -> None:
        super().__init__()
        self._redaction = redaction

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        clean = self._redaction.redact_text(message)
        if clean != message:
            record.msg, record.args = clean, None
        if record.exc_info and record.exc_info[0] is not None:
            told = logging.Formatter().formatException(record.exc_info)
            clean = self._redaction.redact_text(told)
            if clean != told:
                record.exc_text, record.exc_info = clean, None
        return True


def build_redactor(settings: Settings) -> Redactor:
    """Of every key of the settings, and of the passwords in their addresses."""
    servers = settings.search.mcp.values()
    of_servers = [value for one in servers for value in (one.token, *one.env.values())]
    given = [value for value in (*dict(settings.keys).values(), *of_servers) if isinstance(value, SecretStr)]
    known = [value.get_secret_value() for value in given]
    passwords = []
    for address in [*known, settings.persistence.connection_string or ""]:
        with suppress(ValueError):
            passwords.append(urlsplit(address).password or "")
    return Redactor([*known, *passwords])


def is_secret(text: str) -> bool:
    return len(text) >= _LONG or (len(text) >= _SHORT and any(map(str.isdigit, text)))


def _redact_value(found: re.Match[str]) -> str:
    """What follows the name of a key, in an address or elsewhere."""
    begin = max(found.start() - _LONGEST_NAME, 0)
    is_long = len(found[0]) > _LONG_VALUE
    if _NAMES.search(found.string, begin, found.start()):
        return f"={GONE}"
    return f"={GONE}" if is_long and _PERHAPS.search(found.string, begin, found.start()) else found[0]


def _map_texts(value: T, change: Callable[[str], str]) -> T:
    """All texts are looked at as one first, which is a third of the work where there is nothing to change."""
    whole = "\n".join(_iter_texts(value))
    return value if change(whole) == whole else cast("T", _transform_texts(value, change))


def _iter_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, held in value.items():
            yield from _iter_texts(name)
            yield from _iter_texts(held)
    elif isinstance(value, list | tuple):
        for held in value:
            yield from _iter_texts(held)


def _transform_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_transform_texts(name, change): _transform_texts(held, change) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_transform_texts(held, change) for held in value]
    return value
