"""What was found and what was read, with the texts of the snapshots."""

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

# What is shown of a thread's state.


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


# What of a state is shown.

T = TypeVar("T")

MOST = {
    "queries": 200, "search_results": 200, "evidence": 100, "chunks": 40, "claims": 500, "passages": 12,
    "messages": 100, "issues": 100,
}  # fmt: skip
# What reading something of another shape raises; a record that does not validate is a ValueError.
_ODD = (AttributeError, LookupError, TypeError, ValueError)

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
        """A whole field, or what stands for one that is empty or odd."""
        value = self._values.get(name)
        return next(iter(self.read_each(name, [value] if value else [], read)), default)

    def read_items(self, name: str, read: Callable[[Any], T]) -> list[T]:
        """The items of a list that can be read."""
        return self.read_each(name, self.read_field(name, as_list, []), read)

    def read_mapping(self, name: str, read: Callable[[Any], T]) -> dict[str, T]:
        """The entries of a mapping that can be read."""
        entries: list[tuple[Any, Any]] = self.read_field(name, _as_entries, [])
        return dict(self.read_each(name, entries, lambda entry: (parse_text(entry[0]), read(entry[1]))))

    def read_each(self, name: str, found: Iterable[Any], read: Callable[[Any], T]) -> list[T]:
        good: list[T] = []
        odd = 0
        for item in found:
            try:
                good.append(read(item))
            except _ODD:
                odd += 1
        if odd:  # not added up: a field may be read twice
            told = f"unreadable in {name}"
            self.left_out[told] = max(odd, self.left_out[told])
        return good

    def take_first(self, name: str, items: Sequence[T]) -> tuple[T, ...]:
        return self._count_omissions(name, items, items[: MOST[name]])

    def take_last(self, name: str, items: Sequence[T]) -> tuple[T, ...]:
        return self._count_omissions(name, items, items[-MOST[name] :])

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


def _as_entries(value: Any) -> list[tuple[Any, Any]]:
    return list(value.items())


# The claims of a moment, each with the passages it rests on.


def view_claims(shown: StateReader, draft: DraftView | None) -> tuple[ReportClaim, ...]:
    """Those the draft tells come first: should there be no room for all, nobody looks for the others."""
    ids = dict(shown.read_items("sources", lambda source: (parse_text(source["document"]), parse_text(source["id"]))))
    found = shown.read_items("claims", lambda claim: _to_claim(claim, ids))
    told = {name for section in draft.sections for one in section.sentences for name in one.claims} if draft else set()
    ordered = sorted(found, key=lambda claim: claim.id not in told)
    return tuple(_clip_claim(claim, shown) for claim in shown.take_first("claims", ordered))


def _to_claim(claim: Plain, ids: Mapping[str, str]) -> ReportClaim:
    def placed(name: str) -> tuple[ReportSpan, ...]:
        return tuple(ReportSpan(**span, source=ids.get(span["document"], "")) for span in claim.get(name, ()))

    kept = {name: value for name, value in claim.items() if name in ReportClaim.model_fields}
    return ReportClaim(**{**kept, "spans": placed("spans"), "against": placed("against")})


def _clip_claim(claim: ReportClaim, shown: StateReader) -> ReportClaim:
    """Passages are whole or not there: one that is cut would not be what its snapshot says."""
    return claim.model_copy(
        update={
            "spans": shown.take_first("passages", claim.spans),
            "against": shown.take_first("passages", claim.against),
        }
    )


# The draft of a moment: as a text, and in the sections it would be published in, with citations and marks.

LONGEST = 200_000  # characters


class ClaimSupport(NamedTuple):
    """What a claim rests on."""

    sources: tuple[str, ...] = ()
    mark: Mark | None = None


