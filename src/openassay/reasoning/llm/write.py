"""Writing: the model's sentences, each bound to verified claims; what it leaves out is told in their own words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, get_args

from openassay.errors import ReasoningError
from openassay.models.evidence import Claim, Verdict
from openassay.models.plan import Depth
from openassay.models.report import Critique, Issue
from openassay.reasoning.base import (
    APPROVE,
    REVISE,
    CritiqueRequest,
    Draft,
    DraftAnswer,
    DraftSection,
    DraftSentence,
    WriteRequest,
    recommend,
)
from openassay.reasoning.llm.forms import (
    Line,
    Numbers,
    OutputForm,
    Phrase,
    Score,
    Text,
    Texts,
    build_schema,
    choice_field,
    match_option,
)
from openassay.reasoning.llm.step import Job, ReasoningStep, number_lines, wrap_tag
from openassay.reasoning.rules.critique import (
    WEIGHTS,
    CheckResult,
    cap_scores,
    weigh_scores,
)
from openassay.text.sentences import split_sentences
from openassay.text.words import fold, interleave_groups, stems

# Reviewing a draft: the model's scores, with what can be counted on top. Checks add doubt, they never take it away.

REVIEW_STEP = ReasoningStep("critique", stage="review", role="reviewer", thing="review",
            variables=("question", "questions", "draft", "open", "words", "most", "today"),
            purpose="finish")  # fmt: skip
CATEGORIES = get_args(Issue.model_fields["category"].annotation)
SEVERITIES = get_args(Issue.model_fields["severity"].annotation)
MOST_ISSUES, MOST_ISSUES_SMALL = 10, 3


class IssueForm(OutputForm):
    category: Text = choice_field(CATEGORIES)
    severity: Text = choice_field(("minor", *(name for name in SEVERITIES if name != "minor")))
    location: Phrase = ""
    description: Line
    fix: Line = ""


class ReviewForm(OutputForm):
    accuracy: Score
    completeness: Score
    coherence: Score
    citation: Score
    methodology: Score
    style: Score
    issues: list[IssueForm] = []
    potential: Score = 0.0


class DraftLine(NamedTuple):
    section: str
    text: str
    behind: str  # the claims it rests on, where it says them in other words


def build_review_job(
    request: CritiqueRequest, counted: CheckResult, small: bool
) -> Job[ReviewForm, DraftLine, Critique]:
    most = MOST_ISSUES_SMALL if small else MOST_ISSUES

    def build(shown: Sequence[DraftLine]) -> dict[str, str]:
        return {
            "question": wrap_tag("message", request.plan.goal),
            "questions": wrap_tag("message", number_lines(question.text for question in request.plan.questions)),
            "draft": wrap_tag("draft", _format_draft(shown)),
            "open": "; ".join(request.unanswered) or "none",
            "words": str(request.words),
            "most": str(most),
            "today": request.today.isoformat() if request.today else "not known",
        }

    severities = [name for name in SEVERITIES if not (small and name == "critical")]
    form = build_schema(ReviewForm, "Review", {"issues": most}, {"severity": severities})
    return Job(
        REVIEW_STEP,
        ReviewForm,
        form,
        build,
        lambda answer, _: convert_review(answer, counted, severities, revisions=request.revisions, excused=small),
        sources=_list_lines(request),
        shorten=_halve_line,
    )


def _list_lines(request: CritiqueRequest) -> list[DraftLine]:
    texts = {claim.id: claim.text for claim in request.claims}
    return [
        DraftLine(
            section.title,
            sentence.text,
            _describe_basis(sentence.text, [texts[id] for id in sentence.claims if id in texts]),
        )
        for section in request.draft.sections
        for sentence in section.sentences
    ]


def _describe_basis(text: str, claims: Sequence[str]) -> str:
    return "" if text in claims else "; ".join(claims)


def _format_draft(lines: Sequence[DraftLine]) -> str:
    told, section = [], None
    for line in lines:
        if line.section != section:
            section = line.section
            told.append(f"## {section}")
        told.append(f"{line.text} (rests on: {line.behind})" if line.behind else line.text)
    return "\n".join(told)


def _halve_line(line: DraftLine) -> DraftLine:
    return line._replace(text=line.text[: max(1, len(line.text) // 2)], behind="")


def convert_review(
    answer: ReviewForm, counted: CheckResult, severities: Sequence[str], *, revisions: int = 0, excused: bool = False
) -> Critique:
    """A low mark without a reason is a fault of its own, unless a small model gave it: those mark at random. Whatever
    it gives, no criterion has more than the checks leave it, and the whole no more than the evidence allows."""
    issues = tuple(_to_issue(item, severities) for item in answer.issues if item.description)
    unexplained = [
        name for name in WEIGHTS if getattr(answer, name) < APPROVE and all(issue.category != name for issue in issues)
    ]
    given = {name: APPROVE if excused and name in unexplained else getattr(answer, name) for name in WEIGHTS}
    issues += () if excused else tuple(_low_score_issue(name, given[name]) for name in unexplained)
    scores = cap_scores({name: min(given[name], counted.scores[name]) for name in WEIGHTS}, counted.most)
    total = weigh_scores(scores)
    every = (*counted.issues, *issues)
    return Critique(
        scores=scores,
        score=total,
        issues=every,
        recommendation=recommend(total, every, revisions),
        improvement_potential=round(answer.potential / 10, 2),
    )


def _to_issue(item: IssueForm, severities: Sequence[str]) -> Issue:
    severity = match_option(item.severity, SEVERITIES, "minor")
    return Issue(
        category=match_option(item.category, CATEGORIES, "coherence"),
        severity=severity if severity in severities else "major",
        location=item.location or "whole report",
        description=item.description,
        fix=item.fix,
    )


def _low_score_issue(name: str, score: float) -> Issue:
    return Issue.model_validate(
        {
            "category": name,
            "severity": "minor" if score >= REVISE else "major",
            "location": "whole report",
            "description": f"The reviewer gave {score:g} of 10 for {name} and named no fault.",
            "fix": f"Improve the {name}.",
        }
    )


# Revising: what a reviewer asks of the next version, and what became of each item.

LONGEST_PREVIOUS = 12_000  # characters of the version that is revised
NO_CHANGE_NOTE = "nothing was changed, so this is told in the claims' own words"


def format_fixes(request: WriteRequest) -> str:
    """The last version and what was wrong with it, so that each item can be answered."""
    items = list_fixes(request)
    if not items:
        return "This is the first version."
    before = f"The last version:\n{wrap_tag('draft', _format_previous(request.previous))}\n" if request.previous else ""
    return (
        f"{before}A reviewer asks for these changes. Make each, and say in notes, in this order, what you did about it:"
        f"\n{wrap_tag('draft', number_lines(items))}"
    )


def list_fixes(request: WriteRequest) -> list[str]:
    items = [
        f"{item.severity}, {item.location}: {item.description} {item.fix}".strip() for item in sort_issues(request)
    ]
    return items or list(request.fixes)


def sort_issues(request: WriteRequest) -> list[Issue]:
    """Critical and major items first."""
    return sorted(request.issues, key=lambda issue: issue.severity == "minor")


def _format_previous(draft: Draft) -> str:
    lines = [f"## {section.title}\n" + " ".join(s.text for s in section.sentences) for section in draft.sections]
    return "\n".join(lines)[:LONGEST_PREVIOUS]


def note_fixes(notes: Sequence[str], request: WriteRequest, ignored: Mapping[int, str]) -> tuple[str, ...]:
    """One note an item, and an item that has none is said to have none."""
    items = list_fixes(request)
    told = [NO_CHANGE_NOTE if at in ignored else note for at, note in enumerate([*notes, *[""] * len(items)])]
    return tuple(f"{item} → {note or 'no note'}" for item, note in zip(items, told, strict=False))


def find_open_issues(
    notes: Sequence[str], written: Mapping[str, Sequence[DraftSentence]], request: WriteRequest
) -> dict[int, str]:
    """Critical and major items that a model neither notes nor has changed anything for, with the sections they name.
    Those are told in the claims' own words."""
    before = {fold(section.title): section for section in request.previous.sections} if request.previous else {}
    found: dict[int, str] = {}
    for at, item in enumerate(sort_issues(request)):
        place = next((title for title in written if fold(title) == fold(item.location)), None)
        noted = at < len(notes) and notes[at].strip()
        if item.severity == "minor" or noted or place is None or fold(place) not in before or len(written) == 1:
            continue
        old = {sentence.text for sentence in before[fold(place)].sentences}
        if {sentence.text for sentence in written[place]} <= old and place not in found.values():
            found[at] = place
    return found


