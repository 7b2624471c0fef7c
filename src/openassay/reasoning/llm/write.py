"""Prompts for writing and reviewing a draft.

The model's sentences are each bound to verified claims, and what it leaves out is written in the claims' own words. A
review is the model's scores with what can be counted on top: checks add doubt, they never take it away. `baseline` is
what the rules made of the same input.
"""

import re
from collections.abc import Mapping, Sequence
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
from openassay.reasoning.llm import forms
from openassay.reasoning.llm.read import QueryFilter
from openassay.reasoning.llm.step import Job, ReasoningStep, number_lines, wrap_tag
from openassay.reasoning.rules.critique import WEIGHTS, CheckResult, cap_scores, weigh_scores
from openassay.text.sentences import split_sentences
from openassay.text.words import fold, interleave_groups, stems

WRITE_STEP = ReasoningStep("write", stage="write", role="writer", output="draft", purpose="finish")
REVIEW_STEP = ReasoningStep("critique", stage="review", role="reviewer", output="review", purpose="finish")
CATEGORIES = get_args(Issue.model_fields["category"].annotation)
SEVERITIES = get_args(Issue.model_fields["severity"].annotation)
MAX_ISSUES, MAX_ISSUES_SMALL = 10, 3
MAX_SENTENCES, MAX_SENTENCES_SMALL = 150, 8
QUICK_WORDS = 220
WORDS_PER_SENTENCE = 18
MIN_ABSTRACT, MAX_ABSTRACT = 150, 250  # words, at standard depth and deeper
PARAGRAPH = 4  # sentences
MAX_ANSWERS, MAX_ANSWER_WORDS = 2, 12
MAX_CLAIMS, MAX_CLAIMS_SMALL = 4, 1  # behind one sentence
MIN_CLAIM_WORDS = 0.6  # share of a sentence's words that are its claims' own
MIN_SHARED = 2  # stems a sentence shares with a claim that it states
MAX_SEARCHES = 4  # for what a review finds missing
SEARCHES = (
    "searches: where a part of the question is missing or thin that other documents may tell: what to search for, with "
    "the number of the sub-question, at most 4; an empty list if the report has what it needs."
)
MAX_PREVIOUS = 12_000  # characters of the version that is revised
CONCLUSION = "Conclusion"
NO_CHANGE_NOTE = "nothing was changed, so this is told in the claims' own words"
TITLE_WORDS = frozenset(
    stems(
        "analysis answer assessment brief comparison evidence findings history known overview question report review "
        "sources state study summary survey"
    )
)
STYLES = {
    "academic": "academic: precise, neutral, complete sentences",
    "technical": "technical: figures, units and methods first",
    "executive": "executive: short sentences, what matters for a decision first",
}
_CITATION = re.compile(r"\s*\[\s*\d+(?:\s*,\s*\d+)*\s*\]|\s*[✓⚠]+")


class SentenceForm(forms.OutputForm):
    """The claims come before the text: who has named them writes what they say."""

    section: forms.Text = ""
    claims: forms.Numbers
    text: forms.Line


class ShortAnswerForm(forms.OutputForm):
    claims: forms.Numbers
    text: forms.Phrase


class DraftForm(forms.OutputForm):
    title: forms.Phrase = ""
    answers: list[ShortAnswerForm] = []
    sentences: list[SentenceForm]
    notes: forms.Texts = []


def select_usable_claims(request: WriteRequest) -> list[Claim]:
    """Return what may be written: supported, not superseded, and no side of a dispute.

    A model that is shown one side as a fact writes it as one, so the rules write disputes, with both sides.
    """
    disputed = find_dispute_claims(request)
    supported = [claim for claim in request.claims if claim.verdict is Verdict.SUPPORTED and not claim.superseded_by]
    return [claim for claim in supported if claim.id not in disputed]


def find_dispute_claims(request: WriteRequest) -> set[str]:
    """Return the claims on the sides of an open dispute that has a supported claim on each."""
    supported = {claim.id for claim in request.claims if claim.verdict is Verdict.SUPPORTED}
    disputes = [dispute.sides for dispute in request.disagreements if not dispute.resolved]
    whole = [sides for sides in disputes if len(sides) > 1 and all(supported & set(side) for side in sides)]
    return {id for sides in whole for side in sides for id in side}


