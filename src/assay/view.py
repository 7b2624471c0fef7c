"""A thread's state as people and programs look at it: what is kept by id is shown in full, and none of it is endless.

It can be looked at whenever: before there is a plan, while a question is open, when all is done or has failed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from assay.errors import EvidenceError, NotFoundError
from assay.model.event import Status
from assay.model.question import Clarity, Mode, Turn
from assay.model.record import Record
from assay.model.source import Document
from assay.ports import DocumentStore
from assay.stages.dispatch import asked
from assay.state import Plain
from assay.text.urls import canonical

T = TypeVar("T")

MOST = {"queries": 200, "search_results": 200, "evidence": 100, "chunks": 40, "messages": 100, "issues": 100}
SNIPPET, CHUNK, MESSAGE, DRAFT = 300, 2_000, 4_000, 200_000  # characters


class GateView(Record):
    clarity: float
    coherence: float
    usd: float
    auto: bool  # whether the run went on without asking
    reason: str = ""


class UserInputs(Record):
    goal: str = ""
    mode_override: Mode | None = None
    gate: GateView | None = None
    planner_answers: dict[str, str] = {}


class Step(Record):
    """A sub-question of the plan; sub-questions wait for nobody unless `after` names whom."""

    id: str
    text: str
    section: str
    queries: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class PlanView(Record):
    goal: str
    constraints: tuple[str, ...] = ()
    deliverable: str = "report"
    dag: tuple[Step, ...] = ()


class SearchResult(Record):
    """Found, before anything was read. `problem`: why its text cannot be shown."""

    url: str
    title: str
    snippet: str = ""
    published: str | None = None
    provider: str = ""
    host: str = ""
    problem: str | None = None


class Chunk(Record):
    """A passage chosen to be read. Where `text` is shorter than from `start` to `end`, the rest was left out."""

    start: int
    end: int
    text: str


class EvidenceView(Record):
    """A document that was read, or is about to be. `id` is what citations call it, once it was given a number."""

    id: str | None = None
    url: str = ""
    title: str = ""
    snippet: str = ""
    content_hash: str
    chunks: tuple[Chunk, ...] = ()
    problem: str | None = None


class DraftView(Record):
    text: str
    citations: tuple[str, ...] = ()  # ids of the evidence, in the order of their first use
    confidence: float = 0.0


class StateView(Record):
    thread: str
    checkpoint: str | None = None
    next: tuple[str, ...] = ()
    status: Status = Status.PENDING
    clarity_status: Clarity = Clarity.PENDING
    user_inputs: UserInputs = UserInputs()
    plan: PlanView | None = None
    queries: tuple[str, ...] = ()
    search_results: tuple[SearchResult, ...] = ()
    evidence: tuple[EvidenceView, ...] = ()
    draft: DraftView | None = None
    issues: tuple[str, ...] = ()
    subject: str | None = None
    messages: tuple[Turn, ...] = ()
    conversation_summary: str = ""
    notices: tuple[str, ...] = ()
    left_out: dict[str, int] = {}  # how many queries, results, documents, chunks, characters ... are not shown


async def view(
    values: Mapping[str, Any],
    documents: DocumentStore,
    *,
    thread: str,
    next: Sequence[str] = (),
    checkpoint: str | None = None,
) -> StateView:
    shown = _Shown()
    return StateView(
        thread=thread,
        checkpoint=checkpoint,
        next=tuple(dict.fromkeys(next)),
        status=Status(values.get("status") or Status.PENDING),
        clarity_status=Clarity(values.get("clarity_status") or Clarity.PENDING),
        user_inputs=_inputs(values),
        plan=_plan(values.get("plan")),
        queries=shown.some("queries", _queries(values)),
        search_results=await _results(values, documents, shown),
        evidence=await _evidence(values, documents, shown),
        draft=_draft(values, shown),
        issues=shown.some("issues", [_issue(issue) for issue in values.get("issues") or ()]),
        subject=values.get("subject"),
        messages=shown.last("messages", [_turn(message, shown) for message in values.get("messages") or ()]),
        conversation_summary=values.get("conversation_summary") or "",
        notices=tuple((values.get("notices") or {}).values()),
        left_out=dict(shown.left_out),
    )


class _Shown:
    """Keeps lists and texts short, and counts what that leaves out."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()

    def some(self, name: str, items: Sequence[T]) -> tuple[T, ...]:
        return self._counted(name, items, items[: MOST[name]])

    def last(self, name: str, items: Sequence[T]) -> tuple[T, ...]:
        return self._counted(name, items, items[-MOST[name] :])

    def text(self, text: str, longest: int) -> str:
        if len(text) > longest:
            self.left_out["characters"] += len(text) - longest
        return text[:longest]

    def _counted(self, name: str, items: Sequence[T], kept: Sequence[T]) -> tuple[T, ...]:
        if len(kept) < len(items):
            self.left_out[name] += len(items) - len(kept)
        return tuple(kept)


