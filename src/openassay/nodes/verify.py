"""Verify every claim against the passages it came from, before anything may be written."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.errors import ReasoningError
from openassay.models.evidence import (
    Claim,
    ContextItem,
    Disagreement,
    Document,
    Finding,
    Judgement,
    Mark,
    QuoteSpan,
    Verdict,
)
from openassay.nodes.analyse import load_evidence
from openassay.nodes.denials import Denial, find_denials
from openassay.nodes.harvest import load_read_documents
from openassay.nodes.read import load_passages
from openassay.reasoning.base import (
    ClaimExtraction,
    Conflict,
    DisputeContext,
    DocumentOrigin,
    DraftClaim,
    Evidence,
    JudgementBatch,
    Reasoner,
    SourceRating,
    VoicePair,
)
from openassay.state import State, load_claims, load_plan, load_question, load_selected, load_sources, load_tasks
from openassay.text.relations import find_main_figure, find_years
from openassay.text.sentences import is_table_row
from openassay.text.words import stems, words
from openassay.verification.context import EvidenceContext, find_gaps, find_needed_sentences, read_context, tell_author
from openassay.verification.corroboration import CorroborationIndex
from openassay.verification.figures import check_figures
from openassay.verification.quotes import is_verbatim_span
from openassay.verification.sources import Credibility, group_documents, rate_sources
from openassay.verification.statement_check import check_statement
from openassay.verification.verdict import DocumentEvidence, decide_verdict
from openassay.verification.wording import content_share

MAX_SPANS = 6  # candidates per claim; a seventh witness would change nothing
# Of a pointed question for the embedded reasoner, whose verifier takes .16 s to judge a claim by a document and .9 s to
# compare two voices. In a folder whose documents repeat each other, 17 and 17 took 20 s.
MAX_POINTED_SPANS, MOST_POINTED_VOICES = 2, 3
LEAST_KEPT = 0.75  # of the words of a narrower wording that are the claim's
UNDATED = "undated"  # said of a figure in dispute whose sources do not say when they were published
MOST_VOICES = 4  # documents behind a claim that are compared with each other


class ClaimWording(NamedTuple):
    """One wording of a drafted claim, with what the documents say that it may rest on."""

    id: str
    draft: DraftClaim
    text: str
    contexts: list[EvidenceContext]
    named: tuple[QuoteSpan, ...] = ()  # those it was drawn from


async def verify(state: State, runtime: Runtime[ResearchContext]) -> State:
    context, plan = runtime.context, load_plan(state)
    documents = await load_read_documents(state, context, (source["document"] for source in load_sources(state)))
    places = {
        (place["document"], place["start"]): place for places in load_selected(state).values() for place in places
    }
    titles = {name: document.title for name, document in documents.items()}
    passages = load_passages(places.values(), documents)
    # Sentences and spans of all documents are gone through: work for a thread, not for the event loop.
    index = await asyncio.to_thread(CorroborationIndex, passages, titles)
    # After a review has sent the research out again, claims that it has are kept: only what is new is drawn from.
    earlier = load_claims(state) if state["iteration"] else []
    evidence = load_evidence(state)
    if earlier:
        fresh = list_fresh_spans(state)
        evidence = tuple(item for item in evidence if (item.finding.question, item.finding.span) in fresh)
    evidence = await asyncio.to_thread(add_corroboration, evidence, index, documents)
    evidence = tuple(
        item.model_copy(update={"author": tell_author(documents[item.finding.span.document])}) for item in evidence
    )
    extraction = await context.reasoner.extract_claims(plan, evidence) if evidence else ClaimExtraction(claims=())
    first = max((int(claim.id[1:]) for claim in earlier if claim.id[1:].isdecimal()), default=0) + 1
    frugal = plan.asks_one_thing and context.reasoner.name == "embedded"
    wordings = await asyncio.to_thread(
        _build_wordings,
        extraction.claims,
        evidence,
        documents,
        index,
        first,
        MAX_POINTED_SPANS if frugal else MAX_SPANS,
    )
    if context.reasoner.name == "embedded":
        wordings, judged = await _judge_in_turn(wordings, context)
    else:
        judged = await judge_statements(list_pairs(wordings), context)
    if narrowed := narrow_wordings(wordings, judged.judgements):
        again = await judge_statements(list_pairs(narrowed), context)
        wordings = [*wordings, *narrowed]
        judged = judged.model_copy(update={"judgements": (*judged.judgements, *again.judgements)})
    known = await asyncio.to_thread(rate_sources, documents, load_question(state))
    ratings = {name: SourceRating(**item) for name, item in state["credibility"].items()} if earlier else {}
    credibility = lower_credibility(known, {**ratings, **extraction.credibility})
    decided = select_wordings(
        await decide_claims(
            wordings,
            judged.judgements,
            documents,
            credibility,
            context.reasoner,
            most_compared=MOST_POINTED_VOICES if frugal else None,
        )
    )
    claims = _merge_claims([*earlier, *decided])
    denials = await find_denials(claims, index, documents, context.reasoner)
    claims, denied = await apply_denials(claims, denials, wordings, documents, credibility, context)
    # Claims that cannot both hold, whichever of their wordings were judged, in the words that were kept.
    kept = {claim.id: claim.text for claim in decided if claim.verdict is Verdict.SUPPORTED}
    texts = {wording.text: kept[wording.id] for wording in wordings if wording.id in kept}
    conflicts = [
        Conflict(first=texts[conflict.first], second=texts[conflict.second], about=conflict.about)
        for conflict in judged.conflicts
        if conflict.first in texts and conflict.second in texts
    ]
    conflicts += denied
    groups = await asyncio.to_thread(group_documents, documents.values())
    origins = {
        name: DocumentOrigin(
            text=document.text,
            rank=known[name].rank,
            primary=known[name].primary,
            host=document.host,
            group=groups[name],
            published=document.published.isoformat() if document.published else None,
        )
        for name, document in documents.items()
    }
    supported = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED]
    disagreements = await context.reasoner.find_disagreements(
        supported, conflicts, DisputeContext(question=plan.goal, origins=origins)
    )
    claims = [add_date(add_disputes(claim, disagreements), documents) for claim in claims]
    counts = {str(verdict): sum(claim.verdict is verdict for claim in claims) for verdict in Verdict}
    await context.emit("leave", "verify", claims=len(claims), **counts)
    lowered = [name for name in known if credibility[name] != known[name]]
    return {
        "claims": [claim.plain() for claim in claims],
        "credibility": {name: {**ratings, **extraction.credibility}[name].plain() for name in lowered},
        "disagreements": [item.plain() for item in disagreements],
        "current_agent": "verify",
    }


async def _judge_in_turn(
    wordings: Sequence[ClaimWording], context: ResearchContext
) -> tuple[list[ClaimWording], JudgementBatch]:
    """Judge the first wording of each claim, and the others only where a document that it was drawn from does not bear
    that one out. Each pair takes the verifier a third of a second; a language model judges all in one call."""
    firsts = {wording.id: wording for wording in reversed(wordings)}
    tried = [wording for wording in wordings if firsts[wording.id] is wording]
    judged = await judge_statements(list_pairs(tried), context)
    each = iter(judged.judgements)
    borne = {
        (wording.id, found.document)
        for wording in tried
        for found in wording.contexts
        if next(each).verdict is Verdict.SUPPORTED
    }
    settled = {wording.id for wording in tried if all((wording.id, span.document) in borne for span in wording.named)}
    others = [wording for wording in wordings if wording.id not in settled and firsts[wording.id] is not wording]
    again = await judge_statements(list_pairs(others), context)
    whole = {
        "judgements": (*judged.judgements, *again.judgements),
        "conflicts": (*judged.conflicts, *again.conflicts),
    }
    return [*tried, *others], judged.model_copy(update=whole)


def list_fresh_spans(state: State) -> set[tuple[str, QuoteSpan]]:
    """What the last round has found for each sub-question and no round before it."""
    if not load_tasks(state):  # there was no further round
        return set()
    last = f"{state['round'] - 1}:"
    rounds: dict[bool, set[tuple[str, QuoteSpan]]] = {True: set(), False: set()}
    for key, items in state["read"].items():
        found = map(Finding.model_validate, items)
        rounds[key.startswith(last)] |= {(finding.question, finding.span) for finding in found}
    return rounds[True] - rounds[False]


def _build_wordings(
    drafts: Sequence[DraftClaim],
    evidence: Sequence[Evidence],
    documents: Mapping[str, Document],
    index: CorroborationIndex,
    first: int = 1,
    most: int = MAX_SPANS,
) -> list[ClaimWording]:
    """Collect the spans that each wording may rest on, `most` of them. Only spans that truly stand in their snapshot
    are evidence. `first`: the number of the first claim."""
    spans = {
        item.finding.id: span
        for item in evidence
        if is_verbatim_span(span := item.finding.span, documents[span.document].text)
    }
    wordings = []
    for number, draft in enumerate(drafts, first):
        named = _distinct_spans(spans[name] for name in draft.findings if name in spans)[:most]
        for text in draft.wordings:
            # Where it may be from a document named (half of its words and all its figures are there), no other passage
            # is looked for that might be read as saying it.
            wanted = set(stems(text))
            settled = any(
                2 * len(wanted & set(stems(found.render()))) >= len(wanted)
                and not any(check_figures(text, [found.text, found.head], found.published))
                for found in read_contexts(named, documents)
            )
            sought = [] if settled else index.find_candidates(text)
            others = index.find_equivalents(text, but={span.document for span in named})
            chosen = _one_by_document(_distinct_spans([*sought, *named, *others]))[:most]
            contexts = [found.add_names(text) for found in read_contexts(chosen, documents)]
            wordings.append(ClaimWording(f"C{number}", draft, text, contexts, tuple(named)))
    return wordings


def _one_by_document(spans: Sequence[QuoteSpan]) -> list[QuoteSpan]:
    """The first of each document before its others: a second witness tells more than a second quote."""
    firsts = {span.document: span for span in reversed(spans)}
    return sorted(spans, key=lambda span: firsts[span.document] is not span)


def read_contexts(spans: Iterable[QuoteSpan], documents: Mapping[str, Document]) -> list[EvidenceContext]:
    """Read the spans of each document together, in its context."""
    by_document: dict[str, list[QuoteSpan]] = {}
    for span in spans:
        by_document.setdefault(span.document, []).append(span)
    return [read_context(documents[name], own) for name, own in by_document.items()]


def list_pairs(wordings: Iterable[ClaimWording]) -> list[tuple[str, list[str]]]:
    """What is to be judged: each wording with what one document says."""
    return [(wording.text, [found.render()]) for wording in wordings for found in wording.contexts]


def narrow_wordings(wordings: Sequence[ClaimWording], judgements: Sequence[Judgement]) -> list[ClaimWording]:
    """Make a narrower wording of each claim that no document bears out, where one bears out a part of it."""
    each = iter(judgements)
    by_claim: dict[str, list[tuple[ClaimWording, EvidenceContext, Judgement]]] = {}
    for wording in wordings:
        by_claim.setdefault(wording.id, []).extend((wording, found, next(each)) for found in wording.contexts)
    narrowed = []
    for found in by_claim.values():
        if any(judgement.verdict is Verdict.SUPPORTED for _, _, judgement in found):
            continue
        for wording, context, judgement in found:
            text = judgement.narrower
            # It may leave something out, and say nothing else.
            if text and len(text) < len(wording.text) and content_share(text, [wording.text]) >= LEAST_KEPT:
                narrowed.append(wording._replace(text=text, contexts=[context]))
                break
    return narrowed


def add_corroboration(
    evidence: Sequence[Evidence], index: CorroborationIndex, documents: Mapping[str, Document]
) -> tuple[Evidence, ...]:
    """Return the findings, and W1, W2, ... for sentences elsewhere that state the same figure."""
    known = {(item.finding.span.document, item.finding.span.start) for item in evidence}
    added: list[Evidence] = []
    for item in evidence:
        for span in index.find_corroboration(item.finding.span):
            if (span.document, span.start) in known:
                continue
            known.add((span.document, span.start))
            finding = item.finding.model_copy(update={"id": f"W{len(added) + 1}", "span": span})
            document = documents[span.document]
            date = document.published.isoformat() if document.published else None
            added.append(Evidence(finding=finding, title=document.title, published=date))
    return (*evidence, *added)


def _distinct_spans(spans: Iterable[QuoteSpan]) -> list[QuoteSpan]:
    return list({(span.document, span.start): span for span in spans}.values())


async def judge_statements(statements: Sequence[tuple[str, Sequence[str]]], context: ResearchContext) -> JudgementBatch:
    """Judge all statements with their quotes in one call, or in none where there are none."""
    judged = await context.reasoner.judge(statements) if statements else JudgementBatch(judgements=())
    if len(judged.judgements) != len(statements):
        raise ReasoningError(f"{len(judged.judgements)} judgements were given on {len(statements)} statements")
    return judged


def lower_credibility(known: Mapping[str, Credibility], opinions: Mapping[str, SourceRating]) -> dict[str, Credibility]:
    """Return what is known of each source's origin, less what the reasoner holds against it."""
    return {
        name: credibility.with_lower_score(opinions[name].score, opinions[name].reason)
        if name in opinions
        else credibility
        for name, credibility in known.items()
    }


