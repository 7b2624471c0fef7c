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

from assay.deps import Deps
from assay.errors import BudgetError, ReasoningError, SourceError
from assay.model.inquiry import Inquiry
from assay.model.plan import SubQuestion
from assay.model.question import Understanding
from assay.model.source import Hit
from assay.ports import Answer, Purse, Remote, Source
from assay.reasoning.protocol import Query, QueryRequest, Tried
from assay.search.fuse import fuse
from assay.stages.asking_once import lent
from assay.stages.dispatch import BRISK, served, types_of
from assay.stages.failures import is_passing
from assay.stages.taste import code, taste
from assay.state import Plain, Search, State
from assay.text.language import language
from assay.text.period import moves, period
from assay.text.sense import sense

SHOWN = 200  # characters of a snippet that stay where nothing was stored, for people to see what was found
MOST_HITS = 80  # per sub-question and round: what is kept in the state
ENOUGH = 3  # documents; with fewer, other words are worth a try
MOST_TURNS = 2  # of other words
SEVERAL = 3


_SITE = re.compile(r"(?<!\S)(-?)site:([\w.-]+)", re.I)


@runtime_checkable
class Shared(Protocol):
    """An account that can give a task its share of the money."""

    def of(self, task: str, share: float) -> Purse: ...


class Result(NamedTuple):
    """What one query brought at one source."""

    query: Plain
    source: str
    answer: Answer | SourceError
    avoided: Counter[str] = Counter()  # hosts of hits that were left out

    @property
    def hits(self) -> list[Hit]:
        return [] if isinstance(self.answer, SourceError) else self.answer.hits


