"""Reads public labelled sets out of mirrors of their repositories, and writes them in one form.

    PYTHONPATH=. python benchmarks/public_sets.py --mirrors FOLDER --out FOLDER [NAME ...]

`--mirrors` has a git directory OWNER+NAME/repo for each repository (benchmarks/data/ORIGIN.md). A set becomes a
NAME.jsonl, with `claim`, `evidence`, `label` (supported, refuted, neither, or not_supported where the last two are not
told apart) and, where known, `title` and `date`. Without a NAME all sets are written. `xsumfaith` needs openpyxl.
"""

import argparse
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from benchmarks import public_set_readers as sets

READERS: dict[str, Callable[[sets.Show], Iterator[sets.Row]]] = {
    "attributionbench_dev": sets.read_attributionbench_dev,
    "breaking_nli": sets.read_breaking_nli,
    "bump": sets.read_bump,
    "check_covid": sets.read_check_covid,
    "citint": sets.read_citint,
    "climate_fever": sets.read_climate_fever,
    "conjnli": sets.read_conjnli,
    "contractnli_devtest": sets.read_contractnli_devtest,
    "covidfact": sets.read_covidfact,
    "defacto": sets.read_defacto,
    "dialfact_small": sets.read_dialfact_small,
    "dnc_megaveridicality": sets.read_dnc_megaveridicality,
    "factcheck_gpt": sets.read_factcheck_gpt,
    "feverous_dev_sent": sets.read_feverous_dev_sent,
    "fib": sets.read_fib,
    "finfact_debunk": sets.read_finfact_debunk,
    "fm2_devtest": sets.read_fm2_devtest,
    "healthver": sets.read_healthver,
    "help_part": sets.read_help_part,
    "infotabs": sets.read_infotabs,
    "med": sets.read_med,
    "mnli_part": sets.read_mnli_part,
    "neg_nli": sets.read_neg_nli,
    "q2_wow": sets.read_q2_wow,
    "qags": sets.read_qags,
    "scifact": sets.read_scifact,
    "scitab": sets.read_scitab,
    "scitail_dev": sets.read_scitail_dev,
    "scone": sets.read_scone,
    "semtabfacts": sets.read_semtabfacts,
    "snli_counterfactual": sets.read_snli_counterfactual,
    "snli_devtest": sets.read_snli_devtest,
    "sufficient_facts": sets.read_sufficient_facts,
    "summedits": sets.read_summedits,
    "tabfact_part": sets.read_tabfact_part,
    "vitaminc_real_test": sets.read_vitaminc_real_test,
    "xsumfaith": sets.read_xsumfaith,
}
KEPT_FILES = 200  # a table of a set is asked for again by the statements that follow


def open_mirrors(mirrors: Path) -> sets.Show:
    """What shows a file of a repository, given OWNER/NAME and path: as it is at HEAD, or else in the newest of the
    older commits that has it."""

    def git(repository: str, *arguments: str) -> bytes | None:
        folder = mirrors / repository.replace("/", "+") / "repo"
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=False)
        return done.stdout if done.returncode == 0 else None

    @lru_cache(KEPT_FILES)
    def show(repository: str, path: str) -> bytes:
        found = git(repository, "show", f"HEAD:{path}")
        if found is not None:
            return found
        commits = git(repository, "log", "--all", "--diff-filter=AM", "--format=%H", "--", path) or b""
        for commit in commits.decode().split():
            found = git(repository, "show", f"{commit}:{path}")
            if found is not None:
                return found
        raise FileNotFoundError(f"{repository} has no {path}")

    return show


def main() -> None:
    parser = argparse.ArgumentParser(description="Write public labelled sets in one form.")
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(READERS)}")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(READERS))
    if unknown:
        parser.error(f"no such set: {', '.join(unknown)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    show = open_mirrors(arguments.mirrors)
    for name in arguments.names or READERS:
        rows = sets.keep_once(READERS[name](show))
        with (arguments.out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        print(name, len(rows), dict(Counter(row["label"] for row in rows)), flush=True)


if __name__ == "__main__":
    main()
