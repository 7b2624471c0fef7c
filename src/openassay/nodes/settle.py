"""Check the sentences of a draft that a capable model has composed, have it edited once where some fail, and leave out
what fails again."""

import asyncio
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from openassay.companies.names import is_word
from openassay.context import ResearchContext
from openassay.models.evidence import Claim, Verdict
from openassay.models.plan import Plan
from openassay.nodes.binding import bind_by_words, bind_to_paragraphs, draw_claims, rank_claims
from openassay.nodes.disputes import find_one_sided, list_other_sides
from openassay.nodes.draft_checker import NO_CLAIM, DraftChecker
from openassay.nodes.verify import judge_statements
from openassay.reasoning.base import (
    Draft,
    DraftParagraph,
    DraftSection,
    DraftSentence,
    EditRequest,
    SynthesisPair,
    WriteRequest,
)
from openassay.verification.names import begins_sentence, has_name
from openassay.verification.synthesis import settle_figures, shorten_claim, spell_numbers, tell_figure
from openassay.verification.terms import LEFT_OUT, KnownTerms, collect_words, mask_unverified_terms
from openassay.verification.verdict import ClaimMatcher

MOST_TITLE_CLAIMS, MOST_TITLE_WORDS = 40, 16  # that a title is held against, and may have
LONGEST_TITLE = 110  # characters of a question that stands as a title
MOST_STRANGE_WORDS = 4  # of a title that stand neither in the question nor in its claims
COMMON = 3  # documents whose claims have a word that the title of a report may have: one page alone can plant none
UNTITLED = "Findings"  # heads a section whose own title states more than was asked
MOST_GROWN, SOME_WORDS = 1.3, 12  # what an edited paragraph may have of its words before, and some besides
LIMITS = "These claims leave this open or are limited in this way, and nothing else is stated:"
MOST_BESIDE = 16  # sentences that one which sums up is shown with
MOST_FRAME_CLAIMS = 30  # that a sentence on what the sources leave open is held against

_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_CAPITAL = re.compile(r"\b[A-Z][^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]+(?:[-’'][^\W\d_]+)*|\b(?:1[5-9]|20)\d\d\b")
_POINTS_BACK = re.compile(
    r"(?:It|Its|He|His|She|Her|They|Their|This|That|These|Those|Such|Both|Neither|The (?:latter|former|same|other))\b"
)

SentencesBySection = Sequence[Sequence[DraftSentence]]


class DraftFailures(NamedTuple):
    """Why sentences cannot be published, what is left of them, and how a judge would have them, which is not judged;
    and which hold, but tell one side of a dispute alone."""

    reasons: dict[DraftSentence, str]
    narrower: dict[DraftSentence, DraftSentence]
    rewordings: dict[DraftSentence, DraftSentence]
    one_sided: Mapping[DraftSentence, str] = MappingProxyType({})


