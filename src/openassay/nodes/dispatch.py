"""Handing out work: every sub-question in the first round, only the gaps in later ones."""

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
from openassay.state import Plain, State, Task
from openassay.text.words import QueryKey, query_key

# Which queries of a round are new, and who asks them: no source is asked the same twice.
#
# A query that repeats one of an earlier round is left out; what two sub-questions ask alike is asked by the first for
# both. What it finds is the other's all the same.

TypesByQuery = dict[str, list[QueryType]]  # a query's text -> the kinds of source it is for; none: all of them


class QueryDeduplicator:
    """`known` are the queries so far, each behind its sub-question's id; `most` is what one may ask in this round."""

    def __init__(self, known: Iterable[str], types: Sequence[QueryType], most: int) -> None:
        self._known = {(question, query_key(text)) for question, _, text in (line.partition(" ") for line in known)}
        self._before = {meant for _, meant in self._known}
        self._asking: dict[tuple[QueryKey, QueryType], tuple[str, Plain]] = {}  # by whom, in this round
        self._types: tuple[QueryType, ...] = tuple(types) or ("web",)  # nobody to ask is told by the search
        self._most = most
        self.repeated: list[str] = []
        self.shared: set[str] = set()  # sub-questions that another asks something for
        self.earlier: list[tuple[str, str]] = []  # sub-question and query, where another has asked it before

    def select_queries(self, question: str, wanted: TypesByQuery) -> list[Plain]:
        """What this sub-question asks itself: {text, types, also}, the last for whom else."""
        own: list[Plain] = []
        for text, types in wanted.items():
            meant = query_key(text)
            if meant in self._before:
                self._note_earlier_query(question, text, meant)
                continue
            kinds = tuple(types) or self._types
            left = [kind for kind in kinds if (meant, kind) not in self._asking]
            if len(left) < len(kinds):
                self._add_to_owner(question, text, [self._asking.get((meant, kind)) for kind in kinds])
            if left and len(own) < self._most:
                everywhere = not types and len(left) == len(kinds)
                own.append({"text": text, "types": [] if everywhere else left, "also": []})
                self._asking |= {(meant, kind): (question, own[-1]) for kind in left}
        return own

    def _note_earlier_query(self, question: str, text: str, meant: QueryKey) -> None:
        self.repeated.append(text)
        if (question, meant) not in self._known:
            self.earlier.append((question, text))

    def _add_to_owner(self, question: str, text: str, asking: Iterable[tuple[str, Plain] | None]) -> None:
        """Who asks it asks for this sub-question too; that may be itself, in other words."""
        self.repeated.append(text)
        for owner, query in (one for one in asking if one is not None):
            if (question, text) not in [(owner, query["text"]), *((o["question"], o["text"]) for o in query["also"])]:
                query["also"].append({"question": question, "text": text})
                self.shared.add(question)


def reuse_results(earlier: Iterable[tuple[str, str]], searched: Mapping[str, Plain]) -> list[Plain]:
    """For each query that another sub-question has asked in an earlier round, what it found."""
    results = []
    for question, text in earlier:
        meant = query_key(text)
        hits = [hit for result in searched.values() for hit in result["hits"] if query_key(hit["query"]) == meant]
        if hits:
            results.append(result_from_hits(question, text, hits[0]["query"], hits))
    return results


def result_from_hits(question: str, text: str, asked_as: str, hits: Sequence[Plain]) -> Plain:
    """The outcome of a search that another has made; `text` is what this sub-question would have asked."""
    return {
        "question": question, "queries": [{"text": text, "as": asked_as, "status": "completed"}], "hits": list(hits),
        "completed": 0, "failed": 0, "cached": 0, "avoided": {}, "errors": {},
    }  # fmt: skip


DEFAULT_TYPES: tuple[QueryType, ...] = ("web",)  # by a source that does not say otherwise in an attribute `types`
MOST_SITES = 2  # that a question names
FAST_RATE = 60  # requests a minute; who allows for fewer would keep a round waiting with every further query
RESERVE_QUERIES = 2  # queries a sub-question keeps for when its first ones bring little


