"""A model that answers by the form it is asked to fill in."""

import json
from collections.abc import Callable, Mapping

from assay.testing import answers as sensible
from assay.testing.schema import instance
from assay.testing.seen import SeenPrompt


class ScriptedModel:
    """`answers` by the form's title; those of the language reasoner are known, and of any other form the smallest value
    it allows is given. An answer that is a string is sent as it is, anything else as JSON.

    A plan has `questions` sub-questions with `queries` each; analyses find gaps until `rounds` of searching are done.
    """

    def __init__(
        self,
        answers: Mapping[str, Callable[[SeenPrompt], object]] | None = None,
        *,
        questions: int = 3,
        queries: int = 3,
        rounds: int = 1,
    ) -> None:
        self._answers = dict(answers or {})
        self._known = sensible.answers(questions, queries, rounds)

    def __call__(self, prompt: SeenPrompt) -> str:
        answer = self._answer(prompt)
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)

    def _answer(self, prompt: SeenPrompt) -> object:
        if prompt.form in self._answers:
            return self._answers[prompt.form](prompt)
        if prompt.form in self._known:
            return sensible.fitted(self._known[prompt.form](prompt), prompt.schema)
        return instance(dict(prompt.schema)) if prompt.schema else "text"
