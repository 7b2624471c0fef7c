"""`verify`: a statement against what a thread has read, or against passages that the caller gives.

It is judged as a report's own statements are: the quote stands in its source, every figure, date, name and negation
agrees, and the passage supports the statement. No language model is asked, so it costs nothing.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pydantic import BaseModel, Field

from assay.companies import Later
from assay.errors import EvidenceError, NotFoundError, QuestionError, UsageError
from assay.mcp_server.house import Guest, House, own
from assay.model.claim import Claim, Verdict
from assay.model.evidence import Span
from assay.model.source import Document, Passage
from assay.model.user import Scope
from assay.reasoning.embedded import EmbeddedReasoner
from assay.reasoning.protocol import DraftClaim
from assay.stages.verify import Variant, judged_claims
from assay.storage.database import utc_now
from assay.text.clean import clean
from assay.text.passages import LONGEST, passages
from assay.text.relations import relate
from assay.trust.credibility import assess
from assay.trust.figures import check
from assay.trust.witnesses import Witnesses

CANDIDATES = 6  # passages that are judged
LONGEST_STATEMENT = 2_000
MOST_TEXT = 400_000  # characters that are looked through, which takes 2 s of a core
AT_ONCE, PER_PERSON = 2, 10  # statements that are judged, and that somebody may have judged or in line
JUDGED_BY = "quotes, figures, names, dates and negation by rule; support by the embedded model; no language model"


class Given(BaseModel):
    """A passage to hold the statement against."""

    text: str = Field(min_length=1, max_length=100_000)
    source: str = Field(default="", max_length=2_000, description="Where it is from: a title or an address.")


class Evidence(BaseModel):
    quote: str = Field(description="Verbatim.")
    source: str
    url: str
    document: str = Field(description="The sha256 of the text it stands in.")
    start: int = Field(description="Where it begins there, in characters.")
    end: int
    support: float = Field(description="How far it bears the statement out, 0 to 1.")
    disagreements: list[str] = Field(description="Figures, dates, names or negation that do not agree.")


class Verified(BaseModel):
    verdict: Verdict = Field(description="supported, partly, contradicted or not_found.")
    confidence: float = Field(description="That it holds, 0 to 1; independent sources add to it.")
    reasons: list[str]
    evidence: list[Evidence] = Field(description="The passages that bear on it, what supports it most first.")
    notices: list[str] = Field(default=[], description="What it was not held against, and why.")
    judged_by: str = JUDGED_BY


class Line:
    """Judging takes all of a core, so few are judged at once; the others wait for their turn."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._here = Counter[str]()

    @asynccontextmanager
    async def turn(self, guest: Guest) -> AsyncIterator[None]:
        if self._here[guest.user] >= PER_PERSON:
            raise UsageError(f"{PER_PERSON} statements of yours are being verified", help="Wait for one of them.")
        self._here[guest.user] += 1
        try:
            async with self._turn:
                yield
        finally:
            self._here[guest.user] -= 1
            self._here += Counter()  # forgets whom nothing is judged for


async def verify(
    house: House, guest: Guest, statement: str, thread: str | None, given: Sequence[Given] | None
) -> Verified:
    guest.needs(Scope.READ)
    said = " ".join(clean(statement).split())
    if not said or len(said) > LONGEST_STATEMENT:
        raise QuestionError(f"a statement has 1 to {LONGEST_STATEMENT} characters", help="Give one sentence.")
    if not thread and not given:
        raise UsageError("say what to hold it against", help="Give a thread, or passages with their source.")
    if sum(len(one.text) for one in given or ()) > MOST_TEXT:
        raise QuestionError(f"the passages have more than {MOST_TEXT:,} characters", help="Give fewer of them.")
    documents = {document.hash: document for document in map(_document, given or ())}
    left_out = await _read_for(house, guest, thread, documents) if thread else 0
    verified = await _judged(house, said, documents)
    if not left_out:
        return verified
    note = f"{left_out} of the thread's documents were not looked through: at most {MOST_TEXT:,} characters are."
    return verified.model_copy(update={"notices": [note]})


