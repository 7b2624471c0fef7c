"""Handing out work: every sub-question in the first round, only the gaps in later ones."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import get_args

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.event import Status
from assay.model.plan import Plan, QueryType, SubQuestion
from assay.model.question import Understanding
from assay.ports import Remote, Source
from assay.reasoning.protocol import QueryRequest
from assay.stages.asking_once import Once, Wanted, found_before
from assay.stages.taste import Taste, eligible, sites, taste
from assay.state import Plain, State, Task
from assay.text.sense import sense

SERVED: tuple[QueryType, ...] = ("web",)  # by a source that does not say otherwise in an attribute `types`
MOST_SITES = 2  # that a question names
BRISK = 60  # requests a minute; who allows for fewer would keep a round waiting with every further query
IN_HAND = 2  # queries a sub-question keeps for when its first ones bring little


async def dispatch(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    plan = Plan.model_validate(state["plan"])
    understanding = Understanding.model_validate(state["understanding"])
    wishes = taste(understanding.question, deps.options)
    sources = eligible(deps.sources, plan.sources, wishes)
    known = asked(state)
    wanted = await _wanted(plan, understanding, sources, state, deps)
    once = Once(known, served(sources), _most(deps))
    fresh = {q.id: once.queries(q.id, queries) for q, queries in zip(plan.questions, wanted, strict=True)}
    before = found_before(once.earlier, state["searched"])
    helped = once.shared | {result["question"] for result in before}
    due = [(question, fresh[question.id]) for question in plan.questions if fresh[question.id] or question.id in helped]
    # The first round is always made: without money left the embedded reasoner does its thinking.
    if state["round"] and due and await deps.account.exhausted():
        return {
            "tasks": [],
            "notices": await out_of_money(state, [question for question, _ in due], "dispatch", deps),
            "current_agent": "research",
        }
    await _tell_repeated(once.repeated, deps)
    names = [source.name for source in sources]
    asking = known + [f"{question.id} {query['text']}" for question, queries in due for query in queries]
    tasks = [_task(question, queries, asking, names, plan, state) for question, queries in due]
    return {
        "tasks": [dict(task) for task in tasks],
        "notices": {**state["notices"], **(await _left_out(plan, wishes, deps) if not state["round"] else {})},
        "asked": asking,
        "searched": {f"{state['round']}:{n} lent": result for n, result in enumerate(before)},
        "round": state["round"] + 1,
        "research_attempts": state["research_attempts"] + 1,
        "status": Status.SEARCHING,
        "current_agent": "research",
    }


def asked(state: State) -> list[str]:
    """Every query so far behind its sub-question's id: those handed out, and those a search came up with itself."""
    results = [state["searched"][key] for key in sorted(state["searched"])]
    own = [
        f"{result['question']} {query.get('as', query['text'])}" for result in results for query in result["queries"]
    ]
    return list(dict.fromkeys([*state["asked"], *own]))


def served(sources: Iterable[Source]) -> tuple[QueryType, ...]:
    """The types of query there is a source for; a query of another type is not asked."""
    kinds = {kind for source in sources for kind in types_of(source)}
    return tuple(kind for kind in get_args(QueryType) if kind in kinds)


def types_of(source: Source) -> tuple[QueryType, ...]:
    return getattr(source, "types", SERVED)


async def out_of_money(state: State, skipped: Sequence[SubQuestion], stage: str, deps: Deps) -> dict[str, str]:
    """The notices with what was left out since the budget was spent."""
    count = f"{len(skipped)} sub-question{'s were' if len(skipped) > 1 else ' was'}"
    listed = "; ".join(question.text for question in skipped)
    note = f"The budget was spent after round {state['round']}: {count} not searched again: {listed}"
    await deps.emit("notice", stage, text=note, questions=[question.id for question in skipped])
    return {**state["notices"], "budget": note}


async def _left_out(plan: Plan, wishes: Taste, deps: Deps) -> dict[str, str]:
    """Notices on sources of this run that are not asked, and on such as it has not."""
    names = [source.name for source in deps.sources]
    avoided = [name for name in names if wishes.avoided(name)]
    unknown = [name for name in plan.sources if name not in names]
    notices = {}
    if avoided:
        notices["avoided"] = f"Not asked, since you want to avoid it: {', '.join(avoided)}."
    if unknown:
        notices["planned"] = f"Named in the plan, but none of this run's sources: {', '.join(unknown)}."
    for text in notices.values():
        await deps.emit("notice", "dispatch", text=text)
    return notices


async def _wanted(
    plan: Plan, understanding: Understanding, sources: Sequence[Source], state: State, deps: Deps
) -> list[Wanted]:
    """Round 0: the plan's queries and variations of them. Later: what the analysis found wanting."""
    analysis = state["analysis"]
    if analysis is not None:
        return [{text: [] for text in analysis["refinements"].get(question.id, ())} for question in plan.questions]
    return await asyncio.gather(*(_first(question, plan, understanding, sources, deps) for question in plan.questions))


async def _first(
    question: SubQuestion, plan: Plan, understanding: Understanding, sources: Sequence[Source], deps: Deps
) -> Wanted:
    types = served(sources)
    planned = [query for query in plan.queries if query.question == question.id and query.type in types]
    wanted: Wanted = {query.text: [] for query in planned}
    for query in planned:
        wanted[query.text].append(query.type)
    variations = await deps.reasoner.queries(
        QueryRequest(question=question, understanding=understanding,
                     count=deps.settings.query_variations + len(wanted) - len(set(map(sense, wanted))),
                     planned=tuple(wanted), types=types, share=1 / len(plan.questions))
    )  # fmt: skip
    for variation in variations:
        wanted.setdefault(variation.text, [variation.type] if variation.type in types else [])
    remote = any(isinstance(source, Remote) for source in sources)
    first = dict(list(wanted.items())[:1])  # comes before all others, so that no source goes without it
    preferred = taste(understanding.question, deps.options).sites
    return {**first, **(scoped(wanted, understanding.question, preferred) if remote else {}), **wanted}


def scoped(wanted: Wanted, question: str, preferred: Sequence[str] = ()) -> Wanted:
    """The first query once more for each site the question names, and once for those the person prefers; its providers'
    own filters are used for that."""
    scopes = [f"site:{host}" for host in sites(question)[:MOST_SITES]]
    if preferred:
        scopes.append(" ".join(f"site:{host}" for host in preferred))
    return {f"{scope} {next(iter(wanted))}": ["web"] for scope in dict.fromkeys(scopes)} if wanted else {}


def _most(deps: Deps) -> int:
    """Queries of one sub-question in a round."""
    most = deps.settings.max_search_iterations
    return (
        most if deps.reasoner.name == "embedded" else max(1, most - IN_HAND)
    )  # the former has no other words to offer


async def _tell_repeated(repeated: Sequence[str], deps: Deps) -> None:
    texts = list(dict.fromkeys(repeated))
    if texts:
        reason = f"{'they ask' if len(texts) > 1 else 'it asks'} the same as another query"
        await deps.emit("skip", "dispatch", path="; ".join(texts), reason=reason, queries=texts)


def _task(
    question: SubQuestion, queries: list[Plain], asking: Sequence[str], sources: list[str], plan: Plan, state: State
) -> Task:
    own = {f"{question.id} {query['text']}" for query in queries}
    return {
        "key": f"{state['round']}:{question.id}",
        "question": question.plain(),
        "queries": queries,
        "before": list(dict.fromkeys(line.partition(" ")[2] for line in asking if line not in own)),
        "share": 1 / len(plan.questions),
        "sources": sources,
        "passages": [],
        "pages": [],
    }