def _inputs(values: Mapping[str, Any]) -> UserInputs:
    gate = values.get("gate")
    return UserInputs(
        goal=values.get("original_query") or "",
        mode_override=(values.get("options") or {}).get("mode"),
        gate=_gate(gate) if gate else None,
        planner_answers=values.get("planner_answers") or {},
    )


def _gate(gate: Plain) -> GateView:
    return GateView(
        clarity=gate["clarity"], coherence=gate["coherence"], usd=gate["estimated_usd"],
        auto=gate["mode"] == Mode.AUTO, reason=gate["reason"],
    )  # fmt: skip


def _plan(plan: Plain | None) -> PlanView | None:
    if not plan:
        return None
    queries: dict[str, list[str]] = {}
    for query in plan["queries"]:
        queries.setdefault(query["question"], []).append(query["text"])
    dag = [
        Step(id=one["id"], text=one["text"], section=one["section"], queries=tuple(queries.get(one["id"], ())))
        for one in plan["questions"]
    ]
    return PlanView(
        goal=plan["goal"], constraints=tuple(plan["constraints"]), deliverable=plan["deliverable"], dag=tuple(dag)
    )


def _queries(values: Mapping[str, Any]) -> list[str]:
    """Those planned, then those asked besides."""
    planned = [query["text"] for query in (values.get("plan") or {}).get("queries", ())]
    lines = asked({"asked": values.get("asked") or [], "searched": values.get("searched") or {}})
    return list(dict.fromkeys([*planned, *(line.partition(" ")[2] for line in lines)]))


# Documents --------------------------------------------------------------------------------------------


async def _opened(name: str, documents: DocumentStore) -> Document | str:
    """The document, or why it cannot be shown."""
    try:
        return await documents.get(name)
    except (NotFoundError, EvidenceError) as error:
        return error.message


async def _results(values: Mapping[str, Any], documents: DocumentStore, shown: _Shown) -> tuple[SearchResult, ...]:
    harvested = values.get("harvested") or {}
    best = shown.some("search_results", _best(values.get("searched") or {}))
    return tuple([await _result(hit, harvested, documents) for hit in best])


def _best(searched: Mapping[str, Plain]) -> list[Plain]:
    """Every address once, the first of each search before the second of any."""
    hits = [(hit["rank"], key, hit) for key, result in searched.items() for hit in result["hits"]]
    ordered = sorted(hits, key=lambda item: item[:2])
    return list({canonical(hit["url"]): hit for *_, hit in reversed(ordered)}.values())[::-1]


