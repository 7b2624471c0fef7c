"""The view of a thread's state: what front ends show of it, with the texts of its documents, kept within bounds."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import FiniteFloat, TypeAdapter

from openassay.errors import EvidenceError, NotFoundError
from openassay.models.base import Record
from openassay.models.event import Status
from openassay.models.evidence import Analysis, Document, DocumentKind, Mark
from openassay.models.plan import Clarity, Mode, ThreadMessage
from openassay.models.report import ReportClaim, ReportSpan, Section, Sentence
from openassay.nodes.dispatch import list_queries
from openassay.nodes.report import MAX_CITATIONS, SURENESS
from openassay.protocols import DocumentStore
from openassay.state import Plain
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


T = TypeVar("T")

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

parse_text = TypeAdapter(str).validate_python
parse_optional_text = TypeAdapter(str | None).validate_python
parse_int = TypeAdapter(int).validate_python
parse_float = TypeAdapter(FiniteFloat).validate_python


class StateReader:
    """Reads the fields of a state, keeps lists and texts short, and counts what that leaves out.

    A checkpoint may be sound and yet hold what a field cannot: written by another version, or by hand."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self.left_out: Counter[str] = Counter()

    def read_field(self, name: str, read: Callable[[Any], T], default: T) -> T:
        """Read a whole field; the default stands for one that is empty or unreadable."""
        value = self._values.get(name)
        return next(iter(self.read_each(name, [value] if value else [], read)), default)

    def read_items(self, name: str, read: Callable[[Any], T]) -> list[T]:
        """Read the items of a list, as far as they can be read."""
        return self.read_each(name, self.read_field(name, as_list, []), read)

    def read_mapping(self, name: str, read: Callable[[Any], T]) -> dict[str, T]:
        """Read the entries of a mapping, as far as they can be read."""
        entries: list[tuple[Any, Any]] = self.read_field(name, lambda value: list(value.items()), [])
        return dict(self.read_each(name, entries, lambda entry: (parse_text(entry[0]), read(entry[1]))))

    def read_each(self, name: str, found: Iterable[Any], read: Callable[[Any], T]) -> list[T]:
        good: list[T] = []
        odd = 0
        for item in found:
            try:
                good.append(read(item))
            except (AttributeError, LookupError, TypeError, ValueError):  # also of a record that does not validate
                odd += 1
        if odd:  # not added up: a field may be read twice
            key = f"unreadable in {name}"
            self.left_out[key] = max(odd, self.left_out[key])
        return good

    def take_first(self, name: str, items: Sequence[T]) -> tuple[T, ...]:
        return self._count_omissions(name, items, items[: MAX_ITEMS[name]])

    def take_last(self, name: str, items: Sequence[T]) -> tuple[T, ...]:
        return self._count_omissions(name, items, items[-MAX_ITEMS[name] :])

    def clip_text(self, text: str, longest: int) -> str:
        if len(text) > longest:
            self.left_out["characters"] += len(text) - longest
        return text[:longest]

    def _count_omissions(self, name: str, items: Sequence[T], kept: Sequence[T]) -> tuple[T, ...]:
        if len(kept) < len(items):
            self.left_out[name] += len(items) - len(kept)
        return tuple(kept)


