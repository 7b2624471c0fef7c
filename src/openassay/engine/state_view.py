"""What front ends show of a thread's state, with the texts of its documents, kept within bounds."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from openassay.errors import EvidenceError, NotFoundError
from openassay.graph import STATUS, build_graph
from openassay.models.base import Record
from openassay.models.event import Status
from openassay.models.evidence import Analysis, Claim, Document, DocumentKind, Finding, Hit, QuoteSpan
from openassay.models.plan import Clarity, Gate, Mode, Plan, ThreadMessage
from openassay.models.report import Issue, ReportClaim, ReportContext, ReportSpan, Section
from openassay.nodes.report import build_sections
from openassay.protocols import DocumentStore
from openassay.reasoning.base import Draft
from openassay.state import NumberedSource
from openassay.text.urls import canonicalize_url


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


class PlanStep(Record):
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
    dag: tuple[PlanStep, ...] = ()


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
    host: str = ""
    kind: DocumentKind | None = None
    published: str | None = None
    author: str | None = None
    publisher: str | None = None
    chunks: tuple[Chunk, ...] = ()
    problem: str | None = None


class AnalysisView(Analysis):
    """What the last round brought. `quotes`: what the findings it names say."""

    quotes: dict[str, str] = {}


class DraftView(Record):
    """`sections` are what `text` says, as a report would have it: citations and marks as they were at that moment."""

    title: str = ""
    sections: tuple[Section, ...] = ()
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
    analysis: AnalysisView | None = None
    claims: tuple[ReportClaim, ...] = ()  # those the draft tells before the others
    draft: DraftView | None = None
    issues: tuple[str, ...] = ()
    subject: str | None = None
    messages: tuple[ThreadMessage, ...] = ()
    conversation_summary: str = ""
    notices: tuple[str, ...] = ()
    left_out: dict[str, int] = {}  # how many queries, chunks, characters ... are not shown; "unreadable in plan": 1


# What is needed of fields of the state that have no model of their own.


class StoredOptions(BaseModel):
    mode: Mode | None = None


class StoredQuery(BaseModel):
    text: str


class StoredSearch(BaseModel):
    queries: list[StoredQuery]
    hits: list[Hit]


class StoredPage(BaseModel):
    document: str | None = None


class StoredSource(BaseModel):
    id: str
    document: str
    title: str


class StoredPassage(BaseModel):
    document: str
    start: int
    end: int


T = TypeVar("T")
_parse_text = TypeAdapter(str).validate_python

MAX_ITEMS = {
    "queries": 200,
    "search_results": 200,
    "evidence": 100,
    "chunks": 40,
    "claims": 500,
    "passages": 12,
    "messages": 100,
    "issues": 100,
}
MAX_DRAFT_CHARS = 200_000
MAX_SNIPPET_CHARS, MAX_CHUNK_CHARS = 300, 2_000
MAX_MESSAGE_CHARS, MAX_QUOTE_CHARS = 4_000, 600


class StateReader:
    """Reads the fields of a state, keeps lists and texts short, and counts what that leaves out.

    A checkpoint may be sound and yet hold what a field cannot: written by another version, or by hand."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self.left_out: Counter[str] = Counter()

    def read(self, name: str, kind: type[T]) -> T | None:
        """Read a whole field; None for one that is empty or unreadable."""
        value = self._values.get(name)
        return next(iter(self._parse_each(name, [value] if value else [], TypeAdapter(kind).validate_python)), None)

    def read_items(self, name: str, kind: type[T]) -> list[T]:
        """Read the items of a list, as far as they can be read."""
        return self._parse_each(name, self.read(name, list[Any]) or [], TypeAdapter(kind).validate_python)

    def read_entries(self, name: str, kind: type[T]) -> dict[str, T]:
        """Read the entries of a mapping, as far as they can be read."""
        entries, parse = (self.read(name, dict[Any, Any]) or {}).items(), TypeAdapter(kind).validate_python
        return dict(self._parse_each(name, entries, lambda entry: (_parse_text(entry[0]), parse(entry[1]))))

    def _parse_each(self, name: str, found: Iterable[Any], parse: Callable[[Any], T]) -> list[T]:
        good: list[T] = []
        for item in found:
            try:
                good.append(parse(item))
            except ValidationError:
                self.left_out[f"unreadable in {name}"] += 1
        return good

    def take(self, name: str, items: Sequence[T], *, last: bool = False) -> tuple[T, ...]:
        """Take as many of the items as are shown: the first, or the last."""
        kept = items[-MAX_ITEMS[name] :] if last else items[: MAX_ITEMS[name]]
        self.left_out[name] += len(items) - len(kept)
        return tuple(kept)

    def clip(self, text: str, longest: int) -> str:
        self.left_out["characters"] += max(len(text) - longest, 0)
        return text[:longest]


