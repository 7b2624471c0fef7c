"""What a browser calls what it is sent (RFC 6266)."""

import re
import unicodedata
from urllib.parse import quote

from assay.export.filename import stem


def disposition(title: str, suffix: str) -> str:
    """An attachment, with a name for those who read ASCII alone and one for all others."""
    name = stem(title)
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = " ".join(re.sub(r"[^A-Za-z0-9 ()+,._-]", " ", plain).split()).strip(" .") or "report"
    return f"attachment; filename=\"{plain}.{suffix}\"; filename*=UTF-8''{quote(f'{name}.{suffix}', safe='')}"
