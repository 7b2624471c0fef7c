"""What the checks make of a strong model's claims, and of the same claims with one thing wrong.

Three corpora, each a folder `NAME/docs` of the data folder (OPENASSAY_EVAL_DATA); benchmarks/data/ORIGIN.md tells their
origin, and their texts are not kept here. One that is not there is left out, and nothing is written to a page.

`--record NAME STATE` adds claims of a run to the set: STATE is what `openassay threads state THREAD --json` printed
after the run had verified its claims.
"""

import argparse
import asyncio
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.evaluation.measure import require_data_folder
from benchmarks.evaluation.replay import (
    CORPORA,
    REPLAY,
    RecordedJudge,
    ReplayClaim,
    count_errors,
    decide,
    load_claims,
    load_judged,
)
from benchmarks.figures import keep
from openassay.companies.register import LazyCompanyRegister
from openassay.models.evidence import Claim, Verdict
from openassay.reasoning.rules import RuleReasoner
from openassay.text.embeddings import CrossEncoder, MiniLM
from openassay.verification.support import CrossEncoderScorer

SAMPLE = 60  # claims of one run


def record(data: Path, corpus: str, state: Path) -> None:
    """Add claims of a run, whatever became of them: where their quotes stand, and not the quotes."""
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted((data / corpus / "docs").iterdir())}
    found = json.loads(state.read_text(encoding="utf-8"))["claims"]
    rows = list[dict[str, object]]()
    for claim in random.Random(7).sample(found, len(found)):
        places = []
        for span in claim["spans"]:
            holding = [name for name, text in files.items() if text.count(span["quote"]) == 1]
            if len(holding) == 1:
                [name] = holding
                start = files[name].index(span["quote"])
                sha = hashlib.sha256(files[name].encode()).hexdigest()[:12]
                places.append({"file": name, "sha256": sha, "start": start, "end": start + len(span["quote"])})
        if places and len(places) == len(claim["spans"]) and len(rows) < SAMPLE:
            row = {"id": f"{corpus[:4]}-{claim['id']}", "corpus": corpus, "text": claim["text"], "places": places}
            rows.append(row)
    with (REPLAY / "claims.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    print(f"{corpus}: {len(rows)} of {len(found)} claims")


def tell_errors(claims: Sequence[ReplayClaim], decided: Mapping[str, Claim], said: Mapping[str, str]) -> None:
    """Print what the checks refuse of what the strong judge supports, and what passes of the false."""
    for claim in claims:
        passes = decided[claim.id].verdict is Verdict.SUPPORTED
        if claim.kind == "drawn" and said[claim.text] == "supported" and not passes:
            print(f"refused: {claim.id} {claim.text} ({'; '.join(decided[claim.id].reasons)})")
        elif claim.kind != "drawn" and passes:
            print(f"passes: {claim.id} ({claim.kind}) {claim.text}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", nargs=2, metavar=("NAME", "STATE"))
    given = parser.parse_args()
    data = require_data_folder()
    if given.record:
        record(data, given.record[0], Path(given.record[1]))
        return
    missing = [name for name in CORPORA if not (data / name / "docs").is_dir()]
    for name in missing:
        print(f"{name}: skipped, {data} has no such folder")
    claims = list(load_claims(data))
    if not claims:
        return
    said = load_judged(claims)
    strong = asyncio.run(decide(claims, RecordedJudge(said)))
    tell_errors(claims, strong, said)
    rules = RuleReasoner(MiniLM(), CrossEncoderScorer(CrossEncoder()), LazyCompanyRegister())
    embedded = asyncio.run(decide(claims, rules))
    rows = []
    kinds = sorted({claim.kind for claim in claims} - {"drawn"})
    for name, decided in (("the strong model itself", strong), ("the embedded verifier", embedded)):
        refused, passed = count_errors(claims, decided)
        each = [count_errors([one for one in claims if one.kind in ("drawn", kind)], decided)[1] for kind in kinds]
        rows.append((name, f"{refused:.3f}", f"{passed:.3f}", *(f"{share:.2f}" for share in each)))
        print(*rows[-1])
    if not missing:
        keep("replay", ("judge", "true, refused", "false, published", *kinds), rows)


if __name__ == "__main__":
    main()
