"""A report as one Markdown file: answers, prose with marks and citations, figures, then what all of it rests on.

A dialect says what is markup, how a source is cited, and what can be led to; the rest is the same in all of them.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, ClassVar

import yaml

from openassay.export.citations import build_bibliography, to_csl_items
from openassay.export.common import (
    LEGEND,
    SHOWN,
    describe_quality,
    describe_source,
    ends_body,
    format_searches,
    format_support,
    get_web_address,
    split_paragraphs,
    to_printable,
)
from openassay.models.report import (
    ArtifactTable,
    Cell,
    Column,
    Dispute,
    DisputeSide,
    KeyFigure,
    OpenSubQuestion,
    ReportClaim,
    ReportData,
    ReportStatus,
    Section,
    Sentence,
    ShortAnswer,
    SourceCard,
)

# What stands before the text of a Markdown file, between two lines of dashes: YAML for programs.


def format_front_matter(fields: Mapping[str, Any]) -> str:
    """Fields of which there is nothing are left out."""
    told = {name: value for name, value in fields.items() if value not in (None, "", [], {})}
    return f"---\n{yaml.safe_dump(told, allow_unicode=True, sort_keys=False, width=10_000)}---\n\n"


def parse_day(moment: str) -> date | None:
    """The date of it, which YAML writes without quotes."""
    try:
        return date.fromisoformat(to_printable(moment)[:10])
    except ValueError:
        return None


def render_markdown(report: ReportData) -> str:
    return MarkdownRenderer(report).render_body()


def to_slug(id: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", id.lower()).strip("-") or "source"


class MarkdownRenderer:
    """CommonMark with the tables of GitHub."""

    special: ClassVar[re.Pattern[str]] = re.compile(r"([\\`*_\[\]<>|#~]|&(?=#?\w+;))")
    # What makes a list, or a rule, of a line.
    start: ClassVar[re.Pattern[str]] = re.compile(r"^(\d*)([-+](?=[\s-]|$)|(?<=\d)[.)](?=\s|$))")

    def __init__(self, report: ReportData) -> None:
        self.report = report

    # -- what differs -------------------------------------------------------------------------------------

    def cite(self, sources: Sequence[str]) -> str:
        return "".join(f"[[{self.escape_text(source)}]](#{to_slug(source)})" for source in sources)

    def add_anchor(self, id: str, text: str) -> str:
        """An item that citations lead to."""
        return f'<a id="{to_slug(id)}"></a>{text}'

    def add_claim_anchor(self, id: str, text: str) -> str:
        """An item that others may want to lead to."""
        return text

    def render_references(self) -> str:
        return "## References\n\n" + "\n".join(map(self._render_source, self.report.sources))

    def escape_text(self, text: str) -> str:
        """Source text is data: nothing in it may become markup."""
        return self._escape_start(self.special.sub(r"\\\1", " ".join(text.split())))

    def _escape_start(self, text: str) -> str:
        return self.start.sub(r"\1\\\2", text)

    # -- the page -----------------------------------------------------------------------------------------

    def render_body(self) -> str:
        report = self.report
        if report.status is ReportStatus.CANCELLED:  # a reply, and nothing to tell about it
            return "\n\n".join(self._render_section(section).strip() for section in report.sections) + "\n"
        parts = [f"# {self.escape_text(report.title)}", *self._render_answers(report.answers)]
        parts += [self._render_notice(section) for section in report.sections if section.role == "notice"]
        others = [section for section in report.sections if section.role != "notice"]
        parts += [part for section in others for part in self._render_section_with_data(section)]
        if report.sources:
            parts += [_render_legend(), self.render_references(), self._render_evidence()]
        return "\n\n".join([*parts, *self._render_review(), self._render_about()]) + "\n"

    def _render_answers(self, answers: Sequence[ShortAnswer]) -> Iterator[str]:
        """What is asserted first; what sources disagree on is shown apart, and no side of it first."""
        sure = [answer for answer in answers if not answer.disputed]
        disputed = [answer for answer in answers if answer.disputed]
        if sure:
            yield "\n".join(f"**Answer**: {self._render_answer(answer)}  " for answer in sure)
        if disputed:
            yield "Sources disagree: " + "; ".join(map(self._render_answer, disputed))

    def _render_answer(self, answer: ShortAnswer) -> str:
        about = f" ({self.escape_text(answer.about)})" if answer.about else ""
        mark = f" {answer.mark}" if answer.mark else ""
        return f"{self.escape_text(answer.text)}{about}{mark} {self.cite(answer.citations)}".rstrip()

    def _render_section_with_data(self, section: Section) -> Iterator[str]:
        """The section, and what is known about it beyond its sentences."""
        report = self.report
        yield self._render_section(section, report.not_found if section.role == "not_found" else ())
        if section.role == "disagreements" and (open_ones := [d for d in report.disputes if not d.resolved]):
            yield self._render_disputes(open_ones)
        if report.figures and ends_body(section, report):
            yield self._render_figures(report.figures)

    def _render_notice(self, section: Section) -> str:
        """Shown as a quotation, so that it stands out."""
        lines = [f"**{self.escape_text(section.title)}**"] if section.title else []
        return "\n>\n".join(f"> {line}" for line in (*lines, *map(self._render_sentence, section.sentences)))

    def _render_section(self, section: Section, missing: Sequence[OpenSubQuestion] = ()) -> str:
        heading = f"## {self.escape_text(section.title)}\n\n" if section.title else ""
        return heading + "\n\n".join(
            self._escape_start(" ".join([*map(self._render_sentence, part), *self._render_searches(part, missing)]))
            for part in split_paragraphs(section.sentences)
        )

    def _render_searches(self, part: Sequence[Sentence], missing: Sequence[OpenSubQuestion]) -> Iterator[str]:
        """Beside a question nobody answered, what was done to find an answer."""
        for item in missing:
            if any(sentence.kind == "frame" and f"“{item.question}”" in sentence.text for sentence in part):
                yield f"Searched for: {format_searches(item, self.escape_text)}"

    def _render_sentence(self, sentence: Sentence) -> str:
        if sentence.kind == "frame":
            return self.escape_text(sentence.text)
        return f"{self.escape_text(sentence.text)} {sentence.mark} {self.cite(sentence.citations)}"

    # -- tables and lists ---------------------------------------------------------------------------------

    def _render_figures(self, figures: Sequence[KeyFigure]) -> str:
        rows = "\n".join(map(self._render_figure, figures))
        return f"## Key figures\n\n| What | Value | When | Source |\n|---|---|---|---|\n{rows}"

    def _render_figure(self, figure: KeyFigure) -> str:
        disputed = " (disputed)" if figure.disputed else ""
        source = f"{figure.mark or ''} {self.cite(figure.citations)}".strip()
        value = f"{self.escape_text(figure.value)}{disputed}"
        return f"| {self.escape_text(figure.what)} | {value} | {self.escape_text(figure.when)} | {source} |"

    def _render_disputes(self, disputes: Sequence[Dispute]) -> str:
        cards = {card.id: card for card in self.report.sources}
        return "\n".join(
            self._render_side(side, f"Point {number}, view {at}" if len(disputes) > 1 else f"View {at}", cards)
            for number, dispute in enumerate(disputes, 1)
            for at, side in enumerate(dispute.sides, 1)
        )

    def _render_side(self, side: DisputeSide, name: str, cards: dict[str, SourceCard]) -> str:
        titles = [f"{self.escape_text(cards[id].title)} {self.cite([id])}" for id in side.sources if id in cards]
        more = f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
        return f"- {name}: {format_support(side)}: {'; '.join(titles[:SHOWN])}{more}"

    def _render_source(self, card: SourceCard) -> str:
        by = [self.escape_text(part) for part in (card.author, card.host) if part]
        facts = ", ".join(map(self.escape_text, describe_source(card)))
        reasons = self.escape_text("; ".join(card.credibility_reasons))
        named = ", ".join([self.escape_text(card.title), *by])
        line = self.add_anchor(
            card.id, f"**{self.escape_text(card.id)}** {named} ({facts}) · {_format_address(card.url)}"
        )
        return f"- {line}" + (f"\n  - Credibility: {reasons}" if reasons else "")

    def _render_evidence(self) -> str:
        sections = self.report.sections
        published = {name for section in sections for sentence in section.sentences for name in sentence.claims}
        return "## Evidence\n\n" + "\n\n".join(
            self._render_claim(one) for one in self.report.claims if one.id in published
        )

    def _render_claim(self, claim: ReportClaim) -> str:
        spans = "\n".join(
            f"  - {self.escape_text(span.source)}, characters "
            f"{span.start}-{span.end} of `{_shorten_hash(span.document)}`: "
            f"“{self.escape_text(span.quote)}”"
            for span in claim.spans
        )
        disputed = f" (disputed by {', '.join(map(self.escape_text, claim.disputed_by))})" if claim.disputed_by else ""
        line = f"**{self.escape_text(claim.id)}** {claim.mark} confidence {claim.confidence:.2f}{disputed}"
        return f"- {self.add_claim_anchor(claim.id, line)}\n{spans}"

    def _render_review(self) -> Iterator[str]:
        """What a reviewer thought of it, and what went wrong on the way."""
        review = self.report.review
        if review is not None and review.scores:
            rows = "\n".join(f"| {self.escape_text(name)} | {score:.1f} |" for name, score in review.scores.items())
            rows += (
                f"\n| all | {review.score:.1f} |\n| improvement potential | {review.improvement_potential:.2f} of 1 |"
            )
            yield f"## Review\n\n| Criterion | of 10 |\n|---|---|\n{rows}"
            if review.issues:
                yield "\n".join(
                    f"- {issue.severity}, {self.escape_text(issue.location)}: {self.escape_text(issue.description)}"
                    for issue in review.issues
                )
        if self.report.errors:
            yield "## What went wrong\n\n" + "\n".join(f"- {self.escape_text(error)}" for error in self.report.errors)

    def _render_about(self) -> str:
        table = "\n".join(
            f"| {name} | {self.escape_text(value)} |" for name, value in describe_quality(self.report).items()
        )
        notices = "".join(f"\n\n> {self.escape_text(notice)}" for notice in self.report.notices)
        return f"## About this report\n\n| | |\n|---|---|\n{table}{notices}"


def _render_legend() -> str:
    return "*" + " · ".join(f"{mark} {meaning}" for mark, meaning in LEGEND.items()) + "*"


def _shorten_hash(hash: str) -> str:
    return re.sub(r"\W+", "", hash)[:12]


def _format_address(url: str) -> str:
    """A link only where it can do nothing but open a page."""
    address = re.sub(r"[\s<>`]", lambda match: f"%{ord(match.group()):02X}", url)
    return f"<{address}>" if re.match(r"(?:https?|file|demo):", address) else f"`{address}`"


# A report as a note for an Obsidian vault: properties, tags, and links that stay in the note.


def render_obsidian(report: ReportData) -> str:
    """A source that is no page of the web goes by its title."""
    about = {
        "title": to_printable(report.title),
        "aliases": [to_printable(report.title)],
        "question": to_printable(report.question),
        "date": parse_day(report.metadata.finished),
        "status": str(report.status),
        "confidence": report.confidence,
        "confidence_score": round(report.confidence_score, 2),
        "thread": to_printable(report.provenance.thread),
        "tags": [
            "openassay",
            f"openassay/{report.status}".replace("_", "-"),
            f"openassay/confidence-{report.confidence}",
        ],
        "sources": [to_printable(get_web_address(card) or card.title) for card in report.sources],
    }
    return format_front_matter(about) + _ObsidianRenderer(report).render_body()


class _ObsidianRenderer(MarkdownRenderer):
    """Marked in Obsidian besides: ==this==, %%this%%, $this$, and ^this where it ends a line. A source has a block id,
    such as ^s1, and a statement ^c1, so that other notes can lead to them."""

    special = re.compile(r"([\\`*_\[\]<>|#~$%=^]|&(?=#?\w+;))")

    def cite(self, sources: Sequence[str]) -> str:
        return " ".join(rf"[\[{self.escape_text(source)}\]](#^{to_slug(source)})" for source in sources)

    def add_anchor(self, id: str, text: str) -> str:
        return f"{text} ^{to_slug(id)}"

    def add_claim_anchor(self, id: str, text: str) -> str:
        return self.add_anchor(id, text)


# A report as a Quarto document: sources are cited by their keys, and `quarto render` makes the bibliography.

_AS_IT_IS = frozenset({"id", "type"})


def render_quarto(report: ReportData) -> str:
    """Pandoc reads the strings of front matter as Markdown, so they are written as such. Nothing in it is ever run:
    with `engine: markdown` there is nobody to run it."""
    page = _QuartoRenderer(report)
    about = {
        "title": page.escape_text(report.title),
        "date": parse_day(report.metadata.finished),
        "lang": "en",
        "engine": "markdown",
        "from": "markdown-smart",  # words of a source stay as they are, -- and ... too
        "format": {"html": {"toc": True, "embed-resources": True}, "pdf": {"toc": True}, "docx": {"toc": True}},
        "link-citations": True,
        "references": [_escape_values(item, page) for item in to_csl_items(report)],
    }
    return format_front_matter(about) + page.render_body()


def _escape_values(value: Any, page: "_QuartoRenderer", field: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _escape_values(held, page, name) for name, held in value.items()}
    if isinstance(value, list):
        return [_escape_values(held, page) for held in value]
    return page.escape_text(value) if isinstance(value, str) and field not in _AS_IT_IS else value


class _QuartoRenderer(MarkdownRenderer):
    """Pandoc's Markdown: there is little that is not markup somewhere."""

    special = re.compile(r"([\\`*_{}\[\]<>|#~^$@:=%&!])")
    start = re.compile(r"^(\(?\w{0,9})([-+.)])(?=[\s-]|$)")  # letters and Roman numbers begin lists, too

    def __init__(self, report: ReportData) -> None:
        super().__init__(report)
        self.keys = {work.id: work.key for work in build_bibliography(report)}

    def render_body(self) -> str:
        """Its title is in the front matter."""
        head, _, rest = super().render_body().partition("\n\n")
        return rest if head.startswith("# ") else f"{head}\n\n{rest}"

    def cite(self, sources: Sequence[str]) -> str:
        known = [f"@{self.keys[source]}" for source in sources if source in self.keys]
        return f"[{'; '.join(known)}]" if known else ""

    def add_anchor(self, id: str, text: str) -> str:
        return f"{text} {self.cite([id])}"

    def render_references(self) -> str:
        sources = super().render_references().replace("## References", "## Sources", 1)
        return f"{sources}\n\n## References\n\n::: {{#refs}}\n:::"


