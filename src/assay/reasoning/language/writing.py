"""Writing: the model's sentences, each bound to verified claims; what it leaves out is told in their own words."""

import re
from collections.abc import Iterator, Mapping, Sequence

from assay.errors import ReasoningError
from assay.model.claim import Claim, Verdict
from assay.model.question import Depth
from assay.reasoning.language.answer import Answer, Line, Numbers, Phrase, Text, Texts, schema
from assay.reasoning.language.prompt import tagged
from assay.reasoning.language.revising import answered, fixes, ignored, wanted
from assay.reasoning.language.step import Job, Step
from assay.reasoning.protocol import Draft, DraftAnswer, DraftSection, DraftSentence, WriteRequest
from assay.text.sentences import sentences
from assay.text.turns import in_turn
from assay.text.words import fold, stems

STEP = Step("write", stage="write", role="writer", thing="draft",
            variables=("question", "sections", "claims", "abstract", "style", "words", "most", "banned", "fixes",
                       "language"),
            purpose="finish")  # fmt: skip
MOST_IN_LITTLE_ROOM = 8  # sentences
QUICK_WORDS = 220
WORDS_EACH = 18  # of a sentence
SHORTEST_ABSTRACT, LONGEST_ABSTRACT = 150, 250  # words, at standard depth and deeper
PARAGRAPH = 4  # sentences
MOST_ANSWERS, ANSWER_WORDS = 2, 12
MOST_CLAIMS, MOST_CLAIMS_IN_LITTLE_ROOM = 4, 1  # behind one sentence
GROUNDED = 0.6
LEAST_SHARED = 2  # stems a sentence shares with a claim that it says
CONCLUSION = "Conclusion"
TITLE_WORDS = frozenset(stems("analysis answer assessment brief comparison evidence findings history known overview "
                              "question report review sources state study summary survey"))  # fmt: skip
STYLES = {
    "academic": "academic: precise, neutral, complete sentences",
    "technical": "technical: figures, units and methods first",
    "executive": "executive: short sentences, what matters for a decision first",
}
_CITATION = re.compile(r"\s*\[\s*\d+(?:\s*,\s*\d+)*\s*\]|\s*[✓⚠]+")


class Written(Answer):
    """The claims come before the text: who has named them writes what they say."""

    section: Text = ""
    claims: Numbers
    text: Line


class Short(Answer):
    claims: Numbers
    text: Phrase


class Writing(Answer):
    title: Phrase = ""
    answers: list[Short] = []
    sentences: list[Written]
    notes: Texts = []


def usable(request: WriteRequest) -> list[Claim]:
    """What may be written: supported, not superseded, and no side of a dispute. A model that is shown one side as a
    fact writes it as one, so the floor tells disputes, with both sides."""
    disputed = contested(request)
    supported = [c for c in request.claims if c.verdict is Verdict.SUPPORTED and not c.superseded_by]
    return [claim for claim in supported if claim.id not in disputed]


def contested(request: WriteRequest) -> set[str]:
    """Claims on the sides of an open dispute that has a supported claim on each."""
    supported = {claim.id for claim in request.claims if claim.verdict is Verdict.SUPPORTED}
    open_ones = [matter.sides for matter in request.disagreements if not matter.resolved]
    whole = [sides for sides in open_ones if len(sides) > 1 and all(supported & set(side) for side in sides)]
    return {id for sides in whole for side in sides for id in side}


class Places:
    """Where a claim belongs: where the floor has put it, else in the section of the first sub-question it answers."""

    def __init__(self, request: WriteRequest, floor: Draft) -> None:
        self._sections = {question.id: question.section for question in reversed(request.plan.questions)}
        self._first = request.plan.sections[0]
        self._by_floor = {
            id: section.title
            for section in floor.sections
            if section.role == "body"
            for sentence in section.sentences
            for id in sentence.claims
        }

    def of(self, claim: Claim) -> str:
        answered = (self._sections[id] for id in claim.questions if id in self._sections)
        return self._by_floor.get(claim.id) or next(answered, self._first)

    def ranked(self, claims: Sequence[Claim]) -> list[Claim]:
        """The best of each section first, so that whatever room there is, none is left out."""
        return in_turn(sorted(claims, key=lambda claim: (-claim.relevance, claim.id)), self.of)


def abstract_title(depth: Depth) -> str:
    return "Summary" if depth is Depth.QUICK else "Abstract"