WRITE_STEP = ReasoningStep("write", stage="write", role="writer", thing="draft",
            variables=("question", "sections", "claims", "abstract", "style", "words", "most", "banned", "fixes",
                       "language"),
            purpose="finish")  # fmt: skip
MOST_SENTENCES_SMALL = 8  # sentences
QUICK_WORDS = 220
WORDS_EACH = 18  # of a sentence
SHORTEST_ABSTRACT, LONGEST_ABSTRACT = 150, 250  # words, at standard depth and deeper
PARAGRAPH = 4  # sentences
MOST_ANSWERS, ANSWER_WORDS = 2, 12
MOST_CLAIMS, MOST_CLAIMS_SMALL = 4, 1  # behind one sentence
MIN_CLAIM_WORDS = 0.6
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


class SentenceForm(OutputForm):
    """The claims come before the text: who has named them writes what they say."""

    section: Text = ""
    claims: Numbers
    text: Line


class ShortAnswerForm(OutputForm):
    claims: Numbers
    text: Phrase


class DraftForm(OutputForm):
    title: Phrase = ""
    answers: list[ShortAnswerForm] = []
    sentences: list[SentenceForm]
    notes: Texts = []


def select_usable_claims(request: WriteRequest) -> list[Claim]:
    """What may be written: supported, not superseded, and no side of a dispute. A model that is shown one side as a
    fact writes it as one, so the floor tells disputes, with both sides."""
    disputed = find_dispute_claims(request)
    supported = [c for c in request.claims if c.verdict is Verdict.SUPPORTED and not c.superseded_by]
    return [claim for claim in supported if claim.id not in disputed]


