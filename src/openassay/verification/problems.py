"""What the checks of a statement report: the kind of disagreement, and a sentence for the reader."""

from dataclasses import dataclass
from typing import Literal

ProblemKind = Literal["figure", "unit", "date", "name", "negation", "direction", "hedge", "scope", "spelling"]


@dataclass(frozen=True, slots=True)
class StatementProblem:
    kind: ProblemKind
    text: str
