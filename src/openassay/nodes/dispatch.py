"""Hand out the searches of a round: every sub-question in the first, only the gaps in later ones."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.plan import Plan, QueryType, SubQuestion, Understanding
from openassay.nodes.preferences import SourcePreferences, find_sites, select_sources, source_preferences
from openassay.protocols import RemoteSource, Source
from openassay.reasoning.base import QueryRequest
from openassay.state import Plain, SearchOutcome, State, load_analysis, load_plan, load_searches, load_understanding
from openassay.text.words import QueryKey, query_key

DEFAULT_TYPES: tuple[QueryType, ...] = ("web",)  # of a source that does not say otherwise in an attribute `types`
MAX_SITES = 2  # that a question names
FAST_RATE = 60  # requests a minute; a slower source would keep a round waiting with every further query
RESERVE_QUERIES = 2  # queries a sub-question keeps for when its first ones bring little

TypesByQuery = dict[str, list[QueryType]]  # a query's text -> the kinds of source it is for; none: all of them


async def dispatch(state: State, runtime: Runtime[ResearchContext]) -> State:
    context, plan, understanding = runtime.context, load_plan(state), load_understanding(state)
    preferences = source_preferences(understanding.question, context.options)
    sources = select_sources(context.sources, plan.sources, preferences)
    types = available_types(sources)
    searches, earlier_queries, round_number = load_searches(state), list_queries(state), state["round"]
    wanted: list[TypesByQuery]
    if analysis := load_analysis(state):
        wanted = [{text: [] for text in analysis.refinements.get(question.id, ())} for question in plan.questions]
    else:
        wanted = await asyncio.gather(
            *(_first_round_queries(question, plan, understanding, sources, context) for question in plan.questions)
        )
    max_queries = context.settings.max_search_iterations
    if context.reasoner.name != "embedded":  # which has no other words to offer later
        max_queries = max(1, max_queries - RESERVE_QUERIES)
    deduplicator = QueryDeduplicator(earlier_queries, types, max_queries)
    fresh = {
        question.id: deduplicator.select_queries(question.id, queries)
        for question, queries in zip(plan.questions, wanted, strict=True)
    }
    reused = reuse_results(deduplicator.earlier, searches)
    helped = deduplicator.shared | {result["question"] for result in reused}
    due = [question for question in plan.questions if fresh[question.id] or question.id in helped]
    # The first round is always made: without money left the embedded reasoner does its thinking.
    if round_number and due and await context.account.is_exhausted():
        notices = await add_budget_notice(state, due, "dispatch", context)
        return {"tasks": [], "notices": notices, "current_agent": "research"}
    if repeated := list(dict.fromkeys(deduplicator.repeated)):
        reason = f"{'they ask' if len(repeated) > 1 else 'it asks'} the same as another query"
        await context.emit("skip", "dispatch", path="; ".join(repeated), reason=reason, queries=repeated)
    own = {question.id: [f"{question.id} {query['text']}" for query in fresh[question.id]] for question in due}
    asked = earlier_queries + [line for lines in own.values() for line in lines]
    tasks: list[Plain] = [
        {
            "key": f"{round_number}:{question.id}",
            "question": question.plain(),
            "queries": fresh[question.id],
            "before": list(dict.fromkeys(line.partition(" ")[2] for line in asked if line not in own[question.id])),
            "share": 1 / len(plan.questions),
            "sources": [source.name for source in sources],
            "passages": [],
            "pages": [],
        }
        for question in due
    ]
    source_notices = {} if round_number else await _source_notices(plan, preferences, context)
    return {
        "tasks": tasks,
        "notices": {**state["notices"], **source_notices},
        "asked": asked,
        "searched": {f"{round_number}:{n} lent": dict(result) for n, result in enumerate(reused)},
        "round": round_number + 1,
        "research_attempts": state["research_attempts"] + 1,
        "status": Status.SEARCHING,
        "current_agent": "research",
    }


async def _first_round_queries(
    question: SubQuestion, plan: Plan, understanding: Understanding, sources: Sequence[Source], context: ResearchContext
) -> TypesByQuery:
    """Collect the plan's queries and variations of them."""
    types = available_types(sources)
    wanted: TypesByQuery = {}
    for query in plan.queries:
        if query.question == question.id and query.type in types:
            wanted.setdefault(query.text, []).append(query.type)
    variations = await context.reasoner.propose_queries(
        QueryRequest(
            question=question,
            understanding=understanding,
            count=context.settings.query_variations + len(wanted) - len(set(map(query_key, wanted))),
            planned=tuple(wanted),
            types=types,
            share=1 / len(plan.questions),
            depth=plan.depth,
        )
    )
    for variation in variations:
        wanted.setdefault(variation.text, [variation.type] if variation.type in types else [])
    if not any(isinstance(source, RemoteSource) for source in sources):
        return wanted
    first = dict(list(wanted.items())[:1])  # comes before all others, so that no source goes without it
    preferred = source_preferences(understanding.question, context.options).sites
    return {**first, **scope_to_sites(wanted, understanding.question, preferred), **wanted}


def scope_to_sites(wanted: TypesByQuery, question: str, preferred: Sequence[str] = ()) -> TypesByQuery:
    """Repeat the first query for each site the question names, and once for those the person prefers, as `site:`
    filters."""
    scopes = [f"site:{host}" for host in find_sites(question)[:MAX_SITES]]
    if preferred:
        scopes.append(" ".join(f"site:{host}" for host in preferred))
    return {f"{scope} {next(iter(wanted))}": ["web"] for scope in dict.fromkeys(scopes)} if wanted else {}


