"""What a sentence of a composed draft rests on beside the claims it names: what its documents say and no claim does,
the claims of its paragraph, and further claims that have its words and numbers.

A judge reads afterwards whether it follows from all of them.
"""

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from openassay.context import ResearchContext
from openassay.models.evidence import Claim, Document, Judgement, QuoteSpan, Verdict
from openassay.nodes.draft_checker import DraftChecker, has_few_words
from openassay.nodes.verify import ClaimWording, decide_claims, read_contexts
from openassay.reasoning.base import Draft, DraftClaim, DraftSentence
from openassay.text.sentences import TextSpan
from openassay.text.words import fold, stems
from openassay.verification.context import EvidenceContext, find_needed_sentences, read_context
from openassay.verification.sources import assess_credibility
from openassay.verification.statement_check import extract_numbers

PASSAGE_WORDS = 900  # of a document that a writer is shown at most, and all that was quoted
LEAST_CITED = 2  # documents behind a sentence that draws claims together
LEAST_TERMS = 2  # that a further sentence has to add, and the first where it is held against many
MANY_TERMS = 4
MOST_DRAWN = 5  # sentences of a document that a claim is drawn from
MOST_DOCUMENTS = 6  # that claims are drawn from for one sentence
MOST_PARAGRAPH_CLAIMS = 6  # that a sentence without claims of its own is held against
MOST_ADDED = 4  # claims that are added for their words and numbers
_QUOTED = re.compile(r"[“\"]([^“”\"]{4,})[”\"]")
_LABEL = re.compile(r"[A-Z][\w.-]*(?: [\w.-]+){0,2}[ -]?\d[\w.-]*")
_WORD = re.compile(r"[^\W\d_]{2,}")
_STATES = re.compile(r"[.!?]\W*$|:\s")  # a sentence, or a line as "Status: Rejected"


def rank_claims(text: str, claims: Mapping[str, Claim]) -> list[Claim]:
    """The claims that hold, those with most words of a text first."""
    wanted = set(stems(text))
    usable = [claim for claim in claims.values() if claim.verdict is Verdict.SUPPORTED]
    return sorted(usable, key=lambda claim: -len(wanted & set(stems(claim.text))))


async def draw_claims(
    draft: Draft, claims: Mapping[str, Claim], documents: Mapping[str, Document], context: ResearchContext
) -> tuple[Draft, dict[str, Claim]]:
    """Draw claims from documents that sentences name by themselves: what each says in this matter, in its own words.
    Return the draft with its sentences bound to these, and the claims."""
    quoted: dict[str, list[Claim]] = {}
    for claim in claims.values():
        for name in dict.fromkeys(span.document for span in claim.spans):
            quoted.setdefault(name, []).append(claim)
    first = max((int(id[1:]) for id in claims if id[1:].isdecimal()), default=0) + 1
    wordings = dict[str, ClaimWording]()
    labels = read_labels({name: documents[name].title for name in quoted})

    def read_passage(name: str) -> EvidenceContext:
        own = [span for claim in quoted[name] for span in claim.spans if span.document == name]
        return read_context(documents[name], own, PASSAGE_WORDS)

    def tell_missing(sentence: DraftSentence, bound: Sequence[Claim]) -> str:
        """The words of a sentence that its claims lack."""
        quotes = " ".join([text for claim in bound for text in (claim.text, *(span.quote for span in claim.spans))])
        known = set(stems(quotes))
        return " ".join(word for word in sentence.text.split() if set(stems(word)) - known)

    def draw(text: str, name: str) -> str:
        """Return the id of the claim."""
        passage = read_passage(name)
        spans = find_sentences(text, passage) or find_needed_sentences(text, passage)[:MOST_DRAWN]
        said = " ".join(" ".join(span.quote.split()) for span in spans)
        if said not in wordings:
            questions = dict.fromkeys(id for claim in quoted[name] for id in claim.questions)
            drawn = DraftClaim(wordings=(said,), findings=(), questions=tuple(questions), relevance=0.5)
            contexts = read_contexts(spans, documents)
            wordings[said] = ClaimWording(f"C{first + len(wordings)}", drawn, said, contexts, tuple(spans))
        return wordings[said].id

    def bind(sentence: DraftSentence) -> DraftSentence:
        bound = [claims[id] for id in sentence.claims if id in claims]
        named = sentence.documents
        if bound and has_few_words(sentence, bound):  # its words are those of sentences that no claim was drawn from
            named = tuple(dict.fromkeys((*named, *(span.document for claim in bound for span in claim.spans))))
        # Beside other claims, what has none of its words is no source of it.
        told = [one for one in named[:MOST_DOCUMENTS] if one in quoted]
        speaking = [one for one in told if find_sentences(sentence.text, read_passage(one))]
        added = [draw(sentence.text, name) for name in (speaking if bound or speaking else told)]
        # What became of PEP 298 stands in PEP 298, be it that another document is named for it.
        missing = tell_missing(sentence, bound) if bound else ""
        for name in find_named_documents(sentence.text, labels):
            if missing and name not in named and find_sentences(missing, read_passage(name)):
                added.append(draw(missing, name))
        named_claims = tuple(dict.fromkeys((*sentence.claims, *added)))
        kind = sentence.kind if len(named_claims) > 1 else "fact"
        return sentence.model_copy(update={"claims": named_claims, "documents": (), "kind": kind})

    sections = [
        section.model_copy(update={"sentences": tuple(map(bind, section.sentences))}) for section in draft.sections
    ]
    # It says what it says; whether the sentence does is judged with all others.
    said = [Judgement(verdict=Verdict.SUPPORTED, score=0.9) for one in wordings.values() for _ in one.contexts]
    credibility = {name: assess_credibility(document) for name, document in documents.items()}
    decided = await decide_claims(list(wordings.values()), said, documents, credibility, context.reasoner)
    drawn = {claim.id: claim for claim in decided if claim.verdict is Verdict.SUPPORTED}
    return draft.model_copy(update={"sections": tuple(sections)}), drawn


