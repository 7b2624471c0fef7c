"""Claims from findings: a source's own sentences, one fact each, are the statements; those that say the same become
one claim with all its witnesses."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from assay.model.plan import Plan
from assay.reasoning.embedded.clauses import clauses
from assay.reasoning.embedded.context import statements
from assay.reasoning.protocol import DraftClaim, Evidence
from assay.text.names import names
from assay.text.relations import same

MOST_WORDINGS = 5

_LEAD = re.compile(
    r"^(?:however|moreover|furthermore|in addition|additionally|meanwhile|nevertheless|nonetheless|by contrast|"
    r"in contrast|similarly|likewise|as a result|consequently|therefore|thus|indeed|notably|importantly|in fact|"
    r"of course|also|still|and|but|so|yet|hence|accordingly|in turn|in other words|that said|for example|for instance|"
    r"on the other hand|on the one hand|in particular|specifically|overall|in short|in sum)\b,?\s+",
    re.I,
)
# What stands ahead of a sentence and is none of it: where an agency wrote from, the label of a figure, a heading that
# the sentence repeats.
_DATELINE = re.compile(
    r"^[A-Z][\w.]*(?:[ ,]+[A-Z][\w.]*){0,4},? \((?:Reuters|AP|AFP|UPI|dpa|PTI|Bloomberg)\)\s*[-–—]+\s*"
)
_CAPTION = re.compile(
    r"^(?:(?:Fig(?:ure|\.)?|Table|Box|Chart|Photo|Image|Caption)\s*\d*[.:)]\s+|.{0,80}\[ ?edit ?\]\s+)(?=[A-Z])"
)
_HEADING = re.compile(r"^((?:[A-Z0-9][\w’'&.-]*\s){1,6})(?:\([^)]*\)\s)?(?=(?:The\s|An?\s)?\1)")
_REFERENCE = re.compile(r"\s?\[ ?(?:\d{1,3}|[a-z]|note \d+|citation needed) ?\]")
# Told from the day of writing, which a reader of the report does not see.
_DEICTIC = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|(?:last|this|next) (?:year|month|week|quarter|summer|winter|spring|autumn|"
    r"fall|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|(?:a|one|two|three|\d+) (?:years?|months?|weeks?|"
    r"days?) ago|earlier this)\b",
    re.I,
)
DEICTIC = 0.9  # of its relevance


class _Said(NamedTuple):
    text: str
    stands: bool
    item: Evidence

    @property
    def quote(self) -> str:
        return self.item.finding.span.quote


def claims(plan: Plan, evidence: Sequence[Evidence]) -> list[DraftClaim]:
    """One claim a fact, best first. What a reader could not understand alone is told only where nothing else answers
    the same sub-question."""
    known = names(f"{plan.goal} {plan.topic}")
    ordered = sorted(evidence, key=lambda item: (-item.finding.relevance, item.finding.id))
    groups: list[list[_Said]] = []
    for item in ordered:
        for said in _said(item, known):
            for group in groups:
                if same(group[0].text, said.text):
                    group.append(said)
                    break
            else:
                groups.append([said])
    answered = {said.item.finding.question for group in groups for said in group if said.stands}
    return [
        _claim(group)
        for group in groups
        if any(said.stands or said.item.finding.question not in answered for said in group)
    ]


def _said(item: Evidence, known: Sequence[str]) -> Iterator[_Said]:
    for statement in statements(_bare(item.finding.span.quote), item.title, known):
        for part in clauses(statement.text):
            yield _Said(wording(part), statement.stands, item)


def _claim(group: Sequence[_Said]) -> DraftClaim:
    """The statement as it can be told alone, and last the whole quote: should a part of it not be borne out, the
    source's own words are."""
    told = sorted(group, key=lambda said: not said.stands)
    wordings = dict.fromkeys(said.text for said in told)
    whole = wording(told[0].quote)
    relevance = group[0].item.finding.relevance
    dated = any(not _DEICTIC.search(said.text) for said in group)
    return DraftClaim(
        wordings=tuple(dict.fromkeys([*list(wordings)[: MOST_WORDINGS - 1], whole])),
        findings=tuple(dict.fromkeys(said.item.finding.id for said in group)),
        questions=tuple(dict.fromkeys(said.item.finding.question for said in group)),
        relevance=relevance if dated else round(DEICTIC * relevance, 4),
    )


def wording(quote: str) -> str:
    """A quote as a sentence of a report: one line, no heading ahead of it, no connective to a neighbour that is not
    there."""
    text = _LEAD.sub("", _bare(quote))
    first = text.split(" ", 1)[0]
    text = text[:1].upper() + text[1:] if first.islower() else text  # "the team" but not "iPad"
    return text if text.endswith((".", "!", "?", "。", "”", '"')) else f"{text}."


def _bare(quote: str) -> str:
    text = _REFERENCE.sub("", " ".join(quote.split()))
    for debris in (_DATELINE, _CAPTION, _HEADING):
        text = debris.sub("", text) or text
    return text
