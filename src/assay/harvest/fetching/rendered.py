"""What a browser shows of a page."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple


class Rendered(NamedTuple):
    url: str  # where the browser was in the end: scripts may have led it away
    html: bytes  # in UTF-8


Render = Callable[[str], Awaitable[Rendered]]  # an address -> the page, once its scripts have run