def view_draft(shown: StateReader) -> DraftView | None:
    ids = dict(shown.read_items("sources", lambda source: (parse_text(source["document"]), parse_text(source["id"]))))

    def behind(claim: Plain) -> tuple[str, ClaimSupport]:
        documents = [span["document"] for span in claim["spans"]]
        mark = parse_optional_text(claim.get("mark"))
        cited = tuple(ids[document] for document in documents if document in ids)
        return parse_text(claim["id"]), ClaimSupport(cited, Mark(mark) if mark else None)

    claims = dict(shown.read_items("claims", behind))
    confidence = shown.read_field("confidence", lambda value: round(parse_float(value) / 10, 2), 0.0)
    return shown.read_field("draft", lambda held: _to_draft(held, claims, confidence, shown), None)


def _to_draft(held: Plain, claims: Mapping[str, ClaimSupport], confidence: float, shown: StateReader) -> DraftView:
    used = [name for section in held["sections"] for sentence in section["sentences"] for name in sentence["claims"]]
    return DraftView(
        title=shown.clip_text(held["title"], LONGEST),
        sections=tuple(_to_sections(held, claims, shown)),
        text=shown.clip_text("\n\n".join(_to_paragraphs(held, claims)), LONGEST),
        citations=tuple(_list_citations(used, claims)),
        confidence=confidence,
    )


def _list_citations(names: Sequence[str], claims: Mapping[str, ClaimSupport]) -> dict[str, None]:
    return dict.fromkeys(source for name in names for source in claims.get(name, ClaimSupport()).sources)


def _to_paragraphs(held: Plain, claims: Mapping[str, ClaimSupport]) -> Iterator[str]:
    yield held["title"]
    for section in held["sections"]:
        lines = [
            (
                f"{sentence['text']} {''.join(f'[{source}]' for source in _list_citations(sentence['claims'], claims))}"
            ).rstrip()
            for sentence in section["sentences"]
        ]
        yield "\n".join([section["title"], *lines] if section["title"] else lines)


def _to_sections(held: Plain, claims: Mapping[str, ClaimSupport], shown: StateReader) -> Iterator[Section]:
    """As many sentences as there is room for; the others are counted."""
    room = LONGEST
    for section in held["sections"]:
        room -= len(section["title"])
        kept = []
        for sentence in section["sentences"]:
            room -= len(sentence["text"])
            if room >= 0:
                kept.append(_to_sentence(sentence, claims))
        if left := len(section["sentences"]) - len(kept):
            shown.left_out["sentences"] += left
        if kept:
            yield Section(title=section["title"], role=section.get("role", "body"), sentences=tuple(kept))


def _to_sentence(sentence: Plain, claims: Mapping[str, ClaimSupport]) -> Sentence:
    names, opens = sentence["claims"], sentence.get("opens", False)
    if not names:
        return Sentence(text=sentence["text"], kind="frame", opens=opens)
    marks = [mark for name in names if (mark := claims.get(name, ClaimSupport()).mark)]
    return Sentence(
        text=sentence["text"],
        kind="fact",
        claims=names,
        citations=tuple(_list_citations(names, claims))[:MAX_CITATIONS],
        mark=min(marks, key=SURENESS.index) if marks else Mark.SINGLE,
        opens=opens,
    )


SNIPPET, CHUNK = 300, 2_000  # characters


class ResultCandidate(NamedTuple):
    rank: int
    search: str
    result: SearchResult
    document: str | None  # that the source keeps itself
    start: int  # where the match stands in it
    fulltext: str


class EvidenceRange(NamedTuple):
    start: int
    end: int


class SourceLabel(NamedTuple):
    id: str
    title: str


async def _load_document(name: str, documents: DocumentStore) -> Document | str:
    """The document, or why it cannot be shown."""
    try:
        return await documents.get(name)
    except (NotFoundError, EvidenceError) as error:
        return error.message


def _snippet(document: Document, start: int) -> str:
    return " ".join(document.text[start : start + SNIPPET].split())


# Found ------------------------------------------------------------------------------------------------


async def view_results(shown: StateReader, documents: DocumentStore) -> tuple[SearchResult, ...]:
    fetched = shown.read_mapping("harvested", lambda page: parse_optional_text(page.get("document")))
    searched = shown.read_mapping("searched", lambda search: as_list(search["hits"]))
    hits = [(key, hit) for key, hits in searched.items() for hit in hits]
    best = shown.take_first(
        "search_results", _rank_results(shown.read_each("searched", hits, lambda pair: _parse_hit(*pair)))
    )
    return tuple([await _to_result(found, fetched, documents) for found in best])