def as_list(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError("not a list")
    return list(value)


def view_claims(reader: StateReader, draft: DraftView | None) -> tuple[ReportClaim, ...]:
    """Return the claims, each with the passages it rests on; those of the draft first, should there be no room for
    all. Passages are whole or left out: one that is cut would not be what its document says."""
    ids = _source_ids(reader)

    def read_claim(claim: Plain) -> ReportClaim:
        fields = {name: value for name, value in claim.items() if name in ReportClaim.model_fields}
        for name in ("spans", "against"):
            spans = claim.get(name, ())
            fields[name] = tuple(ReportSpan(**span, source=ids.get(span["document"], "")) for span in spans)
        return ReportClaim(**fields)

    found = reader.read_items("claims", read_claim)
    used = {name for section in draft.sections for one in section.sentences for name in one.claims} if draft else set()
    ordered = sorted(found, key=lambda claim: claim.id not in used)
    return tuple(
        claim.model_copy(
            update={
                "spans": reader.take_first("passages", claim.spans),
                "against": reader.take_first("passages", claim.against),
            }
        )
        for claim in reader.take_first("claims", ordered)
    )


def _source_ids(reader: StateReader) -> dict[str, str]:
    """Return the number of each document."""
    return dict(reader.read_items("sources", lambda source: (parse_text(source["document"]), parse_text(source["id"]))))


class ClaimSupport(NamedTuple):
    """What a claim rests on."""

    sources: tuple[str, ...] = ()
    mark: Mark | None = None


def view_draft(reader: StateReader) -> DraftView | None:
    """Return the draft as a text, and in the sections it would be published in, with citations and marks."""
    ids = _source_ids(reader)

    def read_support(claim: Plain) -> tuple[str, ClaimSupport]:
        documents = [span["document"] for span in claim["spans"]]
        mark = parse_optional_text(claim.get("mark"))
        cited = tuple(ids[document] for document in documents if document in ids)
        return parse_text(claim["id"]), ClaimSupport(cited, Mark(mark) if mark else None)

    claims = dict(reader.read_items("claims", read_support))
    confidence = reader.read_field("confidence", lambda value: round(parse_float(value) / 10, 2), 0.0)

    def read_draft(draft: Plain) -> DraftView:
        paragraphs, used = [draft["title"]], list[str]()
        for section in draft["sections"]:
            lines = [section["title"]] if section["title"] else []
            for sentence in section["sentences"]:
                used += sentence["claims"]
                cited = "".join(f"[{source}]" for source in _list_citations(sentence["claims"], claims))
                lines.append(f"{sentence['text']} {cited}".rstrip())
            paragraphs.append("\n".join(lines))
        return DraftView(
            title=reader.clip_text(draft["title"], MAX_DRAFT_CHARS),
            sections=tuple(_to_sections(draft, claims, reader)),
            text=reader.clip_text("\n\n".join(paragraphs), MAX_DRAFT_CHARS),
            citations=tuple(_list_citations(used, claims)),
            confidence=confidence,
        )

    return reader.read_field("draft", read_draft, None)


def _list_citations(names: Sequence[str], claims: Mapping[str, ClaimSupport]) -> dict[str, None]:
    return dict.fromkeys(source for name in names for source in claims.get(name, ClaimSupport()).sources)


def _to_sections(draft: Plain, claims: Mapping[str, ClaimSupport], reader: StateReader) -> Iterator[Section]:
    """Yield as many sentences as there is room for; the others are counted."""
    room = MAX_DRAFT_CHARS
    for section in draft["sections"]:
        room -= len(section["title"])
        sentences = []
        for sentence in section["sentences"]:
            room -= len(sentence["text"])
            if room < 0:
                continue
            names, opens = sentence["claims"], sentence.get("opens", False)
            if not names:
                sentences.append(Sentence(text=sentence["text"], kind="frame", opens=opens))
                continue
            marks = [mark for name in names if (mark := claims.get(name, ClaimSupport()).mark)]
            sentences.append(
                Sentence(
                    text=sentence["text"],
                    kind="fact",
                    claims=names,
                    citations=tuple(_list_citations(names, claims))[:MAX_CITATIONS],
                    mark=min(marks, key=SURENESS.index) if marks else Mark.SINGLE,
                    opens=opens,
                )
            )
        if omitted := len(section["sentences"]) - len(sentences):
            reader.left_out["sentences"] += omitted
        if sentences:
            yield Section(title=section["title"], role=section.get("role", "body"), sentences=tuple(sentences))


class ResultCandidate(NamedTuple):
    rank: int
    search: str
    result: SearchResult
    document: str | None  # that the source stores itself
    start: int  # of the match in it
    fulltext: str


class EvidenceRange(NamedTuple):
    start: int
    end: int


async def _load_document(name: str, documents: DocumentStore) -> Document | str:
    """Return the document, or why it cannot be shown."""
    try:
        return await documents.get(name)
    except (NotFoundError, EvidenceError) as error:
        return error.message


def _snippet(document: Document, start: int) -> str:
    return " ".join(document.text[start : start + MAX_SNIPPET_CHARS].split())


async def view_results(reader: StateReader, documents: DocumentStore) -> tuple[SearchResult, ...]:
    """Return what was found: every address once, the first of each search before the second of any."""
    fetched = reader.read_mapping("harvested", lambda page: parse_optional_text(page.get("document")))
    searched = reader.read_mapping("searched", lambda search: as_list(search["hits"]))

    def read_hit(pair: tuple[str, Plain]) -> ResultCandidate:
        search, hit = pair
        result = SearchResult(
            url=hit["url"],
            title=hit["title"],
            snippet=hit.get("snippet", ""),
            published=hit["published"],
            provider=hit["provider"],
            host=hit["host"],
        )
        document, fulltext = parse_optional_text(hit["document"]), parse_optional_text(hit["fulltext"])
        start = parse_int(hit["start"] or 0)
        return ResultCandidate(parse_int(hit["rank"]), search, result, document, start, fulltext or result.url)

    hits = reader.read_each("searched", [(key, hit) for key, hits in searched.items() for hit in hits], read_hit)
    ordered = sorted(hits, key=lambda hit: (hit.rank, hit.search))
    unique = list({canonicalize_url(hit.result.url): hit for hit in reversed(ordered)}.values())[::-1]
    results = []
    for hit in reader.take_first("search_results", unique):
        result, name = hit.result, hit.document or fetched.get(canonicalize_url(hit.fulltext))
        if name and not result.snippet:
            document = await _load_document(name, documents)
            if isinstance(document, str):
                result = result.model_copy(update={"problem": document})
            else:
                snippet = _snippet(document, hit.start if hit.document else 0)
                result = result.model_copy(update={"snippet": snippet})
        results.append(result)
    return tuple(results)


async def view_evidence(reader: StateReader, documents: DocumentStore) -> tuple[EvidenceView, ...]:
    """Return what was read: of each document the passages selected or, if there are none any more, its findings."""

    def read_label(source: Plain) -> tuple[str, tuple[str, str]]:
        return parse_text(source["document"]), (parse_text(source["id"]), parse_text(source["title"]))

    labels = dict(reader.read_items("sources", read_label))
    passages = [passage for chosen in reader.read_mapping("selected", as_list).values() for passage in chosen]
    selected = _group_by_document(reader.read_each("selected", passages, _to_range))
    found = _group_by_document(reader.read_items("findings", lambda finding: _to_range(finding["span"])))
    ranges = {name: sorted(places) for name, places in {**found, **selected}.items()}
    evidence = []
    for name in reader.take_first("evidence", list(dict.fromkeys([*labels, *ranges]))):
        document, places = await _load_document(name, documents), ranges.get(name, [])
        id, title = labels.get(name, (None, ""))
        if isinstance(document, str):
            evidence.append(EvidenceView(id=id, title=title, content_hash=name, problem=document))
            continue
        chunks = [
            Chunk(start=start, end=end, text=reader.clip_text(document.text[start:end], MAX_CHUNK_CHARS))
            for start, end in reader.take_first("chunks", places)
        ]
        view = EvidenceView(
            id=id,
            url=document.url,
            title=title or document.title,
            content_hash=name,
            chunks=tuple(chunks),
            snippet=_snippet(document, places[0].start if places else 0),
            host=document.host,
            kind=document.kind,
            published=document.published.isoformat() if document.published else None,
            author=document.author,
        )
        evidence.append(view)
    return tuple(evidence)


def _group_by_document(places: Iterable[tuple[str, EvidenceRange]]) -> dict[str, set[EvidenceRange]]:
    gathered: dict[str, set[EvidenceRange]] = {}
    for document, place in places:
        gathered.setdefault(document, set()).add(place)
    return gathered


def _to_range(span: Plain) -> tuple[str, EvidenceRange]:
    return parse_text(span["document"]), EvidenceRange(parse_int(span["start"]), parse_int(span["end"]))


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
    draft = view_draft(reader)

    def read_message(message: Plain) -> ThreadMessage:
        turn = ThreadMessage(role=message["role"], content=message["content"])
        return turn.model_copy(update={"content": reader.clip_text(turn.content, MAX_MESSAGE_CHARS)})

    return StateView(
        thread=thread,
        checkpoint=checkpoint,
        next=tuple(dict.fromkeys(next)),
        status=reader.read_field("status", Status, Status.PENDING),
        clarity_status=reader.read_field("clarity_status", Clarity, Clarity.PENDING),
        user_inputs=UserInputs(
            goal=reader.read_field("original_query", parse_text, ""),
            mode_override=reader.read_field("options", _read_mode, None) or mode,
            gate=reader.read_field("gate", _read_gate, None),
            planner_answers=reader.read_mapping("planner_answers", parse_text),
        ),
        plan=reader.read_field("plan", _read_plan, None),
        queries=reader.take_first("queries", _list_queries(reader)),
        search_results=await view_results(reader, documents),
        evidence=await view_evidence(reader, documents),
        analysis=_view_analysis(reader),
        claims=view_claims(reader, draft),
        draft=draft,
        issues=reader.take_first("issues", reader.read_items("issues", _read_issue)),
        subject=reader.read_field("subject", parse_text, None),
        messages=reader.take_last("messages", reader.read_items("messages", read_message)),
        conversation_summary=reader.read_field("conversation_summary", parse_text, ""),
        notices=tuple(reader.read_mapping("notices", parse_text).values()),
        left_out=dict(reader.left_out),
    )


def _read_mode(options: Plain) -> Mode | None:
    mode = options.get("mode")
    return None if mode is None else Mode(mode)


def _read_gate(gate: Plain) -> GateView:
    return GateView(
        clarity=parse_float(gate["clarity"]),
        coherence=parse_float(gate["coherence"]),
        usd=parse_float(gate["estimated_usd"]),
        auto=gate["mode"] == Mode.AUTO,
        reason=gate["reason"],
    )


def _read_plan(plan: Plain) -> PlanView:
    queries: dict[str, list[str]] = {}
    for query in plan["queries"]:
        queries.setdefault(query["question"], []).append(query["text"])
    dag = [
        PlanStep(id=one["id"], text=one["text"], section=one["section"], queries=tuple(queries.get(one["id"], ())))
        for one in plan["questions"]
    ]
    return PlanView(
        goal=plan["goal"], constraints=tuple(plan["constraints"]), deliverable=plan["deliverable"], dag=tuple(dag)
    )


def _list_queries(reader: StateReader) -> list[str]:
    """List the planned queries, then those asked besides."""

    def read_search(result: Plain) -> Plain:
        queries = [{"text": parse_text(query["text"])} for query in result["queries"]]
        return {"question": parse_text(result["question"]), "queries": queries}

    planned: list[str] = reader.read_field(
        "plan", lambda plan: [parse_text(query["text"]) for query in plan["queries"]], []
    )
    searched = reader.read_mapping("searched", read_search)
    lines = list_queries({"asked": reader.read_items("asked", parse_text), "searched": searched})
    return list(dict.fromkeys([*planned, *(line.partition(" ")[2] for line in lines)]))


def _view_analysis(reader: StateReader) -> AnalysisView | None:
    analysis = reader.read_field("analysis", AnalysisView.model_validate, None)
    if analysis is None:
        return None
    sides = [id for matter in analysis.disagreements for side in matter.sides for id in side]
    named = {*(key.finding for key in analysis.key_findings), *sides}
    findings = reader.read_items(
        "findings", lambda finding: (parse_text(finding["id"]), parse_text(finding["span"]["quote"]))
    )
    quotes = {id: reader.clip_text(quote, MAX_QUOTE_CHARS) for id, quote in findings if id in named}
    return analysis.model_copy(update={"quotes": quotes})


def _read_issue(issue: Plain) -> str:
    severity, category, location, description = (
        parse_text(issue[key]) for key in ("severity", "category", "location", "description")
    )
    return f"{severity}, {category} ({location}): {description}"
