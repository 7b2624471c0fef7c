"""The abstract: what a reader needs who reads nothing else."""

from collections.abc import Iterator, Sequence

from assay.model.claim import Claim, Mark
from assay.model.question import Depth
from assay.reasoning.embedded.writing.disputed import Matter
from assay.reasoning.embedded.writing.joining import CONTRAST, can_follow, common_words, in_other_words, said
from assay.reasoning.embedded.writing.voice import Voice
from assay.reasoning.protocol import DraftSentence, WriteRequest
from assay.text.sentences import is_row

MOST_WORDS = 210  # of 150 to 250
SHARE = 5  # a fifth of the words
OF_ALL = 0.5  # of what the report tells: more would be the report once more
NO_ABSTRACT = 300  # a report shorter than this is its own summary
COUNTS = "none one two three four five six".split()
FEWEST = 4  # statements of a report worth summing up


def room(request: WriteRequest, target: int) -> int:
    """Words it may have; a quick answer needs none."""
    if request.plan.depth is Depth.QUICK or target < NO_ABSTRACT:
        return 0
    return min(MOST_WORDS, target // SHARE)


def abstract(
    told: Sequence[Claim], matters: Sequence[Matter], request: WriteRequest, most: int, voice: Voice
) -> list[DraftSentence]:
    """The best statement of each sub-question and the first dispute, then the best of the rest. `told` are the claims
    of the body; corroborated ones come first, in the words of another source where there are some."""
    open_ones = [matter for matter in matters if not matter.settled]
    disputed = {claim.id: claim for matter in open_ones for side in matter.sides for claim in side}
    matter = sum(len(claim.text.split()) for claim in (*told, *disputed.values()))
    left = min(most, int(matter * OF_ALL))
    sentences: list[DraftSentence] = []
    for group in _groups(told, open_ones[:1], request):
        words = sum(len(sentence.text.split()) for sentence in group)
        if words <= left:
            left -= words
            opens = voice.brief or not sentences  # point by point, or one paragraph
            sentences += [group[0].model_copy(update={"opens": opens}), *group[1:]]
    return sentences


def _groups(told: Sequence[Claim], disputes: Sequence[Matter], request: WriteRequest) -> Iterator[list[DraftSentence]]:
    """In the order of the sub-questions; a dispute stands at the sub-question it is about."""
    ranked = sorted(
        (claim for claim in told if not is_row(claim.text)),
        key=lambda claim: (claim.mark is not Mark.CORROBORATED, -claim.relevance, claim.id),
    )
    led: set[str] = set()
    waiting = list(disputes)
    for question in request.plan.questions:
        yield from (_dispute(matter) for matter in waiting if matter.question == question.text)
        waiting = [matter for matter in waiting if matter.question != question.text]
        lead = next((claim for claim in ranked if question.id in claim.questions and claim.id not in led), None)
        if lead is not None:
            led.add(lead.id)
            yield [_retold(lead)]
    yield from map(_dispute, waiting)
    yield from ([_retold(claim)] for claim in ranked if claim.id not in led)


def _retold(claim: Claim) -> DraftSentence:
    return said(claim, text=in_other_words(claim) or "")


def _dispute(matter: Matter) -> list[DraftSentence]:
    """A statement of each side, said to be disputed: neither stands as fact."""
    one, *others = (side[0] for side in matter.sides)
    lower = common_words([one, *others])
    count = COUNTS[len(others) + 1] if len(others) + 1 < len(COUNTS) else "many"
    frame = DraftSentence(text=f"The sources disagree, as the next {count} statements show.")
    return [frame, _retold(one), *(_against(other, lower) for other in others)]


def _against(claim: Claim, lower: frozenset[str]) -> DraftSentence:
    text = in_other_words(claim) or claim.text
    return said(claim, CONTRAST if can_follow(text, lower) else "", text=text)
