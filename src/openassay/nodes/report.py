"""Turn the state into the report that leaves the graph."""

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import NamedTuple

from openassay.context import ResearchContext
from openassay.models.evidence import ANSWERED, Claim, Disagreement, Document, Mark, Verdict
from openassay.models.plan import Plan, QueryType, SubQuestion
from openassay.models.report import (
    CONSIDERATION_PREFIX,
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
    ReportContext,
    ReportData,
    ReportSpan,
    ReportStatus,
    Section,
    Sentence,
    ShortAnswer,
    SourceCard,
    split_paragraphs,
)
from openassay.models.spend import Spend
from openassay.nodes.binding import choose_documents
from openassay.nodes.confidence import (
    MEDIUM,
    describe_lead,
    find_lead,
    find_level,
    find_level_by_rule,
    rate_lead,
)
from openassay.nodes.dispatch import available_types, list_queries
from openassay.nodes.harvest import failure_notices, load_read_documents
from openassay.nodes.verify import UNDATED, judge_statements
from openassay.reasoning.base import EMBEDDED, Draft, DraftAnswer, DraftSentence
from openassay.state import (
    NumberedSource,
    Plain,
    State,
    load_analysis,
    load_claims,
    load_critique,
    load_disagreements,
    load_draft,
    load_edits,
    load_issues,
    load_plan,
    load_plan_if_any,
    load_question,
    load_searches,
    load_sources,
    load_supported_claims,
    load_vetoes,
)
from openassay.text import questions
from openassay.text.quantities import find_quantities
from openassay.text.relations import find_main_figure, find_years
from openassay.text.sentences import is_table_row, split_sentences
from openassay.text.words import content_words, jaccard, stems
from openassay.verification.quotes import find_quote
from openassay.verification.sources import Credibility, group_documents, rate_sources
from openassay.verification.synthesis import check_numbers
from openassay.verification.terms import collect_words, mask_unverified_terms

MANY_CLAIMS = 6  # on a sub-question: so many say something of it, whatever they lack
SURENESS = [Mark.SINGLE, Mark.VERIFIED, Mark.CORROBORATED]
MAX_CITATIONS = 4  # behind one sentence or figure; the claim keeps all its spans
_PARTICULAR = re.compile(r"[\"“]|\d")  # a quotation or figure shows its own sources, whatever stands around it
MAX_DRAWN_CITATIONS = 5  # behind one that draws claims together: readers take a dozen for a fault