async def decide_claims(
    wordings: Sequence[ClaimWording],
    judgements: Sequence[Judgement],
    documents: Mapping[str, Document],
    credibility: Mapping[str, Credibility],
    reasoner: Reasoner,
    *,
    publish: bool = True,
    most_compared: int | None = None,
) -> list[Claim]:
    """Decide on every wording. To `publish` a claim, a reader has to find its numbers in what it rests on.
    `most_compared`: pairs of documents that may be compared, by default all."""
    groups = await asyncio.to_thread(group_documents, documents.values())
    weighed = await asyncio.to_thread(weigh_wordings, wordings, judgements)
    dependent = await find_dependent(wordings, weighed, groups, reasoner, most_compared)

    def decide() -> list[Claim]:
        return [
            decide_claim(wording, decide_verdict(start_claim(wording), own, groups, credibility, pairs), publish)
            for wording, own, pairs in zip(wordings, weighed, dependent, strict=True)
        ]

    return await asyncio.to_thread(decide)


def weigh_wordings(wordings: Sequence[ClaimWording], judgements: Sequence[Judgement]) -> list[list[DocumentEvidence]]:
    each = iter(judgements)
    return [[weigh_evidence(wording.text, found, next(each)) for found in wording.contexts] for wording in wordings]


def start_claim(wording: ClaimWording) -> Claim:
    draft = wording.draft
    return Claim(id=wording.id, text=wording.text, questions=draft.questions, relevance=draft.relevance)