async def search(task: Search, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    results = await _ask_all(task["queries"], task, deps)
    _refuse_silence(results)
    for _ in range(MOST_TURNS):
        others = await _other_words(results, task, deps)
        if not others:
            break
        results += await _ask_all(others, task, deps)
    return {"searched": {task["key"]: _summary(task, results, deps), **_lent(task, results, deps)}}


async def _ask_all(queries: Sequence[Plain], task: Search, deps: Deps) -> list[Result]:
    jobs = [(query, source) for source in _sources(task, deps) for query in _for(source, queries)]
    results = await asyncio.gather(*(_ask(query, source, task, deps) for query, source in jobs))
    await _report(results, task, deps)
    return list(results)


def _sources(task: Search, deps: Deps) -> list[Source]:
    """None is an outage too: an empty report would not say why."""
    names = task.get("sources")  # runs that began before a plan named them have none
    found = [source for source in deps.sources if names is None or source.name in names]
    if not found:
        raise SourceError(
            "no source is left to ask: the plan and what you avoid rule out all of this run's",
            help="Look at what is remembered: assay memory. Or name a source: --source NAME.",
        )
    return found


def _for(source: Source, queries: Sequence[Plain]) -> Sequence[Plain]:
    """The queries of the source's types, or of none in particular, unless it is for code alone. One that allows for few
    requests gets the first, and a few where nobody else searches the web."""
    types = set(types_of(source))
    suited = [query for query in queries if types & set(query["types"]) or (not query["types"] and types != {"code"})]
    unscoped = [query for query in suited if not _SITE.search(query["text"])]
    if not isinstance(source, Remote):
        return unscoped
    if "web" in types and source.terms.per_minute >= BRISK:
        return suited
    return suited[:SEVERAL] if getattr(source, "stands_in", False) else (unscoped or suited)[:1]


async def _ask(query: Plain, source: Source, task: Search, deps: Deps) -> Result:
    inquiry = inquire(query["text"], task["understanding"], deps)
    wishes = taste(task["understanding"]["question"], deps.options)
    began = monotonic()
    try:
        if isinstance(source, Remote):
            answer = await source.ask(inquiry, _purse(task, deps))
        else:
            answer = Answer(await source.search(inquiry.query, limit=inquiry.limit))
    except SourceError as error:
        return Result(query, source.name, error)
    except BudgetError as error:
        return Result(query, source.name, SourceError(f"{source.name} was not asked: {error.message}", help=error.help))
    except Exception as error:
        if is_passing(error):  # our database is away for a moment: that is no fault of the source
            raise
        return Result(query, source.name, SourceError(f"{source.name} failed: {type(error).__name__}"))
    hits, avoided = wishes.sift(answer.hits)
    await deps.emit(
        "search", "search", question=task["question"]["id"], query=query["text"], source=source.name,
        hits=len(hits), cached=answer.cached, **_latency(source, answer, monotonic() - began),
    )  # fmt: skip
    return Result(query, source.name, Answer(hits, answer.cached), avoided)


def _latency(source: Source, answer: Answer, waited: float) -> dict[str, object]:
    """What somebody outside took, as far as they were asked; who does not say it is taken by how long it was waited."""
    if not isinstance(source, Remote):
        return {"remote": False}
    took = answer.seconds if answer.seconds is not None else 0.0 if answer.cached else waited
    return {"remote": True, **({"seconds": round(took, 3)} if took else {})}


def _purse(task: Search, deps: Deps) -> Purse:
    """Paid searches of one sub-question must not use up what the others need."""
    account = deps.account
    return account.of(task["question"]["id"], task["share"]) if isinstance(account, Shared) else account


async def _report(results: Sequence[Result], task: Search, deps: Deps) -> None:
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


def inquire(text: str, understanding: Plain, deps: Deps) -> Inquiry:
    """A query with its filters: hosts it is scoped to (`site:`), those the person avoids, the period the question
    confines itself to, and its language; where that is English or not plain, the one the person prefers."""
    scopes = [(minus, host.lower()) for minus, host in _SITE.findall(text)]
    only = tuple(host for minus, host in scopes if not minus)
    avoided = () if only else taste(understanding["question"], deps.options).without
    spoken = language(understanding["question"])
    if spoken in (None, "en"):
        spoken = code(deps.options.preferences)
    time = period(f"{understanding['question']} {understanding.get('temporal_scope') or ''}", deps.started.date())
    return Inquiry(
        query=" ".join(_SITE.sub(" ", text).split()) or text,
        limit=deps.settings.results_per_query,
        since=time.since,
        until=time.until,
        sites=only,
        without=(*(host for minus, host in scopes if minus), *avoided),
        language=None if spoken == "en" else spoken,
    )


def _refuse_silence(results: Sequence[Result]) -> None:
    """An outage is not an empty result: when no source answered, the sub-question has failed."""
    failed = [result.answer for result in results if isinstance(result.answer, SourceError)]
    if failed and len(failed) == len(results):
        raise SourceError(
            f"no source could be searched: {failed[0].message}", help=failed[0].help, retryable=failed[0].retryable
        )


async def _other_words(results: Sequence[Result], task: Search, deps: Deps) -> list[Plain]:
    """Queries not asked yet, where those that were brought little and there is room for more."""
    if not task["queries"]:  # others ask for it
        return []
    tried = _tried(results)
    room = deps.settings.max_search_iterations - len(tried)
    documents = {hit.document or hit.url for result in results for hit in result.hits}
    if room < 1 or len(documents) >= ENOUGH:
        return []
    before = {sense(text) for text in task["before"]}
    known = {(sense(item.query.text), item.query.type) for item in tried}
    offered = {(sense(query.text), query.type): query for query in reversed(await _offered(tried, room, task, deps))}
    chosen = [query for key, query in reversed(offered.items()) if key[0] not in before and key not in known][:room]
    if chosen:
        texts = [query.text for query in chosen]
        note = f"few results for “{task['question']['text']}”, so it was asked in other words: {'; '.join(texts)}"
        await deps.emit("notice", "search", text=note, question=task["question"]["id"], queries=texts)
    return [{"text": query.text, "types": [query.type]} for query in chosen]


async def _offered(tried: Sequence[Tried], room: int, task: Search, deps: Deps) -> list[Query]:
    types = served(_sources(task, deps))
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
        hits[result.query["text"]] += len(result.hits)
    return [
        Tried(query=Query(text=text, type=(query["types"] or ["web"])[0]), hits=hits[text])
        for text, query in queries.items()
    ]


def _summary(task: Search, results: Sequence[Result], deps: Deps) -> Plain:
    answers = [result.answer for result in results if not isinstance(result.answer, SourceError)]
    answered = {result.query["text"] for result in results if not isinstance(result.answer, SourceError)}
    texts = dict.fromkeys(result.query["text"] for result in results)
    moving = moves(task["understanding"]["question"], deps.started.date())
    best = fuse([answer.hits for answer in answers], deps.started.date(), moving=moving)[:MOST_HITS]
    return {
        "question": task["question"]["id"],
        "queries": [line for text in texts for line in _became(text, text in answered, task)],
        "hits": _ranked([hit.model_dump(mode="json") for hit in best]),
        "completed": len(answers),
        "failed": len(results) - len(answers),
        "cached": sum(answer.cached for answer in answers),
        "avoided": dict(sum((result.avoided for result in results), Counter())),
        "errors": _errors(results),
    }


def _became(text: str, answered: bool, task: Search) -> list[Plain]:
    """What came of a query, and of those of its sub-question that ask the same in other words."""
    status = "completed" if answered else "failed"
    alike = [other["text"] for query in task["queries"] if query["text"] == text for other in query.get("also", ())
             if other["question"] == task["question"]["id"]]  # fmt: skip
    return [{"text": text, "status": status}, *({"text": same, "as": text, "status": status} for same in alike)]


def _lent(task: Search, results: Sequence[Result], deps: Deps) -> dict[str, Plain]:
    """What was asked for other sub-questions too is theirs as well."""
    found = {}
    for query in task["queries"]:
        hits = [result.hits for result in results if result.query is query]
        best = [hit.model_dump(mode="json") for hit in fuse(hits, deps.started.date())[:MOST_HITS]]
        for other in _others(query, task):
            key = f"{task['key']} for {other['question']}: {other['text']}"
            found[key] = lent(other["question"], other["text"], query["text"], _ranked(best))
    return found


def _others(query: Plain, task: Search) -> list[Plain]:
    """For whom else a query is asked, each once."""
    others = [other for other in query.get("also", ()) if other["question"] != task["question"]["id"]]
    return list({other["question"]: other for other in reversed(others)}.values())


def _ranked(hits: Sequence[Plain]) -> list[Plain]:
    """Its place in the fused list is what a hit is worth from here on, not its rank at one provider."""
    return [
        {**hit, "snippet": "" if hit["document"] else hit["snippet"][:SHOWN], "rank": rank}
        for rank, hit in enumerate(hits, 1)
    ]


def _errors(results: Sequence[Result]) -> dict[str, list[Any]]:
    """Source -> what it said, and how often it failed."""
    failed = [(result.source, result.answer) for result in results if isinstance(result.answer, SourceError)]
    counts = Counter(source for source, _ in failed)
    return {source: [error.message, counts[source]] for source, error in failed}
