"""Parses what a model answered: takes JSON out of its text, and checks it leniently where leniency does no harm."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator
from pydantic_core import from_json

from openassay.errors import ReasoningError

MAX_ANSWER = 400_000  # characters; no step asks for a tenth of it
MAX_ITEMS = 200
MAX_TEXT = 4000  # characters
MAX_PROSE = 24_000  # of a section with its paragraphs
MAX_NUMBER = 10**9  # all that is counted or scored is far smaller

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FENCE = re.compile(r"^```[\w-]*\s*|\s*```$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_SCHEMA_KEYWORDS = ("type", "enum", "minimum", "maximum", "maxLength")


class NotJSONError(ReasoningError):
    """Raised where there is no JSON object at all: another way of asking may bring one."""


# Fields.


def _clean_text(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        value = str(value)
    if not isinstance(value, str):
        return value
    return unicodedata.normalize("NFC", " ".join(_CONTROL.sub(" ", value).split()))[:MAX_TEXT]


def _clean_prose(value: Any) -> Any:
    """Keep the lines of a text: paragraphs and tables have them."""
    if not isinstance(value, str):
        return _clean_text(value)
    lines = [" ".join(_CONTROL.sub(" ", line).split()) for line in value.split("\n")]
    return unicodedata.normalize("NFC", "\n".join(lines))[:MAX_PROSE]


def _find_number(value: Any) -> float | None:
    """Read 8, "8", "8/10" and "[8]" as 8."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        match = _NUMBER.search(value[:40])
        value = float(match.group()) if match else None
    if not isinstance(value, int | float) or not -MAX_NUMBER < value < MAX_NUMBER:  # false for NaN, too
        return None
    return float(value)


def _parse_integer(value: Any) -> int | None:
    number = _find_number(value)
    return None if number is None else int(number)


def _parse_flag(value: Any) -> bool:
    """Read true, "true", "yes" and 1 as true, and everything else as false."""
    return value is True or _clean_text(value) in ("True", "true", "yes", "1")


def _parse_score(value: Any) -> float | None:
    """Read a score from 0 to 10; a share such as 0.85 is taken as one of ten."""
    number = _find_number(value)
    if number is None:
        return None
    return min(10.0, max(0.0, number * 10 if 0 < number < 1 else number))


def _list_of(parse: Callable[[Any], Any]) -> BeforeValidator:
    """Read a list, or a single value, without duplicates and without items that cannot be read."""

    def parse_list(value: Any) -> list[str | int]:
        values = value if isinstance(value, list) else [value]
        items = (parse(item) for item in values[:MAX_ITEMS])
        return list(dict.fromkeys(item for item in items if isinstance(item, str | int) and item != ""))

    return BeforeValidator(parse_list)


# Servers that hold a model to its form are told how long a text may be: a small model may never end it otherwise.
Text = Annotated[str, BeforeValidator(_clean_text), WithJsonSchema({"type": "string", "maxLength": 1600})]
_PROSE_SCHEMA = WithJsonSchema({"type": "string", "maxLength": MAX_PROSE})
Prose = Annotated[str, BeforeValidator(_clean_prose), _PROSE_SCHEMA]
Line = Annotated[str, BeforeValidator(_clean_text), WithJsonSchema({"type": "string", "maxLength": 400})]
Phrase = Annotated[str, BeforeValidator(_clean_text), WithJsonSchema({"type": "string", "maxLength": 120})]
_LINES_SCHEMA = WithJsonSchema({"type": "array", "items": {"type": "string", "maxLength": 400}})
Texts = Annotated[list[str], _list_of(_clean_text), _LINES_SCHEMA]
Number = Annotated[int, BeforeValidator(_parse_integer)]
Flag = Annotated[bool, BeforeValidator(_parse_flag)]
Numbers = Annotated[list[int], _list_of(_parse_integer)]
_SCORE_SCHEMA = WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 10})
Score = Annotated[float, BeforeValidator(_parse_score), _SCORE_SCHEMA]
Option = TypeVar("Option", bound=str)


def choice_field(options: Sequence[str]) -> Any:
    """Return a text field that should be one of these; the first where nothing is said."""
    return Field(default=options[0], json_schema_extra={"enum": list(options)})