def decide_claim(wording: ClaimWording, claim: Claim, publish: bool) -> Claim:
    """Return the claim with the sentences that have figures and names which its quotes lack, with what it rests on of
    its documents' own record, and with a remark where it rests on passages it was not drawn from."""
    if claim.verdict is not Verdict.SUPPORTED:
        return claim
    named = {(span.document, span.start) for span in claim.spans}
    bearing = [one for one in wording.contexts if any((s.document, s.start) in named for s in one.spans)]
    order = {span.document: at for at, span in reversed(list(enumerate(claim.spans)))}
    bearing.sort(key=lambda one: order[one.document])
    claim = add_context(claim, bearing)
    missing = [*find_gaps(claim, bearing)] if publish else []
    if missing:
        return claim.model_copy(update={"verdict": Verdict.PARTLY, "mark": None, "reasons": tuple(missing)})
    if wording.draft.findings and not set(claim.spans) & set(wording.named):
        reasons = (*claim.reasons, "found in another passage than the one it named")
        return claim.model_copy(update={"reasons": reasons})
    return claim


def weigh_evidence(text: str, found: EvidenceContext, judgement: Judgement) -> DocumentEvidence:
    objections = found.find_objections(text, weak=judgement.embedded)
    return DocumentEvidence(found, objections, judgement, content_share(text, [found.render()]))


