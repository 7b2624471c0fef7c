"""How a capable model writes: the whole report in one call, from passages and the claims that were drawn from them.

Every sentence names the claims it rests on (`prose`). What it says is checked afterwards, by a judge and by what can be
counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from openassay.errors import ReasoningError
from openassay.models.evidence import Claim, Mark, Verdict
from openassay.models.report import DerivedFigure
from openassay.reasoning.base import (
    Draft,
    DraftAnswer,
    DraftSection,
    DraftSentence,
    WriteRequest,
)
from openassay.reasoning.llm import forms
from openassay.reasoning.llm.prose import (
    MAX_CLAIMS,
    clean_text,
    read_prose,
    remove_marks,
)
from openassay.reasoning.llm.step import BYTES_PER_TOKEN, Job, ReasoningStep, number_lines, wrap_tag
from openassay.reasoning.llm.write import (
    CONCLUSION,
    MAX_ANSWER_WORDS,
    STYLES,
    ShortAnswerForm,
    get_abstract_title,
)
from openassay.text.sentences import split_sentences
from openassay.text.words import fold

COMPOSE_STEP = ReasoningStep("compose", stage="write", role="writer", output="report", purpose="finish")
MAX_SECTIONS = 10
FREE = 80  # words left of a version, from which on what a reviewer misses is added and takes no other's place
MAX_QUOTES = 2  # of one claim
WORDS_PER_CLAIM, MIN_WORDS = 36, 120  # length follows the evidence
# Of the words wanted, that a writer is told: what fails a check is left out. Three reports whose writer was told the
# words wanted had .93 to 1.14 of them, and three who were told 1.1 had 1.1; readers missed what there was no room for.
TOLD = 1.1
PASSAGE_SHARE = 0.4  # of a model's room that passages have at least, however many claims there are
TASK_CHARACTERS = 12_000  # kept free for the task and for claims that do not agree
ROLES = ("section", "abstract", "conclusion")
REPORT_PARTS = (
    "abstract, 110 to 160 words in plain sentences: the first answers the question; then why, in two or three steps; "
    "what speaks against it, and how sure it is; cases and most names are for the sections. Sections as the matter "
    "needs them. conclusion, 100 to 150 words: your judgement of the whole, what it turned on, what stays open; no "
    "sentence of the abstract again"
)


# What a model is shown of claims.


def list_claims(claims: Iterable[Claim]) -> list[Claim]:
    """Return what may be written, the sides of a dispute among it, the most relevant first."""
    usable = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED and not claim.superseded_by]
    return sorted(usable, key=lambda claim: (-claim.relevance, claim.id))


class DocumentClaims(NamedTuple):
    """A document and the claims that were drawn from it."""

    document: str
    claims: tuple[Claim, ...]


def group_claims(claims: Iterable[Claim]) -> list[DocumentClaims]:
    """Put claims with the first document each rests on, the document with the most relevant claim first."""
    groups: dict[str, list[Claim]] = {}
    for claim in list_claims(claims):
        if claim.spans:
            groups.setdefault(claim.spans[0].document, []).append(claim)
    return [
        DocumentClaims(document, tuple(sorted(own, key=lambda claim: (claim.spans[0].start, claim.id))))
        for document, own in groups.items()
    ]


class NumberedClaims:
    """Claims under numbers, the same in all prompts of a report."""

    def __init__(self, claims: Iterable[Claim], heads: Mapping[str, str]) -> None:
        self.groups = group_claims(claims)
        self._claims = [claim for group in self.groups for claim in group.claims]
        self._numbers = {claim.id: number for number, claim in enumerate(self._claims, 1)}
        self._heads = heads

    def find(self, numbers: Sequence[int]) -> list[Claim]:
        return [self._claims[number - 1] for number in dict.fromkeys(numbers) if 1 <= number <= len(self._claims)]

    def find_documents(self, numbers: Sequence[int]) -> list[str]:
        shown = [group.document for group in self.groups]
        return [shown[number - 1] for number in dict.fromkeys(numbers) if 1 <= number <= len(shown)]

    def show(self, claim: Claim, quote: int = 0) -> str:
        """A claim, with its quotes or with the titles of the other documents that tell it."""
        more = " (by two independent sources)" if claim.mark is Mark.CORROBORATED else ""
        lines = [f"[{self._numbers[claim.id]}] {claim.text}{more}"]
        documents = list(dict.fromkeys(span.document for span in claim.spans))
        if quote:
            for span in list({span.document: span for span in reversed(claim.spans)}.values())[:MAX_QUOTES]:
                text = " ".join(span.quote.split())
                lines.append(
                    f"   {self._heads.get(span.document, '')}: “{text[:quote]}{'…' if len(text) > quote else ''}”"
                )
        elif others := [head for name in documents[1:] if (head := self._heads.get(name))]:
            lines[0] += f" (also in: {'; '.join(others[:MAX_QUOTES])})"
        return "\n".join(lines)

    def show_document(self, group: DocumentClaims, passage: str) -> str:
        head = self._heads.get(group.document, "")
        return "\n".join(
            [f"# D{self.groups.index(group) + 1} {head}", passage, "Claims:", *map(self.show, group.claims)]
        )

    def show_names(self, ids: Iterable[str]) -> str:
        return ", ".join(str(self._numbers[id]) for id in ids if id in self._numbers)

    def show_sentence(self, sentence: DraftSentence) -> str:
        """A sentence as the model would write it; one whose writer named nothing has no brackets."""
        follows = "=" if sentence.kind == "synthesis" else ""
        names = "" if sentence.cited_beside else self.show_names(sentence.claims)
        figures = "; ".join(map(self.show_figure, sentence.derived))
        text = sentence.text
        if sentence.lead and text.startswith(sentence.lead):
            text = f"**{sentence.lead}**{text.removeprefix(sentence.lead)}"
        return f"{text} [{follows}{names}{f': {figures}' if figures else ''}]" if names else text

    def show_figure(self, figure: DerivedFigure) -> str:
        operands = [
            f"{one:.15g}" if isinstance(one, float) else str(self._numbers.get(one, one)) for one in figure.operands
        ]
        return f"{figure.value:.15g} = {figure.operation}({', '.join(operands)})"

    def show_disputes(self, request: WriteRequest, shown: Iterable[Claim]) -> str:
        """Which of the claims shown do not agree."""
        known = {claim.id for claim in shown}
        lines = []
        for dispute in request.disagreements:
            sides = [self.show_names(id for id in side if id in known) for side in dispute.sides]
            if sum(map(bool, sides)) > 1:
                settled = f" (settled for the first: {dispute.resolution})" if dispute.resolved else ""
                told = " against ".join(f"[{side}]" for side in sides if side)
                lines.append(f"{told}: {dispute.about}{settled}")
        return "Claims that do not agree:\n" + wrap_tag("source", "\n".join(lines)) + "\n" if lines else ""


# The report.


class ReportSectionForm(forms.OutputForm):
    role: forms.Text = forms.choice_field(ROLES)
    title: forms.Phrase = ""
    text: forms.Prose


class ReportForm(forms.OutputForm):
    """The outline is the model's own: it thinks before it writes, and nobody is shown it."""

    outline: forms.Prose = ""
    title: forms.Phrase = ""
    sections: list[ReportSectionForm]
    answers: list[ShortAnswerForm] = []


