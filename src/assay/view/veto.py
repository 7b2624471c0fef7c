"""Which sources a person means, and what a report would lose without them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.errors import NotFoundError
from assay.model.report import ReportClaim, ReportData, SourceCard
from assay.model.veto import Consequences, Vetoed
from assay.text.hosts import within
from assay.text.urls import canonical


def chosen(report: ReportData, names: Iterable[str]) -> tuple[Vetoed, ...]:
    """Sources of the report by their id ("S3" or "3"), address, host, or the beginning of their hash."""
    found: dict[str, Vetoed] = {}
    for name in names:
        cards = [card for card in report.sources if _is_meant(card, name.strip())]
        if not cards:
            known = ", ".join(card.id for card in report.sources) or "none"
            raise NotFoundError(
                f"the report has no source {name!r}", help=f"It has: {known}. assay threads show lists them."
            )
        found |= {card.document: Vetoed(document=card.document, url=card.url, title=card.title) for card in cards}
    return tuple(found.values())


LEAST = 6  # characters of a hash


def _is_meant(card: SourceCard, name: str) -> bool:
    if not name:
        return False
    if card.id.lower() in (name.lower(), f"s{name}"):
        return True
    if canonical(name) == canonical(card.url) or (card.host and "." in name and within(card.host, name)):
        return True
    return len(name) >= LEAST and card.document.startswith(name.lower())


def consequences(report: ReportData, sources: Sequence[Vetoed]) -> Consequences:
    out = {source.document for source in sources}
    supported = [claim for claim in report.claims if claim.verdict == "supported"]
    touched = [claim for claim in supported if any(span.document in out for span in claim.spans)]
    lost = [claim for claim in touched if all(span.document in out for span in claim.spans)]
    affected, gone = {claim.id for claim in touched}, {claim.id for claim in lost}
    told = [sentence for section in report.sections for sentence in section.sentences]
    return Consequences(
        sources=tuple(sources),
        lost=tuple(claim.id for claim in lost),
        weaker=tuple(claim.id for claim in touched if claim.id not in gone),
        sentences=tuple(sentence.text for sentence in told if affected & set(sentence.claims)),
        unanswered=_unanswered(report, supported, gone),
        untouched=len(supported) - len(touched),
    )


def _unanswered(report: ReportData, supported: Sequence[ReportClaim], gone: set[str]) -> tuple[str, ...]:
    """Sub-questions that had answers and would have none."""
    before = {question for claim in supported for question in claim.questions}
    after = {question for claim in supported if claim.id not in gone for question in claim.questions}
    questions = report.plan.questions if report.plan else ()
    return tuple(question.text for question in questions if question.id in before - after)


def all_vetoed(values: Mapping[str, Any], added: Sequence[Vetoed]) -> list[dict[str, Any]]:
    """The thread's vetoes with these, each once."""
    known = {source["document"]: source for source in values.get("vetoed") or ()}
    return list({**known, **{source.document: source.plain() for source in added}}.values())
