"""The conclusion: the surest findings, and how far the answer carries."""

from collections.abc import Iterator, Sequence

from assay.model.claim import Claim, Mark
from assay.model.question import Depth
from assay.reasoning.embedded.writing.disputed import Matter
from assay.reasoning.embedded.writing.joining import in_other_words
from assay.reasoning.embedded.writing.voice import Voice
from assay.reasoning.protocol import DraftSentence, WriteRequest
from assay.text.sentences import is_row

SUREST = 2
FEWEST = 8  # statements from which on the surest are worth naming again
NO_FINDINGS = 300  # words of a report that has no room for them


def conclusion(
    request: WriteRequest, claims: Sequence[Claim], matters: Sequence[Matter], target: int, voice: Voice
) -> list[DraftSentence]:
    """How far it carries, in sentences that speak of the research. A quick answer has none."""
    if request.plan.depth is Depth.QUICK:
        return []
    frames = list(_reach(request, claims, matters))
    return frames[:1] if target < NO_FINDINGS else frames[: 2 if voice.brief else len(frames)]


def _reach(request: WriteRequest, claims: Sequence[Claim], matters: Sequence[Matter]) -> Iterator[DraftSentence]:
    total = len(request.plan.questions)
    answered = total - len(request.unanswered)
    told = f"Of {total} sub-questions, {answered} could be answered from the sources read"
    yield DraftSentence(
        text=f"{told}; “{request.unanswered[0]}” is open." if len(request.unanswered) == 1 else f"{told}."
    )
    disputed = list(dict.fromkeys(matter.question for matter in matters if not matter.settled and matter.question))
    if disputed:
        which = f"On “{disputed[0]}” sources disagree" if len(disputed) == 1 else "Where sources disagree"
        yield DraftSentence(
            text=f"{which}{';' if len(disputed) == 1 else ','} both sides are given and none is preferred."
        )
    if any(claim.mark is Mark.CORROBORATED for claim in claims):
        yield DraftSentence(text=f"Statements marked {Mark.CORROBORATED} rest on two or more independent sources.")
    elif claims:
        yield DraftSentence(text="No statement here is confirmed by a second independent source.")


def findings(told: Sequence[Claim], request: WriteRequest, summary: Sequence[DraftSentence]) -> list[DraftSentence]:
    """The surest answers to what was asked first, in words that the summary has not used. What is neither corroborated
    nor told by anybody in other words stands in the body and is not said again."""
    if len(told) < FEWEST:
        return []
    order = {question.id: at for at, question in enumerate(request.plan.questions)}
    said = {sentence.text for sentence in summary}
    options = [
        (claim, in_other_words(claim, said) or claim.text)
        for claim in told
        if claim.mark is not Mark.SINGLE and not is_row(claim.text)
    ]

    def key(option: tuple[Claim, str]) -> tuple[bool, bool, int, float, str]:
        claim, text = option
        asked = min((order[id] for id in claim.questions if id in order), default=len(order))
        return claim.mark is not Mark.CORROBORATED, text == claim.text, asked, -claim.relevance, claim.id

    sure = [(c, text) for c, text in options if text not in said and (c.mark is Mark.CORROBORATED or text != c.text)]
    fresh = sorted(sure, key=key)
    return [
        DraftSentence(text=text, claims=(claim.id,))
        for claim, text in fresh[: 1 if request.style == "executive" else SUREST]
    ]
