"""Writing without a model: verified claims in their own words, in the order of the plan, each said once, as prose."""

import re
from collections.abc import Sequence

from assay.model.claim import Claim, Verdict
from assay.model.question import Depth
from assay.reasoning.embedded.writing.abstract import FEWEST, NO_ABSTRACT, abstract, room
from assay.reasoning.embedded.writing.body import Placed, placed
from assay.reasoning.embedded.writing.comparison import compared, ranking
from assay.reasoning.embedded.writing.conclusion import conclusion, findings
from assay.reasoning.embedded.writing.disputed import TITLE as DISPUTED
from assay.reasoning.embedded.writing.disputed import Matter, contested, disputed, matters
from assay.reasoning.embedded.writing.joining import CONTRAST, Joints, common_words, paragraph
from assay.reasoning.embedded.writing.paragraphs import paragraphs
from assay.reasoning.embedded.writing.revision import Orders, orders
from assay.reasoning.embedded.writing.unfound import TITLE as UNFOUND
from assay.reasoning.embedded.writing.unfound import elsewhere, unfound
from assay.reasoning.embedded.writing.voice import VOICES, Voice, allowed
from assay.reasoning.protocol import Draft, DraftSection, DraftSentence, WriteRequest
from assay.text.sentences import is_row

QUICK_WORDS = 220
SHORT = 0.75  # of the words asked for: a report with less matter says so

_QUOTED = re.compile("“[^”]*”")

__all__ = ["write"]


def write(request: WriteRequest) -> Draft:
    asked = orders(request)
    return _Writer(request, asked).draft()


class _Writer:
    """What the parts of one draft share."""

    def __init__(self, request: WriteRequest, asked: Orders) -> None:
        self.request, self.orders = request, asked
        self.voice: Voice = VOICES[request.style]
        self.target = request.target * 3 // 4 if asked.shorter else request.target
        self.usable = [claim for claim in request.claims if claim.verdict is Verdict.SUPPORTED]
        by_id = {claim.id: claim for claim in self.usable}
        self.matters: list[Matter] = matters(request.disagreements, by_id, request.plan)
        self.hidden = contested(self.matters)
        self.plain = [c for c in self.usable if not c.superseded_by and c.id not in self.hidden]
        self.banned = {*request.banned, *asked.banned}

    def draft(self) -> Draft:
        summary = room(self.request, self.target) * (3 if self.orders.shorter_summary else 4) // 4
        closing = conclusion(self.request, self.usable, self.matters, self.target, self.voice)
        missing = unfound(self.request, self.usable, self.orders.missing)
        body = self._placed(summary, (*disputed(self.matters, self.target), *missing, *closing))
        told = [claim for claims in body.values() for claim in claims]
        short = abstract(told, self.matters, self.request, summary, self.voice) if len(told) >= FEWEST else []
        summed_up = {id for sentence in short for id in sentence.claims}
        surest = findings(told, self.request, short) if short else []
        dispute = disputed(self.matters, self.target, [claim.id for claim in told])
        ending = DraftSection(title=self.voice.conclusion, role="conclusion", sentences=(*surest, *closing))
        sections = [
            DraftSection(title=self.voice.abstract, role="abstract", sentences=tuple(short)),
            *self._sections(body, summed_up),
            DraftSection(title=DISPUTED, role="disagreements", sentences=dispute),
            DraftSection(title=UNFOUND, role="not_found", sentences=missing),
        ]
        # Who is in a hurry is told at once how far the points carry.
        sections.insert(1 if self.voice.brief else len(sections), ending)
        kept = tuple(
            s for s in map(self._cleaned, sections) if s.sentences and (told or dispute or s.role != "conclusion")
        )
        title = self.request.plan.goal.rstrip("?!. ")
        return Draft(title=title, sections=kept, notes=(*self.orders.notes, *self._shortage(kept)))

    def _placed(self, summary: int, after: Sequence[DraftSentence]) -> Placed:
        left = self.target - summary - _words(after)
        words = min(left, QUICK_WORDS) if self.request.plan.depth is Depth.QUICK else left
        return placed(self.request, self.plain, words, self.voice, self.orders)

    def _sections(self, body: Placed, summed_up: set[str]) -> list[DraftSection]:
        added = elsewhere(self.request, body, self.matters if self.target >= NO_ABSTRACT else ())
        voice = self.voice._replace(joints=self.voice.joints and not self.orders.unjoined)
        joints = Joints(voice, self.banned, compared(self.request.plan.goal), common_words(self.plain))
        sections = []
        for title, claims in body.items():
            parts = paragraphs(title, claims, self.voice, self.request.plan.goal)
            in_turn = joints.sides or ranking(f"{self.request.plan.goal} {title}")  # the order says something
            parts = parts if in_turn else _varied(parts, summed_up)
            told = [sentence for part in parts for sentence in paragraph(part, joints)]
            sections.append(DraftSection(title=title, sentences=(*told, *added[title])))
        return sections

    def _cleaned(self, section: DraftSection) -> DraftSection:
        """Words of our own that nobody wants to read are left out; what a source says stays as it is."""
        kept = tuple(self._in_wanted_words(sentence, section) for sentence in section.sentences)
        return section.model_copy(update={"sentences": tuple(sentence for sentence in kept if sentence is not None)})

    def _in_wanted_words(self, sentence: DraftSentence, section: DraftSection) -> DraftSentence | None:
        """A dispute is announced in any case, in fewer words if need be."""
        if sentence.claims and sentence.text.startswith(CONTRAST) and not self._allowed(CONTRAST):
            text = sentence.text.removeprefix(CONTRAST)
            return sentence.model_copy(update={"text": f"{text[:1].upper()}{text[1:]}"})
        if sentence.claims or self._allowed(sentence.text):
            return sentence
        shorter = f"{sentence.text.partition(';')[0].rstrip('.')}."
        spare = [text for text in (shorter, "Sources differ.") if self._allowed(text)]
        return sentence.model_copy(update={"text": spare[0]}) if spare and section.role == "disagreements" else None

    def _allowed(self, text: str) -> bool:
        return allowed(_QUOTED.sub("", text), self.banned)

    def _shortage(self, sections: Sequence[DraftSection]) -> list[str]:
        words = sum(_words(section.sentences) for section in sections)
        if self.request.previous or self.request.plan.depth is Depth.QUICK or words >= SHORT * self.target:
            return []
        return [f"The sources had matter for {words} words where {self.target} were asked for."]


def _words(sentences: Sequence[DraftSentence]) -> int:
    return sum(len(sentence.text.split()) for sentence in sentences)


def _varied(parts: Sequence[list[Claim]], summed_up: set[str]) -> list[list[Claim]]:
    """A section does not begin with what the abstract has just said, if it has anything else to begin with: another
    paragraph, else another sentence."""
    if not parts or parts[0][0].id not in summed_up:
        return list(parts)
    for part in parts:
        if part[0].id not in summed_up and not is_row(part[0].text):
            return [part, *(other for other in parts if other is not part)]
    first, *others = parts
    fresh = next((claim for claim in first if claim.id not in summed_up), first[0])
    return [[fresh, *(claim for claim in first if claim is not fresh)], *others]
