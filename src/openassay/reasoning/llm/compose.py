"""How a capable model writes: an outline of the claims, sections side by side, then abstract and conclusion; and how it
mends sentences that did not pass.

Every sentence names the claims it rests on. What it says is checked afterwards, by a judge and by what can be counted.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, cast, get_args

from openassay.errors import ReasoningError
from openassay.models.evidence import Claim, Verdict
from openassay.models.report import DerivedFigure, Operation, TableCell
from openassay.reasoning.base import (
    Draft,
    DraftAnswer,
    DraftSection,
    DraftSentence,
    FailedSentence,
    MendRequest,
    WriteRequest,
)
from openassay.reasoning.llm import forms
from openassay.reasoning.llm.step import Job, ReasoningStep, number_lines, wrap_tag
from openassay.reasoning.llm.write import CONCLUSION, MAX_ANSWER_WORDS, STYLES, ShortAnswerForm, get_abstract_title
from openassay.text.sentences import split_sentences
from openassay.text.words import fold

OUTLINE_STEP = ReasoningStep("outline", stage="write", role="writer", output="outline", purpose="finish")
SECTION_STEP = ReasoningStep("section", stage="write", role="writer", output="section", purpose="finish")
OPENING_STEP = ReasoningStep("opening", stage="write", role="writer", output="abstract", purpose="finish")
MEND_STEP = ReasoningStep("mend", stage="write", role="writer", output="mended sentences", purpose="finish")
MAX_SECTIONS = 8
MAX_SECTION_CLAIMS, MAX_SENTENCE_CLAIMS = 40, 8
MAX_SENTENCES, MAX_OPENING = 40, 16
MAX_FAILURES = 40  # sentences that are mended in one call
QUOTE, SHORT_QUOTE = 700, 180  # characters of a quote that are shown
MAX_QUOTES = 2  # of one claim
WORDS_PER_CLAIM = 32  # of a section; length follows the evidence
MIN_WORDS, MAX_WORDS = 60, 700  # of a section
OPENING_WORDS = 320  # of abstract and conclusion
MAX_COLUMNS = 5  # of a table, beside the one that names its rows
MAX_LABEL, MAX_CELL = 8, 30  # words of a row or column, and of a cell
KINDS = ("fact", "synthesis", "frame")
SHAPES = ("text", "table", "timeline")
PARTS = ("abstract", "conclusion")
_CITATION = re.compile(r"\s*\[\s*C?\d+(?:\s*,\s*C?\d+)*\s*\]|\s*[✓⚠]+")
_DERIVED = re.compile(r"(-?[\d.,]+)\s*%?\s*=\s*(\w+)\s*\((.*)\)")


# What a model is shown of claims.


def list_claims(request: WriteRequest) -> list[Claim]:
    """Return what may be written, the sides of a dispute among it, the most relevant first."""
    usable = [claim for claim in request.claims if claim.verdict is Verdict.SUPPORTED and not claim.superseded_by]
    return sorted(usable, key=lambda claim: (-claim.relevance, claim.id))


class NumberedClaims:
    """Claims under numbers, the same in all prompts of a draft."""

    def __init__(self, claims: Sequence[Claim], heads: Mapping[str, str]) -> None:
        self._numbers = {claim.id: number for number, claim in enumerate(claims, 1)}
        self._claims = list(claims)
        self._heads = heads

    def find(self, numbers: Iterable[int]) -> list[Claim]:
        return [self._claims[number - 1] for number in dict.fromkeys(numbers) if 1 <= number <= len(self._claims)]

    def show(self, claim: Claim, quote: int = QUOTE, quotes: int = MAX_QUOTES) -> str:
        mark = f"{claim.mark} " if claim.mark else ""
        lines = [f"[{self._numbers[claim.id]}] {mark}{claim.text}"]
        for span in list({span.document: span for span in reversed(claim.spans)}.values())[:quotes]:
            head, text = self._heads.get(span.document, ""), " ".join(span.quote.split())
            lines.append(f"   {head}: “{text[:quote]}{'…' if len(text) > quote else ''}”")
        return "\n".join(lines)

    def show_names(self, ids: Iterable[str]) -> str:
        return ", ".join(f"[{self._numbers[id]}]" for id in ids if id in self._numbers)

    def show_disputes(self, request: WriteRequest, shown: Iterable[Claim]) -> str:
        """Which of the claims shown do not agree."""
        known = {claim.id for claim in shown}
        lines = []
        for dispute in request.disagreements:
            sides = [self.show_names(id for id in side if id in known) for side in dispute.sides]
            if sum(map(bool, sides)) > 1:
                settled = f" (settled for the first: {dispute.resolution})" if dispute.resolved else ""
                lines.append(f"{' against '.join(filter(None, sides))}: {dispute.about}{settled}")
        return "Claims that do not agree:\n" + wrap_tag("source", "\n".join(lines)) + "\n" if lines else ""


# The outline.


class OutlineSectionForm(forms.OutputForm):
    title: forms.Phrase
    purpose: forms.Line = ""
    shape: forms.Text = forms.choice_field(SHAPES)
    columns: forms.Texts = []
    claims: forms.Numbers


class OutlineForm(forms.OutputForm):
    title: forms.Phrase = ""
    argument: forms.Text = ""
    sections: list[OutlineSectionForm]


class OutlineSection(NamedTuple):
    title: str
    purpose: str
    claims: tuple[Claim, ...]
    shape: str = "text"
    columns: tuple[str, ...] = ()  # of a table, without the one that names its rows

    @property
    def words(self) -> int:
        """What its evidence is worth."""
        return max(MIN_WORDS, min(MAX_WORDS, WORDS_PER_CLAIM * len(self.claims)))


class Outline(NamedTuple):
    title: str
    argument: str
    sections: tuple[OutlineSection, ...]

    def share_words(self, section: OutlineSection, target: int) -> int:
        """The words for a section, where all sections together have to keep to a target."""
        total = sum(one.words for one in self.sections)
        left = max(MIN_WORDS * len(self.sections), target - OPENING_WORDS)
        return section.words if total <= left else max(MIN_WORDS, section.words * left // total)

    def show(self) -> str:
        lines = [f"{section.title}: {section.purpose}" for section in self.sections]
        return wrap_tag("draft", "\n".join([self.title, self.argument, number_lines(lines)]))


def build_outline_job(request: WriteRequest, claims: NumberedClaims) -> Job[OutlineForm, Claim, Outline]:
    def build(shown: Sequence[Claim]) -> dict[str, str]:
        return {
            "claims": wrap_tag("source", "\n".join(claims.show(claim, SHORT_QUOTE, 1) for claim in shown)),
            "disputes": claims.show_disputes(request, shown),
            "question": wrap_tag("message", request.plan.goal),
            "questions": wrap_tag("message", number_lines(question.text for question in request.plan.questions)),
            "most": str(MAX_SECTIONS),
        }

    lists = {"sections": MAX_SECTIONS, "claims": MAX_SECTION_CLAIMS, "columns": MAX_COLUMNS}
    return Job(
        OUTLINE_STEP,
        OutlineForm,
        forms.build_schema(OutlineForm, "Outline", lists),
        build,
        convert=lambda answer, shown: convert_outline(answer, claims, shown),
        sources=list_claims(request),
        share=0.9,
    )


def convert_outline(answer: OutlineForm, claims: NumberedClaims, shown: Sequence[Claim]) -> Outline:
    known = {claim.id for claim in shown}
    sections = []
    for item in answer.sections:
        own = tuple(claim for claim in claims.find(item.claims) if claim.id in known)
        if item.title and own:
            columns = tuple(dict.fromkeys(column.strip() for column in item.columns if column.strip()))[:MAX_COLUMNS]
            shape = forms.match_option(item.shape, SHAPES, "text")
            shape = "text" if shape == "table" and not columns else shape
            title = item.title.rstrip(" .:")
            sections.append(OutlineSection(title, item.purpose, own[:MAX_SECTION_CLAIMS], shape, columns))
    if not sections:
        raise ReasoningError(f"no section has a title and names a claim; claims are numbered 1 to {len(shown)}")
    return Outline(answer.title, answer.argument, tuple(sections))


# Sections.


class SectionSentenceForm(forms.OutputForm):
    """The claims come before the text: who has named them writes what they say."""

    opens: forms.Flag = False
    row: forms.Line = ""
    column: forms.Line = ""
    kind: forms.Text = forms.choice_field(KINDS)
    claims: forms.Numbers
    text: forms.Text
    derived: forms.Texts = []


class SectionForm(forms.OutputForm):
    sentences: list[SectionSentenceForm]


SectionJob = Job[SectionForm, Claim, tuple[DraftSentence, ...]]


def build_section_job(
    request: WriteRequest, claims: NumberedClaims, outline: Outline, number: int, fixes: str = ""
) -> SectionJob:
    """Ask for one section of an outline. Its number names the call: its title may have words of documents, which no
    trace may have."""
    section = outline.sections[number]

    def build(shown: Sequence[Claim]) -> dict[str, str]:
        return {
            "claims": wrap_tag("source", "\n".join(map(claims.show, shown))),
            "disputes": claims.show_disputes(request, shown),
            "question": wrap_tag("message", request.plan.goal),
            "outline": outline.show(),
            "section": section.title,
            "shape": show_shape(section),
            "style": STYLES[request.style],
            "language": request.language or "the language of the question",
            "words": str(outline.share_words(section, request.target)),
            "banned": ", ".join(request.banned) or "none",
            "fixes": fixes,
        }

    lists = {"sentences": MAX_SENTENCES, "claims": MAX_SENTENCE_CLAIMS, "derived": 4}
    return Job(
        SECTION_STEP,
        SectionForm,
        forms.build_schema(SectionForm, "Section", lists),
        build,
        convert=lambda answer, _: convert_sentences(answer.sentences, claims, section),
        sources=section.claims,
        task=str(number + 1),
    )


def show_shape(section: OutlineSection) -> str:
    """What is asked for besides a text: a table or a timeline."""
    first = "First a paragraph that says what there is to see in it."
    if section.shape == "table":
        columns = "; ".join(section.columns)
        cells = "then the table, an item for each cell: row (its name), column (as above), text (a few words, no more)"
        cells += "; no row most of whose cells would stay empty"
        return f"It is a table with the columns: {columns}. {first[:-1]}, {cells}."
    if section.shape == "timeline":
        entries = "then the entries in the order of time, an item each: row (when), text (what happened)"
        return f"It is a timeline. {first[:-1]}, {entries}."
    return ""


def convert_sentences(
    items: Sequence[SectionSentenceForm], claims: NumberedClaims, section: OutlineSection
) -> tuple[DraftSentence, ...]:
    """Return the sentences that name a claim, and the frames; where none names one, the answer is of no use."""
    found = list[DraftSentence]()
    for position, item in enumerate(items):
        if sentence := build_sentence(item.kind, item.text, claims.find(item.claims), item.derived, claims):
            if sentence.claims and (cell := build_cell(item, sentence.text, section)):
                found.append(place_in_table(sentence, cell))
            else:
                opens = position == 0 or item.opens
                found.append(sentence.model_copy(update={"opens": opens}))
    if not any(sentence.claims for sentence in found):
        raise ReasoningError("no sentence names a claim by its number")
    return tuple(found)


def build_cell(item: SectionSentenceForm, text: str, section: OutlineSection) -> TableCell | None:
    """Where a sentence stands in the table or timeline that its section is; None for one that stands in none."""
    row, column = item.row.strip(" .:"), item.column.strip(" .:")
    if section.shape == "text" or not row or len(row.split()) > MAX_LABEL or len(text.split()) > MAX_CELL:
        return None
    if section.shape == "timeline":
        return TableCell(row=row, text=text)
    known = {fold(name): name for name in section.columns}
    return TableCell(row=row, column=known[fold(column)], text=text) if fold(column) in known else None


def place_in_table(sentence: DraftSentence, cell: TableCell) -> DraftSentence:
    """Give a sentence its place in a table, and a text that says by itself what the cell says there."""
    place = f"{cell.row}, {cell.column}" if cell.column else cell.row
    return sentence.model_copy(update={"text": f"{place}: {cell.text}", "cell": cell, "opens": False})


def build_sentence(
    kind: str, text: str, named: Sequence[Claim], derived: Sequence[str], claims: NumberedClaims
) -> DraftSentence | None:
    """Make a sentence of a draft. A second sentence in its text would hide behind the first, so it is one to the
    checks as well; what is called a frame and names claims states something."""
    plain = _CITATION.sub("", text).strip()
    if not plain or (not named and forms.match_option(kind, KINDS, "fact") != "frame"):
        return None
    if not named:
        return DraftSentence(text=plain)
    is_synthesis = len(named) > 1 and forms.match_option(kind, KINDS, "fact") == "synthesis"
    figures = [figure for line in derived if (figure := parse_figure(line, claims))]
    return DraftSentence(
        text=plain,
        claims=tuple(claim.id for claim in named),
        kind="synthesis" if is_synthesis or (figures and len(named) > 1) else "fact",
        derived=tuple(figures),
    )


def parse_figure(line: str, claims: NumberedClaims) -> DerivedFigure | None:
    """Read "7.7 = difference(190.1, 182.4)"; None where it is no such thing."""
    match = _DERIVED.search(line)
    if not match or match[2].lower() not in get_args(Operation):
        return None
    operation, parts = match[2].lower(), [part.strip(" \"'[]") for part in re.split(r",(?!\d{3}\b)|;", match[3])]
    operands: list[float | str] = []
    for part in filter(None, parts):
        number = part.replace(",", "").removeprefix("C").rstrip("%")
        if operation == "count":
            named = claims.find([int(number)]) if number.isdecimal() else []
            operands.append(named[0].id if named else part)
        elif operation == "days":
            operands.append(part)
        else:
            try:
                operands.append(float(number))
            except ValueError:
                return None
    try:
        value = float(match[1].replace(",", "").rstrip("."))
    except ValueError:
        return None
    return DerivedFigure(value=value, operation=cast(Operation, operation), operands=tuple(operands))


# Abstract and conclusion.


class OpeningSentenceForm(forms.OutputForm):
    part: forms.Text = forms.choice_field(PARTS)
    kind: forms.Text = forms.choice_field(KINDS)
    claims: forms.Numbers
    text: forms.Text
    derived: forms.Texts = []


class OpeningForm(forms.OutputForm):
    sentences: list[OpeningSentenceForm]
    answers: list[ShortAnswerForm] = []


class Opening(NamedTuple):
    abstract: tuple[DraftSentence, ...] = ()
    conclusion: tuple[DraftSentence, ...] = ()
    answers: tuple[DraftAnswer, ...] = ()


def build_opening_job(
    request: WriteRequest, claims: NumberedClaims, sections: Sequence[DraftSection], fixes: str = ""
) -> Job[OpeningForm, Claim, Opening]:
    """The claims that the sections rest on are shown without quotes: the sections say what is in them."""
    used = {id for section in sections for sentence in section.sentences for id in sentence.claims}
    lines = [
        f"## {section.title}\n"
        + " ".join(f"{sentence.text} {claims.show_names(sentence.claims)}".strip() for sentence in section.sentences)
        for section in sections
    ]

    def build(shown: Sequence[Claim]) -> dict[str, str]:
        return {
            "claims": wrap_tag("source", "\n".join(claims.show(claim, quotes=0) for claim in shown)),
            "sections": wrap_tag("draft", "\n\n".join(lines)),
            "open": "; ".join(request.unanswered) or "nothing that was asked",
            "question": wrap_tag("message", request.plan.goal),
            "style": STYLES[request.style],
            "language": request.language or "the language of the question",
            "abstract": "120 to 220 words",
            "conclusion": "60 to 120 words",
            "banned": ", ".join(request.banned) or "none",
            "fixes": fixes,
        }

    lists = {"sentences": MAX_OPENING, "claims": MAX_SENTENCE_CLAIMS, "derived": 4, "answers": 2}
    return Job(
        OPENING_STEP,
        OpeningForm,
        forms.build_schema(OpeningForm, "Opening", lists),
        build,
        convert=lambda answer, _: convert_opening(answer, claims),
        sources=[claim for claim in list_claims(request) if claim.id in used],
    )


def convert_opening(answer: OpeningForm, claims: NumberedClaims) -> Opening:
    parts: dict[str, list[DraftSentence]] = {part: [] for part in PARTS}
    for item in answer.sentences:
        if sentence := build_sentence(item.kind, item.text, claims.find(item.claims), item.derived, claims):
            parts[forms.match_option(item.part, PARTS, "abstract")].append(sentence)
    if not any(sentence.claims for sentence in parts["abstract"]):
        raise ReasoningError("no sentence of the abstract names a claim by its number")
    answers = []
    for given in answer.answers:
        text = _CITATION.sub("", given.text).strip(" .")
        named = [claim for claim in claims.find(given.claims) if text and fold(text) in fold(claim.text)]
        if named and len(text.split()) <= MAX_ANSWER_WORDS:
            answers.append(DraftAnswer(text=text, claims=tuple(claim.id for claim in named)))
    return Opening(tuple(parts["abstract"]), tuple(parts["conclusion"]), tuple(answers))


def keep_opening(previous: Draft) -> Opening:
    parts = {section.role: section.sentences for section in previous.sections}
    return Opening(parts.get("abstract", ()), parts.get("conclusion", ()), previous.answers)


def build_draft(request: WriteRequest, outline: Outline, sections: Sequence[DraftSection], opening: Opening) -> Draft:
    """Put the parts together. What was not found, and a dispute that the sections do not tell with both its sides, are
    the baseline's, each in a section of its own (`add_baseline`)."""
    title = get_abstract_title(request.plan.depth)
    whole = [
        DraftSection(title=title, role="abstract", sentences=opening.abstract),
        *sections,
        DraftSection(title=CONCLUSION, role="conclusion", sentences=opening.conclusion),
    ]
    return Draft(
        title=outline.title,
        answers=opening.answers,
        sections=tuple(section for section in whole if section.sentences),
        composed=True,
    )


