"""The claims of a moment, each with the passages it rests on."""

from collections.abc import Mapping

from assay.model.report import ReportClaim, ReportSpan
from assay.state import Plain
from assay.view.records import DraftView
from assay.view.shown import Shown, text


def claims(shown: Shown, draft: DraftView | None) -> tuple[ReportClaim, ...]:
    """Those the draft tells come first: should there be no room for all, nobody looks for the others."""
    ids = dict(shown.many("sources", lambda source: (text(source["document"]), text(source["id"]))))
    found = shown.many("claims", lambda claim: _claim(claim, ids))
    told = {name for section in draft.sections for one in section.sentences for name in one.claims} if draft else set()
    ordered = sorted(found, key=lambda claim: claim.id not in told)
    return tuple(_short(claim, shown) for claim in shown.first("claims", ordered))


def _claim(claim: Plain, ids: Mapping[str, str]) -> ReportClaim:
    def placed(name: str) -> tuple[ReportSpan, ...]:
        return tuple(ReportSpan(**span, source=ids.get(span["document"], "")) for span in claim.get(name, ()))

    kept = {name: value for name, value in claim.items() if name in ReportClaim.model_fields}
    return ReportClaim(**{**kept, "spans": placed("spans"), "against": placed("against")})


def _short(claim: ReportClaim, shown: Shown) -> ReportClaim:
    """Passages are whole or not there: one that is cut would not be what its snapshot says."""
    return claim.model_copy(
        update={"spans": shown.first("passages", claim.spans), "against": shown.first("passages", claim.against)}
    )
