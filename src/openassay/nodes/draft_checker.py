"""Tells why sentences of a composed draft cannot be published: what is certain, and what speaks against them after a
judge has read them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from openassay.models.evidence import Claim, ContextItem, Document, Judgement, QuoteSpan, Verdict
from openassay.models.report import DerivedFigure
from openassay.nodes.verify import LEAST_KEPT, read_contexts
from openassay.reasoning.base import DraftSentence
from openassay.text.sentences import TextSpan
from openassay.text.words import fold, stems
from openassay.verification.context import LONGEST, EvidenceContext, find_figures, read_context, tell_author
from openassay.verification.names import check_names
from openassay.verification.polarity import StatementProblem
from openassay.verification.statement_check import extract_numbers
from openassay.verification.synthesis import (
    LEAST_TOLD,
    check_numbers,
    check_synthesis,
    find_given_numbers,
    has_common_words,
    list_content,
    list_roundings,
)
from openassay.verification.terms import KnownTerms, find_addresses
from openassay.verification.verdict import ClaimMatcher
from openassay.verification.wording import INSTEAD, check_wording, content_share

RETOLD = 0.9  # of the plain words of a fact that stand in its passages: then its names have to stand there too
JUDGED_WORDS = 600  # of a document that a judge is shown beside its claims
LEAST_READ = 30_000  # characters of each document in which a name may stand
NO_CLAIM = "it says something of the world and names no claim"
# A capitalised word that begins no sentence, or a figure of three digits and more.
_NAME = re.compile(r"(?<=[\w,;:)\]'’] )[A-Z][\w’'-]{2,}|\b\d{3,}\b")
LEAST_COMMON = 1 / 4  # of the words of a sentence, that a claim has which is added for its numbers
_CAPITAL = re.compile(r"(?<=[\w,;] )[A-Z][\w’'-]*[\w]")
_LOWER = re.compile(r"(?<![^\W_])[^\W\d_A-Z]{3,}(?![^\W_])")


def describe_document(document: Document) -> Iterator[ContextItem]:
    if document.published:
        yield ContextItem(document=document.hash, field="published", value=document.published.isoformat())
    if document.title:
        yield ContextItem(document=document.hash, field="title", value=document.title)
    if author := tell_author(document):
        yield ContextItem(document=document.hash, field="author", value=author)
    if document.publisher:
        yield ContextItem(document=document.hash, field="publisher", value=document.publisher)


class MissingSupport(NamedTuple):
    """Words and numbers of a sentence that its passages lack."""

    words: frozenset[str]
    numbers: frozenset[float]


class DraftChecker:
    """Tells why sentences cannot be published, by the claims of a run."""

    def __init__(
        self,
        claims: Mapping[str, Claim],
        documents: Mapping[str, Document],
        matcher: ClaimMatcher,
        terms: KnownTerms,
        asked: str = "",
        planned: Sequence[str] = (),
    ) -> None:
        """`asked`: the question, whose names need no source; `planned`: the sub-questions, whose names may be told of
        what the sources leave open."""
        # What a sentence may call people and parties: a passage of one claim often lacks what another tells of them.
        self._names = [asked, *(claim.text for claim in claims.values() if claim.verdict is Verdict.SUPPORTED)]
        # Of what is left open: the names that claims have, too.
        self._asked = KnownTerms([asked, *planned])
        self._asked_numbers = extract_numbers(asked, worded=False)
        self._limits = KnownTerms([*self._names, *planned])
        self._matcher = matcher
        self._documents = documents
        self._numbers: dict[str, frozenset[float]] = {}  # of these, as they are asked for
        self._terms = terms
        self._published = {name: one.published for name, one in documents.items() if one.published}
        # Words that a document writes small, in whatever form, are no names, though a sentence may begin with them.
        small = {word for one in documents.values() for word in _LOWER.findall(one.text[:LONGEST])}
        self._plain = set(stems(" ".join(small)))
        # A capital for its government, and whoever else the research has met: a judge says whether it is meant here.
        self._met = " ".join({name for one in documents.values() for name in _CAPITAL.findall(one.text[:LONGEST])})

    def find_bound(self, sentence: DraftSentence) -> tuple[Claim, ...]:
        """The claims of a sentence, with what their documents say of themselves: a writer is shown it."""
        return tuple(self._describe(claim) for claim in self._matcher.get_claims(sentence.claims))

    def _describe(self, claim: Claim) -> Claim:
        known = {(item.document, item.field) for item in claim.context}
        added = [
            item
            for name in dict.fromkeys(span.document for span in claim.spans)
            for item in describe_document(self._documents[name])
            if (name, item.field) not in known
        ]
        return claim.model_copy(update={"context": (*claim.context, *added)})

    def find_needed_context(self, sentence: DraftSentence) -> dict[str, Claim]:
        """The claims of a sentence whose numbers stand only in what their documents say of themselves, or elsewhere in
        these, with that."""
        plain = self._matcher.get_claims(sentence.claims)
        if not any(check_numbers(sentence.text, plain, sentence.derived, self._published)):
            return {}
        needed, told = dict[str, Claim](), sentence.text
        missing = set(extract_numbers(told, worded=False))
        missing -= find_given_numbers(told, self.find_bound(sentence), self._published)
        for claim in self.find_bound(sentence):
            added = list[QuoteSpan]()
            for name in dict.fromkeys(span.document for span in claim.spans):
                own = [span for span in claim.spans if span.document == name]
                added += find_figures(told, read_context(self._documents[name], own), missing)
                missing -= {number for span in added for number in extract_numbers(span.quote, worded=True)}
            needed[claim.id] = claim.model_copy(update={"spans": tuple(dict.fromkeys((*claim.spans, *added)))})
        return needed

    def read_contexts(self, sentence: DraftSentence) -> list[EvidenceContext]:
        return read_contexts([span for claim in self.find_bound(sentence) for span in claim.spans], self._documents)

    def read_whole_contexts(self, sentence: DraftSentence) -> list[EvidenceContext]:
        """The same for a judge: with what else of these documents the writer may have had in mind."""
        return [found.add_bearing(sentence.text) for found in self.read_contexts(sentence)]

    def read_passages(self, sentences: Sequence[tuple[DraftSentence, Sequence[Claim]]]) -> dict[str, str]:
        """What the documents of claims say around their quotes, and what else there bears on the sentences that rest on
        them, for a judge who is to understand by it."""
        spans: dict[str, list[QuoteSpan]] = {}
        told: dict[str, list[str]] = {}
        for sentence, claims in sentences:
            own = dict.fromkeys(span for claim in claims for span in claim.spans)
            for span in own:
                if span not in spans.setdefault(span.document, []):
                    spans[span.document].append(span)
            for name in dict.fromkeys(span.document for span in own):
                told.setdefault(name, []).append(sentence.text)
        passages = dict[str, str]()
        for name, some in spans.items():
            found = read_context(self._documents[name], some, JUDGED_WORDS)
            for text in told[name]:
                found = found.add_bearing(text)
            passages[name] = found.text
        return passages

    def find_problem(self, sentence: DraftSentence) -> str:
        """Say what is certain to be wrong with a sentence, whatever a judge says; empty if nothing is."""
        if not sentence.claims:
            return "" if self._terms.covers(sentence.text) else NO_CLAIM
        bound = self.find_bound(sentence)
        if not bound or (sentence.kind == "fact" and len(bound) < len(set(sentence.claims))):
            return "it names a claim that is not borne out"
        quotes = [span.quote for claim in bound for span in claim.spans]
        if strange := find_addresses(sentence.text, quotes):
            return f"its passages do not have {', '.join(strange)}"
        if sentence.kind == "synthesis":
            if not has_common_words(sentence.text, quotes):
                return "it has hardly a word in common with its passages; use some of theirs"
            faults = check_synthesis(sentence.text, bound, sentence.derived, self._published, self._find_numbers(bound))
            return "; ".join(problem.text for problem in faults)
        # What a row is called stands in other cells' passages, perhaps: a judge reads it.
        said = sentence.cell.text if sentence.cell else sentence.text
        problems = [*check_numbers(said, bound, sentence.derived, self._published, self._find_numbers(bound))]
        problems += check_wording(sentence.text, quotes)
        if not problems and not has_common_words(sentence.text, quotes, LEAST_TOLD):
            return "less than a third of its words stand in its passages; use more of theirs"
        return "; ".join(problem.text for problem in problems)

    def _find_numbers(self, bound: Sequence[Claim]) -> set[float]:
        """The numbers that stand anywhere in the documents of claims; a judge says whether they are told of this."""
        names = {span.document for claim in bound for span in claim.spans}
        for name in names - self._numbers.keys():
            self._numbers[name] = extract_numbers(self._documents[name].text[:LONGEST], worded=True)
        return {number for name in names for number in self._numbers[name]}

    def may_tell_limits(self, text: str) -> bool:
        """Whether a sentence that names no claim may be one on what the sources leave open: it speaks of that, with no
        figure, name or address that neither the question nor a claim that holds has."""
        return self._limits.may_tell_limits(text) and not find_addresses(text, [])

    def bind_names(self, sentence: DraftSentence, around: Sequence[Claim]) -> DraftSentence | None:
        """Bind a sentence on what the sources leave open to the claims that have its names and figures, where neither
        the question nor the plan has them (of names, a title neither); return nothing where no claims have them."""
        missing = {
            name.lower().removesuffix("’s").removesuffix("'s")
            for name in _NAME.findall(sentence.text)
            if not (self._asked.has_text(name) if name.isdigit() else self._terms.has_text(name))
        }
        bound = list[Claim]()
        for claim in around if missing else ():
            told = " ".join([claim.text, *(span.quote for span in claim.spans)]).lower()
            if found := {name for name in missing if name in told}:
                missing -= found
                bound.append(claim)
        if missing or not bound:
            return None if missing and around else sentence
        bound += [claim for claim in around if claim not in bound][: max(0, 2 - len(bound))]  # one is no synthesis
        drawn = sentence.model_copy(update={"claims": tuple(claim.id for claim in bound), "kind": "synthesis"})
        return drawn if len(bound) > 1 and not self.has_few_words(drawn) else None

    def has_few_words(self, sentence: DraftSentence) -> bool:
        """Whether a sentence has hardly a word in common with the passages of its claims."""
        return has_few_words(sentence, self._matcher.get_claims(sentence.claims))

    def list_missing(self, sentence: DraftSentence) -> MissingSupport:
        """What a sentence needs of further claims: words, if it has hardly one of its passages, and numbers."""
        bound = self.find_bound(sentence)
        quotes = " ".join(span.quote for claim in bound for span in claim.spans)
        needed = list_content(sentence.text) - list_content(quotes) if self.has_few_words(sentence) else set[str]()
        said = sentence.cell.text if sentence.cell else sentence.text
        given = find_given_numbers(said, bound, self._published) | self._find_numbers(bound)
        told = {value for figure in sentence.derived for value in list_roundings(abs(figure.value))}
        return MissingSupport(frozenset(needed), frozenset(extract_numbers(said, worded=False) - given - told))

    def count_support(self, claim: Claim, text: str, missing: MissingSupport) -> int:
        """How much of what a text lacks the passages of a claim have. A number counts only where they speak of the same
        matter ("19 minutes later" is not borne out by the 19 of another day) or the question has it: what sums up tells
        from when to when it was asked."""
        quotes = [claim.text, *(span.quote for span in claim.spans)]
        found = self._describe(claim)
        numbers = find_given_numbers("", [found], self._published) & missing.numbers
        if numbers - self._asked_numbers and not has_common_words(text, quotes, LEAST_COMMON):
            return 0
        return 3 * len(numbers) + len(list_content(" ".join(quotes[1:])) & missing.words)

    def count_common_words(self, name: str, text: str) -> int:
        """How many words of a text a claim and its passages have."""
        said = list_content(text)
        found = self._matcher.get_claims([name])
        return sum(len(said & list_content(" ".join([c.text, *(s.quote for s in c.spans)]))) for c in found)

    def may_frame(self, text: str) -> bool:
        """Whether a sentence may stand without a claim: it speaks of the research or of what the sources leave open."""
        return self._terms.covers(text) or self.may_tell_limits(text)

    def explain(self, sentence: DraftSentence, judgement: Judgement) -> str:
        """Say why a sentence does not hold after a judge has read it; empty if it does."""
        if judgement.verdict is not Verdict.SUPPORTED:
            narrower = f"; this much of it holds: {judgement.narrower}" if judgement.narrower else ""
            return f"{judgement.reason or 'not borne out'}{narrower}"
        bound = self.find_bound(sentence)
        if judgement.embedded and sentence.kind == "fact" and not self._matcher.can_support(sentence.text, bound):
            return "its claims do not say this"
        objections = self._find_objections(sentence, bound, weak=judgement.embedded)
        return "; ".join(problem.text for problem in objections)

    def narrow(self, sentence: DraftSentence, judgement: Judgement) -> DraftSentence | None:
        """Return what a judge says is left of a sentence, if it only leaves something out and nothing else speaks
        against it."""
        left = self.reword(sentence, judgement)
        if left is None or len(left.text) >= len(sentence.text):
            return None
        text = left.text
        held = judgement.model_copy(update={"verdict": Verdict.SUPPORTED})
        keeps = content_share(text, [sentence.text]) >= LEAST_KEPT
        return left if keeps and not self.find_problem(left) and not self.explain(left, held) else None

    def reword(self, sentence: DraftSentence, judgement: Judgement) -> DraftSentence | None:
        """Return a sentence as a judge says it would hold, to be judged again."""
        text = judgement.narrower
        return sentence.model_copy(update={"text": text}) if text and not sentence.cell else None

    def _find_objections(
        self, sentence: DraftSentence, bound: Sequence[Claim], *, weak: bool
    ) -> Sequence[StatementProblem]:
        """Hold a sentence against all that it rests on: a judge that obeys a page says yes to anything. After a `weak`
        judge its names have to stand there, and not only anywhere in the research."""
        found = self.read_contexts(sentence)
        claims = [TextSpan(0, len(claim.text), claim.text) for claim in bound]
        whole = EvidenceContext(
            document=found[0].document,
            spans=found[0].spans,
            head=" | ".join(one.head for one in found),
            pieces=(*claims, *(piece for one in found for piece in one.pieces)),
            published=found[0].published if len(found) == 1 else None,
            whole="\n".join(one.whole[: max(LONGEST // len(found), LEAST_READ)] for one in found),
        )
        own = [whole.text, whole.head, whole.whole]
        # In a sentence that is its passages' but for a name, a name of another matter was exchanged.
        plain = " ".join(word for word in sentence.text.split() if not word[:1].isupper())
        retold = sentence.kind == "fact" and content_share(plain, [whole.text]) >= RETOLD
        texts = own if weak or retold else [*own, *self._names, self._met]
        text = self._spell(sentence)
        strange = [*check_names(text, texts, whole.head.replace("|", " ").split(), strict=False)]
        if sentence.kind == "synthesis":
            return strange
        # What rows and columns are called stands in other cells' passages, perhaps: a judge has read it.
        text = spell_first(sentence.cell.text) if sentence.cell else text

        def object_to(*, free: bool) -> list[StatementProblem]:
            """A day may be told by the day of any of its documents. The unit of a cell's figure stands at the head of
            its column."""
            problems = whole.find_objections(text, weak=free)
            days = dict.fromkeys(one.published for one in found if one.published) if len(found) > 1 else ()
            for day in days if any(problem.kind == "date" for problem in problems) else ():
                by_day = whole._replace(published=day).find_objections(text, weak=free)
                problems = [one for one in problems if one.kind != "date" or one in by_day]
            return [one for one in _leave_out_units(sentence, problems) if not _is_derived(one, sentence.derived)]

        # Of a copy all that was exchanged counts, of a free wording its figures.
        exchanged = object_to(free=False)
        if exchanged := [one for one in exchanged if weak or not _is_one_name(one, own)]:
            return exchanged
        objections = object_to(free=True)
        # "Two years later" and "a third design" are worked out, and a language model has judged that.
        counted = [problem for problem in objections if problem.kind != "name" and (weak or is_numeral(problem.text))]
        return counted + strange

    def _spell(self, sentence: DraftSentence) -> str:
        """The text of a sentence, without the capital of a first word that is no name."""
        text = spell_labels(sentence)
        first = re.match(r"[^\W\d_]+", text)
        return spell_first(text) if first and set(stems(first[0])) & self._plain else text

    def is_verbatim(self, sentence: DraftSentence) -> bool:
        plain = fold(sentence.text)
        return any(
            plain == fold(claim.text) or any(plain in fold(span.quote) for span in claim.spans)
            for claim in self.find_bound(sentence)
        )


def has_few_words(sentence: DraftSentence, bound: Iterable[Claim]) -> bool:
    quotes = [span.quote for claim in bound for span in claim.spans]
    if sentence.kind == "synthesis":
        return not has_common_words(sentence.text, quotes)
    return any(check_wording(sentence.text, quotes)) or not has_common_words(sentence.text, quotes, LEAST_TOLD)


def _leave_out_units(sentence: DraftSentence, problems: Iterable[StatementProblem]) -> list[StatementProblem]:
    return [one for one in problems if sentence.cell is None or one.kind != "unit"]


def _is_derived(problem: StatementProblem, derived: Iterable[DerivedFigure]) -> bool:
    """Whether a figure that the passages lack is one that the sentence says how it comes about."""
    said = extract_numbers(problem.text, worded=False)
    told = {value for figure in derived for value in list_roundings(abs(figure.value))}
    return problem.kind == "figure" and bool(said) and said <= told


def _is_one_name(problem: StatementProblem, texts: Sequence[str]) -> bool:
    """Whether what is said and what the passage has are parts of one name in its document: "Kennedy" for "President"
    where it speaks of President Kennedy."""
    said, _, has = problem.text.partition(INSTEAD)
    return problem.kind == "name" and bool(has) and any(f"{has} {said}" in text for text in texts)


def is_numeral(problem: str) -> bool:
    """Whether the figure that a problem is about is told in digits."""
    said = problem.removeprefix("the figure ")
    return said == problem or any(letter.isdigit() for letter in said.split()[0])


def spell_labels(sentence: DraftSentence) -> str:
    """Return the text of a sentence; in a table, names of rows and columns begin with a capital and are no names for
    that."""
    if sentence.cell is None:
        return sentence.text
    labels = [label for label in (sentence.cell.row, sentence.cell.column) if label]
    *plain, text = [spell_first(label) for label in (*labels, sentence.cell.text)]
    return f"{', '.join(plain)}: {text}"


def spell_first(text: str) -> str:
    """Without the capital that only the beginning of a text has."""
    first = text.split()[0] if text.split() else ""
    return text[0].lower() + text[1:] if first[1:].islower() or len(first) == 1 else text
