"""Whether a document is about a subject, so that what it says of "the company" may be taken as said of it."""

from assay.model.source import Document
from assay.text.words import words

OPENING = 600  # words: title page, abstract, first paragraphs
OFTEN = 3  # mentions that make a subject more than an aside


def is_about(document: Document, subject: str) -> bool:
    """Named in the title or the opening, or named often."""
    wanted = f" {_line(subject)} "
    if not wanted.strip():
        return True
    if wanted in f" {_line(document.title)} ":
        return True
    text = words(document.text)
    return wanted in f" {_joined(text[:OPENING])} " or f" {_joined(text)} ".count(wanted) >= OFTEN


def _line(text: str) -> str:
    return _joined(words(text))


def _joined(tokens: list[str]) -> str:
    return " ".join(token.removesuffix("'s").removesuffix("’s") for token in tokens)
