"""What stands before the text of a Markdown file, between two lines of dashes: YAML for programs."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import yaml

from assay.export.parts import printable


def front_matter(fields: Mapping[str, Any]) -> str:
    """Fields of which there is nothing are left out."""
    told = {name: value for name, value in fields.items() if value not in (None, "", [], {})}
    return f"---\n{yaml.safe_dump(told, allow_unicode=True, sort_keys=False, width=10_000)}---\n\n"


def day(moment: str) -> date | None:
    """The date of it, which YAML writes without quotes."""
    try:
        return date.fromisoformat(printable(moment)[:10])
    except ValueError:
        return None
