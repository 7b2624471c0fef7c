"""The gate before a report leaves (W-10): enough citations, recent enough sources, no bare advice, and disclaimers.

What fails is an issue and goes back to the writer, where verified statements are left that would mend it. What no
writer can mend is told in the report, which then counts as less sure; nothing passes in silence."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from assay.deps import Deps
from assay.model.claim import Claim, Verdict
from assay.model.plan import Plan
from assay.model.report import Critique, Issue
from assay.reasoning.embedded.critique import recommend
from assay.reasoning.embedded.reviewing.recency import dates, since
from assay.reasoning.protocol import Draft, DraftSentence
from assay.settings import Standards
from assay.stages.sensitive import DISCLAIMERS, Field, fields, is_bare_advice
from assay.state import State

MOST = 7.9  # score of a report that does not meet them all: it is not of high confidence


class Unmet(NamedTuple):
    """What the writer is asked to mend, and what the reader is told if that is in vain."""

    issue: Issue
    caveat: str
    mendable: bool  # by saying something else of what was verified


Facts = Sequence[tuple[str, DraftSentence]]  # with the section each stands in
Dates = Sequence[str | None]


def unmet(state: State, draft: Draft, deps: Deps) -> list[Unmet]:
    standards = deps.settings.standards
    facts: Facts = [
        (section.title, sentence) for section in draft.sections for sentence in section.sentences if sentence.claims
    ]
    if not facts:
        return []
    told = {id for _, sentence in facts for id in sentence.claims}
    cited, there = _documents(state, told), _documents(state, None)
    return [
        *_too_few(len(cited), len(there), standards),
        *_too_old(_dates(state, cited), _dates(state, there), asked(state), deps.now().date(), standards),
        *(_advice(facts) if sensitive(state, deps) else ()),
    ]


def _documents(state: State, told: set[str] | None) -> set[str]:
    """Those behind the claims named, or behind all that may be told."""
    claims = [Claim.model_validate(item) for item in state["claims"]]
    usable = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED and not claim.superseded_by]
    chosen = usable if told is None else [claim for claim in claims if claim.id in told]
    return {span.document for claim in chosen for span in claim.spans}


def _dates(state: State, documents: set[str]) -> list[str | None]:
    return [source["published"] for source in state["sources"] if source["document"] in documents]


def asked(state: State) -> str:
    return str((state["understanding"] or {}).get("question") or state["original_query"])


def sensitive(state: State, deps: Deps) -> tuple[Field, ...]:
    """By the question, the fields the person named, and the sub-questions they added."""
    plan = Plan.model_validate(state["plan"]) if state["plan"] else None
    added = [question.text for question in plan.questions] if plan and plan.edited else []
    return fields(" ".join([asked(state), *added]), deps.options.domains)


def _too_few(cited: int, there: int, standards: Standards) -> Iterator[Unmet]:
    if cited < standards.min_citations:
        told = f"{cited} source{'s are' if cited != 1 else ' is'} cited where at least {standards.min_citations}"
        issue = Issue(category="citation", severity="major", location="whole report", description=f"{told} are wanted",
                      fix="cite more of the sources that bear the statements out")  # fmt: skip
        caveat = f"This report cites fewer sources than it should: {told} were wanted."
        yield Unmet(issue, caveat, mendable=there > cited)


def _too_old(cited: Dates, there: Dates, question: str, today: date, standards: Standards) -> Iterator[Unmet]:
    """Sources without a date are of no known age: a threshold somebody has set is not met by them."""
    days = standards.recency_days
    wanted = today - timedelta(days=days) if days else since(question, today)
    known = dates(cited)
    if wanted is None or any(day >= wanted for day in known) or not (known or days):
        return
    issue = Issue(category="methodology", severity="major", location="sources",
                  description="no source cited is as recent as it should be",
                  fix="use newer sources, if there are any")  # fmt: skip
    caveat = "No source cited here is as recent as it should be, so newer facts may be missing."
    yield Unmet(issue, caveat, mendable=any(day >= wanted for day in dates(there)))


def _advice(facts: Facts) -> Iterator[Unmet]:
    bare = [(place, sentence.text) for place, sentence in facts if is_bare_advice(sentence.text)]
    if bare:
        place, text = bare[0]
        issue = Issue(category="methodology", severity="major", location=place,
                      description=f"advice as if nobody in particular had given it ({len(bare)}): {text[:80]}",
                      fix="say whose advice it is, or leave it out")  # fmt: skip
        caveat = (
            "Where a statement tells the reader what to do, it is the advice of the source cited for it, "
            "not of this report."
        )
        yield Unmet(issue, caveat, mendable=True)


def gated(critique: Critique, failed: Sequence[Unmet], revisions: int) -> Critique:
    """The review with what the gate adds to it; a draft that would be approved is revised first where it can be."""
    if not failed:
        return critique
    issues = (*critique.issues, *(one.issue for one in failed))
    score = min(critique.score, MOST)
    advised = recommend(score, issues, revisions) if critique.recommendation == "approve" else critique.recommendation
    again = advised == "approve" and revisions and any(one.mendable for one in failed)
    update = {"issues": issues, "score": score, "recommendation": "revise" if again else advised}
    return critique.model_copy(update=update)


def notes(state: State, draft: Draft | None, deps: Deps) -> list[str]:
    """What a reader is told below the report: that it is no advice, and which standards it does not meet."""
    told = [one.caveat for one in unmet(state, draft, deps)] if draft else []
    warned = [DISCLAIMERS[field] for field in sensitive(state, deps)] if deps.settings.standards.disclaimers else []
    return [*told, *warned]
