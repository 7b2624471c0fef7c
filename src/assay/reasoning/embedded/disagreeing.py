"""Which claims cannot all hold, what settles it, and what the matter is."""

from collections.abc import Sequence

from assay.model.claim import Claim
from assay.model.evidence import Disagreement
from assay.reasoning.embedded.answering import Compared, Sides, compared
from assay.reasoning.protocol import Conflict, Known
from assay.text.names import names
from assay.text.relations import measure, relate, years
from assay.text.words import content_words, stems

OPEN = "unresolved"
BETTER = "studies and official records go before news, news before other pages"
NEWER = "newer supersedes older"
MATTER_WORDS = 9  # of the words two statements share; more is no heading


def about(left: str, right: str) -> str:
    """What two statements share, in the words and the order of the first."""
    shared = set(stems(left)) & set(stems(right))
    small = {word.lower() for name in names(left) for word in name.split()}
    kept = [
        word.strip(".,;:()[]\"“”'’")
        for word in left.split()
        if set(stems(word)) & shared and not any(letter.isdigit() for letter in word)
    ]
    told = [word if word.lower() in small else word.lower() for word in dict.fromkeys(kept)]
    return " ".join(told[:MATTER_WORDS]) or " ".join(content_words(left)[:MATTER_WORDS])


def disagreements(
    claims: Sequence[Claim], conflicts: Sequence[Conflict] = (), known: Known | None = None
) -> list[Disagreement]:
    """A newer figure of the same origin settles a matter; of what still stands, opposites are grouped into sides.

    `conflicts` are what a judge saw that words do not show; what is settled stays settled. With `known`, different
    answers to the question on the same thing are opposites too, and a better kind of source settles a matter.
    """
    known = known or Known()
    settled = _superseded(claims)
    outdated = {matter.sides[1][0] for matter in settled}
    current = [claim for claim in claims if claim.id not in outdated]
    answered = _compared(current, known)
    opposed = [matter for item in answered.disputes if (matter := _of_answers(*item))]
    for at, left in enumerate(current):
        for right in current[at + 1 :]:
            apart = frozenset((left.id, right.id)) in answered.apart and not _measured(left.text, right.text)
            if not apart and relate(left.text, right.text) == "disagree":
                _add(opposed, left, right)
    standing = {claim.text: claim for claim in current}
    for conflict in conflicts:
        if conflict.first != conflict.second and {conflict.first, conflict.second} <= standing.keys():
            _add(opposed, standing[conflict.first], standing[conflict.second], conflict.about)
    by_id = {claim.id: claim for claim in claims}
    return [_weighed(matter, by_id, known) for matter in (*opposed, *settled)]


def _measured(*texts: str) -> bool:
    """Whether each states its uncertainty: measurements of one thing may disagree whenever they were made."""
    found = [measure(text) for text in texts]
    return all(figure is not None and figure.uncertainty is not None for figure in found)


def _compared(claims: Sequence[Claim], known: Known) -> Compared:
    texts = {name: origin.text for name, origin in known.origins.items()}
    groups = {name: origin.group for name, origin in known.origins.items() if origin.group}
    return compared(known.question, claims, texts, groups)


def _of_answers(matter: str, sides: Sides) -> Disagreement | None:
    """None where one claim holds both answers, so that it stands on no side."""
    left, right = (tuple(dict.fromkeys(reading.claim for reading in side)) for side in sides)
    return None if set(left) & set(right) else Disagreement(about=matter, sides=(left, right), resolution=OPEN)


def _superseded(claims: Sequence[Claim]) -> list[Disagreement]:
    """Each outdated claim once, with the newest that replaces it."""
    newest: dict[str, Claim] = {}
    by_id = {claim.id: claim for claim in claims}
    for old in claims:
        for new in claims:
            if relate(new.text, old.text) == "newer":
                best = newest.get(old.id)
                if best is None or max(years(new.text)) > max(years(best.text)):
                    newest[old.id] = new
    return [
        Disagreement(about=about(new.text, by_id[old].text), sides=((new.id,), (old,)), resolution=NEWER, resolved=True)
        for old, new in newest.items()
    ]


def _add(found: list[Disagreement], left: Claim, right: Claim, matter: str = "") -> None:
    """A claim that already stands on one side of a matter gains an opponent; else a new matter is opened."""
    for at, known in enumerate(found):
        if known.resolved:
            continue
        first, second = known.sides
        for mine, other, claim, opponent in ((first, second, left, right), (second, first, left, right),
                                             (first, second, right, left), (second, first, right, left)):  # fmt: skip
            if claim.id in mine:
                if opponent.id in mine:
                    return
                sides = (mine, tuple(dict.fromkeys((*other, opponent.id))))
                found[at] = known.model_copy(update={"sides": sides if mine is first else sides[::-1]})
                return
    matter = matter or about(left.text, right.text)
    found.append(Disagreement(about=matter, sides=((left.id,), (right.id,)), resolution=OPEN))


def _weighed(matter: Disagreement, claims: dict[str, Claim], known: Known) -> Disagreement:
    """Who stands behind each side, and what follows: a better kind of source settles a matter, a majority is told but
    settles nothing, since many may repeat one error."""
    documents = [{span.document for id in side for span in claims[id].spans} for side in matter.sides]
    if not known.origins or not all(documents):
        return matter
    backing = tuple(len({_group(name, known) for name in side}) for side in documents)
    matter = matter.model_copy(update={"backing": backing})
    if matter.resolved:
        return matter
    ranks = [max((known.origins[name].rank for name in side if name in known.origins), default=1) for side in documents]
    if ranks[0] != ranks[1]:
        return _won(matter, ranks[0] > ranks[1], "it rests on a better kind of source: " + BETTER)
    dates = [_published(side, known) for side in documents]
    if all(dates) and dates[0] != dates[1] and _one_publisher(set().union(*documents), known):
        return _won(matter, dates[0] > dates[1], NEWER)
    return matter.model_copy(update={"resolution": _why_open(backing)})


def _won(matter: Disagreement, first: bool, why: str) -> Disagreement:
    order = slice(None) if first else slice(None, None, -1)
    sides, backing = matter.sides[order], matter.backing[order]
    return matter.model_copy(update={"sides": sides, "backing": backing, "resolved": True, "resolution": why})


def _published(documents: set[str], known: Known) -> str:
    """The newest date of a side; none where one of its documents is undated."""
    dates = [known.origins[name].published if name in known.origins else None for name in documents]
    return max(date or "" for date in dates) if all(dates) else ""


def _one_publisher(documents: set[str], known: Known) -> bool:
    hosts = {known.origins[name].host if name in known.origins else "" for name in documents}
    return len(hosts) == 1 and "" not in hosts


def _why_open(backing: Sequence[int]) -> str:
    if backing[0] == backing[1]:
        return OPEN
    most, least = max(backing), min(backing)
    return f"{most} independent sources stand against {least}, and none of them is of a better kind"


def _group(document: str, known: Known) -> str:
    origin = known.origins.get(document)
    return origin.group if origin and origin.group else document
