"""Turning the state into the report that leaves the graph."""

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import NamedTuple

from openassay.context import ResearchContext
from openassay.models.evidence import ANSWERED, Claim, Disagreement, Document, Mark, QuoteSpan, Verdict
from openassay.models.plan import Plan, QueryType, SearchQuery, SubQuestion
from openassay.models.report import (
    Coverage,
    Critique,
    Dispute,
    DisputeSide,
    Issue,
    KeyFigure,
    Level,
    Metadata,
    OpenSubQuestion,
    Provenance,
    ReportClaim,
    ReportData,
    ReportSpan,
    ReportStatus,
    Section,
    Sentence,
    ShortAnswer,
    SourceCard,
)
from openassay.models.spend import Spend
from openassay.nodes.dispatch import available_types, list_queries
from openassay.nodes.harvest import failure_notices
from openassay.reasoning.base import Draft, DraftAnswer, DraftSentence
from openassay.state import Plain, State
from openassay.text.quantities import Quantity, find_quantities
from openassay.text.questions import (
    answer_kinds,
    distinctive_stems,
    find_question_names,
    find_year_range,
    has_answer_kind,
    has_name,
)
from openassay.text.relations import MainFigure, find_main_figure, find_years
from openassay.text.sentences import is_table_row, split_sentences
from openassay.text.words import content_words, jaccard, stems
from openassay.verification.quotes import find_quote
from openassay.verification.sources import assess_credibility, group_documents
from openassay.verification.terms import collect_words, mask_unverified_terms

# The short answers of a report: in words of a passage that bears the claim out, asserted only if undisputed.

MOST_ANSWER_WORDS = 12  # words
SEVERAL = 2  # independent sources


def select_answers(answers: Sequence[DraftAnswer], claims: Mapping[str, Claim]) -> tuple[DraftAnswer, ...]:
    """Those whose words stand in a span of every claim they name; all such claims are supported."""
    return tuple(answer for answer in answers if _is_verbatim_answer(answer, claims))


def _is_verbatim_answer(answer: DraftAnswer, claims: Mapping[str, Claim]) -> bool:
    bound = [claims.get(name) for name in answer.claims]
    return (
        bool(bound)
        and len(answer.text.split()) <= MOST_ANSWER_WORDS
        and all(
            claim is not None
            and claim.verdict is Verdict.SUPPORTED
            and any(find_quote(answer.text, span.quote) for span in claim.spans)
            for claim in bound
        )
    )


def build_answers(
    answers: Sequence[DraftAnswer],
    claims: Mapping[str, Claim],
    ids: Mapping[str, str],
    matters: Sequence[Disagreement] = (),
) -> tuple[ShortAnswer, ...]:
    """`ids` are the sources' by document; `matters` say how many independent sources stand on each side."""
    return tuple(_build_answer(answer, [claims[name] for name in answer.claims], ids, matters) for answer in answers)


def _build_answer(
    answer: DraftAnswer, bound: Sequence[Claim], ids: Mapping[str, str], matters: Sequence[Disagreement]
) -> ShortAnswer:
    return ShortAnswer(
        text=answer.text,
        about=answer.about,
        claims=answer.claims,
        citations=tuple(dict.fromkeys(ids[span.document] for claim in bound for span in claim.spans)),
        mark=bound[0].mark,
        disputed=_is_disputed(bound, matters),
    )


def _is_disputed(bound: Sequence[Claim], matters: Sequence[Disagreement]) -> bool:
    """One that several independent sources give is asserted against fewer; all others that somebody contradicts are
    only shown. A contradiction nobody has weighed counts as one."""
    names = {claim.id for claim in bound}
    weighed: set[str] = set()
    for matter in matters:
        for side, own in enumerate(matter.sides):
            if not matter.resolved and names & set(own):
                if not _prevails(matter, side):
                    return True
                weighed |= {name for other in matter.sides if other is not own for name in other}
    return any(claim.superseded_by or set(claim.disputed_by) - weighed for claim in bound)


def _prevails(matter: Disagreement, side: int) -> bool:
    if len(matter.backing) != len(matter.sides):
        return False
    others = [count for at, count in enumerate(matter.backing) if at != side]
    return matter.backing[side] >= SEVERAL and matter.backing[side] > max(others)