def _document(given: Given) -> Document:
    text = clean(given.text)
    hash, source = hashlib.sha256(text.encode()).hexdigest(), clean(given.source).strip()
    return Document(hash=hash, text=text, url=source, title=source or "a passage", fetched=utc_now(), kind="document")


async def _read_for(house: House, guest: Guest, thread: str, documents: dict[str, Document]) -> int:
    """Adds what its report rests on, or else all it has read so far; how many did not fit."""
    await own(house, guest, thread)
    store, left_out = house.premises.world.documents, 0
    try:
        names = [card.document for card in (await house.premises.engine.report(thread)).sources]
    except NotFoundError:
        names = await store.used(thread)
    left = MOST_TEXT - sum(len(document.text) for document in documents.values())
    for name in dict.fromkeys(names):
        try:
            found = await store.get(name)
        except (EvidenceError, NotFoundError):  # one that was altered, or is gone, is no evidence
            continue
        if name in documents or len(found.text) > left:
            left_out += name not in documents
            continue
        documents[name] = found
        left -= len(found.text)
    if not documents:
        state = "documents too long to be looked through" if left_out else "read nothing yet"
        raise NotFoundError(f"thread {thread} has {state}", help="Give passages instead.")
    return left_out


async def _judged(house: House, statement: str, documents: dict[str, Document]) -> Verified:
    premises = house.premises
    spans = await asyncio.to_thread(_candidates, statement, documents)
    reasoner = EmbeddedReasoner(premises.world.embedder, premises.support, Later())
    judged = await reasoner.judge([(statement, [span.quote]) for span in spans])
    draft = DraftClaim(wordings=(statement,), findings=(), questions=(), relevance=1.0)
    credibility = {name: assess(document) for name, document in documents.items()}
    [claim] = await asyncio.to_thread(
        judged_claims, [Variant("C1", draft, statement, spans)], judged.judgements, documents, credibility,
        premises.support,
    )  # fmt: skip
    scores = await asyncio.to_thread(premises.support.scores, [(statement, span.quote) for span in spans])
    return _verified(claim, statement, dict(zip(spans, scores, strict=True)), documents)


def _candidates(statement: str, documents: dict[str, Document]) -> list[Span]:
    """Sentences that bear on it; of a short text, all of it."""
    read: list[Passage] = [one for document in documents.values() for one in passages(document.hash, document.text)]
    witnesses = Witnesses(read, {name: document.title for name, document in documents.items()})
    found = [*witnesses.saying(statement), *witnesses.offered(statement, CANDIDATES)]
    found += [_whole(document) for document in documents.values() if len(document.text) <= LONGEST]
    return list({(span.document, span.start, span.end): span for span in found}.values())[:CANDIDATES]


def _whole(document: Document) -> Span:
    return Span(document=document.hash, start=0, end=len(document.text), quote=document.text)


def _verified(claim: Claim, statement: str, scores: dict[Span, float], documents: dict[str, Document]) -> Verified:
    """A passage that says the contrary, or gives another figure for the same, speaks against what nothing supports."""
    against = [span for span in scores if relate(statement, span.quote) == "disagree"]
    is_denied = claim.verdict is not Verdict.SUPPORTED and bool(against)
    chosen = set(against) if is_denied else {*claim.spans, *claim.against} or set(scores)
    best = sorted((span for span in scores if span in chosen), key=lambda span: -scores[span])
    return Verified(
        verdict=Verdict.CONTRADICTED if is_denied else claim.verdict,
        confidence=0.0 if is_denied else claim.confidence,
        reasons=[*(["a passage says otherwise"] if is_denied else []), *claim.reasons],
        evidence=[_evidence(span, statement, scores[span], documents[span.document]) for span in best],
    )


def _evidence(span: Span, statement: str, score: float, document: Document) -> Evidence:
    problems = check(statement, [span.quote], known=document.title.split()).problems
    return Evidence(
        quote=span.quote, source=document.title, url=document.url, document=span.document, start=span.start,
        end=span.end, support=round(score, 4), disagreements=[problem.text for problem in problems],
    )  # fmt: skip