def match_option(value: str, options: Sequence[Option], default: Option) -> Option:
    """Return the option that a text names, however it is spelled."""
    name = value.lower().replace(" ", "_").replace("-", "_")
    return next((option for option in options if option == name), default)


# Forms.


class OutputForm(BaseModel):
    """A flat form. Unknown fields are ignored, and an item of a list that cannot be read does not spoil the rest."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _drop_unreadable_items(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields = dict(data)
        for name, item in list_item_forms(cls).items():
            values = data.get(name)
            values = [values] if isinstance(values, dict) else values
            if isinstance(values, list):
                readable = [value for value in values[:MAX_ITEMS] if item.is_readable(value)]
                fields[name] = readable or values[:MAX_ITEMS]
        return fields

    @classmethod
    def is_readable(cls, value: Any) -> bool:
        try:
            cls.model_validate(value)
        except ValidationError:
            return False
        return True


A = TypeVar("A", bound=OutputForm)


def list_item_forms(form: type[OutputForm]) -> dict[str, type[OutputForm]]:
    """Return the lists of a form that hold forms."""
    return {
        name: item
        for name, field in form.model_fields.items()
        if get_origin(field.annotation) is list
        for item in get_args(field.annotation)
        if isinstance(item, type) and issubclass(item, OutputForm)
    }


def build_schema(
    form: type[OutputForm],
    title: str,
    most: Mapping[str, int] | None = None,
    choices: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Build the JSON schema of a form, without references and with every field required.

    Lists have at most `most` items (0: the field is left out), and texts are one of their `choices`.
    """
    raw = _get_model_schema(form)
    schema = _inline_references(raw, raw.get("$defs", {}))
    _apply_limits(schema, most or {}, choices or {})
    return {"title": title, **schema}


@cache  # pydantic takes 2 ms to make one, and a step asks for its form again and again
def _get_model_schema(form: type[OutputForm]) -> dict[str, Any]:
    return form.model_json_schema()


def _inline_references(node: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return _inline_references(definitions[node["$ref"].rpartition("/")[2]], definitions)
    inlined: dict[str, Any] = {key: node[key] for key in _SCHEMA_KEYWORDS if key in node}
    if "enum" in inlined:
        inlined.pop("maxLength", None)
    if "items" in node:
        inlined["items"] = _inline_references(node["items"], definitions)
    if "properties" in node:
        fields = {name: _inline_references(field, definitions) for name, field in node["properties"].items()}
        inlined |= {"properties": fields, "required": list(fields), "additionalProperties": False}
    return inlined


def _apply_limits(node: dict[str, Any], most: Mapping[str, int], choices: Mapping[str, Sequence[str]]) -> None:
    fields: dict[str, Any] = node["properties"]
    for name in [name for name, limit in most.items() if limit == 0]:
        fields.pop(name, None)
    node["required"] = list(fields)
    for name, field in fields.items():
        if name in choices:
            field.pop("maxLength", None)
            field["enum"] = list(choices[name])
        if name in most:
            field["maxItems"] = most[name]
        if "properties" in field.get("items", {}):
            _apply_limits(field["items"], most, choices)


# Answers.


def parse_form(text: str, form: type[A], *, is_cut: bool = False) -> A:
    """Read an answer; of one that was cut off, its whole items count. ReasoningError says what is wrong with it."""
    if len(text) > MAX_ANSWER:
        raise NotJSONError("the answer is far too long")
    text = _FENCE.sub("", text.rpartition("</think>")[2].strip())
    first, last = text.find("{"), text.rfind("}")
    data = _load_object(text)
    if data is None and 0 <= first < last:
        data = _load_object(text[first : last + 1])
    if data is None and is_cut and first >= 0:
        data = _load_object(text[first:], is_partial=True)
        if not data:
            raise NotJSONError("the answer was cut off")
        last_value = data[list(data)[-1]]
        if isinstance(last_value, list) and last_value:
            last_value.pop()  # it may not be whole
    if data is None:
        raise NotJSONError("the answer is empty" if not text else "the answer is not a JSON object")
    try:
        return form.model_validate(data)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, problem['loc'])) or 'answer'}: {problem['msg']}" for problem in error.errors()]
        raise ReasoningError("; ".join(problems[:3])) from error


def _load_object(text: str, *, is_partial: bool = False) -> dict[str, Any] | None:
    try:
        data = from_json(text, allow_inf_nan=False, allow_partial=is_partial)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None