# What a person said, now or once, that shaped a report: it is told in the report, so that nobody has to guess.

CONSIDERATION_PREFIX = "Taken into account:"  # such a notice is of the person's own saying


def list_considerations(state: State, plan: Plan | None, deps: ResearchContext) -> list[str]:
    """One notice, or none."""
    said = [*_plan_considerations(plan), *_memory_considerations(plan, deps), *_edit_considerations(state)]
    return [f"{CONSIDERATION_PREFIX} {'; '.join(dict.fromkeys(said))}."] if said else []


def _plan_considerations(plan: Plan | None) -> list[str]:
    """Answers to planning questions, what was clarified, and the changes a person made."""
    if plan is None:
        return []
    edits = [line.rstrip(".") for line in plan.reasoning if plan.edited and line.startswith("You ")]
    return [*(line.rstrip(".") for line in plan.constraints), *edits]


def _memory_considerations(plan: Plan | None, deps: ResearchContext) -> list[str]:
    """Preferences that decided where nothing else did; the others stand in the plan."""
    if plan is None:
        return []
    known, options = deps.options.preferences, deps.options
    style = f"remembered: {known.style} style" if known.style and not (options.style or plan.style) else ""
    words = f"remembered: {known.words} words" if known.words and not (options.words or plan.words) else ""
    avoid = f"remembered: avoid {', '.join(known.avoid)}" if known.avoid else ""
    prefer = f"remembered: prefer {', '.join(known.prefer)}" if known.prefer else ""
    return [line for line in (style, words, avoid, prefer) if line]


def _edit_considerations(state: State) -> list[str]:
    edits = state.get("edits") or {}
    dropped = [f"you left out the section “{title}”" for title in edits.get("drop", ())]
    vetoed = [f"you vetoed “{source['title'] or source['url']}”" for source in state.get("vetoed") or ()]
    return [*dropped, *(["you gave it another title"] if edits.get("title") else []), *vetoed]


# Which sub-questions a report has no answer to: one list for the writer, the reviewer and the reader.

SURE_CLAIM = 0.6  # confidence of a claim that one source alone may answer with
TO_THE_POINT = 0.5  # relevance of one


def list_open_questions(state: State) -> tuple[str, ...]:
    """Those no supported claim speaks to, and those that were found wanting and have no claim that answers: what was
    verified since may have settled what the analysis missed."""
    plan = Plan.model_validate(state["plan"])
    claims = [Claim.model_validate(item) for item in state["claims"] if item["verdict"] == Verdict.SUPPORTED]
    wanting = set((state["analysis"] or {}).get("unanswered", ()))
    return tuple(question.text for question in plan.questions if not _has_answer(question, claims, wanting, state))


def _has_answer(question: SubQuestion, claims: Sequence[Claim], wanting: set[str], state: State) -> bool:
    own = [claim for claim in claims if question.id in claim.questions]
    weak = question.text in wanting or state["coverage"].get(question.id, 1.0) < ANSWERED
    return any(_is_answer(question, claim) for claim in own) if weak else bool(own)


def _is_answer(question: SubQuestion, claim: Claim) -> bool:
    """Well borne out, to the point, and with the kind of answer, the names and the years that are asked for."""
    sure = claim.mark is Mark.CORROBORATED or claim.confidence >= SURE_CLAIM
    said = {stem for text in (claim.text, *(span.quote for span in claim.spans)) for stem in stems(text)}
    asked, told = find_year_range(question.in_context), find_years(claim.text)
    return (
        sure
        and claim.relevance >= TO_THE_POINT
        and all(has_answer_kind(kind, claim.text) for kind in answer_kinds(question.text))
        and all(has_name(distinctive_stems(name), said) for name in find_question_names(question.text))
        and (asked is None or asked.overlaps(told))
    )


# What a report says of disagreements and of what was looked for in vain, as data.