def count_words(request: WriteRequest, claims: int) -> int:
    """How long a draft may be, by what was asked for and by what there is to say."""
    return max(min(MIN_WORDS, request.target), min(round(TOLD * request.target), WORDS_PER_CLAIM * claims))


def build_report_job(
    request: WriteRequest, claims: NumberedClaims, room: int
) -> Job[ReportForm, DocumentClaims, Draft]:
    """Ask for a report, or for the last version of it once more with what a reviewer asks for. `room`: the tokens of a
    prompt."""
    passages = shorten_passages(request.passages, claims, room, len(show_fixes(request, claims)))

    def build(shown: Sequence[DocumentClaims]) -> dict[str, str]:
        documents = [claims.show_document(group, passages.get(group.document, "")) for group in shown]
        usable = [claim for group in shown for claim in group.claims]
        return {
            "documents": wrap_tag("source", "\n\n".join(documents)),
            "disputes": claims.show_disputes(request, usable),
            "open": "; ".join(request.unanswered) or "no part of it as a whole",
            "missing": show_missing(request),
            "question": wrap_tag("message", request.plan.goal),
            "questions": wrap_tag("message", number_lines(question.text for question in request.plan.questions)),
            "parts": REPORT_PARTS,
            "style": STYLES[request.style],
            "language": request.language or "the language of the question",
            "words": str(count_words(request, len(usable))),
            "banned": ", ".join(request.banned) or "none",
            "fixes": show_fixes(request, claims),
        }

    lists = {"sections": MAX_SECTIONS, "claims": MAX_CLAIMS, "answers": 2}
    return Job(
        COMPOSE_STEP,
        ReportForm,
        forms.build_schema(ReportForm, "Report", lists),
        build,
        convert=lambda answer, _: convert_report(answer, claims, request),
        sources=claims.groups,
    )


