"""News as it is written: sentences whose weekday, dateline or attribution a claim leaves out, and names of cases.

A judge that is right supports the claim, and the checks beside it must not refuse it. What is left out stands in the
sentence, or was put there where too few have it.
"""

import asyncio
import csv
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import NamedTuple, cast

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure
from openassay.models.evidence import Document, Judgement, QuoteSpan, Verdict
from openassay.nodes.verify import ClaimWording, decide_claims, read_contexts
from openassay.reasoning.base import DraftClaim, Reasoner
from openassay.text.sentences import split_sentences
from openassay.verification.sources import assess_credibility

_DAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_WEEKDAY = re.compile(rf",? \b(?:on|late|early|last|this) {_DAY}(?: (?:morning|afternoon|evening|night))?\b,?")
_DATELINE = re.compile(r"^[A-Z][A-Z ,.'-]{3,40}(?:\([^)]{2,20}\))?\s*[—–-]{1,2}\s+(?=[A-Z])")
_ATTRIBUTION = re.compile(r",\s+(?:[\w.’' -]{1,60}\s)?(?:said|says|told [\w ]{2,30}|according to [\w’' ]{2,60})\s*\.$")
_FIRST = "Mon Tues Wednes Thurs Fri Satur Sun".split()
_PLACES = ("PARIS (AP) —", "NAIROBI, Kenya —", "WASHINGTON (Reuters) -", "LIMA —")
_SPEAKERS = ("officials said", "the ministry said", "according to a police report", "the company said in a statement")
LENGTH = range(8, 45)  # words of a sentence that is taken
AT_LEAST = 1_200
CASES = 600


class NewsCase(NamedTuple):
    claim: str
    sentence: str  # of the text
    text: str


def remove_parts(articles: Sequence[str]) -> Iterator[NewsCase]:
    for text in articles:
        for piece in split_sentences(text):
            for form in (_WEEKDAY, _DATELINE, _ATTRIBUTION):
                said = form.sub("." if form is _ATTRIBUTION else "", piece.text, count=1).strip()
                if said != piece.text and len(said.split()) in LENGTH:
                    yield NewsCase(said[:1].upper() + said[1:], piece.text, text)


def add_parts(articles: Sequence[str], dice: Random) -> Iterator[NewsCase]:
    for text in articles:
        for piece in split_sentences(text)[:12]:
            said = piece.text
            if len(said.split()) in LENGTH and said.endswith(".") and said[0].isupper() and not re.search(_DAY, said):
                day = f"{dice.choice(_FIRST)}day"
                told = dice.choice(
                    (
                        f"{dice.choice(_PLACES)} {said}",
                        f"{said[:-1]}, {dice.choice(_SPEAKERS)} on {day}.",
                        f"{said[:-1]}, {dice.choice(_SPEAKERS)}.",
                        f"{said[:-1]} on {day}.",
                    )
                )
                yield NewsCase(said, told, text.replace(said, told, 1))


def find_refusal(case: NewsCase) -> tuple[str, ...]:
    """Why the checks refuse a claim that its judge supports; empty if they do not."""
    start = case.text.find(case.sentence)
    document = Document(
        hash=hashlib.sha256(case.text.encode()).hexdigest(),
        text=case.text,
        url="file:///news.txt",
        title="",
        published=date(2024, 3, 6),
        fetched=datetime.now(UTC),
    )
    span = QuoteSpan(document=document.hash, start=start, end=start + len(case.sentence), quote=case.sentence)
    documents = {document.hash: document}
    draft = DraftClaim(wordings=(case.claim,), findings=(), questions=(), relevance=1.0)
    wordings = [ClaimWording("C1", draft, case.claim, read_contexts([span], documents))]
    judged = [Judgement(verdict=Verdict.SUPPORTED, score=0.9)]
    known = {document.hash: assess_credibility(document)}
    # One document: nothing is asked of a reasoner.
    [claim] = asyncio.run(decide_claims(wordings, judged, documents, known, cast(Reasoner, None)))
    return () if claim.verdict is Verdict.SUPPORTED else claim.reasons


def load_news(data: Path) -> list[NewsCase]:
    pages = json.loads((data / "extraction/ground-truth.json").read_text(encoding="utf-8"))
    articles = [page["articleBody"] for page in pages.values()]
    removed = list(remove_parts(articles))
    added = list(add_parts(articles, Random(3)))
    Random(4).shuffle(added)
    return removed + added[: max(0, AT_LEAST - len(removed))]


FORMS = (
    "The ruling in {case} was handed down in May.",
    "In {case}, the court held that the contract was void.",
    "He cited {case} and two other decisions.",
    "Lawyers compared it to {case}. The judge did not agree.",
    "The appeal, {case}, is pending.",
    "Under {case} the state bears the burden of proof.",
)


def load_cases(data: Path) -> list[tuple[str, str]]:
    """Sentences with the name of a case, and the case: names of companies of others, as they are spelled."""
    with (data / "companies/names.csv").open(encoding="utf-8", errors="replace") as file:
        names = [row[0].strip() for row in csv.reader(file, delimiter=";") if row and 2 < len(row[0]) < 40]
    dice = Random(5)
    dice.shuffle(names)
    pairs = zip(names[0::2], names[1::2], strict=False)
    cases = [f"{one} {dice.choice(('v.', 'v.', 'vs.'))} {other}" for one, other in pairs][:CASES]
    return [(dice.choice(FORMS).format(case=case), case) for case in cases]


def is_cut(sentence: str, case: str) -> bool:
    """Whether a case is cut at its "v."; whether "Inc." ends a sentence is another question."""
    middle = re.search(r" vs?\. ", sentence)
    assert middle, case
    return not any(piece.start < middle.start() and piece.end > middle.end() for piece in split_sentences(sentence))


def _measure_news(data: Path, quick: bool) -> EvalValues:
    found = load_news(data)[:: 6 if quick else 1]
    refused = [case for case in found if find_refusal(case)]
    cases = load_cases(data)[:: 3 if quick else 1]
    return {
        "claims refused": EvalValue(len(refused), {"of": len(found)}),
        "cases cut at their “v.”": EvalValue(sum(is_cut(*case) for case in cases), {"of": len(cases)}),
    }


MEASURES = {
    "news": EvalMeasure(
        name="news",
        about="Claims that leave out a weekday, a dateline or an attribution: how many do the checks refuse?",
        needs=("extraction", "companies"),
        licence="MIT, PDDL",
        whole=f"{AT_LEAST:,} sentences, {CASES} names of cases",
        quick="200 sentences, 200 names of cases",
        figures=(
            Figure("claims refused", floor=0, quick=0, less_is_better=True, form=".0f"),
            Figure("cases cut at their “v.”", floor=0, quick=0, less_is_better=True, form=".0f"),
        ),
        run=_measure_news,
        notes="The judge is one that supports every claim, so that only the checks beside it can refuse.",
    )
}
