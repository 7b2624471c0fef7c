"""Writes the questions that the reader learns from: python -m benchmarks.reader_questions SETS DATA OUT

SETS has the public sets of benchmarks/data/ORIGIN.md ("Questions with passages"), one SET.jsonl each, as `reader_sets`
writes them; DATA is the shared data. OUT (.jsonl.xz) gets a line for each question and passage: what answers it
(offsets, or yes, or no), or nothing. Beside each question stand one or two passages of the same set that have its words
and not its answer. Every tenth context, by a hash, is held back to be measured on.

Nothing of the paragraphs of xquad is among them, which is used to measure.
"""

import hashlib
import json
import lzma
import math
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SETS = {  # how many questions of each, at most
    "squad-train-part": 20_000, "squad-dev": 17_000, "disfl-qa": 6_000, "squadshifts-new_wiki": 8_000,
    "nq-open-gold": 3_000, "timeqa-human": 2_300, "qamr-devtest": 16_000, "wtq-train": 5_400, "fetaqa-devtest": 400,
    "aitqa": 600, "tatqa-test": 1_700, "tydiqa-en": 4_200, "afriqa-en": 4_000, "qed-dev": 500,
    "policyqa-devtest": 2_000,
    "boolq-dev": 3_300, "strategyqa-train": 2_100, "pubmedqa": 900, "clapnq-dev-none": 300,
}  # fmt: skip
WINDOW, BEFORE = 190, 120  # words of a passage that are kept, and at most so many before an answer
HELD = 10  # every so many contexts are kept back
_WORD = re.compile(r"[a-z0-9]+")
STOP = frozenset(
    "a an and are as at be been but by did do does for from had has have how in is it its many much of on or that the "
    "their them they this to was were what when where which who whom whose why will with".split()
)


class Question(NamedTuple):
    set: str
    text: str
    context: str
    answers: tuple[tuple[int, int], ...]  # none: the context has no answer
    title: str
    side: str = ""  # yes or no


def load_questions(folder: Path, data: Path, rng: random.Random) -> Iterator[Question]:
    asked = json.loads((data / "train/xquad/en.json").read_text(encoding="utf-8"))["data"]
    kept_apart = {paragraph["context"][:80] for article in asked for paragraph in article["paragraphs"]}
    for name, most in SETS.items():
        file = folder / f"{name}.jsonl"
        if not file.is_file():
            print(f"{name}: not there")
            continue
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        rows = [row for row in rows if row["context"][:80] not in kept_apart and is_usable(row)]
        rng.shuffle(rows)
        for row in rows[:most]:
            spans = tuple((one["start"], one["start"] + len(one["text"])) for one in row["answers"])
            side = row["kind"] if row.get("kind") in ("yes", "no") else ""
            yield Question(name, row["question"], row["context"], spans, row.get("title") or "", side)
    covid = json.loads((data / "train/covid-qa.json").read_text(encoding="utf-8"))["data"]
    for paragraph in (one for article in covid for one in article["paragraphs"]):
        for row in paragraph["qas"]:
            told = row["answers"][0]
            start = told["answer_start"]
            yield Question("covid-qa", row["question"], paragraph["context"], ((start, start + len(told["text"])),), "")


def is_usable(row: dict[str, Any]) -> bool:
    """Whether what answers it stands in its context as it is, or is yes or no: no sum."""
    if not row["answers"]:
        return row.get("kind") in (None, "", "yes", "no")
    return row.get("kind") in (None, "span") and all(len(one["text"].split()) <= 40 for one in row["answers"])


def list_terms(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if word not in STOP}


class Contexts:
    """Finds passages that have the words of a question."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._holders: dict[str, list[int]] = defaultdict(list)
        for at, text in enumerate(texts):
            for term in list_terms(text[:6_000]):
                self._holders[term].append(at)

    def find_rivals(self, question: Question, rng: random.Random) -> list[str]:
        """One or two of the passages most like it that lack its answer."""
        scores = Counter[int]()
        for term in list_terms(question.text):
            holders = self._holders.get(term, ())
            if len(holders) < max(400, len(self.texts) // 20):
                for at in holders:
                    scores[at] += math.log(len(self.texts) / len(holders) + 1)  # type: ignore[assignment]
        told = [question.context[start:end].lower() for start, end in question.answers]
        like = [
            self.texts[at]
            for at, _ in scores.most_common(8)
            if self.texts[at] != question.context and not any(one in self.texts[at].lower() for one in told)
        ]
        return rng.sample(like[:4], min(len(like[:4]), rng.choice((1, 2))))


def cut_window(context: str, span: tuple[int, int] | None, rng: random.Random) -> tuple[str, tuple[int, int] | None]:
    """So many words of a context around its answer, or anywhere."""
    words = [match.span() for match in re.finditer(r"\S+", context)]
    if len(words) <= WINDOW:
        return context, span
    at = next((n for n, (_, end) in enumerate(words) if end > span[0]), 0) if span else rng.randrange(len(words))
    first = max(0, min(at - rng.randrange(BEFORE), len(words) - WINDOW))
    start, end = words[first][0], words[min(first + WINDOW, len(words)) - 1][1]
    if span and span[1] > end:
        return context[start : span[1]], (span[0] - start, span[1] - start)
    return context[start:end], (span[0] - start, span[1] - start) if span else None


def write_questions(folder: Path, data: Path, out: Path) -> None:
    rng = random.Random(7)
    by_set: dict[str, list[Question]] = defaultdict(list)
    for question in load_questions(folder, data, rng):
        by_set[question.set].append(question)
    count = Counter[str]()
    with lzma.open(out, "wt", encoding="utf-8", preset=6) as file:
        for name, questions in by_set.items():
            contexts = Contexts(list(dict.fromkeys(question.context for question in questions)))
            for question in questions:
                # The shortest of the ways to tell it.
                span = min(question.answers, key=lambda one: one[1] - one[0]) if question.answers else None
                passages = [(question.context, span)]
                if span or question.side:
                    passages += [(rival, None) for rival in contexts.find_rivals(question, rng)]
                for context, answer in passages:
                    text, cut = cut_window(context, answer, rng)
                    digest = hashlib.sha256(question.context.encode()).digest()[0]
                    held = digest % HELD == 0
                    count[f"{name} {'held' if held else 'learned'} {'answer' if cut else 'none'}"] += 1
                    row = {"set": name, "q": question.text, "c": text, "a": cut, "t": question.title, "held": held}
                    if context is question.context and question.side:
                        row["k"] = question.side
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
    for key, number in sorted(count.items()):
        print(key, number)


if __name__ == "__main__":
    write_questions(*map(Path, sys.argv[1:4]))
