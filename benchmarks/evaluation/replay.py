"""Claims that a strong model drew from documents, replayed through the checks, as they are and with one thing wrong.

The claims are those of whole runs on corpora that nothing was tuned on (benchmarks/data/ORIGIN.md). Somebody who had
not seen the checks made two false ones of each: a figure, a date, a name, a negation, a direction or an invented
detail. What a strong mind said as a judge of all of them was recorded. So a change in the checks is measured without
anybody answering again. The documents are not kept here: a corpus is a folder `NAME/docs` of the data folder.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.evaluation.measure import load_rows
from openassay.companies.register import LazyCompanyRegister
from openassay.fetch.formats import parse_day
from openassay.models.evidence import Claim, Document, Judgement, QuoteSpan, Verdict
from openassay.nodes.verify import ClaimWording, decide_claims, list_pairs, read_contexts
from openassay.reasoning.base import DraftClaim, JudgementBatch
from openassay.reasoning.rules import RuleReasoner
from openassay.text.embeddings import CrossEncoder, MiniLM
from openassay.verification.sources import assess_credibility
from openassay.verification.support import CrossEncoderScorer

REPLAY = Path(__file__).parents[1] / "data" / "replay"
CORPORA = ("presidential_speeches", "ethereum_eips", "ropensci_blog")
HEAD_LINES = 6  # of a file, in which it says of itself what it is


class ReplayClaim(NamedTuple):
    """A claim, where its quotes stand, and whether it is one that the model drew or a false one made of it."""

    id: str
    text: str
    kind: str  # "drawn", or what is wrong
    contexts: ClaimWording
    documents: Mapping[str, Document]


def read_corpus_file(path: Path) -> Document:
    """Read a file of a corpus: its title in the first line, then what it says of itself."""
    text = path.read_text(encoding="utf-8")
    head = text.split("\n")[:HEAD_LINES]
    told = {name.lower(): value.strip() for line in head[1:] for name, colon, value in [line.partition(":")] if colon}
    return Document(
        hash=hashlib.sha256(text.encode()).hexdigest(),
        text=text,
        url=path.as_uri(),
        title=head[0].lstrip("# ").strip(),
        author=told.get("author") or None,
        publisher=told.get("publisher") or None,
        published=parse_day(told.get("date", "")),
        fetched=datetime.now(UTC),
        kind="document",
    )


def load_claims(data: Path) -> Iterator[ReplayClaim]:
    """Load the claims of those corpora that are there. A file that has changed since is an error."""
    false: dict[str, list[dict[str, Any]]] = {}
    for row in load_rows(REPLAY / "false.jsonl"):
        false.setdefault(row["of"], []).append(row)
    for row in load_rows(REPLAY / "claims.jsonl"):
        folder = data / row["corpus"] / "docs"
        if not folder.is_dir():
            continue
        documents, spans = dict[str, Document](), list[QuoteSpan]()
        for place in row["places"]:
            document = read_corpus_file(folder / place["file"])
            if document.hash[:12] != place["sha256"]:
                raise ValueError(f"{place['file']} of {row['corpus']} is not the file that was quoted")
            documents[document.hash] = document
            quote = document.text[place["start"] : place["end"]]
            spans.append(QuoteSpan(document=document.hash, start=place["start"], end=place["end"], quote=quote))
        for kind, one in [("drawn", row), *((made["kind"], made) for made in false.get(row["id"], ()))]:
            draft = DraftClaim(wordings=(one["text"],), findings=(), questions=(), relevance=1.0)
            contexts = [found.add_names(one["text"]) for found in read_contexts(spans, documents)]
            wording = ClaimWording(one["id"], draft, one["text"], contexts, tuple(spans))
            yield ReplayClaim(one["id"], one["text"], kind, wording, documents)


class RecordedJudge(RuleReasoner):
    """Says of a statement what a strong model has said of it."""

    def __init__(self, said: Mapping[str, str]) -> None:
        super().__init__(MiniLM(), CrossEncoderScorer(CrossEncoder()), LazyCompanyRegister())
        self._said = said

    async def judge(self, statements: Sequence[tuple[str, Sequence[str]]]) -> JudgementBatch:
        return JudgementBatch(
            judgements=tuple(Judgement(verdict=Verdict(self._said[text]), score=0.9) for text, _ in statements)
        )


async def decide(claims: Sequence[ReplayClaim], reasoner: RuleReasoner) -> dict[str, Claim]:
    """Decide on each claim as a run does, by one judge and the checks."""
    decided = dict[str, Claim]()
    for claim in claims:
        judged = await reasoner.judge(list_pairs([claim.contexts]))
        known = {name: assess_credibility(document) for name, document in claim.documents.items()}
        [made] = await decide_claims([claim.contexts], judged.judgements, claim.documents, known, reasoner)
        decided[claim.id] = made
    return decided


def load_judged(claims: Sequence[ReplayClaim]) -> dict[str, str]:
    """What the strong judge said, by the text of the claim."""
    recorded = json.loads((REPLAY / "judged.json").read_text(encoding="utf-8"))
    return {claim.text: recorded[claim.id] for claim in claims}


def count_errors(claims: Sequence[ReplayClaim], decided: Mapping[str, Claim]) -> tuple[float, float]:
    """The shares of the drawn claims that are refused and of the false ones that pass."""
    passed = {claim.id: decided[claim.id].verdict is Verdict.SUPPORTED for claim in claims}
    true = [passed[claim.id] for claim in claims if claim.kind == "drawn"]
    false = [passed[claim.id] for claim in claims if claim.kind != "drawn"]
    return 1 - sum(true) / len(true), sum(false) / len(false)