def add_baseline(draft: Draft, baseline: Draft, request: WriteRequest) -> Draft:
    """Add the baseline's sections on what was not found, and on disputes that the draft does not tell."""
    kept: set[Literal["disagreements", "not_found"]] = {"not_found"}
    told = [{id for sentence in section.sentences for id in sentence.claims} for section in draft.sections]
    for dispute in request.disagreements:
        if not dispute.resolved and not any(all(own & set(side) for side in dispute.sides) for own in told):
            kept.add("disagreements")
    added = [section for section in baseline.sections if section.role in kept]
    body = [section for section in draft.sections if section.role != "conclusion"]
    last = [section for section in draft.sections if section.role == "conclusion"]
    answers = draft.answers or baseline.answers
    title = draft.title or baseline.title
    return draft.model_copy(update={"title": title, "answers": answers, "sections": (*body, *added, *last)})


# A revision: the parts that a reviewer has named are written again, the others stay.


class Revision(NamedTuple):
    """What is written again of a draft: sections by their title, with what is wanted of them."""

    outline: Outline
    fixes: dict[str, str]
    opening: str  # what is wanted of abstract and conclusion; empty: they stay


def plan_revision(request: WriteRequest, previous: Draft) -> Revision:
    """An issue belongs to the section it names, or to abstract and conclusion. What is said of the whole report is for
    every section where it is grave and about how it reads; else no writer can act on it: nobody can add sources. What
    no section has told yet is offered where something is said to be missing."""
    known = {claim.id: claim for claim in list_claims(request)}
    body = [section for section in previous.sections if section.role == "body"]
    told = {id for section in body for sentence in section.sentences for id in sentence.claims}
    spare = [claim for claim in known.values() if claim.id not in told]
    issues: dict[str, list[str]] = {}
    lacking = set[str]()  # sections of which a reviewer says that something is missing
    for issue in request.issues:
        where = fold(issue.location)
        places = [one.title for one in body if fold(one.title) in where][:1]
        if not places and issue.category in ("coherence", "style") and issue.severity in ("critical", "major"):
            places = [one.title for one in body] if "whole" in where else []
        if any(name in where for name in ("abstract", "conclusion", "opening", "summary")):
            places.append("")
        for title in places:
            issues.setdefault(title, []).append(f"{issue.description} {issue.fix}".strip())
            lacking |= {title} if issue.category == "completeness" else set()
    sections, fixes = [], {}
    for section in body:
        own = [known[id] for id in dict.fromkeys(id for one in section.sentences for id in one.claims) if id in known]
        if section.title in issues:
            own += spare if section.title in lacking else []
            text = "\n".join(sentence.text for sentence in section.sentences)
            fixes[section.title] = show_fixes(text, issues[section.title])
        cells = [sentence.cell for sentence in section.sentences if sentence.cell]
        columns = tuple(dict.fromkeys(cell.column for cell in cells if cell.column))
        shape = "table" if columns else "timeline" if cells else "text"
        sections.append(OutlineSection(section.title, "", tuple(own[:MAX_SECTION_CLAIMS]), shape, columns))
    opening = [sentence for one in previous.sections if one.role != "body" for sentence in one.sentences]
    wanted = issues.get("", [])
    return Revision(
        Outline(previous.title, "", tuple(sections)),
        fixes,
        show_fixes(" ".join(one.text for one in opening), wanted) if wanted or fixes else "",
    )


