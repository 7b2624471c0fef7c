"""A reasoner whose single answers a test chooses."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from openassay.models.evidence import Company, Mention
from openassay.protocols import CompanyResolver, Embedder, SupportScorer
from openassay.reasoning.rules import RuleReasoner
from openassay.text.words import fold

# A register of a few companies, as many as a test names.

_END = r"(?:['’]s\b|\b)"


class FakeCompanies:
    """`aliases` maps what a company may be called to its short name; several short names joined by "|" are as likely.

    Capitals do not matter, and nothing else is known: no misspelling, no description that is not an alias.
    """

    def __init__(self, aliases: Mapping[str, str]) -> None:
        shorts = dict.fromkeys(short for named in aliases.values() for short in named.split("|"))
        self._companies = {short: Company(cik=n, name=f"{short} Inc.", short=short) for n, short in enumerate(shorts)}
        self._called = {fold(alias): named.split("|") for alias, named in aliases.items()}
        for short in shorts:
            self._called.setdefault(fold(short), [short])

    def resolve(self, name: str) -> Company | None:
        meant = self._find_companies(name)
        return meant[0] if len(meant) == 1 else None

    def candidates(self, name: str) -> list[Company]:
        return self._find_companies(name)

    def mentions(self, text: str) -> list[Mention]:
        plain = fold(text)
        if len(plain) != len(text):  # letters that fold to several: positions would be wrong
            return []
        found: list[Mention] = []
        for alias in sorted((alias for alias in self._called if self.resolve(alias)), key=len, reverse=True):
            for match in re.finditer(rf"\b{re.escape(alias)}(?={_END})(?!\w)", plain):
                if not any(match.start() < other.end and other.start < match.end() for other in found):
                    [company] = self._find_companies(alias)
                    at = slice(match.start(), match.end())
                    found.append(Mention(text=text[at], start=at.start, end=at.stop, company=company))
        return sorted(found, key=lambda mention: mention.start)

    def _find_companies(self, name: str) -> list[Company]:
        plain = " ".join(fold(name).replace("’", "'").removesuffix("'s").strip(" .,?!").split())
        shorts = self._called.get(plain) or self._called.get(plain.removeprefix("the ")) or []
        return [self._companies[short] for short in shorts]


class StubReasoner(RuleReasoner):
    """An EmbeddedReasoner of which single methods are replaced, to see what the pipeline makes of their answers.

    A replacement gets the real method and its arguments, and may be a coroutine function:
    `ScriptedReasoner(..., judge=lambda real, statements: [Judgement(...) for _ in statements])`. `calls` is
    every call that was made, in order, by method and arguments.
    """

    METHODS = frozenset(
        "understand propose_questions plan propose_queries read analyse extract_claims judge judge_syntheses "
        "compare_voices find_denials find_disagreements edit write write_verbatim critique score_draft condense".split()
    )

    def __init__(
        self, embedder: Embedder, support: SupportScorer, companies: CompanyResolver, **script: Callable[..., Any]
    ) -> None:
        super().__init__(embedder, support, companies)
        if unknown := set(script) - self.METHODS:
            raise TypeError(f"a reasoner has no method {', '.join(sorted(unknown))}")
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        for name in self.METHODS:
            setattr(self, name, self._wrap_method(name, getattr(self, name), script.get(name)))

    def _wrap_method(
        self, name: str, real: Callable[..., Any], scripted: Callable[..., Any] | None
    ) -> Callable[..., Any]:
        async def call(*args: Any) -> Any:
            self.calls.append((name, args))
            answer = real(*args) if scripted is None else scripted(real, *args)
            return await answer if inspect.isawaitable(answer) else answer

        return call
