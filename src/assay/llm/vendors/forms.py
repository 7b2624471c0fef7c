"""The JSON schema of an answer, as each way of asking wants it."""

import json
import re
from typing import Any

from assay.llm.vendors import Request

Schema = dict[str, Any]

_MAPS = frozenset({"properties", "$defs", "definitions"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
# Neither OpenAI's strict mode nor Google's schemas know these.
UNKNOWN = frozenset({"default", "minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties", "examples"})


def name(form: Schema) -> str:
    """What a schema or a tool may be called: letters, digits and dashes."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", str(form.get("title", ""))).strip("_")[:64] or "answer"


def system(request: Request) -> str:
    """The system text; in JSON mode the server sees no schema, so it is written out there."""
    text = clean(request.prompt.system)
    if request.method != "json_mode":
        return text
    schema = json.dumps(request.prompt.form, ensure_ascii=False)
    return f"{text}\n\nAnswer with one JSON object and nothing else. It follows this JSON schema:\n{clean(schema)}"


def clean(text: str) -> str:
    """A lone surrogate, as a broken file name or page may hold, cannot be sent as UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def strict(form: Schema) -> Schema | None:
    """For OpenAI's strict mode: objects closed, everything required. None: it has maps with free keys."""
    return None if _has_free_keys(form) else shaped(form, all_required=True)


def shaped(node: Schema, *, all_required: bool = False) -> Schema:
    """Without the keywords vendors refuse; a reference stands alone, and objects hold what they list."""
    if "$ref" in node and "$defs" not in node:
        return {"$ref": node["$ref"]}
    result: Schema = {}
    for key, value in node.items():
        if key in UNKNOWN:
            continue
        if key in _MAPS and isinstance(value, dict):
            result[key] = {name: shaped(part, all_required=all_required) for name, part in value.items()}
        elif key in _LISTS and isinstance(value, list):
            result[key] = [shaped(part, all_required=all_required) for part in value]
        elif isinstance(value, dict):
            result[key] = shaped(value, all_required=all_required)
        else:
            result[key] = value
    if "properties" in result:
        result["additionalProperties"] = False
        if all_required:
            result["required"] = list(result["properties"])
    return result


def _has_free_keys(node: object) -> bool:
    if isinstance(node, list):
        return any(_has_free_keys(part) for part in node)
    if not isinstance(node, dict):
        return False
    if node.get("type") == "object" and "properties" not in node:
        return True
    return any(_has_free_keys(part) for part in node.values())
