"""A request as the model behind a provider sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SeenPrompt:
    """A request as a model understands it, whatever vendor's words it came in."""

    model: str
    system: str
    text: str
    form: str = ""  # title of the schema, else the name it was given
    schema: Mapping[str, Any] = field(default_factory=dict)
    method: str = "text"  # how the form was asked for: json_schema, function_calling, json_mode
    tool: str = ""  # to be called with the answer
    stream: bool = False
    limit: int | None = None  # tokens the answer may have
    wants_usage: bool = True