async def compose_report(
    state: State, context: ResearchContext, sections: Sequence[Section], status: ReportStatus
) -> ReportData:
    """Compose the report of `sections`, which are already checked; everything else comes from the state."""
    claims, disagreements = load_claims(state), load_disagreements(state)
    by_id = {claim.id: claim for claim in claims}
    plan, draft, critique, edits = load_plan_if_any(state), load_draft(state), load_critique(state), load_edits(state)
    if plan:
        plan = _add_query_status(plan, state, available_types(context.sources))
    cards = await _build_cards(state, claims, context)
    ids = {card.document: card.id for card in cards}
    score = critique.score if critique else 0.0
    answers = build_answers(draft.answers, by_id, ids, disagreements) if draft else ()
    # Every statement drafted counts: each claim, and each sentence that says it in other words.
    supported, statements = sum(claim.verdict is Verdict.SUPPORTED for claim in claims), state["statements"]
    retold, failed = statements.get("retold", 0), statements.get("failed", 0)
    coverage = Coverage(checked=supported + retold - failed, total=len(claims) + retold)
    spend, steps = await context.account.get_spend(), await context.tally()
    cancelled = status is ReportStatus.CANCELLED
    confidence, confidence_score = await _rate_report(state, context, sections, answers, cards, status)
    finished = context.now()
    title = edits.get("title") or (draft.title if draft else "") or load_question(state)  # a person's own words first
    report = ReportData(
        question=load_question(state),
        title=title.strip() or "No question",
        status=status,
        confidence=confidence,
        confidence_score=confidence_score,
        plan=plan,
        answers=order_answers(answers, by_id, cards),
        sections=tuple(sections),
        figures=build_key_figures(draft, by_id, ids) if draft and not draft.composed else (),
        disputes=build_disputes(disagreements, by_id, cards),
        not_found=list_gaps(state),
        claims=tuple(_build_claim(claim, ids) for claim in claims),
        sources=tuple(cards),
        coverage=coverage,
        hallucination_score=round(1 - coverage.checked / coverage.total, 4) if coverage.total else 0.0,
        review=critique,
        issues=tuple(load_issues(state)),
        notices=() if cancelled else tuple(_list_notices(state, plan, spend, steps, context)),
        spend=spend,
        metadata=Metadata(
            iterations=state["iteration"],
            rounds=state["round"],
            score=score,
            sources=len(cards),
            words=sum(len(sentence.text.split()) for section in sections for sentence in section.sentences),
            started=context.started.isoformat(timespec="seconds"),
            finished=finished.isoformat(timespec="seconds"),
            seconds=round((finished - context.started).total_seconds(), 2),
            settings=context.settings.fingerprint(),
            version=version("openassay"),
            reasoning=steps,
        ),
        provenance=Provenance(
            question=state["original_query"],
            sub_questions=tuple(question.text for question in plan.questions) if plan else (),
            queries=tuple(dict.fromkeys(line.partition(" ")[2] for line in list_queries(state))),
            checkpoints=await context.checkpoints(),
            thread=context.thread,
            run=context.run,
        ),
    )
    return mask_unverified_text(report)


GOOD_SCORE = 8.0  # of the review of a report of high confidence, where that is not calibrated


def _has_grave_fault(critique: Critique | None) -> bool:
    """Whether a report cannot be of high confidence: it was not reviewed, or does not meet the standards."""
    return critique is None or any(
        issue.severity == "critical" or (issue.severity == "major" and issue.category in ("citation", "methodology"))
        for issue in critique.issues
    )


async def _rate_report(
    state: State,
    context: ResearchContext,
    sections: Sequence[Section],
    answers: Sequence[ShortAnswer],
    cards: Sequence[SourceCard],
    status: ReportStatus,
) -> tuple[Level, float]:
    """How sure the report is, as a level and as a number. Of one that says it has no answer, it is not sure at all."""
    plan, draft, critique = load_plan_if_any(state), load_draft(state), load_critique(state)
    claims = {claim.id: claim for claim in load_claims(state)}
    drafted = zip(draft.answers if draft else (), answers, strict=False)
    asserted = [answer for answer, shown in drafted if not shown.disputed]
    lead = find_lead(sections, asserted, claims)
    if plan is None or lead is None or (not asserted and len(list_open_questions(state)) == len(plan.questions)):
        return "low", 0.0
    # Of a report on a topic, or on several things, no one statement can be right; an answer to one question is what
    # was calibrated.
    is_overview = (state["understanding"] or {}).get("query_class") == "overview"
    if context.reasoner.name != EMBEDDED or (not asserted and (is_overview or len(plan.questions) > 1)):
        first_hand = {card.document for card in cards if card.primary}
        level = find_level_by_rule(plan, list(claims.values()), load_disagreements(state), first_hand)
        if level == "high" and (context.reasoner.name == EMBEDDED or not critique or critique.score < GOOD_SCORE):
            level = "medium"
        chance = round(state["confidence"] / 10, 2)
    else:
        question, sources = load_question(state), {card.document: card for card in cards}
        borne_out = 0.0  # as nothing more is judged for a report that was not finished
        if status is ReportStatus.COMPLETE:
            judged = await judge_statements([(lead.as_answer_to(question), lead.list_passages(sources))], context)
            borne_out = judged.judgements[0].score
        signs = describe_lead(question, lead, sources, borne_out)
        chance = rate_lead(signs)
        level = find_level(chance, lead)
    if status is not ReportStatus.COMPLETE:
        return "low", min(chance, MEDIUM)
    return "medium" if level == "high" and _has_grave_fault(critique) else level, chance


