"""Check the sentences of a draft that a capable model has composed, have those that fail mended once, and tell in their
claims' own words what is left of them."""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from openassay.context import ResearchContext
from openassay.models.evidence import Claim, Verdict
from openassay.models.plan import Plan
from openassay.nodes.binding import bind_by_words, bind_to_paragraphs, draw_claims, rank_claims
from openassay.nodes.draft_checker import NO_CLAIM, DraftChecker
from openassay.nodes.verify import judge_statements
from openassay.reasoning.base import (
    Draft,
    DraftSentence,
    FailedSentence,
    MendedSentence,
    MendRequest,
    SynthesisPair,
    WriteRequest,
)
from openassay.text.words import stems
from openassay.verification.synthesis import settle_figures, shorten_claim, spell_versions, tell_figure
from openassay.verification.terms import KnownTerms, collect_words, mask_unverified_terms
from openassay.verification.verdict import ClaimMatcher

MOST_TITLE_CLAIMS, MOST_TITLE_WORDS = 40, 16  # that a title is held against, and may have
LONGEST_TITLE = 110  # characters of a question that stands as a title
MOST_STRANGE_WORDS = 4  # of a title that stand neither in the question nor in its claims
COMMON = 3  # documents whose claims have a word that the title of a report may have: one page alone can plant none
UNTITLED = "Findings"  # heads a section whose own title states more than was asked
SAID_AGAIN = 0.6  # of its words in another sentence: it says nothing new
LIMITS = "These claims leave this open or are limited in this way, and nothing else is stated:"
MOST_BESIDE = 16  # sentences that one which sums up is shown with
MOST_FRAME_CLAIMS = 30  # that a sentence on what the sources leave open is held against

_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_WORD = re.compile(r"[^\W\d_]+(?:[-’'][^\W\d_]+)*|\b(?:1[5-9]|20)\d\d\b")
_POINTS_BACK = re.compile(
    r"(?:It|Its|He|His|She|Her|They|Their|This|That|These|Those|Such|Both|Neither|The (?:latter|former|same|other))\b"
)

SentencesBySection = Sequence[Sequence[tuple[DraftSentence, ...]]]


class DraftFailures(NamedTuple):
    """Why sentences cannot be published, what is left of them, and how a judge would have them, which is not judged."""

    reasons: dict[DraftSentence, str]
    narrower: dict[DraftSentence, DraftSentence]
    rewordings: dict[DraftSentence, DraftSentence]


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
    asked: dict[int, SynthesisPair] = {}
    doubtful = list[int]()
    for at, (title, some) in enumerate(zip([*titles, draft.title], [*own, every], strict=True)):
        if not terms.covers_title(title):
            doubtful.append(at)
            # What stands over everything may name only what was asked and what was read.
            texts = [request.plan.goal, *request.titles.values()]
            years = _YEAR.findall(" ".join(request.heads.values()))
            texts += [claim.text for claim in some] if at < len(titles) else [*years, " ".join(list_common_words(some))]
            if some and is_plain_title(title, texts):
                about = DraftSentence(text=f"What follows tells of this: {title}")
                asked[at] = build_pair(about, some[:MOST_TITLE_CLAIMS], request.heads)
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


class _Place(NamedTuple):
    section: int
    sentence: int


