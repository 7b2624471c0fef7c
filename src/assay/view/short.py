"""A report at a glance: long sections and lists end early, and say how much they leave out."""

from assay.export.report import Report
from assay.model.report import Section, Sentence

LONGEST = 600  # characters of a section
MOST = 12  # sources, and key figures


def shortened(report: Report) -> Report:
    """The same report where nothing is long."""
    return report.model_copy(
        update={
            "sections": tuple(_shortened(section) for section in report.sections),
            "sources": report.sources[:MOST],
            "figures": report.figures[:MOST],
            "notices": (*report.notices, *_left_out(report)),
        }
    )


def _shortened(section: Section) -> Section:
    kept: list[Sentence] = []
    for sentence in section.sentences:
        if kept and sum(len(one.text) for one in kept) + len(sentence.text) > LONGEST:
            break
        kept.append(sentence)
    more = len(section.sentences) - len(kept)
    if not more:
        return section
    note = Sentence(text=f"… {more} more sentence{'' if more == 1 else 's'}.", kind="frame")
    return section.model_copy(update={"sentences": (*kept, note)})


def _left_out(report: Report) -> list[str]:
    counts = {"sources": len(report.sources) - MOST, "key figures": len(report.figures) - MOST}
    return [f"{count} more {name} are not shown here." for name, count in counts.items() if count > 0]
