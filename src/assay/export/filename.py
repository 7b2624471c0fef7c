"""What a file is called that has no name yet."""

import re
import unicodedata

LONGEST = 80  # characters


def stem(title: str) -> str:
    """The title, as far as every system takes it for a file's name."""
    name = re.sub(r"[^\w ()+,.-]+", " ", unicodedata.normalize("NFC", title))
    return " ".join(name.split())[:LONGEST].strip(" .-") or "report"