def read_labels(titles: Mapping[str, str]) -> dict[str, str]:
    """What titles call their documents by before they tell their matter, each with a number and of one document alone:
    the "PEP 298" of "PEP 298: The Locked Buffer Interface"."""
    heads = {name: title.partition(":")[0].strip() for name, title in titles.items() if ":" in title}
    count = Counter(heads.values())
    return {name: head for name, head in heads.items() if count[head] == 1 and _LABEL.fullmatch(head)}


def find_named_documents(text: str, labels: Mapping[str, str]) -> list[str]:
    """The documents whose labels stand in a text."""
    return [name for name, label in labels.items() if re.search(rf"(?<!\w){re.escape(label)}(?!\w|[.-]\d)", text)]


def find_sentences(text: str, passage: EvidenceContext) -> list[QuoteSpan]:
    """The sentences of a passage that have most of the figures, names and words of a text, each some that those before
    it lack, in the order of the document."""
    wanted = _list_terms(text)
    many = len(wanted) > MANY_TERMS  # one word of so many is chance
    # A heading states nothing, and no judge would take it for borne out; no more does the document's title.
    title = fold(passage.head.split(" | ")[0])
    left = [piece for piece in passage.pieces if _may_state(piece.text) and fold(piece.text) != title]
    # What a sentence quotes word for word comes first: it is what its writer meant.
    chosen = _find_quotations(text, [piece for piece in passage.pieces if fold(piece.text) != title])
    told = {term for piece in chosen for term in _list_terms(piece.text)}
    wanted = {term: worth for term, worth in wanted.items() if term not in told}
    left = [piece for piece in left if piece not in chosen]
    while left and len(chosen) < MOST_DRAWN:
        best = max(left, key=lambda piece: _count_terms(piece.text, wanted))
        if _count_terms(best.text, wanted) < (LEAST_TERMS if chosen or many else 1):
            break
        left.remove(best)
        chosen.append(best)
        found = _list_terms(best.text)
        wanted = {term: worth for term, worth in wanted.items() if term not in found}
    return [
        QuoteSpan(document=passage.document, start=piece.start, end=piece.end, quote=piece.text)
        for piece in sorted(chosen, key=lambda piece: piece.start)
    ]


def _may_state(text: str) -> bool:
    """Whether a text ends as a sentence and has words besides names and numbers: "Washington, October 14, 1969." has
    none."""
    return bool(_STATES.search(text)) and (": " in text or any(not word[0].isupper() for word in _WORD.findall(text)))


def _find_quotations(text: str, pieces: Sequence[TextSpan]) -> list[TextSpan]:
    """The pieces of a passage that have what a text quotes; for an item of a list with the line that introduces it."""
    quoted = [fold(words) for words in _QUOTED.findall(text)]
    found = list[TextSpan]()
    for at, piece in enumerate(pieces):
        if any(words in fold(piece.text) for words in quoted):
            states = _STATES.search(piece.text)
            leads = () if states else (one for one in reversed(pieces[:at]) if one.text.rstrip().endswith((":", ".")))
            if (before := next(iter(leads), None)) and before.text.rstrip().endswith(":"):
                found.append(before)
            found.append(piece)
    return list(dict.fromkeys(found))[:MOST_DRAWN]


