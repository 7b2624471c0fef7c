"""How a capable model edits the report that it has composed: what did not pass a check is put right or left out, and
what reads badly is written anew, a paragraph at a time. What it gives back is checked like any draft."""

import re
from collections.abc import Iterable, Sequence

from openassay.models.evidence import Claim
from openassay.reasoning.base import DraftParagraph, DraftSentence, EditRequest
from openassay.reasoning.llm import forms
from openassay.reasoning.llm.compose import NumberedClaims, list_claims, show_sentences
from openassay.reasoning.llm.prose import MAX_CLAIMS, read_prose
from openassay.reasoning.llm.step import Job, ReasoningStep, wrap_tag

EDIT_STEP = ReasoningStep("edit", stage="write", role="writer", output="paragraphs", purpose="finish")
QUOTE = 700  # characters of a quote that are shown where a sentence is to be put right
MAX_PARAGRAPHS = 60  # that are given back
ROOM = 1.2  # of the words wanted, that an edited report may have
FAULT = "✗"
_FAULT = re.compile(rf"{FAULT}\s*\d*\s*")
_PLACE = re.compile(r"^\s*\(\d+\)\s*")  # the paragraph's own number

Edited = dict[int, tuple[DraftSentence, ...]]


class EditedParagraphForm(forms.OutputForm):
    paragraph: forms.Number
    text: forms.Prose = ""


class EditForm(forms.OutputForm):
    paragraphs: list[EditedParagraphForm]


EditJob = Job[EditForm, Claim, Edited]


def build_edit_job(request: EditRequest, claims: NumberedClaims) -> EditJob:
    """Ask for the paragraphs that change. Claims of sentences that failed are shown first, and with their quotes."""
    failed = [
        sentence
        for paragraph in request.paragraphs
        for sentence, fault in zip(paragraph.sentences, paragraph.faults, strict=True)
        if fault
    ]
    lacking = {id for sentence in failed for id in sentence.claims}
    told = {id for paragraph in request.paragraphs for one in paragraph.sentences for id in one.claims}
    told.update(request.needed)
    known = [claim for claim in list_claims(request.claims) if claim.spans and claim.id in told]

    def build(shown: Sequence[Claim]) -> dict[str, str]:
        lines = [claims.show(claim, QUOTE if claim.id in lacking else 0) for claim in shown]
        faults = [fault for paragraph in request.paragraphs for fault in paragraph.faults if fault]
        return {
            "report": wrap_tag("draft", show_paragraphs(request.paragraphs, claims)),
            "faults": wrap_tag("draft", "\n".join(f"{FAULT}{n}: {one}" for n, one in enumerate(faults, 1))),
            "claims": wrap_tag("source", "\n".join(lines)),
            "banned": ", ".join(request.banned) or "none",
            "length": tell_length(request),
        }

    return Job(
        EDIT_STEP,
        EditForm,
        forms.build_schema(EditForm, "Edited", {"paragraphs": MAX_PARAGRAPHS, "claims": MAX_CLAIMS}),
        build,
        convert=lambda answer, _: read_paragraphs(answer, request, claims),
        sources=sorted(known, key=lambda claim: claim.id not in lacking),
    )


def tell_length(request: EditRequest) -> str:
    words = sum(len(one.text.split()) for paragraph in request.paragraphs for one in paragraph.sentences)
    most = round(ROOM * request.words)
    if words <= most:
        return f"The report has {words} words and may have {most}."
    return f"The report has {words} words, which is too many: tighten it towards {most}, without losing a fact."


def show_paragraphs(paragraphs: Iterable[DraftParagraph], claims: NumberedClaims) -> str:
    """The report with its paragraphs and the sentences that failed under numbers."""
    lines, section, fault = list[str](), "", 0
    for number, paragraph in enumerate(paragraphs, 1):
        if paragraph.section != section:
            section = paragraph.section
            lines.append(f"## {section}")
        marked = list[DraftSentence]()
        for sentence, wrong in zip(paragraph.sentences, paragraph.faults, strict=True):
            fault += bool(wrong)
            marked.append(_mark(sentence, f"{FAULT}{fault} ") if wrong else sentence)
        lines.append(f"({number}) {show_sentences(marked, claims)}")
    return "\n\n".join(lines)


def _mark(sentence: DraftSentence, sign: str) -> DraftSentence:
    cell = sentence.cell and sentence.cell.model_copy(update={"text": sign + sentence.cell.text})
    return sentence.model_copy(update={"text": sign + sentence.text, "lead": "", "cell": cell})


def read_paragraphs(answer: EditForm, request: EditRequest, claims: NumberedClaims) -> Edited:
    edited: Edited = {}
    for item in answer.paragraphs:
        number = item.paragraph - 1
        if 0 <= number < len(request.paragraphs) and number not in edited:
            edited[number] = tuple(read_prose(_PLACE.sub("", _FAULT.sub("", item.text)), claims))
    return edited