def build_disputes(state: State, claims: Mapping[str, Claim], cards: Sequence[SourceCard]) -> tuple[Dispute, ...]:
    by_document = {card.document: card for card in cards}
    matters = [Disagreement.model_validate(item) for item in state["disagreements"]]
    return tuple(
        Dispute(
            about=matter.about,
            resolved=matter.resolved,
            resolution=matter.resolution,
            sides=tuple(_build_side([claims[id] for id in side if id in claims], by_document) for side in matter.sides),
        )
        for matter in matters
    )


def _build_side(claims: Sequence[Claim], cards: Mapping[str, SourceCard]) -> DisputeSide:
    behind = [cards[span.document] for claim in claims for span in claim.spans if span.document in cards]
    return DisputeSide(
        claims=tuple(claim.id for claim in claims),
        sources=tuple(dict.fromkeys(card.id for card in behind)),
        groups=tuple(dict.fromkeys(card.group for card in behind)),
    )


def list_gaps(state: State) -> tuple[OpenSubQuestion, ...]:
    if not state["plan"]:
        return ()
    plan = Plan.model_validate(state["plan"])
    open_questions = set(list_open_questions(state))
    lines = [line.partition(" ") for line in list_queries(state)]
    return tuple(
        OpenSubQuestion(
            question=question.text,
            queries=tuple(text for id, _, text in lines if id == question.id),
            documents=len(_documents_for(state, question.id)),
            reason="nothing read speaks to it"
            if question.id not in _questions_with_findings(state)
            else "what was read is too weak",
        )
        for question in plan.questions
        if question.text in open_questions
    )


def _documents_for(state: State, question: str) -> set[str]:
    return {
        document
        for key, places in state["perused"].items()
        if key.partition(":")[2] == question
        for document, _ in places
    }


def _questions_with_findings(state: State) -> set[str]:
    return {finding["question"] for finding in state["findings"]}


# The table of key figures: one row a fact, every value spelled as in the passage it comes from.

MOST, FEWEST = 12, 2
MOST_FIGURE_CITATIONS = 4
MOST_WORDS = 4  # of a value in a table
MOST_LABEL_WORDS = 12  # words that say what a figure is of
ONE_FACT = 0.5  # rows with one value whose words are more alike than this
SURER = 0.1  # of relevance

_CLAUSE = re.compile(r"[;:]\s|,?\s(?:while|whereas|but|although)\s|\.\s")
_OPENING = re.compile(
    r"^(?:(?:in|during|by|since|as of|for)\s(?:(?:the\s)?(?:fiscal\s)?(?:year\s)?(?:early\s|late\s|mid-)?"
    r"(?:[A-Z][a-z]+\s(?:\d{1,2},?\s)?)?\d{4}),?\s|(?:and|but|also|however|today|overall),?\s)",
    re.I,
)
_TRAILING = re.compile(
    r"[\s,(]+(?:of|at|to|by|was|is|were|are|be|been|about|around|approximately|nearly|almost|over|under|more|less|than|some|"
    r"roughly|an?|the|with|for|from|in|on|as|up|just|only|estimated|and|or|between|that|which|its|their|equal|equals)$",
    re.I,
)
_AFTER = re.compile(r"^\s*(?:of|in|on|for)?\s*((?:[^\s,;.]+\s?){1,10})")
_COMPOUND = re.compile(r"(?:[-/][^\W\d_][\w-]*)+")  # the rest of "megawatt-hour"
_COUNTED = re.compile(r"\s(?:standard\s)?(?![A-Z])[^\W\d_][\w'’-]*")  # "people", and not the "Type" of "42 Type Ia"


class FigureRow(NamedTuple):
    claim: Claim
    what: str
    value: str
    when: str


def build_key_figures(draft: Draft, claims: Mapping[str, Claim], ids: Mapping[str, str]) -> tuple[KeyFigure, ...]:
    """From what the draft tells, in its order; `ids` are the sources' by document. One figure alone makes no table."""
    told = dict.fromkeys(id for section in draft.sections for sentence in section.sentences for id in sentence.claims)
    bound = [claims[id] for id in told if id in claims]
    rows = list(
        _iter_rows([claim for claim in bound if claim.verdict is Verdict.SUPPORTED and not claim.superseded_by])
    )
    best = sorted(rows, key=lambda row: (-_claim_worth(row.claim), row.claim.id))
    chosen = _distinct_rows(best)[:MOST]
    if len(chosen) < FEWEST:
        return ()
    return tuple(_build_figure(row, ids) for row in rows if row in chosen)


