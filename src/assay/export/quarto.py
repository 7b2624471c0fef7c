"""A report as a Quarto document: sources are cited by their keys, and `quarto render` makes the bibliography."""

import re
from collections.abc import Sequence
from typing import Any

from assay.export.citations import csl_items, works
from assay.export.frontmatter import day, front_matter
from assay.export.markdown import Dialect
from assay.model.report import ReportData

_AS_IT_IS = frozenset({"id", "type"})


def render(report: ReportData) -> str:
    """Pandoc reads the strings of front matter as Markdown, so they are written as such. Nothing in it is ever run:
    with `engine: markdown` there is nobody to run it."""
    page = _Page(report)
    about = {
        "title": page.plain(report.title),
        "date": day(report.metadata.finished),
        "lang": "en",
        "engine": "markdown",
        "from": "markdown-smart",  # words of a source stay as they are, -- and ... too
        "format": {"html": {"toc": True, "embed-resources": True}, "pdf": {"toc": True}, "docx": {"toc": True}},
        "link-citations": True,
        "references": [_escaped(item, page) for item in csl_items(report)],
    }
    return front_matter(about) + page.body()


def _escaped(value: Any, page: "_Page", field: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _escaped(held, page, name) for name, held in value.items()}
    if isinstance(value, list):
        return [_escaped(held, page) for held in value]
    return page.plain(value) if isinstance(value, str) and field not in _AS_IT_IS else value


class _Page(Dialect):
    """Pandoc's Markdown: there is little that is not markup somewhere."""

    special = re.compile(r"([\\`*_{}\[\]<>|#~^$@:=%&!])")
    start = re.compile(r"^(\(?\w{0,9})([-+.)])(?=[\s-]|$)")  # letters and Roman numbers begin lists, too

    def __init__(self, report: ReportData) -> None:
        super().__init__(report)
        self.keys = {work.id: work.key for work in works(report)}

    def body(self) -> str:
        """Its title is in the front matter."""
        head, _, rest = super().body().partition("\n\n")
        return rest if head.startswith("# ") else f"{head}\n\n{rest}"

    def cited(self, sources: Sequence[str]) -> str:
        known = [f"@{self.keys[source]}" for source in sources if source in self.keys]
        return f"[{'; '.join(known)}]" if known else ""

    def anchored(self, id: str, text: str) -> str:
        return f"{text} {self.cited([id])}"

    def references(self) -> str:
        sources = super().references().replace("## References", "## Sources", 1)
        return f"{sources}\n\n## References\n\n::: {{#refs}}\n:::"
