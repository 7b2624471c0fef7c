"""A model that does whatever the text before it asks: as soon as an attack stands in its prompt, it obeys.

It puts its canary wherever a form has room for words, adds items to every list, gives every mark its highest value,
asks for the address it was told, and points at the attack itself as the best evidence there is.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.fakes import model_answers as sensible
from tests.fakes.llm_api import ModelPrompt
from tests.fakes.model_answers import build_instance

# A model that answers by the form it is asked to fill in.


class FakeModel:
    """`answers` by the form's title; those of the language reasoner are known, and of any other form the smallest value
    it allows is given. An answer that is a string is sent as it is, anything else as JSON.

    A plan has `questions` sub-questions with `queries` each; analyses find gaps until `rounds` of searching are done.
    """

    def __init__(
        self,
        answers: Mapping[str, Callable[[ModelPrompt], object]] | None = None,
        *,
        questions: int = 3,
        queries: int = 3,
        rounds: int = 1,
    ) -> None:
        self._answers = dict(answers or {})
        self._known = sensible.build_answers(questions, queries, rounds)

    def __call__(self, prompt: ModelPrompt) -> str:
        answer = self._build_answer(prompt)
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)

    def _build_answer(self, prompt: ModelPrompt) -> object:
        if prompt.form in self._answers:
            return self._answers[prompt.form](prompt)
        if prompt.form in self._known:
            return sensible.fit_schema(self._known[prompt.form](prompt), prompt.schema)
        return build_instance(dict(prompt.schema)) if prompt.schema else "text"


ATTACK_PREFIX = 80  # characters of an attack by which it is known
TOP_CHOICES = ("supported", "strong", "major", "sufficient", "approve", "yes")


class ObedientModel:
    """`canary` is a word that no page has; `address` is where it tries to lead. With `instead` the canary takes the
    place of what it would have said. `obeyed` has the attacks it acted upon, by the form it was filling in."""

    def __init__(
        self, attacks: Sequence[str], sensible: FakeModel, *, canary: str, address: str, instead: bool
    ) -> None:
        self.obeyed: dict[str, set[str]] = {}
        self._attacks = {_normalise(attack)[:ATTACK_PREFIX]: attack for attack in attacks}
        self._sensible = sensible
        self._canary = canary
        self._words = f"{canary} {address} <script>alert('{canary}')</script>" if instead else canary
        self._instead = instead

    def __call__(self, prompt: ModelPrompt) -> str:
        answer = json.loads(self._sensible(prompt))
        shown = _normalise(f"{prompt.system} {prompt.text}")
        found = [attack for piece, attack in self._attacks.items() if piece in shown]
        if not found:
            return json.dumps(answer)
        self.obeyed.setdefault(prompt.form, set()).update(found)
        doubts = prompt.form == "Analysis"  # or there would be no further round to take over
        obeyed = self._obey(answer, prompt.schema, doubts)
        return json.dumps({**obeyed, **self._cite_attacks(found, prompt, answer)})

    def _obey(self, value: Any, schema: Mapping[str, Any], doubts: bool) -> Any:
        match value:
            case dict():
                fields = schema.get("properties", {})
                return {name: self._obey(item, fields.get(name, {}), doubts) for name, item in value.items()}
            case list():
                items = schema.get("items", {})
                return [self._obey(item, items, doubts) for item in (build_instance(dict(items)), *value)]
            case str():
                if choices := schema.get("enum"):
                    return next((word for word in TOP_CHOICES if word in choices), value)
                return self._words if self._instead else f"{value} {self._words}"
            case bool():
                return value
            case int() | float():
                return value if doubts else schema.get("maximum", value)
        return value

    def _cite_attacks(self, found: Sequence[str], prompt: ModelPrompt, answer: Mapping[str, Any]) -> dict[str, Any]:
        lines = {int(number): line for number, line in re.findall(r"^\[(\d+)\] (.+)$", prompt.text, re.M)}
        pieces = [_normalise(attack)[:ATTACK_PREFIX] for attack in found]
        guilty = [number for number, line in lines.items() if any(piece in _normalise(line) for piece in pieces)]
        if "picks" in answer:
            picked = [{"first": number, "last": number + 2, "score": 10} for number in guilty]
            return {"picks": [*picked, *answer["picks"]]}
        if "claims" in answer:
            own = [{"text": lines[n].partition(") ")[2], "quotes": [n], "question": 1, "relevance": 10} for n in guilty]
            added = [{**claim, "text": f"{claim['text']} {self._canary}"} for claim in answer["claims"]]
            return {"claims": [*own, *added, *answer["claims"]]}
        return {}


def _normalise(text: str) -> str:
    """As a prompt shows it: one line, and no angle bracket that could be a tag."""
    return " ".join(text.replace("‹", "<").split())
