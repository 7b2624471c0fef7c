"""Citation: every statement has a passage, references are complete, and more than one voice is heard."""

import re
from collections.abc import Iterator

from assay.model.claim import Mark
from assay.reasoning.embedded.reviewing.case import Case, Fault, fault, short

UNCONFIRMED = 1.0  # points where no statement is confirmed by a second source
SEVERAL = 3  # statements a section has before one source is little for it
MOST_NAMED = 2

_MARKS = re.compile(r"\[\d{1,3}(?:\s*[,–-]\s*\d{1,3})*\]|\((?:see )?(?:fig|table|eq|ref)s?\. ?\d+\)", re.I)


def citation(case: Case) -> Iterator[Fault]:
    yield from _unbound(case)
    yield from _unconfirmed(case)
    yield from _one_voice(case)
    yield from _incomplete(case)
    marked = [fact for fact in case.statements if _MARKS.search(fact.text)]
    if marked:
        yield fault("citation", "minor", marked[0].place,
                    f"{len(marked)} statements carry reference marks of their source: {short(marked[0].text)}",
                    "drop the marks", 0.5)  # fmt: skip


def _unbound(case: Case) -> Iterator[Fault]:
    known = {source.document for source in case.request.sources}
    for fact in case.facts:
        spans = [span for claim in fact.claims if claim for span in claim.spans]
        if not spans:
            yield fault("citation", "critical", fact.place, f"no span: {short(fact.text)}", "drop the sentence")
        elif known and any(span.document not in known for span in spans):
            yield fault("citation", "critical", fact.place, f"cites what was never read: {short(fact.text)}",
                        "drop the sentence")  # fmt: skip


def _unconfirmed(case: Case) -> Iterator[Fault]:
    sure, total = case.share(Mark.CORROBORATED), len(case.statements)
    if case.facts and sure < 1:
        yield fault("citation", "suggestion", "whole report",
                    f"{round(sure * total)} of {total} statements are confirmed by a second, independent source",
                    cost=UNCONFIRMED * (1 - sure))  # fmt: skip


def _one_voice(case: Case) -> Iterator[Fault]:
    """Sections on a single independent source, where the report has several."""
    if len({source.group for source in case.cited}) < 2:
        return
    named = 0
    for place in dict.fromkeys(fact.place for fact in case.facts if fact.role == "body"):
        facts = [fact for fact in case.facts if fact.place == place]
        if len(facts) >= SEVERAL and len({source.group for fact in facts for source in fact.sources}) == 1:
            named += 1
            yield fault("citation", "suggestion", place, "the section rests on one independent source",
                        "add what others say")  # fmt: skip
        if named == MOST_NAMED:
            return


def _incomplete(case: Case) -> Iterator[Fault]:
    bare = [source for source in case.cited if not source.title.strip() or not source.url.strip()]
    if bare:
        yield fault("citation", "minor", "sources",
                    f"{len(bare)} references lack a title or an address: {', '.join(source.id for source in bare[:5])}",
                    "complete the reference")  # fmt: skip
