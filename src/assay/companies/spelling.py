"""Strings one slip away: a letter wrong, missing, too many, or two changed round."""

from collections.abc import Iterable, Iterator

FEWEST = 5  # letters a string must have: with fewer, another name is as likely as a slip


class Spellings:
    """Finds what differs from a string by one slip.

    One slip leaves the beginning or the end of a string as it was, save the two letters in the middle that may have
    changed places: so two entries a string are enough to find it."""

    def __init__(self, strings: Iterable[str]) -> None:
        self._beginnings: dict[tuple[int, str], list[str]] = {}
        self._ends: dict[tuple[int, str], list[str]] = {}
        for string in strings:
            length = len(string)
            if length >= FEWEST:
                half = length // 2
                self._beginnings.setdefault((length, string[: half - 1]), []).append(string)
                self._ends.setdefault((length, string[half + 1 :]), []).append(string)

    def near(self, string: str) -> list[str]:
        """What is one slip away, in alphabetical order; the string itself is not."""
        return sorted({other for other in self._likely(string) if one_slip(string, other)})

    def _likely(self, string: str) -> Iterator[str]:
        for length in (len(string) - 1, len(string), len(string) + 1):
            half = length // 2
            yield from self._beginnings.get((length, string[: half - 1]), ())
            yield from self._ends.get((length, string[len(string) - (length - half - 1) :]), ())


def one_slip(left: str, right: str) -> bool:
    if left == right or abs(len(left) - len(right)) > 1:
        return False
    shorter, longer = sorted((left, right), key=len)
    at = next((place for place, letter in enumerate(shorter) if letter != longer[place]), len(shorter))
    if len(shorter) < len(longer):
        return shorter[at:] == longer[at + 1 :]
    changed_round = shorter[at : at + 2] == longer[at : at + 2][::-1] and shorter[at + 2 :] == longer[at + 2 :]
    return shorter[at + 1 :] == longer[at + 1 :] or changed_round
