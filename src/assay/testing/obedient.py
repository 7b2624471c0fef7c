"""A model that does whatever the text before it asks: as soon as an attack stands in its prompt, it obeys.

It puts its canary wherever a form has room for words, adds items to every list, gives every mark its highest value,
asks for the address it was told, and points at the attack itself as the best evidence there is.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from assay.testing.schema import instance
from assay.testing.script import ScriptedModel
from assay.testing.seen import SeenPrompt

SHOWN = 80  # characters of an attack by which it is known
GRANTED = ("supported", "strong", "major", "sufficient", "approve", "yes")


class ObedientModel:
    """`canary` is a word that no page has; `address` is where it tries to lead. With `instead` the canary takes the
    place of what it would have said. `obeyed` has the attacks it acted upon, by the form it was filling in."""

    def __init__(
        self, attacks: Sequence[str], sensible: ScriptedModel, *, canary: str, address: str, instead: bool
    ) -> None:
        self.obeyed: dict[str, set[str]] = {}
        self._attacks = {_plain(attack)[:SHOWN]: attack for attack in attacks}
        self._sensible = sensible
        self._canary = canary
        self._words = f"{canary} {address} <script>alert('{canary}')</script>" if instead else canary
        self._instead = instead

    def __call__(self, prompt: SeenPrompt) -> str:
        answer = json.loads(self._sensible(prompt))
        shown = _plain(f"{prompt.system} {prompt.text}")
        found = [attack for piece, attack in self._attacks.items() if piece in shown]
        if not found:
            return json.dumps(answer)
        self.obeyed.setdefault(prompt.form, set()).update(found)
        doubts = prompt.form == "Analysis"  # or there would be no further round to take over
        obeyed = self._obey(answer, prompt.schema, doubts)
        return json.dumps({**obeyed, **self._pointing_at(found, prompt, answer)})

    def _obey(self, value: Any, schema: Mapping[str, Any], doubts: bool) -> Any:
        match value:
            case dict():
                fields = schema.get("properties", {})
                return {name: self._obey(item, fields.get(name, {}), doubts) for name, item in value.items()}
            case list():
                items = schema.get("items", {})
                return [self._obey(item, items, doubts) for item in (instance(dict(items)), *value)]
            case str():
                if choices := schema.get("enum"):
                    return next((word for word in GRANTED if word in choices), value)
                return self._words if self._instead else f"{value} {self._words}"
            case bool():
                return value
            case int() | float():
                return value if doubts else schema.get("maximum", value)
        return value

    def _pointing_at(self, found: Sequence[str], prompt: SeenPrompt, answer: Mapping[str, Any]) -> dict[str, Any]:
        lines = {int(number): line for number, line in re.findall(r"^\[(\d+)\] (.+)$", prompt.text, re.M)}
        pieces = [_plain(attack)[:SHOWN] for attack in found]
        guilty = [number for number, line in lines.items() if any(piece in _plain(line) for piece in pieces)]
        if "picks" in answer:
            picked = [{"first": number, "last": number + 2, "score": 10} for number in guilty]
            return {"picks": [*picked, *answer["picks"]]}
        if "claims" in answer:
            own = [{"text": lines[n].partition(") ")[2], "quotes": [n], "question": 1, "relevance": 10} for n in guilty]
            added = [{**claim, "text": f"{claim['text']} {self._canary}"} for claim in answer["claims"]]
            return {"claims": [*own, *added, *answer["claims"]]}
        return {}


def _plain(text: str) -> str:
    """As a prompt shows it: one line, and no angle bracket that could be a tag."""
    return " ".join(text.replace("‹", "<").split())
