"""Short answers where sources disagree: python benchmarks/bench_ramdocs.py [EVERY] [FIRST]

Data: ramdocs (250 questions, each with documents that answer it rightly, wrongly or not at all) from `ASSAY_EVAL_DATA`,
by default ../shared/data. All questions are answered directly: of each document the sentence that answers is a claim,
and claims are compared and told as in a report. Then every EVERYth (10) from FIRST on is asked through the engine, its
documents being the person's own files; EVERY 0 leaves that out. An answer is right if it contains a gold one, wrong if
it contains a false one (case, articles and punctuation aside).

    strict      every gold answer is asserted, and nothing false is
    shown       every gold answer is asserted or shown as disputed, and nothing false is asserted
    found       every gold answer is told, whatever else is
    disputed    of the false answers that are told, those shown as disputed

Rules were written looking at the even lines, and at those that leave 1 divided by 4; those that leave 3 were never
looked at, so that they tell best what new questions get.
"""

import asyncio
import hashlib
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assay.bootstrap import open_engine
from assay.model.claim import Claim, Verdict
from assay.model.evidence import Span
from assay.model.report import Answer
from assay.model.source import Document, Passage
from assay.model.thread import Options
from assay.reasoning.embedded.answering import answers, bearing
from assay.reasoning.embedded.disagreeing import disagreements
from assay.reasoning.protocol import Known, Origin, Quote
from assay.settings import load
from assay.stages.answers import checked, told
from assay.text.passages import passages
from assay.trust.independence import groups

DATA = Path(os.environ.get("ASSAY_EVAL_DATA", "../shared/data")) / "ramdocs" / "odd250.jsonl"
PARTS = {"even": slice(0, None, 2), "1 of 4": slice(1, None, 4), "3 of 4": slice(3, None, 4), "all": slice(None)}


def plain(text: str) -> str:
    bare = re.sub(r"[^\w\s]", " ", text.lower())
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", bare).split())


def holds(answer: str, any_of: Iterable[str]) -> bool:
    return any(plain(one) in plain(answer) for one in any_of)


def counted(item: dict[str, Any], given: Sequence[Answer]) -> Counter[str]:
    gold, false = item["gold_answers"], item["wrong_answers"]
    asserted = [answer.text for answer in given if not answer.disputed]
    every = [answer.text for answer in given]
    clean = not any(holds(text, false) for text in asserted)
    wrong = [answer for answer in given if holds(answer.text, false) and not holds(answer.text, gold)]
    return Counter(
        questions=1,
        strict=clean and all(any(holds(text, [one]) for text in asserted) for one in gold),
        shown=clean and all(any(holds(text, [one]) for text in every) for one in gold),
        found=all(any(holds(text, [one]) for text in every) for one in gold),
        asserted=len(asserted),
        asserted_right=sum(holds(text, gold) for text in asserted),
        wrong=len(wrong),
        wrong_disputed=sum(answer.disputed for answer in wrong),
    )


def summary(counts: Counter[str]) -> str:
    total = counts["questions"]
    shares = "  ".join(f"{name} {counts[name] / total:.3f}" for name in ("strict", "shown", "found"))
    disputed = counts["wrong_disputed"] / max(1, counts["wrong"])
    right = counts["asserted_right"] / max(1, counts["asserted"])
    return (
        f"{total} questions: {shares}  disputed {disputed:.2f} of {counts['wrong']} false  "
        f"right {right:.2f} of {counts['asserted']} asserted"
    )


def document(text: str, at: int) -> Document:
    name = hashlib.sha256(f"{at} {text}".encode()).hexdigest()
    return Document(hash=name, text=text, url=f"file:///{at}.txt", title=f"{at}.txt", fetched=datetime.now(UTC))


def claim(number: int, quote: Quote, passage: Passage) -> Claim:
    start = passage.start + passage.text.index(quote.text)
    span = Span(document=passage.document, start=start, end=start + len(quote.text), quote=quote.text)
    return Claim(id=f"C{number}", text=quote.text, questions=("Q1",), spans=(span,), verdict=Verdict.SUPPORTED)


def answered(item: dict[str, Any]) -> tuple[Answer, ...]:
    question, documents = item["question"], [document(one["text"], at) for at, one in enumerate(item["documents"])]
    read = [passage for one in documents for passage in passages(one.hash, one.text)]
    claims = [claim(number, quote, read[quote.passage]) for number, quote in enumerate(bearing(question, read))]
    together = groups(documents)
    origins = {one.hash: Origin(text=one.text, group=together[one.hash], host=one.host) for one in documents}
    matters = disagreements(claims, (), Known(question=question, origins=origins))
    by_id = {one.id: one for one in claims}
    ids = {one.hash: f"S{number}" for number, one in enumerate(documents, 1)}
    return told(checked(answers(question, claims), by_id), by_id, ids, matters)


def directly(items: Sequence[dict[str, Any]]) -> None:
    counts = [counted(item, answered(item)) for item in items]
    for name, part in PARTS.items():
        print(f"directly, {name:7}", summary(sum(counts[part], Counter())))


async def through_the_engine(items: Sequence[dict[str, Any]]) -> None:
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        async with open_engine(load(data_dir=Path(folder) / "data")) as engine:
            for number, item in enumerate(items):
                shelf = Path(folder) / f"question-{number}"
                shelf.mkdir()
                for at, one in enumerate(item["documents"], 1):
                    (shelf / f"document-{at}.txt").write_text(one["text"], encoding="utf-8")
                run = await engine.start(item["question"], Options(docs=(str(shelf),)))
                report = (await engine.wait(run.id)).report
                counts += counted(item, report.answers if report else ())
    print("through the engine", summary(counts))


def main(every: int = 10, first: int = 0) -> None:
    items = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
    directly(items)
    if every:
        asyncio.run(through_the_engine(items[first::every]))


if __name__ == "__main__":
    if DATA.is_file():
        main(*map(int, sys.argv[1:3]))
    else:
        print(f"no data at {DATA}; set ASSAY_EVAL_DATA")
