"""Search for one sub-question: every query at every source for it, in parallel. A failing source stops no other.

Where that brings little, the reasoner may offer other words, or another kind of source.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.errors import BudgetError, ReasoningError, SourceError
from openassay.models.evidence import Hit, SearchRequest
from openassay.models.plan import SubQuestion, Understanding
from openassay.nodes.dispatch import FAST_RATE, available_types, query_types_of, result_from_hits
from openassay.nodes.failures import is_transient
from openassay.nodes.harvest import reading_limits
from openassay.nodes.preferences import asked_period, source_preferences
from openassay.protocols import RemoteSource, SearchAnswer, Source
from openassay.reasoning.base import QueryAttempt, QueryRequest, TypedQuery
from openassay.search.ranking import fuse
from openassay.state import Plain, SearchOutcome, SearchTask, State
from openassay.text.language import detect_language, language_code
from openassay.text.questions import Period, needs_recent_sources
from openassay.text.words import interleave_groups, query_key

SNIPPET_LENGTH = 200  # characters kept where nothing was stored, for people to see what was found
MAX_HITS = 80  # per sub-question and round: what is kept in the state
MAX_HITS_IN_TURN, MAX_DOCUMENTS = 120, 40  # the same where every document is to be heard, the best of each first
ENOUGH_DOCUMENTS = 3  # with fewer, other words are worth a try
MAX_RETRIES = 2  # in other words
STAND_IN_QUERIES = 3  # to a slow source where no other searches the web

_SITE = re.compile(r"(?<!\S)(-?)site:([\w.-]+)", re.I)


class QueryResult(NamedTuple):
    """What one query brought at one source."""

    query: Plain
    source: str
    hits: Sequence[Hit] = ()
    cached: bool = False
    error: SourceError | None = None
    avoided: Counter[str] = Counter()  # hosts of hits that were left out


async def search(task: SearchTask, runtime: Runtime[ResearchContext]) -> State:
    context = runtime.context
    sources = [source for source in context.sources if source.name in task["sources"]]
    if not sources:  # an outage too: an empty report would not say why
        raise SourceError(
            "there is no source to search: the plan and what you avoid rule out all sources of this run",
            help="Look at what is remembered: openassay memory. Or name a source: --source NAME.",
        )
    results = await _ask_all(task["queries"], sources, task, context)
    if results and all(result.error for result in results):
        # An outage is not an empty result: when no source answered, the sub-question has failed.
        error = next(result.error for result in results if result.error)
        raise SourceError(f"no source could be searched: {error.message}", help=error.help, retryable=error.retryable)
    for _ in range(MAX_RETRIES):
        if not (others := await _find_other_queries(results, sources, task, context)):
            break
        results += await _ask_all(others, sources, task, context)
    own, today, in_turn = task["question"]["id"], context.started.date(), reading_limits(context).in_turn
    answers = [result for result in results if not result.error]
    answered = {result.query["text"] for result in answers}
    # Other words of the same sub-question that mean the same share the outcome of the query that was asked.
    alike = {
        query["text"]: [other["text"] for other in query.get("also", ()) if other["question"] == own]
        for query in task["queries"]
    }
    queries = []
    for text in dict.fromkeys(result.query["text"] for result in results):
        status = "completed" if text in answered else "failed"
        queries += [{"text": text, "status": status}]
        queries += [{"text": same, "as": text, "status": status} for same in alike.get(text, ())]
    recent = needs_recent_sources(task["understanding"]["question"], today)
    failed = [(result.source, result.error) for result in results if result.error]
    counts = Counter(source for source, _ in failed)
    outcome: SearchOutcome = {
        "question": own,
        "queries": queries,
        "hits": _dump_hits(fuse([result.hits for result in answers], today, moving=recent), in_turn),
        "completed": len(answers),
        "failed": len(failed),
        "cached": sum(result.cached for result in answers),
        "avoided": dict(sum((result.avoided for result in results), Counter())),
        "errors": {source: [error.message, counts[source]] for source, error in failed},
    }
    outcomes = {task["key"]: outcome}
    # Other sub-questions get what was asked for them too.
    for query in task["queries"]:
        best = fuse([result.hits for result in results if result.query is query], today)
        shared = {other["question"]: other["text"] for other in reversed(query.get("also", ()))}
        shared.pop(own, None)
        for question, text in shared.items():
            key = f"{task['key']} for {question}: {text}"
            outcomes[key] = result_from_hits(question, text, query["text"], _dump_hits(best, in_turn))
    return {"searched": {key: dict(outcome) for key, outcome in outcomes.items()}}


async def _ask_all(
    queries: Sequence[Plain], sources: Sequence[Source], task: SearchTask, context: ResearchContext
) -> list[QueryResult]:
    jobs = []
    for source in sources:
        # The queries of the source's types, or of none in particular, unless it is for code alone.
        types = set(query_types_of(source))
        suited = [one for one in queries if types & set(one["types"]) or (not one["types"] and types != {"code"})]
        unscoped = [query for query in suited if not _SITE.search(query["text"])]
        if not isinstance(source, RemoteSource):
            suited = unscoped
        elif "web" not in types or source.terms.per_minute < FAST_RATE:
            # A slow source gets the first, and a few where no other searches the web.
            stands_in = getattr(source, "stands_in", False)
            suited = suited[:STAND_IN_QUERIES] if stands_in else (unscoped or suited)[:1]
        jobs += [(query, source) for query in suited]
    results = await asyncio.gather(*(_ask(query, source, task, context) for query, source in jobs))
    # A source that is down is reported once, not once a query.
    failed: dict[tuple[str, str], list[QueryResult]] = {}
    for result in results:
        if result.error:
            failed.setdefault((result.source, result.error.message), []).append(result)
    for (name, message), same in failed.items():
        if error := same[0].error:
            await context.emit(
                "error",
                "search",
                source=name,
                query=same[0].query["text"],
                queries=len(same),
                message=message,
                retryable=error.retryable,
                help=error.help,
                question=task["question"]["id"],
                category=error.category,
            )
    return results


async def _ask(query: Plain, source: Source, task: SearchTask, context: ResearchContext) -> QueryResult:
    question = task["question"]["id"]
    request = build_request(query["text"], task["understanding"], context)
    latency: dict[str, object] = {"remote": False}
    began = monotonic()
    try:
        if known := context.answers.get((source.name, request)):  # no source is asked the same twice in a run
            answer = known._replace(cached=True)
        elif isinstance(source, RemoteSource):
            # Paid searches of one sub-question must not use up what the others need.
            answer = await source.ask(request, context.account.task_budget(question, task["share"]))
            # What the provider took; where it does not say so, how long the search waited for it.
            waited = 0.0 if answer.cached else monotonic() - began
            seconds = waited if answer.seconds is None else answer.seconds
            latency = {"remote": True, **({"seconds": round(seconds, 3)} if seconds else {})}
        else:
            limit = MAX_HITS_IN_TURN if reading_limits(context).in_turn else request.limit
            answer = SearchAnswer(await source.search(request.query, limit=limit))
        context.answers[source.name, request] = answer
    except SourceError as error:
        return QueryResult(query, source.name, error=error)
    except BudgetError as error:
        refused = SourceError(f"{source.name} was not asked: {error.message}", help=error.help)
        return QueryResult(query, source.name, error=refused)
    except Exception as error:
        if is_transient(error):  # our database is away for a moment: that is no fault of the source
            raise
        return QueryResult(query, source.name, error=SourceError(f"{source.name} failed: {type(error).__name__}"))
    hits, avoided = source_preferences(task["understanding"]["question"], context.options).filter_hits(answer.hits)
    # Some providers take the period as a hint, and some have no filter for it.
    period = Period(request.since, request.until)
    hits = [hit for hit in hits if hit.kind == "document" or period.contains(hit.published)]
    await context.emit(
        "search",
        "search",
        question=question,
        query=query["text"],
        source=source.name,
        hits=len(hits),
        cached=answer.cached,
        **latency,
    )
    return QueryResult(query, source.name, hits, answer.cached, avoided=avoided)


def build_request(text: str, understanding: Plain, context: ResearchContext) -> SearchRequest:
    """Build a search with its filters: hosts it is scoped to (`site:`), those the person avoids, the period the
    question confines itself to, and its language; where that is English or not plain, the one the person prefers."""
    question = understanding["question"]
    scopes = [(minus, host.lower()) for minus, host in _SITE.findall(text)]
    only = tuple(host for minus, host in scopes if not minus)
    avoided = () if only else source_preferences(question, context.options).without
    language = detect_language(question)
    if language in (None, "en"):
        language = language_code(context.options.preferences.language)
    period = asked_period(question, understanding.get("temporal_scope"), context.started.date())
    return SearchRequest(
        query=" ".join(_SITE.sub(" ", text).split()) or text,
        limit=context.settings.results_per_query,
        since=period.since,
        until=period.until,
        sites=only,
        without=(*(host for minus, host in scopes if minus), *avoided),
        language=None if language == "en" else language,
    )


async def _find_other_queries(
    results: Sequence[QueryResult], sources: Sequence[Source], task: SearchTask, context: ResearchContext
) -> list[Plain]:
    """Ask the reasoner for other queries, where those so far brought little and there is room for more."""
    if not task["queries"]:  # other sub-questions ask for it
        return []
    hits: Counter[str] = Counter()
    for result in results:
        hits[result.query["text"]] += len(result.hits)
    queries = {result.query["text"]: result.query for result in results}
    tried = tuple(
        QueryAttempt(query=TypedQuery(text=text, type=(query["types"] or ["web"])[0]), hits=hits[text])
        for text, query in queries.items()
    )
    room = context.settings.max_search_iterations - len(tried)
    documents = {hit.document or hit.url for result in results for hit in result.hits}
    if room < 1 or len(documents) >= ENOUGH_DOCUMENTS:
        return []
    types = available_types(sources)
    request = QueryRequest(
        question=SubQuestion.model_validate(task["question"]),
        understanding=Understanding.model_validate(task["understanding"]),
        count=min(room, context.settings.query_variations),
        tried=tried,
        types=types,
        share=task["share"],
    )
    try:
        offered = [query for query in await context.reasoner.propose_queries(request) if query.type in types]
    except ReasoningError:  # what was found stays
        return []
    earlier = {query_key(text) for text in task["before"]}
    known = {(query_key(attempt.query.text), attempt.query.type) for attempt in tried}
    fresh: dict[tuple[object, str], TypedQuery] = {}
    for query in offered:
        key = query_key(query.text), query.type
        if key[0] not in earlier and key not in known:
            fresh.setdefault(key, query)
    chosen = list(fresh.values())[:room]
    if chosen:
        texts = [query.text for query in chosen]
        note = f"few results for “{task['question']['text']}”, so it was asked in other words: {'; '.join(texts)}"
        await context.emit("notice", "search", text=note, question=task["question"]["id"], queries=texts)
    return [{"text": query.text, "types": [query.type]} for query in chosen]


def _dump_hits(hits: Sequence[Hit], in_turn: bool) -> list[Plain]:
    """Return the best hits as plain data, `in_turn` the best of every document first. From here on a hit counts by its
    place in the fused list, not by its rank at one provider."""
    if in_turn:
        best = list(dict.fromkeys(hit.document for hit in hits if hit.document))[:MAX_DOCUMENTS]
        hits = [hit for hit in hits if not hit.document or hit.document in best]
        hits = interleave_groups(hits, lambda hit: hit.document or hit.url)
    return [
        {
            **hit.model_dump(mode="json"),
            "snippet": "" if hit.document else hit.snippet[:SNIPPET_LENGTH],
            "rank": rank,
        }
        for rank, hit in enumerate(hits[: MAX_HITS_IN_TURN if in_turn else MAX_HITS], 1)
    ]
