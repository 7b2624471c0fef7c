"""Words a query of a later round may have: those of the question and the plan, and a few of our own.

Whoever analyses has seen pages. A page must not be able to have something asked, so whatever comes of an analysis is
put into these words before it goes anywhere.
"""

import re
from collections.abc import Iterable

from assay.model.plan import Plan
from assay.text.words import stems

# They say what kind of text is looked for, never of what.
NEUTRAL = frozenset(
    stems(
        "annual article cause change comparison confirmed current data date detail effect estimate evidence example "
        "explanation fact figure history independent journal latest list measurement method name new number official "
        "original overview paper percent price primary publication reason recent record report research result review "
        "revised source statistics study summary survey table timeline total trend update value year "
        # sides of a company
        "announcement competitor development dividend earnings forecast key launch market news product profit revenue "
        "sales share stock"
    )
)

_EDGES = re.compile(r"^\W+|\W+$")


def words_of(plan: Plan, asked: Iterable[str] = ()) -> frozenset[str]:
    """Stems of what people and the planner said; `asked` are earlier queries, made without a look at any page."""
    texts = (plan.goal, *plan.sections, *asked, *(question.in_context for question in plan.questions),
             *(line.text for line in plan.queries))  # fmt: skip
    return frozenset(stem for text in texts for stem in stems(text)) | NEUTRAL


def is_known(text: str, known: frozenset[str]) -> bool:
    """Whether a text of ours has no word from elsewhere."""
    return set(stems(text)) <= known


def in_known_words(query: str, known: frozenset[str]) -> str:
    """The query without any word that is not known; nothing, if only words of ours are left. Small words, single
    letters and operators go too: enough of them could spell out anything."""
    bare = (_EDGES.sub("", word) for word in query.split())
    kept = [word for word in bare if (said := set(stems(word))) and said <= known]
    return " ".join(kept) if set(stems(" ".join(kept))) - NEUTRAL else ""