async def find_failures(
    sentences: Iterable[DraftSentence],
    checker: DraftChecker,
    heads: Mapping[str, str],
    context: ResearchContext,
    around: Mapping[DraftSentence, Sequence[Claim]] | None = None,
    beside: Mapping[DraftSentence, tuple[str, ...]] | None = None,
) -> DraftFailures:
    """Find why sentences cannot be published; those that can are not there. Facts and syntheses are judged side by
    side, and with them what says that the sources leave something open, by the claims `around` it."""
    failures, narrower = dict[DraftSentence, str](), dict[DraftSentence, DraftSentence]()
    rewordings = dict[DraftSentence, DraftSentence]()
    facts, syntheses, frames = list[DraftSentence](), list[DraftSentence](), list[DraftSentence]()
    for sentence in dict.fromkeys(sentences):
        if problem := await asyncio.to_thread(checker.find_problem, sentence):
            failures[sentence] = problem
            if around and around.get(sentence) and problem == NO_CLAIM and checker.may_tell_limits(sentence.text):
                frames.append(sentence)
        elif sentence.kind == "synthesis" or (sentence.claims and checker.may_tell_limits(sentence.text)):
            syntheses.append(sentence)
        elif sentence.claims and not checker.is_verbatim(sentence):
            facts.append(sentence)
    contexts = [await asyncio.to_thread(checker.read_whole_contexts, sentence) for sentence in facts]
    limits = [
        build_pair(DraftSentence(text=f"{LIMITS} {one.text}"), around[one][:MOST_FRAME_CLAIMS], heads)
        for one in frames
        if around
    ]
    told = beside or {}
    bound = [checker.find_bound(one) for one in syntheses]
    passages = await asyncio.to_thread(checker.read_passages, list(zip(syntheses, bound, strict=True)))
    pairs_of_syntheses = [
        build_pair(one, some, heads)._replace(
            beside=told.get(one, ()),
            passages=tuple(
                (heads.get(name, name), passages[name])
                for name in dict.fromkeys(span.document for claim in some for span in claim.spans)
            ),
        )
        for one, some in zip(syntheses, bound, strict=True)
    ]
    judged, followed = await asyncio.gather(
        judge_statements(
            [(one.text, [found.render() for found in own]) for one, own in zip(facts, contexts, strict=True)], context
        ),
        context.reasoner.judge_syntheses([*pairs_of_syntheses, *limits]),
    )
    for sentence, judgement in zip(frames, followed[len(syntheses) :], strict=True):
        if judgement.verdict is Verdict.SUPPORTED and not judgement.embedded:
            del failures[sentence]
    pairs = [*zip(facts, judged.judgements, strict=True), *zip(syntheses, followed[: len(syntheses)], strict=True)]
    for sentence, judgement in pairs:
        if reason := await asyncio.to_thread(checker.explain, sentence, judgement):
            failures[sentence] = reason
            if left := await asyncio.to_thread(checker.narrow, sentence, judgement):
                narrower[sentence] = left
            if other := checker.reword(sentence, judgement):
                rewordings[sentence] = other
    return DraftFailures(failures, narrower, rewordings)


def build_pair(sentence: DraftSentence, bound: Sequence[Claim], heads: Mapping[str, str]) -> SynthesisPair:
    """A sentence, and its claims with where they are from and what they rest on."""
    lines, short = [], []
    for claim in bound:
        quotes = " … ".join(dict.fromkeys(" ".join(span.quote.split()) for span in claim.spans[:2]))
        sources = dict.fromkeys(heads.get(span.document, "") for span in claim.spans)
        lines.append(f"{claim.text} ({'; '.join(filter(None, sources))}: “{quotes}”)")
        short.append(shorten_claim(claim.text, next(filter(None, sources), "")))
    return SynthesisPair(sentence.text, tuple(lines), tuple(short), tuple(map(tell_figure, sentence.derived)))


class SettledTitles(NamedTuple):
    report: str
    sections: Sequence[str]


async def settle_titles(
    draft: Draft, request: WriteRequest, terms: KnownTerms, context: ResearchContext
) -> SettledTitles:
    """Return the titles of a report and of its sections. One in words of the question and the plan may stand; one in
    other words, but without figures and names that no claim has, where a language model says that what follows is about
    it; else the question, or the plan's title, or none in particular."""
    claims = {claim.id: claim for claim in request.claims}
    titles = [section.title for section in draft.sections]
    own = [list_section_claims(draft, number, claims) for number in range(len(titles))]
    every = list({claim.id: claim for some in own for claim in some}.values())
    years = _YEAR.findall(" ".join(request.heads.values()))
    common = list_common_words(claim for claim in request.claims if claim.verdict is Verdict.SUPPORTED)
    asked: dict[int, SynthesisPair] = {}
    doubtful = list[int]()
    for at, (title, some) in enumerate(zip([*titles, draft.title], [*own, every], strict=True)):
        if not terms.covers_title(title):
            doubtful.append(at)
            # What stands over everything may name only what was asked and what was read.
            texts = [request.plan.goal, *request.titles.values()]
            texts += [claim.text for claim in some] if at < len(titles) else [*years, *common]
            if some and is_plain_title(title, texts):
                about = DraftSentence(text=f"What follows tells of this: {title}")
                pair = build_pair(about, some[:MOST_TITLE_CLAIMS], request.heads)
                asked[at] = pair._replace(claims=pair.short)  # what it is about can be told without quotes
    judged = dict(zip(asked, await context.reasoner.judge_syntheses(list(asked.values())), strict=True))
    refused = [
        at
        for at in doubtful
        if (said := judged.get(at)) is None or said.embedded or said.verdict is Verdict.CONTRADICTED
    ]
    for at in refused:
        if at < len(titles):
            titles[at] = UNTITLED
            titles[at] = name_by_questions(own[at], request.plan, titles)
    return SettledTitles(shorten_question(request.plan.goal) if len(titles) in refused else draft.title, titles)