def _claim_worth(claim: Claim) -> float:
    return claim.relevance + SURER * (claim.mark is Mark.CORROBORATED)


def _distinct_rows(rows: Sequence[FigureRow]) -> list[FigureRow]:
    kept: list[FigureRow] = []
    for row in rows:
        if not any(row.value == other.value and jaccard(row.what, other.what) >= ONE_FACT for other in kept):
            kept.append(row)
    return kept


def _iter_rows(claims: Sequence[Claim]) -> Iterator[FigureRow]:
    for claim in claims:
        row = _row_from_table(claim) if is_table_row(claim.text) else _row_from_sentence(claim)
        if row and row.what and any(letter.isdigit() for letter in row.value) and _is_in_quotes(row.value, claim):
            yield row


def _row_from_sentence(claim: Claim) -> FigureRow | None:
    found = find_main_figure(claim.text)
    return (
        FigureRow(claim, _figure_label(claim.text, found), _value_text(claim.text, found), _nearest_date(claim, found))
        if found
        else None
    )


def _row_from_table(claim: Claim) -> FigureRow | None:
    """The first figure of a row of a table, under its heading."""
    head, dash, cells = claim.text.partition(" — ")
    label, colon, rest = (cells if dash else claim.text).partition(": ")
    value = rest.partition(";")[0].rstrip(".").strip()
    if not colon or len(head.split()) > MOST_LABEL_WORDS or len(value.split()) > MOST_WORDS:
        return None
    dated = any(quantity.kind in ("year", "date") for quantity in find_quantities(label))
    if dash:
        return FigureRow(claim, head.strip(), value, label if dated and _is_in_quotes(label, claim) else "")
    return FigureRow(claim, label.strip(), value, "")


def _value_text(text: str, found: MainFigure) -> str:
    """With the whole of its unit, or with what it counts where it has none."""
    more = (_COUNTED if found.counts else _COMPOUND).match(text, found.end)
    return text[found.start : more.end() if more else found.end].strip()


def _is_in_quotes(value: str, claim: Claim) -> bool:
    return any(value in " ".join(span.quote.split()) for span in claim.spans)


def _figure_label(text: str, found: MainFigure) -> str:
    """The words that lead up to a figure, else those that follow it."""
    before = _CLAUSE.split(text[: found.start])[-1].strip()
    before = _trim_label(_OPENING.sub("", before))
    if len(content_words(before)) >= 2:
        words = before.split()
        return before if len(words) <= MOST_LABEL_WORDS else f"… {' '.join(words[-MOST_LABEL_WORDS:])}"
    after = _AFTER.match(text[found.end :])
    return _trim_label(f"{before} {after[1]}".strip()) if after else ""


def _trim_label(text: str) -> str:
    while (shorter := _TRAILING.sub("", text)) != text:
        text = shorter
    return text.strip(" ,(")


def _nearest_date(claim: Claim, found: MainFigure) -> str:
    """The date nearest to the figure in its own sentence, as it is spelled."""
    own = next((p for p in split_sentences(claim.text) if p.start <= found.start < p.end), None)
    start, end = (own.start, own.end) if own else (0, len(claim.text))
    dated = [q for q in find_quantities(claim.text) if q.kind in ("year", "date", "decade")]
    dates = [q for q in dated if start <= q.start < end]

    def apart(date: Quantity) -> int:
        return min(abs(date.start - found.end), abs(found.start - date.end))

    nearest = min(dates, key=apart, default=None)
    spelled = claim.text[nearest.start : nearest.end].strip() if nearest else ""
    return spelled if spelled and _is_in_quotes(spelled, claim) else ""


def _build_figure(row: FigureRow, ids: Mapping[str, str]) -> KeyFigure:
    claim = row.claim
    spelled = [span for span in claim.spans if row.value in " ".join(span.quote.split())]
    return KeyFigure(
        what=row.what,
        value=row.value,
        when=row.when,
        claims=(claim.id,),
        citations=tuple(dict.fromkeys(ids[span.document] for span in spelled if span.document in ids))[
            :MOST_FIGURE_CITATIONS
        ],
        mark=claim.mark,
        disputed=bool(claim.disputed_by),
    )


