"""One sub-question's search: every query at every source for it, in parallel. A failing source stops nobody else.

Where that brings little, the reasoner may offer other words, or another kind of source.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from time import monotonic
from typing import Any, NamedTuple, Protocol, runtime_checkable

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.errors import BudgetError, ReasoningError, SourceError
from openassay.models.evidence import Hit, SearchRequest
from openassay.models.plan import SubQuestion, Understanding
from openassay.nodes.dispatch import FAST_RATE, available_types, query_types_of, result_from_hits
from openassay.nodes.failures import is_transient
from openassay.nodes.preferences import language_code, source_preferences
from openassay.protocols import Budget, RemoteSource, SearchAnswer, Source
from openassay.reasoning.base import QueryAttempt, QueryRequest, TypedQuery
from openassay.search.ranking import fuse
from openassay.state import Plain, SearchTask, State
from openassay.text.language import detect_language
from openassay.text.questions import needs_recent_sources, parse_period
from openassay.text.words import query_key

SHOWN = 200  # characters of a snippet that stay where nothing was stored, for people to see what was found
MOST_HITS = 80  # per sub-question and round: what is kept in the state
ENOUGH = 3  # documents; with fewer, other words are worth a try
MOST_TURNS = 2  # of other words
SEVERAL = 3


_SITE = re.compile(r"(?<!\S)(-?)site:([\w.-]+)", re.I)


@runtime_checkable
class BudgetSplitter(Protocol):
    """An account that can give a task its share of the money."""

    def task_budget(self, task: str, share: float) -> Budget: ...


class QueryResult(NamedTuple):
    """What one query brought at one source."""

    query: Plain
    source: str
    answer: SearchAnswer | SourceError
    avoided: Counter[str] = Counter()  # hosts of hits that were left out

    @property
    def hits(self) -> list[Hit]:
        return [] if isinstance(self.answer, SourceError) else self.answer.hits


async def search(task: SearchTask, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    results = await _ask_all(task["queries"], task, deps)
    _raise_on_outage(results)
    for _ in range(MOST_TURNS):
        others = await _find_other_queries(results, task, deps)
        if not others:
            break
        results += await _ask_all(others, task, deps)
    return {"searched": {task["key"]: _summarize_search(task, results, deps), **_share_results(task, results, deps)}}


async def _ask_all(queries: Sequence[Plain], task: SearchTask, deps: ResearchContext) -> list[QueryResult]:
    jobs = [(query, source) for source in _select_sources(task, deps) for query in _queries_for(source, queries)]
    results = await asyncio.gather(*(_ask(query, source, task, deps) for query, source in jobs))
    await _report_failures(results, task, deps)
    return list(results)


def _select_sources(task: SearchTask, deps: ResearchContext) -> list[Source]:
    """None is an outage too: an empty report would not say why."""
    names = task.get("sources")  # runs that began before a plan named them have none
    found = [source for source in deps.sources if names is None or source.name in names]
    if not found:
        raise SourceError(
            "no source is left to ask: the plan and what you avoid rule out all of this run's",
            help="Look at what is remembered: openassay memory. Or name a source: --source NAME.",
        )
    return found


def _queries_for(source: Source, queries: Sequence[Plain]) -> Sequence[Plain]:
    """The queries of the source's types, or of none in particular, unless it is for code alone. One that allows for few
    requests gets the first, and a few where nobody else searches the web."""
    types = set(query_types_of(source))
    suited = [query for query in queries if types & set(query["types"]) or (not query["types"] and types != {"code"})]
    unscoped = [query for query in suited if not _SITE.search(query["text"])]
    if not isinstance(source, RemoteSource):
        return unscoped
    if "web" in types and source.terms.per_minute >= FAST_RATE:
        return suited
    return suited[:SEVERAL] if getattr(source, "stands_in", False) else (unscoped or suited)[:1]


async def _ask(query: Plain, source: Source, task: SearchTask, deps: ResearchContext) -> QueryResult:
    inquiry = build_request(query["text"], task["understanding"], deps)
    wishes = source_preferences(task["understanding"]["question"], deps.options)
    began = monotonic()
    try:
        if isinstance(source, RemoteSource):
            answer = await source.ask(inquiry, _task_budget(task, deps))
        else:
            answer = SearchAnswer(await source.search(inquiry.query, limit=inquiry.limit))
    except SourceError as error:
        return QueryResult(query, source.name, error)
    except BudgetError as error:
        return QueryResult(
            query, source.name, SourceError(f"{source.name} was not asked: {error.message}", help=error.help)
        )
    except Exception as error:
        if is_transient(error):  # our database is away for a moment: that is no fault of the source
            raise
        return QueryResult(query, source.name, SourceError(f"{source.name} failed: {type(error).__name__}"))
    hits, avoided = wishes.filter_hits(answer.hits)
    await deps.emit(
        "search", "search", question=task["question"]["id"], query=query["text"], source=source.name,
        hits=len(hits), cached=answer.cached, **_latency(source, answer, monotonic() - began),
    )  # fmt: skip
    return QueryResult(query, source.name, SearchAnswer(hits, answer.cached), avoided)


def _latency(source: Source, answer: SearchAnswer, waited: float) -> dict[str, object]:
    """What somebody outside took, as far as they were asked; who does not say it is taken by how long it was waited."""
    if not isinstance(source, RemoteSource):
        return {"remote": False}
    took = answer.seconds if answer.seconds is not None else 0.0 if answer.cached else waited
    return {"remote": True, **({"seconds": round(took, 3)} if took else {})}


def _task_budget(task: SearchTask, deps: ResearchContext) -> Budget:
    """Paid searches of one sub-question must not use up what the others need."""
    account = deps.account
    return (
        account.task_budget(task["question"]["id"], task["share"]) if isinstance(account, BudgetSplitter) else account
    )


async def _report_failures(results: Sequence[QueryResult], task: SearchTask, deps: ResearchContext) -> None:
    """A source that is down is told of once, not once a query."""
    failed: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if isinstance(result.answer, SourceError):
            failed.setdefault((result.source, result.answer.message), []).append(result.query["text"])
    by_message = {result.answer.message: result.answer for result in results if isinstance(result.answer, SourceError)}
    for (source, message), queries in failed.items():
        error = by_message[message]
        await deps.emit(
            "error", "search", source=source, query=queries[0], queries=len(queries), message=message,
            retryable=error.retryable, help=error.help, question=task["question"]["id"], category=error.category,
        )  # fmt: skip


def build_request(text: str, understanding: Plain, deps: ResearchContext) -> SearchRequest:
    """A query with its filters: hosts it is scoped to (`site:`), those the person avoids, the period the question
    confines itself to, and its language; where that is English or not plain, the one the person prefers."""
    scopes = [(minus, host.lower()) for minus, host in _SITE.findall(text)]
    only = tuple(host for minus, host in scopes if not minus)
    avoided = () if only else source_preferences(understanding["question"], deps.options).without
    spoken = detect_language(understanding["question"])
    if spoken in (None, "en"):
        spoken = language_code(deps.options.preferences)
    time = parse_period(f"{understanding['question']} {understanding.get('temporal_scope') or ''}", deps.started.date())
    return SearchRequest(
        query=" ".join(_SITE.sub(" ", text).split()) or text,
        limit=deps.settings.results_per_query,
        since=time.since,
        until=time.until,
        sites=only,
        without=(*(host for minus, host in scopes if minus), *avoided),
        language=None if spoken == "en" else spoken,
    )


def _raise_on_outage(results: Sequence[QueryResult]) -> None:
    """An outage is not an empty result: when no source answered, the sub-question has failed."""
    failed = [result.answer for result in results if isinstance(result.answer, SourceError)]
    if failed and len(failed) == len(results):
        raise SourceError(
            f"no source could be searched: {failed[0].message}", help=failed[0].help, retryable=failed[0].retryable
        )


async def _find_other_queries(results: Sequence[QueryResult], task: SearchTask, deps: ResearchContext) -> list[Plain]:
    """Queries not asked yet, where those that were brought little and there is room for more."""
    if not task["queries"]:  # others ask for it
        return []
    tried = _summarize_attempts(results)
    room = deps.settings.max_search_iterations - len(tried)
    documents = {hit.document or hit.url for result in results for hit in result.hits}
    if room < 1 or len(documents) >= ENOUGH:
        return []
    before = {query_key(text) for text in task["before"]}
    known = {(query_key(item.query.text), item.query.type) for item in tried}
    offered = {
        (query_key(query.text), query.type): query
        for query in reversed(await _suggest_queries(tried, room, task, deps))
    }
    chosen = [query for key, query in reversed(offered.items()) if key[0] not in before and key not in known][:room]
    if chosen:
        texts = [query.text for query in chosen]
        note = f"few results for “{task['question']['text']}”, so it was asked in other words: {'; '.join(texts)}"
        await deps.emit("notice", "search", text=note, question=task["question"]["id"], queries=texts)
    return [{"text": query.text, "types": [query.type]} for query in chosen]


async def _suggest_queries(
    tried: Sequence[QueryAttempt], room: int, task: SearchTask, deps: ResearchContext
) -> list[TypedQuery]:
    types = available_types(_select_sources(task, deps))
    request = QueryRequest(
        question=SubQuestion.model_validate(task["question"]),
        understanding=Understanding.model_validate(task["understanding"]),
        count=min(room, deps.settings.query_variations),
        tried=tuple(tried),
        types=types,
        share=task["share"],
    )
    try:
        return [query for query in await deps.reasoner.propose_queries(request) if query.type in types]
    except ReasoningError:  # what was found stays
        return []


def _summarize_attempts(results: Sequence[QueryResult]) -> list[QueryAttempt]:
    """Each query once, with what all its sources brought."""
    queries = {result.query["text"]: result.query for result in results}
    hits = dict.fromkeys(queries, 0)
    for result in results:
        hits[result.query["text"]] += len(result.hits)
    return [
        QueryAttempt(query=TypedQuery(text=text, type=(query["types"] or ["web"])[0]), hits=hits[text])
        for text, query in queries.items()
    ]


def _summarize_search(task: SearchTask, results: Sequence[QueryResult], deps: ResearchContext) -> Plain:
    answers = [result.answer for result in results if not isinstance(result.answer, SourceError)]
    answered = {result.query["text"] for result in results if not isinstance(result.answer, SourceError)}
    texts = dict.fromkeys(result.query["text"] for result in results)
    moving = needs_recent_sources(task["understanding"]["question"], deps.started.date())
    best = fuse([answer.hits for answer in answers], deps.started.date(), moving=moving)[:MOST_HITS]
    return {
        "question": task["question"]["id"],
        "queries": [line for text in texts for line in _query_outcomes(text, text in answered, task)],
        "hits": _rank_hits([hit.model_dump(mode="json") for hit in best]),
        "completed": len(answers),
        "failed": len(results) - len(answers),
        "cached": sum(answer.cached for answer in answers),
        "avoided": dict(sum((result.avoided for result in results), Counter())),
        "errors": _count_errors(results),
    }


def _query_outcomes(text: str, answered: bool, task: SearchTask) -> list[Plain]:
    """What came of a query, and of those of its sub-question that ask the same in other words."""
    status = "completed" if answered else "failed"
    alike = [other["text"] for query in task["queries"] if query["text"] == text for other in query.get("also", ())
             if other["question"] == task["question"]["id"]]  # fmt: skip
    return [{"text": text, "status": status}, *({"text": same, "as": text, "status": status} for same in alike)]


def _share_results(task: SearchTask, results: Sequence[QueryResult], deps: ResearchContext) -> dict[str, Plain]:
    """What was asked for other sub-questions too is theirs as well."""
    found = {}
    for query in task["queries"]:
        hits = [result.hits for result in results if result.query is query]
        best = [hit.model_dump(mode="json") for hit in fuse(hits, deps.started.date())[:MOST_HITS]]
        for other in _other_questions(query, task):
            key = f"{task['key']} for {other['question']}: {other['text']}"
            found[key] = result_from_hits(other["question"], other["text"], query["text"], _rank_hits(best))
    return found


def _other_questions(query: Plain, task: SearchTask) -> list[Plain]:
    """For whom else a query is asked, each once."""
    others = [other for other in query.get("also", ()) if other["question"] != task["question"]["id"]]
    return list({other["question"]: other for other in reversed(others)}.values())


def _rank_hits(hits: Sequence[Plain]) -> list[Plain]:
    """Its place in the fused list is what a hit is worth from here on, not its rank at one provider."""
    return [
        {**hit, "snippet": "" if hit["document"] else hit["snippet"][:SHOWN], "rank": rank}
        for rank, hit in enumerate(hits, 1)
    ]


def _count_errors(results: Sequence[QueryResult]) -> dict[str, list[Any]]:
    """Source -> what it said, and how often it failed."""
    failed = [(result.source, result.answer) for result in results if isinstance(result.answer, SourceError)]
    counts = Counter(source for source, _ in failed)
    return {source: [error.message, counts[source]] for source, error in failed}
