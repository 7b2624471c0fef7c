"""What a report offers to be edited and kept, and how that stands beside what a person has made of it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from openassay.export import Report
from openassay.export.layout import build_claims_table, build_table
from openassay.models.report import Artifact, ArtifactDraft, ArtifactTable, Cell, ReportStatus, Section, Sentence
from openassay.text.words import pluralize

NOTHING = "nothing was found"


class CurrentArtifact(NamedTuple):
    """An artifact as it is now: what a person has made comes before what the report makes.

    `fresh` is what the report makes of it, where that was not kept: the version after the last. `outdated`: a person
    has edited it, and the report has changed since. `own`: no report has made it. `kept` is the last version that was
    kept, or 0."""

    artifact: Artifact
    fresh: Artifact | None
    outdated: bool
    own: bool
    kept: int

    @property
    def edited(self) -> bool:
        return bool(self.artifact.author)


def offer_artifacts(report: Report) -> list[ArtifactDraft]:
    """Return the report and its tables, without those that are empty."""
    made = [ArtifactDraft("report", "markdown", report.title, report.markdown)]
    if report.status is ReportStatus.CANCELLED:
        return made
    tables = [
        ("figures", "Key figures", figures_table(report)),
        ("claims", "Statements and sources", build_claims_table(report)),
        ("findings", "Findings by question", findings_table(report)),
        ("sources", "Sources", sources_table(report)),
    ]
    return made + [
        ArtifactDraft(name, "table", title, table.model_dump_json()) for name, title, table in tables if table.rows
    ]


def resolve_artifacts(
    made: Sequence[ArtifactDraft], kept: Iterable[Artifact], thread: str, when: datetime
) -> dict[str, CurrentArtifact]:
    """Return artifacts by name. `kept` has the last version of each, and the last one that OpenAssay made; `when` is
    when the report was."""
    in_order = sorted(kept, key=lambda one: one.version)
    last = {artifact.name: artifact for artifact in in_order}
    base = {artifact.name: artifact for artifact in in_order if not artifact.author}
    versions = {name: artifact.version for name, artifact in last.items()}
    offers = {
        one.name: Artifact(thread=thread, version=versions.get(one.name, 0) + 1, created=when, **one._asdict())
        for one in made
    }
    names = dict.fromkeys([*offers, *last])
    return {name: _resolve_artifact(offers.get(name), last.get(name), base.get(name)) for name in names}


def _resolve_artifact(offer: Artifact | None, last: Artifact | None, base: Artifact | None) -> CurrentArtifact:
    is_new = offer is not None and (base is None or base.content != offer.content)
    fresh = offer if is_new else None
    is_edited = last is not None and bool(last.author)
    now = last if is_edited else fresh or base
    assert now is not None  # noqa: S101  # a name is of an offer or of something kept
    return CurrentArtifact(
        now, fresh, outdated=is_edited and base is not None and (is_new or offer is None),
        own=base is None and offer is None, kept=last.version if last else 0,
    )  # fmt: skip


def figures_table(report: Report) -> ArtifactTable:
    rows = [(one.what, one.value, one.when, one.mark, one.disputed, " ".join(one.citations)) for one in report.figures]
    return build_table("what: What, value: Value, when: When, mark: Mark, disputed: Disputed, sources: Sources", rows)


def findings_table(report: Report) -> ArtifactTable:
    """What each sub-question has brought, and which brought nothing."""
    rows: list[tuple[Cell, ...]] = []
    for question in report.plan.questions if report.plan else ():
        found = [claim for claim in report.claims if question.id in claim.questions and claim.mark]
        for claim in found:
            cited = " ".join(dict.fromkeys(span.source for span in claim.spans))
            rows.append((question.id, question.text, claim.text, claim.mark, round(claim.confidence, 2), cited))
        if not found:
            rows.append((question.id, question.text, NOTHING, None, None, ""))
    return build_table(
        "id: Id, question: Question, finding: Finding, mark: Mark, confidence: Confidence, sources: Sources", rows
    )


def sources_table(report: Report) -> ArtifactTable:
    rows = [
        (
            one.id, one.title, one.author, one.host, one.published, one.kind, one.primary, round(one.credibility, 2),
            one.group, one.why_used, one.url,
        )
        for one in report.sources
    ]  # fmt: skip
    return build_table(
        "id: Id, title: Title, author: Author, host: Host, published: Published, kind: Kind, primary: Primary, "
        "credibility: Credibility, group: Independent group, why: Why used, url: Address",
        rows,
    )


# A report at a glance: long sections and lists end early, and say how much they leave out.

LONGEST = 600  # characters of a section
MOST = 12  # sources, and key figures


def shorten_report(report: Report) -> Report:
    """The same report where nothing is long."""
    return report.model_copy(
        update={
            "sections": tuple(_shorten_section(section) for section in report.sections),
            "sources": report.sources[:MOST],
            "figures": report.figures[:MOST],
            "notices": (*report.notices, *_list_omissions(report)),
        }
    )


def _shorten_section(section: Section) -> Section:
    kept: list[Sentence] = []
    for sentence in section.sentences:
        if kept and sum(len(one.text) for one in kept) + len(sentence.text) > LONGEST:
            break
        kept.append(sentence)
    more = len(section.sentences) - len(kept)
    if not more:
        return section
    note = Sentence(text=f"… {pluralize(more, 'more sentence')}.", kind="frame", opens=True)
    return section.model_copy(update={"sentences": (*kept, note)})


def _list_omissions(report: Report) -> list[str]:
    counts = {"sources": len(report.sources) - MOST, "key figures": len(report.figures) - MOST}
    return [f"{count} more {name} are not shown here." for name, count in counts.items() if count > 0]