def shorten_question(goal: str) -> str:
    """A question as a title: of a long one, what stands before its parts, without what is in brackets."""
    text = goal.rstrip("?!. ")
    if len(text) > LONGEST_TITLE:
        text = re.sub(r"\s*\([^()]*\)", "", text)
    while len(text) > LONGEST_TITLE and (shorter := re.sub(r"[:,;—][^:,;—]*$", "", text)) != text:
        text = shorter
    return text


def name_by_questions(own: Sequence[Claim], plan: Plan, used: Sequence[str]) -> str:
    """Name a section as the plan does what most of its claims answer."""
    sections = {question.id: question.section for question in plan.questions}
    told = Counter(sections[id] for claim in own for id in claim.questions if id in sections)
    return next((name for name, _ in told.most_common() if name not in used), UNTITLED)


def list_common_words(claims: Iterable[Claim]) -> list[str]:
    """The words and years, as they are spelled, of claims that rest on several documents between them."""
    documents = defaultdict[str, set[str]](set)
    for claim in claims:
        for word in _WORD.findall(claim.text):
            documents[word].update(span.document for span in claim.spans)
    return [word for word, told in documents.items() if len(told) >= COMMON]


def is_plain_title(title: str, known: Sequence[str]) -> bool:
    """Whether a title has words of the question and its claims but for a few, and these are plain words: no name,
    figure, code or address."""
    said = (title[:1].lower() + title[1:]).split()  # its first word is no name for standing there
    strange = [word for word in said if not KnownTerms(known).covers_title(word)]
    plain = mask_unverified_terms(title, collect_words(*known)) == title
    return (
        plain
        and len(said) <= MOST_TITLE_WORDS
        and len(strange) <= MOST_STRANGE_WORDS
        and not any(map(is_name, strange))
    )


def is_name(word: str) -> bool:
    bare = word.strip(",:;.!?()“”\"'’–—-").replace("-", "")  # "opt-in" is a plain word
    return not bare.isalpha() or not bare.islower()


def list_section_claims(draft: Draft, number: int, claims: Mapping[str, Claim]) -> list[Claim]:
    ids = dict.fromkeys(id for sentence in draft.sections[number].sentences for id in sentence.claims)
    return [claims[id] for id in ids if id in claims]


class SettledDraft(NamedTuple):
    """What may be published of each sentence, and the claims that rest on more of their documents' record for it."""

    sentences: SentencesBySection
    claims: Mapping[str, Claim]


class _Slot(NamedTuple):
    """A sentence as it was written, and what may be published of it."""

    written: DraftSentence
    kept: DraftSentence | None


class _Paragraph(NamedTuple):
    section: int
    slots: tuple[_Slot, ...]


def split_paragraphs(sentences: Sequence[DraftSentence]) -> list[list[DraftSentence]]:
    """Put the sentences of a section together that stand in one paragraph, list, timeline or table."""
    paragraphs, form = list[list[DraftSentence]](), ""
    for sentence in sentences:
        begins = sentence.opens or bool(sentence.cell) or form in ("table", "timeline")
        now = _get_form(sentence) if begins or not paragraphs else form
        if now != form or (begins and now == "text"):
            paragraphs.append([])
        paragraphs[-1].append(sentence)
        form = now
    return paragraphs