def shorten_passages(
    passages: Mapping[str, str], claims: NumberedClaims, room: int, others: int = 0
) -> Mapping[str, str]:
    """Passages as far as a model has room for them beside the claims and `others`, in characters: the longest lose
    their ends, up to a whole sentence, so that all that are cut are about as long."""
    listed = sum(len(claims.show(claim)) for group in claims.groups for claim in group.claims)
    whole = room * BYTES_PER_TOKEN
    most = max(whole * PASSAGE_SHARE, whole - listed - others - TASK_CHARACTERS)
    shown = {group.document: passages.get(group.document, "") for group in claims.groups}
    left, longest = most, 0.0
    for count, length in zip(range(len(shown), 0, -1), sorted(map(len, shown.values())), strict=True):
        longest = left / count
        if length > longest:
            return {name: cut_at_sentence(text, int(longest)) for name, text in shown.items()}
        left -= length
    return passages


def cut_at_sentence(text: str, most: int) -> str:
    """The beginning of a text, as many whole sentences as `most` characters hold, one at least."""
    kept = [piece.end for piece in split_sentences(text) if piece.end <= most]
    return text[: kept[-1]] if kept else next((piece.text for piece in split_sentences(text)), "")


def show_missing(request: WriteRequest) -> str:
    if not request.missing:
        return ""
    told = wrap_tag("draft", number_lines(request.missing))
    return f"Not found when the evidence was last looked through; a search since then may have found it:\n{told}"


def show_fixes(request: WriteRequest, claims: NumberedClaims) -> str:
    """The last version, and what a reviewer asks for; empty for a first one."""
    previous = request.previous
    wanted = [f"{issue.location}: {issue.description} {issue.fix}".strip() for issue in request.issues]
    if previous is None or not previous.composed:
        asked = wrap_tag("draft", number_lines(wanted))
        return f"A reviewer of an earlier version, before more was found, asked for:\n{asked}" if wanted else ""
    parts = [
        f"## {section.title}\n{show_sentences(section.sentences, claims)}"
        for section in previous.sections
        if section.role in ("abstract", "body", "conclusion")
    ]
    lines = number_lines(wanted) if wanted else "Make it read better."
    words = sum(len(one.text.split()) for section in previous.sections for one in section.sentences)
    left = count_words(request, len(list_claims(request.claims))) - words
    place = "takes the place of what matters less: no sentence or paragraph becomes longer for it"
    if left > FREE:
        place = f"may take the {left} words that it has left, in sentences of its own"
    return (
        f"The last version, of {words} words:\n{wrap_tag('draft', chr(10).join(parts))}\n"
        f"A reviewer asks for these changes; what is good stays as it is. What you add {place}.\n"
        f"{wrap_tag('draft', lines)}"
    )