def find_dispute_claims(request: WriteRequest) -> set[str]:
    """Claims on the sides of an open dispute that has a supported claim on each."""
    supported = {claim.id for claim in request.claims if claim.verdict is Verdict.SUPPORTED}
    open_ones = [matter.sides for matter in request.disagreements if not matter.resolved]
    whole = [sides for sides in open_ones if len(sides) > 1 and all(supported & set(side) for side in sides)]
    return {id for sides in whole for side in sides for id in side}


class SectionMap:
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

    def section_of(self, claim: Claim) -> str:
        answered = (self._sections[id] for id in claim.questions if id in self._sections)
        return self._by_floor.get(claim.id) or next(answered, self._first)

    def rank_claims(self, claims: Sequence[Claim]) -> list[Claim]:
        """The best of each section first, so that whatever room there is, none is left out."""
        return interleave_groups(sorted(claims, key=lambda claim: (-claim.relevance, claim.id)), self.section_of)


def abstract_title(depth: Depth) -> str:
    return "Summary" if depth is Depth.QUICK else "Abstract"


def build_write_job(request: WriteRequest, floor: Draft, small: bool, room: int) -> Job[DraftForm, Claim, Draft]:
    """`room` is how many words an answer may have; the form's own take a quarter of them."""
    depth = request.plan.depth
    words = min(request.target, room * 3 // 4, QUICK_WORDS if depth is Depth.QUICK else request.target)
    most = MOST_SENTENCES_SMALL if small else max(MOST_SENTENCES_SMALL, min(150, words // WORDS_EACH + 4))
    places = SectionMap(request, floor)
    names = [abstract_title(depth), *request.plan.sections, *([] if depth is Depth.QUICK else [CONCLUSION])]

    def build(shown: Sequence[Claim]) -> dict[str, str]:
        return {
            "question": wrap_tag("message", request.plan.goal),
            "language": request.language or "the language of the question",
            "sections": "; ".join(names),
            "claims": _format_claims(shown, places),
            "abstract": f"{abstract_title(depth)}: {_describe_abstract(depth, small)}",
            "style": STYLES[request.style],
            "words": str(words),
            "most": str(most),
            "banned": ", ".join(request.banned) or "none",
            "fixes": format_fixes(request),
        }

    behind = MOST_CLAIMS_SMALL if small else MOST_CLAIMS
    lists = {
        "sentences": most,
        "claims": behind,
        "notes": len(list_fixes(request)),
        "answers": 0 if small else MOST_ANSWERS,
    }
    return Job(
        WRITE_STEP, DraftForm, build_schema(DraftForm, "Draft", lists, {"section": names}), build,
        lambda answer, shown: convert_draft(answer, shown, request, floor, complete=small),
        sources=places.rank_claims(select_usable_claims(request)), shorten=_halve_claim,
    )  # fmt: skip


def _describe_abstract(depth: Depth, small: bool) -> str:
    if depth is Depth.QUICK:
        return "one or two sentences that answer the question"
    return "two or three sentences" if small else "150 to 250 words"


def _format_claims(shown: Sequence[Claim], places: SectionMap) -> str:
    lines = [
        f"[{number}] ({places.section_of(claim)}) {claim.text}{f' {claim.mark}' if claim.mark else ''}"
        for number, claim in enumerate(shown, 1)
    ]
    return wrap_tag("source", "\n".join(lines))


def _halve_claim(claim: Claim) -> Claim:
    return claim.model_copy(update={"text": claim.text[: max(1, len(claim.text) // 2)]})


def convert_draft(
    answer: DraftForm, shown: Sequence[Claim], request: WriteRequest, floor: Draft, *, complete: bool = False
) -> Draft:
    """In little room (`complete`) a sentence is kept only if its claims have most of its words, and claims that the
    floor would tell and the model has not are added in their own words."""
    whole = {claim.id: claim for claim in request.claims}  # what was shown may have been shortened
    claims = [whole[claim.id] for claim in shown]
    written = _place_sentences(answer, claims, request, SectionMap(request, floor), strict=complete)
    if not written:
        raise ReasoningError(f"no sentence names a claim; claims are numbered 1 to {len(claims)}")
    title = answer.title if _is_valid_title(answer.title, request) else floor.title
    unmoved = find_open_issues(answer.notes, written, request)
    for place in unmoved.values():
        written.pop(place)
    sections = tuple(_build_sections(written, request, floor, complete))
    answers = tuple(_convert_answers(answer, claims)) or floor.answers
    return Draft(title=title, answers=answers, sections=sections, notes=note_fixes(answer.notes, request, unmoved))


def _convert_answers(answer: DraftForm, claims: Sequence[Claim]) -> Iterator[DraftAnswer]:
    """Short answers whose words stand in what they name; whether a passage has them too is checked later."""
    for item in answer.answers:
        bound = [claims[number - 1] for number in item.claims if 1 <= number <= len(claims)]
        text = _CITATION.sub("", item.text).strip(" .")
        named = [claim for claim in bound if text and fold(text) in fold(claim.text)]
        if named and len(text.split()) <= ANSWER_WORDS:
            yield DraftAnswer(text=text, claims=tuple(claim.id for claim in named))


def _is_valid_title(title: str, request: WriteRequest) -> bool:
    """A title is not bound to claims, so each of its words has to be the question's or the plan's."""
    plan = request.plan
    texts = (plan.goal, *plan.sections, *(question.in_context for question in plan.questions))
    known = {stem for text in texts for stem in stems(text)} | TITLE_WORDS
    return (
        bool(title)
        and set(stems(title)) <= known
        and not set(title) & set("<>[]{}")
        and not _has_banned_word(title, request)
    )


def _place_sentences(
    answer: DraftForm, claims: Sequence[Claim], request: WriteRequest, places: SectionMap, *, strict: bool
) -> dict[str, list[DraftSentence]]:
    """Sentences by section, none twice but in the conclusion. One without a claim behind it states nothing that could
    be checked, so it is left out."""
    titles = {fold(name): name for name in (*request.plan.sections, abstract_title(request.plan.depth), CONCLUSION)}
    placed: dict[str, list[DraftSentence]] = {}
    said: set[str] = set()
    for item in answer.sentences:
        named = [claims[number - 1] for number in item.claims if 1 <= number <= len(claims)]
        for text, bound in _bind_sentences(_CITATION.sub("", item.text), named, claims):
            title = titles.get(fold(item.section), places.section_of(bound[0]))
            own = _has_banned_word(text, request) or (strict and not _rests_on_claims(text, bound))
            sentence = _claim_sentence(bound[0]) if own else DraftSentence(text=text, claims=tuple(c.id for c in bound))
            if sentence.text not in said or title == CONCLUSION:
                placed.setdefault(title, []).append(sentence)
            said.add(sentence.text)
    return placed


def _bind_sentences(
    text: str, named: Sequence[Claim], claims: Sequence[Claim]
) -> Iterator[tuple[str, Sequence[Claim]]]:
    """Small models write a paragraph where a sentence was asked for. It is taken apart, and each sentence goes to the
    claims it shares most words with, whichever were named."""
    pieces = [piece.text for piece in split_sentences(text)]
    if len(pieces) == 1 and named:
        yield pieces[0], named
    for piece in pieces if len(pieces) > 1 and named else ():
        said = set(stems(piece))
        shared = {claim.id: len(said & set(stems(claim.text))) for claim in claims}
        most = max(shared.values())
        if most >= LEAST_SHARED and piece.rstrip("\"'”’)]").endswith((".", "!", "?", "。")):  # the last may be cut off
            yield piece, [claim for claim in claims if shared[claim.id] == most][:MOST_CLAIMS]


def _claim_sentence(claim: Claim) -> DraftSentence:
    return DraftSentence(text=claim.text, claims=(claim.id,))


def _rests_on_claims(text: str, bound: Sequence[Claim]) -> bool:
    """Whether most words of a sentence are its claims' own. A small model explains what no claim says."""
    said = set(stems(text))
    return len(said & {stem for claim in bound for stem in stems(claim.text)}) >= MIN_CLAIM_WORDS * len(said)


def _has_banned_word(text: str, request: WriteRequest) -> bool:
    return any(re.search(rf"\b{re.escape(word)}", text, re.I) for word in request.banned)


def _build_sections(
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
    dispute = _select_dispute(spare_abstract, find_dispute_claims(request))
    abstract = (*dispute, *_abridge(written.get(name, ()), spare_abstract, request, _count_words(dispute)))
    closing = own["conclusion"].sentences if "conclusion" in own else ()
    sections = [
        DraftSection(title=name, role="abstract", sentences=abstract),
        *(
            DraftSection(title=title, sentences=_build_body(written.get(title, ()), spare.get(title, ()), complete))
            for title in request.plan.sections
        ),
        *(own[role] for role in ("disagreements", "not_found") if role in own),
        DraftSection(title=CONCLUSION, role="conclusion", sentences=(*written.get(CONCLUSION, ()), *closing)),
    ]
    return [section for section in sections if section.sentences]


def _build_body(
    told: Sequence[DraftSentence], spare: Sequence[DraftSentence], complete: bool
) -> tuple[DraftSentence, ...]:
    """What the model wrote, in paragraphs; where it wrote nothing, the floor's."""
    if not told:
        return tuple(spare)
    parts = tuple(s.model_copy(update={"opens": at % PARAGRAPH == 0}) for at, s in enumerate(told))
    return (*parts, *(s for s in spare if s.claims)) if complete else parts


def _select_dispute(spare: Sequence[DraftSentence], disputed: set[str]) -> tuple[DraftSentence, ...]:
    """What the floor's abstract says of a dispute: both sides, and the sentence that announces them."""
    sides = [at for at, sentence in enumerate(spare) if disputed & set(sentence.claims)]
    return tuple(spare[max(0, sides[0] - 1) : sides[-1] + 1]) if len(sides) > 1 else ()


def _count_words(sentences: Sequence[DraftSentence]) -> int:
    return sum(len(sentence.text.split()) for sentence in sentences)


def _abridge(
    told: Sequence[DraftSentence], spare: Sequence[DraftSentence], request: WriteRequest, words: int
) -> tuple[DraftSentence, ...]:
    """At most 250 words; where fewer than 150 were written and a report is wanted, sentences of the floor join them.
    `words` are told already."""
    kept: list[DraftSentence] = []
    said = {id for sentence in told for id in sentence.claims} | find_dispute_claims(request)
    spare = [sentence for sentence in spare if sentence.claims]
    short = SHORTEST_ABSTRACT if told and request.plan.depth is not Depth.QUICK else 0
    for sentence in (*told, *(s for s in spare if not said & set(s.claims))):
        length = len(sentence.text.split())
        if kept and (words + length > LONGEST_ABSTRACT or (len(kept) >= len(told) > 0 and words >= short)):
            break
        kept.append(sentence)
        words += length
    return tuple(kept)
