"""The tables whose rows are sealed: what they are found by, what they belong to, and what encryption hides of them."""

from typing import Literal, NamedTuple

Scope = Literal["thread", "run", "ledger", "user", ""]


class Table(NamedTuple):
    """`owner` is the column that says to which thread, run or account a row belongs. Rows that belong to none stand for
    themselves: documents are found by the hash of what they say."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]  # all but the seal
    scope: Scope = ""
    owner: str = ""
    secret: frozenset[str] = frozenset()


def _table(name: str, key: str, columns: str, scope: Scope = "", owner: str = "", secret: str = "") -> Table:
    return Table(name, tuple(key.split()), tuple(columns.split()), scope, owner, frozenset(secret.split()))


THREADS = _table("threads", "id", "id title created updated mode owner", "thread", "id", "title")
RUNS = _table(
    "runs", "id", "id thread question status stage started finished settings options error stop", "thread", "thread",
    "question options error",
)  # fmt: skip
REVIEWS = _table(
    "reviews", "id", "id thread run kind question opened due on_timeout answered answer by", "thread", "thread",
    "question answer",
)  # fmt: skip
BRANCHES = _table("branches", "thread", "thread parent checkpoint changes created", "thread", "thread", "changes")
CHECKPOINTS = _table(
    "checkpoints", "thread ns id", "thread ns id parent run time metadata payload", "thread", "thread", "payload"
)
PARTS = _table("parts", "thread hash", "thread hash payload", "thread", "thread", "payload")
WRITES = _table(
    "writes", "thread ns checkpoint task idx", "thread ns checkpoint task idx path channel payload", "thread",
    "thread", "payload",
)  # fmt: skip
NOTES = _table("notes", "thread name", "thread name content", "thread", "thread", "content")
USED_DOCUMENTS = _table("used_documents", "thread document", "thread document", "thread", "thread")
EVENTS = _table("events", "run seq", "run seq time kind stage parent data", "run", "run", "data")
ACCOUNTS = _table(
    "accounts", "run", "run cap_micros cap_tokens cap_requests finish_share refused owner", "ledger", "run"
)
CALLS = _table(
    "calls", "id",
    "id key run time expires step task provider model research state micros tokens requests prompt_tokens"
    " completion_tokens seconds confirmed answer error",
    "ledger", "run", "answer error",
)  # fmt: skip
DOCUMENTS = _table("documents", "hash", "hash metadata text", secret="metadata text")  # noqa: S106  # columns

USERS = _table("users", "name", "name created usd requests_per_minute disabled", "user", "name")
TOKENS = _table("tokens", "id", "id owner label hash scopes created expires revoked", "user", "owner", "label")
SHARES = _table("shares", "id", "id thread hash created expires revoked", "thread", "thread")
PINS = _table("pins", "thread document", "thread document created", "thread", "thread")
ARTIFACTS = _table(
    "artifacts", "thread name version", "thread name version kind title content created author", "thread", "thread",
    "title content",
)  # fmt: skip
UPLOADS = _table("uploads", "id", "id owner name media size hash created", "user", "owner", "name")
WEBHOOKS = _table("webhooks", "id", "id owner url secret events created", "user", "owner", "url secret")
DELIVERIES = _table(
    "deliveries", "id", "id webhook body created attempts due delivered error", secret="body error"  # noqa: S106
)  # fmt: skip
REPLIES = _table("replies", "owner key", "owner key request status body created", secret="body")  # noqa: S106
CHATS = _table("chats", "said thread", "said thread created", "thread", "thread")
MEMORIES = _table("memories", "owner place key", "owner place key value", "user", "owner", "value")
CHUNKS = _table("chunks", "upload number", "upload number content", secret="content")  # noqa: S106
DELETED = _table("deleted", "run", "run time")

ALL = (
    THREADS, RUNS, REVIEWS, BRANCHES, CHECKPOINTS, PARTS, WRITES, NOTES, USED_DOCUMENTS, EVENTS, ACCOUNTS, CALLS,
    DOCUMENTS, USERS, TOKENS, SHARES, PINS, ARTIFACTS, UPLOADS, WEBHOOKS, DELIVERIES, REPLIES, CHATS,
    MEMORIES, CHUNKS, DELETED,
)  # fmt: skip