async def dispatch(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    plan = Plan.model_validate(state["plan"])
    understanding = Understanding.model_validate(state["understanding"])
    wishes = source_preferences(understanding.question, deps.options)
    sources = select_sources(deps.sources, plan.sources, wishes)
    known = list_queries(state)
    wanted = await _collect_queries(plan, understanding, sources, state, deps)
    once = QueryDeduplicator(known, available_types(sources), _max_queries(deps))
    fresh = {q.id: once.select_queries(q.id, queries) for q, queries in zip(plan.questions, wanted, strict=True)}
    before = reuse_results(once.earlier, state["searched"])
    helped = once.shared | {result["question"] for result in before}
    due = [(question, fresh[question.id]) for question in plan.questions if fresh[question.id] or question.id in helped]
    # The first round is always made: without money left the embedded reasoner does its thinking.
    if state["round"] and due and await deps.account.is_exhausted():
        return {
            "tasks": [],
            "notices": await add_budget_notice(state, [question for question, _ in due], "dispatch", deps),
            "current_agent": "research",
        }
    await _report_repeats(once.repeated, deps)
    names = [source.name for source in sources]
    asking = known + [f"{question.id} {query['text']}" for question, queries in due for query in queries]
    tasks = [_make_task(question, queries, asking, names, plan, state) for question, queries in due]
    return {
        "tasks": [dict(task) for task in tasks],
        "notices": {**state["notices"], **(await _source_notices(plan, wishes, deps) if not state["round"] else {})},
        "asked": asking,
        "searched": {f"{state['round']}:{n} lent": result for n, result in enumerate(before)},
        "round": state["round"] + 1,
        "research_attempts": state["research_attempts"] + 1,
        "status": Status.SEARCHING,
        "current_agent": "research",
    }


def list_queries(state: State) -> list[str]:
    """Every query so far behind its sub-question's id: those handed out, and those a search came up with itself."""
    results = [state["searched"][key] for key in sorted(state["searched"])]
    own = [
        f"{result['question']} {query.get('as', query['text'])}" for result in results for query in result["queries"]
    ]
    return list(dict.fromkeys([*state["asked"], *own]))


def available_types(sources: Iterable[Source]) -> tuple[QueryType, ...]:
    """The types of query there is a source for; a query of another type is not asked."""
    kinds = {kind for source in sources for kind in query_types_of(source)}
    return tuple(kind for kind in get_args(QueryType) if kind in kinds)


def query_types_of(source: Source) -> tuple[QueryType, ...]:
    return getattr(source, "types", DEFAULT_TYPES)


async def add_budget_notice(
    state: State, skipped: Sequence[SubQuestion], stage: str, deps: ResearchContext
) -> dict[str, str]:
    """The notices with what was left out since the budget was spent."""
    count = f"{len(skipped)} sub-question{'s were' if len(skipped) > 1 else ' was'}"
    listed = "; ".join(question.text for question in skipped)
    note = f"The budget was spent after round {state['round']}: {count} not searched again: {listed}"
    await deps.emit("notice", stage, text=note, questions=[question.id for question in skipped])
    return {**state["notices"], "budget": note}


async def _source_notices(plan: Plan, wishes: SourcePreferences, deps: ResearchContext) -> dict[str, str]:
    """Notices on sources of this run that are not asked, and on such as it has not."""
    names = [source.name for source in deps.sources]
    avoided = [name for name in names if wishes.avoid_rule_for(name)]
    unknown = [name for name in plan.sources if name not in names]
    notices = {}
    if avoided:
        notices["avoided"] = f"Not asked, since you want to avoid it: {', '.join(avoided)}."
    if unknown:
        notices["planned"] = f"Named in the plan, but none of this run's sources: {', '.join(unknown)}."
    for text in notices.values():
        await deps.emit("notice", "dispatch", text=text)
    return notices


async def _collect_queries(
    plan: Plan, understanding: Understanding, sources: Sequence[Source], state: State, deps: ResearchContext
) -> list[TypesByQuery]:
    """Round 0: the plan's queries and variations of them. Later: what the analysis found wanting."""
    analysis = state["analysis"]
    if analysis is not None:
        return [{text: [] for text in analysis["refinements"].get(question.id, ())} for question in plan.questions]
    return await asyncio.gather(
        *(_first_round_queries(question, plan, understanding, sources, deps) for question in plan.questions)
    )


async def _first_round_queries(
    question: SubQuestion, plan: Plan, understanding: Understanding, sources: Sequence[Source], deps: ResearchContext
) -> TypesByQuery:
    types = available_types(sources)
    planned = [query for query in plan.queries if query.question == question.id and query.type in types]
    wanted: TypesByQuery = {query.text: [] for query in planned}
    for query in planned:
        wanted[query.text].append(query.type)
    variations = await deps.reasoner.propose_queries(
        QueryRequest(question=question, understanding=understanding,
                     count=deps.settings.query_variations + len(wanted) - len(set(map(query_key, wanted))),
                     planned=tuple(wanted), types=types, share=1 / len(plan.questions))
    )  # fmt: skip
    for variation in variations:
        wanted.setdefault(variation.text, [variation.type] if variation.type in types else [])
    remote = any(isinstance(source, RemoteSource) for source in sources)
    first = dict(list(wanted.items())[:1])  # comes before all others, so that no source goes without it
    preferred = source_preferences(understanding.question, deps.options).sites
    return {**first, **(scope_to_sites(wanted, understanding.question, preferred) if remote else {}), **wanted}


def scope_to_sites(wanted: TypesByQuery, question: str, preferred: Sequence[str] = ()) -> TypesByQuery:
    """The first query once more for each site the question names, and once for those the person prefers; its providers'
    own filters are used for that."""
    scopes = [f"site:{host}" for host in find_sites(question)[:MOST_SITES]]
    if preferred:
        scopes.append(" ".join(f"site:{host}" for host in preferred))
    return {f"{scope} {next(iter(wanted))}": ["web"] for scope in dict.fromkeys(scopes)} if wanted else {}


def _max_queries(deps: ResearchContext) -> int:
    """Queries of one sub-question in a round."""
    most = deps.settings.max_search_iterations
    return (
        most if deps.reasoner.name == "embedded" else max(1, most - RESERVE_QUERIES)
    )  # the former has no other words to offer


async def _report_repeats(repeated: Sequence[str], deps: ResearchContext) -> None:
    texts = list(dict.fromkeys(repeated))
    if texts:
        reason = f"{'they ask' if len(texts) > 1 else 'it asks'} the same as another query"
        await deps.emit("skip", "dispatch", path="; ".join(texts), reason=reason, queries=texts)


def _make_task(
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
