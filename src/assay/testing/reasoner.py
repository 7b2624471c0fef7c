"""A reasoner whose single answers a test chooses."""

import inspect
from collections.abc import Callable
from typing import Any

from assay.ports import Companies, Embedder, SupportScorer
from assay.reasoning.embedded import EmbeddedReasoner


class ScriptedReasoner(EmbeddedReasoner):
    """An EmbeddedReasoner of which single methods are replaced, to see what the pipeline makes of their answers.

    A replacement gets the real method and its arguments, and may be a coroutine function:
    `ScriptedReasoner(..., judge=lambda real, statements: [Judgement(...) for _ in statements])`. `calls` is
    every call that was made, in order, by method and arguments.
    """

    METHODS = frozenset(
        "understand questions plan queries read analyse claims judge disagreements write critique condense".split()
    )

    def __init__(
        self, embedder: Embedder, support: SupportScorer, companies: Companies, **script: Callable[..., Any]
    ) -> None:
        super().__init__(embedder, support, companies)
        if unknown := set(script) - self.METHODS:
            raise TypeError(f"a reasoner has no method {', '.join(sorted(unknown))}")
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        for name in self.METHODS:
            setattr(self, name, self._played(name, getattr(self, name), script.get(name)))

    def _played(self, name: str, real: Callable[..., Any], scripted: Callable[..., Any] | None) -> Callable[..., Any]:
        async def call(*args: Any) -> Any:
            self.calls.append((name, args))
            answer = real(*args) if scripted is None else scripted(real, *args)
            return await answer if inspect.isawaitable(answer) else answer

        return call
