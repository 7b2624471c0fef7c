"""Check the sentences of a draft that a capable model has composed, have those that fail mended once, and tell in their
claims' own words what is left of them."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from openassay.context import ResearchContext
from openassay.models.evidence import Claim, ContextItem, Document, Judgement, QuoteSpan, Verdict
from openassay.models.plan import Plan
from openassay.nodes.verify import (
    LEAST_KEPT,
    ClaimWording,
    decide_claims,
    judge_statements,
    list_pairs,
    read_contexts,
)
from openassay.reasoning.base import (
    Draft,
    DraftClaim,
    DraftSentence,
    FailedSentence,
    MendRequest,
    SynthesisPair,
    WriteRequest,
)
from openassay.text.sentences import TextSpan
from openassay.text.words import fold, stems
from openassay.verification.context import (
    LONGEST,
    EvidenceContext,
    find_figures,
    find_needed_sentences,
    read_context,
    tell_author,
)
from openassay.verification.names import check_names
from openassay.verification.polarity import StatementProblem
from openassay.verification.sources import assess_credibility
from openassay.verification.statement_check import extract_numbers
from openassay.verification.synthesis import (
    check_numbers,
    check_synthesis,
    find_given_numbers,
    has_common_words,
    settle_figure,
    shorten_claim,
    tell_figure,
)
from openassay.verification.terms import KnownTerms, collect_words, find_addresses, mask_unverified_terms
from openassay.verification.verdict import ClaimMatcher
from openassay.verification.wording import check_wording, content_share

RETOLD = 0.9  # of the plain words of a fact that stand in its passages: then its names have to stand there too
MOST_TITLE_CLAIMS, MOST_TITLE_WORDS = 40, 10  # that a title is held against, and may have
MOST_STRANGE_WORDS = 4  # of a title that stand neither in the question nor in its claims
PASSAGE_WORDS = 350  # of a document that a writer is shown, and all that was quoted
UNTITLED = "Findings"  # heads a section whose own title states more than was asked
NO_CLAIM = "it says something of the world and names no claim"
LIMITS = "These claims leave this open or are limited in this way, and nothing else is stated:"
MOST_PARAGRAPH_CLAIMS = 10  # that a sentence without claims of its own is held against
MOST_FRAME_CLAIMS = 30  # that a sentence on what the sources leave open is held against

SentencesBySection = Sequence[Sequence[tuple[DraftSentence, ...]]]


def describe_document(document: Document) -> Iterator[ContextItem]:
    if document.published:
        yield ContextItem(document=document.hash, field="published", value=document.published.isoformat())
    if document.title:
        yield ContextItem(document=document.hash, field="title", value=document.title)
    if author := tell_author(document):
        yield ContextItem(document=document.hash, field="author", value=author)
    if document.publisher:
        yield ContextItem(document=document.hash, field="publisher", value=document.publisher)


class DraftChecker:
    """Tells why sentences cannot be published, by the claims of a run."""

    def __init__(
        self,
        claims: Mapping[str, Claim],
        documents: Mapping[str, Document],
        matcher: ClaimMatcher,
        terms: KnownTerms,
        asked: str = "",
    ) -> None:
        """`asked`: the question, whose names need no source."""
        # What a sentence may call people and parties: a passage of one claim often lacks what another tells of them.
        self._names = [asked, *(claim.text for claim in claims.values() if claim.verdict is Verdict.SUPPORTED)]
        # Of what is left open: the names that claims have, too.
        self._limits = KnownTerms(self._names)
        self._matcher = matcher
        self._documents = documents
        self._numbers: dict[str, frozenset[float]] = {}  # of these, as they are asked for
        self._terms = terms
        self._published = {name: one.published for name, one in documents.items() if one.published}

    def find_bound(self, sentence: DraftSentence) -> tuple[Claim, ...]:
        """The claims of a sentence, with what their documents say of themselves: a writer is shown it."""
        return tuple(self._describe(claim) for claim in self._matcher.get_claims(sentence.claims))

    def _describe(self, claim: Claim) -> Claim:
        known = {(item.document, item.field) for item in claim.context}
        added = [
            item
            for name in dict.fromkeys(span.document for span in claim.spans)
            for item in describe_document(self._documents[name])
            if (name, item.field) not in known
        ]
        return claim.model_copy(update={"context": (*claim.context, *added)})

    def find_needed_context(self, sentence: DraftSentence) -> dict[str, Claim]:
        """The claims of a sentence whose numbers stand only in what their documents say of themselves, or elsewhere in
        these, with that."""
        plain = self._matcher.get_claims(sentence.claims)
        if not any(check_numbers(sentence.text, plain, sentence.derived, self._published)):
            return {}
        needed, told = dict[str, Claim](), sentence.text
        missing = set(extract_numbers(told, worded=False))
        missing -= find_given_numbers(told, self.find_bound(sentence), self._published)
        for claim in self.find_bound(sentence):
            added = list[QuoteSpan]()
            for name in dict.fromkeys(span.document for span in claim.spans):
                own = [span for span in claim.spans if span.document == name]
                added += find_figures(told, read_context(self._documents[name], own), missing)
                missing -= {number for span in added for number in extract_numbers(span.quote, worded=True)}
            needed[claim.id] = claim.model_copy(update={"spans": tuple(dict.fromkeys((*claim.spans, *added)))})
        return needed

    def read_contexts(self, sentence: DraftSentence) -> list[EvidenceContext]:
        return read_contexts([span for claim in self.find_bound(sentence) for span in claim.spans], self._documents)

    def find_problem(self, sentence: DraftSentence) -> str:
        """Say what is certain to be wrong with a sentence, whatever a judge says; empty if nothing is."""
        if not sentence.claims:
            return "" if self._terms.covers(sentence.text) else NO_CLAIM
        bound = self.find_bound(sentence)
        if len(bound) < len(set(sentence.claims)):
            return "it names a claim that is not borne out"
        quotes = [span.quote for claim in bound for span in claim.spans]
        if strange := find_addresses(sentence.text, quotes):
            return f"its passages do not have {', '.join(strange)}"
        if sentence.kind == "synthesis":
            faults = check_synthesis(sentence.text, bound, sentence.derived, self._published, self._find_numbers(bound))
            return "; ".join(problem.text for problem in faults)
        # What a row is called stands in other cells' passages, perhaps: a judge reads it.
        said = sentence.cell.text if sentence.cell else sentence.text
        problems = [*check_numbers(said, bound, sentence.derived, self._published, self._find_numbers(bound))]
        return "; ".join(problem.text for problem in (*problems, *check_wording(said, quotes)))

    def _find_numbers(self, bound: Sequence[Claim]) -> set[float]:
        """The numbers that stand anywhere in the documents of claims; a judge says whether they are told of this."""
        names = {span.document for claim in bound for span in claim.spans}
        for name in names - self._numbers.keys():
            self._numbers[name] = extract_numbers(self._documents[name].text[:LONGEST], worded=True)
        return {number for name in names for number in self._numbers[name]}

    def may_tell_limits(self, text: str) -> bool:
        """Whether a sentence that names no claim may be one on what the sources leave open: it speaks of that, with no
        figure, name or address that neither the question nor a claim that holds has."""
        return self._limits.may_tell_limits(text) and not find_addresses(text, [])

    def may_frame(self, text: str) -> bool:
        """Whether a sentence may stand without a claim: it speaks of the research or of what the sources leave open."""
        return self._terms.covers(text) or self.may_tell_limits(text)

    def explain(self, sentence: DraftSentence, judgement: Judgement) -> str:
        """Say why a sentence does not hold after a judge has read it; empty if it does."""
        if judgement.verdict is not Verdict.SUPPORTED:
            narrower = f"; this much of it holds: {judgement.narrower}" if judgement.narrower else ""
            return f"{judgement.reason or 'not borne out'}{narrower}"
        bound = self.find_bound(sentence)
        if judgement.embedded and sentence.kind == "fact" and not self._matcher.can_support(sentence.text, bound):
            return "its claims do not say this"
        if judgement.embedded and sentence.kind == "synthesis":
            quotes = [span.quote for claim in bound for span in claim.spans]
            if not has_common_words(sentence.text, [*quotes, *(claim.text for claim in bound)]):
                return "it has no word in common with its passages"
        objections = self._find_objections(sentence, bound, weak=judgement.embedded)
        return "; ".join(problem.text for problem in objections)

    def narrow(self, sentence: DraftSentence, judgement: Judgement) -> DraftSentence | None:
        """Return what a judge says is left of a sentence, if it only leaves something out and nothing else speaks
        against it."""
        text = judgement.narrower
        if sentence.cell or not text or len(text) >= len(sentence.text):
            return None
        left = sentence.model_copy(update={"text": text})
        held = judgement.model_copy(update={"verdict": Verdict.SUPPORTED})
        keeps = content_share(text, [sentence.text]) >= LEAST_KEPT
        return left if keeps and not self.find_problem(left) and not self.explain(left, held) else None

    def _find_objections(
        self, sentence: DraftSentence, bound: Sequence[Claim], *, weak: bool
    ) -> Sequence[StatementProblem]:
        """Hold a sentence against all that it rests on: a judge that obeys a page says yes to anything. After a `weak`
        judge its names have to stand there, and not only anywhere in the research."""
        found = self.read_contexts(sentence)
        claims = [TextSpan(0, len(claim.text), claim.text) for claim in bound]
        whole = EvidenceContext(
            document=found[0].document,
            spans=found[0].spans,
            head=" | ".join(one.head for one in found),
            pieces=(*claims, *(piece for one in found for piece in one.pieces)),
            published=found[0].published if len(found) == 1 else None,
            whole="\n".join(one.whole[: LONGEST // len(found)] for one in found),
        )
        own = [whole.text, whole.head, whole.whole]
        # In a sentence that is its passages' but for a name, a name of another matter was exchanged.
        plain = " ".join(word for word in sentence.text.split() if not word[:1].isupper())
        retold = sentence.kind == "fact" and content_share(plain, [whole.text]) >= RETOLD
        texts = own if weak or retold else [*own, *self._names]
        text = spell_labels(sentence)
        strange = [*check_names(text, texts, whole.head.replace("|", " ").split(), strict=False)]
        if sentence.kind == "synthesis":
            return strange
        # Of a copy all that was exchanged counts, of a free wording its figures.
        if exchanged := whole.find_objections(text):
            return exchanged
        objections = whole.find_objections(text, weak=True)
        return [problem for problem in objections if problem.kind != "name"] + strange

    def is_verbatim(self, sentence: DraftSentence) -> bool:
        plain = fold(sentence.text)
        return any(
            plain == fold(claim.text) or any(plain in fold(span.quote) for span in claim.spans)
            for claim in self.find_bound(sentence)
        )


def spell_labels(sentence: DraftSentence) -> str:
    """Return the text of a sentence; in a table, names of rows and columns begin with a capital and are no names for
    that."""
    if sentence.cell is None:
        return sentence.text
    labels = [label for label in (sentence.cell.row, sentence.cell.column) if label]
    *plain, text = [spell_first(label) for label in (*labels, sentence.cell.text)]
    return f"{', '.join(plain)}: {text}"


def spell_first(text: str) -> str:
    """Without the capital that only the beginning of a text has."""
    first = text.split()[0] if text.split() else ""
    return text[0].lower() + text[1:] if first[1:].islower() or len(first) == 1 else text


class DraftFailures(NamedTuple):
    """Why sentences cannot be published, and what a judge says is left of them."""

    reasons: dict[DraftSentence, str]
    narrower: dict[DraftSentence, DraftSentence]


async def find_failures(
    sentences: Iterable[DraftSentence],
    checker: DraftChecker,
    heads: Mapping[str, str],
    context: ResearchContext,
    around: Mapping[DraftSentence, Sequence[Claim]] | None = None,
) -> DraftFailures:
    """Find why sentences cannot be published; those that can are not there. Facts and syntheses are judged side by
    side, and with them what says that the sources leave something open, by the claims `around` it."""
    failures, narrower = dict[DraftSentence, str](), dict[DraftSentence, DraftSentence]()
    facts, syntheses, frames = list[DraftSentence](), list[DraftSentence](), list[DraftSentence]()
    for sentence in dict.fromkeys(sentences):
        if problem := await asyncio.to_thread(checker.find_problem, sentence):
            failures[sentence] = problem
            if around and around.get(sentence) and problem == NO_CLAIM and checker.may_tell_limits(sentence.text):
                frames.append(sentence)
        elif sentence.kind == "synthesis":
            syntheses.append(sentence)
        elif sentence.claims and not checker.is_verbatim(sentence):
            facts.append(sentence)
    contexts = [await asyncio.to_thread(checker.read_contexts, sentence) for sentence in facts]
    limits = [
        build_pair(DraftSentence(text=f"{LIMITS} {one.text}"), around[one][:MOST_FRAME_CLAIMS], heads)
        for one in frames
        if around
    ]
    pairs_of_syntheses = [build_pair(one, checker.find_bound(one), heads) for one in syntheses]
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
    return DraftFailures(failures, narrower)


def build_pair(sentence: DraftSentence, bound: Sequence[Claim], heads: Mapping[str, str]) -> SynthesisPair:
    """A sentence, and its claims with where they are from and what they rest on."""
    lines, short = [], []
    for claim in bound:
        quotes = " … ".join(dict.fromkeys(" ".join(span.quote.split()) for span in claim.spans[:2]))
        sources = dict.fromkeys(heads.get(span.document, "") for span in claim.spans)
        lines.append(f"{claim.text} ({'; '.join(filter(None, sources))}: “{quotes}”)")
        short.append(shorten_claim(claim.text, next(filter(None, sources), "")))
    return SynthesisPair(sentence.text, tuple(lines), tuple(short), tuple(map(tell_figure, sentence.derived)))


async def settle_titles(draft: Draft, request: WriteRequest, terms: KnownTerms, context: ResearchContext) -> list[str]:
    """Return the title of each section. One in words of the question and the plan may stand; one in other words, but
    without figures and names that no claim has, where a language model says that the section is about it; else the
    plan's, or none in particular."""
    claims = {claim.id: claim for claim in request.claims}
    plain, pairs = list[str](), dict[int, SynthesisPair]()
    for at, section in enumerate(draft.sections):
        own = [claims[id] for id in dict.fromkeys(id for one in section.sentences for id in one.claims) if id in claims]
        if not terms.covers_title(section.title):
            texts = [request.plan.goal, *request.titles.values(), *(claim.text for claim in own)]
            strange = not is_plain_title(section.title, texts)
            about = DraftSentence(text=f"What follows tells of this: {section.title}")
            some = () if strange else own[:MOST_TITLE_CLAIMS]
            pairs[at] = build_pair(about, some, request.heads)
        plain.append(section.title)
    asked = {at: pair for at, pair in pairs.items() if pair.claims}
    judged = dict(zip(asked, await context.reasoner.judge_syntheses(list(asked.values())), strict=True))
    for at in pairs:
        said = judged.get(at)
        if said is None or said.embedded or said.verdict is Verdict.CONTRADICTED:
            plain[at] = UNTITLED
            plain[at] = name_by_questions(list_section_claims(draft, at, claims), request.plan, plain)
    return plain


