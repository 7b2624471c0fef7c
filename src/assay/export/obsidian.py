"""A report as a note for an Obsidian vault: properties, tags, and links that stay in the note."""

import re
from collections.abc import Sequence

from assay.export.frontmatter import day, front_matter
from assay.export.markdown import Dialect, slug
from assay.export.parts import address, printable
from assay.model.report import ReportData


def render(report: ReportData) -> str:
    """A source that is no page of the web goes by its title."""
    about = {
        "title": printable(report.title),
        "aliases": [printable(report.title)],
        "question": printable(report.question),
        "date": day(report.metadata.finished),
        "status": str(report.status),
        "confidence": report.confidence,
        "confidence_score": round(report.confidence_score, 2),
        "thread": printable(report.provenance.thread),
        "tags": ["assay", f"assay/{report.status}".replace("_", "-"), f"assay/confidence-{report.confidence}"],
        "sources": [printable(address(card) or card.title) for card in report.sources],
    }
    return front_matter(about) + _Note(report).body()


class _Note(Dialect):
    """Marked in Obsidian besides: ==this==, %%this%%, $this$, and ^this where it ends a line. A source has a block id,
    such as ^s1, and a statement ^c1, so that other notes can lead to them."""

    special = re.compile(r"([\\`*_\[\]<>|#~$%=^]|&(?=#?\w+;))")

    def cited(self, sources: Sequence[str]) -> str:
        return " ".join(rf"[\[{self.plain(source)}\]](#^{slug(source)})" for source in sources)

    def anchored(self, id: str, text: str) -> str:
        return f"{text} ^{slug(id)}"

    def named(self, id: str, text: str) -> str:
        return self.anchored(id, text)
