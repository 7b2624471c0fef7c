"""What becomes of a line of the ledger: one for each attempt at a call, from its reservation to its end.

Each function says what changes, or None where it is not that step's turn. Truth is 0 or 1, and amounts are of the type
of their column: a row is sealed over what comes back from the database.
"""

from datetime import datetime

from assay.model.spend import Charge, Reservation
from assay.storage.caps import BILLED, LOST, NEVER_SENT, Amounts, booked
from assay.storage.database import timestamp
from assay.storage.rows import Row

Changes = dict[str, object]

_VOID: Changes = {"state": "void", "micros": 0, "tokens": 0, "confirmed": 1}


def reserved(id: int, wanted: Reservation, now: datetime) -> Row:
    names = ("key", "run", "step", "task", "provider", "model", "micros", "tokens")
    return {
        **{name: getattr(wanted, name) for name in names},
        "id": id, "time": timestamp(now), "expires": now.timestamp() + wanted.seconds,
        "research": int(wanted.research), "state": "reserved", "requests": 1, "prompt_tokens": 0,
        "completion_tokens": 0, "seconds": 0.0, "confirmed": 1, "answer": None, "error": "",
    }  # fmt: skip


def sent(line: Row) -> Changes | None:
    return {"state": "sent"} if line["state"] == "reserved" else None


def answered(line: Row, answer: str) -> Changes | None:
    return {"answer": answer, "error": ""} if _was_sent(line) else None


def settled(line: Row, charge: Charge) -> Changes | None:
    if not _was_sent(line):
        return None
    booking = booked(charge, Amounts(line["micros"], line["tokens"], 1))
    error = BILLED if line["answer"] is None else ""
    return {
        **booking._asdict(), "state": "settled", "confirmed": int(booking.confirmed), "seconds": float(charge.seconds),
        "error": error,
    }  # fmt: skip


def released(line: Row, error: str) -> Changes | None:
    if line["state"] == "settled" or line["answer"] is not None:
        return None
    requests = 0 if line["state"] == "reserved" else line["requests"]
    return {**_VOID, "requests": requests, "error": error}


def given_up(line: Row) -> Changes:
    """What was sent may have been billed, what was not cannot have been."""
    if line["state"] == "reserved":
        return {**_VOID, "requests": 0, "error": NEVER_SENT}
    return {"state": "lost", "confirmed": 0, "error": LOST if line["answer"] is None else ""}


def is_open(line: Row) -> bool:
    return line["state"] in ("reserved", "sent")


def _was_sent(line: Row) -> bool:
    # A call given up for lost can still be answered, settled or released: its caller was only slow.
    return line["state"] in ("sent", "lost")
