"""Which sub-questions a report has no answer to: one list for the writer, the reviewer and the reader."""

from collections.abc import Sequence

from assay.model.claim import Claim, Mark, Verdict
from assay.model.evidence import ANSWERED
from assay.model.plan import Plan, SubQuestion
from assay.state import State
from assay.text.asked import has_name, kinds, named, proper, shows, span
from assay.text.relations import years
from assay.text.words import stems

BORNE_OUT = 0.6  # confidence of a claim that one source alone may answer with
TO_THE_POINT = 0.5  # relevance of one


def unanswered(state: State) -> tuple[str, ...]:
    """Those no supported claim speaks to, and those that were found wanting and have no claim that answers: what was
    verified since may have settled what the analysis missed."""
    plan = Plan.model_validate(state["plan"])
    claims = [Claim.model_validate(item) for item in state["claims"] if item["verdict"] == Verdict.SUPPORTED]
    wanting = set((state["analysis"] or {}).get("unanswered", ()))
    return tuple(question.text for question in plan.questions if not _answered(question, claims, wanting, state))


def _answered(question: SubQuestion, claims: Sequence[Claim], wanting: set[str], state: State) -> bool:
    own = [claim for claim in claims if question.id in claim.questions]
    weak = question.text in wanting or state["coverage"].get(question.id, 1.0) < ANSWERED
    return any(_answers(question, claim) for claim in own) if weak else bool(own)


def _answers(question: SubQuestion, claim: Claim) -> bool:
    """Well borne out, to the point, and with the kind of answer, the names and the years that are asked for."""
    sure = claim.mark is Mark.CORROBORATED or claim.confidence >= BORNE_OUT
    said = {stem for text in (claim.text, *(span.quote for span in claim.spans)) for stem in stems(text)}
    asked, told = span(question.in_context), years(claim.text)
    return (
        sure
        and claim.relevance >= TO_THE_POINT
        and all(shows(kind, claim.text) for kind in kinds(question.text))
        and all(has_name(proper(name), said) for name in named(question.text))
        and (asked is None or asked.meet(told))
    )
