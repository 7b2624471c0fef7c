"""The short answers of a report: in words of a passage that bears the claim out, asserted only if undisputed."""

from collections.abc import Mapping, Sequence

from assay.model.claim import Claim, Verdict
from assay.model.evidence import Disagreement
from assay.model.report import Answer
from assay.reasoning.protocol import DraftAnswer
from assay.trust.quotes import find

LONGEST = 12  # words
SEVERAL = 2  # independent sources


def checked(answers: Sequence[DraftAnswer], claims: Mapping[str, Claim]) -> tuple[DraftAnswer, ...]:
    """Those whose words stand in a span of every claim they name; all such claims are supported."""
    return tuple(answer for answer in answers if _stands(answer, claims))


def _stands(answer: DraftAnswer, claims: Mapping[str, Claim]) -> bool:
    bound = [claims.get(name) for name in answer.claims]
    return (
        bool(bound)
        and len(answer.text.split()) <= LONGEST
        and all(
            claim is not None
            and claim.verdict is Verdict.SUPPORTED
            and any(find(answer.text, span.quote) for span in claim.spans)
            for claim in bound
        )
    )


def told(
    answers: Sequence[DraftAnswer],
    claims: Mapping[str, Claim],
    ids: Mapping[str, str],
    matters: Sequence[Disagreement] = (),
) -> tuple[Answer, ...]:
    """`ids` are the sources' by document; `matters` say how many independent sources stand on each side."""
    return tuple(_told(answer, [claims[name] for name in answer.claims], ids, matters) for answer in answers)


def _told(
    answer: DraftAnswer, bound: Sequence[Claim], ids: Mapping[str, str], matters: Sequence[Disagreement]
) -> Answer:
    return Answer(
        text=answer.text,
        about=answer.about,
        claims=answer.claims,
        citations=tuple(dict.fromkeys(ids[span.document] for claim in bound for span in claim.spans)),
        mark=bound[0].mark,
        disputed=_is_disputed(bound, matters),
    )


def _is_disputed(bound: Sequence[Claim], matters: Sequence[Disagreement]) -> bool:
    """One that several independent sources give is asserted against fewer; all others that somebody contradicts are
    only shown. A contradiction nobody has weighed counts as one."""
    names = {claim.id for claim in bound}
    weighed: set[str] = set()
    for matter in matters:
        for side, own in enumerate(matter.sides):
            if not matter.resolved and names & set(own):
                if not _prevails(matter, side):
                    return True
                weighed |= {name for other in matter.sides if other is not own for name in other}
    return any(claim.superseded_by or set(claim.disputed_by) - weighed for claim in bound)


def _prevails(matter: Disagreement, side: int) -> bool:
    if len(matter.backing) != len(matter.sides):
        return False
    others = [count for at, count in enumerate(matter.backing) if at != side]
    return matter.backing[side] >= SEVERAL and matter.backing[side] > max(others)
