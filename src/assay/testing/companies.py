"""A register of a few companies, as many as a test names."""

import re
from collections.abc import Mapping

from assay.model.company import Company, Mention
from assay.text.words import fold

_END = r"(?:['’]s\b|\b)"


class FewCompanies:
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
        meant = self._meant(name)
        return meant[0] if len(meant) == 1 else None

    def candidates(self, name: str) -> list[Company]:
        return self._meant(name)

    def mentions(self, text: str) -> list[Mention]:
        plain = fold(text)
        if len(plain) != len(text):  # letters that fold to several: positions would be wrong
            return []
        found: list[Mention] = []
        for alias in sorted((alias for alias in self._called if self.resolve(alias)), key=len, reverse=True):
            for match in re.finditer(rf"\b{re.escape(alias)}(?={_END})(?!\w)", plain):
                if not any(match.start() < other.end and other.start < match.end() for other in found):
                    [company] = self._meant(alias)
                    at = slice(match.start(), match.end())
                    found.append(Mention(text=text[at], start=at.start, end=at.stop, company=company))
        return sorted(found, key=lambda mention: mention.start)

    def _meant(self, name: str) -> list[Company]:
        plain = " ".join(fold(name).replace("’", "'").removesuffix("'s").strip(" .,?!").split())
        shorts = self._called.get(plain) or self._called.get(plain.removeprefix("the ")) or []
        return [self._companies[short] for short in shorts]
