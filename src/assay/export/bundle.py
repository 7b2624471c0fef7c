"""Several files in one: a zip that is complete or not there at all."""

from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from assay.errors import PathError
from assay.export.whole import whole


def write_bundle(path: Path, files: Mapping[str, bytes]) -> None:
    try:
        with whole(path) as file, ZipFile(file, "w", ZIP_DEFLATED) as bundle:
            for name, content in files.items():
                bundle.writestr(name, content)
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> PathError:
    return PathError(f"cannot write {path}: {error.strerror}", help="Choose another file with --out.")