async def build_view(
    values: Mapping[str, Any],
    documents: DocumentStore,
    *,
    thread: str,
    next: Sequence[str] = (),
    checkpoint: str | None = None,
    mode: Mode | None = None,
) -> StateView:
    """Build the view of a state; `mode` is the thread's, where the question came without one."""
    reader = StateReader(values)
    options, gate, plan = reader.read("options", StoredOptions), reader.read("gate", Gate), reader.read("plan", Plan)
    searches = reader.read_entries("searched", StoredSearch)
    sources = reader.read_items("sources", StoredSource)
    findings = reader.read_items("findings", Finding)
    claims = reader.read_items("claims", Claim)
    draft = _view_draft(reader, claims, sources)
    messages = reader.take("messages", reader.read_items("messages", ThreadMessage), last=True)
    return StateView(
        thread=thread,
        checkpoint=checkpoint,
        next=tuple(dict.fromkeys(next)),
        status=reader.read("status", Status) or Status.PENDING,
        clarity_status=reader.read("clarity_status", Clarity) or Clarity.PENDING,
        user_inputs=UserInputs(
            goal=reader.read("original_query", str) or "",
            mode_override=(options and options.mode) or mode,
            gate=_view_gate(gate) if gate else None,
            planner_answers=reader.read_entries("planner_answers", str),
        ),
        plan=_view_plan(plan) if plan else None,
        queries=reader.take("queries", _list_queries(plan, reader.read_items("asked", str), searches)),
        search_results=await _view_results(reader, searches, documents),
        evidence=await _view_evidence(reader, sources, findings, documents),
        analysis=_view_analysis(reader, findings),
        claims=_view_claims(reader, claims, draft, sources),
        draft=draft,
        issues=tuple(
            f"{issue.severity}, {issue.category} ({issue.location}): {issue.description}"
            for issue in reader.take("issues", reader.read_items("issues", Issue))
        ),
        subject=reader.read("subject", str),
        messages=tuple(
            turn.model_copy(update={"content": reader.clip(turn.content, MAX_MESSAGE_CHARS)}) for turn in messages
        ),
        conversation_summary=reader.read("conversation_summary", str) or "",
        notices=tuple(reader.read_entries("notices", str).values()),
        left_out=dict(+reader.left_out),
    )


def _view_gate(gate: Gate) -> GateView:
    shown = gate.model_dump(include={"clarity", "coherence", "reason"})
    return GateView(**shown, usd=gate.estimated_usd, auto=gate.mode is Mode.AUTO)


def _view_plan(plan: Plan) -> PlanView:
    dag = [
        PlanStep(
            id=one.id,
            text=one.text,
            section=one.section,
            queries=tuple(query.text for query in plan.queries if query.question == one.id),
        )
        for one in plan.questions
    ]
    return PlanView(goal=plan.goal, constraints=plan.constraints, deliverable=plan.deliverable, dag=tuple(dag))


def _list_queries(plan: Plan | None, asked: Sequence[str], searches: Mapping[str, StoredSearch]) -> list[str]:
    """List the planned queries, then those asked besides."""
    planned = [query.text for query in plan.queries] if plan else []
    handed_out = [line.partition(" ")[2] for line in asked]  # each behind the id of its sub-question
    searched = [query.text for key in sorted(searches) for query in searches[key].queries]
    return list(dict.fromkeys([*planned, *handed_out, *searched]))


