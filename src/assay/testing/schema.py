"""The smallest value a JSON schema allows."""

from typing import Any

DEEP = 6  # a form that holds itself is not followed further than it must be


def instance(schema: dict[str, Any], root: dict[str, Any] | None = None, depth: int = 0) -> Any:
    """A value of the schema: all fields, one item a list, the first of several choices."""
    root = schema if root is None else root
    if "$ref" in schema:
        return instance(_resolved(schema["$ref"], root), root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return instance(_first_real(schema[choice]), root, depth)
    return _of_type(schema, root, depth)


def _of_type(schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next(name for name in kind if name.lower() != "null")
    match kind.lower():  # Google writes OBJECT
        case "object":
            return _object(schema, root, depth)
        case "array":
            count = max(schema.get("minItems", 0), int(depth < DEEP and schema.get("maxItems", 1) > 0))
            return [instance(schema.get("items", {}), root, depth + 1) for _ in range(count)]
        case "string":
            return _text(schema)
        case "integer" | "number":
            return _number(schema)
        case "boolean":
            return True
        case _:
            return None


def _object(schema: dict[str, Any], root: dict[str, Any], depth: int) -> dict[str, Any]:
    fields = schema.get("properties", {})
    wanted = fields if depth < DEEP else [name for name in fields if name in schema.get("required", ())]
    return {name: instance(fields[name], root, depth + 1) for name in wanted}


def _text(schema: dict[str, Any]) -> str:
    text = {"date": "2025-01-01", "date-time": "2025-01-01T00:00:00Z"}.get(schema.get("format", ""), "text")
    return text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength", 1000)]


def _number(schema: dict[str, Any]) -> float:
    """1 where it may be, else the nearest that may."""
    low = schema.get("minimum", schema.get("exclusiveMinimum", 1))
    high = schema.get("maximum", schema.get("exclusiveMaximum", 1))
    inside: float = max(low, min(high, 1))
    step = 1 if schema.get("type") == "integer" else (high - low) / 2 if high > low else 1
    if inside == schema.get("exclusiveMinimum"):
        inside += step
    if inside == schema.get("exclusiveMaximum"):
        inside -= step
    return inside


def _resolved(reference: str, root: dict[str, Any]) -> dict[str, Any]:
    place: Any = root
    for name in reference.removeprefix("#/").split("/"):
        place = place[name]
    return dict(place)


def _first_real(choices: list[dict[str, Any]]) -> dict[str, Any]:
    return next((choice for choice in choices if choice.get("type") != "null"), choices[0])
