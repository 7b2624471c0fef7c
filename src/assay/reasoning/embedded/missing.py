"""What the evidence for a sub-question does not have, said so that it can be searched for (C-09)."""

from collections.abc import Mapping, Sequence

from assay.model.plan import Plan, SubQuestion
from assay.reasoning.embedded.aspects import WANTED, is_about_a_company, lacking
from assay.reasoning.embedded.understanding import topic_of
from assay.text.asked import ASKING, kinds, shows, span
from assay.text.names import names
from assay.text.relations import years
from assay.text.words import content_words, stem, stems

MOST = 3
LONGEST = 5  # words a query has besides what is missing
NOTHING = ("overview", "news", "figures")  # to look for where nothing was found at all
CONFIRMATION = "independent confirmation"
SETTLEMENT = "what settles the disagreement"
# What is lacking and is no word to search for: the kinds of text that could have it.
LOOKED_FOR = {
    CONFIRMATION: ("independent study", "official data", "original report"),
    SETTLEMENT: ("latest review", "comparison of measurements", "official revised figures"),
}


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
    """The kind of answer that is asked for, the period, then words of the question that nothing found has."""
    wanted = [kind for kind in kinds(question.text) if not any(shows(kind, quote) for quote in quotes)]
    there = {known for quote in quotes for known in stems(quote)}  # called `stem`, Python 3.12 takes it below
    words = [word for word in content_words(question.text) if stem(word) not in there | ASKING] if quotes else NOTHING
    return tuple(dict.fromkeys((*wanted, *_period(question, quotes), *words)))[:MOST]


def _period(question: SubQuestion, quotes: Sequence[str]) -> list[str]:
    asked = span(question.in_context)
    if asked is None or any(asked.meet(years(quote)) for quote in quotes):
        return []
    return [str(year) for year in sorted({asked.first, asked.last} & years(question.in_context))]


def queries(question: SubQuestion, lacks: Sequence[str], *, found: bool) -> list[str]:
    """What the sub-question is about, and one thing it lacks: never a word of a page. Where nothing was found, all it
    is about; else its names are enough."""
    whole = content_words(f"{question.topic} {topic_of(question.text)}")
    named = content_words(" ".join(names(question.in_context)[:2]))
    about = list(dict.fromkeys((named if found else whole) or whole))[:LONGEST]
    texts = []
    for lack in lacks:
        # A kind of text says nothing of the matter, so the matter is said in full.
        head = list(dict.fromkeys(whole or about))[:LONGEST] if lack in LOOKED_FOR else about
        texts += [" ".join([*head, sought]) for sought in LOOKED_FOR.get(lack, (lack,)) if sought not in head]
    return texts