# Tables of a report, and a table as text: for spreadsheets, and for people.

# What a spreadsheet takes for a formula, also in wide characters; a plain number is none.
_FORMULA = re.compile(r"\s*[=+\-@\t\r＝＋－＠]")
_NUMBER = re.compile(r"[-+]?\d[\d.,]*%?")


def build_claims_table(report: ReportData) -> ArtifactTable:
    """A matrix: a row for each statement, a column for each source."""
    cards = [card.id for card in report.sources]
    fixed = "id: Id, statement: Statement, verdict: Verdict, mark: Mark, confidence: Confidence"
    rows = [
        (
            one.id,
            one.text,
            one.verdict,
            one.mark,
            round(one.confidence, 2),
            *(_describe_stance(one, card) for card in cards),
        )
        for one in report.claims
    ]
    return build_table(", ".join([fixed, *(f"{card}: {card}" for card in cards)]), rows)


def _describe_stance(claim: ReportClaim, source: str) -> str:
    if any(span.source == source for span in claim.against):
        return "against"
    return "for" if any(span.source == source for span in claim.spans) else ""


def build_table(columns: str, rows: Iterable[tuple[Cell, ...]]) -> ArtifactTable:
    named = (column.split(": ") for column in columns.split(", "))
    return ArtifactTable(columns=tuple(Column(key=key, title=title) for key, title in named), rows=tuple(rows))


def as_csv(table: ArtifactTable) -> str:
    """RFC 4180; a cell that a spreadsheet would calculate is marked as text by an apostrophe."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow([_escape_formula(column.title) for column in table.columns])
    writer.writerows([_escape_formula(_format_cell(cell)) for cell in row] for row in table.rows)
    return file.getvalue()


def as_markdown(table: ArtifactTable) -> str:
    lines = [[column.title for column in table.columns], ["---"] * len(table.columns)]
    shown = ["| " + " | ".join(map(_escape_markdown, lines[0])) + " |", "|" + "|".join(lines[1]) + "|"]
    shown += ["| " + " | ".join(_escape_markdown(_format_cell(cell)) for cell in row) + " |" for row in table.rows]
    return "\n".join(shown) + "\n"


def _format_cell(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return "" if cell is None else str(cell)


def _escape_formula(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(text.split()))
