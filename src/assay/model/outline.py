"""The skeleton of a plan: sub-questions under sections, each with queries, put together so that it stays whole."""

import re
from collections.abc import Collection, Sequence

from assay.errors import AnswerError
from assay.model.plan import MOST_QUERIES, TYPES_BY_DEPTH, Plan, SearchQuery, SubQuestion

# Words that ask. What is left of a sub-question without them is what it is looked for by.
_ASKING = frozenset(
    "a about an and any are as at be been by can could did do does for from had has have how i if in is it its known "
    "many much of on or other should that the their there these this those to was were what when where which who whom "
    "whose why will with would".split()
)
_WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*")


def known(plan: Plan, name: str) -> SubQuestion:
    """The sub-question of that id, however it is spelt."""
    for question in plan.questions:
        if question.id.casefold() == name.casefold():
            return question
    ids = ", ".join(question.id for question in plan.questions) or "none"
    raise AnswerError(f"there is no sub-question {name}.", help=f"The plan has {ids}.")


def titled(plan: Plan, title: str) -> str | None:
    return next((own for own in plan.sections if own.casefold() == title.casefold()), None)


def section(plan: Plan, title: str) -> str:
    if own := titled(plan, title):
        return own
    raise AnswerError(f"there is no section {title}.", help=f"The plan has: {'; '.join(plan.sections) or 'none'}.")


def place(wanted: int | None, last: int) -> int:
    """The last one where none is wanted."""
    if wanted is not None and wanted > last:
        raise AnswerError(f"there is no place {wanted}.", help=f"Places go from 1 to {last}.")
    return wanted or last


def unasked(plan: Plan, text: str, besides: str = "") -> None:
    for question in plan.questions:
        if question.id != besides and question.text.casefold() == text.casefold():
            raise AnswerError(f"{question.id} asks that already.", help="Ask something else, or leave it as it is.")


def numbered(letter: str, ids: Collection[str]) -> str:
    """The next free number, which no id of the plan has reached."""
    return f"{letter}{max((int(found[0]) for id in ids if (found := re.findall(r'[0-9]{1,9}$', id))), default=0) + 1}"


def topic(plan: Plan, text: str) -> str:
    """The parts of what the plan is about, and when, that a sub-question does not name itself."""
    said = set(_words(text))
    parts = (plan.topic or plan.goal.strip(" .?!")).split(", ")
    return ", ".join(part for part in parts if not said & set(_words(part)))


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.casefold()) if word not in _ASKING]


def rebuilt(plan: Plan, questions: Sequence[SubQuestion], sections: Sequence[str]) -> Plan:
    """Sections in the order of their first sub-questions. One that has lost its last sub-question goes; one that never
    had any stays where it is."""
    held = list(dict.fromkeys(question.section for question in questions))
    emptied = {question.section for question in plan.questions} - set(held)
    in_turn = iter(held)
    kept = [title for title in dict.fromkeys(sections) if title not in emptied]
    ordered = tuple(next(in_turn) if title in held else title for title in kept)
    return asking(plan.model_copy(update={"questions": tuple(questions), "sections": ordered}))


def without(plan: Plan, gone: Collection[str]) -> Plan:
    questions = [question for question in plan.questions if question.id not in gone]
    if not questions:
        raise AnswerError("that would leave no sub-question.", help="Add another one first, or reword what there is.")
    queries = tuple(query for query in plan.queries if query.question not in gone)
    return rebuilt(plan.model_copy(update={"queries": queries}), questions, plan.sections)


def asking(plan: Plan) -> Plan:
    """With queries of its own words for every sub-question that has none; the least needed of the others make room."""
    asked = {query.question for query in plan.queries}
    queries = list(plan.queries)
    for question in plan.questions:
        if question.id not in asked:
            for kind in TYPES_BY_DEPTH[plan.depth]:
                id, priority = numbered("K", [query.id for query in queries]), 1 if kind == "web" else 2
                queries.append(
                    SearchQuery(id=id, text=_query(question, plan), question=question.id, type=kind, priority=priority)
                )
    return plan.model_copy(update={"queries": tuple(_fitting(queries))})


def _query(question: SubQuestion, plan: Plan) -> str:
    words = dict.fromkeys(_words(f"{question.text} {question.topic or topic(plan, question.text)}"))
    return " ".join(words) or question.text


def _fitting(queries: list[SearchQuery]) -> list[SearchQuery]:
    while len(queries) > MOST_QUERIES:
        by_question = [query.question for query in queries]
        spare = [at for at, name in enumerate(by_question) if by_question.count(name) > 1]
        queries = [*queries[: (least := max(spare, key=lambda at: (queries[at].priority, at)))], *queries[least + 1 :]]
    return queries