def name_by_questions(own: Sequence[Claim], plan: Plan, used: Sequence[str]) -> str:
    """Name a section as the plan does what most of its claims answer."""
    sections = {question.id: question.section for question in plan.questions}
    told = Counter(sections[id] for claim in own for id in claim.questions if id in sections)
    return next((name for name, _ in told.most_common() if name not in used), UNTITLED)


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
    return not word.isalpha() or not word.islower()


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

    def make_checker() -> DraftChecker:
        return DraftChecker(claims, documents, ClaimMatcher(claims.values(), request.titles), terms, request.plan.goal)

    checker = make_checker()

    def settle(sentence: DraftSentence) -> DraftSentence:
        figures = tuple(settle_figure(figure, checker.find_bound(sentence)) for figure in sentence.derived)
        return sentence.model_copy(update={"derived": figures})

    drafted = {
        _Place(at, position): settle(sentence)
        for at, section in enumerate(draft.sections)
        for position, sentence in enumerate(bind_to_paragraphs(section.sentences, checker))
    }
    around = {sentence: rank_claims(sentence.text, claims) for sentence in drafted.values() if not sentence.claims}
    quoting = [sentence for sentence in dict.fromkeys(drafted.values()) if sentence.documents]
    others = [sentence for sentence in drafted.values() if not sentence.documents]
    drawn, found = await asyncio.gather(
        draw_claims(quoting, claims, documents, context),
        find_failures(others, checker, request.heads, context, around),
    )
    failures = found.reasons
    for place, sentence in drafted.items():
        if claim := drawn.get(sentence):
            holds = claim.verdict is Verdict.SUPPORTED
            # One that fails is mended by what was drawn from its documents before.
            named = (claim.id,) if holds else list_document_claims(sentence.documents, claims)
            drafted[place] = sentence.model_copy(update={"claims": named, "documents": ()})
            if holds:
                claims[claim.id] = claim
            else:
                failures[drafted[place]] = "; ".join(claim.reasons) or "its passages do not say this"
    checker = make_checker()
    final: dict[_Place, DraftSentence | None] = {
        place: None if sentence in failures else sentence for place, sentence in drafted.items()
    }
    failed = [
        FailedSentence(section=draft.sections[place.section].title, sentence=sentence, reason=failures[sentence])
        for place, sentence in drafted.items()
        if sentence in failures and checker.find_bound(sentence)
    ]
    if failed and mend:
        asked = MendRequest(
            claims=request.claims,
            failures=tuple(dict.fromkeys(failed)),
            banned=request.banned,
            heads=request.heads,
        )
        mended = {failure.sentence: settle(made) for failure, made in (await context.reasoner.mend(asked)).items()}
        again = await find_failures(mended.values(), checker, request.heads, context)
        for place, sentence in drafted.items():
            made = mended.get(sentence) if sentence in failures else None
            if made:  # or what the judge has left of it
                final[place] = again.narrower.get(made) if made in again.reasons else made
    settled = _fill_gaps(draft, final, drafted, checker)
    needed = {claim.id: claims[claim.id] for claim in drawn.values() if claim.id in claims}
    for section in settled:
        for sentence in (one for kept in section for one in kept if one.claims):
            needed |= checker.find_needed_context(sentence)
    return SettledDraft(settled, needed)