def _parse_hit(search: str, hit: Plain) -> ResultCandidate:
    result = SearchResult(
        url=hit["url"], title=hit["title"], snippet=hit.get("snippet", ""), published=hit["published"],
        provider=hit["provider"], host=hit["host"],
    )  # fmt: skip
    document, fulltext = parse_optional_text(hit["document"]), parse_optional_text(hit["fulltext"])
    return ResultCandidate(
        parse_int(hit["rank"]), search, result, document, parse_int(hit["start"] or 0), fulltext or result.url
    )


def _rank_results(hits: Sequence[ResultCandidate]) -> list[ResultCandidate]:
    """Every address once, the first of each search before the second of any."""
    ordered = sorted(hits, key=lambda found: (found.rank, found.search))
    return list({canonicalize_url(found.result.url): found for found in reversed(ordered)}.values())[::-1]


async def _to_result(
    found: ResultCandidate, fetched: Mapping[str, str | None], documents: DocumentStore
) -> SearchResult:
    name = found.document or fetched.get(canonicalize_url(found.fulltext))
    if found.result.snippet or not name:
        return found.result
    document = await _load_document(name, documents)
    if isinstance(document, str):
        return found.result.model_copy(update={"problem": document})
    snippet = _snippet(document, found.start if found.document else 0)
    return found.result.model_copy(update={"snippet": snippet})


# Read -------------------------------------------------------------------------------------------------


async def view_evidence(shown: StateReader, documents: DocumentStore) -> tuple[EvidenceView, ...]:
    cards = dict(shown.read_items("sources", lambda source: (parse_text(source["document"]), _to_label(source))))
    places = _list_ranges(shown)
    names = shown.take_first("evidence", list(dict.fromkeys([*cards, *places])))
    return tuple([await _to_evidence(name, cards.get(name), places.get(name, []), documents, shown) for name in names])


def _to_label(source: Plain) -> SourceLabel:
    return SourceLabel(parse_text(source["id"]), parse_text(source["title"]))


def _list_ranges(shown: StateReader) -> dict[str, list[EvidenceRange]]:
    """Document -> where it was read: the passages chosen of it or, if there are none any more, what was found in it."""
    passages = [place for places in shown.read_mapping("selected", as_list).values() for place in places]
    chosen = _group_by_document(shown.read_each("selected", passages, _to_range))
    found = _group_by_document(shown.read_items("findings", lambda finding: _to_range(finding["span"])))
    return {name: sorted(places) for name, places in {**found, **chosen}.items()}


def _group_by_document(places: Iterable[tuple[str, EvidenceRange]]) -> dict[str, set[EvidenceRange]]:
    gathered: dict[str, set[EvidenceRange]] = {}
    for document, place in places:
        gathered.setdefault(document, set()).add(place)
    return gathered


def _to_range(span: Plain) -> tuple[str, EvidenceRange]:
    return parse_text(span["document"]), EvidenceRange(parse_int(span["start"]), parse_int(span["end"]))


async def _to_evidence(
    name: str, card: SourceLabel | None, places: Sequence[EvidenceRange], documents: DocumentStore, shown: StateReader
) -> EvidenceView:
    document = await _load_document(name, documents)
    id, title = card or (None, "")
    if isinstance(document, str):
        return EvidenceView(id=id, title=title, content_hash=name, problem=document)
    chunks = [
        Chunk(start=start, end=end, text=shown.clip_text(document.text[start:end], CHUNK))
        for start, end in shown.take_first("chunks", places)
    ]
    return EvidenceView(
        id=id, url=document.url, title=title or document.title, content_hash=name, chunks=tuple(chunks),
        snippet=_snippet(document, places[0].start if places else 0), host=document.host, kind=document.kind,
        published=document.published.isoformat() if document.published else None, author=document.author,
    )  # fmt: skip


# The view of a state.

MESSAGE, QUOTE = 4_000, 600  # characters