async def settle_draft(
    draft: Draft, request: WriteRequest, terms: KnownTerms, context: ResearchContext, *, mend: bool = True
) -> SettledDraft:
    """Return what may be published of each sentence. One that fails is mended by the writer once, with the reason; what
    fails again is narrowed or lost. Of a sentence that says what a passage says and no claim does, a claim is drawn."""
    claims = {claim.id: claim for claim in request.claims}
    documents = await context.load_documents({span.document for claim in claims.values() for span in claim.spans})
    draft, drawn = await draw_claims(draft, claims, documents, context)
    claims |= drawn
    matcher = ClaimMatcher(claims.values(), request.titles)
    planned = [question.text for question in request.plan.questions]
    checker = DraftChecker(claims, documents, matcher, terms, request.plan.goal, planned)

    usable = rank_claims("", claims)

    def settle(sentence: DraftSentence) -> DraftSentence:
        sentence = bind_by_words(sentence, usable, checker)
        bound = checker.find_bound(sentence)
        sentence = spell_sentence(sentence, bound)
        figures = settle_figures(sentence.text, sentence.derived, bound)
        # A claim that did not hold bears nothing out; whether the others do is judged.
        held = tuple(claim.id for claim in bound) or sentence.claims
        return sentence.model_copy(update={"derived": figures, "claims": held})

    def settle_all() -> dict[_Place, DraftSentence]:
        return {
            _Place(at, position): settle(sentence)
            for at, section in enumerate(draft.sections)
            for position, sentence in enumerate(bind_to_paragraphs(section.sentences, checker))
        }

    drafted = await asyncio.to_thread(settle_all)
    around = {sentence: rank_claims(sentence.text, claims) for sentence in drafted.values() if not sentence.claims}
    beside = list_beside(draft, drafted)
    found = await find_failures(drafted.values(), checker, request.heads, context, around, beside)
    failures = found.reasons
    final: dict[_Place, DraftSentence | None] = {
        place: None if sentence in failures else checker.bind_names(sentence, around.get(sentence, ()))
        for place, sentence in drafted.items()
    }
    # What names no claim by itself is not mended, or it would say again what its paragraph says: the judge's wording of
    # it is judged, and else it is dropped.
    failed = [
        FailedSentence(
            section=draft.sections[place.section].title,
            sentence=sentence,
            reason=failures[sentence],
            before=_get_text(drafted, place, -1),
            after=_get_text(drafted, place, 1),
        )
        for place, sentence in drafted.items()
        if sentence in failures
        and checker.find_bound(sentence)
        and draft.sections[place.section].sentences[place.sentence].claims
    ]
    alone = dict[_Place, DraftSentence]()
    reworded = {
        sentence: settle(found.rewordings[sentence])
        for place, sentence in drafted.items()
        if sentence in found.rewordings and not draft.sections[place.section].sentences[place.sentence].claims
    }
    if (failed or reworded) and mend:
        said = await mend_sentences(failed, tuple(claims.values()), request, context) if failed else {}
        mended = {sentence: settle(one.sentence) for sentence, one in said.items() if one.sentence} | reworded
        alone = {place: settle(one) for place, one in follow_alone(drafted, final, said).items()}
        summing = {made: beside[sentence] for sentence, made in mended.items() if sentence in beside}
        again = await find_failures(
            [*mended.values(), *alone.values()], checker, request.heads, context, beside=summing
        )
        for place, sentence in drafted.items():
            made = mended.get(sentence) if sentence in failures else None
            if made:  # or what the judge has left of it
                final[place] = again.narrower.get(made) if made in again.reasons else made
        for place in [place for place, sentence in final.items() if sentence and drafted[place] in failures]:
            others = [other for at, other in final.items() if other and at.section == place.section and at != place]
            if (made := final[place]) and says_nothing_new(made, others):
                final[place] = None
        alone = {place: one for place, one in alone.items() if one not in again.reasons}
    settled = _fill_gaps(draft, final, drafted, checker, alone)
    told = {id for section in settled for kept in section for one in kept for id in one.claims}
    needed = {id: claim for id, claim in drawn.items() if id in told}
    for section in settled:
        for sentence in (one for kept in section for one in kept if one.claims):
            for id, claim in checker.find_needed_context(sentence).items():
                needed[id] = join_evidence(needed[id], claim) if id in needed else claim
    return SettledDraft(settled, needed)


def spell_sentence(sentence: DraftSentence, bound: Sequence[Claim]) -> DraftSentence:
    """A sentence, and what it says in its cell, with versions as its passages spell them."""
    cell = sentence.cell and sentence.cell.model_copy(update={"text": spell_versions(sentence.cell.text, bound)})
    return sentence.model_copy(update={"text": spell_versions(sentence.text, bound), "cell": cell})


def join_evidence(claim: Claim, other: Claim) -> Claim:
    """A claim with what it needs for one sentence and for another."""
    return claim.model_copy(
        update={
            "spans": tuple(dict.fromkeys((*claim.spans, *other.spans))),
            "context": tuple(dict.fromkeys((*claim.context, *other.context))),
        }
    )


def _get_text(drafted: Mapping[_Place, DraftSentence], place: _Place, step: int) -> str:
    beside = drafted.get(_Place(place.section, place.sentence + step))
    return beside.text if beside and not beside.cell else ""


def list_beside(draft: Draft, drafted: Mapping[_Place, DraftSentence]) -> dict[DraftSentence, tuple[str, ...]]:
    """What a sentence sums up: for one that opens a section, the others of it; for one that draws claims together, or
    names none by itself, its paragraph; for those of an abstract or a conclusion, what opens sections and what draws
    claims together there."""
    body = [place for place in drafted if draft.sections[place.section].role == "body"]
    opening = [place for place in body if place.sentence == 0]
    drawn = [place for place in body if drafted[place].kind == "synthesis" and not drafted[place].cell]
    whole = [drafted[place].text for place in sorted({*opening, *drawn})][:MOST_BESIDE]
    paragraphs = list[list[_Place]]()
    for place, sentence in drafted.items():
        if sentence.opens or sentence.cell or place.sentence == 0 or not paragraphs:
            paragraphs.append([])
        paragraphs[-1].append(place)
    beside = dict[DraftSentence, tuple[str, ...]]()
    for paragraph in paragraphs:
        for place in paragraph:
            sentence = drafted[place]
            if draft.sections[place.section].role in ("abstract", "conclusion"):
                beside[sentence] = tuple(whole)
            elif place in opening:
                own = [at for at in body if at.section == place.section and at != place and not drafted[at].cell]
                beside[sentence] = tuple(drafted[at].text for at in own[:MOST_BESIDE])
            elif sentence.kind == "synthesis" and not sentence.cell:
                beside[sentence] = tuple(drafted[at].text for at in paragraph if at != place)[:MOST_BESIDE]
    return beside