def show_fixes(text: str, wanted: Sequence[str]) -> str:
    lines = number_lines(wanted) if wanted else "Bring it into line with the sections, which were written again."
    return (
        f"The last version:\n{wrap_tag('draft', text)}\nA reviewer asks for these changes:\n{wrap_tag('draft', lines)}"
    )


# Mending.


class MendedForm(forms.OutputForm):
    sentence: forms.Number
    kind: forms.Text = forms.choice_field(KINDS[:2])
    claims: forms.Numbers
    text: forms.Text = ""
    derived: forms.Texts = []


class MendForm(forms.OutputForm):
    sentences: list[MendedForm]


Mended = dict[FailedSentence, DraftSentence]
MendJob = Job[MendForm, FailedSentence, Mended]


def show_failure(sentence: DraftSentence) -> str:
    cell = sentence.cell
    if cell is None:
        return sentence.text
    return f"{cell.text} (in a table; row: {cell.row}{f'; column: {cell.column}' if cell.column else ''}; both stay)"


def build_mend_job(request: MendRequest, claims: NumberedClaims, task: str) -> MendJob:
    known = {claim.id: claim for claim in request.claims}

    def build(shown: Sequence[FailedSentence]) -> dict[str, str]:
        ids = dict.fromkeys(id for failure in shown for id in failure.sentence.claims if id in known)
        lines = [
            f"{number}. {show_failure(one.sentence)} {claims.show_names(one.sentence.claims)}\n   Wrong: {one.reason}"
            for number, one in enumerate(shown, 1)
        ]
        return {
            "claims": wrap_tag("source", "\n".join(claims.show(known[id], 2 * QUOTE) for id in ids)),
            "sentences": wrap_tag("source", "\n".join(lines)),
            "banned": ", ".join(request.banned) or "none",
        }

    lists = {"sentences": len(request.failures), "claims": MAX_SENTENCE_CLAIMS, "derived": 4}

    def convert(answer: MendForm, shown: Sequence[FailedSentence]) -> Mended:
        mended: Mended = {}
        for item in answer.sentences:
            if 1 <= item.sentence <= len(shown):
                failure = shown[item.sentence - 1]
                pieces = split_sentences(item.text)
                made = build_sentence(item.kind, item.text, claims.find(item.claims), item.derived, claims)
                if made and made.claims and len(pieces) <= 2 and failure not in mended:
                    cell = failure.sentence.cell
                    opens = made.model_copy(update={"opens": failure.sentence.opens})
                    place = cell.model_copy(update={"text": made.text}) if cell else None
                    mended[failure] = place_in_table(made, place) if place else opens
        return mended

    return Job(
        MEND_STEP,
        MendForm,
        forms.build_schema(MendForm, "Mended", lists),
        build,
        convert=convert,
        sources=request.failures,
        task=task,
    )