def _get_form(sentence: DraftSentence) -> str:
    if sentence.cell:
        return "table" if sentence.cell.column else "timeline"
    return "item" if sentence.item else "text"


async def settle_draft(
    draft: Draft, request: WriteRequest, terms: KnownTerms, context: ResearchContext
) -> SettledDraft:
    """Return what may be published of each sentence. Where some fail, the writer edits the draft once, with the
    reasons; what fails again is narrowed or lost. Of a sentence that says what a passage says and no claim does, a
    claim is drawn."""
    claims = {claim.id: claim for claim in request.claims}
    documents = await context.load_documents({span.document for claim in claims.values() for span in claim.spans})
    draft, drawn = await draw_claims(draft, claims, documents, context)
    claims |= drawn
    matcher = ClaimMatcher(claims.values(), request.titles)
    planned = [*(question.text for question in request.plan.questions), *request.missing]
    checker = DraftChecker(claims, documents, matcher, terms, request.plan.goal, planned)
    check = _DraftCheck(checker, claims, request.heads, context)
    draft = await asyncio.to_thread(check.bind, draft)
    found = await check.find_failures(draft, [one for section in draft.sections for one in section.sentences])
    paragraphs = [
        _Paragraph(at, tuple(_Slot(one, check.keep(one, found)) for one in group))
        for at, section in enumerate(draft.sections)
        for group in split_paragraphs(section.sentences)
    ]
    one_sided = find_one_sided(list_told(paragraphs), request.disagreements, claims)
    if found.reasons or one_sided:
        found = found._replace(one_sided=one_sided)
        paragraphs = await edit_paragraphs(draft, paragraphs, found, check, request)
        one_sided = find_one_sided(list_told(paragraphs), request.disagreements, claims)
    slots = [
        [
            slot._replace(kept=None) if slot.kept in one_sided else slot
            for one in paragraphs
            if one.section == at
            for slot in one.slots
        ]
        for at in range(len(draft.sections))
    ]
    settled = _fill_gaps(draft, slots, checker)
    told = {id for section in settled for one in section for id in one.claims}
    needed = {id: claim for id, claim in drawn.items() if id in told}
    for sentence in (one for section in settled for one in section if one.claims):
        for id, claim in checker.find_needed_context(sentence).items():
            needed[id] = join_evidence(needed[id], claim) if id in needed else claim
    return SettledDraft(settled, needed)


def list_told(paragraphs: Iterable[_Paragraph]) -> list[DraftSentence]:
    return [slot.kept for one in paragraphs for slot in one.slots if slot.kept]


