"""A writer at its worst: what of thousands of written sentences, a third of them made false, is published.

    python benchmarks/bench_writer.py [SENTENCES [HALF [SEED]]] [-v]

Data: news, an encyclopaedia, pages it cites and quarterly reports from `OPENASSAY_EVAL_DATA`, by default
../shared/data.
Each sentence is a claim with itself as its quote, or with the sentence after it as well. The writer tells claims as
they are, lightly reworded (rewording.py) or falsified (corruption.py), and names the wrong claim for some; its judge
believes everything. What is written goes through the stage that writes reports. `published` is as written, `re-bound`
as written under the claim that says it, `own words` the claim itself instead. Rules were tuned on the first half of the
documents, and are held to the second, which no rule was tuned on: docs/quality.md shows what came of that.

What people wrote of a passage in words of their own is held back more often: of 115 claims that WiCE has as supported,
the checks let about 60 pass against their evidence.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Literal, NamedTuple

from benchmarks.corruption import CITATION, OTHERS, STRICT, Around
from benchmarks.figures import keep
from benchmarks.material import Source, sources
from benchmarks.rewording import joined, reworded
from openassay.models.evidence import Claim, Mark, QuoteSpan, Verdict
from openassay.nodes.write import check_sentences, final_sentences
from openassay.reasoning.base import Draft, DraftSection, DraftSentence
from openassay.verification.terms import KnownTerms
from openassay.verification.verdict import ClaimMatcher

FALSE = 0.34  # of which a tenth cannot be told of its sentence
EACH = 6  # claims of a document
ALL = 10_000  # more sentences than there are
Fate = Literal["as written", "re-bound", "own words", "dropped"]


class Line(NamedTuple):
    """A sentence as the writer hands it in, and what it is."""

    text: str
    claims: tuple[str, ...]
    kind: str
    false: bool


def claimed(source: Source, first: int, dice: Random) -> list[Claim]:
    """A claim a sentence, in the sentence's own words; of some the quote has the sentence after it as well."""
    chosen = sorted(dice.sample(range(len(source.sentences)), min(EACH, len(source.sentences))))
    return [_claim(f"C{number}", source, place, dice) for number, place in enumerate(chosen, first)]


def _claim(name: str, source: Source, place: int, dice: Random) -> Claim:
    text = source.sentences[place]
    quote = " ".join(source.sentences[place : place + 2]) if dice.random() < 0.2 else text
    return Claim(id=name, text=text, questions=("Q1",), verdict=Verdict.SUPPORTED, confidence=0.8, mark=Mark.SINGLE,
                 spans=(QuoteSpan(document=source.title, start=0, end=len(quote), quote=quote),))  # fmt: skip


class WorstWriter:
    """Writes each claim once: two thirds of the true sentences in words of their own, and every kind of falsehood as
    often as it can be told."""

    def __init__(self, material: Sequence[Source], seed: int) -> None:
        self.dice = Random(seed)
        self.material = material
        self._told: Counter[str] = Counter()

    def writes(self, claims: Sequence[Claim], source: Source) -> Iterator[Line]:
        left = list(claims)
        while left:
            claim = left.pop(0)
            if self.dice.random() < FALSE and (line := self._false(claim, claims, source)):
                self._told[line.kind] += 1
                yield line
            elif left and self.dice.random() < 0.1:
                second = left.pop(0)
                yield Line(joined(claim.text, second.text), (claim.id, second.id), "joined", False)
            elif self.dice.random() < 0.65:
                kind, text = reworded(claim.text, source.title, self.dice)
                if self.dice.random() < 0.3 and kind != "attributed":  # once more
                    _, text = reworded(text, source.title, self.dice)
                yield Line(text, (claim.id,), kind, False)
            else:
                yield Line(claim.text, (claim.id,), "verbatim", False)

    def _false(self, claim: Claim, claims: Sequence[Claim], source: Source) -> Line | None:
        """The kind told least so far that the sentence allows, the four that must never pass before the others."""
        text = claim.text
        if self.dice.random() < 0.4:
            _, text = reworded(claim.text, source.title, self.dice)
        around = Around(source.sentences, self.dice.choice(self.material).sentences)
        others = [other for other in claims if not any(claim.text in span.quote for span in other.spans)]
        if others and self.dice.random() < 0.1:
            return Line(text, (self.dice.choice(others).id,), CITATION, True)
        ways = STRICT if self.dice.random() < 0.65 else OTHERS
        for kind in sorted(ways, key=lambda name: (self._told[name], self.dice.random())):
            told = ways[kind](text, around, self.dice)
            if told and told not in (text, claim.text) and told not in source.sentences:
                return Line(told, (claim.id,), kind, True)
        return None


class Seen(NamedTuple):
    line: Line
    fate: Fate
    bound: tuple[str, ...]
    told: str
    claim: str


