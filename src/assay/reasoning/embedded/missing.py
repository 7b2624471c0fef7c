"""What the evidence for a sub-question does not have, said so that it can be searched for (C-09)."""

import re
from collections.abc import Callable, Mapping, Sequence

from assay.model.plan import Plan, SubQuestion
from assay.reasoning.embedded.aspects import WANTED, is_about_a_company, lacking
from assay.reasoning.embedded.understanding import topic_of
from assay.text.names import names
from assay.text.quantities import quantities
from assay.text.relations import years
from assay.text.words import content_words, fold, stems

MOST = 3
LONGEST = 5  # words a query has besides what is missing
NOTHING = ("overview", "news", "figures")  # to look for where nothing was found at all

# Kinds of answer that a question asks for by its form, and how a quote shows that it is one.
_FORMS: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
    (
        "figures",
        re.compile(r"\bhow (?:many|much|large|big|high|tall|deep|long|old|far|fast|heavy|often)\b"),
        lambda quote: any(quantity.kind not in ("year", "date") for quantity in quantities(quote)),
    ),
    ("date", re.compile(r"\bwhen\b|\bwhich (?:year|day|date)\b"), lambda quote: bool(years(quote))),
    (
        "reason",
        re.compile(r"\bwhy\b"),
        lambda quote: re.search(r"\b(?:because|due to|caused?|causes|reasons?|since|owing)\b", fold(quote)) is not None,
    ),
)  # fmt: skip


def missing(plan: Plan, quotes: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """By sub-question, for those that lack something; `quotes` are what was found for each."""
    found = {question.id: _missing(question, quotes.get(question.id, ())) for question in plan.questions}
    if is_about_a_company(plan.sections):
        found = _sides(plan, [quote for told in quotes.values() for quote in told])
    return {id: lacks for id, lacks in found.items() if lacks}


def _sides(plan: Plan, quotes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Sides of a company nothing speaks of, each laid to the sub-question it belongs to, or to the first."""
    homes = {question.section: question.id for question in reversed(plan.questions)}
    found: dict[str, tuple[str, ...]] = {}
    for section in lacking(quotes) if plan.questions else ():
        home = homes.get(section, plan.questions[0].id)
        found[home] = (*found.get(home, ()), WANTED[section])
    return found


def _missing(question: SubQuestion, quotes: Sequence[str]) -> tuple[str, ...]:
    """The kind of answer that is asked for, then words of the question that nothing found has."""
    asked = fold(question.text)
    kinds = [kind for kind, form, shown in _FORMS if form.search(asked) and not any(map(shown, quotes))]
    there = {stem for quote in quotes for stem in stems(quote)}
    words = [word for word in content_words(question.text) if not set(stems(word)) <= there] if quotes else NOTHING
    return tuple(dict.fromkeys((*kinds, *words)))[:MOST]


def queries(question: SubQuestion, lacks: Sequence[str], *, found: bool) -> list[str]:
    """What the sub-question is about, and one thing it lacks: never a word of a page. Where nothing was found, all it
    is about; else its names are enough."""
    whole = content_words(f"{question.topic} {topic_of(question.text)}")
    named = content_words(" ".join(names(question.in_context)[:2]))
    about = (named if found else whole) or whole
    return [" ".join([*dict.fromkeys(about[:LONGEST]), lack]) for lack in lacks]