def _build_claim(claim: Claim, ids: Mapping[str, str]) -> ReportClaim:
    spans, against = (
        tuple(ReportSpan(source=ids[span.document], **span.model_dump()) for span in found)
        for found in (claim.spans, claim.against)
    )
    context = tuple(
        ReportContext(source=ids[item.document], field=item.field, value=item.value) for item in claim.context
    )
    fields = claim.model_dump(exclude={"spans", "context", "against", "relevance"})
    return ReportClaim(spans=spans, context=context, against=against, **fields)


def _list_notices(
    state: State, plan: Plan | None, spend: Spend, steps: Mapping[str, int], context: ResearchContext
) -> Iterator[str]:
    yield from (*state["notices"].values(), *list_considerations(state, plan, context), *failure_notices(state))
    if embedded := steps.get("embedded", 0):
        yield (
            f"{embedded} of {sum(steps.values())} reasoning steps were done by the embedded reasoner because the model "
            "failed, refused or the budget was spent; the run log says which and why."
        )
    if spend.unconfirmed_usd:
        yield f"${spend.unconfirmed_usd:.4f} of the spend could not be confirmed and is booked at its worst case."


def _add_query_status(plan: Plan, state: State, types: Collection[QueryType]) -> Plan:
    """Add to the plan what became of its queries: of a search that was lost as a whole, none was answered, and of a
    type without a source none was asked, though its words may have been asked elsewhere."""
    lost = {key.partition(":")[2] for key in state["failures"] if key.startswith("search ")}
    outcomes = {
        (result["question"], query["text"]): query["status"]
        for result in load_searches(state).values()
        for query in result["queries"]
    }
    queries = []
    for query in plan.queries:
        status = outcomes.get((query.question, query.text), "failed" if query.question in lost else "pending")
        queries.append(query.model_copy(update={"status": status if query.type in types else "pending"}))
    warnings = plan.warnings
    if missing := dict.fromkeys(query.type for query in plan.queries if query.type not in types):
        warnings = (*warnings, f"No {' or '.join(missing)} source is configured: these queries were not asked.")
    return plan.model_copy(update={"queries": tuple(queries), "warnings": warnings})


def build_sections(draft: Draft, claims: Iterable[Claim], sources: Sequence[NumberedSource]) -> tuple[Section, ...]:
    """Add citations and marks to every statement of fact in a draft."""
    by_id = {claim.id: claim for claim in claims}
    ids = {source["document"]: source["id"] for source in sources}

    def build_sentence(drafted: DraftSentence) -> Sentence:
        bound = [by_id[name] for name in drafted.claims]
        marks = [claim.mark for claim in bound if claim.mark] or [Mark.SINGLE]
        mark = min(marks, key=SURENESS.index)
        documents = list(dict.fromkeys(span.document for claim in bound for span in claim.spans))[:MAX_CITATIONS]
        if drafted.kind == "synthesis" and mark is not Mark.CORROBORATED:  # of what two sources say both are shown
            documents = choose_documents(drafted.text, bound, MAX_DRAWN_CITATIONS)
        return Sentence(
            text=drafted.text,
            kind=drafted.kind if bound else "frame",
            derived=drafted.derived if bound else (),
            opens=drafted.opens,
            item=drafted.item,
            lead=drafted.lead if drafted.text.startswith(drafted.lead) else "",
            cell=drafted.cell,
            claims=drafted.claims,
            citations=tuple(dict.fromkeys(ids[name] for name in documents)),
            cited_beside=bool(bound) and drafted.cited_beside and not _PARTICULAR.search(drafted.text),
            mark=mark if bound else None,
        )

    return tuple(
        Section(
            title=section.title,
            role=section.role,
            sentences=tuple(leave_out_citations(list(map(build_sentence, section.sentences)))),
        )
        for section in draft.sections
    )