# The words of a report that no passage stands behind: refused statements, a reviewer's remarks, opinions on sources.
#
# They are told, since a reader may want them, but a page that got a model to repeat something must not get it further.

TextMask = Callable[[str], str]


def mask_unverified_text(report: ReportData) -> ReportData:
    known = collect_words(
        report.question, report.title, report.plan.model_dump_json() if report.plan else "", *_public_texts(report)
    )

    def tame(text: str) -> str:
        return mask_unverified_terms(text, known)

    return report.model_copy(
        update={
            "claims": tuple(_mask_claim(claim, tame) for claim in report.claims),
            "sources": tuple(_mask_card(card, tame) for card in report.sources),
            "disputes": tuple(one.model_copy(update={"about": tame(one.about)}) for one in report.disputes),
            "review": _mask_review(report.review, tame),
            "issues": tuple(_mask_issue(issue, tame) for issue in report.issues),
        }
    )


def _public_texts(report: ReportData) -> list[str]:
    sentences = [sentence.text for section in report.sections for sentence in section.sentences]
    quotes = [span.quote for claim in report.claims for span in claim.spans if claim.verdict is Verdict.SUPPORTED]
    return [*sentences, *quotes, *(f"{card.title} {card.host} {card.kind}" for card in report.sources)]


def _mask_claim(claim: ReportClaim, tame: TextMask) -> ReportClaim:
    if claim.verdict is Verdict.SUPPORTED:
        return claim
    return claim.model_copy(update={"text": tame(claim.text), "reasons": tuple(map(tame, claim.reasons))})


def _mask_card(card: SourceCard, tame: TextMask) -> SourceCard:
    """Only an opinion is a model's; the other reasons are ours, and may name a publication."""
    reasons = tuple(tame(text) if text.startswith("judged lower") else text for text in card.credibility_reasons)
    return card.model_copy(update={"credibility_reasons": reasons})


def _mask_review(review: Critique | None, tame: TextMask) -> Critique | None:
    if review is None:
        return None
    return review.model_copy(update={"issues": tuple(_mask_issue(issue, tame) for issue in review.issues)})


def _mask_issue(issue: Issue, tame: TextMask) -> Issue:
    return issue.model_copy(
        update={"location": tame(issue.location), "description": tame(issue.description), "fix": tame(issue.fix)}
    )


SURENESS = [Mark.SINGLE, Mark.VERIFIED, Mark.CORROBORATED]
MOST_CITATIONS = 4  # citations behind one sentence; the claim keeps all its spans


async def compose_report(
    state: State, deps: ResearchContext, sections: Sequence[Section], status: ReportStatus
) -> ReportData:
    """`sections` are already checked; everything else is gathered from the state."""
    claims = [Claim.model_validate(item) for item in state["claims"]]
    types = available_types(deps.sources)
    plan = _add_query_status(Plan.model_validate(state["plan"]), state, types) if state["plan"] else None
    cards = await _build_cards(state, claims, deps)
    ids = {card.document: card.id for card in cards}
    score = float((state["critique"] or {}).get("score", 0.0))
    coverage = compute_coverage(claims, state["statements"])
    by_id = {claim.id: claim for claim in claims}
    matters = [Disagreement.model_validate(item) for item in state["disagreements"]]
    draft = Draft.model_validate(state["draft"]) if state["draft"] else None
    spend, steps = await deps.account.get_spend(), await deps.tally()
    notices = (
        *state["notices"].values(),
        *list_considerations(state, plan, deps),
        *failure_notices(state),
        *_fallback_notice(steps),
        *_spend_notice(spend),
    )
    report = ReportData(
        question=(state["understanding"] or {}).get("question") or state["original_query"],
        title=report_title(state),
        status=status,
        confidence=confidence_level(score, status),
        confidence_score=round(state["confidence"] / 10, 2),
        plan=plan,
        answers=build_answers(draft.answers, by_id, ids, matters) if draft else (),
        sections=tuple(sections),
        figures=build_key_figures(draft, by_id, ids) if draft else (),
        disputes=build_disputes(state, by_id, cards),
        not_found=list_gaps(state),
        claims=tuple(_build_claim(claim, ids) for claim in claims),
        sources=tuple(cards),
        coverage=coverage,
        hallucination_score=round(1 - coverage.checked / coverage.total, 4) if coverage.total else 0.0,
        review=Critique.model_validate(state["critique"]) if state["critique"] else None,
        issues=tuple(Issue.model_validate(issue) for issue in state["issues"]),
        notices=notices if status is not ReportStatus.CANCELLED else (),
        spend=spend,
        metadata=_build_metadata(state, deps, sections, cards, score).model_copy(update={"reasoning": steps}),
        provenance=_build_provenance(state, deps, plan, await deps.checkpoints()),
    )
    return mask_unverified_text(report)


