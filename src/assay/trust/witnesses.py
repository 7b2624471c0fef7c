"""Who else says so: sentences elsewhere that state the same figure for the same matter."""

from collections.abc import Iterable

from assay.model.evidence import Span
from assay.model.source import Passage
from assay.text.relations import Measure, measure, relate
from assay.text.sentences import is_statement, sentences


class Witnesses:
    """Statements of all passages read, found by their figure. One without a figure is not looked for: without
    one, only wording could tell that two sentences state the same fact."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._by_figure: dict[tuple[float, str], list[Span]] = {}
        for passage in passages:
            for piece in sentences(passage.text):
                figure = measure(piece.text) if is_statement(piece.text) else None
                if figure is not None:
                    span = Span(document=passage.document, start=passage.start + piece.start,
                                end=passage.start + piece.end, quote=piece.text)  # fmt: skip
                    self._by_figure.setdefault(_key(figure), []).append(span)

    def of(self, statement: Span) -> list[Span]:
        """One span of every other document that states the same."""
        figure = measure(statement.quote)
        if figure is None:
            return []
        found: dict[str, Span] = {}
        for span in self._by_figure.get(_key(figure), []):
            if span.document != statement.document and relate(statement.quote, span.quote) == "same":
                found.setdefault(span.document, span)
        return list(found.values())


def _key(figure: Measure) -> tuple[float, str]:
    return figure.value, figure.unit
