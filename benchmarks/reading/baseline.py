"""A prompt with the passages that plain BM25 finds: what a strong model makes of it is the report to beat."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

MOST_CHARACTERS = 240_000  # of a prompt: about 60,000 tokens, what a run of ours may send in one call
HEAD_CHARACTERS = 2_000  # kept free for the task and the question
PASSAGE_WORDS = 200
TASK = (
    "Write a cited research report (1,200 to 2,500 words, Markdown, cite passages as [n]) that answers the question "
    "below from the passages below. Question: "
)
STOP_WORDS = frozenset(
    "a an and are as at be been but by did do does each for from had has have how in into is it its keep of on or our "
    "that the their them they this to was were what when which who why will with about since".split()
)


class Document(NamedTuple):
    title: str
    author: str
    date: str
    text: str


class Passage(NamedTuple):
    document: int
    place: int  # in the document
    text: str


def load_documents(folder: Path) -> list[Document]:
    """The files of benchmarks.corpora: a title, fields, a blank line, the text."""
    documents = []
    for file in sorted(folder.iterdir()):
        head, _, text = file.read_text(encoding="utf-8").partition("\n\n")
        title, *lines = head.split("\n")
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        documents.append(Document(title, fields.get("Author", ""), fields.get("Date", "undated"), text))
    return documents


def split_passages(text: str, words: int = PASSAGE_WORDS) -> Iterator[str]:
    """Paragraphs put together up to a quarter over the wanted length; one that is half as long again is cut."""
    kept: list[str] = []
    count = 0
    for paragraph in re.split(r"\n\s*\n", text):
        told = paragraph.split()
        long = len(told) > words * 1.5
        parts = [" ".join(told[at : at + words]) for at in range(0, len(told), words)] if long else [paragraph.strip()]
        for part in parts:
            length = len(part.split())
            if count and count + length > words * 1.25:
                yield "\n\n".join(kept)
                kept, count = [], 0
            kept.append(part)
            count += length
    if kept:
        yield "\n\n".join(kept)


def list_terms(text: str) -> list[str]:
    words = (word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOP_WORDS)
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in words]


def score_texts(texts: Sequence[str], question: str, k1: float = 1.5, b: float = 0.75) -> list[float]:
    """BM25 of each text for the question."""
    counts = [Counter(list_terms(text)) for text in texts]
    lengths = [count.total() for count in counts]
    mean = sum(lengths) / len(lengths)
    asked = sorted(set(list_terms(question)))
    holders = {term: sum(term in count for count in counts) for term in asked}
    rarity = {term: math.log(1 + (len(texts) - have + 0.5) / (have + 0.5)) for term, have in holders.items()}

    def score(count: Counter[str], length: int) -> float:
        norm = k1 * (1 - b + b * length / mean)
        return sum(rarity[term] * count[term] * (k1 + 1) / (count[term] + norm) for term in asked if term in count)

    return [score(count, length) for count, length in zip(counts, lengths, strict=True)]


def pick_passages(documents: Sequence[Document], question: str, limit: int = MOST_CHARACTERS) -> list[Passage]:
    """The best passages, best first, until one does not fit; a document's title counts once."""
    passages = [
        Passage(at, place, text)
        for at, document in enumerate(documents)
        for place, text in enumerate(split_passages(document.text))
    ]
    scores = score_texts([f"{documents[passage.document].title} {passage.text}" for passage in passages], question)
    picked: list[Passage] = []
    size, seen = HEAD_CHARACTERS, set[int]()
    for at in sorted(range(len(passages)), key=lambda at: -scores[at]):
        passage = passages[at]
        document = documents[passage.document]
        named = 0 if passage.document in seen else len(document.title) + len(document.author) + 40
        size += len(passage.text) + 12 + named
        if size > limit:
            break
        seen.add(passage.document)
        picked.append(passage)
    return picked


def build_prompt(documents: Sequence[Document], question: str, limit: int = MOST_CHARACTERS) -> str:
    """Task, question and passages, these by document: the document with the best passage first."""
    groups: dict[int, list[Passage]] = {}
    for passage in pick_passages(documents, question, limit):
        groups.setdefault(passage.document, []).append(passage)
    lines, number = [TASK + question, ""], 0
    for at, passages in groups.items():
        document = documents[at]
        lines.append("=== " + " | ".join(filter(None, (document.title, document.author, document.date))))
        for passage in sorted(passages):
            number += 1
            lines.append(f"[{number}] {passage.text}")
        lines.append("")
    return "\n".join(lines)