def rank_claims(text: str, claims: Mapping[str, Claim]) -> list[Claim]:
    """The claims that hold, those with most words of a text first."""
    wanted = set(stems(text))
    usable = [claim for claim in claims.values() if claim.verdict is Verdict.SUPPORTED]
    return sorted(usable, key=lambda claim: -len(wanted & set(stems(claim.text))))


def list_document_claims(names: Collection[str], claims: Mapping[str, Claim]) -> tuple[str, ...]:
    own = [claim.id for claim in claims.values() if any(span.document in names for span in claim.spans)]
    return tuple(own[:MOST_PARAGRAPH_CLAIMS])


async def draw_claims(
    sentences: Sequence[DraftSentence],
    claims: Mapping[str, Claim],
    documents: Mapping[str, Document],
    context: ResearchContext,
) -> dict[DraftSentence, Claim]:
    """Draw a claim from each sentence that says what passages of documents say, and decide on it as on any other."""
    if not sentences:
        return {}
    last = max((int(id[1:]) for id in claims if id[1:].isdecimal()), default=0)
    wordings = list[ClaimWording]()
    for number, sentence in enumerate(sentences, last + 1):
        spans = [span for id in sentence.claims for span in claims[id].spans]
        questions = dict[str, None]()
        for name in sentence.documents:
            own = [claim for claim in claims.values() if any(span.document == name for span in claim.spans)]
            questions |= dict.fromkeys(id for claim in own for id in claim.questions)
            quoted = [span for claim in own for span in claim.spans if span.document == name]
            passage = read_context(documents[name], quoted, PASSAGE_WORDS)
            spans += find_needed_sentences(sentence.text, passage)
        draft = DraftClaim(wordings=(sentence.text,), findings=(), questions=tuple(questions), relevance=0.5)
        contexts = read_contexts(dict.fromkeys(spans), documents)
        wordings.append(ClaimWording(f"C{number}", draft, sentence.text, contexts, tuple(spans)))
    judged = await judge_statements(list_pairs(wordings), context)
    credibility = {name: assess_credibility(document) for name, document in documents.items()}
    decided = await decide_claims(wordings, judged.judgements, documents, credibility, context.reasoner)
    return dict(zip(sentences, decided, strict=True))