async def _source_notices(plan: Plan, preferences: SourcePreferences, context: ResearchContext) -> dict[str, str]:
    """Report sources of this run that are not searched, and planned ones that it does not have."""
    names = [source.name for source in context.sources]
    avoided = [name for name in names if preferences.avoid_rule_for(name)]
    unknown = [name for name in plan.sources if name not in names]
    notices = {}
    if avoided:
        notices["avoided"] = f"Not searched, because you avoid it: {', '.join(avoided)}."
    if unknown:
        notices["planned"] = f"Named in the plan, but not a source of this run: {', '.join(unknown)}."
    for text in notices.values():
        await context.emit("notice", "dispatch", text=text)
    return notices


async def add_budget_notice(
    state: State, skipped: Sequence[SubQuestion], node: str, context: ResearchContext
) -> dict[str, str]:
    """Add to the notices which sub-questions were not searched again because the budget was spent."""
    count = f"{len(skipped)} sub-question{'s were' if len(skipped) > 1 else ' was'}"
    listed = "; ".join(question.text for question in skipped)
    note = f"The budget was spent after round {state['round']}: {count} not searched again: {listed}"
    await context.emit("notice", node, text=note, questions=[question.id for question in skipped])
    return {**state["notices"], "budget": note}


def list_queries(state: State) -> list[str]:
    """List every query so far behind its sub-question's id: those handed out, and those a search came up with."""
    searches = load_searches(state)
    own = [
        f"{searches[key]['question']} {query.get('as', query['text'])}"
        for key in sorted(searches)
        for query in searches[key]["queries"]
    ]
    return list(dict.fromkeys([*state["asked"], *own]))


def available_types(sources: Iterable[Source]) -> tuple[QueryType, ...]:
    """Return the types of query there is a source for; a query of another type is not asked."""
    types = {kind for source in sources for kind in query_types_of(source)}
    return tuple(kind for kind in get_args(QueryType) if kind in types)


def query_types_of(source: Source) -> tuple[QueryType, ...]:
    return getattr(source, "types", DEFAULT_TYPES)


class QueryDeduplicator:
    """Finds which queries of a round are new and which sub-question asks them, so that no source is asked twice.

    A query that repeats one of an earlier round is left out; what two sub-questions ask alike is asked by the first
    for both. `known` are the queries so far, each behind its sub-question's id; `most` is how many one sub-question may
    ask in this round."""

    def __init__(self, known: Iterable[str], types: Sequence[QueryType], most: int) -> None:
        self._known = {(question, query_key(text)) for question, _, text in (line.partition(" ") for line in known)}
        self._before = {key for _, key in self._known}
        self._asking: dict[tuple[QueryKey, QueryType], tuple[str, Plain]] = {}  # by whom, in this round
        self._types: tuple[QueryType, ...] = tuple(types) or ("web",)  # that there is no source, the search reports
        self._most = most
        self.repeated: list[str] = []
        self.shared: set[str] = set()  # sub-questions that another asks something for
        self.earlier: list[tuple[str, str]] = []  # sub-question and query, where another has asked it before

    def select_queries(self, question: str, wanted: TypesByQuery) -> list[Plain]:
        """Return the queries this sub-question asks itself: {text, types, also}, the last for whom else."""
        own: list[Plain] = []
        for text, types in wanted.items():
            key = query_key(text)
            if key in self._before:
                self.repeated.append(text)
                if (question, key) not in self._known:
                    self.earlier.append((question, text))
                continue
            kinds = tuple(types) or self._types
            left = [kind for kind in kinds if (key, kind) not in self._asking]
            if len(left) < len(kinds):
                self.repeated.append(text)
                # The sub-question that asks it asks for this one too; that may be itself, in other words.
                for owner, query in (self._asking[key, kind] for kind in kinds if (key, kind) in self._asking):
                    shared = [(other["question"], other["text"]) for other in query["also"]]
                    if (question, text) not in [(owner, query["text"]), *shared]:
                        query["also"].append({"question": question, "text": text})
                        self.shared.add(question)
            if left and len(own) < self._most:
                everywhere = not types and len(left) == len(kinds)
                own.append({"text": text, "types": [] if everywhere else left, "also": []})
                self._asking |= {(key, kind): (question, own[-1]) for kind in left}
        return own


def reuse_results(earlier: Iterable[tuple[str, str]], searches: Mapping[str, SearchOutcome]) -> list[SearchOutcome]:
    """Return, for each query that another sub-question has asked in an earlier round, what it found."""
    results = []
    for question, text in earlier:
        key = query_key(text)
        hits = [hit for result in searches.values() for hit in result["hits"] if query_key(hit["query"]) == key]
        if hits:
            results.append(result_from_hits(question, text, hits[0]["query"], hits))
    return results


def result_from_hits(question: str, text: str, asked_as: str, hits: Sequence[Plain]) -> SearchOutcome:
    """Return the outcome of a search that another has made; `text` is what this sub-question would have asked."""
    return {
        "question": question,
        "queries": [{"text": text, "as": asked_as, "status": "completed"}],
        "hits": list(hits),
        "completed": 0,
        "failed": 0,
        "cached": 0,
        "avoided": {},
        "errors": {},
    }