def choose_documents(text: str, claims: Sequence[Claim], most: int) -> list[str]:
    """The documents that are cited behind a sentence, of all those its claims rest on: the one that has most of its
    figures, names and words, then each that has some that those before it lack; two at least, since it is drawn from
    two. Readers take a row of numbers of which half have nothing of the sentence for a fault."""
    said: dict[str, str] = {}
    for claim in claims:
        for span in claim.spans:
            said[span.document] = f"{said.get(span.document, claim.text)} {span.quote}"
    terms = {name: _list_terms(told) for name, told in said.items()}
    wanted, chosen = _list_terms(text), list[str]()
    while len(chosen) < most and len(chosen) < len(said):
        worth = {
            name: sum(worth for term, worth in wanted.items() if term in own)
            for name, own in terms.items()
            if name not in chosen
        }
        best = max(worth, key=worth.__getitem__)
        if len(chosen) >= LEAST_CITED and worth[best] < LEAST_TERMS:
            break
        chosen.append(best)
        wanted = {term: worth for term, worth in wanted.items() if term not in terms[best]}
    return [name for name in said if name in chosen]


def _list_terms(text: str) -> dict[str | float, int]:
    """What a sentence says by, and how much each tells."""
    terms: dict[str | float, int] = dict.fromkeys(stems(text), 1)
    names = {stem for word in text.split() if word[:1].isupper() for stem in stems(word)}
    return terms | dict.fromkeys(names, 2) | dict.fromkeys(extract_numbers(text, worded=True), 3)


def _count_terms(text: str, wanted: Mapping[str | float, int]) -> int:
    return sum(worth for term, worth in wanted.items() if term in _list_terms(text))


def bind_to_paragraphs(
    sentences: Sequence[DraftSentence], checker: DraftChecker, others: Sequence[str] = ()
) -> list[DraftSentence]:
    """Bind a sentence that states something and names no claim to those of its paragraph: what these amount to often
    stands before them. So is one that has hardly a word of the claims it names. Where a section names none, it sums up
    `others`. A judge reads whether it follows."""
    paragraphs = list[list[DraftSentence]]()
    for sentence in sentences:
        if sentence.opens or sentence.cell or not paragraphs:
            paragraphs.append([])
        paragraphs[-1].append(sentence)
    bound = list[DraftSentence]()
    for at, paragraph in enumerate(paragraphs):
        # What introduces a list or a table rests on what stands there.
        listed = itertools.takewhile(lambda own: own[0].item or own[0].cell, paragraphs[at + 1 :])
        # What stands alone opens its section or sums it up.
        named = _list_names(paragraph) or _list_names([one for own in listed for one in own])
        named = named or _list_names(sentences) or tuple(others)
        for sentence in paragraph:
            states = bool(sentence.claims) or not checker.may_frame(sentence.text)
            if states and (not sentence.claims or checker.has_few_words(sentence)):
                # Its own claims first; what it says of them may have the words of the others. Those with more of its
                # words come before others: a reader takes a dozen citations for a fault.
                ranked = sorted(named, key=lambda id: -checker.count_common_words(id, sentence.text))
                whole = tuple(dict.fromkeys((*sentence.claims, *ranked)))[:MOST_PARAGRAPH_CLAIMS]
                kind: Literal["fact", "synthesis"] = "synthesis" if len(whole) > 1 else "fact"
                beside = not sentence.claims
                sentence = sentence.model_copy(update={"claims": whole, "kind": kind, "cited_beside": beside})
            bound.append(sentence)
    return bound


def _list_names(sentences: Sequence[DraftSentence]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id for one in sentences for id in one.claims))


def bind_by_words(sentence: DraftSentence, claims: Sequence[Claim], checker: DraftChecker) -> DraftSentence:
    """Bind a sentence to further claims, if those it has lack its numbers or nearly all its words: what sums up a
    section or the report speaks of more than its writer names."""
    if not sentence.claims:
        return sentence
    bound = sentence
    for _ in range(MOST_ADDED):
        missing = checker.list_missing(bound)
        if not (missing.words or missing.numbers):
            return bound
        best = max(claims, key=lambda claim: checker.count_support(claim, sentence.text, missing))
        if not checker.count_support(best, sentence.text, missing):
            break
        bound = bound.model_copy(update={"claims": (*bound.claims, best.id), "kind": "synthesis"})
    # What is added in vain would only hide what it rests on.
    return sentence if any(checker.list_missing(bound)) else bound