async def find_dependent(
    wordings: Sequence[ClaimWording],
    weighed: Sequence[Sequence[DocumentEvidence]],
    groups: Mapping[str, str],
    reasoner: Reasoner,
    most: int | None = None,
) -> list[set[frozenset[str]]]:
    """Find, for each claim, the pairs of documents that bear it out and are one voice, though nothing they say of
    themselves tells so. Of more than `most` pairs those of the first claims are compared; others count as one voice."""
    pairs = []
    for wording, items in zip(wordings, weighed, strict=True):
        bearing = [item.context for item in items if item.verdict is Verdict.SUPPORTED]
        some = list({groups[found.document]: found for found in bearing}.values())[:MOST_VOICES]
        pairs.append(
            {
                frozenset((one.document, other.document)): VoicePair(
                    wording.text, one.render_voice(), other.render_voice()
                )
                for one, other in combinations(some, 2)
            }
        )
    # Two documents are compared once, however many claims they bear out together.
    asked = {pair: both for own in reversed(pairs) for pair, both in own.items()}
    compared = list(dict.fromkeys(pair for own in pairs for pair in own))[:most]
    said = await reasoner.compare_voices([asked[pair] for pair in compared]) if compared else []
    one_voice = asked.keys() - {pair for pair, is_one in zip(compared, said, strict=True) if not is_one}
    return [one_voice & own.keys() for own in pairs]


