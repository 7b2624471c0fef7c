"""What is wrong with settings, in plain words."""

import difflib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError

from assay.settings.parts import FIELD, NAME, USER, Part

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_FORMS = {
    USER: "1 to 64 letters, digits, hyphens and underscores",
    NAME: "a small letter and up to 39 more, digits, hyphens and underscores",
    FIELD: "the name of a field, as in critique.score",
}
LONGEST_SHOWN = 200  # characters of a value in a message


def explain(error: ValidationError, settings: type[BaseModel]) -> list[str]:
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"]) or "config.yaml"
        if problem["type"] == "extra_forbidden":
            lines.append(f"unknown setting {key}{nearest(key.rpartition('.')[2], _siblings(settings, problem['loc']))}")
        else:
            lines.append(f"{key}: {_wrong(problem)}{_given(problem['input'])}")
    return lines


def _wrong(problem: "ErrorDetails") -> str:
    """What should stand there, in plain words."""
    limits = problem.get("ctx", {})
    if "pattern" in limits:
        return f"should be {_FORMS.get(limits['pattern'], limits['pattern'])}"
    if problem["type"] == "value_error":
        return str(limits["error"])
    message = re.sub(r" or instance of \w+", "", problem["msg"]).replace("valid tuple", "list")
    return (message[:1].lower() + message[1:]).replace("valid dictionary", "mapping")


def _given(value: object) -> str:
    """A whole part of the settings says nothing about what is wrong in it."""
    shown = repr(value)
    return "" if isinstance(value, Part | dict | list | tuple) or len(shown) > LONGEST_SHOWN else f", not {shown}"


def _siblings(model: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    """The keys that stand where an unknown one was given."""
    for part in place[:-1]:
        if field := model.model_fields.get(str(part)):  # else it counts or names entries of the same kind
            model = _model_in(field.annotation) or model
    return list(model.model_fields)


def _model_in(kind: Any) -> type[BaseModel] | None:
    """Of a field, whether it holds one, several, or none."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((model for part in get_args(kind) if (model := _model_in(part))), None)


def nearest(word: str, known: Iterable[str]) -> str:
    match = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {match[0]}?)" if match else ""