def leave_out_citations(sentences: Sequence[Sentence]) -> Iterator[Sentence]:
    """Mark the sentences that draw together what their paragraph says (the one that opens the section: what the section
    says) and whose sources the facts of it cite: to readers the same numbers once more are in the way."""

    def list_cited(told: Iterable[Sentence]) -> set[str]:
        return {source for one in told if one.kind == "fact" for source in one.citations}

    first = sentences[0] if sentences else None
    for paragraph in split_paragraphs(sentences):
        cited = list_cited(paragraph)
        for one in paragraph:
            if _PARTICULAR.search(one.text):
                yield one
                continue
            near = list_cited(sentences) if one is first else cited
            beside = one.kind == "synthesis" and one.citations and not one.cell and near.issuperset(one.citations)
            yield one.model_copy(update={"cited_beside": True}) if beside else one


async def _build_cards(state: State, claims: Sequence[Claim], context: ResearchContext) -> list[SourceCard]:
    """Describe the sources that a claim rests on, under the numbers they were given when they were found."""
    used = {span.document for claim in claims for span in (*claim.spans, *claim.against)}
    documents = await load_read_documents(state, context, (source["document"] for source in load_sources(state)))
    groups = await asyncio.to_thread(group_documents, documents.values())  # of all, as the marks were given
    rated = await asyncio.to_thread(rate_sources, documents, load_question(state))
    cards = []
    for source in load_sources(state):
        if (name := source["document"]) in used:
            behind = [claim.id for claim in claims if any(span.document == name for span in claim.spans)]
            why = f"supports {len(behind)} statement{'s' * (len(behind) != 1)}: {', '.join(behind[:8])}"
            if not behind:
                opposed = [claim.id for claim in claims if any(span.document == name for span in claim.against)]
                why = f"speaks against {', '.join(opposed[:8])}"
            cards.append(build_card(source, documents[name], groups, why, rated[name], state["credibility"].get(name)))
    return [
        card.model_copy(update={"same_as": tuple(o.id for o in cards if o.group == card.group and o.id != card.id)})
        for card in cards
    ]


def build_card(
    source: NumberedSource,
    document: Document,
    groups: Mapping[str, str],
    why_used: str,
    credibility: Credibility,
    opinion: Plain | None = None,
) -> SourceCard:
    """Describe a source; `opinion` is what lowers its credibility."""
    if opinion:
        credibility = credibility.with_lower_score(opinion["score"], opinion["reason"])
    return SourceCard(
        id=source["id"],
        title=document.title,
        url=document.url,
        document=document.hash,
        group=groups[document.hash],
        why_used=why_used,
        host=document.host,
        kind=document.kind,
        author=document.author,
        publisher=document.publisher,
        published=document.published.isoformat() if document.published else None,
        primary=credibility.primary,
        credibility=credibility.score,
        credibility_reasons=credibility.reasons,
    )


# Short answers: in words of a passage that supports the claim, asserted only if undisputed.

MAX_ANSWER_WORDS = 12
_BARE_FIGURE = re.compile(r"[-−(]{0,2}\s?[$€£¥]?\s?[-−(]?\d[\d,.]*\)?\s?(?:%\)?|thousand|million|billion|days?)?")
MIN_BACKING = 2  # independent sources behind an answer that others contradict


def select_answers(answers: Sequence[DraftAnswer], claims: Mapping[str, Claim]) -> tuple[DraftAnswer, ...]:
    """Keep the answers whose words stand in a span of every claim they name, and figures with nothing but a unit that
    stand in them or are computed from them; what was chosen of what the question offers rests on such figures. All such
    claims are supported."""

    def is_figure(answer: DraftAnswer) -> bool:
        bound = [claims[name] for name in answer.claims if name in claims]
        if len(bound) < len(answer.claims) or any(claim.verdict is not Verdict.SUPPORTED for claim in bound):
            return False
        if answer.chosen:
            return not any(check_numbers("", bound, answer.derived, {}))
        has_figure = _BARE_FIGURE.fullmatch(answer.text) is not None
        return has_figure and not any(check_numbers(answer.text, bound, answer.derived, {}))

    def stands_in(text: str, claim: Claim | None) -> bool:
        if claim is None or claim.verdict is not Verdict.SUPPORTED:
            return False
        return any(find_quote(text, span.quote) for span in claim.spans)

    return tuple(
        answer
        for answer in answers
        if answer.claims and len(answer.text.split()) <= MAX_ANSWER_WORDS
        if is_figure(answer) or all(stands_in(answer.text, claims.get(name)) for name in answer.claims)
    )


