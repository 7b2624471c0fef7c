"""Puts together what `train_synthesis` learns from: sentences that draw claims together, and statements on passages.

    python -m benchmarks.synthesis_rows OUT

OUT gets rows.jsonl.xz: statement, evidence, label, weight, whether it is a sentence that draws claims together, and
`held`: one group of ten is told, and not learned from in a trial. What stands in `syntheses/dev.jsonl` is told besides;
`test.jsonl` is not opened.
"""

import hashlib
import json
import lzma
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.evaluation.measure import load_rows
from benchmarks.verifier_pairs import LABELS, OURS, head_line, load_written, read_figure, with_head
from openassay.verification.support import mark_copy
from openassay.verification.synthesis import shorten_claim, tell_figure

SHOWN = 4  # ways in which the claims of a sentence are shown
HELD = 10  # one group of so many
SYNTHESES = OURS / "syntheses"

Row = tuple[str, str, int, float, bool, str]


def list_syntheses(rng: random.Random, groups: list[dict[str, Any]], part: str, shown: int = SHOWN) -> Iterator[Row]:
    """Each sentence beside the claims it names, in another order each time, and beside further claims of its group; a
    true one without a claim that it needs may follow still, and weighs less."""
    for group in groups:
        known = json.dumps([one["text"] for one in group["claims"]])
        held = part or ("held" if hashlib.sha256(known.encode()).digest()[0] % HELD == 0 else "")
        heads = [" | ".join(filter(None, (one["title"], one["publisher"], one["date"]))) for one in group["claims"]]
        claims = [shorten_claim(one["text"], head) for one, head in zip(group["claims"], heads, strict=True)]
        for said in group["sentences"]:
            figures = [tell_figure(figure) for line in said.get("derived") or () if (figure := read_figure(line))]
            uses = [number - 1 for number in dict.fromkeys(said["uses"]) if 0 < number <= len(claims)]
            others = [at for at in range(len(claims)) if at not in uses]
            for turn in range(shown):
                told = [*uses, *rng.sample(others, min(len(others), (0, 0, 1, len(others))[turn]))]
                told = told if turn == 0 else rng.sample(told, len(told))
                evidence = "\n".join((*(claims[at] for at in told), *figures))
                yield mark_copy(said["text"], evidence), evidence, 0 if said["true"] else 3, 1.5, True, held
            if said["true"] and len(uses) > 1 and not part:
                gone = rng.choice(uses)
                evidence = "\n".join((*(claims[at] for at in uses if at != gone), *figures))
                yield mark_copy(said["text"], evidence), evidence, 2, 0.4, True, held


def list_statements() -> Iterator[Row]:
    """Statements on passages of our own, so that what the verifier knows is not lost."""
    for file in sorted((OURS / "written").glob("*.xz")):
        if file.name == "first.jsonl.xz":
            continue
        for row in load_written(file.name):
            evidence = with_head(head_line(row), " ".join(row["sentences"]))
            for said in row["statements"]:
                yield mark_copy(said["text"], evidence), evidence, LABELS[said["label"]], 1.0, False, ""


def main() -> None:
    rng = random.Random(11)
    groups = []
    for file in sorted(SYNTHESES.glob("train*.jsonl.xz")):
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            groups += [json.loads(line) for line in lines]
    rows = [*list_syntheses(rng, groups, ""), *list_statements()]
    rows += list_syntheses(rng, load_rows(SYNTHESES / "dev.jsonl"), "dev", shown=1)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with lzma.open(folder / "rows.jsonl.xz", "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    drawn = [row for row in rows if row[4]]
    print(f"{len(groups)} groups, {len(drawn)} rows of sentences, {len(rows) - len(drawn)} of statements")
    print({part: sum(row[5] == part for row in drawn) for part in ("", "held", "dev")})


if __name__ == "__main__":
    main()