class _DraftCheck:
    """Binds and checks the sentences of a draft and of what is edited in it."""

    def __init__(
        self, checker: DraftChecker, claims: Mapping[str, Claim], heads: Mapping[str, str], context: ResearchContext
    ) -> None:
        self.checker = checker
        self.context = context
        self.claims = claims
        self._heads = heads
        self._usable = rank_claims("", claims)
        self._around: dict[DraftSentence, Sequence[Claim]] = {}

    def bind(self, draft: Draft) -> Draft:
        """Bind each sentence to the claims it rests on, and settle its figures."""
        body = [one for section in draft.sections if section.role == "body" for one in section.sentences]
        named = list(dict.fromkeys(id for one in body for id in one.claims))

        def bind_section(section: DraftSection) -> DraftSection:
            others = named if section.role in ("abstract", "conclusion") else ()
            bound = bind_to_paragraphs(section.sentences, self.checker, others)
            return section.model_copy(update={"sentences": tuple(map(self.settle, bound))})

        return draft.model_copy(update={"sections": tuple(map(bind_section, draft.sections))})

    def settle(self, sentence: DraftSentence) -> DraftSentence:
        sentence = bind_by_words(sentence, self._usable, self.checker)
        bound = self.checker.find_bound(sentence)
        sentence = spell_sentence(sentence, bound)
        figures = settle_figures(sentence.text, sentence.derived, bound)
        # A claim that did not hold bears nothing out; whether the others do is judged.
        held = tuple(claim.id for claim in bound) or sentence.claims
        return sentence.model_copy(update={"derived": figures, "claims": held})

    async def find_failures(
        self,
        draft: Draft,
        sentences: Sequence[DraftSentence],
        others: Mapping[DraftSentence, DraftSentence] = MappingProxyType({}),
    ) -> DraftFailures:
        """Find why sentences of a draft cannot be published, and `others`, each of which may stand in the place of
        one."""
        self._around |= {one: rank_claims(one.text, self.claims) for one in sentences if not one.claims}
        beside = list_beside(draft)
        beside |= {other: beside[one] for one, other in others.items() if one in beside}
        return await find_failures(
            [*sentences, *others.values()], self.checker, self._heads, self.context, self._around, beside
        )

    def keep(self, sentence: DraftSentence, found: DraftFailures) -> DraftSentence | None:
        """Return what may be published of a sentence: itself, what a judge has left of it, or nothing."""
        if sentence in found.reasons:
            return found.narrower.get(sentence)
        return self.checker.bind_names(sentence, self._around.get(sentence, ()))


def build_edit_request(
    draft: Draft, paragraphs: Sequence[_Paragraph], found: DraftFailures, check: _DraftCheck, request: WriteRequest
) -> EditRequest:
    """Ask for an edited draft. What no claim bears out is repeated without the names, codes and addresses that no
    passage has, and so are titles: a page may have dictated them. A word that begins a sentence may be a plain one."""
    quotes = [span.quote for claim in check.claims.values() for span in claim.spans]
    texts = [request.plan.goal, *quotes, *request.heads.values(), *request.passages.values()]
    known = collect_words(*texts)

    def mask(text: str) -> str:
        plain = mask_unverified_terms(text, known, texts)

        def show(found: re.Match[str]) -> str:
            plain_word = begins_sentence(plain, found.start()) and is_word(found[0].lower())
            told = plain_word or found[0].lower() in known or has_name(texts, found[0])
            return found[0] if told else LEFT_OUT

        return _CAPITAL.sub(show, plain)

    def show(sentence: DraftSentence) -> DraftSentence:
        if sentence not in found.reasons:
            return sentence
        cell = sentence.cell and sentence.cell.model_copy(update={"text": mask(sentence.cell.text)})
        return sentence.model_copy(update={"text": mask(sentence.text), "cell": cell})

    return EditRequest(
        paragraphs=tuple(
            DraftParagraph(
                section=mask(draft.sections[one.section].title),
                sentences=tuple(show(slot.written) for slot in one.slots),
                faults=tuple(
                    mask(found.reasons.get(slot.written) or found.one_sided.get(slot.written, "")) for slot in one.slots
                ),
            )
            for one in paragraphs
        ),
        claims=tuple(check.claims.values()),
        needed=list_other_sides(request.disagreements),
        words=request.target,
        banned=request.banned,
        heads=request.heads,
    )


def replace_paragraphs(
    draft: Draft, paragraphs: Sequence[_Paragraph], written: Sequence[tuple[DraftSentence, ...]]
) -> Draft:
    sections = [
        section.model_copy(
            update={
                "sentences": tuple(
                    one for own, text in zip(paragraphs, written, strict=True) if own.section == at for one in text
                )
            }
        )
        for at, section in enumerate(draft.sections)
    ]
    return draft.model_copy(update={"sections": tuple(sections)})


