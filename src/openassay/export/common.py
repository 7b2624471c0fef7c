"""What every rendering of a report shows: paragraphs, the legend, who stands behind what, how it was made."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

from openassay.models.evidence import Mark
from openassay.models.report import Basis, DisputeSide, OpenSubQuestion, ReportData, Section, Sentence, SourceCard

LEGEND = {
    Mark.CORROBORATED: "two or more independent sources agree",
    Mark.VERIFIED: "one credible source",
    Mark.SINGLE: "one source only",
}
SHOWN = 4  # titles behind one side of a dispute
HEAPED = 5  # marks above and below one letter; no script has more
# What no page can show, XML may not hold, or turns the text around it: controls, halves of characters, directions.
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\ufeff]"
)
_BASES: dict[Basis, str] = {
    "report": "a finished report",
    "draft": "the last draft, which was not finished",
    "analysis": "verified statements; no draft was finished",
    "results": "what was found; nothing was verified in time",
    "nothing": "nothing usable was found",
}


def split_paragraphs(sentences: Sequence[Sentence]) -> Iterator[list[Sentence]]:
    part: list[Sentence] = []
    for sentence in sentences:
        if sentence.opens and part:
            yield part
            part = []
        part.append(sentence)
    if part:
        yield part


def ends_body(section: Section, report: ReportData) -> bool:
    """Whether the table of figures comes next: after the last section of the body, else after the first of all."""
    bodies = [own for own in report.sections if own.role == "body"]
    return section is (bodies[-1] if bodies else report.sections[0])


def to_printable(text: str) -> str:
    """One line that can be set on paper."""
    line = " ".join(_UNPRINTABLE.sub("", " ".join(text.split())).split())
    return line if line.isascii() else "".join(_limit_accents(line))


def _limit_accents(text: str) -> Iterator[str]:
    """Without marks that are heaped on a letter until they cover the lines around it."""
    heaped = 0
    for character in text:
        heaped = heaped + 1 if unicodedata.category(character) == "Mn" else 0
        if heaped <= HEAPED:
            yield character


def get_web_address(card: SourceCard) -> str:
    """Where a page of the web is; empty for all else, whatever it calls itself."""
    return card.url if card.url.startswith(("https://", "http://")) else ""


def describe_source(card: SourceCard) -> list[str]:
    """What it is, how old, and how much it can be relied on."""
    return [
        card.kind,
        "primary" if card.primary else "secondary",
        card.published or "undated",
        f"independent group {card.group}",
        f"credibility {card.credibility:.2f}",
    ]


def format_support(side: DisputeSide) -> str:
    """How many stand behind it; copies of one text count once."""
    count = len(side.groups)
    return f"{count} independent source{'s' * (count != 1)}"


def format_searches(missing: OpenSubQuestion, shown: Callable[[str], str]) -> str:
    """What was done to find an answer."""
    queries = ", ".join(f"“{shown(query)}”" for query in missing.queries) or "nothing"
    read = f"{missing.documents} document{'s' * (missing.documents != 1)} read for it"
    return f"{queries}; {read}{f'; {shown(missing.reason)}' if missing.reason else ''}."


def describe_quality(report: ReportData) -> dict[str, str]:
    """How sure it is and how it was made, always."""
    data, made = report.metadata, report.provenance
    return {
        "Status": report.status,
        "Confidence": f"{report.confidence} ({report.confidence_score:.2f})",
        "Made of": _BASES[report.basis],
        "Statements checked": f"{report.coverage.checked} of {report.coverage.total}",
        "Hallucination score": f"{report.hallucination_score:.2f}",
        "Review": f"{data.score:.1f} of 10 after {data.iterations} draft{'s' * (data.iterations != 1)}",
        "Sources": f"{data.sources} in {len({card.group for card in report.sources})} independent groups",
        "Research": f"{len(made.sub_questions)} sub-questions, {len(made.queries)} queries, {data.rounds} rounds",
        "Words": str(data.words),
        "Reasoning": ", ".join(f"{who} ({steps} steps)" for who, steps in data.reasoning.items()) or "embedded",
        "Spent": f"${report.spend.usd:.4f}, {report.spend.tokens:,} tokens, {report.spend.requests:,} requests",
        "Finished": f"{data.finished} in {data.seconds:.1f} s",
        "Thread": f"{made.thread} (run {made.run}, settings {data.settings}, OpenAssay {data.version})",
    }
