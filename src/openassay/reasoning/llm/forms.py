"""What a model answered: JSON taken out of its text, and checked leniently where leniency does no harm."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator
from pydantic_core import from_json

from openassay.errors import ReasoningError

LONGEST_ANSWER = 400_000  # characters; no step asks for a tenth of it
MOST_ITEMS = 200
LONGEST_TEXT = 4000
LARGEST_NUMBER = 10**9  # of a number: all that is counted or scored is far smaller

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FENCE = re.compile(r"^```[\w-]*\s*|\s*```$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class NotJSONError(ReasoningError):
    """No JSON object at all: another way of asking may bring one."""


# Fields -----------------------------------------------------------------------------------------------


def _clean_text(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        value = str(value)
    if not isinstance(value, str):
        return value
    return unicodedata.normalize("NFC", " ".join(_CONTROL.sub(" ", value).split()))[:LONGEST_TEXT]


def _find_number(value: Any) -> float | None:
    """8, "8", "8/10" and "[8]" are all 8."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        match = _NUMBER.search(value[:40])
        value = float(match.group()) if match else None
    if not isinstance(value, int | float) or not -LARGEST_NUMBER < value < LARGEST_NUMBER:  # nor what is not a number
        return None
    return float(value)


def _parse_score(value: Any) -> Any:
    """0 to 10; a share such as 0.85 is taken as one of ten."""
    number = _find_number(value)
    if number is None:
        return None
    number = number * 10 if 0 < number < 1 else number
    return min(10.0, max(0.0, number))


def _parse_integer(value: Any) -> Any:
    number = _find_number(value)
    return None if number is None else int(number)


def _parse_numbers(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    found = (_find_number(item) for item in values[:MOST_ITEMS])
    return list(dict.fromkeys(int(number) for number in found if number is not None))


def _parse_texts(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    found = (_clean_text(item) for item in values[:MOST_ITEMS])
    return list(dict.fromkeys(item for item in found if isinstance(item, str) and item))


# How long a text may be is told to servers that hold a model to its form: a small one may never end a text otherwise.
Text = Annotated[str, BeforeValidator(_clean_text), WithJsonSchema({"type": "string", "maxLength": 1600})]
Line = Annotated[str, BeforeValidator(_clean_text), WithJsonSchema({"type": "string", "maxLength": 400})]
Phrase = Annotated[str, BeforeValidator(_clean_text), WithJsonSchema({"type": "string", "maxLength": 120})]
Texts = Annotated[
    list[str],
    BeforeValidator(_parse_texts),
    WithJsonSchema({"type": "array", "items": {"type": "string", "maxLength": 400}}),
]
Number = Annotated[int, BeforeValidator(_parse_integer)]
Numbers = Annotated[list[int], BeforeValidator(_parse_numbers)]
Score = Annotated[
    float, BeforeValidator(_parse_score), WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 10})
]  # fmt: skip


def choice_field(options: Sequence[str]) -> Any:
    """A text that should be one of these; the first where nothing is said."""
    return Field(default=options[0], json_schema_extra={"enum": list(options)})


Option = TypeVar("Option", bound=str)


def match_option(value: str, options: Sequence[Option], default: Option) -> Option:
    return next((option for option in options if option == value.lower().replace(" ", "_").replace("-", "_")), default)


# Forms ------------------------------------------------------------------------------------------------


class OutputForm(BaseModel):
    """A flat form. Unknown fields are ignored, and an item of a list that cannot be read does not spoil the rest."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _drop_unreadable_items(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        kept = dict(data)
        for name, item in list_item_forms(cls).items():
            values = data.get(name)
            values = [values] if isinstance(values, dict) else values
            if isinstance(values, list):
                readable = [value for value in values[:MOST_ITEMS] if _is_valid(item, value)]
                kept[name] = readable if readable else values[:MOST_ITEMS]
        return kept


def list_item_forms(form: type[OutputForm]) -> dict[str, type[OutputForm]]:
    """The lists of a form that hold forms."""
    return {
        name: item
        for name, field in form.model_fields.items()
        if get_origin(field.annotation) is list
        for item in get_args(field.annotation)
        if isinstance(item, type) and issubclass(item, OutputForm)
    }


def _is_valid(form: type[OutputForm], value: Any) -> bool:
    try:
        form.model_validate(value)
    except ValidationError:
        return False
    return True


def build_schema(
    form: type[OutputForm],
    title: str,
    most: Mapping[str, int] | None = None,
    choices: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """The form as a JSON schema without references: every field required, lists of `most` items (0: not asked for),
    texts of `choices`."""
    raw = _model_schema(form)
    made = _inline_refs(raw, raw.get("$defs", {}))
    _apply_limits(made, most or {}, choices or {})
    return {"title": title, **made}


@cache  # pydantic takes 2 ms to make one, and a step asks for its form again and again
def _model_schema(form: type[OutputForm]) -> dict[str, Any]:
    return form.model_json_schema()


_KEYWORDS = ("type", "enum", "minimum", "maximum", "maxLength")


def _inline_refs(node: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return _inline_refs(known[node["$ref"].rpartition("/")[2]], known)
    kept: dict[str, Any] = {key: node[key] for key in _KEYWORDS if key in node}
    if "enum" in kept:
        kept.pop("maxLength", None)
    if "items" in node:
        kept["items"] = _inline_refs(node["items"], known)
    if "properties" in node:
        kept["properties"] = {name: _inline_refs(field, known) for name, field in node["properties"].items()}
        kept |= {"required": list(kept["properties"]), "additionalProperties": False}
    return kept


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


# Parsing ----------------------------------------------------------------------------------------------

A = TypeVar("A", bound=OutputForm)


def parse_form(text: str, form: type[A], *, cut: bool = False) -> A:
    """The answer in its form. Of one that was `cut` off, the whole items count; raises ReasoningError saying what is
    wrong with it."""
    data = _load_object(text, cut)
    try:
        return form.model_validate(data)
    except ValidationError as error:
        raise ReasoningError(_explain_errors(error)) from error


def _load_object(text: str, cut: bool) -> dict[str, Any]:
    if len(text) > LONGEST_ANSWER:
        raise NotJSONError("the answer is far too long")
    text = _FENCE.sub("", text.rpartition("</think>")[2].strip())
    first, last = text.find("{"), text.rfind("}")
    candidates = [text, text[first : last + 1]] if 0 <= first < last else [text]
    for candidate in candidates:
        try:
            data = from_json(candidate, allow_inf_nan=False)
        except ValueError:
            continue
        if isinstance(data, dict):
            return data
    if cut and first >= 0:
        return _load_whole_items(text[first:])
    raise NotJSONError("the answer is empty" if not text else "the answer is not a JSON object")


def _load_whole_items(text: str) -> dict[str, Any]:
    """What had been said in full when the answer was cut off: the last item of the last list may not be."""
    try:
        data = from_json(text, allow_inf_nan=False, allow_partial=True)
    except ValueError as error:
        raise NotJSONError("the answer was cut off") from error
    if not isinstance(data, dict) or not data:
        raise NotJSONError("the answer was cut off")
    last = data[list(data)[-1]]
    if isinstance(last, list) and last:
        last.pop()
    return data


def _explain_errors(error: ValidationError) -> str:
    problems = [f"{'.'.join(map(str, problem['loc'])) or 'answer'}: {problem['msg']}" for problem in error.errors()]
    return "; ".join(problems[:3])
