"""Several files in one: a zip that is complete or not there at all."""

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from assay.errors import PathError


def write_bundle(path: Path, files: Mapping[str, bytes]) -> None:
    try:
        handle, part = tempfile.mkstemp(dir=path.absolute().parent, prefix=".assay-", suffix=".part")
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with open(handle, "wb") as file:
            with ZipFile(file, "w", ZIP_DEFLATED) as bundle:
                for name, content in files.items():
                    bundle.writestr(name, content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)


def _unwritable(path: Path, error: OSError) -> PathError:
    return PathError(f"cannot write {path}: {error.strerror}", help="Choose another file with --out.")
