"""One sub-question's search: every query at every source for it, in parallel. A failing source stops nobody else.

Where that brings little, the reasoner may offer other words, or another kind of source.
"""

import asyncio
from collections.abc import Sequence
from typing import Literal, NamedTuple

from langgraph.errors import NodeError
from langgraph.runtime import Runtime
from langgraph.types import Command

from assay.deps import Deps
from assay.errors import AssayError, ReasoningError, SourceError
from assay.model.plan import SubQuestion
from assay.model.question import Understanding
from assay.model.source import Hit
from assay.ports import Source
from assay.reasoning.protocol import Query, QueryRequest, Tried
from assay.search.fuse import fuse
from assay.stages.dispatch import served, types_of
from assay.state import Plain, Search, State, Task

MOST_HITS = 80  # per sub-question and round: what is kept in the state
ENOUGH = 3  # documents; with fewer, other words are worth a try
MOST_TURNS = 2  # of other words


class Result(NamedTuple):
    """What one query brought at one source."""

    query: Plain
    hits: list[Hit] | SourceError


async def search(task: Search, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    results = await _ask_all(task["queries"], task, deps)
    _refuse_silence(results)
    for _ in range(MOST_TURNS):
        others = await _other_words(results, task, deps)
        if not others:
            break
        results += await _ask_all(others, task, deps)
    return {"searched": {task["key"]: _summary(task, results)}}


async def _ask_all(queries: Sequence[Plain], task: Search, deps: Deps) -> list[Result]:
    jobs = [(query, source) for query in queries for source in deps.sources if _suits(query, source)]
    found = await asyncio.gather(*(_ask(query["text"], source, task, deps) for query, source in jobs))
    return [Result(query, hits) for (query, _), hits in zip(jobs, found, strict=True)]


def _suits(query: Plain, source: Source) -> bool:
    return not query["types"] or not set(query["types"]).isdisjoint(types_of(source))


async def _ask(query: str, source: Source, task: Search, deps: Deps) -> list[Hit] | SourceError:
    try:
        hits = await source.search(query, limit=deps.settings.results_per_query)
    except SourceError as error:
        await deps.emit(
            "error", "search", source=source.name, query=query, message=error.message, retryable=error.retryable
        )
        return error
    await deps.emit(
        "search", "search", question=task["question"]["id"], query=query, source=source.name, hits=len(hits)
    )
    return hits


def _refuse_silence(results: Sequence[Result]) -> None:
    """An outage is not an empty result: when no source answered, the sub-question has failed."""
    failed = [result.hits for result in results if isinstance(result.hits, SourceError)]
    if failed and len(failed) == len(results):
        raise SourceError(
            f"no source could be searched: {failed[0].message}", help=failed[0].help, retryable=failed[0].retryable
        )


async def _other_words(results: Sequence[Result], task: Search, deps: Deps) -> list[Plain]:
    """Queries not asked yet, where those that were brought little and there is room for more."""
    tried = _tried(results)
    room = deps.settings.max_search_iterations - len(tried)
    documents = {hit.document or hit.url for hits in _answers(results) for hit in hits}
    if room < 1 or len(documents) >= ENOUGH:
        return []
    known = {(item.query.text, item.query.type) for item in tried}
    fresh = [query for query in await _offered(tried, room, task, deps) if query.text not in task["before"]]
    chosen = [query for query in dict.fromkeys(fresh) if (query.text, query.type) not in known][:room]
    if chosen:
        texts = [query.text for query in chosen]
        note = f"few results for “{task['question']['text']}”, so it was asked in other words: {'; '.join(texts)}"
        await deps.emit("notice", "search", text=note, question=task["question"]["id"], queries=texts)
    return [{"text": query.text, "types": [query.type]} for query in chosen]


async def _offered(tried: Sequence[Tried], room: int, task: Search, deps: Deps) -> list[Query]:
    types = served(deps.sources)
    request = QueryRequest(
        question=SubQuestion.model_validate(task["question"]),
        understanding=Understanding.model_validate(task["understanding"]),
        count=min(room, deps.settings.query_variations),
        tried=tuple(tried),
        types=types,
        share=task["share"],
    )
    try:
        return [query for query in await deps.reasoner.queries(request) if query.type in types]
    except ReasoningError:  # what was found stays
        return []


def _tried(results: Sequence[Result]) -> list[Tried]:
    """Each query once, with what all its sources brought."""
    queries = {result.query["text"]: result.query for result in results}
    hits = dict.fromkeys(queries, 0)
    for result in results:
        hits[result.query["text"]] += 0 if isinstance(result.hits, SourceError) else len(result.hits)
    return [
        Tried(query=Query(text=text, type=(query["types"] or ["web"])[0]), hits=hits[text])
        for text, query in queries.items()
    ]


def _answers(results: Sequence[Result]) -> list[list[Hit]]:
    return [result.hits for result in results if not isinstance(result.hits, SourceError)]


def _summary(task: Search, results: Sequence[Result]) -> Plain:
    answered = {result.query["text"] for result in results if not isinstance(result.hits, SourceError)}
    lists = _answers(results)
    texts = dict.fromkeys([*(query["text"] for query in task["queries"]), *(r.query["text"] for r in results)])
    return {
        "question": task["question"]["id"],
        "queries": [{"text": text, "status": "completed" if text in answered else "failed"} for text in texts],
        "hits": [hit.model_dump(mode="json", exclude={"snippet"}) for hit in fuse(lists)[:MOST_HITS]],
        "completed": len(lists),
        "failed": len(results) - len(lists),
    }


async def search_failed(task: Search, error: NodeError, runtime: Runtime[Deps]) -> Command[Literal["fuse"]]:
    """The sub-question is lost, the others go on. A handler has no edge of its own: when every task fails, its
    destination is all that keeps the run going."""
    return Command(update=await _lost("search", task, error, runtime.context), goto="fuse")


async def read_failed(task: Task, error: NodeError, runtime: Runtime[Deps]) -> Command[Literal["consolidate"]]:
    return Command(update=await _lost("read", task, error, runtime.context), goto="consolidate")


async def _lost(stage: str, task: Task, error: NodeError, deps: Deps) -> State:
    cause = error.error
    reason = cause.message if isinstance(cause, AssayError) else f"{type(cause).__name__}: {cause}"
    await deps.emit("error", stage, question=task["question"]["id"], message=reason)
    return {"failures": {f"{stage} {task['key']}": reason}}
