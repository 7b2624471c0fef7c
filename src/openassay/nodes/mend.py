"""Check the sentences of a draft that a capable model has composed, have those that fail mended once, and tell in their
claims' own words what is left of them."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from openassay.context import ResearchContext
from openassay.models.evidence import Claim, ContextItem, Document, Judgement, QuoteSpan, Verdict
from openassay.models.plan import Plan
from openassay.nodes.verify import (
    LEAST_KEPT,
    ClaimWording,
    decide_claims,
    judge_statements,
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
MOST_DRAWN = 5  # sentences of a document that a claim is drawn from
SAID_AGAIN = 0.6  # of its words in another sentence: it says nothing new
NO_CLAIM = "it says something of the world and names no claim"
LIMITS = "These claims leave this open or are limited in this way, and nothing else is stated:"
MOST_PARAGRAPH_CLAIMS = 10  # that a sentence without claims of its own is held against
MOST_FRAME_CLAIMS = 30  # that a sentence on what the sources leave open is held against

_POINTS_BACK = re.compile(
    r"(?:It|Its|He|His|She|Her|They|Their|This|That|These|Those|Such|Both|Neither|The (?:latter|former|same|other))\b"
)

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
        if not bound or (sentence.kind == "fact" and len(bound) < len(set(sentence.claims))):
            return "it names a claim that is not borne out"
        quotes = [span.quote for claim in bound for span in claim.spans]
        if strange := find_addresses(sentence.text, quotes):
            return f"its passages do not have {', '.join(strange)}"
        if sentence.kind == "synthesis":
            if not has_common_words(sentence.text, quotes):
                return "it has hardly a word in common with its passages; use some of theirs"
            faults = check_synthesis(sentence.text, bound, sentence.derived, self._published, self._find_numbers(bound))
            return "; ".join(problem.text for problem in faults)
        # What a row is called stands in other cells' passages, perhaps: a judge reads it.
        said = sentence.cell.text if sentence.cell else sentence.text
        problems = [*check_numbers(said, bound, sentence.derived, self._published, self._find_numbers(bound))]
        problems += check_wording(sentence.text, quotes)
        return "; ".join(problem.text for problem in problems)

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

    def has_few_words(self, sentence: DraftSentence) -> bool:
        """Whether a sentence has hardly a word in common with the passages of its claims."""
        quotes = [span.quote for claim in self._matcher.get_claims(sentence.claims) for span in claim.spans]
        if sentence.kind == "synthesis":
            return not has_common_words(sentence.text, quotes)
        return any(check_wording(sentence.text, quotes))

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
        # "Two years later" and "a third design" are worked out, and a language model has judged that.
        counted = [problem for problem in objections if problem.kind != "name" and (weak or is_numeral(problem.text))]
        return counted + strange

    def is_verbatim(self, sentence: DraftSentence) -> bool:
        plain = fold(sentence.text)
        return any(
            plain == fold(claim.text) or any(plain in fold(span.quote) for span in claim.spans)
            for claim in self.find_bound(sentence)
        )


def is_numeral(problem: str) -> bool:
    """Whether the figure that a problem is about is told in digits."""
    said = problem.removeprefix("the figure ")
    return said == problem or any(letter.isdigit() for letter in said.split()[0])


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
            texts += [claim.text for claim in some] if at < len(titles) else []
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
    return SettledTitles(request.plan.goal.rstrip("?!. ") if len(titles) in refused else draft.title, titles)


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
    draft, drawn = await draw_claims(draft, claims, documents, context)
    claims |= drawn
    matcher = ClaimMatcher(claims.values(), request.titles)
    checker = DraftChecker(claims, documents, matcher, terms, request.plan.goal)

    def settle(sentence: DraftSentence) -> DraftSentence:
        figures = tuple(settle_figure(figure, checker.find_bound(sentence)) for figure in sentence.derived)
        return sentence.model_copy(update={"derived": figures})

    drafted = {
        _Place(at, position): settle(sentence)
        for at, section in enumerate(draft.sections)
        for position, sentence in enumerate(bind_to_paragraphs(section.sentences, checker))
    }
    around = {sentence: rank_claims(sentence.text, claims) for sentence in drafted.values() if not sentence.claims}
    failures, _ = await find_failures(drafted.values(), checker, request.heads, context, around)
    final: dict[_Place, DraftSentence | None] = {
        place: None if sentence in failures else sentence for place, sentence in drafted.items()
    }
    # What names no claim by itself is dropped: mended, it would say again what its paragraph says.
    failed = [
        FailedSentence(section=draft.sections[place.section].title, sentence=sentence, reason=failures[sentence])
        for place, sentence in drafted.items()
        if sentence in failures
        and checker.find_bound(sentence)
        and draft.sections[place.section].sentences[place.sentence].claims
    ]
    if failed and mend:
        asked = MendRequest(
            claims=tuple(claims.values()),
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
        for place in [place for place, sentence in final.items() if sentence and drafted[place] in failures]:
            others = [other for at, other in final.items() if other and at.section == place.section and at != place]
            if (made := final[place]) and says_nothing_new(made, others):
                final[place] = None
    settled = _fill_gaps(draft, final, drafted, checker)
    told = {id for section in settled for kept in section for one in kept for id in one.claims}
    needed = {id: claim for id, claim in drawn.items() if id in told}
    for section in settled:
        for sentence in (one for kept in section for one in kept if one.claims):
            needed |= checker.find_needed_context(sentence)
    return SettledDraft(settled, needed)


def says_nothing_new(sentence: DraftSentence, others: Sequence[DraftSentence]) -> bool:
    """Whether a sentence that was mended says what another of its section says: so end many that summed up."""
    said = set(stems(sentence.text))
    return sentence.cell is None and any(
        set(sentence.claims) & set(other.claims) and len(said & set(stems(other.text))) >= SAID_AGAIN * len(said)
        for other in others
    )


def rank_claims(text: str, claims: Mapping[str, Claim]) -> list[Claim]:
    """The claims that hold, those with most words of a text first."""
    wanted = set(stems(text))
    usable = [claim for claim in claims.values() if claim.verdict is Verdict.SUPPORTED]
    return sorted(usable, key=lambda claim: -len(wanted & set(stems(claim.text))))


async def draw_claims(
    draft: Draft, claims: Mapping[str, Claim], documents: Mapping[str, Document], context: ResearchContext
) -> tuple[Draft, dict[str, Claim]]:
    """Draw claims from documents that sentences name by themselves: what each says in this matter, in its own words.
    Return the draft with its sentences bound to these, and the claims."""
    quoted: dict[str, list[Claim]] = {}
    for claim in claims.values():
        for name in dict.fromkeys(span.document for span in claim.spans):
            quoted.setdefault(name, []).append(claim)
    first = max((int(id[1:]) for id in claims if id[1:].isdecimal()), default=0) + 1
    wordings = dict[str, ClaimWording]()

    def draw(text: str, name: str) -> str:
        """Return the id of the claim."""
        own = [span for claim in quoted[name] for span in claim.spans if span.document == name]
        passage = read_context(documents[name], own, PASSAGE_WORDS)
        spans = sorted(find_needed_sentences(text, passage)[:MOST_DRAWN], key=lambda span: span.start)
        said = " ".join(" ".join(span.quote.split()) for span in spans)
        if said not in wordings:
            questions = dict.fromkeys(id for claim in quoted[name] for id in claim.questions)
            drawn = DraftClaim(wordings=(said,), findings=(), questions=tuple(questions), relevance=0.5)
            contexts = read_contexts(spans, documents)
            wordings[said] = ClaimWording(f"C{first + len(wordings)}", drawn, said, contexts, tuple(spans))
        return wordings[said].id

    def bind(sentence: DraftSentence) -> DraftSentence:
        added = [draw(sentence.text, name) for name in sentence.documents if name in quoted]
        return sentence.model_copy(update={"claims": (*sentence.claims, *added), "documents": ()})

    sections = [
        section.model_copy(update={"sentences": tuple(map(bind, section.sentences))}) for section in draft.sections
    ]
    # It says what it says; whether the sentence does is judged with all others.
    said = [Judgement(verdict=Verdict.SUPPORTED, score=0.9) for one in wordings.values() for _ in one.contexts]
    credibility = {name: assess_credibility(document) for name, document in documents.items()}
    decided = await decide_claims(list(wordings.values()), said, documents, credibility, context.reasoner)
    drawn = {claim.id: claim for claim in decided if claim.verdict is Verdict.SUPPORTED}
    return draft.model_copy(update={"sections": tuple(sections)}), drawn


def bind_to_paragraphs(sentences: Sequence[DraftSentence], checker: DraftChecker) -> list[DraftSentence]:
    """Bind a sentence that states something and names no claim to those of its paragraph: what these amount to often
    stands before them. So is one that has hardly a word of the claims it names. A judge reads whether it follows."""
    paragraphs = list[list[DraftSentence]]()
    for sentence in sentences:
        if sentence.opens or not paragraphs:
            paragraphs.append([])
        paragraphs[-1].append(sentence)
    bound = list[DraftSentence]()
    for paragraph in paragraphs:
        named = tuple(dict.fromkeys(id for one in paragraph for id in one.claims))
        for sentence in paragraph:
            states = bool(sentence.claims) or not checker.may_frame(sentence.text)
            if states and (not sentence.claims or checker.has_few_words(sentence)):
                # Its own claims first; what it says of them may have the words of the others.
                whole = tuple(dict.fromkeys((*sentence.claims, *named)))[:MOST_PARAGRAPH_CLAIMS]
                kind: Literal["fact", "synthesis"] = "synthesis" if len(whole) > 1 else "fact"
                sentence = sentence.model_copy(update={"claims": whole, "kind": kind})
            bound.append(sentence)
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
    opens = False  # the sentence that opened the paragraph is lost: the next one does
    lost = False  # the sentence before it is lost
    for place, old in drafted.items():
        sentence = final[place]
        lost = lost and not old.opens and place.sentence > 0
        opens = old.opens or (opens and place.sentence > 0)
        if sentence is None and place.section in empty:
            left = [claim for claim in checker.find_bound(old) if claim.id not in told]
            told |= {claim.id for claim in left}
            own = tuple(DraftSentence(text=claim.text, claims=(claim.id,)) for claim in left)
        elif sentence and lost and _POINTS_BACK.match(sentence.text) and not sentence.cell:
            own = ()  # what it points back to is not there, and it would speak of something else
        else:
            own = (sentence,) if sentence and sentence.text not in seen else ()
        lost = not own
        if own and opens and not own[0].cell:
            own, opens = (own[0].model_copy(update={"opens": True}), *own[1:]), False
        seen |= {one.text for one in own if place.section in body}
        settled[place.section].append(own)
    return [_settle_cells(section) for section in settled]


def _settle_cells(section: Sequence[tuple[DraftSentence, ...]]) -> Sequence[tuple[DraftSentence, ...]]:
    """A table that has lost all rows but one is a table no more: its cells are sentences like others."""
    rows = {one.cell.row for kept in section for one in kept if one.cell}
    if len(rows) > 1:
        return section
    return [tuple(one.model_copy(update={"cell": None}) for one in kept) for kept in section]