def build_answers(
    answers: Sequence[DraftAnswer],
    claims: Mapping[str, Claim],
    ids: Mapping[str, str],
    disagreements: Sequence[Disagreement] = (),
) -> tuple[ShortAnswer, ...]:
    """Build the answers. `ids` are the sources' by document; `disagreements` say how many independent sources stand on
    each side."""
    built = []
    for answer in answers:
        bound = [claims[name] for name in answer.claims]
        # An answer that several independent sources give is asserted against fewer; all others that somebody
        # contradicts are only shown. A contradiction nobody has weighed counts as one.
        disputed, weighed = False, set[str]()
        for matter in disagreements:
            for side, own in enumerate(matter.sides):
                if matter.resolved or not set(answer.claims) & set(own):
                    continue
                others = [count for at, count in enumerate(matter.backing) if at != side]
                if (
                    len(matter.backing) != len(matter.sides)
                    or all(claim.mark is Mark.SINGLE for claim in bound)  # several documents, and one voice
                    or matter.backing[side] < MIN_BACKING
                    or matter.backing[side] <= max(others)
                ):
                    disputed = True
                weighed |= {name for other in matter.sides if other is not own for name in other}
        built.append(
            ShortAnswer(
                text=answer.text,
                derived=answer.derived,
                about=answer.about,
                claims=answer.claims,
                citations=tuple(dict.fromkeys(ids[span.document] for claim in bound for span in claim.spans)),
                mark=bound[0].mark,
                disputed=disputed or any(claim.superseded_by or set(claim.disputed_by) - weighed for claim in bound),
            )
        )
    return tuple(built)


def order_answers(
    answers: Sequence[ShortAnswer], claims: Mapping[str, Claim], cards: Sequence[SourceCard]
) -> tuple[ShortAnswer, ...]:
    """Order the answers: asserted ones first, then those at first hand, then the newest; and so the sources of each.
    Of several, each says of when it is."""
    by_id = {card.id: card for card in cards}

    def cite(answer: ShortAnswer) -> ShortAnswer:
        first_hand = [id for id in answer.citations if id in by_id and by_id[id].primary]
        return answer.model_copy(update={"citations": tuple(dict.fromkeys((*first_hand, *answer.citations)))})

    def sort_key(answer: ShortAnswer) -> tuple[bool, bool, str]:
        sources = [by_id[id] for id in answer.citations if id in by_id]
        years = [f"{year}" for name in answer.claims for year in find_years(claims[name].text)]
        days = [card.published for card in sources if card.published]
        return not answer.disputed, any(card.primary for card in sources), max(years or days, default="")

    ordered = sorted(map(cite, answers), key=sort_key, reverse=True)
    if len(ordered) < 2:
        return tuple(ordered)
    told = [", ".join(filter(None, (answer.about, _tell_time(answer, claims, by_id)))) for answer in ordered]
    return tuple(answer.model_copy(update={"about": about}) for answer, about in zip(ordered, told, strict=True))


