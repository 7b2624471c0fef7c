"""A file somebody has given."""

from datetime import datetime

from assay.model.record import Record

SCHEME = "upload:"  # of the addresses of what was given


class Upload(Record):
    """`hash` is the SHA-256 of its bytes; the same bytes of the same person are one upload."""

    id: str
    owner: str
    name: str
    media: str
    size: int
    hash: str
    created: datetime
