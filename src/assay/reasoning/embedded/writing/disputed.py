"""What the sources disagree on: every matter with both sides, who stands behind each, and why it is open."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from assay.model.claim import Claim, Mark
from assay.model.evidence import Disagreement
from assay.model.plan import Plan
from assay.reasoning.embedded.writing.joining import CONTRAST, can_follow, common_words, said
from assay.reasoning.protocol import DraftSentence
from assay.text.relations import years

TITLE = "What the sources disagree on"
SHARE = 4  # a quarter of the words
PER_SIDE = 3  # statements
MOST_REPLACED = 4
ORDINALS = "first second third".split()
UNSAID = ("", "unresolved", "open", "newer supersedes older")  # resolutions that give no reason a reader would want

Told = tuple[DraftSentence, ...]


class Matter(NamedTuple):
    sides: tuple[tuple[Claim, ...], ...]
    settled: bool
    reason: str
    question: str  # the sub-question it is about

    @property
    def claims(self) -> set[str]:
        return {claim.id for side in self.sides for claim in side}


def matters(disagreements: Sequence[Disagreement], claims: dict[str, Claim], plan: Plan) -> list[Matter]:
    """Those that have a statement on each side, open ones first."""
    found = []
    for item in disagreements:
        sides = tuple(tuple(sorted((claims[id] for id in side if id in claims), key=_sureness)) for side in item.sides)
        if len(sides) > 1 and all(sides):
            found.append(Matter(sides, item.resolved, item.resolution, _question(sides, plan)))
    return sorted(found, key=lambda matter: matter.settled)


def _sureness(claim: Claim) -> tuple[bool, float, str]:
    """Who reads one statement of a side should read its surest."""
    return claim.mark is not Mark.CORROBORATED, -claim.relevance, claim.id


def _question(sides: Sequence[Sequence[Claim]], plan: Plan) -> str:
    """The first sub-question that every side answers, or any."""
    asked = [{id for claim in side for id in claim.questions} for side in sides]
    for wanted in (set.intersection(*asked), set.union(*asked)):
        for question in plan.questions:
            if question.id in wanted:
                return question.text
    return ""


def contested(found: Sequence[Matter]) -> set[str]:
    """What must not be told as plain fact: all sides of an open matter, and what lost in a settled one."""
    return {
        claim.id
        for matter in found
        for side in (matter.sides[1:] if matter.settled else matter.sides)
        for claim in side
    }


def disputed(found: Sequence[Matter], words: int, told: Collection[str] = ()) -> Told:
    """As many matters as a quarter of the words holds, but never none: where there is a dispute, it is shown. `told`
    are the claims that were told before."""
    room, taken = words // SHARE, 0
    sentences: list[DraftSentence] = []
    for versions in _versions(found, set(told)):
        known = {id for sentence in sentences for id in sentence.claims}
        short, full = (_fresh(version, known) for version in versions)
        chosen = full if taken + _words(full) <= room else short
        if chosen and (not taken or taken + _words(chosen) <= room):
            taken += _words(chosen)
            sentences += chosen
    return tuple(sentences)


def _fresh(version: Told, known: Collection[str]) -> Told:
    """What a section has told it does not tell again. Of a matter with one side told, the other is still due."""
    frame, *facts = version
    fresh = [sentence for sentence in facts if not set(sentence.claims) <= set(known)]
    if len(fresh) == len(facts):
        return version
    if not any(sentence.claims for sentence in fresh):
        return ()
    lead = frame.text.partition(";")[0].rstrip(".")
    bare = [s.model_copy(update={"text": _upper(s.text.removeprefix(CONTRAST))}) for s in fresh if s.claims]
    return (frame.model_copy(update={"text": f"{lead}: what follows does not agree with a statement above."}), *bare)


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _words(sentences: Sequence[DraftSentence]) -> int:
    return sum(len(sentence.text.split()) for sentence in sentences)


def _versions(found: Sequence[Matter], told: set[str]) -> Iterator[tuple[Told, Told]]:
    """Each matter in short, and in full where it takes more. No frame is said twice: a sentence that a section has
    already is left out of it."""
    asked: list[str] = []
    for matter in (matter for matter in found if not matter.settled):
        asked.append(matter.question)
        lead = _lead(matter, asked.count(matter.question))
        yield tuple(_open(matter, lead, 1)), tuple(_open(matter, lead, PER_SIDE))
    settled = [matter for matter in found if matter.settled]
    shown = told | {claim for matter in found if not matter.settled for claim in matter.claims}
    above = [matter for matter in settled if matter.sides[0][0].id in shown]
    if above:
        yield tuple(_replaced(above[:1])), tuple(_replaced(above[:MOST_REPLACED]))
    for matter in [matter for matter in settled if matter not in above][:PER_SIDE]:
        version = tuple(_settled(matter))
        yield version, version


def _lead(matter: Matter, number: int) -> str:
    if number == 1:
        return (
            f"On “{matter.question}” the sources do not agree" if matter.question else "Here the sources do not agree"
        )
    if number <= len(ORDINALS):
        return f"The sources also differ on a {ORDINALS[number - 1]} point"
    return f"That makes {number} points on which the sources differ"


def _open(matter: Matter, lead: str, most: int) -> Iterator[DraftSentence]:
    who = f"{_behind(matter)}, and none read in this run settles it." if most > 1 else "."
    yield DraftSentence(text=f"{lead}{who}", opens=True)
    lower = common_words([claim for side in matter.sides for claim in side])
    for number, side in enumerate(matter.sides):
        for at, claim in enumerate(side[:most]):
            joint = CONTRAST if number and not at and can_follow(claim.text, lower) else ""
            yield said(claim, joint)
    if most > 1 and matter.reason not in UNSAID:
        yield DraftSentence(text=f"Why the sources leave this open: {matter.reason.rstrip('.')}.")


def _behind(matter: Matter) -> str:
    """Who: counted, because one text may have many copies."""
    backing = [_backing(side) for side in matter.sides]
    if len(set(backing)) == 1:
        return f"; each view rests on {backing[0]}"
    if len(backing) == 2:
        return f"; the first view rests on {backing[0]}, the other on {backing[1]}"
    return "; there are more than two views"


def _backing(side: Sequence[Claim]) -> str:
    if any(claim.mark is Mark.CORROBORATED for claim in side):
        return "two or more independent sources"
    several = len({span.document for claim in side for span in claim.spans}) > 1
    return "several documents" if several else "one source"


def _replaced(settled: Sequence[Matter]) -> Iterator[DraftSentence]:
    """What stands no more; what took its place is told above."""
    yield DraftSentence(
        text="What was published before has been superseded by newer statements of the same origin, told above.",
        opens=True,
    )
    older = {side[0].id: side[0] for matter in settled for side in matter.sides[1:]}
    yield from map(said, sorted(older.values(), key=lambda claim: min(years(claim.text), default=0)))


def _settled(matter: Matter) -> Iterator[DraftSentence]:
    reason = "" if matter.reason in UNSAID else f": {matter.reason.rstrip('.')}"
    yield DraftSentence(
        text=f"Here the statement given last stands, and what comes before it does not{reason}.", opens=True
    )
    yield from (said(side[0]) for side in matter.sides[1:])
    yield said(matter.sides[0][0])
