"""Review the draft: the reviewer's scores, the standards it must meet, and which version of the report goes on.

The standards (W-10) are enough citations, recent enough sources, no bare advice, and disclaimers. What fails is an
issue and goes back to the writer, where verified statements are left that would fix it. What no writer can fix is said
in the report, which then counts as less sure; nothing passes in silence.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from typing import Literal, NamedTuple

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.evidence import Verdict
from openassay.models.report import Critique, Issue
from openassay.nodes.analyse import find_leads, load_evidence
from openassay.nodes.dispatch import list_queries
from openassay.nodes.harvest import load_read_documents
from openassay.nodes.report import build_card, list_open_questions
from openassay.reasoning.base import CritiqueRequest, Draft, recommend
from openassay.state import (
    Plain,
    State,
    load_analysis,
    load_claims,
    load_disagreements,
    load_edits,
    load_plan,
    load_plan_if_any,
    load_question,
    load_sources,
)
from openassay.text.questions import find_cutoff
from openassay.text.words import fold, stem, words
from openassay.verification.sources import group_documents, rate_sources

# Of a report that a capable model composes: in five runs the first revision gained .8 points of 10 on average, the
# second .6 in two, for eight more calls one after the other.
COMPOSED_DRAFTS = 2


async def review(state: State, runtime: Runtime[ResearchContext]) -> State:
    context, draft = runtime.context, Draft.model_validate(state["draft"])
    digest = hashlib.sha256(json.dumps((state["draft"] or {})["sections"], sort_keys=True).encode()).hexdigest()[:16]
    best = state.get("best")
    # Once a person has sent a report back, no version that they have seen comes again.
    turn = str(load_edits(state).get("back") or "").rpartition(":")[2]
    if best and turn.isdecimal() and best["iteration"] < int(turn):
        best = None
    seen: list[str] = best["seen"] if best else []
    # A revision that goes back to a version reviewed before would go round in circles.
    stuck = state["stuck"] or digest in seen
    revisions = 0 if stuck else count_revisions(state, context)
    critique = await context.reasoner.critique(await build_review_request(state, draft, revisions, context))
    failures = check_standards(state, draft, context)
    critique = apply_standards(critique, failures, revisions)
    for failure in failures:
        await context.emit("notice", "review", text=f"standards: {failure.issue.description}")
    text = f"review: {critique.score:.1f} of 10, {critique.recommendation}"
    await context.emit("notice", "review", text=text, score=critique.score)
    # This version goes on, unless the loop ends here and an earlier one was better.
    version: Plain = {
        "draft": state["draft"],
        "statements": state["statements"],
        "critique": critique.plain(),
        "iteration": state["iteration"],
    }
    earlier = Critique.model_validate(best["critique"]) if best else None
    if best is None or earlier is None or _critique_rank(earlier) <= _critique_rank(critique):
        best = version
    elif critique.recommendation != "revise" or not revisions:
        await context.emit("notice", "review", text=f"version {best['iteration']} was reviewed better and is used")
        # It was reviewed while revisions were left; now there are none.
        recommendation = recommend(earlier.score, earlier.issues)
        critique = earlier.model_copy(update={"recommendation": recommendation})
        version = {**best, "critique": critique.plain()}
    if draft.composed and not revisions and critique.recommendation == "revise" and not _has_critical(critique):
        # Every sentence of it was judged, and nobody writes it again: what it lacks is told in it, not at its top.
        critique = critique.model_copy(update={"recommendation": "approve"})
        version = {**version, "critique": critique.plain()}
    if critique.recommendation == "revise" and critique.searches and (analysis := load_analysis(state)):
        # The next version is written from more claims, so of this one only what is wanted is kept.
        wanted = "; ".join(query for queries in critique.searches.values() for query in queries)
        await context.emit("notice", "review", text=f"a part is missing, so there is another search: {wanted}")
        analysis = analysis.model_copy(update={"refinements": critique.searches, "stop_reason": None})
        return {
            "analysis": analysis.plain(),
            "draft": None,
            "best": None,
            "critique": critique.plain(),
            "issues": [issue.plain() for issue in critique.issues],
            "status": Status.SEARCHING,
            "current_agent": "review",
            "stuck": False,
        }
    return {
        "draft": version["draft"],
        "statements": version["statements"],
        "critique": version["critique"],
        "issues": version["critique"]["issues"],
        "best": {**best, "seen": [*seen, digest]},
        "status": Status.REVISING if critique.recommendation == "revise" else Status.REVIEWING,
        "current_agent": "review",
        "stuck": stuck,
    }


def count_revisions(state: State, context: ResearchContext) -> int:
    """Count the revisions left. One that changed nothing was the last."""
    most = context.settings.max_iterations
    if (state["draft"] or {}).get("composed", False):
        most = min(most, COMPOSED_DRAFTS)
    return 0 if state["stuck"] else max(0, most - state["iteration"])


async def build_review_request(state: State, draft: Draft, revisions: int, context: ResearchContext) -> CritiqueRequest:
    plan, sources = load_plan(state), load_sources(state)
    documents = await load_read_documents(state, context, (source["document"] for source in sources))
    groups = await asyncio.to_thread(group_documents, documents.values())
    rated = await asyncio.to_thread(rate_sources, documents, load_question(state))
    return CritiqueRequest(
        plan=plan,
        draft=draft,
        claims=tuple(load_claims(state)),
        unanswered=list_open_questions(state),
        dropped=state["statements"]["dropped"],
        banned=context.settings.banned_words,
        words=context.max_words(plan),
        question=load_question(state),
        subjects=tuple((state["understanding"] or {}).get("subjects") or ()),
        sources=tuple(
            build_card(source, documents[name], groups, "", rated[name])
            for source in sources
            if (name := source["document"])
        ),
        disagreements=tuple(load_disagreements(state)),
        confidence=state["confidence"],
        today=context.now().date(),
        revisions=revisions,
        can_search=revisions > 0 and can_search_again(state),
        asked=tuple(line.partition(" ")[2] for line in list_queries(state)),
        leads=await find_leads(load_evidence(state), context),
    )


def can_search_again(state: State) -> bool:
    """Whether what a first review finds missing may be searched for."""
    return state["iteration"] == 1 and load_analysis(state) is not None


def _critique_rank(critique: Critique) -> tuple[bool, bool, float]:
    return critique.recommendation == "approve", not _has_critical(critique), critique.score


def _has_critical(critique: Critique) -> bool:
    return any(issue.severity == "critical" for issue in critique.issues)


# Fields in which a reader may come to harm by acting on a report. A word of the question that belongs to one field is
# enough; of words that are also used elsewhere (treatment of water, chemical bonds, a tennis court) it takes two.
Field = Literal["medical", "legal", "financial"]

DISCLAIMERS: dict[Field, str] = {
    "medical": "This report repeats what its sources say and is not medical advice; before acting on it, ask a doctor "
    "or a pharmacist.",
    "legal": "This report repeats what its sources say and is not legal advice; the law differs from place to place, "
    "so ask a lawyer before acting on it.",
    "financial": "This report repeats what its sources say and is not financial advice; prices and conditions change, "
    "so ask a qualified adviser before acting on it.",
}

_ALONE: dict[Field, str] = {
    "medical": "symptom dose dosage overdose medication vaccine vaccination antibiotic ibuprofen paracetamol "
    "acetaminophen aspirin statin insulin chemotherapy diabetes cancer hypertension pregnancy pregnant surgery "
    "diagnosis diagnose arthritis asthma migraine semaglutide ozempic opioid antidepressant contraceptive disease "
    "therapy medicine painkiller vitamin allergy "
    "medikament nebenwirkung dosierung krankheit impfung schwangerschaft medicament maladie grossesse medicamento "
    "enfermedad embarazo vacuna",
    "legal": "legal illegal unlawful liability liable sue attorney lawyer solicitor tenant landlord eviction divorce "
    "alimony probate gdpr ccpa copyright statute litigation defamation trademark "
    "mietrecht arbeitsrecht anwalt kundigung avocat juridique abogado demanda",
    "financial": "invest investing investment investor mortgage pension dividend etf "
    "forex annuity brokerage geldanlage aktie aktien hypothek investissement hypotheque inversion hipoteca acciones",
}
_WITH_ANOTHER: dict[Field, str] = {
    "medical": "treatment treat drug medical health infection virus blood clinical doctor hospital pain diet patient "
    "tablet pill depression stroke heart supplement",
    "legal": "law court contract regulation right visa inheritance clause employer dismissal penalty permit rent "
    "license compliance",
    "financial": "stock bond portfolio retirement loan fund trading valuation savings tax buy sell price hedge debt "
    "bitcoin cryptocurrency crypto",
}
_PHRASES: dict[Field, str] = {
    "medical": r"side effects?|blood pressure|clinical trials?|mental health|weight loss drugs?",
    "legal": r"statute of limitations|small claims|custody of|employment law|data protection law",
    "financial": r"stock market|share price|stock price|index funds?|hedge funds?|interest rates?|credit score|"
    r"buy or sell|shares of",
}

# Whom advice is given to, or an order; whose advice it is, or that it is none for certain.
_ADVICE = re.compile(
    r"\b(?:you|patients|adults|children|women|men|people|investors|savers|tenants|landlords|employees|everyone|one)\s+"
    r"(?:should|must|ought to|need to|have to|had better)\b"
    r"|^(?:take|buy|sell|invest|sue|hold|avoid|stop|start|never|always|do not|don[’']t)\s+(?!place\b)",
    re.I,
)
_HEDGED = re.compile(
    r"\b(?:may|might|could|perhaps|according to|guidelines?|guidance|recommend\w*|advis\w+|suggest\w*|says?|said|"
    r"consult|ask (?:a|an|your)|talk to|speak (?:to|with)|argues?|believes?)\b",
    re.I,
)


BARE_ADVICE = (
    "Where a statement tells the reader what to do, it is the advice of the source cited for it, not of this report."
)
MAX_SCORE = 7.9  # of a report that does not meet them all: it is not of high confidence


class StandardFailure(NamedTuple):
    """What the writer is asked to fix, and what the reader is told if that fails."""

    issue: Issue
    caveat: str
    mendable: bool  # by saying something else of what was verified


def check_standards(state: State, draft: Draft, context: ResearchContext) -> list[StandardFailure]:
    """List the standards that a draft does not meet."""
    standards, claims = context.settings.standards, load_claims(state)
    facts = [
        (section.title, sentence) for section in draft.sections for sentence in section.sentences if sentence.claims
    ]
    if not facts:
        return []
    bound = {id for _, sentence in facts for id in sentence.claims}
    usable = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED and not claim.superseded_by]
    cited = {span.document for claim in claims if claim.id in bound for span in claim.spans}
    available = {span.document for claim in usable for span in claim.spans}
    failures, major = [], partial(Issue, severity="major")
    if len(cited) < standards.min_citations:
        count = f"{len(cited)} source{'s are' if len(cited) != 1 else ' is'} cited"
        wanted = f"{count} where at least {standards.min_citations}"
        fix = "cite more of the sources that support the statements"
        caveat = f"This report cites fewer sources than it should: {wanted} were wanted."
        issue = major(category="citation", location="whole report", description=f"{wanted} are wanted", fix=fix)
        failures.append(StandardFailure(issue, caveat, mendable=len(available) > len(cited)))
    # Sources without a date are of no known age and do not meet a configured limit.
    today, days = context.now().date(), standards.recency_days
    cutoff = today - timedelta(days=days) if days else find_cutoff(load_question(state), today)
    dates = {
        source["document"]: date.fromisoformat(source["published"][:10])
        for source in load_sources(state)
        if source["published"]
    }
    known = [dates[document] for document in cited if document in dates]
    if cutoff and (known or days) and all(day < cutoff for day in known):
        problem, fix = "no source cited is as recent as it should be", "use newer sources, if there are any"
        caveat = "No source cited here is as recent as it should be, so newer facts may be missing."
        mendable = any(dates[document] >= cutoff for document in available if document in dates)
        issue = major(category="methodology", location="sources", description=problem, fix=fix)
        failures.append(StandardFailure(issue, caveat, mendable))
    advice = [(place, sentence.text) for place, sentence in facts if is_bare_advice(sentence.text)]
    if advice and find_sensitive_fields(state, context):
        place, text = advice[0]
        problem = f"advice as if nobody in particular had given it ({len(advice)}): {text[:80]}"
        fix = "say whose advice it is, or leave it out"
        issue = major(category="methodology", location=place, description=problem, fix=fix)
        failures.append(StandardFailure(issue, BARE_ADVICE, mendable=True))
    return failures


def detect_fields(question: str, domains: Sequence[str] = ()) -> tuple[Field, ...]:
    """Find the fields of a question in which a reader may come to harm."""
    asked = {stem(word) for word in words(" ".join((question, *domains)))}
    return tuple(
        field
        for field in DISCLAIMERS
        if asked & _stem_set(_ALONE[field])
        or len(asked & _stem_set(_WITH_ANOTHER[field])) > 1
        or re.search(rf"\b(?:{_PHRASES[field]})\b", fold(question))
    )


def _stem_set(listed: str) -> set[str]:
    return {stem(word) for word in listed.split()}


def find_sensitive_fields(state: State, context: ResearchContext) -> tuple[Field, ...]:
    """Find them by the question, the fields the person named, and the sub-questions they added."""
    plan = load_plan_if_any(state)
    added = [question.text for question in plan.questions] if plan and plan.edited else []
    return detect_fields(" ".join([load_question(state), *added]), context.options.domains)


def is_bare_advice(sentence: str) -> bool:
    """Tell whether a sentence tells the reader what to do, as if nobody in particular had said so."""
    return bool(_ADVICE.search(sentence)) and not _HEDGED.search(sentence)


def apply_standards(critique: Critique, failures: Sequence[StandardFailure], revisions: int) -> Critique:
    """Add the failures to the review; a draft that would be approved is revised first where it can be."""
    if not failures:
        return critique
    issues = (*critique.issues, *(failure.issue for failure in failures))
    score = min(critique.score, MAX_SCORE)
    advice = recommend(score, issues, revisions) if critique.recommendation == "approve" else critique.recommendation
    if advice == "approve" and revisions and any(failure.mendable for failure in failures):
        advice = "revise"
    return critique.model_copy(update={"issues": issues, "score": score, "recommendation": advice})


def reader_notes(state: State, draft: Draft | None, context: ResearchContext) -> list[str]:
    """Write what stands below a report: which standards it does not meet, and that it is no advice."""
    caveats = [failure.caveat for failure in check_standards(state, draft, context)] if draft else []
    if not context.settings.standards.disclaimers:
        return caveats
    return [*caveats, *(DISCLAIMERS[field] for field in find_sensitive_fields(state, context))]