def add_context(claim: Claim, contexts: Sequence[EvidenceContext]) -> Claim:
    """Leave a claim the quotes that bear it out, and add the sentences, dates and titles of its documents that it
    needs besides."""
    spans, items = list[QuoteSpan](), list[ContextItem]()
    for found in contexts:
        spans += find_needed_sentences(claim.text, found)
        quotes = [span.quote for span in spans if span.document == found.document]
        told = any(check_figures(claim.text, quotes)) and not any(check_figures(claim.text, quotes, found.published))
        if found.published and told:
            items.append(ContextItem(document=found.document, field="published", value=found.published.isoformat()))
        title = found.head.split(" | ")[0]
        named = {word for name in claim.text.split() if not name[:1].islower() for word in words(name)}
        quoted = set(words(" ".join(quotes)))
        # A row of a table says nothing of whose figures it gives, but for what its document says.
        unsigned = any(is_table_row(quote) for quote in quotes) and "; Company: " not in " ".join(quotes)
        if named & set(words(title)) - quoted or (unsigned and title and not found.publisher):
            items.append(ContextItem(document=found.document, field="title", value=title))
        if named & set(words(found.author)) - quoted:
            items.append(ContextItem(document=found.document, field="author", value=found.author))
        if found.publisher and (unsigned or named & set(words(found.publisher)) - quoted):
            items.append(ContextItem(document=found.document, field="publisher", value=found.publisher))
    return claim.model_copy(update={"spans": tuple(_distinct_spans(spans)), "context": tuple(items)})


def select_wordings(claims: Sequence[Claim]) -> list[Claim]:
    """Keep the best supported wording of each claim; the reasoner's first choice where there is no difference."""
    best: dict[str, Claim] = {}
    for claim in claims:
        if claim.id not in best or _support_rank(claim) > _support_rank(best[claim.id]):
            best[claim.id] = claim
    return list(best.values())


def _support_rank(claim: Claim) -> tuple[bool, bool, bool, int]:
    """Rank a claim: supported, and by its spans alone, and by how many."""
    supported = claim.verdict is Verdict.SUPPORTED
    titles = [word for item in claim.context if item.field == "title" for word in item.value.split()]
    alone = supported and check_statement(claim.text, [span.quote for span in claim.spans], known=titles).agrees
    documents = len({span.document for span in claim.spans}) if alone else 0
    return supported, alone, claim.mark is Mark.CORROBORATED, documents


def _merge_claims(claims: Sequence[Claim]) -> list[Claim]:
    """Make one of claims that came to the same words, with the questions of all."""
    merged: dict[str, Claim] = {}
    for claim in claims:
        if claim.text in merged:
            known = merged[claim.text]
            questions = tuple(dict.fromkeys((*known.questions, *claim.questions)))
            better = claim if _support_rank(claim) > _support_rank(known) else known
            claim = better.model_copy(update={"id": known.id, "questions": questions})
        merged[claim.text] = claim
    return list(merged.values())