def _fallback_notice(steps: Mapping[str, int]) -> list[str]:
    """Said where the embedded reasoner stood in for a model."""
    stood_in, total = steps.get("embedded", 0), sum(steps.values())
    if not stood_in:
        return []
    return [
        f"{stood_in} of {total} reasoning steps were done by the embedded reasoner because the model failed, refused "
        "or the budget was spent; the run log says which and why."
    ]


def _spend_notice(spend: Spend) -> list[str]:
    if not spend.unconfirmed_usd:
        return []
    return [f"${spend.unconfirmed_usd:.4f} of the spend could not be confirmed and is booked at its worst case."]


def _add_query_status(plan: Plan, state: State, types: Collection[QueryType]) -> Plan:
    """The plan with what became of its queries: of a search that was lost as a whole, none was answered, and of a
    type without a source none was asked, though its words may have been asked elsewhere."""
    lost = [key.partition(":")[2] for key in state["failures"] if key.startswith("search ")]
    became: dict[tuple[str, str | None], str] = {(question, None): "failed" for question in lost}
    for result in state["searched"].values():
        became |= {(result["question"], query["text"]): query["status"] for query in result["queries"]}

    def status(query: SearchQuery) -> str:
        if query.type not in types:
            return "pending"
        return became.get((query.question, query.text), became.get((query.question, None), "pending"))

    queries = tuple(query.model_copy(update={"status": status(query)}) for query in plan.queries)
    return plan.model_copy(update={"queries": queries, "warnings": (*plan.warnings, *_type_warnings(plan, types))})


def _type_warnings(plan: Plan, types: Collection[QueryType]) -> list[str]:
    missing = dict.fromkeys(query.type for query in plan.queries if query.type not in types)
    return [f"No {' or '.join(missing)} source is configured: these queries were not asked."] if missing else []


def compute_coverage(claims: Sequence[Claim], retold: dict[str, int]) -> Coverage:
    """Every statement drafted counts: each claim, and each sentence that says it in other words."""
    supported = sum(claim.verdict is Verdict.SUPPORTED for claim in claims)
    drafted, failed = retold.get("retold", 0), retold.get("failed", 0)
    return Coverage(checked=supported + drafted - failed, total=len(claims) + drafted)


def report_title(state: State) -> str:
    question = (state["understanding"] or {}).get("question") or state["original_query"]
    named = state["edits"].get("title") or (state["draft"] or {}).get("title")  # a person's own words come first
    return str(named or question).strip() or "No question"


def confidence_level(score: float, status: ReportStatus) -> Level:
    if status is not ReportStatus.COMPLETE:
        return "low"
    return "high" if score >= 8.0 else "medium"


def build_sections(draft: Draft, claims: Iterable[Claim], sources: Sequence[dict[str, str]]) -> tuple[Section, ...]:
    """The draft with citations and marks on every statement of fact."""
    by_id = {claim.id: claim for claim in claims}
    ids = {source["document"]: source["id"] for source in sources}
    return tuple(
        Section(title=section.title, role=section.role,
                sentences=tuple(_build_sentence(s, [by_id[name] for name in s.claims], ids) for s in section.sentences))
        for section in draft.sections
    )  # fmt: skip