def _tell_time(answer: ShortAnswer, claims: Mapping[str, Claim], cards: Mapping[str, SourceCard]) -> str:
    """The date beside an answer in its statement, else when its newest source was published. An answer that is a date
    needs none."""
    if any(one.kind in ("date", "year") for one in find_quantities(answer.text)):
        return ""
    for text in (claims[name].text for name in answer.claims):
        at = text.find(answer.text)
        dates = [one for one in find_quantities(text) if one.kind in ("date", "year")]
        if dates:
            nearest = min(dates, key=lambda one: abs(one.start - at))
            return " ".join(text[nearest.start : nearest.end].split())
    days = [date for id in answer.citations if id in cards and (date := cards[id].published)]
    return f"published {max(days)}" if days else UNDATED


def list_considerations(state: State, plan: Plan | None, context: ResearchContext) -> list[str]:
    """Say in one notice what a person said, now or once, that shaped a report, so that nobody has to guess."""
    lines: list[str] = []
    if plan:
        lines += [line.rstrip(".") for line in plan.constraints]
        lines += [line.rstrip(".") for line in plan.reasoning if plan.edited and line.startswith("You ")]
        # Preferences that decided where nothing else did; the others stand in the plan.
        known, options = context.options.preferences, context.options
        remembered = {
            f"{known.style} style": known.style and not (options.style or plan.style),
            f"{known.words} words": known.words and not (options.words or plan.words),
            f"avoid {', '.join(known.avoid)}": known.avoid,
            f"prefer {', '.join(known.prefer)}": known.prefer,
        }
        lines += [f"remembered: {line}" for line, decided in remembered.items() if decided]
    edits = load_edits(state)
    lines += [f"you left out the section “{title}”" for title in edits.get("drop", ())]
    if edits.get("title"):
        lines.append("you changed the title")
    lines += [f"you vetoed “{veto.title or veto.url}”" for veto in load_vetoes(state)]
    return [f"{CONSIDERATION_PREFIX} {'; '.join(dict.fromkeys(lines))}."] if lines else []


# Sub-questions that a report has no answer to: one list for the writer, the reviewer and the reader.

SURE_CLAIM = 0.6  # confidence of a claim that one source alone may answer with
TO_THE_POINT = 0.5  # relevance of one


def list_open_questions(state: State) -> tuple[str, ...]:
    """List the sub-questions that no claim which survived speaks to, and those that were found wanting and have none
    that answers: what was verified since may have settled what the analysis missed. A sub-question whose evidence was
    never counted was found wanting."""
    claims = [claim for claim in load_supported_claims(state) if not claim.superseded_by]
    analysis = load_analysis(state)
    unanswered = []
    for question in load_plan(state).questions:
        own = [claim for claim in claims if question.id in claim.questions]
        wanting = analysis is not None and question.text in analysis.unanswered
        if len(own) < MANY_CLAIMS and (wanting or state["coverage"].get(question.id, 0.0) < ANSWERED):
            own = [claim for claim in own if _answers(claim, question)]
        if not own:
            unanswered.append(question.text)
    return tuple(unanswered)


def _answers(claim: Claim, question: SubQuestion) -> bool:
    """Tell whether a claim is well supported, to the point, and has the kind of answer, the names and the years that
    are asked for."""
    names = [questions.distinctive_stems(name) for name in questions.find_question_names(question.text)]
    years = questions.find_year_range(question.in_context)
    known = {stem for text in (claim.text, *(span.quote for span in claim.spans)) for stem in stems(text)}
    return (
        (claim.mark is Mark.CORROBORATED or claim.confidence >= SURE_CLAIM)
        and claim.relevance >= TO_THE_POINT
        and all(questions.has_answer_kind(kind, claim.text) for kind in questions.answer_kinds(question.text))
        and all(questions.has_name(name, known) for name in names)
        and (years is None or years.overlaps(find_years(claim.text)))
    )


def list_gaps(state: State) -> tuple[OpenSubQuestion, ...]:
    """Describe what was searched in vain for each open sub-question."""
    if not state["plan"]:
        return ()
    unanswered = list_open_questions(state)
    lines = [line.partition(" ") for line in list_queries(state)]
    with_findings = {finding["question"] for finding in state["findings"]}
    gaps = []
    for question in load_plan(state).questions:
        if question.text in unanswered:
            read = [places for key, places in state["perused"].items() if key.partition(":")[2] == question.id]
            gaps.append(
                OpenSubQuestion(
                    question=question.text,
                    queries=tuple(text for id, _, text in lines if id == question.id),
                    documents=len({document for places in read for document, _ in places}),
                    reason="what was read is too weak" if question.id in with_findings else "nothing read speaks to it",
                )
            )
    return tuple(gaps)