async def _result(hit: Plain, harvested: Mapping[str, Plain], documents: DocumentStore) -> SearchResult:
    snippet, problem = hit.get("snippet", ""), None
    name = hit["document"] or harvested.get(canonical(hit["fulltext"] or hit["url"]), {}).get("document")
    if name and not snippet:
        document = await _opened(name, documents)
        start = (hit["start"] or 0) if hit["document"] else 0
        problem = document if isinstance(document, str) else None
        snippet = "" if isinstance(document, str) else _snippet(document, start)
    return SearchResult(
        url=hit["url"], title=hit["title"], snippet=snippet, published=hit["published"], provider=hit["provider"],
        host=hit["host"], problem=problem,
    )  # fmt: skip


async def _evidence(values: Mapping[str, Any], documents: DocumentStore, shown: _Shown) -> tuple[EvidenceView, ...]:
    cards = {source["document"]: source for source in values.get("sources") or ()}
    places = _places(values)
    names = shown.some("evidence", list(dict.fromkeys([*cards, *places])))
    return tuple([await _read(name, cards.get(name, {}), places.get(name, []), documents, shown) for name in names])


def _places(values: Mapping[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """Document -> where it was read: the passages chosen of it or, if there are none any more, what was found in it."""
    chosen: dict[str, set[tuple[int, int]]] = {}
    for passages in (values.get("selected") or {}).values():
        for place in passages:
            chosen.setdefault(place["document"], set()).add((place["start"], place["end"]))
    found: dict[str, set[tuple[int, int]]] = {}
    for finding in values.get("findings") or ():
        span = finding["span"]
        found.setdefault(span["document"], set()).add((span["start"], span["end"]))
    return {name: sorted(places) for name, places in {**found, **chosen}.items()}


async def _read(
    name: str, card: Plain, places: Sequence[tuple[int, int]], documents: DocumentStore, shown: _Shown
) -> EvidenceView:
    document = await _opened(name, documents)
    if isinstance(document, str):
        return EvidenceView(id=card.get("id"), title=card.get("title", ""), content_hash=name, problem=document)
    chunks = [
        Chunk(start=start, end=end, text=shown.text(document.text[start:end], CHUNK))
        for start, end in shown.some("chunks", places)
    ]
    return EvidenceView(
        id=card.get("id"), url=document.url, title=document.title, content_hash=name, chunks=tuple(chunks),
        snippet=_snippet(document, places[0][0] if places else 0),
    )  # fmt: skip


def _snippet(document: Document, start: int) -> str:
    return " ".join(document.text[start : start + SNIPPET].split())


# The report -------------------------------------------------------------------------------------------


def _draft(values: Mapping[str, Any], shown: _Shown) -> DraftView | None:
    draft = values.get("draft")
    if not draft:
        return None
    sources = {source["document"]: source["id"] for source in values.get("sources") or ()}
    cited = {
        claim["id"]: [sources[span["document"]] for span in claim["spans"] if span["document"] in sources]
        for claim in values.get("claims") or ()
    }
    text = "\n\n".join(_paragraphs(draft, cited))
    bound = [name for section in draft["sections"] for sentence in section["sentences"] for name in sentence["claims"]]
    return DraftView(
        text=shown.text(text, DRAFT),
        citations=tuple(dict.fromkeys(source for name in bound for source in cited.get(name, ()))),
        confidence=round((values.get("confidence") or 0.0) / 10, 2),
    )


def _paragraphs(draft: Plain, cited: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield draft["title"]
    for section in draft["sections"]:
        lines = [_sentence(sentence, cited) for sentence in section["sentences"]]
        yield "\n".join([section["title"], *lines] if section["title"] else lines)


def _sentence(sentence: Plain, cited: Mapping[str, Sequence[str]]) -> str:
    sources = dict.fromkeys(source for name in sentence["claims"] for source in cited.get(name, ()))
    return " ".join([sentence["text"], "".join(f"[{source}]" for source in sources)]).rstrip()


def _issue(issue: Plain) -> str:
    return f"{issue['severity']}, {issue['category']} ({issue['location']}): {issue['description']}"


def _turn(message: Plain, shown: _Shown) -> Turn:
    return Turn(role=message["role"], content=shown.text(message["content"], MESSAGE))
