"""Renders a report as Markdown: answers, prose with marks and citations, figures, then what all of it rests on.

A dialect (plain, Obsidian, Quarto) says what is markup, how a source is cited, and what can be linked to.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, ClassVar

import yaml

from openassay.export import layout
from openassay.export.citations import build_bibliography, to_csl_items
from openassay.models.report import ReportData, ReportStatus, Section, Sentence, ShortAnswer

_NO_WORD = re.compile(r"\W+")


def render_markdown(report: ReportData) -> str:
    """Render CommonMark with the tables of GitHub."""
    return MarkdownRenderer(report).render_body()


def render_obsidian(report: ReportData) -> str:
    """Render a note for an Obsidian vault: properties, tags, and links that stay in the note."""
    properties = {
        "title": layout.to_printable(report.title),
        "aliases": [layout.to_printable(report.title)],
        "question": layout.to_printable(report.question),
        "date": _parse_day(report.metadata.finished),
        "status": str(report.status),
        "confidence": report.confidence,
        "confidence_score": round(report.confidence_score, 2),
        "thread": layout.to_printable(report.provenance.thread),
        "tags": [
            "openassay",
            f"openassay/{report.status}".replace("_", "-"),
            f"openassay/confidence-{report.confidence}",
        ],
        "sources": [layout.to_printable(layout.get_web_address(card) or card.title) for card in report.sources],
    }
    return _format_front_matter(properties) + ObsidianRenderer(report).render_body()


def render_quarto(report: ReportData) -> str:
    """Render a Quarto document: sources are cited by their keys, and `quarto render` makes the bibliography.

    Pandoc reads the strings of front matter as Markdown, so they are escaped. `engine: markdown` runs no code.
    """
    renderer = QuartoRenderer(report)
    fields = {
        "title": renderer.escape(report.title),
        "date": _parse_day(report.metadata.finished),
        "lang": "en",
        "engine": "markdown",
        "from": "markdown-smart",  # words of a source stay as they are, -- and ... too
        "format": {"html": {"toc": True, "embed-resources": True}, "pdf": {"toc": True}, "docx": {"toc": True}},
        "link-citations": True,
        "references": [renderer.escape_values(item) for item in to_csl_items(report)],
    }
    return _format_front_matter(fields) + renderer.render_body()


def _format_front_matter(fields: Mapping[str, Any]) -> str:
    """Write the YAML that stands before the text; empty fields are left out."""
    present = {name: value for name, value in fields.items() if value not in (None, "", [], {})}
    return f"---\n{yaml.safe_dump(present, allow_unicode=True, sort_keys=False, width=10_000)}---\n\n"


def _parse_day(moment: str) -> date | None:
    """Return a date, which YAML writes without quotes."""
    try:
        return date.fromisoformat(layout.to_printable(moment)[:10])
    except ValueError:
        return None


def to_slug(id: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", id.lower()).strip("-") or "source"


class MarkdownRenderer(layout.ReportLayout):
    """Renders CommonMark with the tables of GitHub; other dialects override the first few methods."""

    special: ClassVar[re.Pattern[str]] = re.compile(r"([\\`*_\[\]<>|#~]|&(?=#?\w+;))")
    # What makes a list, or a rule, of a line.
    line_start: ClassVar[re.Pattern[str]] = re.compile(r"^(\d*)([-+](?=[\s-]|$)|(?<=\d)[.)](?=\s|$))")

    def cite(self, sources: Sequence[str]) -> str:
        """Link to the references of these sources."""
        return "".join(f"[[{self.escape(source)}]](#{to_slug(source)})" for source in sources)

    def add_source_anchor(self, id: str, text: str) -> str:
        """Make a reference something that citations link to."""
        return f'<a id="{to_slug(id)}"></a>{text}'

    def add_claim_anchor(self, id: str, text: str) -> str:
        """Make a statement something that other notes may link to, where the dialect can."""
        return text

    def escape(self, text: str) -> str:
        """Return one line in which nothing is markup: the text of sources is data."""
        return self.line_start.sub(r"\1\\\2", self.special.sub(r"\\\1", " ".join(text.split())))

    def render_body(self) -> str:
        report = self.report
        if report.status is ReportStatus.CANCELLED:  # a short reply, with nothing to say about how it was made
            return "\n\n".join(self._render_section(section).strip() for section in report.sections) + "\n"
        parts = [f"# {self.escape(report.title)}"]
        if self.answers:
            parts.append("\n".join(f"**Answer**: {self._render_answer(answer)}  " for answer in self.answers))
        if self.disputed:
            parts.append("Sources disagree: " + "; ".join(map(self._render_answer, self.disputed)))
        for section in self.sections:
            if section.role == "notice":  # shown as a quotation, so that it stands out
                lines = [f"**{self.escape(section.title)}**"] if section.title else []
                lines += map(self._render_sentence, section.sentences)
                parts.append("\n>\n".join(f"> {line}" for line in lines))
                continue
            parts.append(self._render_section(section))
            if section.role == "disagreements":
                lines = []
                for label, sources, others in self.list_dispute_sides():
                    titles = "; ".join(f"{self.escape(card.title)} {self.cite([card.id])}" for card in sources)
                    lines.append(f"- {label}{titles}{others}")
                parts += ["\n".join(lines)] if lines else []
            if self.shows_figures(section):
                parts.append(self._render_figures())
        if report.sources:
            legend = " · ".join(f"{mark} {meaning}" for mark, meaning in layout.explain_signs(self.report))
            parts += [f"*{legend}*", self.render_references(), self._render_evidence()]
        parts += self._render_review()
        rows = "\n".join(f"| {name} | {self.escape(value)} |" for name, value in self.describe_quality().items())
        parts.append(f"## About this report\n\n| | |\n|---|---|\n{rows}")
        parts += [f"> {self.escape(notice)}" for notice in report.notices]
        return "\n\n".join(parts) + "\n"

    def _render_answer(self, answer: ShortAnswer) -> str:
        about = f" ({self.escape(answer.about)})" if answer.about else ""
        mark = f" {answer.mark}" if answer.mark else ""
        return f"{self.escape(answer.text)}{about}{mark} {self.cite(answer.citations)}".rstrip()

    def _render_section(self, section: Section) -> str:
        blocks = []
        for block in layout.split_blocks(section.sentences):
            match block:
                case layout.Paragraph(sentences):
                    blocks.append(self._render_line(sentences, self.list_searches(sentences, section)))
                case layout.BulletList(items):
                    blocks.append("\n".join(f"- {self._render_line(item)}" for item in items))
                case layout.SentenceTable():
                    blocks.append(self._render_table(block))
        heading = f"## {self.escape(section.title)}\n\n" if section.title else ""
        return heading + "\n\n".join(blocks)

    def _render_line(self, sentences: Sequence[Sentence], others: Iterable[str] = ()) -> str:
        return self.line_start.sub(r"\1\\\2", " ".join([*map(self._render_sentence, sentences), *others]))

    def _render_table(self, table: layout.SentenceTable) -> str:
        lines = [[*map(self.escape, table.titles)], ["---"] * len(table.titles)]
        for name, row in table.rows.items():
            lines.append([self.escape(name), *("; ".join(map(self._render_sentence, cell)) for cell in row)])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _render_sentence(self, sentence: Sentence) -> str:
        text = self._render_text(sentence)
        if sentence.kind == "frame":
            return text
        follows = "∴ " if sentence.kind == "synthesis" else ""
        return f"{text} {follows}{sentence.mark} {self.cite(sentence.visible_citations)}".rstrip()

    def _render_text(self, sentence: Sentence) -> str:
        lead, rest = sentence.split_lead()
        if not lead or rest[:1].isalnum():  # asterisks between a sign and a word would be read as asterisks
            return self.escape(sentence.visible_text)
        space = " " if rest[:1].isspace() else ""
        return f"**{self.escape(lead)}**{space}{self.escape(rest)}"

    def _render_figures(self) -> str:
        rows = [layout.FIGURE_COLUMNS]
        for figure in self.report.figures:
            value = f"{self.escape(figure.value)}{' (disputed)' * figure.disputed}"
            source = f"{figure.mark or ''} {self.cite(figure.citations)}".strip()
            rows.append((self.escape(figure.what), value, self.escape(figure.when), source))
        head, *lines = (f"| {' | '.join(row)} |" for row in rows)
        return "\n".join(["## Key figures", "", head, "|---|---|---|---|", *lines])

    def render_references(self) -> str:
        """List the sources, each with what its credibility rests on."""
        lines = []
        for card in self.report.sources:
            named = ", ".join(map(self.escape, [card.title, *filter(None, (card.author, card.place))]))
            facts = ", ".join(map(self.escape, layout.describe_source(card)))
            address = re.sub(r"[\s<>`]", lambda match: f"%{ord(match.group()):02X}", card.url)
            # A link only where it can do nothing but open a page.
            address = f"<{address}>" if re.match(r"(?:https?|file|demo):", address) else f"`{address}`"
            line = f"**{self.escape(card.id)}** {named} ({facts}) · {address}"
            lines.append(f"- {self.add_source_anchor(card.id, line)}")
            if reasons := self.escape("; ".join(card.credibility_reasons)):
                lines.append(f"  - Credibility: {reasons}")
        return "## References\n\n" + "\n".join(lines)

    def _render_evidence(self) -> str:
        """List the passages behind the statements that stand in the report."""
        sections = self.report.sections
        published = {name for section in sections for sentence in section.sentences for name in sentence.claims}
        items = []
        for claim in self.report.claims:
            if claim.id not in published:
                continue
            opponents = ", ".join(map(self.escape, claim.disputed_by))
            disputed = f" (disputed by {opponents})" if claim.disputed_by else ""
            line = f"**{self.escape(claim.id)}** {claim.mark} confidence {claim.confidence:.2f}{disputed}"
            passages = "\n".join(
                f"  - {self.escape(span.source)}, characters {span.start}-{span.end} of "
                f"`{_NO_WORD.sub('', span.document)[:12]}`: “{self.escape(span.quote)}”"
                for span in claim.spans
            )
            passages += "".join(
                f"\n  - {self.escape(item.source)}, {item.field}: {self.escape(item.value)}" for item in claim.context
            )
            items.append(f"- {self.add_claim_anchor(claim.id, line)}\n{passages}")
        return "## Evidence\n\n" + "\n\n".join(items)

    def _render_review(self) -> Iterator[str]:
        """Render what a reviewer thought of the report, and what went wrong on the way."""
        if scores := self.list_scores():
            rows = "\n".join(f"| {self.escape(name)} | {score.removesuffix(' of 10')} |" for name, score in scores)
            yield f"## Review\n\n| Criterion | of 10 |\n|---|---|\n{rows}"
        if self.issues:
            yield "\n".join(
                f"- {issue.severity}, {self.escape(issue.location)}: {self.escape(issue.description)}"
                for issue in self.issues
            )
        if self.report.errors:
            yield "## What went wrong\n\n" + "\n".join(f"- {self.escape(error)}" for error in self.report.errors)


class ObsidianRenderer(MarkdownRenderer):
    """Renders Obsidian's dialect, where ==this==, %%this%%, $this$, and ^this at the end of a line are markup.

    A source has a block id, such as ^s1, and a statement ^c1, so that other notes can link to them.
    """

    special = re.compile(r"([\\`*_\[\]<>|#~$%=^]|&(?=#?\w+;))")

    def cite(self, sources: Sequence[str]) -> str:
        return " ".join(rf"[\[{self.escape(source)}\]](#^{to_slug(source)})" for source in sources)

    def add_source_anchor(self, id: str, text: str) -> str:
        return f"{text} ^{to_slug(id)}"

    def add_claim_anchor(self, id: str, text: str) -> str:
        return f"{text} ^{to_slug(id)}"


class QuartoRenderer(MarkdownRenderer):
    """Renders Pandoc's Markdown, in which there is little that is not markup somewhere."""

    special = re.compile(r"([\\`*_{}\[\]<>|#~^$@:=%&!])")
    line_start = re.compile(r"^(\(?\w{0,9})([-+.)])(?=[\s-]|$)")  # letters and Roman numbers begin lists, too

    def __init__(self, report: ReportData) -> None:
        super().__init__(report)
        self.keys = {work.id: work.key for work in build_bibliography(report)}

    def render_body(self) -> str:
        """Render the report without its title, which is in the front matter."""
        head, _, rest = super().render_body().partition("\n\n")
        return rest if head.startswith("# ") else f"{head}\n\n{rest}"

    def cite(self, sources: Sequence[str]) -> str:
        keys = [f"@{self.keys[source]}" for source in sources if source in self.keys]
        return f"[{'; '.join(keys)}]" if keys else ""

    def add_source_anchor(self, id: str, text: str) -> str:
        return f"{text} {self.cite([id])}"

    def render_references(self) -> str:
        sources = super().render_references().replace("## References", "## Sources", 1)
        return f"{sources}\n\n## References\n\n::: {{#refs}}\n:::"

    def escape_values(self, value: Any, field: str = "") -> Any:
        """Escape all strings of a bibliographic item but its key and its type."""
        if isinstance(value, dict):
            return {name: self.escape_values(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self.escape_values(item) for item in value]
        return self.escape(value) if isinstance(value, str) and field not in ("id", "type") else value
