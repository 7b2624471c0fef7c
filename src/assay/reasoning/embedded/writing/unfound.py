"""What could not be found: sub-questions without an answer, and parts of the outline that nothing was found for."""

from collections.abc import Sequence

from assay.model.claim import Claim
from assay.reasoning.embedded.aspects import FINANCE, NEWS, aspect, is_about_a_company
from assay.reasoning.embedded.writing.body import Placed
from assay.reasoning.embedded.writing.disputed import TITLE as DISPUTED
from assay.reasoning.embedded.writing.disputed import Matter
from assay.reasoning.protocol import DraftSentence, WriteRequest

TITLE = "What could not be found"


def unfound(request: WriteRequest, claims: Sequence[Claim], missing: Sequence[str]) -> tuple[DraftSentence, ...]:
    """`claims` are all that may be told, wherever they are told; `missing` is what a reviewer looked for in vain."""
    lines = [f"No source read in this run answered: “{question}”" for question in request.unanswered]
    lines += [
        f"No source read in this run had a statement for: “{part}”" for part in (*_empty(request, claims), *missing)
    ]
    return tuple(DraftSentence(text=line, opens=True) for line in lines)


def _empty(request: WriteRequest, claims: Sequence[Claim]) -> list[str]:
    """What every answer about a company is expected to have; elsewhere, sections whose sub-questions nobody named as
    unanswered although nothing was found."""
    if is_about_a_company(request.plan.sections):
        there = {aspect(claim.text) for claim in claims}
        return [part for part in (NEWS, FINANCE) if part not in there]
    spoken = {id for claim in claims for id in claim.questions}
    by_section: dict[str, list[str]] = {section: [] for section in request.plan.sections}
    for question in request.plan.questions:
        by_section[question.section].append(question.id)
    owned = {question.section for question in request.plan.questions if question.text in request.unanswered}
    return [section for section, ids in by_section.items() if section not in owned and ids and not spoken & set(ids)]


def elsewhere(request: WriteRequest, placed: Placed, matters: Sequence[Matter]) -> dict[str, list[DraftSentence]]:
    """What is added to a section: that it tells what another, left empty, was planned for, and that part of what was
    found on it is disputed."""
    added: dict[str, list[DraftSentence]] = {section: [] for section in placed}
    also: dict[str, list[str]] = {}
    for section in (section for section, claims in placed.items() if not claims):
        if host := _host(section, request, placed):
            also.setdefault(host, []).append(section)
    for host, sections in also.items():
        told = " and ".join(f"“{section}”" for section in sections)
        added[host].append(DraftSentence(text=f"This also tells what was found on {told}", opens=True))
    disputed = {matter.question for matter in matters if not matter.settled}
    for section in dict.fromkeys(q.section for q in request.plan.questions if q.text in disputed):
        added[section].append(DraftSentence(text=f"Where the sources disagree on this is told under “{DISPUTED}”."))
    return added


def _host(section: str, request: WriteRequest, placed: Placed) -> str | None:
    """The section that tells most of what another was planned for."""
    ids = {question.id for question in request.plan.questions if question.section == section}
    hosts = [host for host, claims in placed.items() for claim in claims if ids & set(claim.questions)]
    return max(hosts, key=hosts.count, default=None)