async def build_view(
    values: Mapping[str, Any],
    documents: DocumentStore,
    *,
    thread: str,
    next: Sequence[str] = (),
    checkpoint: str | None = None,
    mode: Mode | None = None,
) -> StateView:
    """`mode` is the thread's, where the question came without one."""
    shown = StateReader(values)
    written = view_draft(shown)
    return StateView(
        thread=thread,
        checkpoint=checkpoint,
        next=tuple(dict.fromkeys(next)),
        status=shown.read_field("status", Status, Status.PENDING),
        clarity_status=shown.read_field("clarity_status", Clarity, Clarity.PENDING),
        user_inputs=_to_inputs(shown, mode),
        plan=shown.read_field("plan", _to_plan, None),
        queries=shown.take_first("queries", _list_queries(shown)),
        search_results=await view_results(shown, documents),
        evidence=await view_evidence(shown, documents),
        analysis=_view_analysis(shown),
        claims=view_claims(shown, written),
        draft=written,
        issues=shown.take_first("issues", shown.read_items("issues", _format_issue)),
        subject=shown.read_field("subject", parse_text, None),
        messages=shown.take_last("messages", shown.read_items("messages", lambda message: _to_message(message, shown))),
        conversation_summary=shown.read_field("conversation_summary", parse_text, ""),
        notices=tuple(shown.read_mapping("notices", parse_text).values()),
        left_out=dict(shown.left_out),
    )


def _to_inputs(shown: StateReader, mode: Mode | None) -> UserInputs:
    return UserInputs(
        goal=shown.read_field("original_query", parse_text, ""),
        mode_override=shown.read_field("options", _to_mode, None) or mode,
        gate=shown.read_field("gate", _to_gate, None),
        planner_answers=shown.read_mapping("planner_answers", parse_text),
    )


def _to_mode(options: Plain) -> Mode | None:
    said = options.get("mode")
    return None if said is None else Mode(said)


def _to_gate(gate: Plain) -> GateView:
    return GateView(
        clarity=parse_float(gate["clarity"]),
        coherence=parse_float(gate["coherence"]),
        usd=parse_float(gate["estimated_usd"]),
        auto=gate["mode"] == Mode.AUTO,
        reason=gate["reason"],
    )


def _to_plan(plan: Plain) -> PlanView:
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


def _list_queries(shown: StateReader) -> list[str]:
    """Those planned, then those asked besides."""
    planned: list[str] = shown.read_field(
        "plan", lambda plan: [parse_text(query["text"]) for query in plan["queries"]], []
    )
    lines = list_queries(
        {"asked": shown.read_items("asked", parse_text), "searched": shown.read_mapping("searched", _to_search)}
    )
    return list(dict.fromkeys([*planned, *(line.partition(" ")[2] for line in lines)]))


def _to_search(result: Plain) -> Plain:
    return {
        "question": parse_text(result["question"]),
        "queries": [{"text": parse_text(query["text"])} for query in result["queries"]],
    }


def _view_analysis(shown: StateReader) -> AnalysisView | None:
    analysis = shown.read_field("analysis", AnalysisView.model_validate, None)
    if analysis is None:
        return None
    sides = [id for matter in analysis.disagreements for side in matter.sides for id in side]
    named = {*(key.finding for key in analysis.key_findings), *sides}
    findings = shown.read_items(
        "findings", lambda finding: (parse_text(finding["id"]), parse_text(finding["span"]["quote"]))
    )
    quotes = {id: shown.clip_text(quote, QUOTE) for id, quote in findings if id in named}
    return analysis.model_copy(update={"quotes": quotes})


def _format_issue(issue: Plain) -> str:
    severity, category, location, description = (
        parse_text(issue[key]) for key in ("severity", "category", "location", "description")
    )
    return f"{severity}, {category} ({location}): {description}"


def _to_message(message: Plain, shown: StateReader) -> ThreadMessage:
    turn = ThreadMessage(role=message["role"], content=message["content"])
    return turn.model_copy(update={"content": shown.clip_text(turn.content, MESSAGE)})