def build_disputes(
    disagreements: Sequence[Disagreement], claims: Mapping[str, Claim], cards: Sequence[SourceCard]
) -> tuple[Dispute, ...]:
    by_document = {card.document: card for card in cards}
    disputes = []
    for matter in disagreements:
        sides = []
        for side in matter.sides:
            documents = [span.document for id in side if id in claims for span in claims[id].spans]
            behind = [by_document[name] for name in documents if name in by_document]
            sides.append(
                DisputeSide(
                    claims=tuple(id for id in side if id in claims),
                    sources=tuple(dict.fromkeys(card.id for card in behind)),
                    groups=tuple(dict.fromkeys(card.group for card in behind)),
                )
            )
        about, resolution = matter.about, matter.resolution
        disputes.append(Dispute(about=about, resolved=matter.resolved, resolution=resolution, sides=tuple(sides)))
    return tuple(disputes)


# The table of key figures: one row a fact, every value spelled as in the passage it comes from.

MAX_ROWS, MIN_ROWS = 12, 2
MAX_VALUE_WORDS = 4
MAX_LABEL_WORDS = 12  # words that say what a figure is of
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
    """Build the table from what the draft says, in its order; `ids` are the sources' by document. One figure alone
    makes no table."""
    names = dict.fromkeys(id for section in draft.sections for sentence in section.sentences for id in sentence.claims)
    bound = [claims[id] for id in names if id in claims]
    rows = list(_iter_rows(claim for claim in bound if claim.verdict is Verdict.SUPPORTED and not claim.superseded_by))
    chosen: list[FigureRow] = []
    worth = {row: row.claim.relevance + SURER * (row.claim.mark is Mark.CORROBORATED) for row in rows}
    for row in sorted(rows, key=lambda row: (-worth[row], row.claim.id)):
        if not any(row.value == other.value and jaccard(row.what, other.what) >= ONE_FACT for other in chosen):
            chosen.append(row)
    chosen = chosen[:MAX_ROWS]
    if len(chosen) < MIN_ROWS:
        return ()
    figures = []
    for row in rows:
        if row in chosen:
            spans = [span for span in row.claim.spans if row.value in " ".join(span.quote.split())]
            cited = dict.fromkeys(ids[span.document] for span in spans if span.document in ids)
            figures.append(
                KeyFigure(
                    what=row.what,
                    value=row.value,
                    when=row.when,
                    claims=(row.claim.id,),
                    citations=tuple(cited)[:MAX_CITATIONS],
                    mark=row.claim.mark,
                    disputed=bool(row.claim.disputed_by),
                )
            )
    return tuple(figures)


