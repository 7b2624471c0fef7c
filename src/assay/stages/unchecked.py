"""The words of a report that no passage stands behind: refused statements, a reviewer's remarks, opinions on sources.

They are told, since a reader may want them, but a page that got a model to repeat something must not get it further."""

from collections.abc import Callable

from assay.model.claim import Verdict
from assay.model.report import Critique, Issue, ReportClaim, ReportData, SourceCard
from assay.trust.taming import tamed, vocabulary

Tame = Callable[[str], str]


def unchecked_tamed(report: ReportData) -> ReportData:
    known = vocabulary(
        report.question, report.title, report.plan.model_dump_json() if report.plan else "", *_published(report)
    )

    def tame(text: str) -> str:
        return tamed(text, known)

    return report.model_copy(
        update={
            "claims": tuple(_claim(claim, tame) for claim in report.claims),
            "sources": tuple(_card(card, tame) for card in report.sources),
            "disputes": tuple(one.model_copy(update={"about": tame(one.about)}) for one in report.disputes),
            "review": _review(report.review, tame),
            "issues": tuple(_issue(issue, tame) for issue in report.issues),
        }
    )


def _published(report: ReportData) -> list[str]:
    sentences = [sentence.text for section in report.sections for sentence in section.sentences]
    quotes = [span.quote for claim in report.claims for span in claim.spans if claim.verdict is Verdict.SUPPORTED]
    return [*sentences, *quotes, *(f"{card.title} {card.host} {card.kind}" for card in report.sources)]


def _claim(claim: ReportClaim, tame: Tame) -> ReportClaim:
    if claim.verdict is Verdict.SUPPORTED:
        return claim
    return claim.model_copy(update={"text": tame(claim.text), "reasons": tuple(map(tame, claim.reasons))})


def _card(card: SourceCard, tame: Tame) -> SourceCard:
    """Only an opinion is a model's; the other reasons are ours, and may name a publication."""
    reasons = tuple(tame(text) if text.startswith("judged lower") else text for text in card.credibility_reasons)
    return card.model_copy(update={"credibility_reasons": reasons})


def _review(review: Critique | None, tame: Tame) -> Critique | None:
    if review is None:
        return None
    return review.model_copy(update={"issues": tuple(_issue(issue, tame) for issue in review.issues)})


def _issue(issue: Issue, tame: Tame) -> Issue:
    return issue.model_copy(
        update={"location": tame(issue.location), "description": tame(issue.description), "fix": tame(issue.fix)}
    )