def _view_analysis(reader: StateReader, findings: Sequence[Finding]) -> AnalysisView | None:
    analysis = reader.read("analysis", AnalysisView)
    if analysis is None:
        return None
    sides = [id for matter in analysis.disagreements for side in matter.sides for id in side]
    named = {*(key.finding for key in analysis.key_findings), *sides}
    quotes = {one.id: reader.clip(one.span.quote, MAX_QUOTE_CHARS) for one in findings if one.id in named}
    return analysis.model_copy(update={"quotes": quotes})


def _view_claims(
    reader: StateReader, claims: Sequence[Claim], draft: DraftView | None, sources: Sequence[StoredSource]
) -> tuple[ReportClaim, ...]:
    """Return the claims, each with the passages it rests on; those of the draft first, should there be no room for
    all. Passages are whole or left out: one that is cut would not be what its document says."""
    ids = {source.document: source.id for source in sources}
    used = {name for section in draft.sections for one in section.sentences for name in one.claims} if draft else set()
    shown = []
    for claim in reader.take("claims", sorted(claims, key=lambda claim: claim.id not in used)):
        spans, against = (
            tuple(
                ReportSpan(source=ids.get(span.document, ""), **span.model_dump())
                for span in reader.take("passages", passages)
            )
            for passages in (claim.spans, claim.against)
        )
        context = tuple(
            ReportContext(source=ids.get(item.document, ""), field=item.field, value=item.value)
            for item in claim.context
        )
        fields = claim.model_dump(exclude={"spans", "context", "against", "relevance"})
        shown.append(ReportClaim(**fields, spans=spans, context=context, against=against))
    return tuple(shown)


def _view_draft(reader: StateReader, claims: Sequence[Claim], sources: Sequence[StoredSource]) -> DraftView | None:
    """Return the draft as a text, and in the sections it would be published in, with citations and marks."""
    draft = reader.read("draft", Draft)
    if draft is None:
        return None
    ids = {source.document: source.id for source in sources}
    used = [name for section in draft.sections for one in section.sentences for name in one.claims]
    # A claim that cannot be read, or a document without a number, leaves a sentence without a citation.
    known = {name: Claim(id=name, text="", questions=()) for name in used} | {claim.id: claim for claim in claims}
    bound = [
        claim.model_copy(update={"spans": tuple(span for span in claim.spans if span.document in ids)})
        for claim in known.values()
    ]
    cited = {claim.id: [ids[span.document] for span in claim.spans] for claim in bound}

    def list_citations(names: Iterable[str]) -> dict[str, None]:
        return dict.fromkeys(source for name in names for source in cited[name])

    paragraphs = [draft.title]
    for section in draft.sections:
        lines = [section.title] if section.title else []
        for one in section.sentences:
            references = "".join(f"[{source}]" for source in list_citations(one.claims))
            lines.append(f"{one.text} {references}".rstrip())
        paragraphs.append("\n".join(lines))
    numbered = [NumberedSource(id=id, document=document, title="", published=None) for document, id in ids.items()]
    score = reader.read("confidence", float) or 0.0
    return DraftView(
        title=reader.clip(draft.title, MAX_DRAFT_CHARS),
        sections=_shorten_sections(reader, build_sections(draft, bound, numbered)),
        text=reader.clip("\n\n".join(paragraphs), MAX_DRAFT_CHARS),
        citations=tuple(list_citations(used)),
        confidence=round(score / 10, 2) if isfinite(score) else 0.0,
    )


def _shorten_sections(reader: StateReader, sections: Sequence[Section]) -> tuple[Section, ...]:
    """Keep as many sentences as there is room for; the others are counted."""
    room = MAX_DRAFT_CHARS
    shown = []
    for section in sections:
        room -= len(section.title)
        kept = []
        for sentence in section.sentences:
            room -= len(sentence.text)
            if room >= 0:
                kept.append(sentence)
        reader.left_out["sentences"] += len(section.sentences) - len(kept)
        if kept:
            shown.append(section.model_copy(update={"sentences": tuple(kept)}))
    return tuple(shown)


