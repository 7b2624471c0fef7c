"""Do the figures agree? Every number, unit, date, name, negation, direction and hedge of a statement against
the passages quoted for it, before and whatever any model says (X-03).

The checks doubt and never vouch: a statement that passes may still say something else than its passage, a
statement that fails is not published in those words. A figure must also be spelled as it is in the passage
("6.4" and not "6,400 million"), because a reader, and any program, looks for it there.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from openassay.verification.figures import check_figures
from openassay.verification.names import check_names
from openassay.verification.polarity import StatementProblem, check_polarity
from openassay.verification.wording import check_word_order, check_wording, is_close_wording

_CITATION = re.compile(r"\[S\d+\]")


@dataclass(frozen=True, slots=True)
class StatementCheck:
    problems: tuple[StatementProblem, ...] = ()

    @property
    def agrees(self) -> bool:
        return not self.problems


def check_statement(
    statement: str, quotes: Sequence[str], known: Collection[str] = (), published: date | None = None
) -> StatementCheck:
    """Find what in the statement its quotes do not bear out. `known` are names that need no quote: the document's
    title and host, the subjects of the question; `published` tells what day "on Tuesday" was."""
    if statement in quotes:
        return StatementCheck()
    statement = _CITATION.sub(" ", statement)
    composed, *passages = (unicodedata.normalize("NFC", text) for text in (statement, *quotes))
    # Where all else is the passage's own wording, the least thing that is not tells; free words have to be let pass.
    strict = is_close_wording(composed, passages)
    problems = list(check_figures(statement, quotes, published, strict=strict))
    passage = "\n".join(quotes)
    if not problems and (strange := extract_numbers(statement, worded=False) - extract_numbers(passage, worded=True)):
        numbers = ", ".join(f"{number:.15g}" for number in sorted(strange))
        problems.append(StatementProblem("spelling", f"{numbers} is not spelled so in the quoted passage"))
    problems += [
        *check_names(composed, passages, known, strict=strict),
        *check_polarity(composed, passages),
        *check_word_order(composed, passages, strict=strict),
        *check_wording(composed, [*passages, " ".join(known)]),
    ]
    return StatementCheck(tuple(dict.fromkeys(problems)))


_NUMBER = re.compile(r"(?<![\w.])[-+−]?\d[\d,\u00a0\u202f]*(?:\.\d+)?")
_SMALL = "zero one two three four five six seven eight nine ten eleven twelve".split()
_SMALL_WORD = re.compile(rf"\b(?:{'|'.join(_SMALL)})\b", re.I)
_COUNTS = {word: float(value) for value, word in enumerate(_SMALL) if value > 1}
_MARKS = str.maketrans("", "", ",\u00a0\u202f+−-")


@lru_cache(maxsize=512)
def extract_numbers(text: str, *, worded: bool) -> frozenset[float]:
    """Return the numbers of a text as an outside checker reads them: unsigned digits, and small number words."""
    text = _CITATION.sub(" ", text if worded else _SMALL_WORD.sub(" ", text))
    digits = (float(match.translate(_MARKS)) for match in _NUMBER.findall(text))
    small = {word.casefold() for word in _SMALL_WORD.findall(text)}
    return frozenset((*digits, *(_COUNTS[word] for word in small & _COUNTS.keys())))