async def apply_denials(
    claims: Sequence[Claim],
    denials: Sequence[Denial],
    wordings: Sequence[ClaimWording],
    documents: Mapping[str, Document],
    credibility: Mapping[str, Credibility],
    context: ResearchContext,
) -> tuple[list[Claim], list[Conflict]]:
    """A document that denies a claim bears it out no more, and without any other the claim is contradicted. What other
    documents say against it become claims, and are told as conflicts."""

    async def decide(some: Sequence[ClaimWording]) -> list[Claim]:
        if not some:
            return []
        judged = await judge_statements(list_pairs(some), context)
        return await decide_claims(some, judged.judgements, documents, credibility, context.reasoner)

    against: dict[str, list[QuoteSpan]] = {}
    for denial in denials:
        against.setdefault(denial.claim.id, []).append(denial.span)
    own = {denial.claim.id: denial.claim for denial in denials if denial.is_own}
    left = []
    for claim in own.values():
        wording = next(one for one in wordings if one.text == claim.text)
        denying = {span.document for span in against[claim.id]}
        left.append(wording._replace(id=claim.id, contexts=[c for c in wording.contexts if c.document not in denying]))
    kept = {claim.id: claim for claim in await decide(left)}
    settled = []
    for claim in claims:
        if claim.id in kept and kept[claim.id].verdict is Verdict.SUPPORTED:
            claim = kept[claim.id].model_copy(update={"questions": claim.questions, "relevance": claim.relevance})
        elif claim.id in kept:
            claim = refuse_claim(claim, against[claim.id])
        settled.append(claim)
    standing = {claim.id: claim for claim in settled if claim.verdict is Verdict.SUPPORTED}
    opposed = [(standing[denial.claim.id], denial.span) for denial in denials if denial.claim.id in standing]
    # A sentence that denies several claims is one claim; one that is a claim already is not made one again.
    said = {(span.document, span.start): find_claim_of(span, standing.values()) for _, span in opposed}
    numbers = max((int(claim.id[1:]) for claim in claims), default=0)
    drafted: dict[tuple[str, int], ClaimWording] = {}
    for claim, span in opposed:
        place = span.document, span.start
        if said[place] is None and place not in drafted:
            text = " ".join(span.quote.split())
            draft = DraftClaim(wordings=(text,), findings=(), questions=claim.questions, relevance=claim.relevance)
            contexts = [found.add_names(text) for found in read_contexts([span], documents)]
            drafted[place] = ClaimWording(f"C{numbers + len(drafted) + 1}", draft, text, contexts, (span,))
    added = await decide(list(drafted.values()))
    said |= dict(zip(drafted, added, strict=True))
    conflicts = [
        Conflict(first=claim.text, second=other.text)
        for claim, span in opposed
        if (other := said[span.document, span.start]) and other.verdict is Verdict.SUPPORTED
    ]
    return [*settled, *added], conflicts


def refuse_claim(claim: Claim, against: Sequence[QuoteSpan]) -> Claim:
    """Return the claim as one that its own document denies."""
    return claim.model_copy(
        update={
            "spans": tuple(against),
            "against": tuple(against),
            "context": (),
            "verdict": Verdict.CONTRADICTED,
            "confidence": 0.0,
            "mark": None,
            "reasons": ("its document denies it",),
        }
    )


def find_claim_of(span: QuoteSpan, claims: Iterable[Claim]) -> Claim | None:
    """Return the claim that says what a span says, if there is one."""
    said = " ".join(words(span.quote))
    return next((claim for claim in claims if said in " ".join(words(claim.text))), None)


def add_disputes(claim: Claim, disagreements: Sequence[Disagreement]) -> Claim:
    """Add who disputes a claim, and what has superseded it."""
    disputed: list[str] = []
    superseded = None
    lost = {id for matter in disagreements if matter.resolved for id in matter.sides[1]}
    for matter in disagreements:
        first, second = matter.sides
        if matter.resolved:
            if claim.id in second and (superseded is None or superseded in lost):
                superseded = first[0]
        elif claim.id in first:
            disputed += second
        elif claim.id in second:
            disputed += first
    return claim.model_copy(update={"disputed_by": tuple(dict.fromkeys(disputed)), "superseded_by": superseded})


def add_date(claim: Claim, documents: Mapping[str, Document]) -> Claim:
    """Say of when a figure is that others contradict or have replaced, where it does not say so itself: what its
    newest source was published on."""
    told = find_years(claim.text) or UNDATED in claim.text
    if not (claim.superseded_by or claim.disputed_by) or told or not find_main_figure(claim.text):
        return claim
    days = {day: span.document for span in claim.spans if (day := documents[span.document].published)}
    if not days:
        return claim.model_copy(update={"text": f"{claim.text.rstrip('.')} ({UNDATED})."})
    newest = max(days)
    item = ContextItem(document=days[newest], field="published", value=newest.isoformat())
    text = f"{claim.text.rstrip('.')} (as of {newest:%B %Y})."
    return claim.model_copy(update={"text": text, "context": (*claim.context, item)})
