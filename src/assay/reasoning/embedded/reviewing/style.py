"""Style: plain and of the length asked for, no banned word, a sober tone, sentences that can be read."""

import re
from collections.abc import Iterator

from assay.reasoning.embedded.reviewing.case import Case, Fault, fault, short
from assay.text.words import fold

TOO_LONG, MUCH_TOO_SHORT = 1.25, 0.25  # of the words asked for
LONG_SENTENCE, LONGEST_SENTENCE = 32, 60  # words: on average, and of one

_LOUD = re.compile(r"!|\b(?:amazing|incredible|stunning|obviously|of course|undoubtedly|needless to say)\b", re.I)
_TWICE = re.compile(r"\b(the|a|an|of|and|to|in|is|was|for)\s+\1\b", re.I)


def style(case: Case) -> Iterator[Fault]:
    yield from _banned(case)
    yield from _length(case)
    yield from _sentences(case)
    ours = " ".join(text for _, text in case.frames)
    if loud := _LOUD.search(ours):
        yield fault("style", "minor", "wording", f"not a sober tone: “{loud.group()}”", "say it plainly")
    stumbles = [fact for fact in case.statements if _TWICE.search(fact.text)]
    if stumbles:
        yield fault("style", "suggestion", stumbles[0].place, f"a word twice in a row: {short(stumbles[0].text)}",
                    "mend the sentence")  # fmt: skip


def _banned(case: Case) -> Iterator[Fault]:
    """Our own words only: quotes may have them, and so may the question."""
    ours, quoted = fold(" ".join(case.ours())), fold(case.request.plan.model_dump_json())
    for word in case.request.banned:
        own = rf"\b{re.escape(fold(word))}\b"
        if re.search(own, ours) and not re.search(own, quoted):
            yield fault("style", "minor", "wording", f"banned word: {word}", "say it plainly")


def _length(case: Case) -> Iterator[Fault]:
    length, wanted = case.words(), case.request.plan.target(case.request.words)
    if length > wanted * TOO_LONG:
        yield fault("style", "minor", "whole report", f"{length} words where {wanted} were asked for", "shorten")
    told = {claim.id for fact in case.facts for claim in fact.claims if claim}
    untold = [claim for claim in case.request.claims if claim.verdict == "supported" and claim.id not in told]
    if length < wanted * MUCH_TOO_SHORT and len(untold) > len(told):
        yield fault("style", "suggestion", "whole report",
                    f"{length} words where {wanted} were asked for, and {len(untold)} verified statements are untold",
                    "say more")  # fmt: skip


def _sentences(case: Case) -> Iterator[Fault]:
    lengths = [len(fact.text.split()) for fact in case.statements]
    if not lengths:
        return
    if sum(lengths) / len(lengths) > LONG_SENTENCE:
        yield fault("style", "minor", "whole report",
                    f"sentences of {round(sum(lengths) / len(lengths))} words on average",
                    "shorten the sentences")  # fmt: skip
    elif max(lengths) > LONGEST_SENTENCE:
        yield fault("style", "suggestion", "whole report", f"a sentence of {max(lengths)} words", "shorten it")
