"""A thread's report as it leaves the server."""

from assay.export.report import Report
from assay.server.paths import hidden
from assay.stages.approve import SAID
from assay.stages.considered import CONSIDERED
from assay.text.redaction import Redaction

_OF_THE_PERSON = (CONSIDERED, SAID)


def shown_report(report: Report, redaction: Redaction) -> Report:
    """Of files on the server's disk, only their names; of secrets nothing. Before it is written out: Markdown escapes
    what a secret would be known by."""
    return Report.model_validate(redaction.plain(hidden(report.plain())))


def linked_report(report: Report, redaction: Redaction) -> Report:
    """For whoever has a link: nothing of how it was asked and looked for, and nothing of the person who did."""
    shown = shown_report(report, redaction)
    made = shown.provenance.model_copy(update={"queries": (), "checkpoints": ()})
    notices = tuple(notice for notice in shown.notices if not notice.startswith(_OF_THE_PERSON))
    return shown.model_copy(update={"plan": None, "errors": (), "notices": notices, "provenance": made})