def judged(lines: Sequence[Line], claims: Sequence[Claim], titles: dict[str, str]) -> list[Seen]:
    """Through the stage that writes reports, whose judge believes everything it is asked."""
    sentences = tuple(DraftSentence(text=line.text, claims=line.claims) for line in lines)
    draft = Draft(title="Report", sections=(DraftSection(title="Findings", sentences=sentences),))
    [sifted] = check_sentences(draft, ClaimMatcher(claims, titles), KnownTerms(["What is known?"]))
    believed = {item.sentence for item in sifted if item.standing == "unsure"}
    texts = {claim.id: claim.text for claim in claims}
    return [
        _seen(line, final_sentences(item, believed), texts[line.claims[0]])
        for line, item in zip(lines, sifted, strict=True)
    ]


def _seen(line: Line, kept: Sequence[DraftSentence], claim: str) -> Seen:
    if not kept:
        return Seen(line, "dropped", (), "", claim)
    if kept[0].text != line.text:
        return Seen(line, "own words", kept[0].claims, kept[0].text, claim)
    as_named = bool(set(kept[0].claims) & set(line.claims))
    return Seen(line, "as written" if as_named else "re-bound", kept[0].claims, kept[0].text, claim)


def run(material: Sequence[Source], count: int, seed: int = 7) -> list[Seen]:
    writer = WorstWriter(material, seed)
    lines: list[Line] = []
    claims: list[Claim] = []
    order = list(material)
    writer.dice.shuffle(order)
    for source in order:
        made = claimed(source, len(claims) + 1, writer.dice)
        claims += made
        lines += writer.writes(made, source)
        if len(lines) >= count:
            break
    return judged(lines[:count], claims, {source.title: source.title for source in order})


def leaked(seen: Iterable[Seen], kinds: Iterable[str] = tuple(STRICT)) -> list[Seen]:
    """False sentences that were published as they were written. What was written elsewhere, and was found to be what
    another claim says word for word, is true."""
    return [
        item
        for item in seen
        if item.line.false
        and item.line.kind in kinds
        and (item.fate == "as written" or (item.fate == "re-bound" and item.line.kind in STRICT))
    ]


def shares(seen: Sequence[Seen]) -> tuple[float, float]:
    """Of the true sentences, those published at all and those published as they were written."""
    true = [item for item in seen if not item.line.false]
    return (
        sum(item.fate != "dropped" for item in true) / len(true),
        sum(item.fate in ("as written", "re-bound") for item in true) / len(true),
    )


FATES: tuple[Fate, ...] = ("as written", "re-bound", "own words", "dropped")


def table(seen: Iterable[Seen]) -> list[tuple[str, tuple[int, ...]]]:
    """For each kind of sentence how many were written, and what became of them."""
    fates: dict[tuple[bool, str], Counter[Fate]] = {}
    for item in sorted(seen, key=lambda one: (one.line.false, one.line.kind)):
        fates.setdefault((item.line.false, item.line.kind), Counter())[item.fate] += 1
    return [
        (f"{'false' if false else 'true'}: {kind}", (found.total(), *(found[fate] for fate in FATES)))
        for (false, kind), found in fates.items()
    ]


def in_brief(seen: Iterable[Seen]) -> Iterator[Seen]:
    """With all ways of rewording as one."""
    for item in seen:
        plain = item.line.false or item.line.kind == "verbatim"
        yield item if plain else item._replace(line=item.line._replace(kind="reworded"))


def main() -> None:
    verbose = "-v" in sys.argv
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    count, halves = (numbers or [ALL])[0], numbers[1:2] or [0, 1]
    for half in halves:
        started = time.perf_counter()
        material = sources(half=half)
        ready = time.perf_counter()
        seen = run(material, count, *numbers[2:3])
        false = sum(item.line.false for item in seen)
        print(f"\nhalf {half}: {len(seen)} sentences, {false} false; checked in {time.perf_counter() - ready:.1f} s, "
              f"material read in {ready - started:.1f} s")  # fmt: skip
        print(f"{'':28}{'written':>9}{'published':>11}{'re-bound':>10}{'own words':>11}{'dropped':>9}")
        for kind, counts in table(seen):
            print("{:28}{:9}{:11}{:10}{:11}{:9}".format(kind, *counts))
        any_way, as_written = shares(seen)
        print(f"true ones published {any_way:.3f}, as written {as_written:.3f}; number, date, name, negation leaked: "
              f"{len(leaked(seen))}")  # fmt: skip
        if half == 1:
            keep("writer", ("", "written", "published", "bound to the claim that says it", "in the claim's own words",
                            "dropped"), [(kind, *counts) for kind, counts in table(in_brief(seen))])  # fmt: skip
        if verbose:
            for item in leaked(seen, {*STRICT, *OTHERS, CITATION}):
                print(f"LEAK {item.line.kind}: {item.line.text}\n     {item.claim}")
            for item in seen:
                if not item.line.false and item.fate != "as written":
                    print(f"LOST {item.line.kind}: {item.line.text}\n     {item.fate}: {item.claim}")


if __name__ == "__main__":
    main()
