"""How well copies are told from other pages: 181 web pages, each read in up to six ways.

Data: extraction from `ASSAY_EVAL_DATA`, by default ../shared/data. A page's readings are copies of each other (the true
body, three settings of trafilatura, all text of the page with its menus, what the page says of itself in JSON-LD); the
true bodies of two pages never are. Measured on 2 cores that others used too:

    shared by the smaller     .50     .70     .75     .80     .85     .90
    recall, 1,890 pairs      .9995   .9995   .9995   .9968   .9889   .9820
    false merges, 16,290        0       0       0       0       0       0     (the most that two pages share is .283)

The threshold is .80 and not .75 because of what this set lacks: quarterly reports of one company share up to .71 with
the one before. 400 documents of 5,000 words took 1.6 to 1.9 s of processor time under a load of 8, two thirds for
making shingles.
"""

import gzip
import json
import os
import random
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from assay.search.duplicates import THRESHOLD, duplicates
from assay.text.shingles import containment, shingles

DATA = Path(os.environ.get("ASSAY_EVAL_DATA", "../shared/data")) / "extraction"


def readings(page: bytes, truth: str) -> Iterator[str]:
    """The ways to read a page that gave any text."""
    from lxml.html import HTMLParser, fromstring
    from trafilatura import extract

    yield truth
    for precise, generous in ((False, False), (True, False), (False, True)):
        if text := extract(page, favor_precision=precise, favor_recall=generous):
            yield text
    tree: Any = fromstring(page, parser=HTMLParser(encoding="utf-8"))
    if body := max(map(_body, tree.xpath("//script[@type='application/ld+json']/text()")), key=len, default=""):
        yield body
    for hidden in tree.xpath("//script|//style|//noscript|//template"):
        hidden.drop_tree()
    yield " ".join(tree.itertext())


def _body(text: str) -> str:
    """The longest `articleBody` anywhere in a piece of JSON-LD."""
    try:
        waiting = [json.loads(text, strict=False)]
    except ValueError:
        return ""
    found = [""]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            found.append(item["articleBody"] if isinstance(item.get("articleBody"), str) else "")
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return max(found, key=len)


def seconds(documents: int = 400, words: int = 5_000) -> float:
    chance = random.Random(1)
    known = ["".join(chance.choices("abcdefghijklmnoprstuvwé", k=chance.randint(2, 10))) for _ in range(20_000)]
    texts = [(str(at), " ".join(chance.choices(known, k=words))) for at in range(documents)]
    began = time.process_time()
    assert duplicates(texts) == {}
    return time.process_time() - began


def main() -> None:
    if not DATA.is_dir():
        print(f"no data at {DATA}; set ASSAY_EVAL_DATA")
        return
    truth = {name: page["articleBody"] for name, page in json.loads((DATA / "ground-truth.json").read_text()).items()}
    copies: list[float] = []
    for name, body in truth.items():
        read = [
            shingles(text) for text in readings(gzip.decompress((DATA / f"html/{name}.html.gz").read_bytes()), body)
        ]
        copies += [containment(one, other) for one, other in combinations(read, 2)]
    others = [containment(one, other) for one, other in combinations(map(shingles, truth.values()), 2)]
    print(f"{len(copies)} pairs of copies, {len(others)} of others; the most that others share is {max(others):.3f}")
    for threshold in (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9):
        found, wrong = sum(share >= threshold for share in copies), sum(share >= threshold for share in others)
        chosen = "  <- chosen" if threshold == THRESHOLD else ""
        print(f"shared {threshold:.2f}   recall {found / len(copies):.4f}   false merges {wrong}{chosen}")
    print(f"false merges by duplicates(): {len(duplicates(list(truth.items())))}")
    print(f"400 documents of 5,000 words: {seconds():.2f} s of processor time")


if __name__ == "__main__":
    main()