async def edit_paragraphs(
    draft: Draft, paragraphs: Sequence[_Paragraph], found: DraftFailures, check: _DraftCheck, request: WriteRequest
) -> list[_Paragraph]:
    """Return the paragraphs as their writer has edited them, each where it holds better than before."""
    asked = build_edit_request(draft, paragraphs, found, check, request)
    said = {number: tuple(text) for number, text in (await check.context.reasoner.edit(asked)).items()}
    written = [
        said.get(number, tuple(slot.written for slot in paragraph.slots)) for number, paragraph in enumerate(paragraphs)
    ]
    whole = replace_paragraphs(draft, paragraphs, written)
    bound = await asyncio.to_thread(check.bind, whole)
    sentences = iter([one for section in bound.sections for one in section.sentences])
    edited = [tuple(next(sentences) for _ in text) for text in written]
    passed = {slot.written for one in paragraphs for slot in one.slots if slot.written not in found.reasons}
    fresh = [one for number in said for one in edited[number] if one not in passed]
    # Where an edited paragraph does not hold, what a judge would have in the place of a sentence may stand.
    instead = {
        slot.written: check.settle(found.rewordings[slot.written])
        for one in paragraphs
        for slot in one.slots
        if slot.kept is None and slot.written in found.rewordings
    }
    again = await check.find_failures(bound, fresh, instead)
    standing = {one: other for one, other in instead.items() if other not in again.reasons}
    # What a paragraph leaves out has to be told where nothing was edited.
    untouched = [one for number, one in enumerate(paragraphs) if number not in said]
    told = {id for one in untouched if draft.sections[one.section].role == "body" for id in list_kept(one.slots)}
    result = list[_Paragraph]()
    for number, old in enumerate(paragraphs):
        slots = tuple(slot._replace(kept=slot.kept or standing.get(slot.written)) for slot in old.slots)
        # A sentence that came back with what was left out of it for the editor has a hole.
        whole_texts = {slot.written.text for slot in old.slots}
        new = tuple(
            _Slot(one, None if LEFT_OUT in one.text and one.text not in whole_texts else check.keep(one, again))
            for one in edited[number]
        )
        result.append(old._replace(slots=new if number in said and is_better(new, slots, told) else slots))
    return result


def is_better(new: Sequence[_Slot], old: Sequence[_Slot], told: Collection[str]) -> bool:
    """Whether an edited paragraph may stand in the place of the old one: it loses no more sentences in its check (what
    is left of one counts half), and none of the claims that the old one tells and no other, and is hardly longer."""
    words = [sum(len(slot.written.text.split()) for slot in slots) for slots in (new, old)]
    lost = [sum(map(count_loss, slots)) for slots in (new, old)]
    return (
        lost[0] <= lost[1]
        and list_kept(old) <= list_kept(new) | set(told)
        and words[0] <= MOST_GROWN * words[1] + SOME_WORDS
    )


def count_loss(slot: _Slot) -> float:
    if slot.kept is None:
        return 1
    return 0.5 if len(slot.kept.text) < len(slot.written.text) else 0


def list_kept(slots: Sequence[_Slot]) -> set[str]:
    """The claims that a paragraph tells, by sentences whose writer named them."""
    return {id for slot in slots if slot.kept and not slot.kept.cited_beside for id in slot.kept.claims}


def spell_sentence(sentence: DraftSentence, bound: Sequence[Claim]) -> DraftSentence:
    """A sentence, and what it says in its cell, with versions as its passages spell them."""
    cell = sentence.cell and sentence.cell.model_copy(update={"text": spell_numbers(sentence.cell.text, bound)})
    return sentence.model_copy(update={"text": spell_numbers(sentence.text, bound), "cell": cell})


def join_evidence(claim: Claim, other: Claim) -> Claim:
    """A claim with what it needs for one sentence and for another."""
    return claim.model_copy(
        update={
            "spans": tuple(dict.fromkeys((*claim.spans, *other.spans))),
            "context": tuple(dict.fromkeys((*claim.context, *other.context))),
        }
    )