async def _view_results(
    reader: StateReader, searches: Mapping[str, StoredSearch], documents: DocumentStore
) -> tuple[SearchResult, ...]:
    """Return what was found: every address once, the first of each search before the second of any."""
    pages = reader.read_entries("harvested", StoredPage)
    hits = [hit for key in sorted(searches) for hit in searches[key].hits]
    unique: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda hit: hit.rank):
        unique.setdefault(canonicalize_url(hit.url), hit)
    results = []
    for hit in reader.take("search_results", list(unique.values())):
        page = pages.get(canonicalize_url(hit.fulltext or hit.url))
        name, snippet, problem = hit.document or (page and page.document), hit.snippet, None
        if name and not snippet:
            document = await _load_document(name, documents)
            if isinstance(document, Document):
                snippet = _snippet(document, (hit.start or 0) if hit.document else 0)
            else:
                problem = document
        shown = hit.model_dump(mode="json", include={"url", "title", "published", "provider", "host"})
        results.append(SearchResult(**shown, snippet=snippet, problem=problem))
    return tuple(results)


async def _view_evidence(
    reader: StateReader, sources: Sequence[StoredSource], findings: Sequence[Finding], documents: DocumentStore
) -> tuple[EvidenceView, ...]:
    """Return what was read: of each document the passages selected or, if there are none any more, its findings."""
    passages = [one for chosen in reader.read_entries("selected", list[StoredPassage]).values() for one in chosen]
    found, selected = _group_by_document(one.span for one in findings), _group_by_document(passages)
    places = {name: sorted(ranges) for name, ranges in {**found, **selected}.items()}
    labels = {source.document: source for source in sources}
    evidence = []
    for name in reader.take("evidence", list(dict.fromkeys([*labels, *places]))):
        document, label = await _load_document(name, documents), labels.get(name)
        id, title = (label.id, label.title) if label else (None, "")
        if isinstance(document, str):
            evidence.append(EvidenceView(id=id, title=title, content_hash=name, problem=document))
            continue
        ranges = places.get(name, [])
        chunks = [
            Chunk(start=start, end=end, text=reader.clip(document.text[start:end], MAX_CHUNK_CHARS))
            for start, end in reader.take("chunks", ranges)
        ]
        snippet = _snippet(document, ranges[0][0] if ranges else 0)
        shown = document.model_dump(mode="json", include={"url", "host", "kind", "published", "author", "publisher"})
        evidence.append(
            EvidenceView(
                **shown, id=id, title=title or document.title, snippet=snippet, content_hash=name, chunks=tuple(chunks)
            )
        )
    return tuple(evidence)


def _group_by_document(places: Iterable[StoredPassage | QuoteSpan]) -> dict[str, set[tuple[int, int]]]:
    gathered: dict[str, set[tuple[int, int]]] = {}
    for place in places:
        gathered.setdefault(place.document, set()).add((place.start, place.end))
    return gathered


async def _load_document(name: str, documents: DocumentStore) -> Document | str:
    """Return the document, or why it cannot be shown."""
    try:
        return await documents.get(name)
    except (NotFoundError, EvidenceError) as error:
        return error.message


def _snippet(document: Document, start: int) -> str:
    return " ".join(document.text[start : start + MAX_SNIPPET_CHARS].split())


# The graph that every state belongs to.

_ERROR_HANDLER = "__error_handler__"  # LangGraph's own, one for each node that may lose a sub-question


def list_stages() -> tuple[dict[str, Status | None], list[tuple[str, str, bool]]]:
    """Return the nodes of the graph with the status they stand for, and its edges with whether they are conditional."""
    drawn = build_graph().get_graph()
    nodes = {name: STATUS.get(name) for name in drawn.nodes if not name.startswith(_ERROR_HANDLER)}
    edges = [one for one in drawn.edges if {one.source, one.target} <= nodes.keys()]
    return nodes, [(one.source, one.target, one.conditional) for one in edges]


def draw_mermaid() -> str:
    """Draw the compiled graph as Mermaid."""
    return build_graph().get_graph().draw_mermaid()
