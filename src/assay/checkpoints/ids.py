"""The ids of checkpoints tell their order, by the clock of the machine that made them."""

from uuid import UUID

from langgraph.checkpoint.base import id as ids

_VERSION = 6  # time first


def succeed(id: str) -> None:
    """Ids that this process makes from here on come after that one. A machine whose clock is behind would else put what
    it does before what it goes on from, and the older state would count as the last."""
    try:
        made = UUID(id)
    except ValueError:  # somebody's own
        return
    if made.version == _VERSION:
        last: int | None = ids._last_v6_timestamp
        setattr(ids, "_last_v6_timestamp", max(last or 0, ids.UUID(int=made.int).time))  # noqa: B010  # typed as None