def job(request: WriteRequest, floor: Draft, small: bool, room: int) -> Job[Writing, Claim, Draft]:
    """`room` is how many words an answer may have; the form's own take a quarter of them."""
    depth = request.plan.depth
    words = min(request.target, room * 3 // 4, QUICK_WORDS if depth is Depth.QUICK else request.target)
    most = MOST_IN_LITTLE_ROOM if small else max(MOST_IN_LITTLE_ROOM, min(150, words // WORDS_EACH + 4))
    places = Places(request, floor)
    names = [abstract_title(depth), *request.plan.sections, *([] if depth is Depth.QUICK else [CONCLUSION])]

    def build(shown: Sequence[Claim]) -> dict[str, str]:
        return {
            "question": tagged("message", request.plan.goal),
            "language": request.language or "the language of the question",
            "sections": "; ".join(names),
            "claims": _claims(shown, places),
            "abstract": f"{abstract_title(depth)}: {_abstract(depth, small)}",
            "style": STYLES[request.style],
            "words": str(words),
            "most": str(most),
            "banned": ", ".join(request.banned) or "none",
            "fixes": fixes(request),
        }

    behind = MOST_CLAIMS_IN_LITTLE_ROOM if small else MOST_CLAIMS
    lists = {
        "sentences": most,
        "claims": behind,
        "notes": len(wanted(request)),
        "answers": 0 if small else MOST_ANSWERS,
    }
    return Job(
        STEP, Writing, schema(Writing, "Draft", lists, {"section": names}), build,
        lambda answer, shown: convert(answer, shown, request, floor, complete=small),
        sources=places.ranked(usable(request)), shorten=_halved,
    )  # fmt: skip


def _abstract(depth: Depth, small: bool) -> str:
    if depth is Depth.QUICK:
        return "one or two sentences that answer the question"
    return "two or three sentences" if small else "150 to 250 words"


def _claims(shown: Sequence[Claim], places: Places) -> str:
    lines = [
        f"[{number}] ({places.of(claim)}) {claim.text}{f' {claim.mark}' if claim.mark else ''}"
        for number, claim in enumerate(shown, 1)
    ]
    return tagged("source", "\n".join(lines))


def _halved(claim: Claim) -> Claim:
    return claim.model_copy(update={"text": claim.text[: max(1, len(claim.text) // 2)]})


def convert(
    answer: Writing, shown: Sequence[Claim], request: WriteRequest, floor: Draft, *, complete: bool = False
) -> Draft:
    """In little room (`complete`) a sentence is kept only if its claims have most of its words, and claims that the
    floor would tell and the model has not are added in their own words."""
    whole = {claim.id: claim for claim in request.claims}  # what was shown may have been shortened
    claims = [whole[claim.id] for claim in shown]
    written = _placed(answer, claims, request, Places(request, floor), strict=complete)
    if not written:
        raise ReasoningError(f"no sentence names a claim; claims are numbered 1 to {len(claims)}")
    title = answer.title if _entitled(answer.title, request) else floor.title
    unmoved = ignored(answer.notes, written, request)
    for place in unmoved.values():
        written.pop(place)
    sections = tuple(_sections(written, request, floor, complete))
    answers = tuple(_short(answer, claims)) or floor.answers
    return Draft(title=title, answers=answers, sections=sections, notes=answered(answer.notes, request, unmoved))


def _short(answer: Writing, claims: Sequence[Claim]) -> Iterator[DraftAnswer]:
    """Short answers whose words stand in what they name; whether a passage has them too is checked later."""
    for item in answer.answers:
        bound = [claims[number - 1] for number in item.claims if 1 <= number <= len(claims)]
        text = _CITATION.sub("", item.text).strip(" .")
        named = [claim for claim in bound if text and fold(text) in fold(claim.text)]
        if named and len(text.split()) <= ANSWER_WORDS:
            yield DraftAnswer(text=text, claims=tuple(claim.id for claim in named))


def _entitled(title: str, request: WriteRequest) -> bool:
    """A title is not bound to claims, so each of its words has to be the question's or the plan's."""
    plan = request.plan
    texts = (plan.goal, *plan.sections, *(question.in_context for question in plan.questions))
    known = {stem for text in texts for stem in stems(text)} | TITLE_WORDS
    return bool(title) and set(stems(title)) <= known and not set(title) & set("<>[]{}") and not _banned(title, request)


def _placed(
    answer: Writing, claims: Sequence[Claim], request: WriteRequest, places: Places, *, strict: bool
) -> dict[str, list[DraftSentence]]:
    """Sentences by section, none twice but in the conclusion. One without a claim behind it states nothing that could
    be checked, so it is left out."""
    titles = {fold(name): name for name in (*request.plan.sections, abstract_title(request.plan.depth), CONCLUSION)}
    placed: dict[str, list[DraftSentence]] = {}
    said: set[str] = set()
    for item in answer.sentences:
        named = [claims[number - 1] for number in item.claims if 1 <= number <= len(claims)]
        for text, bound in _bound(_CITATION.sub("", item.text), named, claims):
            title = titles.get(fold(item.section), places.of(bound[0]))
            own = _banned(text, request) or (strict and not _grounded(text, bound))
            sentence = _own_words(bound[0]) if own else DraftSentence(text=text, claims=tuple(c.id for c in bound))
            if sentence.text not in said or title == CONCLUSION:
                placed.setdefault(title, []).append(sentence)
            said.add(sentence.text)
    return placed


def _bound(text: str, named: Sequence[Claim], claims: Sequence[Claim]) -> Iterator[tuple[str, Sequence[Claim]]]:
    """Small models write a paragraph where a sentence was asked for. It is taken apart, and each sentence goes to the
    claims it shares most words with, whichever were named."""
    pieces = [piece.text for piece in sentences(text)]
    if len(pieces) == 1 and named:
        yield pieces[0], named
    for piece in pieces if len(pieces) > 1 and named else ():
        said = set(stems(piece))
        shared = {claim.id: len(said & set(stems(claim.text))) for claim in claims}
        most = max(shared.values())
        if most >= LEAST_SHARED and piece.rstrip("\"'”’)]").endswith((".", "!", "?", "。")):  # the last may be cut off
            yield piece, [claim for claim in claims if shared[claim.id] == most][:MOST_CLAIMS]


def _own_words(claim: Claim) -> DraftSentence:
    return DraftSentence(text=claim.text, claims=(claim.id,))


def _grounded(text: str, bound: Sequence[Claim]) -> bool:
    """Whether most words of a sentence are its claims' own. A small model explains what no claim says."""
    said = set(stems(text))
    return len(said & {stem for claim in bound for stem in stems(claim.text)}) >= GROUNDED * len(said)


def _banned(text: str, request: WriteRequest) -> bool:
    return any(re.search(rf"\b{re.escape(word)}", text, re.I) for word in request.banned)


def _sections(
    written: Mapping[str, Sequence[DraftSentence]], request: WriteRequest, floor: Draft, complete: bool
) -> Sequence[DraftSection]:
    """The model's sections in the order of the plan; disputes and nulls are the floor's, so that they are always
    told; a section the model left empty is the floor's as well."""
    own = {section.role: section for section in floor.sections if section.role != "body"}
    # What a summary tells beforehand a section still has to say.
    apart = (abstract_title(request.plan.depth), CONCLUSION)
    told = [sentence for title, sentences in written.items() if title not in apart for sentence in sentences]
    said = {id for sentence in told for id in sentence.claims}
    spare = {
        section.title: tuple(s for s in section.sentences if not said & set(s.claims))
        for section in floor.sections
        if section.role == "body"
    }
    name = abstract_title(request.plan.depth)
    spare_abstract = own["abstract"].sentences if "abstract" in own else ()
    dispute = _dispute(spare_abstract, contested(request))
    abstract = (*dispute, *_abridged(written.get(name, ()), spare_abstract, request, _length(dispute)))
    closing = own["conclusion"].sentences if "conclusion" in own else ()
    sections = [
        DraftSection(title=name, role="abstract", sentences=abstract),
        *(
            DraftSection(title=title, sentences=_body(written.get(title, ()), spare.get(title, ()), complete))
            for title in request.plan.sections
        ),
        *(own[role] for role in ("disagreements", "not_found") if role in own),
        DraftSection(title=CONCLUSION, role="conclusion", sentences=(*written.get(CONCLUSION, ()), *closing)),
    ]
    return [section for section in sections if section.sentences]


def _body(told: Sequence[DraftSentence], spare: Sequence[DraftSentence], complete: bool) -> tuple[DraftSentence, ...]:
    """What the model wrote, in paragraphs; where it wrote nothing, the floor's."""
    if not told:
        return tuple(spare)
    parts = tuple(s.model_copy(update={"opens": at % PARAGRAPH == 0}) for at, s in enumerate(told))
    return (*parts, *(s for s in spare if s.claims)) if complete else parts


def _dispute(spare: Sequence[DraftSentence], disputed: set[str]) -> tuple[DraftSentence, ...]:
    """What the floor's abstract says of a dispute: both sides, and the sentence that announces them."""
    sides = [at for at, sentence in enumerate(spare) if disputed & set(sentence.claims)]
    return tuple(spare[max(0, sides[0] - 1) : sides[-1] + 1]) if len(sides) > 1 else ()


def _length(sentences: Sequence[DraftSentence]) -> int:
    return sum(len(sentence.text.split()) for sentence in sentences)


def _abridged(
    told: Sequence[DraftSentence], spare: Sequence[DraftSentence], request: WriteRequest, words: int
) -> tuple[DraftSentence, ...]:
    """At most 250 words; where fewer than 150 were written and a report is wanted, sentences of the floor join them.
    `words` are told already."""
    kept: list[DraftSentence] = []
    said = {id for sentence in told for id in sentence.claims} | contested(request)
    spare = [sentence for sentence in spare if sentence.claims]
    short = SHORTEST_ABSTRACT if told and request.plan.depth is not Depth.QUICK else 0
    for sentence in (*told, *(s for s in spare if not said & set(s.claims))):
        length = len(sentence.text.split())
        if kept and (words + length > LONGEST_ABSTRACT or (len(kept) >= len(told) > 0 and words >= short)):
            break
        kept.append(sentence)
        words += length
    return tuple(kept)
