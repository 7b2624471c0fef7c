"""How well the documents source finds: two-hop questions and related work, against plain BM25.

Data: HotpotQA (100 questions, 994 passages) and DeepScholar (20 tasks, 1,546 abstracts) from `ASSAY_EVAL_DATA`, by
default ../shared/data.
"""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean

from assay.embedding.minilm import MiniLM
from assay.embedding.vectors import CachedEmbedder
from assay.model.source import Document, Passage
from assay.ports import FileStamp
from assay.search.ranking import first, rank
from assay.storage.library import LibraryIndex
from assay.text.words import content_words

DATA = Path(os.environ.get("ASSAY_EVAL_DATA", "../shared/data"))
Find = Callable[[str, int], list[str]]


def indexed(texts: Iterable[tuple[str, str]], folder: Path, name: str) -> LibraryIndex:
    index = LibraryIndex(folder / f"{name}.sqlite3")
    with index.batch():
        for title, text in texts:
            hash = hashlib.sha256(text.encode()).hexdigest()
            document = Document(hash=hash, text=text, url=f"x:{title}", title=title, fetched=datetime.now(UTC))
            index.replace(title, FileStamp(1, 1), document, [Passage(document=hash, start=0, end=len(text), text=text)])
    return index


def hotpotqa(folder: Path, embedder: CachedEmbedder) -> None:
    corpus = json.loads((DATA / "hotpotqa/corpus.json").read_text())
    questions = json.loads((DATA / "hotpotqa/questions.json").read_text())
    index = indexed(((title, "".join(parts)) for title, parts in corpus.items()), folder, "hotpotqa")

    for name, find in finders(index, embedder).items():
        began = time.perf_counter()
        found = [
            {title for title, _ in question["supporting_facts"]} <= set(find(question["question"], 5))
            for question in questions
        ]
        milliseconds = (time.perf_counter() - began) / len(found) * 1000
        halves = " and ".join(f"{sum(half) / len(half):.2f}" for half in (found[::2], found[1::2]))
        print(
            f"hotpotqa     {name:10} all gold in top 5: {sum(found) / len(found):.2f} (halves {halves})"
            f"   {milliseconds:6.0f} ms a query"
        )


def deepscholar(folder: Path, embedder: CachedEmbedder) -> None:
    corpus = [json.loads(line) for line in (DATA / "deepscholar/corpus.jsonl").read_text().splitlines()]
    tasks = [json.loads(line) for line in (DATA / "deepscholar/tasks.jsonl").read_text().splitlines()]
    titles = {}
    for paper in corpus:
        titles[paper["title"]] = paper["id"]
    index = indexed(((p["title"], f"{p['abstract'] or p['title']}") for p in corpus), folder, "deepscholar")
    for name, find in finders(index, embedder).items():
        began = time.perf_counter()
        precision, recall = [], []
        for task in tasks:
            gold = set(task["gold_citations"])
            got = [titles[title] for title in find(f"{task['title']} {task['abstract']}", 20)]
            precision.append(len(gold & set(got)) / 20)
            recall.append(len(gold & set(got)) / len(gold))
        milliseconds = (time.perf_counter() - began) / len(tasks) * 1000
        shown = "  ".join(
            f"{what} {mean(of):.3f} (halves {mean(of[::2]):.3f} and {mean(of[1::2]):.3f})"
            for what, of in (("precision@20", precision), ("recall@20", recall))
        )
        print(f"deepscholar  {name:10} {shown}   {milliseconds:6.0f} ms a request")


def finders(index: LibraryIndex, embedder: CachedEmbedder) -> dict[str, Find]:
    return {
        "bm25": lambda query, limit: [hit.title for hit in index.match(content_words(query), limit=limit)],
        # This one encodes; the next finds the same vectors stored.
        "first": lambda query, limit: [item.match.title for item in first(query, [index], embedder, limit)],
        "rank": lambda query, limit: [item.match.title for item in rank(query, [index], embedder, limit)],
    }


def main() -> None:
    if not DATA.is_dir():
        print(f"no data at {DATA}; set ASSAY_EVAL_DATA")
        return
    with tempfile.TemporaryDirectory() as folder:
        embedder = CachedEmbedder(MiniLM(), Path(folder) / "vectors.sqlite3", on_notice=print)
        hotpotqa(Path(folder), embedder)
        deepscholar(Path(folder), embedder)
        embedder.close()


if __name__ == "__main__":
    main()