def _iter_rows(claims: Iterable[Claim]) -> Iterator[FigureRow]:
    """Yield a row for every claim with a figure that stands in its quotes."""
    for claim in claims:
        remark = f" ({UNDATED})."
        text, what, value, when = claim.text.removesuffix(remark), "", "", ""
        if is_table_row(text):
            # The first figure of a row of a table, under its heading.
            head, dash, cells = text.partition(" — ")
            label, colon, rest = (cells if dash else text).partition(": ")
            value = rest.partition(";")[0].rstrip(".").strip()
            if colon and len(head.split()) <= MAX_LABEL_WORDS and len(value.split()) <= MAX_VALUE_WORDS:
                dated = dash and any(quantity.kind in ("year", "date") for quantity in find_quantities(label))
                what, when = (head if dash else label).strip(), label if dated else ""
        elif (figure := find_main_figure(text)) and not text[figure.end : figure.end + 1].isalpha():  # 18F is a name
            # With the whole of its unit, or with what it counts where it has none.
            more = (_COUNTED if figure.counts else _COMPOUND).match(text, figure.end)
            value = text[figure.start : more.end() if more else figure.end].strip()
            # It is of what the words say that lead up to it, else those that follow it.
            what = _trim_label(_OPENING.sub("", _CLAUSE.split(text[: figure.start])[-1].strip()))
            leading, after = what.split(), _AFTER.match(text[figure.end :])
            if len(content_words(what)) < 2:
                what = _trim_label(f"{what} {after[1]}".strip()) if after else ""
            elif len(leading) > MAX_LABEL_WORDS:
                what = ""  # half a label is worse than no row
            # The date nearest to it in its own sentence, as it is spelled.
            sentence = next((p for p in split_sentences(text) if p.start <= figure.start < p.end), None)
            start, end = (sentence.start, sentence.end) if sentence else (0, len(text))
            dates = {
                min(abs(date.start - figure.end), abs(figure.start - date.end)): text[date.start : date.end].strip()
                for date in reversed(find_quantities(text))
                if date.kind in ("year", "date", "decade") and start <= date.start < end
            }
            when = dates[min(dates)] if dates else UNDATED if claim.text.endswith(remark) else ""
        if what and any(letter.isdigit() for letter in value) and _is_in_quotes(value, claim):
            told = when == UNDATED or _is_in_quotes(when, claim) or _is_published(when, claim)
            yield FigureRow(claim, what, value, when if told else "")


def _is_in_quotes(value: str, claim: Claim) -> bool:
    return any(value in " ".join(span.quote.split()) for span in claim.spans)


def _is_published(when: str, claim: Claim) -> bool:
    """Whether it is the year one of its sources was published in."""
    return any(item.field == "published" and item.value[:4] in when for item in claim.context)


def _trim_label(text: str) -> str:
    while (shorter := _TRAILING.sub("", text)) != text:
        text = shorter
    return text.strip(" ,(")


def mask_unverified_text(report: ReportData) -> ReportData:
    """Mask the words of a report that no passage supports: refused statements, a reviewer's remarks, opinions on
    sources. A reader may want them, but a page that got a model to repeat something must not get it further."""
    sentences = [sentence.text for section in report.sections for sentence in section.sentences]
    quotes = [span.quote for claim in report.claims for span in claim.spans if claim.verdict is Verdict.SUPPORTED]
    cards = [f"{card.title} {card.host} {card.kind}" for card in report.sources]
    plan = report.plan.model_dump_json() if report.plan else ""
    known = collect_words(report.question, report.title, plan, *sentences, *quotes, *cards)

    def mask(text: str) -> str:
        return mask_unverified_terms(text, known)

    def mask_issues(issues: Iterable[Issue]) -> tuple[Issue, ...]:
        fields = ("location", "description", "fix")
        return tuple(
            issue.model_copy(update={field: mask(getattr(issue, field)) for field in fields}) for issue in issues
        )

    def mask_claim(claim: ReportClaim) -> ReportClaim:
        if claim.verdict is Verdict.SUPPORTED:
            return claim
        return claim.model_copy(update={"text": mask(claim.text), "reasons": tuple(map(mask, claim.reasons))})

    def mask_card(card: SourceCard) -> SourceCard:
        """Mask an opinion, which is a model's; the other reasons are ours, and may name a publication."""
        reasons = (mask(why) if why.startswith("judged lower") else why for why in card.credibility_reasons)
        return card.model_copy(update={"credibility_reasons": tuple(reasons)})

    return report.model_copy(
        update={
            "claims": tuple(map(mask_claim, report.claims)),
            "sources": tuple(map(mask_card, report.sources)),
            "disputes": tuple(one.model_copy(update={"about": mask(one.about)}) for one in report.disputes),
            "review": report.review and report.review.model_copy(update={"issues": mask_issues(report.review.issues)}),
            "issues": mask_issues(report.issues),
        }
    )