def bind_to_paragraphs(sentences: Sequence[DraftSentence], checker: DraftChecker) -> list[DraftSentence]:
    """Bind a sentence that states something and names no claim to those of its paragraph: what these amount to often
    stands before them. A judge reads whether it follows."""
    paragraphs = list[list[DraftSentence]]()
    for sentence in sentences:
        if sentence.opens or not paragraphs:
            paragraphs.append([])
        paragraphs[-1].append(sentence)
    bound = list[DraftSentence]()
    for paragraph in paragraphs:
        named = tuple(dict.fromkeys(id for one in paragraph for id in one.claims))[:MOST_PARAGRAPH_CLAIMS]
        kind: Literal["fact", "synthesis"] = "synthesis" if len(named) > 1 else "fact"
        for sentence in paragraph:
            speaks_of_research = sentence.claims or sentence.documents or checker.may_frame(sentence.text)
            bound.append(
                sentence if speaks_of_research else sentence.model_copy(update={"claims": named, "kind": kind})
            )
    return bound


def _fill_gaps(
    draft: Draft,
    final: Mapping[_Place, DraftSentence | None],
    drafted: Mapping[_Place, DraftSentence],
    checker: DraftChecker,
) -> SentencesBySection:
    """Leave out what was lost, and nothing twice in body sections; an abstract may say what a section says. A body
    section that has lost all it said is told in its claims' own words."""
    body = {at for at, section in enumerate(draft.sections) if section.role == "body"}
    empty = body - {place.section for place, sentence in final.items() if sentence and sentence.claims}
    told = {id for place, sentence in final.items() if sentence and place.section in body for id in sentence.claims}
    seen = set[str]()
    settled: list[list[tuple[DraftSentence, ...]]] = [[] for _ in draft.sections]
    was_lost = False  # the sentence that opened a paragraph: the next one does
    for place, old in drafted.items():
        sentence = final[place]
        if sentence is None and place.section in empty:
            left = [claim for claim in checker.find_bound(old) if claim.id not in told]
            told |= {claim.id for claim in left}
            own = tuple(DraftSentence(text=claim.text, claims=(claim.id,), opens=old.opens) for claim in left)
        else:
            own = (sentence,) if sentence and sentence.text not in seen else ()
        was_lost = old.opens or (was_lost and place.sentence > 0)
        if own and was_lost and not own[0].cell:
            own, was_lost = (own[0].model_copy(update={"opens": True}), *own[1:]), False
        seen |= {one.text for one in own if place.section in body}
        settled[place.section].append(own)
    return [_settle_cells(section) for section in settled]


def _settle_cells(section: Sequence[tuple[DraftSentence, ...]]) -> Sequence[tuple[DraftSentence, ...]]:
    """A table that has lost all rows but one is a table no more: its cells are sentences like others."""
    rows = {one.cell.row for kept in section for one in kept if one.cell}
    if len(rows) > 1:
        return section
    return [tuple(one.model_copy(update={"cell": None}) for one in kept) for kept in section]
