"""Is a report right as often as it says it is sure?

Questions with known answers over their own documents, and questions whose documents have no answer, since those that
do were taken away. The embedded reasoner answers each at quick depth. A report is right if what it shows first has the
answer: its first short answer, or else its first statement. Where the documents have no answer, a report is right that
says it found none.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.evaluation.measure import load_rows
from benchmarks.evaluation.ramdocs import normalise_text
from benchmarks.evaluation.reports import extract_figures, open_offline_engine
from openassay.engine.engine import Engine
from openassay.errors import PathError, ReasoningError
from openassay.export import Report
from openassay.models.evidence import Claim
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions
from openassay.nodes.confidence import Lead, LeadSigns, describe_lead, find_lead
from openassay.protocols import SupportScorer
from openassay.reasoning.base import Draft
from openassay.text.embeddings import CrossEncoder
from openassay.text.quantities import find_quantities
from openassay.verification.support import CrossEncoderScorer

SAMPLE = 160  # questions of a set at most; three in four of them have an answer
ROUNDING = 0.006  # of a figure: 12.345 is 12.35 or 12.3


class KnownQuestion(NamedTuple):
    """A question, its documents by file name, and what answers it: any of `answers`, or nothing that is there."""

    set: str
    id: str
    text: str
    documents: dict[str, str] | Path
    answers: tuple[str, ...]
    whole: str  # what is told apart by a half: questions on one table are not
    answerable: bool = True

    @property
    def half(self) -> int:
        """1 is fitted on, 0 is told."""
        return int(_hash(f"{self.set}:{self.whole}"), 16) % 2


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _lacks_answer(at: int) -> bool:
    """Every fourth question loses the documents that answer it."""
    return at % 4 == 3


def load_hotpotqa(data: Path) -> Iterable[KnownQuestion]:
    rows = json.loads((data / "hotpotqa/questions.json").read_text(encoding="utf-8"))
    asked = [row for row in rows if normalise_text(row["answer"]) not in ("yes", "no")]
    for at, row in enumerate(sorted(asked, key=lambda row: _hash(row["question"]))):
        gold = {title for title, _ in row["supporting_facts"]} if _lacks_answer(at) else set()
        documents = {
            f"{number}.md": f"# {title}\n\n{''.join(sentences)}\n"
            for number, (title, sentences) in enumerate(row["context"])
            if title not in gold
        }
        name = _hash(row["question"])[:12]
        yield KnownQuestion("hotpotqa", name, row["question"], documents, (row["answer"],), name, not gold)


def load_ramdocs(data: Path) -> Iterable[KnownQuestion]:
    """The odd lines: rules for short answers were written on the even ones."""
    rows = load_rows(data / "ramdocs/odd250.jsonl")[1::2]
    for at, row in enumerate(sorted(rows, key=lambda row: _hash(row["question"]))):
        lacks = _lacks_answer(at)
        documents = {
            f"{number}.txt": one["text"]
            for number, one in enumerate(row["documents"])
            if not lacks or one["type"] not in ("correct", "misinfo")
        }
        name = _hash(row["question"])[:12]
        if documents:
            yield KnownQuestion(
                "ramdocs", name, row["question"], documents, tuple(row["gold_answers"]), name, not lacks
            )


def load_tatqa(data: Path) -> Iterable[KnownQuestion]:
    """One question a table. Of one without an answer, the table is gone or the paragraphs that have it."""
    tables = json.loads((data / "tatqa/dev.json").read_text(encoding="utf-8"))
    at = 0
    for item in sorted(tables, key=lambda item: _hash(item["table"]["uid"])):
        asked = [one for one in item["questions"] if one["answer_type"] != "multi-span"]
        if not asked:
            continue
        one = min(asked, key=lambda one: _hash(one["uid"]))
        answer = one["answer"][0] if isinstance(one["answer"], list) else str(one["answer"])
        lacks, from_table = _lacks_answer(at), one["answer_from"] != "text"
        at += 1
        rows = [f"| {' | '.join(' '.join(cell.split()) for cell in row)} |" for row in item["table"]["table"]]
        rows.insert(1, "|---" * len(item["table"]["table"][0]) + "|")
        paragraphs = [
            told["text"]
            for told in item["paragraphs"]
            if not lacks or not (str(told["order"]) in one["rel_paragraphs"] or answer in told["text"])
        ]
        parts = paragraphs if lacks and from_table else [*paragraphs, "\n".join(rows)]
        if parts:
            yield KnownQuestion(
                "tatqa", one["uid"][:12], one["question"], {"report.md": "\n\n".join(parts) + "\n"}, (answer,),
                item["table"]["uid"], not lacks,
            )  # fmt: skip


def load_xquad(data: Path) -> Iterable[KnownQuestion]:
    """Two questions a paragraph, over all paragraphs of its article or over the others."""
    articles = json.loads((data / "train/xquad/en.json").read_text(encoding="utf-8"))["data"]
    for number, article in enumerate(articles):
        texts = [one["context"] for one in article["paragraphs"]]
        for place, one in enumerate(article["paragraphs"]):
            for at, asked in enumerate(sorted(one["qas"], key=lambda asked: _hash(asked["id"]))[:2]):
                lacks = _lacks_answer(2 * place + at + number)
                documents = {f"{n}.txt": text for n, text in enumerate(texts) if not (lacks and n == place)}
                answers = tuple(answer["text"] for answer in asked["answers"])
                if lacks and any(contains_answer(text, answers) for text in documents.values()):
                    continue
                yield KnownQuestion("xquad", asked["id"], asked["question"], documents, answers, str(number), not lacks)


def load_filings(data: Path) -> Iterable[KnownQuestion]:
    """Those whose answer has figures: any of them will do."""
    for row in load_rows(data / "sec-10q/questions.jsonl"):
        figures = extract_figures(re.sub(r"SOURCE.*", "", row["Answer"], flags=re.S))
        if figures:
            name = _hash(row["Question"])[:12]
            told = tuple(f"{value:.12g}" for value in sorted(figures))
            yield KnownQuestion("sec-10q", name, row["Question"], data / "sec-10q/docs", told, name)


LOADERS = {
    "hotpotqa": load_hotpotqa,
    "ramdocs": load_ramdocs,
    "tatqa": load_tatqa,
    "xquad": load_xquad,
    "sec-10q": load_filings,
}
FEWER = {"sec-10q": 16}  # a question over twelve filings takes as long as ten others


def load_questions(data: Path, most: int = SAMPLE) -> list[KnownQuestion]:
    questions = []
    for name, load in LOADERS.items():
        found = sorted(load(data), key=lambda one: _hash(one.id))
        questions += found[: min(most, FEWER.get(name, most))]
    return questions


# Whether what a report shows first is right.


def contains_answer(text: str, answers: Iterable[str]) -> bool:
    """Whether a text has the words of an answer or, of a figure, its value, whatever its scale and sign."""
    told = f" {normalise_text(text)} "
    values = [abs(float(found.value)) for found in find_quantities(text)]
    offered = [value / scale for value in values for scale in (1, 1e3, 1e6, 1e9)]
    for answer in answers:
        bare = re.sub(r"[$€£%,\s()]", "", answer)
        if not re.fullmatch(r"-?\d+(?:\.\d+)?", bare):
            if f" {normalise_text(answer)} " in told:
                return True
            continue
        wanted = abs(float(bare))
        near = ROUNDING * max(1.0, wanted) if wanted % 1 else 0.0
        if any(abs(value - wanted) <= near for value in offered) or re.search(rf"(?<![\d.,]){bare}(?![\d.,]\d)", text):
            return True
    return False


class Outcome(NamedTuple):
    """What a report says of one question. Without signs it gives no answer."""

    set: str
    id: str
    half: int
    answerable: bool
    right: bool
    level: str
    score: float
    signs: LeadSigns | None


def find_report_lead(report: Report, state: Mapping[str, Any]) -> Lead | None:
    """What it shows first, unless it says that none of what was asked could be answered."""
    drafted = Draft.model_validate(state["draft"]).answers if state["draft"] else ()
    pairs = zip(drafted, report.answers, strict=False)
    asserted = [answer for answer, shown in pairs if not shown.disputed]
    claims = {one["id"]: Claim.model_validate(one) for one in state["claims"]}
    asked = len(report.plan.questions) if report.plan else 0
    if not asserted and len(report.not_found) == asked:
        return None
    return find_lead(report.sections, asserted, claims)


def judge_report(question: KnownQuestion, report: Report, state: Mapping[str, Any], scorer: SupportScorer) -> Outcome:
    lead = find_report_lead(report, state)
    signs = None
    if lead is None:
        right = not question.answerable
    else:
        right = question.answerable and contains_answer(lead.text, question.answers)
        sources = {card.document: card for card in report.sources}
        pairs = [(lead.as_answer_to(question.text), passage) for passage in lead.list_passages(sources)]
        borne_out = max(one.supported for one in scorer.scores(pairs))
        signs = describe_lead(question.text, lead, sources, borne_out)
    return Outcome(
        question.set, question.id, question.half, question.answerable, right, report.confidence,
        report.confidence_score, signs,
    )  # fmt: skip


async def ask_question(engine: Engine, question: KnownQuestion, folder: Path) -> tuple[Report, dict[str, Any]]:
    if isinstance(question.documents, Path):
        folder = question.documents
    else:
        folder.mkdir()
        for name, text in question.documents.items():
            (folder / name).write_text(text, encoding="utf-8")
    run = await engine.start(question.text, ResearchOptions(docs=(str(folder),), depth=Depth.QUICK))
    outcome = await engine.wait(run.id)
    if outcome.report is None:
        raise ReasoningError(f"no report on {question.text!r}: {outcome.run.error}")
    return outcome.report, await engine.state(run.thread)


async def ask_questions(questions: Sequence[KnownQuestion]) -> AsyncIterator[Outcome]:
    scorer = CrossEncoderScorer(CrossEncoder())
    with tempfile.TemporaryDirectory() as home:
        async with open_offline_engine(Path(home) / "data") as engine:
            for number, question in enumerate(questions):
                try:
                    report, state = await ask_question(engine, question, Path(home) / f"documents-{number}")
                except PathError:  # one of ramdocs has a single document, which is no text
                    continue
                yield judge_report(question, report, state, scorer)