def list_beside(draft: Draft) -> dict[DraftSentence, tuple[str, ...]]:
    """What a sentence sums up: for one that opens a section, the others of it; for one that draws claims together, or
    names none by itself, its paragraph; for those of an abstract or a conclusion, what opens sections and what draws
    claims together there."""
    body = [section.sentences for section in draft.sections if section.role == "body"]
    whole = [
        one.text
        for sentences in body
        for at, one in enumerate(sentences)
        if at == 0 or (one.kind == "synthesis" and not one.cell)
    ][:MOST_BESIDE]
    beside = dict[DraftSentence, tuple[str, ...]]()
    for section in draft.sections:
        if section.role in ("abstract", "conclusion"):
            beside |= dict.fromkeys(section.sentences, tuple(whole))
            continue
        paragraphs = list[list[DraftSentence]]()
        for at, sentence in enumerate(section.sentences):
            if sentence.opens or sentence.cell or at == 0:
                paragraphs.append([])
            paragraphs[-1].append(sentence)
        for number, paragraph in enumerate(paragraphs):
            # What introduces a list or a table sums it up.
            after = itertools.takewhile(lambda own: own[0].item or own[0].cell, paragraphs[number + 1 :])
            listed = [one.text for own in after for one in own] if len(paragraph) == 1 else []
            for at, sentence in enumerate(paragraph):
                if section.role == "body" and sentence is section.sentences[0]:
                    own = [one.text for one in section.sentences[1:] if not one.cell]
                    beside[sentence] = tuple(own[:MOST_BESIDE])
                elif sentence.kind == "synthesis" and not sentence.cell:
                    others = [one.text for place, one in enumerate(paragraph) if place != at] + listed
                    beside[sentence] = tuple(others[:MOST_BESIDE])
    return beside


def _fill_gaps(draft: Draft, slots: Sequence[Sequence[_Slot]], checker: DraftChecker) -> SentencesBySection:
    """Leave out what was lost, and nothing twice in body sections; an abstract may say what a section says. A body
    section that has lost all it said is told in its claims' own words."""
    body = [section.role == "body" for section in draft.sections]
    told = {
        id
        for own, is_body in zip(slots, body, strict=True)
        if is_body
        for slot in own
        if slot.kept
        for id in slot.kept.claims
    }
    seen = set[str]()
    settled = list[list[DraftSentence]]()
    for own, is_body in zip(slots, body, strict=True):
        kept = list[DraftSentence]()
        if is_body and not any(slot.kept and slot.kept.claims for slot in own):
            left = [claim for slot in own for claim in checker.find_bound(slot.written) if claim.id not in told]
            told |= {claim.id for claim in left}
            once = dict.fromkeys(left)
            kept = [
                *(slot.kept for slot in own if slot.kept),
                *(DraftSentence(text=one.text, claims=(one.id,)) for one in once),
            ]
        else:
            kept = _join_slots(own, seen)
        seen |= {one.text for one in kept} if is_body else set()
        settled.append(_settle_cells(kept))
    return settled


def _join_slots(slots: Sequence[_Slot], seen: Collection[str]) -> list[DraftSentence]:
    kept = list[DraftSentence]()
    opens = item = False  # the sentence that opened the paragraph, or began the item, is lost: the next one does
    lost = False  # the sentence before it is lost
    for written, sentence in slots:
        lost = lost and not written.opens
        if written.opens or written.item or not kept:
            opens, item = written.opens, written.item
        # What points back to a sentence that is not there would speak of something else.
        points_back = lost and sentence and _POINTS_BACK.match(sentence.text) and not sentence.cell
        lost = sentence is None or bool(points_back) or sentence.text in seen
        if sentence is None or lost:
            continue
        if (opens or item) and not sentence.cell:
            sentence = sentence.model_copy(update={"opens": opens, "item": item})
            opens = item = False
        kept.append(sentence)
    return kept


def _settle_cells(sentences: list[DraftSentence]) -> list[DraftSentence]:
    """A table that has lost all rows but one is a table no more: its cells are sentences like others."""
    rows = {one.cell.row for one in sentences if one.cell}
    if len(rows) > 1:
        return sentences
    return [one.model_copy(update={"cell": None}) for one in sentences]