def _build_sentence(drafted: DraftSentence, bound: Sequence[Claim], ids: dict[str, str]) -> Sentence:
    if not bound:
        return Sentence(text=drafted.text, kind="frame", opens=drafted.opens)
    cited = dict.fromkeys(ids[span.document] for claim in bound for span in claim.spans)
    marks = [claim.mark for claim in bound if claim.mark]
    return Sentence(
        text=drafted.text,
        kind="fact",
        opens=drafted.opens,
        claims=tuple(claim.id for claim in bound),
        citations=tuple(list(cited)[:MOST_CITATIONS]),
        mark=min(marks, key=SURENESS.index) if marks else Mark.SINGLE,
    )


def _build_claim(claim: Claim, ids: dict[str, str]) -> ReportClaim:
    return ReportClaim(
        id=claim.id, text=claim.text, verdict=claim.verdict, confidence=claim.confidence, mark=claim.mark,
        spans=_build_spans(claim.spans, ids), against=_build_spans(claim.against, ids), reasons=claim.reasons,
        questions=claim.questions, disputed_by=claim.disputed_by, superseded_by=claim.superseded_by,
    )  # fmt: skip


def _build_spans(spans: Iterable[QuoteSpan], ids: dict[str, str]) -> tuple[ReportSpan, ...]:
    return tuple(
        ReportSpan(source=ids[s.document], document=s.document, start=s.start, end=s.end, quote=s.quote) for s in spans
    )


async def _build_cards(state: State, claims: Sequence[Claim], deps: ResearchContext) -> list[SourceCard]:
    """Sources that a claim rests on, under the numbers they were given when they were found."""
    used = {span.document for claim in claims for span in (*claim.spans, *claim.against)}
    chosen = [source for source in state["sources"] if source["document"] in used]
    documents = {source["document"]: await deps.documents.get(source["document"]) for source in state["sources"]}
    together = await asyncio.to_thread(group_documents, documents.values())  # of all, as the marks were given
    cards = [
        _build_card(source["id"], documents[source["document"]], together, claims, state["credibility"])
        for source in chosen
    ]
    return [
        card.model_copy(update={"same_as": tuple(o.id for o in cards if o.group == card.group and o.id != card.id)})
        for card in cards
    ]


def _build_card(
    id: str, document: Document, together: dict[str, str], claims: Sequence[Claim], opinions: Mapping[str, Plain]
) -> SourceCard:
    credibility = assess_credibility(document)
    if opinion := opinions.get(document.hash):
        credibility = credibility.with_lower_score(opinion["score"], opinion["reason"])
    behind = [claim.id for claim in claims if any(span.document == document.hash for span in claim.spans)]
    return SourceCard(
        id=id, title=document.title, url=document.url, document=document.hash, group=together[document.hash],
        why_used=f"supports {len(behind)} statement{'s' * (len(behind) != 1)}: {', '.join(behind[:8])}",
        host=document.host, kind=document.kind, author=document.author,
        published=document.published.isoformat() if document.published else None,
        primary=credibility.primary, credibility=credibility.score, credibility_reasons=credibility.reasons,
    )  # fmt: skip


def _build_metadata(
    state: State, deps: ResearchContext, sections: Sequence[Section], cards: Sequence[SourceCard], score: float
) -> Metadata:
    finished = deps.now()
    return Metadata(
        iterations=state["iteration"], rounds=state["round"], score=score, sources=len(cards),
        words=sum(len(sentence.text.split()) for section in sections for sentence in section.sentences),
        started=deps.started.isoformat(timespec="seconds"), finished=finished.isoformat(timespec="seconds"),
        seconds=round((finished - deps.started).total_seconds(), 2),
        settings=deps.settings.fingerprint(), version=version("openassay"),
    )  # fmt: skip


def _build_provenance(
    state: State, deps: ResearchContext, plan: Plan | None, checkpoints: tuple[str, ...]
) -> Provenance:
    return Provenance(
        question=state["original_query"],
        sub_questions=tuple(question.text for question in plan.questions) if plan else (),
        queries=tuple(dict.fromkeys(line.partition(" ")[2] for line in list_queries(state))),
        checkpoints=checkpoints,
        thread=deps.thread,
        run=deps.run,
    )
