"""Work outside of a run: a search, a check of one statement against documents, and one of a report's sources against
what they say now.

Nothing of a thread is altered. A source that cannot be reached has not vanished: it could not be checked.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from openassay.bootstrap import ServerResources
from openassay.companies.register import LazyCompanyRegister
from openassay.errors import OpenAssayError
from openassay.models.base import Record
from openassay.models.evidence import Document, Hit, QuoteSpan, Verdict
from openassay.models.report import ReportData, SourceCard
from openassay.nodes.verify import ClaimWording, decide_claims, list_pairs, read_contexts
from openassay.protocols import PageResult, Source
from openassay.reasoning.base import DraftClaim, Reasoner
from openassay.reasoning.rules import RuleReasoner
from openassay.search.ranking import fuse
from openassay.text.relations import relate
from openassay.text.sentences import split_passages, split_sentences
from openassay.verification.corroboration import CorroborationIndex, find_best_sentences
from openassay.verification.quotes import find_quote
from openassay.verification.sources import assess_credibility


async def search_sources(sources: Sequence[Source], query: str, limit: int) -> tuple[list[Hit], list[str]]:
    """Return the best of what the sources find, and why some could not be searched."""
    answers = await asyncio.gather(*(_query_source(source, query, limit) for source in sources))
    return fuse([found for found, _ in answers])[:limit], [reason for _, reason in answers if reason]


async def _query_source(source: Source, query: str, limit: int) -> tuple[list[Hit], str]:
    """Return what a source has found, or why it could not be searched."""
    try:
        return await source.search(query, limit=limit), ""
    except OpenAssayError as error:
        return [], f"{error.message}. {error.help}".strip()
    except Exception as error:  # noqa: BLE001  # a plugin may raise anything, and must not take the others with it
        return [], f"{source.name} failed: {type(error).__name__}"


# One statement, judged as the statements of a report are.

MAX_CANDIDATES = 6  # passages that are judged


class JudgedSpan(NamedTuple):
    """A passage, how far it supports the statement (0 to 1), and what in it disagrees."""

    span: QuoteSpan
    support: float
    disagreements: list[str]


class StatementJudgement(NamedTuple):
    verdict: Verdict
    confidence: float
    reasons: list[str]
    evidence: list[JudgedSpan]  # the best first


async def judge_statement(
    resources: ServerResources, statement: str, documents: dict[str, Document], reasoner: Reasoner | None = None
) -> StatementJudgement:
    """Return the verdict on a statement, by the embedded verifier or the `reasoner`. A passage that says otherwise
    contradicts what nothing supports."""
    spans = await asyncio.to_thread(find_candidates, statement, documents)
    reasoner = reasoner or RuleReasoner(resources.embedder, resources.support, LazyCompanyRegister())
    draft = DraftClaim(wordings=(statement,), findings=(), questions=(), relevance=1.0)
    contexts = [found.add_names(statement) for found in await asyncio.to_thread(read_contexts, spans, documents)]
    wordings = [ClaimWording("C1", draft, statement, contexts)]
    judged = await reasoner.judge(list_pairs(wordings))
    credibility = {name: assess_credibility(document) for name, document in documents.items()}
    [claim] = await decide_claims(wordings, judged.judgements, documents, credibility, reasoner, publish=False)
    values = await asyncio.to_thread(resources.support.scores, [(statement, found.render()) for found in contexts])
    scores = {span: value.supported for found, value in zip(contexts, values, strict=True) for span in found.spans}
    against = [span for span in spans if relate(statement, span.quote) == "disagree"]
    is_denied = claim.verdict is not Verdict.SUPPORTED and bool(against)
    chosen = set(against) if is_denied else {*claim.spans, *claim.against} or set(spans)
    evidence = []
    for span in sorted((span for span in spans if span in chosen), key=lambda span: -scores[span]):
        found = next(one for one in contexts if span in one.spans)
        supported = claim.verdict is Verdict.SUPPORTED
        problems = [] if supported else [problem.text for problem in found.find_differences(statement)]
        evidence.append(JudgedSpan(span, round(scores[span], 4), problems))
    return StatementJudgement(
        verdict=Verdict.CONTRADICTED if is_denied else claim.verdict,
        confidence=0.0 if is_denied else claim.confidence,
        reasons=[*(["a passage says otherwise"] if is_denied else []), *claim.reasons],
        evidence=evidence,
    )


def find_candidates(statement: str, documents: dict[str, Document]) -> list[QuoteSpan]:
    """Return the sentences that bear on the statement most; of a text that shares no word with it, how it begins."""
    passages = [one for document in documents.values() for one in split_passages(document.hash, document.text)]
    index = CorroborationIndex(passages, {name: document.title for name, document in documents.items()})
    found = [*index.find_equivalents(statement), *index.find_candidates(statement, MAX_CANDIDATES)]
    if not found:
        openings = [(document, split_sentences(document.text)[:1]) for document in documents.values()]
        found = [
            QuoteSpan(document=document.hash, start=piece.start, end=piece.end, quote=piece.text)
            for document, pieces in openings
            for piece in pieces
        ]
    return list({(span.document, span.start): span for span in found}.values())[:MAX_CANDIDATES]


# The sources of a report, each read again, and its passages looked for.

PassageStatus = Literal["stands", "moved", "changed", "vanished", "unchecked"]
WORST: tuple[PassageStatus, ...] = ("stands", "moved", "unchecked", "changed", "vanished")
LIKE = 0.5  # of the words in order; what is less like a passage is not what it has become
CANDIDATES = 4  # places that are held against a passage
MAX_SOURCE_CHARS = 2_000_000  # characters of a source in which something like a passage is looked for
_GONE = re.compile(r"answered (?:404|410)\b")


class RereadResult(NamedTuple):
    """What reading a source again has given: its text, or why there is none. `gone`: it is not there any more."""

    text: str | None = None
    reason: str = ""
    gone: bool = False


class PassageCheck(Record):
    """`statements` are the sentences of the report that rest on it; `now` is what stands there in its place."""

    claims: tuple[str, ...]
    statements: tuple[str, ...]
    quote: str
    state: PassageStatus
    now: str = ""
    likeness: float | None = None


class SourceCheck(Record):
    """A source; its state is that of its worst passage."""

    source: str
    title: str
    url: str
    state: PassageStatus
    reason: str = ""
    passages: tuple[PassageCheck, ...]


ReadSource = Callable[[SourceCard], Awaitable[RereadResult]]


async def check_sources(report: ReportData, reread: ReadSource) -> list[SourceCheck]:
    """Every source that a statement of the report rests on."""
    resting = _group_passages(report)
    cards = [card for card in report.sources if card.id in {source for source, *_ in resting}]
    found = await asyncio.gather(*map(reread, cards))
    return [
        await asyncio.to_thread(_check_source, card, again, resting) for card, again in zip(cards, found, strict=True)
    ]


def from_page(page: PageResult, *, ours: bool) -> RereadResult:
    """`ours`: the snapshot was read from this page, and not from what a search provider knows of it."""
    if page.document is not None:
        moved = f"is at {page.document.url} now" if page.document.url != page.address else ""
        return RereadResult(page.document.text, moved if ours else _PROVIDED)
    return RereadResult(reason=page.reason, gone=bool(_GONE.search(page.reason)))


_PROVIDED = "was read in a search provider's words, which its page need not have"
_Key = tuple[str, str, int]  # source, quote, start


def _group_passages(report: ReportData) -> dict[_Key, tuple[list[str], list[str]]]:
    """For each passage the claims it supports, and the sentences that rest on those."""
    said: dict[str, list[str]] = {}
    for section in report.sections:
        for sentence in section.sentences:
            for name in sentence.claims:
                said.setdefault(name, []).append(sentence.text)
    found: dict[_Key, tuple[list[str], list[str]]] = {}
    for claim in report.claims:
        for span in claim.spans if claim.id in said else ():
            claims, statements = found.setdefault((span.source, span.quote, span.start), ([], []))
            claims.append(claim.id)
            statements += [text for text in said[claim.id] if text not in statements]
    return found


def _check_source(
    card: SourceCard, again: RereadResult, resting: Mapping[_Key, tuple[Sequence[str], Sequence[str]]]
) -> SourceCheck:
    passages = []
    for (source, quote, start), (claims, statements) in resting.items():
        if source == card.id:
            state, now, likeness = _locate_quote(again, quote, start)
            rests = {"claims": tuple(claims), "statements": tuple(statements)}
            passages.append(PassageCheck(**rests, quote=quote, state=state, now=now, likeness=likeness))
    worst = max((passage.state for passage in passages), key=WORST.index)
    return SourceCheck(
        source=card.id, title=card.title, url=card.url, state=worst, reason=again.reason, passages=tuple(passages)
    )


def _locate_quote(again: RereadResult, quote: str, start: int) -> tuple[PassageStatus, str, float | None]:
    """Return what has become of a quote, what stands there in its place, and how like it is."""
    text = again.text
    if text is None:
        return "vanished" if again.gone else "unchecked", "", None
    if text[start : start + len(quote)] == quote:
        return "stands", "", None
    if find_quote(quote, text) is not None:
        return "moved", "", None
    if again.reason == _PROVIDED:
        return "unchecked", "", None
    now, likeness = find_nearest(quote, text)
    return ("changed", now, likeness) if likeness >= LIKE else ("vanished", "", None)


def find_nearest(quote: str, text: str) -> tuple[str, float]:
    """What stands there that is most like the passage, and how like it is, 0 to 1."""
    pieces, length = split_sentences(text[:MAX_SOURCE_CHARS]), max(1, len(split_sentences(quote)))
    wanted, top = quote.split(), ("", 0.0)
    for at in find_best_sentences(quote, [piece.text for piece in pieces], CANDIDATES):
        for first in range(max(0, at - length + 1), at + 1):
            window = pieces[first : first + length]
            now = text[window[0].start : window[-1].end]
            likeness = SequenceMatcher(None, wanted, now.split(), autojunk=False).ratio()
            top = max(top, (now, round(likeness, 2)), key=lambda one: one[1])
    return top
