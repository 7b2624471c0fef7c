"""The data that is measured on: where it lies, what is in it, which it was."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from assay.errors import PathError
from assay.settings import eval_data

BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data"  # a checkout, where it is run from one


def place(given: Path | None = None) -> Path:
    """The folder that was named, in whatever way."""
    return given or eval_data() or BESIDE


def folder(given: Path | None = None) -> Path:
    """It has to be there."""
    found = place(given)
    if not found.is_dir():
        raise PathError(
            f"no evaluation data at {found}",
            help="Name the folder with --data DIR or ASSAY_EVAL_DATA; docs/howto/evaluate.md says what belongs in it.",
        )
    return found


def rows(file: Path) -> list[dict[str, Any]]:
    """Of a file with a JSON object in each line."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def digest(data: Path, folders: Iterable[str]) -> str:
    """Over the names and bytes of all files, so that figures of other data are not compared unawares."""
    sum = hashlib.sha256()
    for name in sorted(folders):
        for file in sorted(path for path in (data / name).rglob("*") if path.is_file()):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            sum.update(f"{file.relative_to(data).as_posix()} {content}\n".encode())
    return sum.hexdigest()
