"""The passages behind a claim or a source, highlighted in what stands around them."""

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from rich.text import Text

from assay.cli.lines import one_line
from assay.engine import Engine
from assay.errors import NotFoundError
from assay.export.report import Report
from assay.model.report import ReportClaim, ReportSpan, SourceCard

T = TypeVar("T")
AROUND = 300  # characters of context shown on each side of a span
MOST_SHOWN = 6  # passages of one source; the others are counted


async def behind_claim(engine: Engine, report: Report, name: str) -> AsyncIterator[Text]:
    claim = _named(name, "claim", {claim.id: claim for claim in report.claims})
    titles = {card.id: card.title for card in report.sources}
    yield Text(f"{claim.text}\n{_judged(claim)}", style="bold")
    for span in claim.spans:
        head = f"\n{span.source} {one_line(titles[span.source])}, characters {span.start}-{span.end}\n"
        yield Text.assemble((head, "blue"), await _in_context(engine, span))


async def behind_source(engine: Engine, report: Report, name: str) -> AsyncIterator[Text]:
    """A source's card, and what was taken from it. S3 and 3 are the same."""
    card = _named(f"S{name}" if name.isdecimal() else name, "source", {card.id: card for card in report.sources})
    yield _card(card)
    used = [(span, claim) for claim in report.claims for span in claim.spans if span.source == card.id]
    for span, claim in used[:MOST_SHOWN]:
        yield Text.assemble((f"\n{claim.id} {claim.text}\n", "blue"), await _in_context(engine, span))
    if used[MOST_SHOWN:]:
        yield Text(f"\n… and {len(used) - MOST_SHOWN} more passages", style="dim")


def _named(name: str, kind: str, known: dict[str, T]) -> T:
    for id, found in known.items():
        if id.lower() == name.lower():
            return found
    raise NotFoundError(f"there is no {kind} {one_line(name)}", help=f"There are: {_some(known)}.")


def _some(ids: Iterable[str]) -> str:
    listed = list(ids)
    return f"{', '.join(listed[:12])}{' ...' if listed[12:] else ''}" if listed else "none, since nothing was found"


async def _in_context(engine: Engine, span: ReportSpan) -> Text:
    text = (await engine.document(span.document)).text
    before, after = text[max(0, span.start - AROUND) : span.start], text[span.end : span.end + AROUND]
    return Text.assemble((before, "dim"), (span.quote, "reverse"), (after, "dim"))


def _card(card: SourceCard) -> Text:
    facts = [card.author, card.published or "undated", card.host or card.kind, f"credibility {card.credibility:.2f}"]
    lines = [card.url, " · ".join(fact for fact in facts if fact), *card.credibility_reasons, card.why_used]
    body = "\n".join(one_line(line) for line in lines if line)
    return Text.assemble((f"{card.id} {one_line(card.title)}\n", "bold"), (body, "dim"))


def _judged(claim: ReportClaim) -> str:
    verdict = claim.verdict.value.replace("_", " ")
    return f"{verdict}, confidence {claim.confidence:.2f} {claim.mark or ''}".rstrip()