async def mend_sentences(
    failed: Sequence[FailedSentence], claims: tuple[Claim, ...], request: WriteRequest, context: ResearchContext
) -> dict[DraftSentence, MendedSentence]:
    asked = MendRequest(
        claims=claims, failures=tuple(dict.fromkeys(failed)), banned=request.banned, heads=request.heads
    )
    return {failure.sentence: made for failure, made in (await context.reasoner.mend(asked)).items()}


def follow_alone(
    drafted: Mapping[_Place, DraftSentence],
    final: Mapping[_Place, DraftSentence | None],
    mended: Mapping[DraftSentence, MendedSentence],
) -> dict[_Place, DraftSentence]:
    """How sentences that passed would read where the one before them is lost: they rest on the claims of both."""
    alone = dict[_Place, DraftSentence]()
    for place, sentence in drafted.items():
        next_place = _Place(place.section, place.sentence + 1)
        kept = final.get(next_place)
        if final[place] is None and sentence in mended and mended[sentence].after and kept and not kept.cell:
            both = tuple(dict.fromkeys((*kept.claims, *sentence.claims)))
            kind = "synthesis" if "synthesis" in (kept.kind, sentence.kind) else kept.kind
            told = {"text": mended[sentence].after, "claims": both, "kind": kind, "lead": ""}
            alone[next_place] = kept.model_copy(update=told)
    return alone


def says_nothing_new(sentence: DraftSentence, others: Sequence[DraftSentence]) -> bool:
    """Whether a sentence that was mended says what another of its section says: so end many that summed up."""
    said = set(stems(sentence.text))
    return sentence.cell is None and any(
        set(sentence.claims) & set(other.claims) and len(said & set(stems(other.text))) >= SAID_AGAIN * len(said)
        for other in others
    )


def _fill_gaps(
    draft: Draft,
    final: Mapping[_Place, DraftSentence | None],
    drafted: Mapping[_Place, DraftSentence],
    checker: DraftChecker,
    alone: Mapping[_Place, DraftSentence],
) -> SentencesBySection:
    """Leave out what was lost, and nothing twice in body sections; an abstract may say what a section says. A body
    section that has lost all it said is told in its claims' own words. `alone`: how sentences read whose predecessor
    is lost."""
    body = {at for at, section in enumerate(draft.sections) if section.role == "body"}
    empty = body - {place.section for place, sentence in final.items() if sentence and sentence.claims}
    told = {id for place, sentence in final.items() if sentence and place.section in body for id in sentence.claims}
    seen = set[str]()
    settled: list[list[tuple[DraftSentence, ...]]] = [[] for _ in draft.sections]
    opens = item = False  # the sentence that opened the paragraph, or began the item, is lost: the next one does
    lost = False  # the sentence before it is lost
    for place, old in drafted.items():
        sentence = final[place]
        lost = lost and not old.opens and place.sentence > 0
        if old.opens or old.item or place.sentence == 0:
            opens, item = old.opens, old.item
        if sentence is None and place.section in empty:
            left = [claim for claim in checker.find_bound(old) if claim.id not in told]
            told |= {claim.id for claim in left}
            own = tuple(DraftSentence(text=claim.text, claims=(claim.id,)) for claim in left)
        elif sentence and lost and place in alone:
            own = (alone[place],)
        elif sentence and lost and _POINTS_BACK.match(sentence.text) and not sentence.cell:
            own = ()  # what it points back to is not there, and it would speak of something else
        else:
            own = (sentence,) if sentence and sentence.text not in seen else ()
        lost = not own
        if own and (opens or item) and not own[0].cell:
            own = (own[0].model_copy(update={"opens": opens, "item": item}), *own[1:])
            opens = item = False
        seen |= {one.text for one in own if place.section in body}
        settled[place.section].append(own)
    return [_settle_cells(section) for section in settled]


def _settle_cells(section: Sequence[tuple[DraftSentence, ...]]) -> Sequence[tuple[DraftSentence, ...]]:
    """A table that has lost all rows but one is a table no more: its cells are sentences like others."""
    rows = {one.cell.row for kept in section for one in kept if one.cell}
    if len(rows) > 1:
        return section
    return [tuple(one.model_copy(update={"cell": None}) for one in kept) for kept in section]