class SectionMap:
    """Says where a claim belongs: where the baseline has it, else in the section of the sub-question it answers."""

    def __init__(self, request: WriteRequest, baseline: Draft) -> None:
        self._sections = {question.id: question.section for question in reversed(request.plan.questions)}
        self._first = request.plan.sections[0]
        self._baseline = {
            id: section.title
            for section in baseline.sections
            if section.role == "body"
            for sentence in section.sentences
            for id in sentence.claims
        }

    def section_of(self, claim: Claim) -> str:
        answered = (self._sections[id] for id in claim.questions if id in self._sections)
        return self._baseline.get(claim.id) or next(answered, self._first)


def build_write_job(request: WriteRequest, baseline: Draft, small: bool, room: int) -> Job[DraftForm, Claim, Draft]:
    """Ask for a draft. `room` is how many words an answer may have; the form's own take a quarter of them."""
    depth = request.plan.depth
    words = min(request.target, room * 3 // 4, QUICK_WORDS if depth is Depth.QUICK else request.target)
    most = MAX_SENTENCES_SMALL
    if not small:
        most = max(MAX_SENTENCES_SMALL, min(MAX_SENTENCES, words // WORDS_PER_SENTENCE + 4))
    sections = SectionMap(request, baseline)
    titles = [get_abstract_title(depth), *request.plan.sections, *([] if depth is Depth.QUICK else [CONCLUSION])]
    length = "two or three sentences" if small else "150 to 250 words"
    if depth is Depth.QUICK:
        length = "one or two sentences that answer the question"

    def build(shown: Sequence[Claim]) -> dict[str, str]:
        claims = [
            f"[{number}] ({sections.section_of(claim)}) {claim.text}{f' {claim.mark}' if claim.mark else ''}"
            for number, claim in enumerate(shown, 1)
        ]
        return {
            "question": wrap_tag("message", request.plan.goal),
            "language": request.language or "the language of the question",
            "sections": "; ".join(titles),
            "claims": wrap_tag("source", "\n".join(claims)),
            "abstract": f"{get_abstract_title(depth)}: {length}",
            "style": STYLES[request.style],
            "words": str(words),
            "most": str(most),
            "banned": ", ".join(request.banned) or "none",
            "fixes": format_fixes(request),
        }

    lists = {
        "sentences": most,
        "claims": MAX_CLAIMS_SMALL if small else MAX_CLAIMS,
        "notes": len(list_fixes(request)),
        "answers": 0 if small else MAX_ANSWERS,
    }
    best = sorted(select_usable_claims(request), key=lambda claim: (-claim.relevance, claim.id))
    return Job(
        WRITE_STEP,
        DraftForm,
        forms.build_schema(DraftForm, "Draft", lists, {"section": titles}),
        build,
        convert=lambda answer, shown: convert_draft(answer, shown, request, baseline, complete=small),
        sources=interleave_groups(best, sections.section_of),  # so that no section lacks room
        shorten=lambda claim: claim.model_copy(update={"text": claim.text[: max(1, len(claim.text) // 2)]}),
    )


def get_abstract_title(depth: Depth) -> str:
    return "Summary" if depth is Depth.QUICK else "Abstract"


def convert_draft(
    answer: DraftForm, shown: Sequence[Claim], request: WriteRequest, baseline: Draft, *, complete: bool = False
) -> Draft:
    """Make a draft of an answer.

    With `complete`, for a small model, a sentence is kept only if its claims have most of its words, and claims of the
    baseline that the model has not written are added in their own words.
    """
    whole = {claim.id: claim for claim in request.claims}  # what was shown may have been shortened
    claims = [whole[claim.id] for claim in shown]
    written = _place_sentences(answer, claims, request, SectionMap(request, baseline), strict=complete)
    if not written:
        raise ReasoningError(f"no sentence names a claim; claims are numbered 1 to {len(claims)}")
    ignored = find_open_issues(answer.notes, written, request)
    for section in ignored.values():
        written.pop(section)
    answers = []
    for item in answer.answers:
        text = _CITATION.sub("", item.text).strip(" .")
        # The words of an answer stand in its claims; whether a passage has them too is checked later.
        named = [claim for claim in _find_claims(item.claims, claims) if text and fold(text) in fold(claim.text)]
        if named and len(text.split()) <= MAX_ANSWER_WORDS:
            answers.append(DraftAnswer(text=text, claims=tuple(claim.id for claim in named)))
    # A title is not bound to claims, so each of its words has to be the question's or the plan's.
    title, plan = answer.title, request.plan
    texts = (plan.goal, *plan.sections, *(question.in_context for question in plan.questions))
    strange = set(stems(title)) - {stem for text in texts for stem in stems(text)} - TITLE_WORDS
    if not title or strange or set(title) & set("<>[]{}") or _has_banned_word(title, request):
        title = baseline.title
    outcomes = []  # of what the reviewer asked for
    for position, wanted in enumerate(list_fixes(request)):
        note = answer.notes[position] if position < len(answer.notes) else ""
        outcomes.append(f"{wanted} → {NO_CHANGE_NOTE if position in ignored else note or 'no note'}")
    return Draft(
        title=title,
        answers=tuple(answers) or baseline.answers,
        sections=tuple(_build_sections(written, request, baseline, complete)),
        notes=tuple(outcomes),
    )


def _find_claims(numbers: Sequence[int], claims: Sequence[Claim]) -> list[Claim]:
    return [claims[number - 1] for number in numbers if 1 <= number <= len(claims)]


def _has_banned_word(text: str, request: WriteRequest) -> bool:
    return any(re.search(rf"\b{re.escape(word)}", text, re.I) for word in request.banned)


def _place_sentences(
    answer: DraftForm, claims: Sequence[Claim], request: WriteRequest, sections: SectionMap, *, strict: bool
) -> dict[str, list[DraftSentence]]:
    """Sort sentences into sections, none twice but in the conclusion.

    One without a claim behind it states nothing that could be checked, so it is left out.
    """
    titles = {fold(name): name for name in (*request.plan.sections, get_abstract_title(request.plan.depth), CONCLUSION)}
    placed: dict[str, list[DraftSentence]] = {}
    seen: set[str] = set()
    for item in answer.sentences:
        for text, bound in _bind_sentences(_CITATION.sub("", item.text), _find_claims(item.claims, claims), claims):
            words = set(stems(text))
            own = {stem for claim in bound for stem in stems(claim.text)}
            # A small model explains what no claim says.
            strays = strict and len(words & own) < MIN_CLAIM_WORDS * len(words)
            sentence = DraftSentence(text=text, claims=tuple(claim.id for claim in bound))
            if strays or _has_banned_word(text, request):
                sentence = DraftSentence(text=bound[0].text, claims=(bound[0].id,))
            title = titles.get(fold(item.section), sections.section_of(bound[0]))
            if sentence.text not in seen or title == CONCLUSION:
                placed.setdefault(title, []).append(sentence)
            seen.add(sentence.text)
    return placed


def _bind_sentences(text: str, named: Sequence[Claim], claims: Sequence[Claim]) -> list[tuple[str, Sequence[Claim]]]:
    """Return sentences with the claims they state.

    Small models write a paragraph where a sentence was asked for. It is taken apart, and each sentence goes to the
    claims it shares most words with, whichever were named.
    """
    pieces = [piece.text for piece in split_sentences(text)]
    if not named or len(pieces) < 2:
        return [(piece, named) for piece in pieces if named]
    bound: list[tuple[str, Sequence[Claim]]] = []
    for piece in pieces:
        words = set(stems(piece))
        shared = {claim.id: len(words & set(stems(claim.text))) for claim in claims}
        most = max(shared.values())
        is_whole = piece.rstrip("\"'”’)]").endswith((".", "!", "?", "。"))  # the last may be cut off
        if most >= MIN_SHARED and is_whole:
            bound.append((piece, [claim for claim in claims if shared[claim.id] == most][:MAX_CLAIMS]))
    return bound


def _build_sections(
    written: Mapping[str, Sequence[DraftSentence]], request: WriteRequest, baseline: Draft, complete: bool
) -> Sequence[DraftSection]:
    """Put the sections in the order of the plan.

    Disputes and what was not found are the baseline's, so that they are always reported, and so is a section that the
    model left empty.
    """
    own = {section.role: section for section in baseline.sections if section.role != "body"}
    abstract_title = get_abstract_title(request.plan.depth)
    # What the abstract says beforehand a section still has to say.
    apart = (abstract_title, CONCLUSION)
    covered = {
        id
        for title, sentences in written.items()
        if title not in apart
        for sentence in sentences
        for id in sentence.claims
    }
    spare = {
        section.title: tuple(sentence for sentence in section.sentences if not covered & set(sentence.claims))
        for section in baseline.sections
        if section.role == "body"
    }
    spare_abstract = own["abstract"].sentences if "abstract" in own else ()
    abstract = _build_abstract(written.get(abstract_title, ()), spare_abstract, request)
    sections = [DraftSection(title=abstract_title, role="abstract", sentences=abstract)]
    for title in request.plan.sections:
        sentences = spare.get(title, ())
        if title in written:
            extra = [sentence for sentence in sentences if sentence.claims] if complete else []
            paragraphs = [
                sentence.model_copy(update={"opens": position % PARAGRAPH == 0})
                for position, sentence in enumerate(written[title])
            ]
            sentences = (*paragraphs, *extra)
        sections.append(DraftSection(title=title, sentences=sentences))
    sections += [own[role] for role in ("disagreements", "not_found") if role in own]
    closing = own["conclusion"].sentences if "conclusion" in own else ()
    conclusion = (*written.get(CONCLUSION, ()), *closing)
    sections.append(DraftSection(title=CONCLUSION, role="conclusion", sentences=conclusion))
    return [section for section in sections if section.sentences]


def _build_abstract(
    written: Sequence[DraftSentence], spare: Sequence[DraftSentence], request: WriteRequest
) -> tuple[DraftSentence, ...]:
    """Write what the baseline says of a dispute, then the model's abstract.

    It has at most 250 words; where a report is wanted and fewer than 150 were written, sentences of the baseline join.
    """
    disputed = find_dispute_claims(request)
    sides = [position for position, sentence in enumerate(spare) if disputed & set(sentence.claims)]
    # Both sides, and the sentence that announces them.
    dispute = tuple(spare[max(0, sides[0] - 1) : sides[-1] + 1]) if len(sides) > 1 else ()
    words = sum(len(sentence.text.split()) for sentence in dispute)
    covered = {id for sentence in written for id in sentence.claims} | disputed
    others = [sentence for sentence in spare if sentence.claims and not covered & set(sentence.claims)]
    fewest = MIN_ABSTRACT if written and request.plan.depth is not Depth.QUICK else 0
    abstract: list[DraftSentence] = []
    for sentence in (*written, *others):
        length = len(sentence.text.split())
        is_enough = len(abstract) >= len(written) > 0 and words >= fewest
        if abstract and (words + length > MAX_ABSTRACT or is_enough):
            break
        abstract.append(sentence)
        words += length
    return (*dispute, *abstract)


def format_fixes(request: WriteRequest) -> str:
    """Write the last version and what was wrong with it, so that each item can be answered."""
    items = list_fixes(request)
    if not items:
        return "This is the first version."
    before = ""
    if request.previous:
        sections = (
            f"## {section.title}\n" + " ".join(sentence.text for sentence in section.sentences)
            for section in request.previous.sections
        )
        before = f"The last version:\n{wrap_tag('draft', chr(10).join(sections)[:MAX_PREVIOUS])}\n"
    return (
        f"{before}A reviewer asks for these changes. Make each, and say in notes, in this order, what you did about it:"
        f"\n{wrap_tag('draft', number_lines(items))}"
    )


def list_fixes(request: WriteRequest) -> list[str]:
    """Return what the reviewer asks of the next version, a line each."""
    issues = sort_issues(request)
    items = [f"{item.severity}, {item.location}: {item.description} {item.fix}".strip() for item in issues]
    return items or list(request.fixes)


def sort_issues(request: WriteRequest) -> list[Issue]:
    return sorted(request.issues, key=lambda issue: issue.severity == "minor")


def find_open_issues(
    notes: Sequence[str], written: Mapping[str, Sequence[DraftSentence]], request: WriteRequest
) -> dict[int, str]:
    """Find critical and major issues that a model neither notes nor has changed anything for, with their sections."""
    before = {fold(section.title): section for section in request.previous.sections} if request.previous else {}
    found: dict[int, str] = {}
    for position, item in enumerate(sort_issues(request)):
        place = next((title for title in written if fold(title) == fold(item.location)), None)
        noted = position < len(notes) and notes[position].strip()
        if item.severity == "minor" or noted or place is None or fold(place) not in before or len(written) == 1:
            continue
        old = {sentence.text for sentence in before[fold(place)].sentences}
        if {sentence.text for sentence in written[place]} <= old and place not in found.values():
            found[position] = place
    return found


class IssueForm(forms.OutputForm):
    category: forms.Text = forms.choice_field(CATEGORIES)
    severity: forms.Text = forms.choice_field(("minor", *(name for name in SEVERITIES if name != "minor")))
    location: forms.Phrase = ""
    description: forms.Line
    fix: forms.Line = ""


class SearchForm(forms.OutputForm):
    question: forms.Number
    query: forms.Line


class ReviewForm(forms.OutputForm):
    accuracy: forms.Score
    completeness: forms.Score
    coherence: forms.Score
    citation: forms.Score
    methodology: forms.Score
    style: forms.Score
    issues: list[IssueForm] = []
    potential: forms.Score = 0.0
    searches: list[SearchForm] = []


class DraftLine(NamedTuple):
    """A sentence of a draft, and the claims it rests on where it says them in other words."""

    section: str
    text: str
    basis: str

    def halve(self) -> "DraftLine":
        return self._replace(text=self.text[: max(1, len(self.text) // 2)], basis="")


def build_review_job(
    request: CritiqueRequest, counted: CheckResult, small: bool
) -> Job[ReviewForm, DraftLine, Critique]:
    most = MAX_ISSUES_SMALL if small else MAX_ISSUES
    texts = {claim.id: claim.text for claim in request.claims}
    lines = []
    for section in request.draft.sections:
        for sentence in section.sentences:
            claims = [texts[id] for id in sentence.claims if id in texts]
            basis = "" if sentence.text in claims else "; ".join(claims)
            lines.append(DraftLine(section.title, sentence.text, basis))

    def build(shown: Sequence[DraftLine]) -> dict[str, str]:
        draft, title = [], None
        for line in shown:
            if line.section != title:
                title = line.section
                draft.append(f"## {title}")
            draft.append(f"{line.text} (rests on: {line.basis})" if line.basis else line.text)
        return {
            "question": wrap_tag("message", request.plan.goal),
            "questions": wrap_tag("message", number_lines(question.text for question in request.plan.questions)),
            "draft": wrap_tag("draft", "\n".join(draft)),
            "open": "; ".join(request.unanswered) or "none",
            "words": str(request.words),
            "most": str(most),
            "searches": SEARCHES if searches else "",
            "today": request.today.isoformat() if request.today else "not known",
        }

    severities = [name for name in SEVERITIES if not (small and name == "critical")]
    searches = MAX_SEARCHES if request.can_search and not small else 0
    return Job(
        REVIEW_STEP,
        ReviewForm,
        forms.build_schema(ReviewForm, "Review", {"issues": most, "searches": searches}, {"severity": severities}),
        build,
        convert=lambda answer, _: convert_review(
            answer, counted, severities, revisions=request.revisions, excused=small or request.draft.composed
        ).model_copy(update={"searches": convert_searches(answer.searches[:searches], request)}),
        sources=lines,
        shorten=DraftLine.halve,
    )


def convert_searches(items: Sequence[SearchForm], request: CritiqueRequest) -> dict[str, tuple[str, ...]]:
    """Return the queries for what is missing, by sub-question."""
    queries, questions = QueryFilter(request.plan, request.asked, request.leads), request.plan.questions
    found: dict[str, tuple[str, ...]] = {}
    for item in items:
        if 1 <= item.question <= len(questions):
            id = questions[item.question - 1].id
            if query := queries.clean(id, item.query):
                found[id] = tuple(dict.fromkeys((*found.get(id, ()), query)))
    return found


def convert_review(
    answer: ReviewForm, counted: CheckResult, severities: Sequence[str], *, revisions: int = 0, excused: bool = False
) -> Critique:
    """Make a review of an answer.

    No criterion has more than the checks leave it, and the whole no more than the evidence allows. A low score without
    a reason is an issue of its own, unless it is `excused`: small models score at random.
    """
    issues = []
    for item in answer.issues:
        severity = forms.match_option(item.severity, SEVERITIES, "minor")
        if item.description:
            issue = Issue(
                category=forms.match_option(item.category, CATEGORIES, "coherence"),
                severity=severity if severity in severities else "major",
                location=item.location or "whole report",
                description=item.description,
                fix=item.fix,
            )
            issues.append(issue)
    explained = {issue.category for issue in issues}
    given: dict[str, float] = {name: getattr(answer, name) for name in WEIGHTS}
    for name in [name for name, score in given.items() if score < APPROVE and name not in explained]:
        if excused:
            given[name] = APPROVE
            continue
        fields = {
            "category": name,
            "severity": "minor" if given[name] >= REVISE else "major",
            "location": "whole report",
            "description": f"The reviewer gave {given[name]:g} of 10 for {name} and named no fault.",
            "fix": f"Improve the {name}.",
        }
        issues.append(Issue.model_validate(fields))
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