def show_sentences(sentences: Iterable[DraftSentence], claims: NumberedClaims) -> str:
    """Sentences as the model would write them: paragraphs, lists, timelines and tables."""
    text = ""
    for in_table, group in groupby(sentences, key=lambda one: bool(one.cell and one.cell.column)):
        if in_table:
            text = f"{text.rstrip()}\n\n{show_table(list(group), claims)}\n"
            continue
        for sentence in group:
            text += "\n- " if sentence.item or sentence.cell else "\n\n" if sentence.opens else " "
            text += claims.show_sentence(sentence)
    return text.strip()


def show_table(sentences: Sequence[DraftSentence], claims: NumberedClaims) -> str:
    cells = [one.cell for one in sentences if one.cell]
    columns = list(dict.fromkeys(cell.column for cell in cells))
    rows: dict[str, dict[str, str]] = {cell.row: dict.fromkeys(columns, "") for cell in cells}
    for sentence, cell in zip(sentences, cells, strict=True):
        text = claims.show_sentence(sentence.model_copy(update={"text": cell.text}))
        rows[cell.row][cell.column] = f"{rows[cell.row][cell.column]} {text}".strip()
    lines = [
        [cells[0].rows, *columns],
        ["---"] * (len(columns) + 1),
        *([name, *row.values()] for name, row in rows.items()),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def convert_report(answer: ReportForm, claims: NumberedClaims, request: WriteRequest) -> Draft:
    """Make a draft of an answer: abstract, sections, conclusion. One without a sentence that names a claim is of no
    use."""
    sections = list[DraftSection]()
    for item in answer.sections:
        role = forms.match_option(item.role, ROLES, "section")
        sentences = tuple(read_prose(item.text, claims))
        # An abstract or a conclusion may sum up the report without naming a claim itself.
        if sentences and (role != "section" or names_claims(sentences)):
            title = clean_text(item.title).rstrip(" .:")
            if role == "abstract":
                section = DraftSection(
                    title=get_abstract_title(request.plan.depth), role="abstract", sentences=sentences
                )
            elif role == "conclusion":
                section = DraftSection(title=CONCLUSION, role="conclusion", sentences=sentences)
            else:
                section = DraftSection(title=title or request.plan.sections[0], sentences=sentences)
            sections.append(section)
    if not any(section.role == "body" or names_claims(section.sentences) for section in sections):
        raise ReasoningError("no sentence names a claim by its number in square brackets")
    order: dict[str, int] = {"abstract": 0, "conclusion": 2}
    return Draft(
        title=clean_text(answer.title).rstrip(" ."),
        answers=tuple(convert_answers(answer.answers, claims)),
        sections=tuple(sorted(sections, key=lambda section: order.get(section.role, 1))),
        composed=True,
    )


def names_claims(sentences: Iterable[DraftSentence]) -> bool:
    return any(sentence.claims or sentence.documents for sentence in sentences)


def convert_answers(items: Iterable[ShortAnswerForm], claims: NumberedClaims) -> Iterable[DraftAnswer]:
    for item in items:
        text = remove_marks(item.text).strip(" .")
        named = [claim for claim in claims.find(item.claims) if text and fold(text) in fold(claim.text)]
        if named and len(text.split()) <= MAX_ANSWER_WORDS:
            yield DraftAnswer(text=text, claims=tuple(claim.id for claim in named))


def add_baseline(draft: Draft, baseline: Draft, request: WriteRequest) -> Draft:
    """Add the baseline's section on sub-questions that nothing answered."""
    added = [section for section in baseline.sections if section.role == "not_found" and request.unanswered]
    body = [section for section in draft.sections if section.role != "conclusion"]
    last = [section for section in draft.sections if section.role == "conclusion"]
    answers = draft.answers or baseline.answers
    title = draft.title or baseline.title
    return draft.model_copy(update={"title": title, "answers": answers, "sections": (*body, *added, *last)})
