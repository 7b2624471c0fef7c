"""Whether a document is about a subject, so that what it says of "the company" may be taken as said of it."""

from collections.abc import Callable, Sequence

from assay.model.source import Document
from assay.text.words import words

OPENING = 600  # words: title page, abstract, first paragraphs
EXCERPT = 1_200  # characters, about 200 words
OFTEN = 3  # mentions that make a subject more than an aside


def on_subject(documents: Sequence[Document], subjects: Sequence[str]) -> set[str]:
    """Hashes of the documents about any of the subjects; empty if none is.

    A subject that fits every document tells none apart and gives way to one that does. Being named at the opening
    tells more than being named often: filings of all companies name "R&D" often, each names its own company first.
    """
    kept = _whole(documents, subjects)
    return kept | _excerpts(documents, subjects[0]) if len(subjects) == 1 else kept


def _excerpts(documents: Sequence[Document], subject: str) -> set[str]:
    """A text too short to have an opening is about what it has half the words of: "Simeon P. Smith House" for the
    Simeon Smith House."""
    short = [document for document in documents if len(document.text) < EXCERPT]
    wanted = set(words(subject))
    said = {document.hash: set(_line(words(document.text)).split()) for document in short}
    return {name for name, known in said.items() if 2 * len(known & wanted) >= len(wanted)}


def _whole(documents: Sequence[Document], subjects: Sequence[str]) -> set[str]:
    everything = {document.hash for document in documents}
    for fits in (opens_with, is_about):
        found = [_fitting(documents, subject, fits) for subject in subjects]
        if telling := [hashes for hashes in found if hashes and hashes != everything]:
            return set().union(*telling)
        if everything in found:
            return everything
    return set() if subjects else everything


def _fitting(documents: Sequence[Document], subject: str, fits: Callable[[Document, str], bool]) -> set[str]:
    return {document.hash for document in documents if fits(document, subject)}


def opens_with(document: Document, subject: str) -> bool:
    wanted = f" {_line(words(subject))} "
    opening = _line([*words(document.title), *words(document.text[: OPENING * 10])[:OPENING]])
    return not wanted.strip() or wanted in f" {opening} "


def is_about(document: Document, subject: str) -> bool:
    """Named in the title or the opening, or named often."""
    wanted = f" {_line(words(subject))} "
    return opens_with(document, subject) or f" {_line(words(document.text))} ".count(wanted) >= OFTEN


def _line(tokens: Sequence[str]) -> str:
    return " ".join(token.removesuffix("'s").removesuffix("’s") for token in tokens)
