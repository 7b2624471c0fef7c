"""Coherence: a summary where one is due, parts in their order, each thing said once, and sentences that stand alone."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from assay.model.question import Depth
from assay.reasoning.embedded.reviewing.case import Case, Fact, Fault, fault, short
from assay.text.overlap import jaccard
from assay.text.words import fold

TWICE, MOST_NAMED = 0.8, 4
DUE, LONGEST_SUMMARY = 600, 250  # words from which on a report needs a summary, and the most it may have
SNIPPETS = 0.2
IN_A_ROW = 3

_ORDER = {"abstract": 0, "body": 1, "disagreements": 2, "not_found": 2, "conclusion": 3, "notice": 4}
_DANGLING = re.compile(r"(?:it|they|he|she|this|these|those|such|its|their|his|her)\b", re.I)
_ENDED = re.compile(r"[.!?…:。！？][\"'”’)\]]*$")
_SPELLED = re.compile(r"\b[A-Z][A-Za-z]*(?:[- ]?\d+)?\b")


def coherence(case: Case) -> Iterator[Fault]:
    yield from _summary(case)
    yield from _order(case)
    yield from _repeated(case)
    yield from _dangling(case)
    yield from _snippets(case)
    yield from _openings(case)
    yield from _terms(case)


def _summary(case: Case) -> Iterator[Fault]:
    draft, quick = case.request.draft, case.request.plan.depth is Depth.QUICK
    summaries = [section for section in draft.sections if section.role == "abstract"]
    if not summaries and not quick and not draft.answers and case.words() >= DUE:
        yield fault("coherence", "minor", "whole report", "a long report has no summary", "begin with a summary")
    for section in summaries:
        words = sum(len(sentence.text.split()) for sentence in section.sentences)
        if words > LONGEST_SUMMARY:
            yield fault("coherence", "minor", section.title, f"a summary of {words} words", "shorten the summary")


def _order(case: Case) -> Iterator[Fault]:
    draft = case.request.draft
    ranks = [_ORDER[section.role] for section in draft.sections]
    planned = {fold(title): place for place, title in enumerate(case.request.plan.sections)}
    places = [planned[fold(s.title)] for s in draft.sections if s.role == "body" and fold(s.title) in planned]
    if ranks != sorted(ranks) or places != sorted(places):
        yield fault("coherence", "minor", "whole report", "the parts do not stand in the order of the plan",
                    "keep to the order of the plan")  # fmt: skip


def _repeated(case: Case) -> Iterator[Fault]:
    bodies = [fact.text for fact in case.facts if fact.role == "body"]
    twice = [left for at, left in enumerate(bodies) if any(jaccard(left, right) > TWICE for right in bodies[at + 1 :])]
    for text in twice[:MOST_NAMED]:
        yield fault("coherence", "minor", "body", f"said twice: {short(text)}", "keep one of them")


def _dangling(case: Case) -> Iterator[Fault]:
    """A section that begins with a word for something named elsewhere."""
    first = {fact.place: fact for fact in reversed(case.facts)}
    loose = [fact for fact in first.values() if _DANGLING.match(fact.text)]
    if loose:
        yield fault("coherence", "minor", loose[0].place,
                    f"begins with a word that refers to nothing: {short(loose[0].text)}",
                    "name what is spoken of", min(2.0, 0.5 * len(loose)))  # fmt: skip


def _snippets(case: Case) -> Iterator[Fault]:
    broken = [fact for fact in case.statements if _is_snippet(fact)]
    if len(broken) > SNIPPETS * len(case.statements):
        yield fault("coherence", "minor", broken[0].place,
                    f"{len(broken)} of {len(case.statements)} statements are snippets and no sentences: "
                    f"{short(broken[0].text)}", "write whole sentences, or leave them out",
                    3 * len(broken) / len(case.statements))  # fmt: skip


def _is_snippet(fact: Fact) -> bool:
    text = fact.text.strip()
    return len(text.split()) < 4 or not _ENDED.search(text) or text[:1] in "-•*|…" or text[:1].islower()


def _openings(case: Case) -> Iterator[Fault]:
    """Sentences in a row that begin alike."""
    for place in dict.fromkeys(fact.place for fact in case.facts):
        begins = [tuple(fold(fact.text).split()[:3]) for fact in case.facts if fact.place == place]
        if _longest_run(begins) >= IN_A_ROW:
            yield fault("coherence", "suggestion", place, "several sentences in a row begin alike", "join or vary them")
            return


def _longest_run(begins: Sequence[tuple[str, ...]]) -> int:
    longest = run = 1 if begins else 0
    for left, right in pairwise(begins):
        run = run + 1 if left == right else 1
        longest = max(longest, run)
    return longest


def _terms(case: Case) -> Iterator[Fault]:
    """One name in two spellings, as in Covid-19 and COVID 19."""
    spelled: dict[str, set[str]] = {}
    for fact in case.statements:
        for name in _SPELLED.findall(fact.text):
            if len(name) > 3 and re.search(r"[A-Z].*[A-Z\d]", name):
                spelled.setdefault(re.sub(r"[- ]", "", name).casefold(), set()).add(name)
    if several := sorted(min(forms) for forms in spelled.values() if len(forms) > 1):
        yield fault("coherence", "suggestion", "wording", f"spelled in more than one way: {', '.join(several[:5])}",
                    "keep to one spelling")  # fmt: skip
