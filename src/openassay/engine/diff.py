"""Two reports held against each other, statement by statement.

Statements are paired by their wording, figures aside; of a pair the figures, dates, names and negations, the verdict,
the mark and the sources are compared. Held the other way round, the same is told the other way round.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from openassay.errors import NotFoundError
from openassay.models.base import Record
from openassay.models.evidence import Claim, Mark, Verdict
from openassay.models.report import Level, ReportClaim, ReportData, ReportStatus
from openassay.protocols import DocumentStore
from openassay.text.urls import canonicalize_url
from openassay.text.words import fold, jaccard
from openassay.verification.statement_check import check_statement

NEAR = 0.6  # of the words of two statements, figures aside, from which they are two versions of one
_FIGURE = re.compile(r"\d[\d.,]*")


class SourceRef(Record):
    id: str
    title: str
    url: str
    document: str

    @property
    def key(self) -> str:
        """The same source, whatever number it has and whatever its page says by now."""
        return canonicalize_url(self.url) or self.document


class ReportStatement(Record):
    id: str
    text: str
    verdict: Verdict
    mark: Mark | None = None
    told: bool = True  # in the report itself, not only among what was checked for it
    sources: tuple[SourceRef, ...] = ()


class EditionHeader(Record):
    name: str
    title: str
    status: ReportStatus | None = None  # None: a draft
    confidence: Level | None = None
    score: float = 0.0
    usd: float = 0.0


class ReportEdition(EditionHeader):
    """What of a report, or of a draft, is compared."""

    sections: tuple[str, ...] = ()
    statements: tuple[ReportStatement, ...] = ()
    sources: tuple[SourceRef, ...] = ()


class StatementChange(Record):
    """`how`: figure, date, name, negation ..., verdict, mark or sources."""

    before: ReportStatement
    after: ReportStatement
    how: tuple[str, ...]


class ReportDiff(Record):
    a: EditionHeader
    b: EditionHeader
    added: tuple[ReportStatement, ...] = ()
    dropped: tuple[ReportStatement, ...] = ()
    changed: tuple[StatementChange, ...] = ()
    same: int = 0
    sources_gained: tuple[SourceRef, ...] = ()
    sources_lost: tuple[SourceRef, ...] = ()
    sections_added: tuple[str, ...] = ()
    sections_dropped: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        parts = (self.added, self.dropped, self.changed, self.sources_gained, self.sources_lost)
        return not any((*parts, self.sections_added, self.sections_dropped))


def compare_editions(a: ReportEdition, b: ReportEdition) -> ReportDiff:
    pairs = _pair_statements(a.statements, b.statements)
    both = [(a.statements[left], b.statements[right]) for left, right in sorted(pairs.items())]
    told = [(before, after) for before, after in both if before.told and after.told]
    changed = [
        StatementChange(before=before, after=after, how=how)
        for before, after in told
        if (how := _find_differences(before, after))
    ]
    kept_a, kept_b = {before.id for before, _ in told}, {after.id for _, after in told}
    mine, theirs = {source.key for source in a.sources}, {source.key for source in b.sources}
    titles_a, titles_b = set(map(fold, a.sections)), set(map(fold, b.sections))
    return ReportDiff(
        a=_to_header(a),
        b=_to_header(b),
        added=tuple(one for one in b.statements if one.told and one.id not in kept_b),
        dropped=tuple(one for one in a.statements if one.told and one.id not in kept_a),
        changed=tuple(changed),
        same=len(told) - len(changed),
        sources_gained=tuple(source for source in b.sources if source.key not in mine),
        sources_lost=tuple(source for source in a.sources if source.key not in theirs),
        sections_added=tuple(title for title in b.sections if fold(title) not in titles_a),
        sections_dropped=tuple(title for title in a.sections if fold(title) not in titles_b),
    )


def _to_header(edition: ReportEdition) -> EditionHeader:
    return EditionHeader(**{name: getattr(edition, name) for name in EditionHeader.model_fields})


# Pairs ------------------------------------------------------------------------------------------------


def _pair_statements(a: Sequence[ReportStatement], b: Sequence[ReportStatement]) -> dict[int, int]:
    """Each with at most one: the likest first, and of those that are as like, in an order that does not depend on which
    side they stand."""
    likely = []
    for left, one in enumerate(a):
        for right, other in enumerate(b):
            like = _similarity(one.text, other.text)
            if like >= NEAR:
                # Two that are told belong together rather than one that is and one that was left out.
                unlike = round(1 - like + (one.told != other.told) * 0.001, 6)
                texts, ids = sorted((fold(one.text), fold(other.text))), sorted((one.id, other.id))
                likely.append((unlike, texts, ids, left, right))
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for *_, left, right in sorted(likely):
        if left not in pairs and right not in taken:
            pairs[left] = right
            taken.add(right)
    return pairs


def _similarity(one: str, other: str) -> float:
    """1 for the same words; a little less for the same words with other figures."""
    if fold(one) == fold(other):
        return 1.0
    return 0.99 * jaccard(_FIGURE.sub(" ", one), _FIGURE.sub(" ", other))


def _find_differences(before: ReportStatement, after: ReportStatement) -> tuple[str, ...]:
    problems = [
        *check_statement(before.text, [after.text]).problems,
        *check_statement(after.text, [before.text]).problems,
    ]
    kinds = sorted({str(problem.kind) for problem in problems})
    differs = {
        "verdict": before.verdict != after.verdict,
        "mark": before.mark != after.mark,
        "sources": {source.key for source in before.sources} != {source.key for source in after.sources},
    }
    return (*kinds, *(name for name, there in differs.items() if there))


# Editions ---------------------------------------------------------------------------------------------


def from_report(name: str, report: ReportData) -> ReportEdition:
    sources = {
        card.document: SourceRef(id=card.id, title=card.title, url=card.url, document=card.document)
        for card in report.sources
    }
    told = {id for section in report.sections for sentence in section.sentences for id in sentence.claims}
    told |= {id for answer in report.answers for id in answer.claims}
    told |= {id for figure in report.figures for id in figure.claims}
    return ReportEdition(
        name=name, title=report.title, status=report.status, confidence=report.confidence,
        score=report.confidence_score, usd=report.spend.usd, statements=_build_statements(report.claims, sources, told),
        sections=tuple(section.title for section in report.sections if section.title and section.role != "notice"),
        sources=tuple(sources.values()),
    )  # fmt: skip


async def from_state(name: str, values: Mapping[str, Any], documents: DocumentStore, usd: float) -> ReportEdition:
    """The draft there was at a moment or, before anything was written, what had been verified."""
    claims = [Claim.model_validate(item) for item in values.get("claims") or ()]
    if not claims:
        raise NotFoundError(
            f"nothing had been verified yet at {name}", help="Choose a later one: openassay threads history lists them."
        )
    draft = values.get("draft") or {"sections": ()}
    told = {id for section in draft["sections"] for sentence in section["sentences"] for id in sentence["claims"]}
    told = told or {claim.id for claim in claims if claim.verdict is Verdict.SUPPORTED}
    used = {span.document for claim in claims for span in claim.spans}
    sources = {ref.document: ref for ref in await load_references(values, documents) if ref.document in used}
    return ReportEdition(
        name=name, title=str(draft.get("title") or values.get("original_query") or name),
        score=round(float(values.get("confidence") or 0) / 10, 2), usd=usd,
        statements=_build_statements(claims, sources, told),
        sections=tuple(section["title"] for section in draft["sections"] if section["title"]),
        sources=tuple(sources.values()),
    )  # fmt: skip


async def load_references(values: Mapping[str, Any], documents: DocumentStore) -> list[SourceRef]:
    """The sources a run has numbered so far."""
    found = []
    for source in values.get("sources") or ():
        document = await documents.get(source["document"])
        found.append(SourceRef(id=source["id"], title=source["title"], url=document.url, document=document.hash))
    return found


def _build_statements(
    claims: Sequence[Claim | ReportClaim], sources: Mapping[str, SourceRef], told: set[str]
) -> tuple[ReportStatement, ...]:
    statements = []
    for claim in claims:
        documents = {span.document for span in claim.spans}
        cited = tuple(ref for document, ref in sources.items() if document in documents)
        fields = claim.model_dump(include={"id", "text", "verdict", "mark"})
        statements.append(ReportStatement(**fields, told=claim.id in told, sources=cited))
    return tuple(statements)
